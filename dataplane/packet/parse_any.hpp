// SPDX-License-Identifier: Apache-2.0
// All rules of parse.hpp, in order, for any frame. parse() falls back to it for packets that are not common.
// Tests compare the two for common packets.
#pragma once

#include "dataplane/packet/parse.hpp"

namespace penstock::packet {

// Source addresses that no host may use on a link (RFC 1122, 3.2.1.3; RFC 4291, 2.5 and 2.7). A host without
// an address sends from the unspecified address, so that one passes towards destinations that every host
// receives: DHCP, IGMP, MLD, duplicate address detection.
[[nodiscard]] bool is_martian(const IpAddr& source, const IpAddr& destination) noexcept;
// Destinations that no Service and no route can have: multicast, broadcast, unspecified, loopback. Linux
// handles such packets.
[[nodiscard]] bool is_for_the_host(const IpAddr& destination) noexcept;

[[nodiscard]] ParseResult parse_any(ByteView frame, Parsed& out, IpChecksum ip_checksum) noexcept;

}  // namespace penstock::packet
