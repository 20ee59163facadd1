#include "dataplane/packet/quoted.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

constexpr uint8_t kIcmp = 1, kIcmpv6 = 58;
constexpr size_t kPortsBytes = 4;

bool is_error(IpFamily family, uint8_t type) noexcept {
    if (family == IpFamily::V6) {
        return type < 128;  // RFC 4443, 2.1
    }
    // Destination unreachable, source quench, redirect, time exceeded, parameter problem.
    return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

// The bytes in front of `at` belong to whoever calls; nothing is read that they do not cover.
template <typename Header>
std::optional<Header> header_in(ByteView bytes, size_t at) noexcept {
    if (bytes.size() < at || bytes.size() - at < sizeof(Header)) {
        return std::nullopt;
    }
    return load<Header>(bytes.data() + at);
}

// The L4 ports at `at`.
std::optional<FlowKey> with_ports(ByteView quoted, size_t at, FlowKey key, uint8_t protocol) noexcept {
    const bool has_ports = protocol == static_cast<uint8_t>(Protocol::Tcp) || protocol == static_cast<uint8_t>(Protocol::Udp);
    if (!has_ports || quoted.size() < at || quoted.size() - at < kPortsBytes) {
        return std::nullopt;
    }
    key.protocol = static_cast<Protocol>(protocol);
    key.source_port = load<Be16>(quoted.data() + at).host();
    key.destination_port = load<Be16>(quoted.data() + at + 2).host();
    return key;
}

std::optional<FlowKey> quoted_in_ipv4(ByteView quoted) noexcept {
    const auto ip = header_in<Ipv4Header>(quoted, 0);
    if (!ip || ip->version() != 4 || ip->header_bytes() < sizeof(Ipv4Header) ||
        (ip->flags_and_offset.host() & Ipv4Header::kOffsetMask) != 0) {
        return std::nullopt;
    }
    return with_ports(quoted, ip->header_bytes(), {.source = IpAddr::v4(ip->source), .destination = IpAddr::v4(ip->destination)},
                      ip->protocol);
}

std::optional<FlowKey> quoted_in_ipv6(ByteView quoted) noexcept {
    const auto ip = header_in<Ipv6Header>(quoted, 0);
    if (!ip || ip->version() != 6) {
        return std::nullopt;
    }
    const FlowKey key{.source = IpAddr::v6(ip->source), .destination = IpAddr::v6(ip->destination)};
    if (key.source.is_v4() || key.destination.is_v4()) {
        return std::nullopt;
    }
    size_t at = sizeof(Ipv6Header);
    uint8_t next = ip->next_header;
    for (unsigned walked = 0; walked < kExtensionHeadersMax; ++walked) {
        const bool is_fragment = next == Ipv6ExtensionHeader::kFragment;
        if (!is_fragment && next != Ipv6ExtensionHeader::kHopByHop && next != Ipv6ExtensionHeader::kRouting &&
            next != Ipv6ExtensionHeader::kDestinationOptions) {
            break;
        }
        const auto header = header_in<Ipv6ExtensionHeader>(quoted, at);
        if (!header || (is_fragment && (header->rest.host() & Ipv6ExtensionHeader::kOffsetMask) != 0)) {
            return std::nullopt;
        }
        at += is_fragment ? sizeof *header : header->bytes();
        next = header->next_header;
    }
    return with_ports(quoted, at, key, next);
}

}  // namespace

std::optional<FlowKey> quoted_flow(ByteView frame, const Parsed& parsed) noexcept {
    const size_t end = size_t{parsed.l3_offset} + parsed.l3_length;
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Ip && end <= frame.size() && parsed.l4_offset <= end);
    const ByteView icmp = frame.subspan(parsed.l4_offset, end - parsed.l4_offset);
    const bool is_icmp = parsed.ip_protocol == (parsed.family == IpFamily::V4 ? kIcmp : kIcmpv6);
    if (!is_icmp || icmp.size() < sizeof(IcmpHeader) || !is_error(parsed.family, icmp[0])) {
        return std::nullopt;
    }
    const ByteView quoted = icmp.subspan(sizeof(IcmpHeader));
    return parsed.family == IpFamily::V4 ? quoted_in_ipv4(quoted) : quoted_in_ipv6(quoted);
}

uint32_t datagram_id(ByteView frame, const Parsed& parsed) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Fragment && parsed.l4_offset <= frame.size());
    if (parsed.family == IpFamily::V4) {
        return load<Be16>(frame.data() + parsed.l3_offset + offsetof(Ipv4Header, id)).host();
    }
    // The parser stops behind the fragment header, whose last four bytes they are.
    return load<Be32>(frame.data() + parsed.l4_offset - sizeof(Be32)).host();
}

}  // namespace penstock::packet
