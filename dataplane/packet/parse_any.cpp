// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/parse_any.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/ip_options.hpp"
#include "dataplane/packet/sctp.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

// The callers have checked the lengths; debug and fuzz builds assert it.
template <typename Header>
Header header_at(ByteView frame, size_t offset) noexcept {
    PENSTOCK_ASSERT(offset + sizeof(Header) <= frame.size());
    return load<Header>(frame.data() + offset);
}

// Multicast, and the reserved block that ends with the limited broadcast.
bool is_heard_by_all(const IpAddr& destination) noexcept {
    return destination.is_multicast() || destination.is_reserved_v4();
}

// 0.0.0.0/8, "this network": no host has such an address (RFC 6890, 2.2.2).
bool is_of_this_network(const IpAddr& address) noexcept {
    return address.is_v4() && address.bytes()[12] == 0;
}

// An IPv6 link-local address is valid on its own link only, and packets with one are not forwarded (RFC 4291,
// 2.5.6).
bool is_link_local_v6(const IpAddr& address) noexcept {
    return address.is_link_local() && !address.is_v4();
}

ParseResult parse_tcp(ByteView frame, size_t l4_bytes, Parsed& out) noexcept {
    if (l4_bytes < sizeof(TcpHeader)) {
        return drop(DropReason::BadL4Header);
    }
    const auto tcp = header_at<TcpHeader>(frame, out.l4_offset);
    if (tcp.header_bytes() < sizeof(TcpHeader) || tcp.header_bytes() > l4_bytes) {
        return drop(DropReason::BadL4Header);
    }
    out.key.source_port = tcp.source_port.host();
    out.key.destination_port = tcp.destination_port.host();
    out.tcp_flags.bits = tcp.flags;
    out.payload_offset = static_cast<uint16_t>(out.l4_offset + tcp.header_bytes());
    return {};
}

// A datagram may be shorter than its IP packet. The bytes behind it are ignored and forwarded (Linux trims
// them).
ParseResult parse_udp(ByteView frame, size_t l4_bytes, Parsed& out) noexcept {
    if (l4_bytes < sizeof(UdpHeader)) {
        return drop(DropReason::BadL4Header);
    }
    const auto udp = header_at<UdpHeader>(frame, out.l4_offset);
    if (udp.length.host() < sizeof(UdpHeader) || udp.length.host() > l4_bytes) {
        return drop(DropReason::BadL4Header);
    }
    if (out.family == IpFamily::V6 && udp.checksum.raw() == 0) {
        return drop(DropReason::NoUdpChecksum);
    }
    out.key.source_port = udp.source_port.host();
    out.key.destination_port = udp.destination_port.host();
    out.payload_offset = static_cast<uint16_t>(out.l4_offset + sizeof(UdpHeader));
    return {};
}

ParseResult parse_sctp(ByteView frame, size_t l4_bytes, Parsed& out) noexcept {
    const std::optional<SctpSummary> summary = summarize_sctp(frame.subspan(out.l4_offset, l4_bytes));
    if (!summary) {
        return drop(DropReason::BadL4Header);
    }
    const auto sctp = header_at<SctpHeader>(frame, out.l4_offset);
    out.key.source_port = sctp.source_port.host();
    out.key.destination_port = sctp.destination_port.host();
    out.payload_offset = static_cast<uint16_t>(out.l4_offset + sizeof(SctpHeader));
    out.sctp_event = summary->event;
    out.sctp_reflects_tag = summary->reflects_tag;
    return {};
}

