// Cutting an IPv4 packet for a link that it does not fit (RFC 791, 2.3 and 3.2). Only the plan is made here: each fragment is a header of
// its own and a piece of the packet's payload, and whoever owns buffers puts them together. A packet that is a fragment itself is cut
// like any other: its pieces keep its place in the datagram, and only the datagram's last one lacks "more fragments".
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dataplane/base/bytes.hpp"

namespace penstock::packet {

// A packet that would need more is not cut. 44 fragments carry the longest packet over Ethernet; and with the smallest MTU that a link may
// have (68) they carry one of 3,000 bytes, beyond which such a link is better served by an ICMP error.
inline constexpr uint32_t kFragmentsMax = 64;

// An IPv4 header with all its options.
inline constexpr uint16_t kIpv4HeaderBytesMax = 60;

struct Ipv4Fragment {
    std::array<uint8_t, kIpv4HeaderBytesMax> header{};  // complete, with its checksum
    uint16_t header_bytes = 0;
    uint16_t payload_at = 0;  // in the packet, from its header's first byte
    uint16_t payload_bytes = 0;
    [[nodiscard]] constexpr uint16_t bytes() const noexcept {
        return static_cast<uint16_t>(header_bytes + payload_bytes);
    }
};

// The fragments of one packet, one after the other. The header is copied, so a caller may write the first fragment over the packet itself,
// if it comes last.
class Ipv4Fragments {
 public:
    // `packet` begins with its IPv4 header and holds all that the header says (the parser has compared); it exceeds `mtu`. Empty where it
    // cannot be cut: DF forbids it, the link takes no eight bytes of payload, it would make more than kFragmentsMax, or it is a fragment
    // that ends behind the longest datagram.
    [[nodiscard]] static std::optional<Ipv4Fragments> of(ByteView packet, uint16_t mtu) noexcept;

    [[nodiscard]] uint32_t count() const noexcept { return count_; }
    [[nodiscard]] Ipv4Fragment at(uint32_t number) const noexcept;

 private:
    std::array<uint8_t, kIpv4HeaderBytesMax> first_header_{};  // as it came
    std::array<uint8_t, kIpv4HeaderBytesMax>
        later_header_{};  // with the options that each fragment must have
    uint16_t first_header_bytes_ = 0;
    uint16_t later_header_bytes_ = 0;
    uint16_t first_payload_ = 0;  // bytes, as much as fits
    uint16_t later_payload_ = 0;
    uint16_t payload_ = 0;  // of the packet
    uint32_t count_ = 0;
};

}  // namespace penstock::packet
