// SPDX-License-Identifier: Apache-2.0
#include "tests/support/soft_nic/frame_fields.hpp"

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_thash.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace penstock::test {
namespace {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpv6Bytes = 40;

uint16_t be16(std::span<const uint8_t> bytes, size_t at) {
    return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}
uint32_t be32(std::span<const uint8_t> bytes, size_t at) {
    return uint32_t{be16(bytes, at)} << 16 | be16(bytes, at + 2);
}

void read_ipv4(FrameFields& fields, std::span<const uint8_t> packet) {
    if (packet.size() < 20 || packet[0] >> 4 != 4) {
        return;
    }
    const size_t header = (packet[0] & 15u) * 4;
    const size_t length = be16(packet, 2);
    if (header < 20 || length < header || length > packet.size()) {
        return;
    }
    fields.ip_version = 4;
    fields.l3 = packet.first(length);
    fields.fragment_word = be16(packet, 6);
    fields.is_fragment = (fields.fragment_word & 0x3fff) != 0;
    fields.ip_protocol = packet[9];
    if (!fields.is_fragment) {
        fields.l4 = fields.l3.subspan(header);
    }
}

void read_ipv6(FrameFields& fields, std::span<const uint8_t> packet) {
    if (packet.size() < kIpv6Bytes || packet[0] >> 4 != 6) {
        return;
    }
    const size_t length = kIpv6Bytes + be16(packet, 4);
    if (length > packet.size()) {
        return;
    }
    fields.ip_version = 6;
    fields.l3 = packet.first(length);
    fields.ip_protocol = packet[6];
    fields.is_fragment = fields.ip_protocol == 44;
    if (!fields.is_fragment) {
        fields.l4 = fields.l3.subspan(kIpv6Bytes);
    }
}

bool covers(uint64_t rss_types, uint64_t one) {
    return (rss_types & one) != 0;
}

}  // namespace

FrameFields read_fields(std::span<const uint8_t> frame) {
    FrameFields fields{.frame = frame};
    if (frame.size() < kEthernetBytes) {
        return fields;
    }
    size_t at = kEthernetBytes;
    fields.ether_type = be16(frame, 12);
    if (fields.ether_type == RTE_ETHER_TYPE_VLAN && frame.size() >= kEthernetBytes + 4) {
        fields.vlan_tci = be16(frame, 14);
        fields.ether_type = be16(frame, 16);
        at += 4;
    }
    if (fields.ether_type == RTE_ETHER_TYPE_IPV4) {
        read_ipv4(fields, frame.subspan(at));
    } else if (fields.ether_type == RTE_ETHER_TYPE_IPV6) {
        read_ipv6(fields, frame.subspan(at));
    }
    const size_t needed = fields.ip_protocol == 6 ? 20 : 8;
    if ((fields.ip_protocol != 6 && fields.ip_protocol != 17) || fields.l4.size() < needed) {
        fields.l4 = {};
    }
    return fields;
}

std::optional<uint32_t> rss_hash(const FrameFields& fields, uint64_t rss_types,
                                 std::span<const uint8_t> key) {
    if (fields.ip_version == 0) {
        return std::nullopt;
    }
    const bool is_v4 = fields.ip_version == 4;
    const uint64_t with_ports =
        fields.is_tcp()   ? (is_v4 ? RTE_ETH_RSS_NONFRAG_IPV4_TCP : RTE_ETH_RSS_NONFRAG_IPV6_TCP)
        : fields.is_udp() ? (is_v4 ? RTE_ETH_RSS_NONFRAG_IPV4_UDP : RTE_ETH_RSS_NONFRAG_IPV6_UDP)
                          : 0;
    const uint64_t addresses =
        is_v4 ? RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER
              : RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER;
    const bool by_ports = covers(rss_types, with_ports);
    if (!by_ports && !covers(rss_types, addresses)) {
        return std::nullopt;
    }
    // Source, destination, ports: 32-bit words in host order, as rte_softrss requires.
    std::array<uint32_t, 9> words{};
    uint32_t count = 0;
    const size_t first = is_v4 ? 12 : 8;
    for (size_t at = first; at < first + (is_v4 ? 8 : 32); at += 4) {
        words[count++] = be32(fields.l3, at);
    }
    if (by_ports) {
        words[count++] = be32(fields.l4, 0);
    }
    std::array<uint32_t, 16> aligned_key{};
    std::memcpy(aligned_key.data(), key.data(), std::min(key.size(), sizeof aligned_key));
    return rte_softrss(words.data(), count, reinterpret_cast<const uint8_t*>(aligned_key.data()));
}

uint64_t checksum_flags(const FrameFields& fields) {
    uint64_t flags = 0;
    if (fields.ip_version == 4) {
        const auto* ip = reinterpret_cast<const rte_ipv4_hdr*>(fields.l3.data());
        const size_t header = rte_ipv4_hdr_len(ip);
        flags |=
            rte_raw_cksum(ip, header) == 0xffff ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : RTE_MBUF_F_RX_IP_CKSUM_BAD;
    }
    if (fields.l4.empty()) {
        return flags;
    }
    if (fields.is_udp() && fields.ip_version == 4 && be16(fields.l4, 6) == 0) {
        return flags | RTE_MBUF_F_RX_L4_CKSUM_GOOD;  // no checksum was sent
    }
    const bool good =
        fields.ip_version == 4
            ? rte_ipv4_udptcp_cksum_verify(reinterpret_cast<const rte_ipv4_hdr*>(fields.l3.data()),
                                           fields.l4.data()) == 0
            : rte_ipv6_udptcp_cksum_verify(reinterpret_cast<const rte_ipv6_hdr*>(fields.l3.data()),
                                           fields.l4.data()) == 0;
    return flags | (good ? RTE_MBUF_F_RX_L4_CKSUM_GOOD : RTE_MBUF_F_RX_L4_CKSUM_BAD);
}

}  // namespace penstock::test
