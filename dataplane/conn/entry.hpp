// SPDX-License-Identifier: Apache-2.0
// A connection as its table stores it (table.hpp): one unit of a cache line, or two. Plain data; only the
// table's worker writes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/conn/connection.hpp"

namespace penstock::conn {

// The families of a connection's two keys. Mixed: client and endpoint are of different families
// (docs/adr/0029). V6 and Mixed take two units.
enum class KeyFamilies : uint8_t { V4 = 4, V6 = 6, Mixed = 10 };

// One connection as stored in the table. Ports and addresses are stored by Direction, as in the packets that
// arrive in that direction. A packet leaves with those of the other direction, source and destination
// exchanged.
struct alignas(kCacheLine) Entry {
#ifndef PENSTOCK_TEST_TABLE_LAYOUT
    // Odd: live. Even: free or being filled. Each life of an entry has a number that is unique in this table.
    uint32_t generation;
    Protocol protocol;
    // Differs from V4 as long as the pair's second unit holds addresses.
    KeyFamilies families;
    uint8_t state;  // a TcpState, DatagramState or SctpState, by protocol
    uint8_t source_kept : 1;
    uint8_t is_pinned : 1;
    uint8_t snat_index : 6;
    std::array<uint64_t, 2> v4_addresses;  // packet::v4_addresses() of each key; IPv4 only
    std::array<uint32_t, 2> port_pairs;    // packet::port_pair() of each key
    CoarseTime last_seen;
    CoarseTime opened_at;
    ServiceId service;
    BackendId backend;
    uint32_t snat_pool;
    packet::FoldedDelta l4_delta;
    packet::FoldedDelta ip_delta;
    std::array<uint32_t, 2> tags;  // by Direction, as in Connection
#else
    // -Dtable_layout=test: the same fields at other places, in a unit of two cache lines. For tests of an
    // upgrade to another layout and of the way back (docs/adr/0042).
    std::array<uint32_t, 2> tags;
    uint32_t generation;
    uint8_t state;
    uint8_t source_kept : 1;
    uint8_t is_pinned : 1;
    uint8_t snat_index : 6;
    Protocol protocol;
    KeyFamilies families;
    BackendId backend;
    ServiceId service;
    std::array<uint8_t, 40> spare;
    std::array<uint64_t, 2> v4_addresses;
    CoarseTime opened_at;
    CoarseTime last_seen;
    packet::FoldedDelta ip_delta;
    packet::FoldedDelta l4_delta;
    uint32_t snat_pool;
    std::array<uint32_t, 2> port_pairs;
    std::array<uint8_t, 24> more_spare;
#endif

    [[nodiscard]] bool is_tcp() const noexcept { return protocol == Protocol::Tcp; }
    [[nodiscard]] bool is_sctp() const noexcept { return protocol == Protocol::Sctp; }
    // At least one key is IPv6: the connection takes two units, and all four addresses are stored where those
    // of IPv6 are.
    [[nodiscard]] bool is_v6() const noexcept { return families >= KeyFamilies::V6; }
    [[nodiscard]] bool is_mixed() const noexcept { return families == KeyFamilies::Mixed; }
    [[nodiscard]] TcpState tcp_state() const noexcept { return static_cast<TcpState>(state); }
    [[nodiscard]] DatagramState datagram_state() const noexcept { return static_cast<DatagramState>(state); }
    [[nodiscard]] SctpState sctp_state() const noexcept { return static_cast<SctpState>(state); }
    // Source and destination of `direction`. Use v4_ if not is_v6(), v6_ otherwise. An IPv4 address of a
    // mixed connection is in mapped form.
    [[nodiscard]] Be32 v4_source(Direction direction) const noexcept {
        return Be32::from_raw(static_cast<uint32_t>(v4_addresses[static_cast<size_t>(direction)]));
    }
    [[nodiscard]] Be32 v4_destination(Direction direction) const noexcept {
        return Be32::from_raw(static_cast<uint32_t>(v4_addresses[static_cast<size_t>(direction)] >> 32));
    }
    [[nodiscard]] const std::array<uint8_t, 16>& v6_source(Direction direction) const noexcept;
    [[nodiscard]] const std::array<uint8_t, 16>& v6_destination(Direction direction) const noexcept;
    [[nodiscard]] L4Port source_port(Direction direction) const noexcept {
        return static_cast<L4Port>(port_pairs[static_cast<size_t>(direction)]);
    }
    [[nodiscard]] L4Port destination_port(Direction direction) const noexcept {
        return static_cast<L4Port>(port_pairs[static_cast<size_t>(direction)] >> 16);
    }
    // The whole key, unpacked; slower than the accessors above.
    [[nodiscard]] packet::FlowKey key(Direction direction) const noexcept;
};
#ifndef PENSTOCK_TEST_TABLE_LAYOUT
inline constexpr size_t kUnitBytes = kCacheLine;
#else
inline constexpr size_t kUnitBytes = 2 * kCacheLine;
#endif
static_assert(sizeof(Entry) == kUnitBytes && std::is_trivially_copyable_v<Entry> &&
              limits::kSnatAddressesMax <= 1U << 6);
// Table::holds_v4() compares both members by one load of 16 bits.
static_assert(sizeof(Entry::protocol) == 1 && sizeof(Entry::families) == 1 &&
              offsetof(Entry, families) == offsetof(Entry, protocol) + 1);

namespace detail {
// The second unit of an IPv6 or mixed connection: source and destination by direction, in the format of
// IpAddr.
struct alignas(kCacheLine) V6Addresses {
    struct OneWay {
        std::array<uint8_t, 16> source;
        std::array<uint8_t, 16> destination;
    };
#ifdef PENSTOCK_TEST_TABLE_LAYOUT
    std::array<uint8_t, 32> spare{};
#endif
    std::array<OneWay, 2> by_direction;
#ifdef PENSTOCK_TEST_TABLE_LAYOUT
    std::array<uint8_t, 32> more_spare{};
#endif
};
static_assert(sizeof(V6Addresses) == kUnitBytes);
}  // namespace detail

inline const std::array<uint8_t, 16>& Entry::v6_source(Direction direction) const noexcept {
    PENSTOCK_ASSERT(is_v6());
    return reinterpret_cast<const detail::V6Addresses*>(this + 1)
        ->by_direction[static_cast<size_t>(direction)]
        .source;
}
inline const std::array<uint8_t, 16>& Entry::v6_destination(Direction direction) const noexcept {
    PENSTOCK_ASSERT(is_v6());
    return reinterpret_cast<const detail::V6Addresses*>(this + 1)
        ->by_direction[static_cast<size_t>(direction)]
        .destination;
}

}  // namespace penstock::conn
