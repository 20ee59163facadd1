// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/parse.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <type_traits>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/common_packet.hpp"
#include "dataplane/packet/parse_any.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

using detail::kL3Offset;
using detail::store_tail;

// Indexed by an address's first byte: whether the address may be other than an ordinary unicast one. IPv4: 0,
// 127, and 224 and above. IPv6: ::/8, which contains loopback, the unspecified and the mapped addresses;
// fe00::/8, which contains the link-local ones; multicast.
template <IpFamily kFamily>
constexpr std::array<uint8_t, 256> kMayBeSpecial = [] {
    std::array<uint8_t, 256> special{};
    const size_t from = kFamily == IpFamily::V4 ? 224 : 0xfe;
    for (size_t byte = 0; byte < special.size(); ++byte) {
        special[byte] = byte == 0 || byte >= from || (kFamily == IpFamily::V4 && byte == 127);
    }
    return special;
}();

// Verifies the checksum of an IPv4 header without options, in two and a half 64-bit words. A carry out of 64
// bits is added again as 1.
PENSTOCK_ALWAYS_INLINE bool has_valid_checksum(const uint8_t* ip_at) noexcept {
    const auto first = load<uint64_t>(ip_at), last = uint64_t{load<uint32_t>(ip_at + 16)};
    uint64_t sum = first + load<uint64_t>(ip_at + 8);
    sum += sum < first;
    sum += last;
    sum += sum < last;
    return detail::fold(sum) == 0xffff;
}

