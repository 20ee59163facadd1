// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/fragment.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

constexpr uint32_t kDatagramBytesMax = 65'535;  // IPv4: including its header. IPv6: excluding its header

// Bytes of the datagram in this fragment.
size_t bytes_in(const Parsed& parsed) noexcept {
    return size_t{parsed.l3_offset} + parsed.l3_length - parsed.l4_offset;
}

ParseResult read_ports(ByteView frame, Parsed& parsed) noexcept {
    static_assert(offsetof(TcpHeader, destination_port) == offsetof(UdpHeader, destination_port));
    const uint8_t* const l4_at = frame.data() + parsed.l4_offset;
    parsed.key.source_port = load<Be16>(l4_at).host();
    parsed.key.destination_port = load<Be16>(l4_at + offsetof(TcpHeader, destination_port)).host();
    if (parsed.key.source_port == 0 || parsed.key.destination_port == 0) {
        return drop(DropReason::BadL4Header);
    }
    parsed.kind = PacketKind::Flow;
    return {};
}

ParseResult read_tcp(ByteView frame, Parsed& parsed) noexcept {
    if (bytes_in(parsed) < sizeof(TcpHeader)) {
        return drop(DropReason::FragmentTooSmall);
    }
    const auto tcp = load<TcpHeader>(frame.data() + parsed.l4_offset);
    if (tcp.header_bytes() < sizeof(TcpHeader)) {
        return drop(DropReason::BadL4Header);
    }
    if (tcp.header_bytes() > bytes_in(parsed)) {
        return drop(DropReason::FragmentTooSmall);
    }
    parsed.tcp_flags.bits = tcp.flags;
    parsed.payload_offset = static_cast<uint16_t>(parsed.l4_offset + tcp.header_bytes());
    return read_ports(frame, parsed);
}

// The length field cannot be compared with the datagram's length, which is unknown until its last fragment
// arrives.
ParseResult read_udp(ByteView frame, Parsed& parsed) noexcept {
    if (bytes_in(parsed) < sizeof(UdpHeader)) {
        return drop(DropReason::FragmentTooSmall);
    }
    const auto udp = load<UdpHeader>(frame.data() + parsed.l4_offset);
    if (udp.length.host() < sizeof(UdpHeader)) {
        return drop(DropReason::BadL4Header);
    }
    if (parsed.family == IpFamily::V6 && udp.checksum.raw() == 0) {
        return drop(DropReason::NoUdpChecksum);
    }
    parsed.payload_offset = static_cast<uint16_t>(parsed.l4_offset + sizeof(UdpHeader));
    return read_ports(frame, parsed);
}

bool is_extension(uint8_t header) noexcept {
    return header == Ipv6ExtensionHeader::kHopByHop || header == Ipv6ExtensionHeader::kRouting ||
           header == Ipv6ExtensionHeader::kFragment || header == Ipv6ExtensionHeader::kDestinationOptions;
}

// Destination options may follow the fragment header (RFC 8200, 4.1). The other headers that are walked
// elsewhere are for routers and may only precede it.
ParseResult walk_to_transport(ByteView frame, Parsed& parsed) noexcept {
    for (unsigned walked = 0; is_extension(parsed.ip_protocol); ++walked) {
        if (walked == kExtensionHeadersMax ||
            parsed.ip_protocol != Ipv6ExtensionHeader::kDestinationOptions) {
            return drop(DropReason::BadExtensionHeader);
        }
        if (bytes_in(parsed) < sizeof(Ipv6ExtensionHeader)) {
            return drop(DropReason::FragmentTooSmall);
        }
        const auto header = load<Ipv6ExtensionHeader>(frame.data() + parsed.l4_offset);
        if (header.bytes() > bytes_in(parsed)) {
            return drop(DropReason::FragmentTooSmall);
        }
        parsed.l4_offset = static_cast<uint16_t>(parsed.l4_offset + header.bytes());
        parsed.payload_offset = parsed.l4_offset;
        parsed.ip_protocol = header.next_header;
        parsed.key.protocol = static_cast<Protocol>(header.next_header);
    }
    return {};
}

}  // namespace

