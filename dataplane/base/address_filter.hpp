// Tells of nearly every address that it is in no set of a few, by one product and one bit: for questions that are asked of each new flow's
// source and hardly ever answered with yes. What it lets through is looked for in the set itself, where a false yes would matter. Anybody
// may choose addresses that pass; that costs the look-up and no more.
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
    // True for all that were added, and for one in 256 of the others for each of them.
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
