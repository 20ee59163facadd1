// What the three candidates share: keys, the keyed hash, and room made by moving keys to their other bucket (breadth first, so that the
// shortest chain of moves is found and nothing moves until there is one).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "perf/harness/memory.hpp"
#include "perf/micro/connections.hpp"

namespace penstock::perf::candidates {

using Key = RteKey;
inline constexpr uint32_t kNone = ~0U;
inline constexpr uint32_t kBurst = RteYardstick::kBurst;
// Slots for this many keys are 90 % full.
constexpr uint32_t slots_for(uint32_t keys) noexcept {
    return static_cast<uint32_t>(uint64_t{keys} * 10 / 9) + 1;
}

[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hash_of(const KeyedMix& mix, const Key& key) noexcept {
    return mix.of(key.source | uint64_t{key.destination} << 32,
                  key.source_port | uint64_t{key.destination_port} << 16 | uint64_t{key.protocol} << 32);
}
// `bits` scaled to 0 .. n-1.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t scaled(uint32_t bits, uint32_t n) noexcept {
    return static_cast<uint32_t>((uint64_t{bits} * n) >> 32);
}
// The second choice of a key that holds only `mixed`, some bits of its hash, and lies in `bucket`; and back again.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t mirrored(uint32_t bucket, uint32_t mixed, uint32_t n) noexcept {
    const uint32_t sum = scaled(mixed * 0x9e3779b1U, n);
    return sum >= bucket ? sum - bucket : sum + n - bucket;
}

// The packets of a burst whose first bucket does not hold their key, gathered without a branch: a fifth of the keys are in their second
// bucket at 90 % load, and a branch that is wrong a fifth of the time costs more than both buckets.
class MissList {
 public:
    PENSTOCK_ALWAYS_INLINE void note(uint32_t i, bool is_miss) noexcept {
        list_[count_] = i;
        count_ += static_cast<uint32_t>(is_miss);
    }
    [[nodiscard]] std::span<const uint32_t> all() const noexcept { return std::span(list_).first(count_); }

 private:
    std::array<uint32_t, kBurst + 1> list_;
    uint32_t count_ = 0;
};

// A free slot in one of two buckets, which are made to have one. A Table is: kSlots a bucket; is_free(slot); other_bucket_of(slot) of the
// key in it; move(from, to). Slots are numbered through.
template <typename Table>
[[nodiscard]] uint32_t make_room(Table& table, uint32_t first, uint32_t second) noexcept {
    struct Node {
        uint32_t bucket, parent, slot_in_parent;
    };
    constexpr uint32_t kNodesMax = 1'024;
    std::array<Node, kNodesMax> nodes;
    nodes[0] = {first, kNone, 0};
    nodes[1] = {second, kNone, 0};
    uint32_t count = 2;
    for (uint32_t n = 0; n < count; ++n) {
        const uint32_t base = nodes[n].bucket * Table::kSlots;
        for (uint32_t s = 0; s < Table::kSlots; ++s) {
            if (table.is_free(base + s)) {
                uint32_t to = base + s;
                for (uint32_t at = n; nodes[at].parent != kNone; at = nodes[at].parent) {
                    table.move(nodes[at].slot_in_parent, to);
                    to = nodes[at].slot_in_parent;
                }
                return to;
            }
        }
        for (uint32_t s = 0; s < Table::kSlots && count < kNodesMax; ++s) {
            nodes[count++] = {table.other_bucket_of(base + s), n, base + s};
        }
    }
    return kNone;
}

}  // namespace penstock::perf::candidates
