// What an operator decides about packets that are not simply a flow's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/limits.hpp"

namespace penstock::config {

// By which NicPorts the first packet of a flow may arrive, judged by the route to its source (RFC 3704).
enum class ReversePath : uint8_t {
    Feasible,  // inside sources (endpoints, Pod CIDRs, other ports' directly connected subnets): by a port that the route names
    Strict,    // by the port of the route, or of one of its equal-cost next hops
    Loose,     // by any port, if there is a route
    Off,       // by any port
};
[[nodiscard]] constexpr const char* to_string(ReversePath check) noexcept {
    constexpr std::array<const char*, 4> kNames{"feasible", "strict", "loose", "off"};
    return kNames[static_cast<size_t>(check)];
}

struct PacketPolicy {
    bool answers_vip_echo =
        true;  // echo requests to an address that only Services have (ICMP-007); else they are dropped
    bool passes_ip_options = true;  // IPv4 options other than source routes, which are never passed on
    bool aborts_sctp = false;  // an INIT that is refused gets an ABORT instead of port unreachable (REJ-004)
    // A TCP segment of no connection, neither its first nor its last, is taken for the middle of one that another gateway has opened, where
    // that gateway's choice of the backend can be made again (REJ-005); else it gets a RST.
    bool picks_up_midstream = false;
    // The largest MSS that a SYN may offer when it comes or leaves by a NicPort, in bytes; 0: whatever it offers. Both, because what it
    // offers is sent through the port in either case: by its receiver, and by the sender of the SYN that answers it.
    std::array<uint16_t, limits::kNicPortsMax> mss_max{};
    bool lowers_mss = false;  // some port has one
    // The least MTU that a client's "too big" may tell an endpoint that sees a SNAT address: what the endpoint believes of that path it
    // believes of all clients (ICMP-003). IPv6's own minimum.
    uint16_t min_path_mtu = 1'280;
    std::array<ReversePath, limits::kNicPortsMax> reverse_path{};  // by the port where the packet arrives
};

}  // namespace penstock::config
