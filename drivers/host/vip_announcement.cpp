// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/vip_announcement.hpp"

#include <net/if_arp.h>
#include <netinet/if_ether.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::drivers {
namespace {

constexpr size_t kFrameMin = 60;  // without the checksum that the NIC adds (IEEE 802.3)

template <typename T>
void append(std::vector<uint8_t>& frame, const T& part) {
    const size_t at = frame.size();
    frame.resize(at + sizeof(part));
    store(frame.data() + at, part);
}

// RFC 826, for IPv4 over Ethernet.
struct ArpPacket {
    Be16 hardware = Be16::from_host(ARPHRD_ETHER);
    Be16 protocol = Be16::from_host(packet::kEtherTypeIpv4);
    uint8_t hardware_bytes = 6, protocol_bytes = 4;
    Be16 operation = Be16::from_host(ARPOP_REQUEST);
    MacAddr sender_mac;
    std::array<uint8_t, 4> sender{};
    MacAddr target_mac;
    std::array<uint8_t, 4> target{};
};
static_assert(sizeof(ArpPacket) == 28);

// RFC 4861, 4.4 and 4.6.1, after the four bytes of type, code and checksum.
struct Advertisement {
    static constexpr uint8_t kType = 136;
    static constexpr uint32_t kOverride = 0x2000'0000;
    static constexpr uint8_t kTargetLinkLayerAddress = 2;
    packet::IcmpHeader icmp;
    std::array<uint8_t, 16> target{};
    uint8_t option = kTargetLinkLayerAddress;
    uint8_t option_units = 1;  // of 8 bytes
    MacAddr mac;
};
static_assert(sizeof(Advertisement) == 32);

}  // namespace

std::vector<uint8_t> announcement_of(const IpAddr& address, const MacAddr& mac) {
    std::vector<uint8_t> frame;
    if (address.is_v4()) {
        append(frame, packet::EthernetHeader{MacAddr{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, mac,
                                             Be16::from_host(ETHERTYPE_ARP)});
        ArpPacket arp;
        arp.sender_mac = mac;
        std::copy_n(address.bytes().begin() + 12, arp.sender.size(), arp.sender.begin());
        arp.target = arp.sender;
        append(frame, arp);
        frame.resize(kFrameMin);
        return frame;
    }
    static constexpr std::array<uint8_t, 16> kAllNodes{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    append(frame, packet::EthernetHeader{MacAddr{{0x33, 0x33, 0, 0, 0, 1}}, mac,
                                         Be16::from_host(packet::kEtherTypeIpv6)});
    packet::Ipv6Header ip;
    ip.payload_length = Be16::from_host(sizeof(Advertisement));
    ip.next_header = IPPROTO_ICMPV6;
    ip.hop_limit = 255;  // receivers drop a lower value as not on-link (RFC 4861, 7.1.2)
    ip.source = address.bytes();
    ip.destination = kAllNodes;
    append(frame, ip);
    Advertisement said;
    said.icmp.type = Advertisement::kType;
    said.icmp.rest = Be32::from_host(Advertisement::kOverride);
    said.target = address.bytes();
    said.mac = mac;
    packet::ChecksumSum sum;
    sum.add(ByteView(reinterpret_cast<const uint8_t*>(&said), sizeof(said)))
        .add_pseudo_header(address, IpAddr::v6(kAllNodes), IPPROTO_ICMPV6, sizeof(said));
    said.icmp.checksum = sum.checksum();
    append(frame, said);
    return frame;
}

}  // namespace penstock::drivers
