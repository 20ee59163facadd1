// SPDX-License-Identifier: Apache-2.0
// Translation of a packet: new addresses and ports, TTL minus one, and incremental checksum updates. The
// payload is never read, and a wrong checksum stays wrong, so that the receiver detects it.
//
// The checksum difference is the same for every packet of a flow. A connection stores it folded into two
// words. On the fast path the new values overwrite the old ones, which are not read again. The opposite
// direction uses the inverses.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/sctp.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

// The 5-tuple that leaves the gateway in place of the one that arrived. Both addresses are of one family. It
// is the packet's own family, unless only translation_deltas() is called (other_family.hpp).
struct Rewrite {
    IpAddr source;
    IpAddr destination;
    L4Port source_port = 0;
    L4Port destination_port = 0;
    constexpr bool operator==(const Rewrite&) const = default;
};

// How a translation changes the two checksums of each packet of a flow. The addresses are part of both: TCP
// and UDP include them in a pseudo-header. SCTP does not, and the change of its CRC also depends on the
// packet's length (sctp.hpp), so `l4` is unused for SCTP.
struct TranslationDeltas {
    FoldedDelta l4;
    // Of the IPv4 header, TTL excluded. IPv6 has no header checksum; there it is "no change".
    FoldedDelta ip;
    [[nodiscard]] constexpr TranslationDeltas inverse() const noexcept {
        return {l4.inverse(), ip.inverse()};
    }
    constexpr bool operator==(const TranslationDeltas&) const = default;
};

// The change of an IPv4 header's checksum per hop: TTL is the high byte of the word that it shares with the
// protocol.
inline constexpr FoldedDelta kOneHopDelta(ChecksumDelta().replace(Be16::from_host(0x0100),
                                                                  Be16::from_host(0)));

// An address in wire format: Be32 in IPv4, sixteen bytes in IPv6.
template <typename Address>
concept WireAddress = std::is_same_v<Address, Be32> || std::is_same_v<Address, std::array<uint8_t, 16>>;

// The addresses and ports of one packet in wire format.
template <WireAddress Address>
struct WireEndpoints {
    Address source{};
    Address destination{};
    Be16 source_port;
    Be16 destination_port;
};

template <WireAddress Address>
[[nodiscard]] inline TranslationDeltas translation_deltas(const WireEndpoints<Address>& before,
                                                          const WireEndpoints<Address>& after) noexcept {
    ChecksumDelta delta;
    delta.replace(before.source, after.source).replace(before.destination, after.destination);
    TranslationDeltas deltas;
    if constexpr (std::is_same_v<Address, Be32>) {
        deltas.ip = FoldedDelta(delta);
    }
    delta.replace(before.source_port, after.source_port)
        .replace(before.destination_port, after.destination_port);
    deltas.l4 = FoldedDelta(delta);
    return deltas;
}
// The same from a key and its replacement. If the replacement is of the other family, `l4` is the difference
// of the pseudo-headers and `ip` is "no change", because such a packet gets a new IP header.
[[nodiscard]] TranslationDeltas translation_deltas(const FlowKey& before, const Rewrite& after) noexcept;

// Translates the IP header of a Flow or of a later fragment.
template <WireAddress Address>
PENSTOCK_ALWAYS_INLINE void translate_ip(uint8_t* frame, const Parsed& parsed, const Address& source,
                                         const Address& destination,
                                         [[maybe_unused]] FoldedDelta ip) noexcept {
    PENSTOCK_ASSERT((parsed.kind == PacketKind::Flow || parsed.kind == PacketKind::Fragment) &&
                    parsed.ttl > 1);
    constexpr bool kIsV4 = std::is_same_v<Address, Be32>;
    PENSTOCK_ASSERT((parsed.family == IpFamily::V4) == kIsV4);

    uint8_t* const ip_at = frame + parsed.l3_offset;
    if constexpr (kIsV4) {
        uint8_t* const sum_at = ip_at + offsetof(Ipv4Header, checksum);
        ip_at[offsetof(Ipv4Header, ttl)] = static_cast<uint8_t>(parsed.ttl - 1);
        store(sum_at, (ip + kOneHopDelta).applied_to(load<Be16>(sum_at)));
        store(ip_at + offsetof(Ipv4Header, source), source);
        store(ip_at + offsetof(Ipv4Header, destination), destination);
    } else {
        ip_at[offsetof(Ipv6Header, hop_limit)] = static_cast<uint8_t>(parsed.ttl - 1);
        store(ip_at + offsetof(Ipv6Header, source), source);
        store(ip_at + offsetof(Ipv6Header, destination), destination);
    }
}

