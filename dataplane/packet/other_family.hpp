// SPDX-License-Identifier: Apache-2.0
// Conversion of IP packets between IPv4 and IPv6, for flows between a client and an endpoint of different
// families (ANN-32; RFC 7915). The IP header is replaced, and its fields are mapped to those of the other
// family. As in any translation, bytes behind the transport's ports are not modified, and a wrong checksum
// stays wrong, except for UDP without a checksum (see below).
//
// The new header is longer or shorter, so the frame starts elsewhere in its buffer and payloads stay in
// place.
#pragma once

#include <cstdint>
#include <expected>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/movable_frame.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

// Difference between an IPv6 header and an IPv4 header without options. An MTU of one family is converted to
// the other by this amount (RFC 7915, 4.2 and 5.2).
inline constexpr uint16_t kFamilyHeaderDifference = sizeof(Ipv6Header) - sizeof(Ipv4Header);

// The new addresses and ports; both addresses are of the other family than the packet. The protocol is the
// flow's. A later fragment of IPv6 may name any other protocol, which receivers ignore there (RFC 8200, 4.5),
// but in IPv4 the protocol is part of the datagram's identity.
struct FamilyRewrite {
    IpAddr source;
    IpAddr destination;
    Be16 source_port;
    Be16 destination_port;
    FoldedDelta l4;  // of exactly this change (translation_deltas in rewrite.hpp); not used for SCTP
    Protocol protocol = Protocol::Tcp;
};

// Size of the IP packet that a Flow or Fragment would become, for comparison with the next hop's MTU; 65,535
// if it would be longer. The fragment header that `needs_cut` adds below is not included.
[[nodiscard]] uint16_t bytes_in_other_family(const Parsed& parsed) noexcept;

// Whether routers may fragment the packet: IPv4 with DF clear. With `needs_cut` in to_other_family() its IPv6
// form has a fragment header with the IPv4 packet's id, so that it can be fragmented (RFC 7915, 4).
[[nodiscard]] bool may_be_cut(ByteView frame, const Parsed& parsed) noexcept;

using Converted = std::expected<void, DropReason>;

// Converts a packet of a flow. A Flow (whole, or a first fragment that read_first_fragment() has examined)
// has ports and a transport checksum; a later Fragment has neither. TTL or hop limit is decremented; the
// caller has checked that `parsed.ttl` is above 1. The Ethernet type changes, the Ethernet addresses do not.
// Bytes behind the IP packet (padding) are removed.
//
// IPv4 to IPv6 (RFC 7915, 4.1): type of service becomes the traffic class, the flow label is 0, options are
// removed. A fragment gets a fragment header with its 16 bits of id, and so does a packet with `needs_cut`
// set (allowed only if may_be_cut()). UDP without a checksum gets one over the whole datagram (4.5).
// IPv6 to IPv4 (5.1): extension headers are removed. A packet of at most 1,260 bytes as IPv4 may be
// fragmented on its path (DF clear, with `id`); a longer one may not. A fragment keeps the low 16 bits of its
// id and has DF clear. `id` is the caller's next number for whole packets.
//
// Errors; on each of them the frame is unchanged:
//   NoUdpChecksum       a first fragment of a UDP datagram without a checksum: it cannot be computed (4.5)
//   BadExtensionHeader  a fragment with extension headers behind its fragment header, which its offset
//                       includes, or one that ends beyond the longest IPv4 datagram (5.1.1)
//   PacketTooBig        as IPv6 it would exceed the maximum frame length
//   NoBuffer            not enough headroom for the longer header
[[nodiscard]] Converted to_other_family(MovableFrame& frame, const Parsed& parsed,
                                        const FamilyRewrite& rewrite, uint16_t id,
                                        bool needs_cut = false) noexcept;

// The new addresses of an ICMP error and of the packet it quotes, as in ErrorRewrite (quoted.hpp); all
// addresses are of the other family than the error.
struct ErrorFamilyRewrite {
    IpAddr source;
    IpAddr destination;
    IpAddr quoted_source;
    IpAddr quoted_destination;
    Be16 quoted_source_port;
    Be16 quoted_destination_port;
    FoldedDelta quoted_l4;
};

// Converts an ICMP error that quotes a packet of a flow (RFC 7915, 4.2, 4.3, 5.2, 5.3). Type, code, MTU and
// pointer follow its tables. The quoted packet's header, including its length fields, is converted as a
// packet's header is. The result is truncated to the maximum size of an error of the new family, without
// extensions (RFC 4884). The message checksum is computed anew; the caller has verified the old one. The
// quote's transport checksum is updated by `quoted_l4` if it was not cut off. An MTU of 0 from an old router
// becomes the next plateau below the quoted packet's length (RFC 1191, 7). `id` as above: an error is short
// enough to be fragmented as IPv4.
//
// IcmpNotTranslated: RFC 7915 has no equivalent for the type and code (precedence violation, a missing
// option, a pointer to a field that the other family does not have, ...) and requires a silent drop. NoBuffer
// as above. On an error the frame is unchanged.
[[nodiscard]] Converted error_to_other_family(MovableFrame& frame, const Parsed& parsed, const Quote& quote,
                                              const ErrorFamilyRewrite& rewrite, uint16_t id) noexcept;

}  // namespace penstock::packet
