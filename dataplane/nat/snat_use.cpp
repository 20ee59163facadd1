// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/snat_use.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "dataplane/base/hash.hpp"
#include "dataplane/nat/snat.hpp"

namespace penstock::nat {
namespace {

uint64_t ports_of(const PortRules& rules) {
    uint64_t ports = 0;
    for (uint32_t block = 0; block < kPortBlocks; ++block) {
        ports += static_cast<uint64_t>(std::popcount(rules.usable(block)));
    }
    return ports;
}

}  // namespace

size_t SnatCensus::Hash::operator()(const PoolKey& key) const noexcept {
    static const KeyedMix kMix{HashKey{}};
    const auto snat = load<std::array<uint64_t, 2>>(&key.snat);
    const auto endpoint = load<std::array<uint64_t, 2>>(&key.endpoint);
    return kMix.of(snat[0], snat[1], endpoint[0], endpoint[1],
                   uint64_t{key.endpoint_port} << 8 | static_cast<uint8_t>(key.protocol));
}

SnatCensus::SnatCensus(const SnatConfig& config, const NodePortBits& node_ports) {
    for (const SnatAddress& address : config.addresses) {
        if (config.addresses.find(address.address) != &address) {
            continue;
        }
        for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
            const PortRules rules =
                rules_for(config, address, {.node_port_bits = node_ports(protocol), .version = 0});
            uses_.push_back({.address = address.address, .protocol = protocol, .ports = ports_of(rules)});
            in_block_.push_back(rules.in_block);
        }
    }
}

void SnatCensus::count(const PoolKey& key, L4Port port) {
    const auto use = std::ranges::find_if(uses_, [&key](const SnatUse& candidate) {
        return candidate.address == key.snat && candidate.protocol == key.protocol;
    });
    if (use != uses_.end()) {
        ++use->in_use;
        if ((in_block_[static_cast<size_t>(use - uses_.begin())] >> port % kPortsPerBlock & 1) != 0) {
            use->busiest_endpoint = std::max(use->busiest_endpoint, ++by_key_[key]);
        }
    }
}

}  // namespace penstock::nat
