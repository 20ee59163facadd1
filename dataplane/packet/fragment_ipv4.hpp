// SPDX-License-Identifier: Apache-2.0
// Fragmentation of an IPv4 packet that exceeds a link's MTU (RFC 791, 2.3 and 3.2). Only the plan is made
// here: each fragment is a header of its own and a range of the packet's payload. The owner of the buffers
// assembles them. A packet that is itself a fragment is fragmented like any other: its pieces keep its offset
// in the datagram, and only the last piece of the datagram has "more fragments" clear.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dataplane/base/bytes.hpp"

namespace penstock::packet {

// A packet that would need more fragments is not fragmented. 44 fragments carry the longest packet over
// Ethernet. With the smallest MTU that a link may have (68), 64 fragments carry a packet of 3,000 bytes; for
// longer packets over such a link an ICMP error is the better answer.
inline constexpr uint32_t kFragmentsMax = 64;

// Largest IPv4 header, with options.
inline constexpr uint16_t kIpv4HeaderBytesMax = 60;

struct Ipv4Fragment {
    std::array<uint8_t, kIpv4HeaderBytesMax> header{};  // complete, with its checksum
    uint16_t header_bytes = 0;
    uint16_t payload_at = 0;  // offset in the packet, from its header's first byte
    uint16_t payload_bytes = 0;
    [[nodiscard]] constexpr uint16_t bytes() const noexcept {
        return static_cast<uint16_t>(header_bytes + payload_bytes);
    }
};

// The fragments of one packet, in order. The header is copied, so a caller may write the first fragment over
// the packet itself, if it does so last.
class Ipv4Fragments {
 public:
    // `packet` begins with its IPv4 header, contains all bytes of its total length (checked by the parser),
    // and exceeds `mtu`. Empty if it cannot be fragmented: DF is set, the MTU leaves less than eight bytes of
    // payload, more than kFragmentsMax fragments would be needed, or it is a fragment that ends beyond the
    // longest datagram.
    [[nodiscard]] static std::optional<Ipv4Fragments> of(ByteView packet, uint16_t mtu) noexcept;

    [[nodiscard]] uint32_t count() const noexcept { return count_; }
    [[nodiscard]] Ipv4Fragment at(uint32_t number) const noexcept;

 private:
    std::array<uint8_t, kIpv4HeaderBytesMax> first_header_{};  // as received
    std::array<uint8_t, kIpv4HeaderBytesMax>
        // With the options that every fragment must have.
        later_header_{};
    uint16_t first_header_bytes_ = 0;
    uint16_t later_header_bytes_ = 0;
    uint16_t first_payload_ = 0;  // bytes: the most that fits
    uint16_t later_payload_ = 0;
    uint16_t payload_ = 0;  // of the packet
    uint32_t count_ = 0;
};

}  // namespace penstock::packet
