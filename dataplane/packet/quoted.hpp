// SPDX-License-Identifier: Apache-2.0
// Packets without L4 ports of their own, and the data that identifies their flow: the packet that an ICMP
// error quotes (RFC 792; RFC 4443, 2.4), and the datagram of a fragment. An error is translated together with
// its quote; otherwise the receiver could not match the quote to the packet it sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/rewrite.hpp"

namespace penstock::packet {

// Role of an IP packet in ICMP, by its type.
enum class IcmpRole : uint8_t {
    None,  // another protocol, or ICMP of the other family
    Cut,   // shorter than its header
    // About a sent packet: unreachable, too big, time exceeded, parameter problem. No other error is
    // forwarded: source quench is deprecated (RFC 6633), and a redirect is valid only on its own link (RFC
    // 1812, 5.2.7.2).
    Error,
    EchoRequest,
    Other,
};

// `parsed` is of `frame` and of kind Ip.
[[nodiscard]] IcmpRole icmp_role(ByteView frame, const Parsed& parsed) noexcept;

// Whether the checksum of the whole ICMP or ICMPv6 message is valid. The message has its header.
[[nodiscard]] bool has_valid_icmp_checksum(ByteView frame, const Parsed& parsed) noexcept;

// The packet inside an error. Offsets are from the frame's first byte.
struct Quote {
    FlowKey key;  // as the sender of the error received the packet
    uint16_t ip_offset = 0;
    uint16_t l4_offset = 0;  // the ports are there; the rest may be truncated anywhere
    uint16_t end = 0;        // of the error
    bool operator==(const Quote&) const = default;
};

// The packet that an IcmpRole::Error quotes. The checksums of the error and of the quote are not checked.
// Errors:
//   BadIcmp          the quote is truncated before the ports (which are in the first eight bytes of payload),
//                    is not a packet of the error's family, or is a later fragment: no errors are sent about
//                    those (RFC 1812, 4.3.2.7), or none with more information than about the first one
//   IcmpUnknownFlow  the protocol has no ports, so it is no flow
[[nodiscard]] std::expected<Quote, DropReason> quoted_packet(ByteView frame, const Parsed& parsed) noexcept;

// The contents of a "packet too big" (RFC 1191, 4; RFC 4443, 3.2).
struct TooBig {
    uint32_t mtu = 0;  // of the link that the quoted packet exceeded
    // Of the quoted packet before it was truncated, from its header; 0 if the header has no length (a
    // jumbogram).
    uint32_t packet_bytes = 0;
    bool operator==(const TooBig&) const = default;
};
// Empty if the error is of another type. `quote` is the result of quoted_packet() for this error.
[[nodiscard]] std::optional<TooBig> too_big(ByteView frame, const Parsed& parsed,
                                            const Quote& quote) noexcept;

// Sets the MTU of the IPv4 too-big error in `frame`, and updates the message's checksum.
void set_told_mtu(uint8_t* frame, const Parsed& parsed, uint16_t mtu) noexcept;

// The new addresses of an error and of the packet it quotes. The deltas are those of the quoted packet's
// reverse translation: from the packet that the gateway sent to the packet that it received.
template <WireAddress Address>
struct ErrorRewrite {
    Address source{};
    Address destination{};
    WireEndpoints<Address> quoted;
    TranslationDeltas quoted_deltas;
};

// Rewrites the error in `frame`, decrements TTL or hop limit (the caller has checked that it is above 1), and
// updates all checksums that are present: the outer IPv4 header's, the message's, the quoted IPv4 header's,
// and the quoted transport's if it was not cut off. SCTP's checksum is updated using the length in the quoted
// IP header, and is unchanged if that gives no length (a fragment, extension headers). Type, code and all
// other fields, in particular the MTU, are unchanged. Wrong checksums stay wrong.
template <WireAddress Address>
void translate_error(uint8_t* frame, const Parsed& parsed, const Quote& quote,
                     const ErrorRewrite<Address>& rewrite) noexcept;
extern template void translate_error(uint8_t*, const Parsed&, const Quote&,
                                     const ErrorRewrite<Be32>&) noexcept;
extern template void translate_error(uint8_t*, const Parsed&, const Quote&,
                                     const ErrorRewrite<std::array<uint8_t, 16>>&) noexcept;

// The identification by which the receiver distinguishes datagrams' fragments (RFC 791, 3.2; RFC 8200, 4.5).
// `parsed` is of `frame` and of kind Fragment.
[[nodiscard]] uint32_t datagram_id(ByteView frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
