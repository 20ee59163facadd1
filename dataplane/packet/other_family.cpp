// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/other_family.hpp"

#include <algorithm>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/common_header.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/sctp.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

// Bytes behind all IP headers.
size_t payload_bytes(const Parsed& parsed) noexcept {
    return size_t{parsed.l3_offset} + parsed.l3_length - parsed.l4_offset;
}

bool is_without_udp_checksum(const uint8_t* frame, const Parsed& parsed) noexcept {
    return parsed.kind == PacketKind::Flow && parsed.key.protocol == Protocol::Udp &&
           load<Be16>(frame + parsed.l4_offset + offsetof(UdpHeader, checksum)).raw() == 0;
}

// Headers that are walked, and further ones that the parser treats as a transport: the fragment offset
// includes them (RFC 7915, 5.1.1). ESP is not listed as such a header there.
bool is_extension_header(uint8_t number) noexcept {
    constexpr uint8_t kAuthentication = 51, kMobility = 135, kHostIdentity = 139, kShim6 = 140;
    return number == Ipv6ExtensionHeader::kHopByHop || number == Ipv6ExtensionHeader::kRouting ||
           number == Ipv6ExtensionHeader::kFragment || number == Ipv6ExtensionHeader::kDestinationOptions ||
           number == kAuthentication || number == kMobility || number == kHostIdentity || number == kShim6;
}

// Whether an IPv6 fragment, converted to IPv4, is the same part of the same datagram.
bool fits_in_ipv4(const uint8_t* frame, const Parsed& parsed, const FragmentFields& fragment) noexcept {
    const size_t header_bytes = size_t{parsed.l4_offset} - parsed.l3_offset;
    const auto at = fragment_header_in(frame + parsed.l3_offset, header_bytes);
    const bool has_more_headers =
        !at || *at + sizeof(Ipv6ExtensionHeader) != header_bytes || is_extension_header(parsed.ip_protocol);
    // The maximum datagram size includes the header in IPv4, but not in IPv6.
    return !has_more_headers && sizeof(Ipv4Header) + fragment.offset + payload_bytes(parsed) <= UINT16_MAX;
}

// Writes the ports and updates the checksum. `l4` is the whole transport part of a frame with its addresses
// already replaced.
void translate_transport(std::span<uint8_t> l4, const Parsed& parsed, const FamilyRewrite& rewrite) noexcept {
    if (parsed.key.protocol == Protocol::Sctp) {
        return set_sctp_ports(l4, rewrite.source_port, rewrite.destination_port);
    }
    translate_ports(l4.data(), parsed.key.protocol, rewrite.source_port, rewrite.destination_port,
                    rewrite.l4);
}

// Computes the checksum that a UDP datagram sent without one needs over IPv6 (RFC 7915, 4.5). Bytes behind
// the datagram are not part of it.
void sum_datagram(std::span<uint8_t> l4, const FamilyRewrite& rewrite) noexcept {
    const uint16_t bytes = load<UdpHeader>(l4.data()).length.host();
    ChecksumSum sum;
    sum.add_pseudo_header(rewrite.source, rewrite.destination, static_cast<uint8_t>(Protocol::Udp), bytes)
        .add(l4.first(bytes));
    store(l4.data() + offsetof(UdpHeader, checksum), udp_checksum_field(sum.checksum()));
}

}  // namespace

uint16_t bytes_in_other_family(const Parsed& parsed) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Flow || parsed.kind == PacketKind::Fragment);
    const size_t header_bytes = parsed.family == IpFamily::V6 ? sizeof(Ipv4Header)
                                : parsed.is_fragment ? sizeof(Ipv6Header) + sizeof(Ipv6ExtensionHeader)
                                                     : sizeof(Ipv6Header);
    return static_cast<uint16_t>(std::min<size_t>(header_bytes + payload_bytes(parsed), UINT16_MAX));
}

bool may_be_cut(ByteView frame, const Parsed& parsed) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Flow || parsed.kind == PacketKind::Fragment);
    return parsed.family == IpFamily::V4 &&
           (load<Ipv4Header>(frame.data() + parsed.l3_offset).flags_and_offset.host() &
            Ipv4Header::kDontFragment) == 0;
}

Converted to_other_family(MovableFrame& frame, const Parsed& parsed, const FamilyRewrite& rewrite,
                          uint16_t id, bool needs_cut) noexcept {
    PENSTOCK_ASSERT((parsed.kind == PacketKind::Flow || parsed.kind == PacketKind::Fragment) &&
                    parsed.ttl > 1);
    PENSTOCK_ASSERT(rewrite.source.family() == other_family(parsed.family) &&
                    rewrite.destination.family() == other_family(parsed.family));
    PENSTOCK_ASSERT(!needs_cut || may_be_cut(ByteView(frame.data, frame.length), parsed));
    uint8_t* const ip_at = frame.data + parsed.l3_offset;
    uint8_t* const l4_at = frame.data + parsed.l4_offset;
    const bool needs_sum = parsed.family == IpFamily::V4 && is_without_udp_checksum(frame.data, parsed);
    if (needs_sum && parsed.is_fragment) {
        return drop(DropReason::NoUdpChecksum);
    }
    CommonHeader header =
        read_header(parsed.family, ip_at, static_cast<size_t>(l4_at - ip_at), parsed.ip_protocol);
    header.ttl = static_cast<uint8_t>(parsed.ttl - 1);
    header.protocol = static_cast<uint8_t>(rewrite.protocol);
    if (parsed.family == IpFamily::V6 && parsed.is_fragment &&
        !fits_in_ipv4(frame.data, parsed, *header.fragment)) {
        return drop(DropReason::BadExtensionHeader);
    }
    if (needs_cut && !header.fragment) {
        header.fragment = {.id = load<Ipv4Header>(ip_at).id.host()};
    }
    const IpFamily family = other_family(parsed.family);
    const Converted replaced = replace_headers(frame, parsed.l4_offset, family,
                                               header_bytes_in(family, header), header.payload_bytes);
    if (!replaced) {
        return replaced;
    }
    if (parsed.kind == PacketKind::Flow) {
        const std::span<uint8_t> l4(l4_at, header.payload_bytes);
        translate_transport(l4, parsed, rewrite);
        if (needs_sum) {
            sum_datagram(l4, rewrite);
        }
    }
    store_header(frame.data + sizeof(EthernetHeader), header, rewrite.source, rewrite.destination, id);
    return {};
}

}  // namespace penstock::packet
