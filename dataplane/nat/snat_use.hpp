// How full the SNAT addresses are, counted from the connections that hold a port. For metrics: control threads only.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "dataplane/nat/port_rules.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::nat {

// One SNAT address and protocol, over all workers. A port that is taken towards one endpoint (address and port) is free towards the next,
// so an address can have more ports in use than it has, and it is exhausted towards an endpoint that takes all of `ports`.
struct SnatUse {
    IpAddr address;
    Protocol protocol = Protocol::Tcp;
    uint64_t ports = 0;             // that may be taken towards each endpoint
    uint64_t in_use = 0;            // towards all endpoints
    uint64_t busiest_endpoint = 0;  // of these, towards the endpoint with the most
    bool operator==(const SnatUse&) const = default;
};

// NodePorts of Services with that protocol, as PortRules wants them.
using NodePortBits = std::function<const uint64_t*(Protocol)>;

// Counts keys one by one. Memory: one entry for each key met.
class SnatCensus {
 public:
    // An address that is listed twice, for two ports, is counted once, by the first entry's rules.
    SnatCensus(const SnatConfig& config, const NodePortBits& node_ports);

    // A port is taken under this key. An address that is no longer configured is not counted.
    void count(const PoolKey& key);
    // In the order of the addresses, then of the protocols: TCP, UDP, SCTP.
    [[nodiscard]] const std::vector<SnatUse>& result() const noexcept { return uses_; }

 private:
    // Keys come from the configuration, not from clients: no secret is needed.
    struct Hash {
        size_t operator()(const PoolKey& key) const noexcept;
    };
    std::vector<SnatUse> uses_;
    std::unordered_map<PoolKey, uint64_t, Hash> by_key_;
};

}  // namespace penstock::nat
