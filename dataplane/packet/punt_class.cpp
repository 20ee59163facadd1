// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/punt_class.hpp"

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/vlan.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

constexpr size_t kTagBytes = 4;
// A packet that a router has forwarded arrives with a lower value (RFC 5082).
constexpr uint8_t kHopsFromTheLink = 255;

// Protocol numbers (IANA).
constexpr uint8_t kProtoIgmp = 2, kProtoRsvp = 46, kProtoEigrp = 88, kProtoOspf = 89, kProtoPim = 103,
                  kProtoVrrp = 112;

// Multicast listener discovery (RFC 2710, RFC 3810) and neighbour discovery (RFC 4861).
constexpr uint8_t kMldFirst = 130, kMldLast = 132, kNdFirst = 133, kNdLast = 137, kMldReport = 143;

bool is_tcp_control(L4Port port) noexcept {
    constexpr L4Port kBgp = 179, kLdp = 646;
    return port == kBgp || port == kLdp;
}

// Destination ports: single-hop and multihop BFD control, BFD echo, micro-BFD (RFC 5881, 5883, 7130, 7880),
// DHCP, RIP, HSRP and LDP.
bool is_udp_control(L4Port port) noexcept {
    switch (port) {
        case 67:
        case 68:
        case 520:
        case 521:
        case 546:
        case 547:
        case 646:
        case 1985:
        case 3784:
        case 3785:
        case 4784:
        case 6784:
        case 7784:
            return true;
        default:
            return false;
    }
}

// Single-hop BFD is valid only if it was sent on the link (RFC 5881, 5). An echo has been forwarded once, by
// the neighbour.
PuntClass class_of_udp(L4Port port, uint8_t ttl) noexcept {
    constexpr L4Port kBfd = 3784, kBfdEcho = 3785, kMicroBfd = 6784;
    if (port == kBfd || port == kMicroBfd) {
        return ttl == kHopsFromTheLink ? PuntClass::Link : PuntClass::Other;
    }
    if (port == kBfdEcho) {
        return ttl >= kHopsFromTheLink - 1 ? PuntClass::Link : PuntClass::Other;
    }
    return is_udp_control(port) ? PuntClass::Routing : PuntClass::Other;
}

PuntClass class_of_ports(Protocol protocol, L4Port source, L4Port destination, uint8_t ttl) noexcept {
    if (protocol == Protocol::Tcp) {
        return is_tcp_control(destination) || is_tcp_control(source) ? PuntClass::Routing : PuntClass::Other;
    }
    return protocol == Protocol::Udp ? class_of_udp(destination, ttl) : PuntClass::Other;
}

PuntClass class_of_icmpv6(uint8_t type, uint8_t ttl) noexcept {
    if (type >= kNdFirst && type <= kNdLast) {
        return ttl == kHopsFromTheLink ? PuntClass::Link : PuntClass::Other;
    }
    return (type >= kMldFirst && type <= kMldLast) || type == kMldReport ? PuntClass::Routing
                                                                         : PuntClass::Other;
}

// A multicast packet, or one from or to a link-local address: the parser does not read its transport header.
PuntClass class_of_whole(ByteView frame, const Parsed& parsed) noexcept {
    uint8_t protocol = parsed.ip_protocol;
    size_t at = parsed.l4_offset;
    // MLD always has a hop-by-hop header (RFC 2710, 3).
    if (parsed.family == IpFamily::V6 && protocol == Ipv6ExtensionHeader::kHopByHop &&
        at + sizeof(Ipv6ExtensionHeader) <= frame.size()) {
        const auto options = load<Ipv6ExtensionHeader>(frame.data() + at);
        protocol = options.next_header;
        at += options.bytes();
    }
    constexpr size_t kPortBytes = 2 * sizeof(Be16);
    if (at + kPortBytes > frame.size()) {
        return PuntClass::Other;
    }
    if (protocol == kProtoIcmpv6 && parsed.family == IpFamily::V6) {
        return class_of_icmpv6(frame[at], parsed.ttl);
    }
    return class_of_ports(static_cast<Protocol>(protocol), load<Be16>(frame.data() + at).host(),
                          load<Be16>(frame.data() + at + sizeof(Be16)).host(), parsed.ttl);
}

PuntClass class_of_ip(ByteView frame, const Parsed& parsed) noexcept {
    switch (parsed.ip_protocol) {
        case kProtoVrrp:
            return parsed.ttl == kHopsFromTheLink ? PuntClass::Link : PuntClass::Other;
        case kProtoIgmp:
        case kProtoRsvp:
        case kProtoEigrp:
        case kProtoOspf:
        case kProtoPim:
            return PuntClass::Routing;
        default:
            return parsed.kind == PacketKind::Ip ? class_of_whole(frame, parsed) : PuntClass::Other;
    }
}

PuntClass class_of(ByteView frame, const Parsed& parsed) noexcept {
    switch (parsed.kind) {
        case PacketKind::Flow:
            return class_of_ports(parsed.key.protocol, parsed.key.source_port, parsed.key.destination_port,
                                  parsed.ttl);
        case PacketKind::Fragment:
        case PacketKind::Ip:
            return class_of_ip(frame, parsed);
        case PacketKind::Other:
            return PuntClass::Link;
    }
    return PuntClass::Other;
}

}  // namespace

PuntClass punt_class_of(ByteView frame, const Parsed& parsed) noexcept {
    if (parsed.kind != PacketKind::Other || !is_tagged(frame)) {
        return class_of(frame, parsed);
    }
    // The bytes behind a tag have the same layout as behind an Ethernet header that begins one tag's length
    // later.
    ByteView behind = frame;
    for (unsigned tags = 0; tags < kVlanTagsMax && is_tagged(behind); ++tags) {
        behind = behind.subspan(kTagBytes);
    }
    Parsed inner;
    return !is_tagged(behind) && parse(behind, inner, IpChecksum::KnownGood) ? class_of(behind, inner)
                                                                             : PuntClass::Other;
}

}  // namespace penstock::packet
