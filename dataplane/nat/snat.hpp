// SPDX-License-Identifier: Apache-2.0
// The SNAT addresses and ports that a new full-NAT flow may use. source_search.hpp selects among them.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "dataplane/nat/port_rules.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::nat {

// The flow that needs a source.
struct BindRequest {
    IpAddr endpoint;
    L4Port endpoint_port = 0;
    Protocol protocol = Protocol::Tcp;
    NicPortId egress;  // the NicPort that leads to the endpoint
    // ReplyOwner::client_hash(): a client keeps its SNAT address as long as that address has free ports (RFC
    // 4787, REQ-2).
    uint64_t client_hash = 0;
    uint8_t group = 0;  // lb::FrontendRow::snat_group
};

// The ports that the host needs for itself on shared addresses, in the format of PortRules.
struct HostPorts {
    const uint64_t* node_port_bits = nullptr;
    uint32_t version = 0;  // the snapshot's generation
};

// The ports that may be used on one SNAT address. The kernel's ephemeral range and NodePorts are excluded
// only on an address that Linux uses too.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE PortRules rules_for(const SnatConfig& config, const SnatAddress& address,
                                                         const HostPorts& host) noexcept {
    PortRules rules{.range = config.ports, .in_block = ports_in_block(address.part), .version = host.version};
    if (address.shared_with_host) {
        rules.excluded = config.host_ephemeral;
        rules.node_port_bits = host.node_port_bits;
    }
    return rules;
}

// The index of the address that a client tries in its `turn`, among the fitting ones: it starts at number
// client_hash % count of them and wraps around. Only fitting addresses are counted; otherwise the neighbours
// of an address that does not fit would get its share. `fitting` must not be empty.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint8_t choice_of(SnatAddressSet fitting, uint64_t client_hash,
                                                       uint32_t turn) noexcept {
    if ((fitting & (fitting - 1)) != 0) {
        const auto count = static_cast<uint32_t>(std::popcount(fitting));
        for (uint64_t skip = (client_hash % count + turn) % count; skip > 0; --skip) {
            fitting &= fitting - 1;
        }
    }
    return static_cast<uint8_t>(std::countr_zero(fitting));
}

// The fitting addresses in the order in which a SourceSearch tries them; for explain.
[[nodiscard]] std::vector<const SnatAddress*> choices_in_turn(const SnatConfig& config,
                                                              const BindRequest& request);

}  // namespace penstock::nat
