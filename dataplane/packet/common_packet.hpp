// SPDX-License-Identifier: Apache-2.0
// Common packets: whole, TCP or UDP, untagged, without IP options or extension headers. parse.hpp recognizes
// and validates them. A frame that it has accepted is read again here, without validation, by the worker that
// gets it through a handoff ring.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

namespace detail {

inline constexpr uint16_t kL3Offset = sizeof(EthernetHeader);

// Writes the part of a Parsed behind the addresses in as few words as possible: GCC 12 does not merge stores
// of single members.
PENSTOCK_ALWAYS_INLINE void store_tail(Parsed& out, uint32_t ports, uint32_t protocol,
                                       uint32_t kind_family_ttl, uint32_t l3_and_l4_offset,
                                       uint32_t payload_offset, uint32_t l3_length,
                                       uint32_t tcp_flags) noexcept {
    uint8_t* const tail = reinterpret_cast<uint8_t*>(&out) + 32;
    store(tail, ports);
    store(tail + 4, protocol);  // and FlowKey::zero
    store(tail + 8, kind_family_ttl | protocol << 24);
    store(tail + 12, l3_and_l4_offset);
    store(tail + 16, static_cast<uint16_t>(payload_offset));
    store(tail + 18, static_cast<uint16_t>(l3_length));
    store(tail + 20, tcp_flags);  // clears destination_is_multicast_mac, sctp_event and the fragment bit too
}
static_assert(offsetof(FlowKey, source_port) == 32 && offsetof(FlowKey, destination_port) == 34 &&
              offsetof(FlowKey, protocol) == 36 && offsetof(Parsed, key) == 0 &&
              offsetof(Parsed, kind) == 40 && offsetof(Parsed, family) == 41 && offsetof(Parsed, ttl) == 42 &&
              offsetof(Parsed, ip_protocol) == 43 && offsetof(Parsed, l3_offset) == 44 &&
              offsetof(Parsed, l4_offset) == 46 && offsetof(Parsed, payload_offset) == 48 &&
              offsetof(Parsed, l3_length) == 50 && offsetof(Parsed, tcp_flags) == 52 &&
              offsetof(Parsed, destination_is_multicast_mac) == 53 && offsetof(Parsed, sctp_event) == 54 &&
              sizeof(Parsed) == 56);

// The members of a Parsed from `kind` to `l4_offset`, without ttl and ip_protocol.
inline constexpr uint64_t kShapeMask = 0xffff'ffff'0000'ffff;
template <IpFamily kFamily>
inline constexpr uint64_t kCommonShape =
    static_cast<uint64_t>(PacketKind::Flow) | static_cast<uint64_t>(kFamily) << 8 |
    uint64_t{kL3Offset} << 32 |
    (kL3Offset + (kFamily == IpFamily::V4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header))) << 48;
static_assert(std::endian::native == std::endian::little);

template <IpFamily kFamily>
PENSTOCK_ALWAYS_INLINE void read_common(const uint8_t* frame, Parsed& out) noexcept {
    using Header = std::conditional_t<kFamily == IpFamily::V4, Ipv4Header, Ipv6Header>;
    constexpr uint32_t kL4Offset = kL3Offset + sizeof(Header);
    const uint8_t* const ip_at = frame + kL3Offset;
    const uint8_t* const l4_at = frame + kL4Offset;
    uint32_t l3_length = 0;
    uint32_t protocol = 0;
    uint32_t ttl = 0;
    if constexpr (kFamily == IpFamily::V4) {
        l3_length = load<Be16>(ip_at + offsetof(Ipv4Header, total_length)).host();
        protocol = ip_at[offsetof(Ipv4Header, protocol)];
        ttl = ip_at[offsetof(Ipv4Header, ttl)];
        out.key.source = IpAddr::v4(load<Be32>(ip_at + offsetof(Ipv4Header, source)));
        out.key.destination = IpAddr::v4(load<Be32>(ip_at + offsetof(Ipv4Header, destination)));
    } else {
        l3_length = sizeof(Ipv6Header) + load<Be16>(ip_at + offsetof(Ipv6Header, payload_length)).host();
        protocol = ip_at[offsetof(Ipv6Header, next_header)];
        ttl = ip_at[offsetof(Ipv6Header, hop_limit)];
        static_assert(offsetof(Ipv6Header, destination) == offsetof(Ipv6Header, source) + sizeof(IpAddr));
        const auto addresses = load<std::array<uint64_t, 4>>(ip_at + offsetof(Ipv6Header, source));
        store(&out.key.source, addresses);  // and the destination
    }
    uint32_t payload_offset = kL4Offset + sizeof(UdpHeader);
    uint32_t tcp_flags = 0;
    if (protocol == static_cast<uint8_t>(Protocol::Tcp)) {
        payload_offset = kL4Offset + ((uint32_t{l4_at[offsetof(TcpHeader, words_and_reserved)]} >> 2) & 0x3c);
        tcp_flags = l4_at[offsetof(TcpHeader, flags)];
    }
    const uint32_t ports = load<Be32>(l4_at).host();  // source, destination
    store_tail(out, std::rotl(ports, 16), protocol,
               static_cast<uint32_t>(PacketKind::Flow) | static_cast<uint32_t>(kFamily) << 8 | ttl << 16,
               kL3Offset | kL4Offset << 16, payload_offset, l3_length, tcp_flags);
}

}  // namespace detail

// Whether the packet that parse() has accepted as `parsed` is a common one.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE bool is_common(const Parsed& parsed) noexcept {
    const uint64_t shape = load<uint64_t>(&parsed.kind) & detail::kShapeMask;
    return (shape == detail::kCommonShape<IpFamily::V4> || shape == detail::kCommonShape<IpFamily::V6>) &&
           parsed.key.protocol != Protocol::Sctp && !parsed.is_fragment &&
           !parsed.destination_is_multicast_mac;
}

// Fills `out` as parse() did when it accepted this frame and is_common() was true. The frame must not have
// changed since then.
PENSTOCK_ALWAYS_INLINE void read_common(const uint8_t* frame, Parsed& out) noexcept {
    if (load<Be16>(frame + offsetof(EthernetHeader, type)) == Be16::from_host(kEtherTypeIpv4)) [[likely]] {
        detail::read_common<IpFamily::V4>(frame, out);
    } else {
        detail::read_common<IpFamily::V6>(frame, out);
    }
}

}  // namespace penstock::packet
