// SPDX-License-Identifier: Apache-2.0
// The tables of RFC 7915, 4.2 and 5.2, and the conversion of ICMP errors by them.
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/common_header.hpp"
#include "dataplane/packet/icmp.hpp"
#include "dataplane/packet/other_family.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/sctp.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

using Told = std::optional<IcmpError>;

// RFC 792, and RFC 1191, 4.
constexpr uint8_t kUnreachable = 3, kTimeExceeded = 11, kParameterProblem = 12;
constexpr uint8_t kTooBigCode = 4;
// RFC 4443, 3.
constexpr uint8_t kUnreachable6 = 1, kTooBig6 = 2, kTimeExceeded6 = 3, kParameterProblem6 = 4;

// A pointer to a field that the other family's header does not have.
constexpr uint8_t kNowhere = 0xff;

// Indexed by the code of an IPv4 unreachable. Too big carries an MTU and is converted separately.
constexpr std::array<Told, 16> kUnreachableInIcmpv6 = [] {
    constexpr IcmpError kNoRoute{kUnreachable6, 0}, kProhibited{kUnreachable6, 1}, kPort{kUnreachable6, 4};
    constexpr IcmpError kNextHeader{kParameterProblem6, 1, offsetof(Ipv6Header, next_header)};
    return std::array<Told, 16>{
        kNoRoute,      // net unreachable
        kNoRoute,      // host unreachable
        kNextHeader,   // protocol unreachable
        kPort,         // port unreachable
        std::nullopt,  // too big
        kNoRoute,      // source route failed
        kNoRoute,      // net unknown
        kNoRoute,      // host unknown
        kNoRoute,      // source host isolated
        kProhibited,   // net prohibited
        kProhibited,   // host prohibited
        kNoRoute,      // net unreachable for this type of service
        kNoRoute,      // host unreachable for this type of service
        kProhibited,   // communication prohibited
        std::nullopt,  // host precedence violation
        kProhibited,   // precedence cutoff
    };
}();

// Indexed by the code of an IPv6 unreachable: no route, prohibited, beyond the source's scope, address
// unreachable, port unreachable.
constexpr std::array<IcmpError, 5> kUnreachableInIcmpv4{
    {{kUnreachable, 1}, {kUnreachable, 10}, {kUnreachable, 1}, {kUnreachable, 1}, {kUnreachable, 3}}};

// Figure 3, indexed by the pointer into an IPv4 header.
constexpr std::array<uint8_t, sizeof(Ipv4Header)> kPointerInIpv6 = {
    0,        1,        4,        4,                          // version, type of service, total length
    kNowhere, kNowhere, kNowhere, kNowhere,                   // identification, flags and offset
    7,        6,        kNowhere, kNowhere,                   // time to live, protocol, checksum
    8,        8,        8,        8,        24, 24, 24, 24};  // source, destination

// Figure 6, indexed by the pointer into an IPv6 header.
constexpr std::array<uint8_t, sizeof(Ipv6Header)> kPointerInIpv4 = [] {
    std::array<uint8_t, sizeof(Ipv6Header)> pointers{0, 1, kNowhere, kNowhere,
                                                     2, 2, 9,        8};  // up to the hop limit
    std::fill_n(pointers.begin() + offsetof(Ipv6Header, source), 16, uint8_t{12});
    std::fill_n(pointers.begin() + offsetof(Ipv6Header, destination), 16, uint8_t{16});
    return pointers;
}();

// RFC 1191, 7: common MTUs of its time.
constexpr std::array<uint16_t, 11> kPlateaus = {65'535, 32'000, 17'914, 8'166, 4'352,      2'002,
                                                1'492,  1'006,  508,    296,   kIpv4MtuMin};

uint32_t plateau_below(size_t packet_bytes) noexcept {
    const auto below =
        std::ranges::find_if(kPlateaus, [&](uint16_t plateau) { return plateau < packet_bytes; });
    return below == kPlateaus.end() ? kIpv4MtuMin : *below;
}

// Converts an MTU to ICMPv6. The MTUs of the next hops need not be considered: the quoted packet did not
// exceed them, and a valid report carries a smaller MTU.
uint32_t mtu_in_icmpv6(uint16_t told, size_t packet_bytes) noexcept {
    const uint32_t mtu = told != 0 ? told : plateau_below(packet_bytes);
    return std::max<uint32_t>(mtu + kFamilyHeaderDifference, kIpv6MtuMin);
}

