// SPDX-License-Identifier: Apache-2.0
// The memory of a connection table (table.hpp): a header, the buckets, and the units. For Table and
// FormerTable. -Dtable_layout=test compiles another arrangement of all of them (docs/adr/0042).
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/conn/entry.hpp"

namespace penstock::conn::detail {

struct alignas(kCacheLine) Bucket {
    static constexpr uint32_t kSlots = 8;
#ifndef PENSTOCK_TEST_TABLE_LAYOUT
    uint32_t tags[kSlots];        // 0: free
    uint32_t references[kSlots];  // unit << 1 | direction
#else
    uint32_t references[kSlots];
    uint32_t tags[kSlots];
#endif

    // Releases, for Table::look_up() on other threads (copies/store.cpp). On x86 these are plain moves.
    PENSTOCK_ALWAYS_INLINE void set(uint32_t slot, uint32_t tag, uint32_t reference) noexcept {
        __atomic_store_n(&tags[slot], tag, __ATOMIC_RELEASE);
        __atomic_store_n(&references[slot], reference, __ATOMIC_RELEASE);
    }
};
static_assert(sizeof(Bucket) == kCacheLine);

// At the start of the memory. A change to any layout of this file or of entry.hpp changes kVersion; magic and
// version keep their places. A change to what a value means, as to the number of a state, also changes
// TableDescription::kMeaning.
struct alignas(kCacheLine) Header {
    static constexpr uint64_t kMagic = 0x6e6e6f636b736e70;  // "pnskconn"
#ifndef PENSTOCK_TEST_TABLE_LAYOUT
    static constexpr uint32_t kVersion = 6;
    uint64_t magic;
    uint32_t version;
    uint32_t capacity;     // units
    uint32_t free_pairs;   // first of the pairs without a live unit, as its even unit + 1, or 0
    uint32_t free_halves;  // first of the free units next to a live one, as unit + 1, or 0
    uint32_t size;         // connections; read by any thread
    uint32_t units_used;   // an IPv6 or mixed connection uses two
    uint32_t high_water;   // units from here on have never been used; read by any thread
    uint32_t lives;        // connections ever opened, modulo 2^31
    HashKey secret;
    uint64_t spare;
#else
    static constexpr uint32_t kVersion = 1006;
    uint64_t magic;
    uint32_t version;
    uint32_t lives;
    HashKey secret;
    uint64_t spare;
    uint32_t high_water;
    uint32_t units_used;
    uint32_t size;
    uint32_t free_halves;
    uint32_t free_pairs;
    uint32_t capacity;
#endif
};
static_assert(sizeof(Header) == kCacheLine);

// Two slots per connection, 60 % used in a full table. A bounded search would find room up to about 95 % (Fan
// et al. 2014, table 2, for buckets of eight). But in a table that has long run at 90 %, more than a third of
// the keys are in their second bucket. Each of these costs one more line and a mispredicted branch. The price
// is 2 * 8 * (1 / 0.6 - 1 / 0.9) = 9 bytes per connection (docs/adr/0010). There are four additional buckets,
// because in the smallest tables chance fills two buckets long before the others.
[[nodiscard]] inline uint32_t buckets_for(uint32_t capacity) {
    const uint64_t slots = (uint64_t{capacity} * 2 * 5 + 2) / 3;
#ifndef PENSTOCK_TEST_TABLE_LAYOUT
    constexpr uint32_t kMore = 4;
#else
    constexpr uint32_t kMore = 37;  // units begin elsewhere
#endif
    return static_cast<uint32_t>((slots + Bucket::kSlots - 1) / Bucket::kSlots + kMore);
}

// Units are allocated in pairs, so that two adjacent units can hold an IPv6 or mixed connection.
[[nodiscard]] inline uint64_t units_for(uint32_t capacity) {
    return (uint64_t{capacity} + 1) / 2 * 2;
}

}  // namespace penstock::conn::detail
