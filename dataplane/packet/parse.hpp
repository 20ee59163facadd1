// SPDX-License-Identifier: Apache-2.0
// The packet parser: frame -> Parsed, or a drop reason. Later stages read and write at the offsets of an
// accepted packet without further checks. A packet that the parser cannot classify is either dropped with a
// reason or punted to Linux.
//
// parse.cpp has the fast path for common packets: whole, TCP or UDP, between ordinary addresses, no options.
// Each condition is one comparison, and nothing is written before the last one. If any condition fails,
// parse_any.cpp, which implements all rules, parses the packet again from the start. A unit test and the
// fuzzer compare the two.
#pragma once

#include <expected>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Whether the IPv4 header checksum must still be verified. NICs report its result per packet; most virtual
// ports never do.
enum class IpChecksum : uint8_t { Verify, KnownGood };

using ParseResult = std::expected<void, DropReason>;

// Maximum number of IPv6 extension headers that are walked. RFC 8200, 4.1 allows each at most once and
// destination options twice, which makes five of the kinds that are walked. Eight leave room for unusual
// senders and keep the cost of a hostile packet near that of an ordinary one.
inline constexpr unsigned kExtensionHeadersMax = 8;

// Fills `out` from `frame`, which starts with its Ethernet header and is at most 65535 bytes long. On a drop
// reason `out` holds the fields read so far and is only usable for diagnostics.
//
// Destinations that no Service and no route can have are for the host and get kind Ip, never Flow. In IPv4:
// multicast, 240.0.0.0/4 including the limited broadcast, 0.0.0.0/8 and 127.0.0.0/8; DHCP's 0.0.0.0 ->
// 255.255.255.255 is one of them. In IPv6: multicast, ::, ::1, and packets from or to a link-local address,
// which must not be forwarded (RFC 4291, 2.5.6). A subnet's broadcast address cannot be recognised here; such
// frames have destination_is_multicast_mac set.
//
// IPv6 extension headers are walked: hop-by-hop and destination options, a routing header with no segments
// left, and the fragment header of a whole packet (RFC 6946). A routing header with segments left gives kind
// Ip, because the destination is not the final one and the transport's checksum covers the final one; type 0
// is dropped (RFC 5095). Other headers (AH, ESP, none) end the walk with kind Ip.
//
// Drop reasons: FrameTooShort, FrameShorterThanIp, BadIpHeader, BadL4Header, MartianSource. Over IPv4 also
// BadIpChecksum and IpOptions (a source route; the pipeline decides about other options). Over IPv6 also
// MappedAddress, BadExtensionHeader, SourceRouted, NoUdpChecksum.
[[nodiscard]] ParseResult parse(ByteView frame, Parsed& out,
                                IpChecksum ip_checksum = IpChecksum::Verify) noexcept;

}  // namespace penstock::packet
