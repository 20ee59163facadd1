// SPDX-License-Identifier: Apache-2.0
// Prefixes as ranges of numbers, for building intervals (intervals.hpp).
#pragma once

#include <cstdint>

#include "dataplane/base/ip.hpp"
#include "dataplane/route/intervals.hpp"
#include "dataplane/route/prefix_map.hpp"

namespace penstock::route {

// An address as a number, in the order of its bytes on the wire.
[[nodiscard]] inline uint32_t number_v4(const IpAddr& address) noexcept {
    return address.v4_wire().host();
}
[[nodiscard]] inline Uint128 number_v6(const IpAddr& address) noexcept {
    const auto high = load<uint64_t>(address.bytes().data());
    const auto low = load<uint64_t>(address.bytes().data() + 8);
    return Uint128{__builtin_bswap64(high)} << 64 | __builtin_bswap64(low);
}

// All addresses of a prefix: from the prefix address to the address with all host bits set.
template <typename Key>
[[nodiscard]] Range<Key> range_of(Key first, unsigned length, uint32_t answer) {
    constexpr unsigned kBits = sizeof(Key) * 8;
    const Key host_bits = length >= kBits ? Key{0} : static_cast<Key>(static_cast<Key>(~Key{0}) >> length);
    return {first, static_cast<Key>(first | host_bits), answer};
}

}  // namespace penstock::route
