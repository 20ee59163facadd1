// SPDX-License-Identifier: Apache-2.0
// Decides which TCP connections a gRPC server accepts. At the limit, new connections are refused instead of
// closing old ones: most open connections belong to clients with a certificate, and closing the oldest would
// end the state stream. Pure: no socket, no clock, no thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "control/rpc/limits.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::rpc {

struct ConnectionLimits {
    uint32_t all_max = kConnectionsMax;
    uint32_t per_source_max = kConnectionsPerSourceMax;
    uint32_t loopback_reserve = kLoopbackReserve;  // part of all_max reserved for 127.0.0.0/8 and ::1
    uint32_t loopback_max = kLoopbackMax;
};

class ConnectionLimit {
 public:
    // The limit that refused a connection.
    enum class Rule : uint8_t { PerSource, All };

    explicit ConnectionLimit(ConnectionLimits limits) : limits_(limits) {}

    // Counts a connection from `source`; release() must be called once for each. If a rule is returned, the
    // connection is refused and not counted. A source is an IPv4 address or an IPv6 /64.
    [[nodiscard]] std::optional<Rule> admit(const IpAddr& source);
    void release(const IpAddr& source);

    [[nodiscard]] uint32_t size() const noexcept { return loopback_ + remote_; }

 private:
    const ConnectionLimits limits_;
    std::map<Prefix, uint32_t> by_source_;
    uint32_t loopback_ = 0;
    uint32_t remote_ = 0;
};

}  // namespace penstock::rpc
