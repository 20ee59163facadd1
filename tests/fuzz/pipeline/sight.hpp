// SPDX-License-Identifier: Apache-2.0
// What an observer on the wire sees in a frame. This is a second implementation that uses no code of
// dataplane/packet, so that the pipeline is judged independently. Nothing is rejected; a field that cannot be
// read is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/ip.hpp"

namespace penstock::fuzz {

using Frame = std::vector<uint8_t>;

inline constexpr uint8_t kTcp = 6, kUdp = 17, kIcmp = 1, kIcmpv6 = 58, kSctp = 132;
inline constexpr size_t kEtherBytes = 14;

// State of the checksum over a whole transport message. Unknown: the message is a fragment or truncated, or
// its protocol has no checksum here.
enum class L4Sum : uint8_t { Unknown, None, Right, Wrong };

struct Sight {
    bool is_ip = false;  // complete: all fields below are valid
    bool is_v4 = false;
    uint8_t vlan_tags = 0;
    size_t l3 = 0;         // offset of the IP header
    size_t l3_bytes = 0;   // of the IP packet
    size_t l4 = 0;         // offset behind options or extension headers
    uint8_t protocol = 0;  // of the header at l4
    uint8_t ttl = 0;
    bool is_fragment = false;
    bool is_later_fragment = false;
    bool has_fragment_header = false;  // of IPv6, including one of a whole packet (RFC 6946)
    bool has_more = false;             // like fragment_offset: of a fragment
    uint32_t fragment_offset = 0;      // in bytes
    uint32_t datagram_id = 0;          // of a fragment
    bool ip_sum_right = false;         // always true for IPv6, which has none
    IpAddr source, destination;

    [[nodiscard]] size_t l4_bytes() const { return l3 + l3_bytes - l4; }
    // For TCP, UDP and SCTP, if both ports are present.
    [[nodiscard]] bool has_ports(const Frame& frame) const;
};

[[nodiscard]] Sight look(const Frame& frame);
// The frame without its leading tags that name no VLAN, at most two: the untagged frame that it is equivalent
// to.
[[nodiscard]] Frame without_priorities(Frame frame);
[[nodiscard]] bool has_priorities(const Frame& frame);
[[nodiscard]] uint16_t word_at(const Frame& frame, size_t at);
void set_word(Frame& frame, size_t at, uint16_t value);
[[nodiscard]] L4Sum l4_sum(const Frame& frame, const Sight& sight);
// The packet that an ICMP or ICMPv6 error quotes, as a frame of its own, as far as it is quoted; empty for
// anything else.
[[nodiscard]] Frame quoted_by(const Frame& frame, const Sight& sight);
[[nodiscard]] bool is_icmp_error(const Frame& frame, const Sight& sight);
// Corrects the checksums of the IPv4 header and of the transport, as far as possible.
void set_right_sums(Frame& frame);

}  // namespace penstock::fuzz
