// Packets that have no L4 ports of their own, and what says whose they are: the packet that an ICMP error quotes (RFC 792; RFC 4443, 2.4),
// and the datagram that a fragment is of. An error is translated together with what it quotes, or whoever has sent that would not know it.
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

// What an IP packet is to ICMP, by its type.
enum class IcmpRole : uint8_t {
    None,   // another protocol, or ICMP of the other family
    Cut,    // shorter than its header
    Error,  // about a packet that somebody has sent: unreachable, too big, time exceeded, parameter problem. No other error is passed on:
            // source quench is no more (RFC 6633), and a redirect is for its own link (RFC 1812, 5.2.7.2)
    EchoRequest,
    Other,
};

// `parsed` is of `frame` and of kind Ip.
[[nodiscard]] IcmpRole icmp_role(ByteView frame, const Parsed& parsed) noexcept;

// Whether the ICMP or ICMPv6 message, whole, agrees with its checksum. The message has its header.
[[nodiscard]] bool has_valid_icmp_checksum(ByteView frame, const Parsed& parsed) noexcept;

// A packet inside an error. Offsets are from the frame's first byte.
struct Quote {
    FlowKey key;  // as whoever sent the error saw the packet
    uint16_t ip_offset = 0;
    uint16_t l4_offset = 0;  // whose ports are there; what follows may be cut off anywhere
    uint16_t end = 0;        // of the error
    bool operator==(const Quote&) const = default;
};

// What an IcmpRole::Error quotes. BadIcmp where it is cut off before the ports, which the first eight bytes of payload hold, is no packet
// of the error's family, or a later fragment, about which nobody speaks (RFC 1812, 4.3.2.7) or says more than about the first one;
// IcmpUnknownFlow for protocols without ports, which are no flow's. Neither the error's checksum nor the quote's are looked at.
[[nodiscard]] std::expected<Quote, DropReason> quoted_packet(ByteView frame, const Parsed& parsed) noexcept;

// What a "packet too big" says (RFC 1191, 4; RFC 4443, 3.2).
struct TooBig {
    uint32_t mtu = 0;  // of the link that the quoted packet did not fit
    uint32_t packet_bytes =
        0;  // of the quoted packet when it was whole, as its header tells; 0: it does not (a jumbogram)
    bool operator==(const TooBig&) const = default;
};
// Nothing where the error is another one. `quote` is what quoted_packet() found in it.
[[nodiscard]] std::optional<TooBig> too_big(ByteView frame, const Parsed& parsed,
                                            const Quote& quote) noexcept;

// Writes another MTU into the too-big of IPv4 in `frame`, and the message's checksum.
void set_told_mtu(uint8_t* frame, const Parsed& parsed, uint16_t mtu) noexcept;

// What leaves in place of an error's addresses and of what it quotes. The deltas are those of the quoted packet's way back, from what the
// gateway has sent to what it had been sent.
template <WireAddress Address>
struct ErrorRewrite {
    Address source{};
    Address destination{};
    WireEndpoints<Address> quoted;
    TranslationDeltas quoted_deltas;
};

// Rewrites the error in `frame`, with one hop less to live, which the caller has found to be above 1, and all sums that are there: the
// outer IPv4 header's, the message's, the quoted IPv4 header's, and the quoted transport's where it was not cut off: SCTP's moves by the
// length that the quoted IP header tells, and stays as it is where that tells none (a fragment, extension headers). Type, code and
// everything else, the MTU above all, stay as they came. Sums that were wrong stay wrong.
template <WireAddress Address>
void translate_error(uint8_t* frame, const Parsed& parsed, const Quote& quote,
                     const ErrorRewrite<Address>& rewrite) noexcept;
extern template void translate_error(uint8_t*, const Parsed&, const Quote&,
                                     const ErrorRewrite<Be32>&) noexcept;
extern template void translate_error(uint8_t*, const Parsed&, const Quote&,
                                     const ErrorRewrite<std::array<uint8_t, 16>>&) noexcept;

// The number by which the receiver tells a datagram's fragments from another's (RFC 791, 3.2; RFC 8200, 4.5). `parsed` is of `frame` and of
// kind Fragment.
[[nodiscard]] uint32_t datagram_id(ByteView frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
