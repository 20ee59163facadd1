// All the rules of parse.hpp, in order, for any frame. parse() comes here with what is not common; tests compare the two where it is.
#pragma once

#include "dataplane/packet/parse.hpp"

namespace penstock::packet {

// Sources that no host may use on a wire (RFC 1122, 3.2.1.3; RFC 4291, 2.5 and 2.7). The unspecified one is how a host sends that has no
// address yet, so it passes towards destinations that every host receives: DHCP, IGMP, MLD, duplicate address detection.
[[nodiscard]] bool is_martian(const IpAddr& source, const IpAddr& destination) noexcept;
// Destinations that no Service and no route can have: groups, broadcast, unspecified, loopback. Linux handles such packets.
[[nodiscard]] bool is_for_the_host(const IpAddr& destination) noexcept;

[[nodiscard]] ParseResult parse_any(ByteView frame, Parsed& out, IpChecksum ip_checksum) noexcept;

}  // namespace penstock::packet
