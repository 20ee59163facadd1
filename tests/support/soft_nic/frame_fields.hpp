// SPDX-License-Identifier: Apache-2.0
// Header fields found by a NIC's parser, and the RSS hash over them by DPDK's rte_softrss. As in hardware,
// fragments have no L4 header, not even the first one; ICMP and packets with an IPv6 extension header are
// hashed by addresses only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace penstock::test {

struct FrameFields {
    std::span<const uint8_t> frame;
    std::optional<uint16_t> vlan_tci;  // of the outermost tag
    uint16_t ether_type = 0;           // after the tag, if there is one
    uint8_t ip_version = 0;            // 4, 6, or 0 for neither
    bool is_fragment = false;
    uint16_t fragment_word = 0;     // IPv4: flags and offset, host order
    uint8_t ip_protocol = 0;        // from the IP header, for fragments too
    std::span<const uint8_t> l3{};  // the packet from its IP header to the end given by its length
    std::span<const uint8_t> l4{};  // TCP and UDP only, no fragments, complete at least up to the ports
    [[nodiscard]] bool is_tcp() const { return !l4.empty() && ip_protocol == 6; }
    [[nodiscard]] bool is_udp() const { return !l4.empty() && ip_protocol == 17; }
};
[[nodiscard]] FrameFields read_fields(std::span<const uint8_t> frame);

// Empty if `rss_types` (RTE_ETH_RSS_*) do not cover the frame. `key`: as configured, 40 bytes or more.
[[nodiscard]] std::optional<uint32_t> rss_hash(const FrameFields& fields, uint64_t rss_types,
                                               std::span<const uint8_t> key);

// RTE_MBUF_F_RX_{IP,L4}_CKSUM_{GOOD,BAD} for the checksums in the frame.
[[nodiscard]] uint64_t checksum_flags(const FrameFields& fields);

}  // namespace penstock::test
