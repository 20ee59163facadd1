// The frame by which a link hears that an address has moved here: Linux sends none for an address that is added to an interface. Neighbours
// that know the address take over the new Ethernet address at once, instead of asking when their entry has aged. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/ip.hpp"

namespace penstock::drivers {

// IPv4: an ARP announcement (RFC 5227, 3). IPv6: an unsolicited neighbour advertisement to all nodes with the override flag (RFC 4861,
// 7.2.6). `mac` is the interface's own.
[[nodiscard]] std::vector<uint8_t> announcement_of(const IpAddr& address, const MacAddr& mac);

}  // namespace penstock::drivers
