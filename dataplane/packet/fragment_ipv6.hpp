// SPDX-License-Identifier: Apache-2.0
// Fragmentation of an IPv6 packet that arrived as IPv4 with DF clear (RFC 7915, 4). It already has a fragment
// header directly behind its IPv6 header, so the pieces belong to its datagram. No other IPv6 packet may be
// fragmented by a router (RFC 8200, 5). As in fragment_ipv4.hpp, only the plan is made here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/fragment_ipv4.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

struct Ipv6Fragment {
    static constexpr uint16_t header_bytes = sizeof(Ipv6Header) + sizeof(Ipv6ExtensionHeader);
    std::array<uint8_t, header_bytes> header{};
    uint16_t payload_at = 0;  // offset in the packet, from its header's first byte
    uint16_t payload_bytes = 0;
    [[nodiscard]] constexpr uint16_t bytes() const noexcept {
        return static_cast<uint16_t>(header_bytes + payload_bytes);
    }
};

// The fragments of one packet, in order. The headers are copied, so a caller may write the first fragment
// over the packet itself, if it does so last.
class Ipv6Fragments {
 public:
    // `packet` begins with its IPv6 header, contains all bytes of its length, and exceeds `mtu`. Empty if it
    // cannot be fragmented: no fragment header follows the IPv6 header, the MTU leaves less than eight bytes
    // of payload, more than kFragmentsMax fragments would be needed, or it is a fragment that ends beyond the
    // longest datagram.
    [[nodiscard]] static std::optional<Ipv6Fragments> of(ByteView packet, uint16_t mtu) noexcept;

    [[nodiscard]] uint32_t count() const noexcept { return count_; }
    [[nodiscard]] Ipv6Fragment at(uint32_t number) const noexcept;

 private:
    Ipv6Header header_;
    Ipv6ExtensionHeader fragment_;
    uint16_t most_ = 0;     // payload bytes per fragment
    uint16_t payload_ = 0;  // of the packet
    uint32_t count_ = 0;
};

}  // namespace penstock::packet
