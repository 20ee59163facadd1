// Classes of packets for Linux. Each class has rings and a share of the twin I/O thread of its own, so that a flood of one class leaves the
// others alone: datagrams to the gateway's own address do not displace ARP or a routing daemon's hellos.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// In the order of service.
enum class PuntClass : uint8_t {
    Link,  // only a neighbour on the link can have sent it: ARP and other frames without IP, ND, and what arrives with hop limit 255
    Routing,  // control protocols that cross routers, which anybody can therefore imitate: BGP, OSPF, multihop BFD, DHCP
    Other,  // everything else
};
inline constexpr size_t kPuntClasses = 3;

}  // namespace penstock