// The opposite direction. A fragment header that the packet has over IPv6 is not needed over IPv4, so its
// size is subtracted too.
uint32_t mtu_in_icmpv4(uint32_t told, bool is_fragment) noexcept {
    const uint32_t less = kFamilyHeaderDifference + (is_fragment ? uint32_t{sizeof(Ipv6ExtensionHeader)} : 0);
    return std::clamp<uint32_t>(told - std::min(told, less), kIpv4MtuMin, UINT16_MAX);
}

Told in_icmpv6(const IcmpHeader& icmp, size_t packet_bytes) noexcept {
    const uint32_t rest = icmp.rest.host();
    switch (icmp.type) {
        case kUnreachable:
            if (icmp.code == kTooBigCode) {
                return IcmpError{kTooBig6, 0, mtu_in_icmpv6(static_cast<uint16_t>(rest), packet_bytes)};
            }
            return icmp.code < kUnreachableInIcmpv6.size() ? kUnreachableInIcmpv6[icmp.code] : std::nullopt;
        case kTimeExceeded:
            return IcmpError{kTimeExceeded6, icmp.code};
        case kParameterProblem: {
            // 0: the pointer is valid; 2: bad length. 1 is a missing option, which IPv6 does not have.
            const uint32_t pointer = rest >> 24;
            if ((icmp.code != 0 && icmp.code != 2) || pointer >= kPointerInIpv6.size() ||
                kPointerInIpv6[pointer] == kNowhere) {
                return std::nullopt;
            }
            return IcmpError{kParameterProblem6, 0, kPointerInIpv6[pointer]};
        }
        default:
            return std::nullopt;
    }
}

Told in_icmpv4(const IcmpHeader& icmp, bool is_fragment) noexcept {
    const uint32_t rest = icmp.rest.host();
    switch (icmp.type) {
        case kUnreachable6:
            return icmp.code < kUnreachableInIcmpv4.size() ? Told(kUnreachableInIcmpv4[icmp.code])
                                                           : std::nullopt;
        case kTooBig6:
            return IcmpError{kUnreachable, kTooBigCode, mtu_in_icmpv4(rest, is_fragment)};
        case kTimeExceeded6:
            return IcmpError{kTimeExceeded, icmp.code};
        case kParameterProblem6:
            if (icmp.code == 1) {
                return IcmpError{kUnreachable, 2};  // unknown next header -> protocol unreachable
            }
            if (icmp.code != 0 || rest >= kPointerInIpv4.size() || kPointerInIpv4[rest] == kNowhere) {
                return std::nullopt;
            }
            return IcmpError{kParameterProblem, 0, uint32_t{kPointerInIpv4[rest]} << 24};
        default:
            return std::nullopt;
    }
}

// End of the quoted packet, where extensions may begin (RFC 4884, 3 and 4). The header of some types has its
// length, in words of 4 or 8 bytes. If that length ends before the ports, the field has another meaning and
// is ignored.
size_t quote_end(IpFamily family, const IcmpHeader& icmp, const Quote& quote) noexcept {
    const uint32_t rest = icmp.rest.host();
    size_t bytes = 0;
    if (family == IpFamily::V4) {
        bytes = size_t{(rest >> 16) & 0xff} * 4;
    } else if (icmp.type == kUnreachable6 || icmp.type == kTimeExceeded6) {
        bytes = size_t{rest >> 24} * 8;
    }
    constexpr size_t kPortsBytes = 4;
    const size_t end = quote.ip_offset + bytes;
    return end < quote.l4_offset + kPortsBytes ? quote.end : std::min<size_t>(end, quote.end);
}

