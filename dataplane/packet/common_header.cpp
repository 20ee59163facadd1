// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/common_header.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/checksum.hpp"

namespace penstock::packet {
namespace {

// The minimum MTU of IPv6, less the difference of the header sizes. A packet that passes every IPv6 link may
// exceed a narrower IPv4 link, and its sender could not be sent an MTU below IPv6's minimum (RFC 7915, 5.1).
constexpr size_t kCuttableBytesMax = 1260;

constexpr uint16_t less(uint16_t whole, size_t part) noexcept {
    return whole < part ? uint16_t{0} : static_cast<uint16_t>(whole - part);
}

CommonHeader read_ipv4(const uint8_t* ip_at, size_t header_bytes) noexcept {
    const auto ip = load<Ipv4Header>(ip_at);
    CommonHeader header{
        .tos = ip.tos, .ttl = ip.ttl, .payload_bytes = less(ip.total_length.host(), header_bytes)};
    if (ip.is_fragment()) {
        const uint16_t field = ip.flags_and_offset.host();
        header.fragment = {.id = ip.id.host(),
                           .offset = static_cast<uint16_t>((field & Ipv4Header::kOffsetMask) * 8),
                           .has_more = (field & Ipv4Header::kMoreFragments) != 0};
    }
    return header;
}

CommonHeader read_ipv6(const uint8_t* ip_at, size_t header_bytes) noexcept {
    const auto ip = load<Ipv6Header>(ip_at);
    CommonHeader header{.tos = static_cast<uint8_t>(ip.version_class_flow.host() >> 20),
                        .ttl = ip.hop_limit,
                        .payload_bytes = less(ip.payload_length.host(), header_bytes - sizeof ip)};
    if (const auto at = fragment_header_in(ip_at, header_bytes)) {
        const auto fragment = load<Ipv6ExtensionHeader>(ip_at + *at);
        const uint16_t field = fragment.rest.host();
        header.fragment = {.id = fragment.more.host(),
                           .offset = static_cast<uint16_t>(field & Ipv6ExtensionHeader::kOffsetMask),
                           .has_more = (field & Ipv6ExtensionHeader::kMoreFragments) != 0};
    }
    return header;
}

void store_ipv4(uint8_t* ip_at, const CommonHeader& header, Be32 source, Be32 destination,
                uint16_t id) noexcept {
    const size_t bytes = sizeof(Ipv4Header) + header.payload_bytes;
    Ipv4Header ip{.tos = header.tos,
                  .ttl = header.ttl,
                  .protocol = header.protocol,
                  .source = source,
                  .destination = destination};
    // A packet that an error quotes may have been longer than any IPv4 packet.
    ip.total_length = Be16::from_host(static_cast<uint16_t>(bytes < UINT16_MAX ? bytes : UINT16_MAX));
    if (header.fragment) {
        const uint32_t more = header.fragment->has_more ? Ipv4Header::kMoreFragments : 0;
        ip.id = Be16::from_host(static_cast<uint16_t>(header.fragment->id));
        ip.flags_and_offset = Be16::from_host(static_cast<uint16_t>(more | header.fragment->offset / 8U));
    } else if (bytes > kCuttableBytesMax) {
        ip.flags_and_offset = Be16::from_host(Ipv4Header::kDontFragment);
    } else {
        ip.id = Be16::from_host(id);
    }
    store(ip_at, ip);
    ip.checksum = ChecksumSum().add(ByteView(ip_at, sizeof ip)).checksum();
    store(ip_at, ip);
}

void store_ipv6(uint8_t* ip_at, const CommonHeader& header, const IpAddr& source,
                const IpAddr& destination) noexcept {
    const size_t behind = header.payload_bytes + (header.fragment ? sizeof(Ipv6ExtensionHeader) : 0);
    PENSTOCK_ASSERT(behind <= UINT16_MAX);  // an IPv4 packet is 20 bytes longer than its payload
    store(ip_at, Ipv6Header{.version_class_flow = Be32::from_host(0x6000'0000U | uint32_t{header.tos} << 20),
                            .payload_length = Be16::from_host(static_cast<uint16_t>(behind)),
                            .next_header = header.fragment ? Ipv6ExtensionHeader::kFragment : header.protocol,
                            .hop_limit = header.ttl,
                            .source = source.bytes(),
                            .destination = destination.bytes()});
    if (header.fragment) {
        const uint32_t more = header.fragment->has_more ? Ipv6ExtensionHeader::kMoreFragments : 0;
        store(ip_at + sizeof(Ipv6Header),
              Ipv6ExtensionHeader{
                  .next_header = header.protocol,
                  .rest = Be16::from_host(static_cast<uint16_t>(header.fragment->offset | more)),
                  .more = Be32::from_host(header.fragment->id)});
    }
}

}  // namespace

CommonHeader read_header(IpFamily family, const uint8_t* ip_at, size_t header_bytes,
                         uint8_t protocol) noexcept {
    CommonHeader header =
        family == IpFamily::V4 ? read_ipv4(ip_at, header_bytes) : read_ipv6(ip_at, header_bytes);
    header.protocol = protocol;
    return header;
}

std::optional<size_t> fragment_header_in(const uint8_t* ip_at, size_t header_bytes) noexcept {
    std::optional<size_t> found;
    uint8_t next = load<Ipv6Header>(ip_at).next_header;
    for (size_t at = sizeof(Ipv6Header); at + sizeof(Ipv6ExtensionHeader) <= header_bytes;) {
        const auto header = load<Ipv6ExtensionHeader>(ip_at + at);
        const bool is_fragment = next == Ipv6ExtensionHeader::kFragment;
        if (is_fragment) {
            found = at;
        }
        at += is_fragment ? sizeof header : header.bytes();
        next = header.next_header;
    }
    return found;
}

void store_header(uint8_t* ip_at, const CommonHeader& header, const IpAddr& source, const IpAddr& destination,
                  uint16_t id) noexcept {
    PENSTOCK_ASSERT(source.family() == destination.family());
    if (source.is_v4()) {
        store_ipv4(ip_at, header, source.v4_wire(), destination.v4_wire(), id);
    } else {
        store_ipv6(ip_at, header, source, destination);
    }
}

}  // namespace penstock::packet
