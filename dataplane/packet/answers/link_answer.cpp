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

uint16_t store_advertisement(std::span<uint8_t> buffer, const Receiver& to, const IpAddr& target,
                             const MacAddr& mac, uint32_t flags) noexcept {
    constexpr uint16_t kBytes = sizeof(NeighbourMessage) + sizeof(LinkAddressOption);
    store(buffer.data(), EthernetHeader{to.mac, mac, Be16::from_host(kEtherTypeIpv6)});
    Ipv6Header ip;
    ip.payload_length = Be16::from_host(kBytes);
    ip.next_header = kProtoIcmpv6;
    ip.hop_limit = kLinkHopLimit;
    ip.source = target.bytes();
    ip.destination = to.address.bytes();
    uint8_t* const ip_at = buffer.data() + sizeof(EthernetHeader);
    store(ip_at, ip);
    NeighbourMessage message;
    message.icmp.type = NeighbourMessage::kAdvertisement;
    message.icmp.rest = Be32::from_host(flags);
    message.target = target.bytes();
    uint8_t* const message_at = ip_at + sizeof ip;
    store(message_at, message);
    store(message_at + sizeof message, LinkAddressOption{.mac = mac});
    message.icmp.checksum = ChecksumSum()
                                .add_pseudo_header(target, to.address, kProtoIcmpv6, kBytes)
                                .add(ByteView(message_at, kBytes))
                                .checksum();
    store(message_at, message);
    return kAdvertisementFrameBytes;
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

}  // namespace penstock::packet
