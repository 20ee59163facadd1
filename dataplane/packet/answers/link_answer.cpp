// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/answers/link_answer.hpp"

#include <array>

#include "dataplane/base/check.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/packet/checksum.hpp"

namespace penstock::packet {
namespace {

constexpr MacAddr kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
// ff02::1 and its Ethernet address (RFC 2464, 7).
constexpr IpAddr kAllNodes = IpAddr::v6({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
constexpr MacAddr kAllNodesMac{{0x33, 0x33, 0, 0, 0, 1}};

std::array<uint8_t, 4> bytes_of(const IpAddr& address) noexcept {
    return load<std::array<uint8_t, 4>>(address.bytes().data() + 12);
}

uint16_t store_arp(std::span<uint8_t> buffer, const MacAddr& to, const ArpPacket& arp) noexcept {
    store(buffer.data(), EthernetHeader{to, arp.sender_mac, Be16::from_host(kEtherTypeArp)});
    store(buffer.data() + sizeof(EthernetHeader), arp);
    return kArpFrameBytes;
}

struct Receiver {
    IpAddr address;
    MacAddr mac;
};

// From `source` to `to`. `option` follows the message if there is one.
uint16_t store_message(std::span<uint8_t> buffer, const Receiver& to, const IpAddr& source,
                       const MacAddr& mac, NeighbourMessage message,
                       const LinkAddressOption* option) noexcept {
    const auto bytes = static_cast<uint16_t>(sizeof message + (option != nullptr ? sizeof *option : 0));
    store(buffer.data(), EthernetHeader{to.mac, mac, Be16::from_host(kEtherTypeIpv6)});
    Ipv6Header ip;
    ip.payload_length = Be16::from_host(bytes);
    ip.next_header = kProtoIcmpv6;
    ip.hop_limit = kLinkHopLimit;
    ip.source = source.bytes();
    ip.destination = to.address.bytes();
    uint8_t* const ip_at = buffer.data() + sizeof(EthernetHeader);
    store(ip_at, ip);
    uint8_t* const message_at = ip_at + sizeof ip;
    store(message_at, message);
    if (option != nullptr) {
        store(message_at + sizeof message, *option);
    }
    message.icmp.checksum = ChecksumSum()
                                .add_pseudo_header(source, to.address, kProtoIcmpv6, bytes)
                                .add(ByteView(message_at, bytes))
                                .checksum();
    store(message_at, message);
    return static_cast<uint16_t>(sizeof(EthernetHeader) + sizeof ip + bytes);
}

uint16_t store_advertisement(std::span<uint8_t> buffer, const Receiver& to, const IpAddr& target,
                             const MacAddr& mac, uint32_t flags) noexcept {
    NeighbourMessage message;
    message.icmp.type = NeighbourMessage::kAdvertisement;
    message.icmp.rest = Be32::from_host(flags);
    message.target = target.bytes();
    const LinkAddressOption option{.mac = mac};
    return store_message(buffer, to, target, mac, message, &option);
}

}  // namespace

AnswerResult make_link_answer(std::span<uint8_t> buffer, const LinkMessage& message,
                              const MacAddr& mac) noexcept {
    const bool is_probe = message.kind == LinkMessage::Kind::Probe;
    PENSTOCK_ASSERT(is_probe || message.kind == LinkMessage::Kind::Query);
    if (message.target.is_v4()) {
        if (buffer.size() < kArpFrameBytes) {
            return drop(DropReason::NoBuffer);
        }
        ArpPacket reply;
        reply.operation = Be16::from_host(ArpPacket::kReply);
        reply.sender_mac = mac;
        reply.sender = bytes_of(message.target);
        reply.target_mac = message.sender_mac;
        reply.target = bytes_of(message.sender);
        return store_arp(buffer, message.sender_mac, reply);
    }
    if (buffer.size() < kAdvertisementFrameBytes) {
        return drop(DropReason::NoBuffer);
    }
    return is_probe ? store_advertisement(buffer, {kAllNodes, kAllNodesMac}, message.target, mac,
                                          NeighbourMessage::kOverride)
                    : store_advertisement(buffer, {message.sender, message.sender_mac}, message.target, mac,
                                          NeighbourMessage::kSolicited | NeighbourMessage::kOverride);
}

uint16_t make_link_announcement(std::span<uint8_t> buffer, const IpAddr& address,
                                const MacAddr& mac) noexcept {
    PENSTOCK_ASSERT(buffer.size() >= kAdvertisementFrameBytes);
    if (!address.is_v4()) {
        return store_advertisement(buffer, {kAllNodes, kAllNodesMac}, address, mac,
                                   NeighbourMessage::kOverride);
    }
    ArpPacket announcement;
    announcement.sender_mac = mac;
    announcement.sender = announcement.target = bytes_of(address);
    return store_arp(buffer, kBroadcast, announcement);
}

uint16_t make_link_probe(std::span<uint8_t> buffer, const IpAddr& address, const MacAddr& mac) noexcept {
    PENSTOCK_ASSERT(buffer.size() >= kSolicitationFrameBytes);
    if (address.is_v4()) {
        ArpPacket probe;
        probe.sender_mac = mac;
        probe.target = bytes_of(address);
        return store_arp(buffer, kBroadcast, probe);
    }
    const IpAddr group = solicited_node_group(address);
    // RFC 2464, 7.
    const uint8_t* const low = group.bytes().data() + 12;
    const MacAddr group_mac{{0x33, 0x33, low[0], low[1], low[2], low[3]}};
    NeighbourMessage message;
    message.icmp.type = NeighbourMessage::kSolicitation;
    message.target = address.bytes();
    return store_message(buffer, {group, group_mac}, IpAddr(), mac, message, nullptr);
}

}  // namespace penstock::packet
