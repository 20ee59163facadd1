// SPDX-License-Identifier: Apache-2.0
// Settings for packets that need more than the forwarding of a flow: exceptions, options, checks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/limits.hpp"

namespace penstock::config {

// The NicPorts on which the first packet of a flow may arrive, by the route to its source (RFC 3704).
enum class ReversePath : uint8_t {
    // Any port, if there is a route; inside sources (endpoints, Pod CIDRs, directly connected subnets of
    // other ports) only a port of a route to them, whatever its metric.
    Feasible,
    Strict,  // only a port of the route, or of one of its equal-cost next hops
    Loose,   // any port, if there is a route
    Off,     // any port
};
[[nodiscard]] constexpr const char* to_string(ReversePath check) noexcept {
    constexpr std::array<const char*, 4> kNames{"feasible", "strict", "loose", "off"};
    return kNames[static_cast<size_t>(check)];
}

struct PacketPolicy {
    // Echo requests to an address that only Services use are answered (ICMP-007). If false, they are dropped.
    bool answers_vip_echo = true;
    // IPv4 options are forwarded, except source routes, which are never forwarded.
    bool passes_ip_options = true;
    // A refused INIT is answered with ABORT instead of port unreachable (REJ-004).
    bool aborts_sctp = false;
    // Whether a TCP segment of an unknown connection, without SYN, FIN and RST, may belong to a connection
    // that another gateway opened (REJ-005). It is accepted if that gateway's choice of the backend can be
    // repeated, and answered with RST otherwise.
    bool picks_up_midstream = false;
    // The largest MSS, in bytes, that a SYN may offer when it arrives or leaves through a NicPort; 0: no
    // limit. It applies in both directions, because segments of the offered size cross the port in either
    // case. They are sent by the receiver of the SYN, or by the sender of the SYN that answers it.
    std::array<uint16_t, limits::kNicPortsMax> mss_max{};
    bool lowers_mss = false;  // at least one port has a limit
    // The smallest MTU that a client's "too big" may report to an endpoint that sees a SNAT address. The
    // endpoint applies the path MTU of that address to all clients (ICMP-003). The default is the minimum of
    // IPv6.
    uint16_t min_path_mtu = 1'280;
    std::array<ReversePath, limits::kNicPortsMax> reverse_path{};  // by the port of arrival
};

}  // namespace penstock::config
