// SPDX-License-Identifier: Apache-2.0
// Messages by which the hosts of a link learn the Ethernet address behind an IP address: ARP (RFC 826) and
// neighbour discovery (RFC 4861). Reads the messages that ask for an address or claim one. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

inline constexpr uint16_t kEtherTypeArp = 0x0806;

// RFC 826, for IPv4 over Ethernet.
struct ArpPacket {
    static constexpr uint16_t kEthernet = 1, kRequest = 1, kReply = 2;

    Be16 hardware = Be16::from_host(kEthernet);
    Be16 protocol = Be16::from_host(kEtherTypeIpv4);
    uint8_t hardware_bytes = 6, protocol_bytes = 4;
    Be16 operation = Be16::from_host(kRequest);
    MacAddr sender_mac;
    std::array<uint8_t, 4> sender{};
    MacAddr target_mac;
    std::array<uint8_t, 4> target{};
};
static_assert(sizeof(ArpPacket) == 28 && offsetof(ArpPacket, target) == 24);

// A neighbour solicitation or advertisement (RFC 4861, 4.3 and 4.4). Options follow.
struct NeighbourMessage {
    static constexpr uint8_t kSolicitation = 135, kAdvertisement = 136;
    static constexpr uint32_t kSolicited = 0x4000'0000, kOverride = 0x2000'0000;

    IcmpHeader icmp;  // `rest`: the flags of an advertisement
    std::array<uint8_t, 16> target{};
};
static_assert(sizeof(NeighbourMessage) == 24 && offsetof(NeighbourMessage, target) == 8);

// The option of these messages that has an Ethernet address (RFC 4861, 4.6.1; RFC 2464, 6).
struct LinkAddressOption {
    static constexpr uint8_t kSource = 1, kTarget = 2;

    uint8_t type = kTarget;
    uint8_t units = 1;  // of 8 bytes
    MacAddr mac;
};
static_assert(sizeof(LinkAddressOption) == 8);

// Hop limit of neighbour discovery: a router would have lowered it (RFC 4861, 3.1).
inline constexpr uint8_t kLinkHopLimit = 255;

struct LinkMessage {
    enum class Kind : uint8_t {
        None,  // any other frame
        // A host asks for the Ethernet address of `target`.
        Query,
        // The same from a host without an address, which is about to use `target` itself (RFC 5227, 2.1.1;
        // RFC 4862, 5.4.2).
        Probe,
        // A host announces that it has `target`.
        Claim,
        // About `target`, but against a rule of its RFC. Must not be answered.
        Invalid,
    };
    Kind kind = Kind::None;
    IpAddr target;
    IpAddr sender;       // Query: the address of the host that asks
    MacAddr sender_mac;  // of the host that sent the message; not of an Invalid one
    bool operator==(const LinkMessage&) const = default;
};

// For a frame that the parser has accepted as `parsed`. The rules of an Invalid message:
//   ARP   the sender's Ethernet address is zero or multicast, or its IP address is no host's (RFC 1812,
//         3.3.2)
//   ND    RFC 4861, 7.1.1 and 7.1.2: hop limit 255, code 0, a valid checksum, a target that is not
//         multicast, options that fill the message, none of them empty. A solicitation goes to its target or
//         to the target's solicited-node group. One from :: goes to that group and has no Ethernet address of
//         its sender.
// A solicitation or advertisement that is too short to name a target is Invalid about its destination. One
// behind extension headers is None if it is multicast: the parser does not walk the headers of multicast.
[[nodiscard]] LinkMessage read_link_message(ByteView frame, const Parsed& parsed) noexcept;

// The multicast group of all addresses with the same last three bytes (RFC 4291, 2.7.1).
[[nodiscard]] IpAddr solicited_node_group(const IpAddr& address) noexcept;

}  // namespace penstock::packet
