// SPDX-License-Identifier: Apache-2.0
// A 256-bit filter over a small set of addresses. For nearly every address that is not in the set it returns
// false, at the cost of one multiplication and one bit test. It serves look-ups that are made for the source
// of each new flow and that hardly ever match. If the filter returns true, the set itself is searched
// wherever a false positive would matter. An attacker can choose addresses that pass; the cost is that search
// and nothing more.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock {

class AddressFilter {
 public:
    void add(const IpAddr& address) noexcept {
        bits_[place_of(address) / 64] |= uint64_t{1} << (place_of(address) % 64);
    }
    // True for every added address. Each added address also lets one in 256 of the others pass.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool may_hold(const IpAddr& address) const noexcept {
        const uint32_t place = place_of(address);
        return (bits_[place / 64] >> (place % 64) & 1) != 0;
    }
    bool operator==(const AddressFilter&) const = default;

 private:
    // Fibonacci hashing (Knuth): every bit of the address reaches the upper byte.
    static PENSTOCK_ALWAYS_INLINE uint32_t place_of(const IpAddr& address) noexcept {
        const uint64_t folded =
            load<uint64_t>(address.bytes().data()) ^ load<uint64_t>(address.bytes().data() + 8);
        return static_cast<uint32_t>(folded * 0x9e3779b97f4a7c15ULL >> 56);
    }
    std::array<uint64_t, 4> bits_{};
};

}  // namespace penstock
