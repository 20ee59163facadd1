// Making an IP packet one of the other family, for flows whose client and endpoint are of different ones (ANN-32; RFC 7915): its header is
// exchanged, and what the two families say in different words is said in the other's. What stands behind the transport's ports is not
// touched, as in any translation, and a checksum that was wrong stays wrong, but for UDP without one (below).
//
// The new header is longer or shorter, so the frame begins elsewhere in its buffer: payloads stay where they are.
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

// By how much an IPv6 header is longer than IPv4's without options; what an MTU of one family means in the other (RFC 7915, 4.2 and 5.2).
inline constexpr uint16_t kFamilyHeaderDifference = sizeof(Ipv6Header) - sizeof(Ipv4Header);

// What leaves in place of addresses and ports; both addresses are of the other family than the packet. The protocol is the flow's: a later
// fragment of IPv6 may name any other, which nobody looks at there (RFC 8200, 4.5), but over IPv4 it says of which datagram it is.
struct FamilyRewrite {
    IpAddr source;
    IpAddr destination;
    Be16 source_port;
    Be16 destination_port;
    FoldedDelta l4;  // of exactly this change (translation_deltas in rewrite.hpp); not used for SCTP
    Protocol protocol = Protocol::Tcp;
};

// Bytes of the IP packet that a Flow or Fragment would become: what its next hop's MTU is compared with. 65,535 where it would be longer.
// What `needs_cut` adds below is not counted.
[[nodiscard]] uint16_t bytes_in_other_family(const Parsed& parsed) noexcept;

// Whether the sender lets routers cut the packet for a link that it does not fit: IPv4 without DF. As IPv6 it then has a fragment header
// with the IPv4 packet's id, so that it can be cut (RFC 7915, 4), when `needs_cut` is asked for in to_other_family().
[[nodiscard]] bool may_be_cut(ByteView frame, const Parsed& parsed) noexcept;

using Converted = std::expected<void, DropReason>;

// Converts a packet of a flow: a Flow (whole, or a first fragment that read_first_fragment() has looked at), with its ports and its
// transport's checksum, or a later Fragment, which has neither. One hop less to live; the caller has found `parsed.ttl` above 1. The
// Ethernet type changes, its addresses do not. Nothing stands behind the IP packet afterwards.
//
// IPv4 to IPv6 (RFC 7915, 4.1): type of service becomes the traffic class, the flow label is 0, options are left out, a fragment gets a
// fragment header with its 16 bits of id, and so does a packet for which `needs_cut` is set (one that may_be_cut()). UDP without a checksum
// gets one over the whole datagram (4.5).
// IPv6 to IPv4 (5.1): extension headers are left out; a packet of at most 1,260 bytes as IPv4 may be cut on its way (DF clear, with `id`),
// a longer one may not; a fragment keeps the low 16 bits of its id and DF clear. `id` is the caller's next number for whole packets.
//
// NoUdpChecksum: a first fragment of a UDP datagram without a checksum, which cannot be computed (4.5). BadExtensionHeader: a fragment with
// extension headers behind its fragment header, which its offset counts, or one that ends where no datagram of IPv4 does (5.1.1).
// PacketTooBig: as IPv6 it would be longer than a frame can be. NoBuffer: the buffer has no room in front for the longer header. On an
// error the frame is as it was.
[[nodiscard]] Converted to_other_family(MovableFrame& frame, const Parsed& parsed,
                                        const FamilyRewrite& rewrite, uint16_t id,
                                        bool needs_cut = false) noexcept;

// What leaves in place of an error's addresses and of what it quotes, as ErrorRewrite (quoted.hpp); all addresses are of the other family
// than the error.
struct ErrorFamilyRewrite {
    IpAddr source;
    IpAddr destination;
    IpAddr quoted_source;
    IpAddr quoted_destination;
    Be16 quoted_source_port;
    Be16 quoted_destination_port;
    FoldedDelta quoted_l4;
};

// Converts an ICMP error that quotes a packet of a flow (RFC 7915, 4.2, 4.3, 5.2, 5.3): type, code, MTU and pointer by its tables, the
// quoted packet's header as a packet's, its length fields included, cut to what an error of the new family may be long, without extensions
// (RFC 4884). The message's checksum is computed; the caller has verified the old one. The quote's transport checksum moves by
// `quoted_l4` where it was not cut off. An MTU of 0 from an old router becomes the next plateau below the quoted packet's length (RFC 1191,
// 7). `id` as above: an error is short enough to be cut as IPv4.
//
// IcmpNotTranslated: the tables have no answer for its type and code (precedence violation, a missing option, a pointer to what the other
// family does not have, ...), and RFC 7915 has it dropped silently. NoBuffer as above. On an error the frame is as it was.
[[nodiscard]] Converted error_to_other_family(MovableFrame& frame, const Parsed& parsed, const Quote& quote,
                                              const ErrorFamilyRewrite& rewrite, uint16_t id) noexcept;

}  // namespace penstock::packet
