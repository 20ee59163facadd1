// SPDX-License-Identifier: Apache-2.0
// Classes of packets for Linux. Each class has its own rings and its own share of the twin I/O thread, so
// that a flood of one class does not affect the others. Datagrams to the gateway's own address do not
// displace ARP or the hellos of a routing daemon.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// In the order of service.
enum class PuntClass : uint8_t {
    // Only a neighbour on the link can have sent it: ARP and other frames without IP, ND, packets with hop
    // limit 255.
    Link,
    // Control protocols that cross routers and can therefore be spoofed by any host: BGP, OSPF, multihop BFD,
    // DHCP.
    Routing,
    Other,  // everything else
};
inline constexpr size_t kPuntClasses = 3;

}  // namespace penstock