// Parses the transport header of either family. `l4_bytes` is the part of the IP length that remains for it
// and its payload. `out` has the addresses already.
ParseResult parse_l4(ByteView frame, size_t l4_bytes, Parsed& out) noexcept {
    ParseResult result;
    if (out.ip_protocol == static_cast<uint8_t>(Protocol::Tcp)) {
        result = parse_tcp(frame, l4_bytes, out);
    } else if (out.ip_protocol == static_cast<uint8_t>(Protocol::Udp)) {
        result = parse_udp(frame, l4_bytes, out);
    } else if (out.ip_protocol == static_cast<uint8_t>(Protocol::Sctp)) {
        result = parse_sctp(frame, l4_bytes, out);
    } else {
        return {};
    }
    if (!result) {
        return result;
    }
    if (out.key.source_port == 0 || out.key.destination_port == 0) {
        return drop(DropReason::BadL4Header);
    }
    out.kind = PacketKind::Flow;
    return {};
}

ParseResult parse_ipv4(ByteView frame, Parsed& out, IpChecksum ip_checksum) noexcept {
    const size_t available = frame.size() - out.l3_offset;
    if (available < sizeof(Ipv4Header)) {
        return drop(DropReason::FrameTooShort);
    }
    const auto ip = header_at<Ipv4Header>(frame, out.l3_offset);
    const size_t header_bytes = ip.header_bytes();
    const size_t total_bytes = ip.total_length.host();
    if (ip.version() != 4 || header_bytes < sizeof(Ipv4Header) || total_bytes < header_bytes) {
        return drop(DropReason::BadIpHeader);
    }
    if (available < header_bytes) {
        return drop(DropReason::FrameTooShort);
    }
    if (available < total_bytes) {
        return drop(DropReason::FrameShorterThanIp);
    }
    if (ip_checksum == IpChecksum::Verify &&
        !ChecksumSum().add(frame.subspan(out.l3_offset, header_bytes)).is_valid()) {
        return drop(DropReason::BadIpChecksum);
    }
    out.kind = PacketKind::Ip;
    out.ip_protocol = ip.protocol;
    out.key.protocol = static_cast<Protocol>(ip.protocol);
    out.ttl = ip.ttl;
    out.l3_length = ip.total_length.host();
    out.l4_offset = static_cast<uint16_t>(out.l3_offset + header_bytes);
    out.payload_offset = out.l4_offset;
    out.key.source = IpAddr::v4(ip.source);
    out.key.destination = IpAddr::v4(ip.destination);
    if (is_martian(out.key.source, out.key.destination)) {
        return drop(DropReason::MartianSource);
    }
    if (header_bytes > sizeof(Ipv4Header)) {
        if (const auto refused = refuse_options(
                frame.subspan(out.l3_offset + sizeof(Ipv4Header), header_bytes - sizeof(Ipv4Header)))) {
            return drop(*refused);
        }
    }
    if (ip.is_fragment()) {
        out.kind = PacketKind::Fragment;
        out.is_fragment = true;
        return {};
    }
    if (is_for_the_host(out.key.destination)) {
        return {};
    }
    return parse_l4(frame, total_bytes - header_bytes, out);
}

bool is_walked_over(uint8_t header) noexcept {
    return header == Ipv6ExtensionHeader::kHopByHop || header == Ipv6ExtensionHeader::kRouting ||
           header == Ipv6ExtensionHeader::kFragment || header == Ipv6ExtensionHeader::kDestinationOptions;
}

// Makes `header`, which begins at `offset`, the header that `out` refers to.
void walk_to(size_t offset, uint8_t header, Parsed& out) noexcept {
    out.l4_offset = static_cast<uint16_t>(offset);
    out.payload_offset = out.l4_offset;
    out.ip_protocol = header;
    out.key.protocol = static_cast<Protocol>(header);
}