// Decrements the TTL or hop limit of any IP packet, above 1, and changes nothing else.
inline void pass_hop(uint8_t* frame, const Parsed& parsed) noexcept {
    PENSTOCK_ASSERT(parsed.ttl > 1);
    uint8_t* const ip_at = frame + parsed.l3_offset;
    if (parsed.family == IpFamily::V4) {
        uint8_t* const sum_at = ip_at + offsetof(Ipv4Header, checksum);
        ip_at[offsetof(Ipv4Header, ttl)] = static_cast<uint8_t>(parsed.ttl - 1);
        store(sum_at, kOneHopDelta.applied_to(load<Be16>(sum_at)));
    } else {
        ip_at[offsetof(Ipv6Header, hop_limit)] = static_cast<uint8_t>(parsed.ttl - 1);
    }
}

// Writes the ports of the TCP or UDP header at `l4_at`, and updates its checksum by `l4`, which covers the
// change of the ports and of the addresses.
PENSTOCK_ALWAYS_INLINE void translate_ports(uint8_t* l4_at, Protocol protocol, Be16 source_port,
                                            Be16 destination_port, FoldedDelta l4) noexcept {
    // Both headers begin with the ports.
    static_assert(offsetof(TcpHeader, destination_port) == offsetof(UdpHeader, destination_port));
    store(l4_at, source_port);
    store(l4_at + offsetof(TcpHeader, destination_port), destination_port);
    const bool is_udp = protocol == Protocol::Udp;
    uint8_t* const sum_at = l4_at + (is_udp ? offsetof(UdpHeader, checksum) : offsetof(TcpHeader, checksum));
    const auto sent = load<Be16>(sum_at);
    store(sum_at, is_udp ? udp_checksum_after(sent, l4) : l4.applied_to(sent));
}

// Rewrites the Flow of TCP or UDP in `frame` that `parsed` describes and that is of Address's family: new
// addresses, new ports, TTL or hop limit minus one (the caller has checked that it is above 1, ICMP-006), and
// checksums updated by `l4` and `ip`, which belong to exactly this change (translation_deltas). Flow label,
// traffic class and everything behind the ports are unchanged. Afterwards `parsed` describes the packet that
// arrived, not the one that leaves.
template <WireAddress Address>
PENSTOCK_ALWAYS_INLINE void translate_packet(uint8_t* frame, const Parsed& parsed, const Address& source,
                                             const Address& destination, Be16 source_port,
                                             Be16 destination_port, FoldedDelta l4, FoldedDelta ip) noexcept {
    PENSTOCK_ASSERT(parsed.key.protocol != Protocol::Sctp);
    translate_ip(frame, parsed, source, destination, ip);

    translate_ports(frame + parsed.l4_offset, parsed.key.protocol, source_port, destination_port, l4);
}

// The same for a Flow of SCTP.
template <WireAddress Address>
inline void translate_association(uint8_t* frame, const Parsed& parsed, const Address& source,
                                  const Address& destination, Be16 source_port, Be16 destination_port,
                                  FoldedDelta ip) noexcept {
    PENSTOCK_ASSERT(parsed.key.protocol == Protocol::Sctp);
    translate_ip(frame, parsed, source, destination, ip);
    set_sctp_ports(std::span(frame + parsed.l4_offset, sctp_bytes(parsed)), source_port, destination_port);
}

// Either of them, for either family, from a Rewrite and the values in the frame. For callers that keep no
// deltas.
void apply(std::span<uint8_t> frame, const Parsed& parsed, const Rewrite& rewrite) noexcept;

// Sets the outgoing Ethernet addresses.
void set_ethernet(std::span<uint8_t> frame, const MacAddr& source, const MacAddr& destination) noexcept;

}  // namespace penstock::packet
