// SPDX-License-Identifier: Apache-2.0
// The frame that announces on a link that an address has moved here. Linux does not send one for an address
// that is added to an interface. Neighbours with an entry for the address adopt the new Ethernet address at
// once, and not only when their entry expires. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/ip.hpp"

namespace penstock::drivers {

// IPv4: an ARP announcement (RFC 5227, 3). IPv6: an unsolicited neighbour advertisement to all nodes with the
// override flag (RFC 4861, 7.2.6). `mac` is the interface's own.
[[nodiscard]] std::vector<uint8_t> announcement_of(const IpAddr& address, const MacAddr& mac);

}  // namespace penstock::drivers
