// What a bystander on the wire sees in a frame: read here anew, without a line of dataplane/packet, so that the pipeline is judged by
// somebody else's eyes. Nothing is refused; what cannot be read is not there.
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

// The sum over a whole transport message. Unknown: of a fragment, cut off, or of a protocol that has none here.
enum class L4Sum : uint8_t { Unknown, None, Right, Wrong };

struct Sight {
    bool is_ip = false;  // whole: all fields below are valid
    bool is_v4 = false;
    uint8_t vlan_tags = 0;
    size_t l3 = 0;         // where the IP header begins
    size_t l3_bytes = 0;   // of the IP packet
    size_t l4 = 0;         // behind options or extension headers
    uint8_t protocol = 0;  // of what begins there
    uint8_t ttl = 0;
    bool is_fragment = false;
    bool is_later_fragment = false;
    bool has_fragment_header = false;  // of IPv6, if only to say that this is all (RFC 6946)
    bool has_more = false;             // as fragment_offset: of a fragment
    uint32_t fragment_offset = 0;      // in bytes
    uint32_t datagram_id = 0;          // of a fragment
    bool ip_sum_right = false;         // true of IPv6, which has none
    IpAddr source, destination;

    [[nodiscard]] size_t l4_bytes() const { return l3 + l3_bytes - l4; }
    // Of TCP, UDP and SCTP, where both are there.
    [[nodiscard]] bool has_ports(const Frame& frame) const;
};

[[nodiscard]] Sight look(const Frame& frame);
// The frame without the tags in front of it that name no VLAN, at most two: the untagged frame that it stands for.
[[nodiscard]] Frame without_priorities(Frame frame);
[[nodiscard]] bool has_priorities(const Frame& frame);
[[nodiscard]] uint16_t word_at(const Frame& frame, size_t at);
void set_word(Frame& frame, size_t at, uint16_t value);
[[nodiscard]] L4Sum l4_sum(const Frame& frame, const Sight& sight);
// The packet that an ICMP or ICMPv6 error quotes, as if it had come in a frame of its own, as far as it is quoted; empty for anything else.
[[nodiscard]] Frame quoted_by(const Frame& frame, const Sight& sight);
[[nodiscard]] bool is_icmp_error(const Frame& frame, const Sight& sight);
// Makes the IPv4 header's and the transport's sums right, as far as they can be.
void set_right_sums(Frame& frame);

}  // namespace penstock::fuzz
