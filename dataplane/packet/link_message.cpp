// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/link_message.hpp"

#include <optional>

#include "dataplane/base/protocol.hpp"
#include "dataplane/packet/quoted.hpp"

namespace penstock::packet {
namespace {

using Kind = LinkMessage::Kind;

IpAddr address_of(const std::array<uint8_t, 4>& bytes) noexcept {
    return IpAddr::v4(load<Be32>(bytes.data()));
}

bool is_host_mac(const MacAddr& mac) noexcept {
    return !mac.is_multicast() && !mac.is_zero();
}

LinkMessage read_arp(ByteView frame) noexcept {
    if (frame.size() < sizeof(EthernetHeader) + sizeof(ArpPacket)) {
        return {};
    }
    const auto arp = load<ArpPacket>(frame.data() + sizeof(EthernetHeader));
    const ArpPacket usual{};
    if (arp.hardware != usual.hardware || arp.protocol != usual.protocol ||
        arp.hardware_bytes != usual.hardware_bytes || arp.protocol_bytes != usual.protocol_bytes) {
        return {};
    }
    const uint16_t operation = arp.operation.host();
    const IpAddr sender = address_of(arp.sender), target = address_of(arp.target);
    LinkMessage message{.target = target, .sender = sender, .sender_mac = arp.sender_mac};
    if (operation == ArpPacket::kReply) {
        message.target = sender;
        message.kind = Kind::Claim;
    } else if (operation != ArpPacket::kRequest) {
        return {};
    } else if (sender.is_unspecified()) {
        message.kind = Kind::Probe;
    } else {
        message.kind = sender == target ? Kind::Claim : Kind::Query;
    }
    const bool is_no_host = sender.is_multicast() || sender.is_reserved_v4() || sender.is_loopback();
    if (!is_host_mac(arp.sender_mac) || is_no_host) {
        return {.kind = Kind::Invalid, .target = message.target};
    }
    return message;
}

// The Ethernet address in the options. False if they are malformed. Later options of the same type win.
bool read_options(ByteView options, uint8_t wanted, std::optional<MacAddr>& mac) noexcept {
    constexpr size_t kUnit = sizeof(LinkAddressOption);
    while (!options.empty()) {
        if (options.size() < kUnit) {
            return false;
        }
        const auto option = load<LinkAddressOption>(options.data());
        const size_t bytes = size_t{option.units} * kUnit;
        if (bytes == 0 || bytes > options.size()) {
            return false;
        }
        if (option.type == wanted && option.units == 1) {
            mac = option.mac;
        }
        options = options.subspan(bytes);
    }
    return true;
}

LinkMessage read_solicitation(LinkMessage message, const IpAddr& destination, bool has_option) noexcept {
    const bool is_to_group = destination == solicited_node_group(message.target);
    if (message.sender.is_unspecified()) {
        message.kind = is_to_group && !has_option ? Kind::Probe : Kind::Invalid;
    } else if (!is_to_group && destination != message.target) {
        message.kind = Kind::Invalid;
    } else {
        message.kind = message.sender == message.target ? Kind::Claim : Kind::Query;
    }
    return message;
}

LinkMessage read_neighbour_message(ByteView frame, const Parsed& parsed) noexcept {
    const size_t end = size_t{parsed.l3_offset} + parsed.l3_length;
    const ByteView message = frame.first(end).subspan(parsed.l4_offset);
    if (message.empty() ||
        (message[0] != NeighbourMessage::kSolicitation && message[0] != NeighbourMessage::kAdvertisement)) {
        return {};
    }
    if (message.size() < sizeof(NeighbourMessage)) {
        return {.kind = Kind::Invalid, .target = parsed.key.destination};
    }
    const auto header = load<NeighbourMessage>(message.data());
    const IpAddr target = IpAddr::v6(header.target);
    if (target.is_v4()) {
        return {};  // an IPv4-mapped address would be equal to an IPv4 address
    }
    const bool is_solicitation = header.icmp.type == NeighbourMessage::kSolicitation;
    std::optional<MacAddr> mac;
    if (parsed.ttl != kLinkHopLimit || header.icmp.code != 0 || target.is_multicast() ||
        !read_options(message.subspan(sizeof header),
                      is_solicitation ? LinkAddressOption::kSource : LinkAddressOption::kTarget, mac) ||
        !has_valid_icmp_checksum(frame, parsed)) {
        return {.kind = Kind::Invalid, .target = target};
    }
    LinkMessage read{.kind = Kind::Claim,
                     .target = target,
                     .sender = parsed.key.source,
                     .sender_mac = mac.value_or(load<EthernetHeader>(frame.data()).source)};
    if (is_solicitation) {
        read = read_solicitation(read, parsed.key.destination, mac.has_value());
    }
    return read.kind != Kind::Invalid && is_host_mac(read.sender_mac)
               ? read
               : LinkMessage{.kind = Kind::Invalid, .target = target};
}

}  // namespace

LinkMessage read_link_message(ByteView frame, const Parsed& parsed) noexcept {
    if (parsed.kind == PacketKind::Other) {
        const bool is_arp =
            frame.size() >= sizeof(EthernetHeader) && ether_type(frame.data()) == kEtherTypeArp;
        return is_arp ? read_arp(frame) : LinkMessage();
    }
    const bool is_icmpv6 =
        parsed.kind == PacketKind::Ip && parsed.family == IpFamily::V6 && parsed.ip_protocol == kProtoIcmpv6;
    return is_icmpv6 ? read_neighbour_message(frame, parsed) : LinkMessage();
}

IpAddr solicited_node_group(const IpAddr& address) noexcept {
    const auto& bytes = address.bytes();
    return IpAddr::v6({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, bytes[13], bytes[14], bytes[15]});
}

}  // namespace penstock::packet