// Translates the part of the transport header that the quote contains: the ports, and the checksum if it is
// present.
void translate_quoted_transport(std::span<uint8_t> l4, const CommonHeader& quoted,
                                const ErrorFamilyRewrite& rewrite) noexcept {
    const auto ports_before = load<uint32_t>(l4.data());
    store(l4.data(), rewrite.quoted_source_port);
    store(l4.data() + sizeof(Be16), rewrite.quoted_destination_port);
    if (quoted.protocol == static_cast<uint8_t>(Protocol::Sctp)) {
        // The update of the checksum needs the whole packet's length, which a fragment's header does not
        // contain.
        constexpr size_t kSumAt = offsetof(SctpHeader, checksum);
        const size_t whole_bytes = quoted.fragment ? 0 : quoted.payload_bytes;
        if (whole_bytes < sizeof(SctpHeader) || l4.size() < kSumAt + sizeof(uint32_t)) {
            return;
        }
        if (const auto sent = load<uint32_t>(l4.data() + kSumAt); sent != 0) {
            store(l4.data() + kSumAt,
                  sctp_checksum_after(sent, ports_before, load<uint32_t>(l4.data()), whole_bytes));
        }
        return;
    }
    const bool is_udp = quoted.protocol == static_cast<uint8_t>(Protocol::Udp);
    const size_t sum_at = is_udp ? offsetof(UdpHeader, checksum) : offsetof(TcpHeader, checksum);
    if (l4.size() >= sum_at + sizeof(Be16)) {
        const auto sent = load<Be16>(l4.data() + sum_at);
        store(l4.data() + sum_at,
              is_udp ? udp_checksum_after(sent, rewrite.quoted_l4) : rewrite.quoted_l4.applied_to(sent));
    }
}

}  // namespace

Converted error_to_other_family(MovableFrame& frame, const Parsed& parsed, const Quote& quote,
                                const ErrorFamilyRewrite& rewrite, uint16_t id) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Ip && parsed.ttl > 1 &&
                    rewrite.source.family() != parsed.family);
    const bool becomes_v6 = parsed.family == IpFamily::V4;
    const IpFamily family = becomes_v6 ? IpFamily::V6 : IpFamily::V4;
    const auto icmp = load<IcmpHeader>(frame.data + parsed.l4_offset);
    const size_t quoted_before = size_t{quote.l4_offset} - quote.ip_offset;
    const CommonHeader quoted = read_header(parsed.family, frame.data + quote.ip_offset, quoted_before,
                                            static_cast<uint8_t>(quote.key.protocol));
    const Told told = becomes_v6 ? in_icmpv6(icmp, quoted_before + quoted.payload_bytes)
                                 : in_icmpv4(icmp, quoted.fragment.has_value());
    if (!told) {
        return std::unexpected(DropReason::IcmpNotTranslated);
    }

    CommonHeader outer =
        read_header(parsed.family, frame.data + parsed.l3_offset, size_t{parsed.l4_offset} - parsed.l3_offset,
                    becomes_v6 ? kProtoIcmpv6 : kProtoIcmp);
    outer.ttl = static_cast<uint8_t>(parsed.ttl - 1);
    const size_t outer_bytes = header_bytes_in(family, outer);
    const size_t quoted_bytes = header_bytes_in(family, quoted);
    const size_t headers_bytes = outer_bytes + sizeof(IcmpHeader) + quoted_bytes;
    const size_t l4_bytes = std::min(quote_end(parsed.family, icmp, quote) - quote.l4_offset,
                                     icmp_error_bytes_max(family) - headers_bytes);
    uint8_t* const l4_at = frame.data + quote.l4_offset;
    if (const Converted replaced = replace_headers(frame, quote.l4_offset, family, headers_bytes, l4_bytes);
        !replaced) {
        return replaced;
    }

    translate_quoted_transport({l4_at, l4_bytes}, quoted, rewrite);
    uint8_t* const ip_at = frame.data + sizeof(EthernetHeader);
    uint8_t* const icmp_at = ip_at + outer_bytes;
    outer.payload_bytes = static_cast<uint16_t>(sizeof(IcmpHeader) + quoted_bytes + l4_bytes);
    store_header(ip_at, outer, rewrite.source, rewrite.destination, id);
    store_header(icmp_at + sizeof(IcmpHeader), quoted, rewrite.quoted_source, rewrite.quoted_destination, 0);
    IcmpHeader message{.type = told->type, .code = told->code, .rest = Be32::from_host(told->rest)};
    store(icmp_at, message);
    ChecksumSum sum;
    if (becomes_v6) {
        sum.add_pseudo_header(rewrite.source, rewrite.destination, kProtoIcmpv6, outer.payload_bytes);
    }
    message.checksum = sum.add(ByteView(icmp_at, outer.payload_bytes)).checksum();
    store(icmp_at, message);
    return {};
}

}  // namespace penstock::packet
