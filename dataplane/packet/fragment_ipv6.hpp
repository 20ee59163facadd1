// Cutting an IPv6 packet that came as IPv4, whose sender lets routers cut it (RFC 7915, 4): it has a fragment header right behind its IPv6
// header already, so that the pieces are those of its datagram. Nobody else may cut IPv6 on its way (RFC 8200, 5). The shape is that of
// fragment_ipv4.hpp: only the plan is made here.
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
    uint16_t payload_at = 0;  // in the packet, from its header's first byte
    uint16_t payload_bytes = 0;
    [[nodiscard]] constexpr uint16_t bytes() const noexcept {
        return static_cast<uint16_t>(header_bytes + payload_bytes);
    }
};

// The fragments of one packet, one after the other. The headers are copied, so a caller may write the first fragment over the packet
// itself, if it comes last.
class Ipv6Fragments {
 public:
    // `packet` begins with its IPv6 header, holds all that it says, and exceeds `mtu`. Empty where it cannot be cut: no fragment header
    // follows its own, the link takes no eight bytes of payload, it would make more than kFragmentsMax, or it is a fragment that ends
    // behind the longest datagram.
    [[nodiscard]] static std::optional<Ipv6Fragments> of(ByteView packet, uint16_t mtu) noexcept;

    [[nodiscard]] uint32_t count() const noexcept { return count_; }
    [[nodiscard]] Ipv6Fragment at(uint32_t number) const noexcept;

 private:
    Ipv6Header header_;
    Ipv6ExtensionHeader fragment_;
    uint16_t most_ = 0;     // bytes of payload that one carries
    uint16_t payload_ = 0;  // of the packet
    uint32_t count_ = 0;
};

}  // namespace penstock::packet