// Fills `out` if `frame` is a common packet of the family in its Ethernet type. Otherwise the content of
// `out` is not usable.
template <IpFamily kFamily>
PENSTOCK_ALWAYS_INLINE bool parse_common(ByteView frame, Parsed& out,
                                         [[maybe_unused]] IpChecksum ip_checksum) noexcept {
    using Header = std::conditional_t<kFamily == IpFamily::V4, Ipv4Header, Ipv6Header>;
    constexpr uint32_t kL4Offset = kL3Offset + sizeof(Header);
    const uint8_t* const ip_at = frame.data() + kL3Offset;
    const uint8_t* const l4_at = frame.data() + kL4Offset;
    if (frame.size() < kL4Offset + sizeof(UdpHeader)) [[unlikely]] {
        return false;
    }
    uint32_t l3_length = 0;
    uint32_t protocol = 0;
    uint32_t ttl = 0;
    if constexpr (kFamily == IpFamily::V4) {
        constexpr uint16_t kFragmentBits =
            Be16::from_host(Ipv4Header::kMoreFragments | Ipv4Header::kOffsetMask).raw();
        if (ip_at[0] != 0x45 || (load<uint16_t>(ip_at + offsetof(Ipv4Header, flags_and_offset)) &
                                 kFragmentBits) != 0) [[unlikely]] {
            return false;
        }
        if (ip_checksum == IpChecksum::Verify && !has_valid_checksum(ip_at)) [[unlikely]] {
            return false;
        }
        l3_length = load<Be16>(ip_at + offsetof(Ipv4Header, total_length)).host();
        protocol = ip_at[offsetof(Ipv4Header, protocol)];
        ttl = ip_at[offsetof(Ipv4Header, ttl)];
        const auto source = load<Be32>(ip_at + offsetof(Ipv4Header, source));
        const auto destination = load<Be32>(ip_at + offsetof(Ipv4Header, destination));
        if (source == destination) [[unlikely]] {
            return false;
        }
        out.key.source = IpAddr::v4(source);
        out.key.destination = IpAddr::v4(destination);
    } else {
        if (ip_at[0] >> 4 != 6) [[unlikely]] {
            return false;
        }
        l3_length = sizeof(Ipv6Header) + load<Be16>(ip_at + offsetof(Ipv6Header, payload_length)).host();
        protocol = ip_at[offsetof(Ipv6Header, next_header)];
        ttl = ip_at[offsetof(Ipv6Header, hop_limit)];
        // Word by word: GCC 12 would copy whole addresses through the stack.
        constexpr size_t kSource = offsetof(Ipv6Header, source),
                         kDestination = offsetof(Ipv6Header, destination);
        const auto source_high = load<uint64_t>(ip_at + kSource),
                   source_low = load<uint64_t>(ip_at + kSource + 8);
        const auto destination_high = load<uint64_t>(ip_at + kDestination),
                   destination_low = load<uint64_t>(ip_at + kDestination + 8);
        if (source_low == destination_low && source_high == destination_high) [[unlikely]] {
            return false;
        }
        store(&out.key.source, std::array{source_high, source_low});
        store(&out.key.destination, std::array{destination_high, destination_low});
    }
    if ((kMayBeSpecial<kFamily>[ip_at[offsetof(Header, source)]] |
         kMayBeSpecial<kFamily>[ip_at[offsetof(Header, destination)]]) != 0) [[unlikely]] {
        return false;
    }
    if ((frame[0] & 1) != 0) [[unlikely]] {
        return false;  // multicast Ethernet address
    }
    const uint32_t end = kL3Offset + l3_length;
    if (end > frame.size()) [[unlikely]] {
        return false;
    }

    uint32_t payload_offset = 0;
    uint32_t tcp_flags = 0;
    if (protocol == static_cast<uint8_t>(Protocol::Tcp)) {
        if (end < kL4Offset + sizeof(TcpHeader)) [[unlikely]] {
            return false;
        }
        const uint32_t header_bytes = (uint32_t{l4_at[offsetof(TcpHeader, words_and_reserved)]} >> 2) & 0x3c;
        payload_offset = kL4Offset + header_bytes;
        tcp_flags = l4_at[offsetof(TcpHeader, flags)];
        if (header_bytes < sizeof(TcpHeader) || payload_offset > end) [[unlikely]] {
            return false;
        }
    } else {
        const uint32_t datagram_bytes = load<Be16>(l4_at + offsetof(UdpHeader, length)).host();
        payload_offset = kL4Offset + sizeof(UdpHeader);
        if (protocol != static_cast<uint8_t>(Protocol::Udp) || datagram_bytes < sizeof(UdpHeader) ||
            kL4Offset + datagram_bytes > end ||
            (kFamily == IpFamily::V6 && load<Be16>(l4_at + offsetof(UdpHeader, checksum)).raw() == 0))
            [[unlikely]] {
            return false;
        }
    }
    const uint32_t ports = load<Be32>(l4_at).host();  // source, destination
    if (static_cast<uint16_t>(ports) == 0 || ports >> 16 == 0) [[unlikely]] {
        return false;
    }
    constexpr uint32_t kKindAndFamily =
        static_cast<uint32_t>(PacketKind::Flow) | static_cast<uint32_t>(kFamily) << 8;
    store_tail(out, std::rotl(ports, 16), protocol, kKindAndFamily | ttl << 16, kL3Offset | kL4Offset << 16,
               payload_offset, l3_length, tcp_flags);
    return true;
}

}  // namespace

ParseResult parse(ByteView frame, Parsed& out, IpChecksum ip_checksum) noexcept {
    PENSTOCK_ASSERT(frame.size() <= 0xffff);
    // Shorter than a common packet of any family.
    if (frame.size() >= kL3Offset + sizeof(Ipv4Header) + sizeof(UdpHeader)) [[likely]] {
        const auto type = load<Be16>(frame.data() + offsetof(EthernetHeader, type));
        if (type == Be16::from_host(kEtherTypeIpv4)) [[likely]] {
            if (parse_common<IpFamily::V4>(frame, out, ip_checksum)) [[likely]] {
                return {};
            }
        } else if (type == Be16::from_host(kEtherTypeIpv6) &&
                   parse_common<IpFamily::V6>(frame, out, ip_checksum)) {
            return {};
        }
    }
    return parse_any(frame, out, ip_checksum);
}

}  // namespace penstock::packet
