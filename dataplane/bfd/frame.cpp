// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bfd/frame.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answers/answer.hpp"
#include "dataplane/packet/checksum.hpp"

namespace penstock::bfd {
namespace {

using packet::UdpHeader;

constexpr auto kUdp = static_cast<uint8_t>(Protocol::Udp);
constexpr uint8_t kTtl = 255;                 // RFC 5881, 5
constexpr uint8_t kInternetControl = 6 << 5;  // precedence of control protocols (RFC 791, 3.1), as CS6
constexpr L4Port kFirstSourcePort = 49'152;   // to 65,535 (RFC 5881, 4)

// The same for all packets of a session, another one for other sessions.
L4Port source_port(const Terms& terms) noexcept {
    return static_cast<L4Port>(kFirstSourcePort + terms.discriminator % (65'536 - kFirstSourcePort));
}

}  // namespace

uint16_t build_frame(std::span<uint8_t> frame, const Terms& terms, const ControlPacket& packet) noexcept {
    PENSTOCK_ASSERT(frame.size() >= kFrameBytesMax);
    constexpr auto kUdpBytes = static_cast<uint16_t>(sizeof(UdpHeader) + kControlPacketBytes);
    const IpFamily family = terms.peer.family();
    packet::EthernetHeader ethernet{};
    ethernet.type = Be16::from_host(family == IpFamily::V4 ? packet::kEtherTypeIpv4 : packet::kEtherTypeIpv6);
    store(frame.data(), ethernet);
    uint8_t* const ip_at = frame.data() + sizeof ethernet;
    uint8_t* const udp_at = ip_at + packet::answer_header_bytes(family);
    packet::store_answer_header(ip_at, terms.local, terms.peer, kUdp, kInternetControl, kUdpBytes, kTtl);
    store(udp_at + sizeof(UdpHeader), wire_of(packet));
    UdpHeader udp;
    udp.source_port = Be16::from_host(source_port(terms));
    udp.destination_port = Be16::from_host(terms.is_multihop() ? kMultihopPort : kSingleHopPort);
    udp.length = Be16::from_host(kUdpBytes);
    udp.checksum = {};
    store(udp_at, udp);
    udp.checksum = packet::udp_checksum_field(packet::ChecksumSum()
                                                  .add_pseudo_header(terms.local, terms.peer, kUdp, kUdpBytes)
                                                  .add(ByteView(udp_at, kUdpBytes))
                                                  .checksum());
    store(udp_at, udp);
    return static_cast<uint16_t>(udp_at + kUdpBytes - frame.data());
}

std::optional<Received> read_frame(ByteView frame, const packet::Parsed& parsed, NicPortId port) noexcept {
    // Packets from and to link-local addresses are no flows, and their UDP header is not parsed.
    const bool is_flow = parsed.kind == packet::PacketKind::Flow && parsed.key.protocol == Protocol::Udp;
    const bool is_other = parsed.kind == packet::PacketKind::Ip && parsed.ip_protocol == kUdp;
    const size_t end = size_t{parsed.l3_offset} + parsed.l3_length;
    if ((!is_flow && !is_other) || parsed.is_fragment || end > frame.size() ||
        parsed.l4_offset + sizeof(UdpHeader) + kControlPacketBytes > end) {
        return std::nullopt;
    }
    const auto udp = load<UdpHeader>(frame.data() + parsed.l4_offset);
    const L4Port to = udp.destination_port.host();
    const size_t length = udp.length.host();
    if ((to != kSingleHopPort && to != kMultihopPort) || length < sizeof udp + kControlPacketBytes ||
        parsed.l4_offset + length > end) {
        return std::nullopt;
    }
    const ByteView datagram = frame.subspan(parsed.l4_offset, length);
    if ((udp.checksum.raw() != 0 || parsed.family == IpFamily::V6) &&
        !packet::ChecksumSum()
             .add_pseudo_header(parsed.key.source, parsed.key.destination, kUdp, udp.length.host())
             .add(datagram)
             .is_valid()) {
        return std::nullopt;
    }
    const auto packet = parse(datagram.subspan(sizeof udp));
    if (!packet) {
        return std::nullopt;
    }
    return Received{.packet = *packet,
                    .origin = {.source = parsed.key.source,
                               .destination = parsed.key.destination,
                               .port = port,
                               .ttl = parsed.ttl,
                               .is_multihop = to == kMultihopPort}};
}

}  // namespace penstock::bfd