std::expected<FragmentRange, DropReason> fragment_range(ByteView frame, const Parsed& parsed) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Fragment &&
                    size_t{parsed.l3_offset} + parsed.l3_length <= frame.size());
    FragmentRange range;
    uint32_t in_front = 0;  // bytes in front of the payload that count towards the longest datagram
    if (parsed.family == IpFamily::V4) {
        const uint16_t field =
            load<Be16>(frame.data() + parsed.l3_offset + offsetof(Ipv4Header, flags_and_offset)).host();
        range.begin = static_cast<uint16_t>((field & Ipv4Header::kOffsetMask) * 8);
        range.is_last = (field & Ipv4Header::kMoreFragments) == 0;
        in_front = uint32_t{parsed.l4_offset} - parsed.l3_offset;
    } else {
        // The parser stopped behind the fragment header.
        const auto header =
            load<Ipv6ExtensionHeader>(frame.data() + parsed.l4_offset - sizeof(Ipv6ExtensionHeader));
        range.begin = header.rest.host() & Ipv6ExtensionHeader::kOffsetMask;
        range.is_last = (header.rest.host() & Ipv6ExtensionHeader::kMoreFragments) == 0;
        in_front = static_cast<uint32_t>(parsed.l4_offset - parsed.l3_offset - sizeof(Ipv6Header) -
                                         sizeof(Ipv6ExtensionHeader));
    }
    const size_t bytes = bytes_in(parsed);
    const size_t end = range.begin + bytes;
    if (bytes == 0 || in_front + end > kDatagramBytesMax || (!range.is_last && bytes % 8 != 0)) {
        return drop(DropReason::BadFragment);
    }
    if (!range.is_first() && range.begin < sizeof(TcpHeader) &&
        parsed.ip_protocol == static_cast<uint8_t>(Protocol::Tcp)) {
        return drop(DropReason::FragmentTooSmall);
    }
    range.end = static_cast<uint16_t>(end);
    return range;
}

ParseResult read_first_fragment(ByteView frame, Parsed& parsed) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Fragment &&
                    size_t{parsed.l3_offset} + parsed.l3_length <= frame.size());
    if (parsed.family == IpFamily::V6) {
        if (const ParseResult walked = walk_to_transport(frame, parsed); !walked) {
            return walked;
        }
    }
    if (parsed.ip_protocol == static_cast<uint8_t>(Protocol::Tcp)) {
        return read_tcp(frame, parsed);
    }
    return parsed.ip_protocol == static_cast<uint8_t>(Protocol::Udp) ? read_udp(frame, parsed)
                                                                     : ParseResult();
}

void set_datagram_id(uint8_t* frame, uint32_t id) noexcept {
    uint8_t* const ip_at = frame + sizeof(EthernetHeader);
    if (ether_type(frame) == kEtherTypeIpv4) {
        uint8_t* const id_at = ip_at + offsetof(Ipv4Header, id);
        uint8_t* const sum_at = ip_at + offsetof(Ipv4Header, checksum);
        const auto next = Be16::from_host(static_cast<uint16_t>(id));
        store(sum_at,
              FoldedDelta(ChecksumDelta().replace(load<Be16>(id_at), next)).applied_to(load<Be16>(sum_at)));
        store(id_at, next);
        return;
    }
    uint8_t* at = ip_at + sizeof(Ipv6Header);
    uint8_t kind = ip_at[offsetof(Ipv6Header, next_header)];
    for (unsigned walked = 0; kind != Ipv6ExtensionHeader::kFragment; ++walked) {
        PENSTOCK_ASSERT(is_extension(kind) && walked < kExtensionHeadersMax);
        const auto header = load<Ipv6ExtensionHeader>(at);
        kind = header.next_header;
        at += header.bytes();
    }
    store(at + sizeof(Ipv6ExtensionHeader) - sizeof(Be32), Be32::from_host(id));
}

}  // namespace penstock::packet
