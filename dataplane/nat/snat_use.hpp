// SPDX-License-Identifier: Apache-2.0
// Usage of the SNAT addresses, counted from the connections that hold a port. For metrics; control threads
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "dataplane/nat/port_rules.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::nat {

// One SNAT address and protocol, over all workers. A port in use towards one endpoint (address and port) is
// free towards another. An address can therefore have more ports in use than it has ports; it is exhausted
// towards an endpoint that uses all of `ports`. `ports` and `busiest_endpoint` are those of the gateway's
// part (PortPart), while `in_use` also contains the ports of flows that another gateway has opened.
struct SnatUse {
    IpAddr address;
    Protocol protocol = Protocol::Tcp;
    uint64_t ports = 0;             // usable towards each endpoint
    uint64_t in_use = 0;            // towards all endpoints
    uint64_t busiest_endpoint = 0;  // of these, towards the endpoint with the highest number
    bool operator==(const SnatUse&) const = default;
};

// NodePorts of Services with this protocol, in the format of PortRules.
using NodePortBits = std::function<const uint64_t*(Protocol)>;

// Counts keys one by one. Memory: one entry for each distinct key.
class SnatCensus {
 public:
    // An address that is listed twice, for two ports, is counted once, by the rules of the first entry.
    SnatCensus(const SnatConfig& config, const NodePortBits& node_ports);

    // Counts a port in use under this key. An address that is no longer configured is ignored.
    void count(const PoolKey& key, L4Port port);
    // Ordered by address, then by protocol: TCP, UDP, SCTP.
    [[nodiscard]] const std::vector<SnatUse>& result() const noexcept { return uses_; }

 private:
    // Keys come from the configuration, not from clients, so the hash needs no secret.
    struct Hash {
        size_t operator()(const PoolKey& key) const noexcept;
    };
    std::vector<SnatUse> uses_;
    std::vector<uint64_t> in_block_;  // PortRules::in_block of each element of uses_
    std::unordered_map<PoolKey, uint64_t, Hash> by_key_;
};

}  // namespace penstock::nat
