// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/reply_rules.hpp"

#include <algorithm>
#include <string>

namespace penstock::nat {

ReplyRule::ReplyRule(NicPortId port, const ReplyHash& hash, uint32_t workers, uint32_t number)
    : port_(port),
      number_(number),
      mask_(static_cast<uint32_t>(hash.worker_of.size()) - 1),
      toeplitz_(hash.key),
      kinds_{.tcp4 = hash.tcp4, .udp4 = hash.udp4, .tcp6 = hash.tcp6, .udp6 = hash.udp6},
      worker_of_(hash.worker_of) {
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        std::vector<uint64_t>& own = own_[is_v6(family)];
        own.resize(worker_of_.size() * workers);
        for (uint32_t low = 0; low < kPortsPerBlock; ++low) {
            const uint32_t adds = toeplitz_.of_destination_port(family, static_cast<L4Port>(low));
            for (uint32_t x = 0; x <= mask_; ++x) {
                own[worker_of_[(x ^ adds) & mask_].value * worker_of_.size() + x] |= 1ULL << low;
            }
        }
    }
}

OwnPorts ReplyRule::own_ports(WorkerId self, packet::FlowKey reply) const noexcept {
    const IpFamily family = reply.source.family();
    reply.destination_port = 0;
    return {toeplitz_, own_[is_v6(family)].data() + self.value * worker_of_.size(), mask_,
            toeplitz_.of(reply), family};
}

Result<ReplyRules> ReplyRules::create(std::span<const PortReplyHash> hashes, uint32_t workers) {
    ReplyRules rules;
    for (const PortReplyHash& of_port : hashes) {
        const std::string port = "NicPort " + std::to_string(of_port.port.value);
        if (of_port.port.value >= limits::kNicPortsMax || rules.by_port_[of_port.port.value] != nullptr) {
            return fail(Errc::InvalidArgument, port + " has two reply hashes, or its number is out of range");
        }
        if (const std::string obstacle = obstacle_of(*of_port.hash, workers); !obstacle.empty()) {
            return fail(Errc::InvalidArgument, port + ": its RSS cannot be used: " + obstacle);
        }
        const auto alike = std::ranges::find_if(hashes, [&](const PortReplyHash& other) {
            return other.hash->key == of_port.hash->key && other.hash->worker_of == of_port.hash->worker_of;
        });
        rules.rules_.push_back(std::make_unique<const ReplyRule>(
            of_port.port, *of_port.hash, workers, static_cast<uint32_t>(alike - hashes.begin())));
        rules.by_port_[of_port.port.value] = rules.rules_.back().get();
    }
    for (size_t port = rules.by_port_.size(); port-- > 0;) {
        rules.first_ = rules.by_port_[port] != nullptr ? rules.by_port_[port] : rules.first_;
    }
    return rules;
}

}  // namespace penstock::nat