// Walks from the first header behind the IPv6 header to the transport header, and parses it.
ParseResult parse_behind_extensions(ByteView frame, Parsed& out) noexcept {
    const size_t end = size_t{out.l3_offset} + out.l3_length;
    for (unsigned walked = 0; is_walked_over(out.ip_protocol); ++walked) {
        const size_t left = end - out.l4_offset;
        // Hop-by-hop options are for every router on the path and must be the first extension header (RFC
        // 8200, 4.1).
        const bool is_misplaced = out.ip_protocol == Ipv6ExtensionHeader::kHopByHop && walked > 0;
        if (walked == kExtensionHeadersMax || left < sizeof(Ipv6ExtensionHeader) || is_misplaced) {
            return drop(DropReason::BadExtensionHeader);
        }
        const auto header = header_at<Ipv6ExtensionHeader>(frame, out.l4_offset);
        if (out.ip_protocol == Ipv6ExtensionHeader::kFragment) {
            walk_to(out.l4_offset + sizeof header, header.next_header, out);
            if (header.is_fragment()) {
                out.kind = PacketKind::Fragment;
                out.is_fragment = true;
                return {};
            }
            continue;
        }
        if (header.bytes() > left) {
            return drop(DropReason::BadExtensionHeader);
        }
        if (out.ip_protocol == Ipv6ExtensionHeader::kRouting && header.segments_left() != 0) {
            return header.routing_type() == 0 ? drop(DropReason::SourceRouted) : ParseResult();
        }
        walk_to(out.l4_offset + header.bytes(), header.next_header, out);
    }
    return parse_l4(frame, end - out.l4_offset, out);
}

ParseResult parse_ipv6(ByteView frame, Parsed& out) noexcept {
    const size_t available = frame.size() - out.l3_offset;
    if (available < sizeof(Ipv6Header)) {
        return drop(DropReason::FrameTooShort);
    }
    const auto ip = header_at<Ipv6Header>(frame, out.l3_offset);
    if (ip.version() != 6) {
        return drop(DropReason::BadIpHeader);
    }
    // A payload length of 0 is taken literally: a jumbogram, which has its length in a hop-by-hop header (RFC
    // 2675), then ends before that header.
    const size_t total_bytes = sizeof(Ipv6Header) + ip.payload_length.host();
    if (available < total_bytes) {
        return drop(DropReason::FrameShorterThanIp);
    }
    const IpAddr source = IpAddr::v6(ip.source), destination = IpAddr::v6(ip.destination);
    if (source.is_v4() || destination.is_v4()) {
        return drop(DropReason::MappedAddress);  // in a key it would be equal to an IPv4 address
    }
    out.kind = PacketKind::Ip;
    out.family = IpFamily::V6;
    out.ttl = ip.hop_limit;
    out.l3_length = static_cast<uint16_t>(total_bytes);
    out.key.source = source;
    out.key.destination = destination;
    walk_to(out.l3_offset + sizeof(Ipv6Header), ip.next_header, out);
    if (is_martian(source, destination)) {
        return drop(DropReason::MartianSource);
    }
    if (is_for_the_host(destination) || is_link_local_v6(source) || is_link_local_v6(destination)) {
        return {};
    }
    return parse_behind_extensions(frame, out);
}

}  // namespace

bool is_for_the_host(const IpAddr& destination) noexcept {
    return is_heard_by_all(destination) || destination.is_unspecified() || is_of_this_network(destination) ||
           destination.is_loopback();
}

bool is_martian(const IpAddr& source, const IpAddr& destination) noexcept {
    if (source.is_unspecified()) {
        return !is_heard_by_all(destination);
    }
    return source.is_loopback() || is_heard_by_all(source) || is_of_this_network(source) ||
           source == destination;
}

ParseResult parse_any(ByteView frame, Parsed& out, IpChecksum ip_checksum) noexcept {
    out = Parsed{};
    if (frame.size() < sizeof(EthernetHeader)) {
        return drop(DropReason::FrameTooShort);
    }
    const auto ethernet = header_at<EthernetHeader>(frame, 0);
    out.destination_is_multicast_mac = ethernet.destination.is_multicast();
    const uint16_t type = ethernet.type.host();
    if (type != kEtherTypeIpv4 && type != kEtherTypeIpv6) {
        return {};
    }
    out.l3_offset = sizeof(EthernetHeader);
    return type == kEtherTypeIpv4 ? parse_ipv4(frame, out, ip_checksum) : parse_ipv6(frame, out);
}

}  // namespace penstock::packet
