// SPDX-License-Identifier: Apache-2.0
// Moves of slots to their other bucket, which free a slot for a new key.
#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/conn/table.hpp"

namespace penstock::conn {

using detail::Bucket;

// Breadth-first search; a node is a bucket reached by moving the slot that its parent holds. Finds a shortest
// chain of moves that ends in a free slot, and executes it from its end, so that every key can be found at
// all times. Reads at most kSearchNodes buckets.
uint32_t Table::make_room(uint32_t first, uint32_t second) noexcept {
    struct Node {
        uint32_t bucket;
        uint16_t parent;  // index in `nodes`; its own for the two roots
        uint8_t slot;     // slot of the parent's bucket that moves here
        uint8_t depth;
    };
    std::array<Node, kSearchNodes> nodes;
    uint32_t count = 0;
    nodes[count++] = {first, 0, 0, 0};
    nodes[count++] = {second, 1, 0, 0};
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t hole = i < 2 ? kNone : free_slot(nodes[i].bucket);
        if (hole != kNone) {
            for (uint32_t at = i; nodes[at].depth > 0; at = nodes[at].parent) {
                const uint32_t from = nodes[nodes[at].parent].bucket * Bucket::kSlots + nodes[at].slot;
                const Bucket& from_bucket = buckets_[from / Bucket::kSlots];
                buckets_[hole / Bucket::kSlots].set(hole % Bucket::kSlots,
                                                    from_bucket.tags[from % Bucket::kSlots],
                                                    from_bucket.references[from % Bucket::kSlots]);
                hole = from;  // keeps its contents until the next move, or place(), fills it
            }
            return hole;
        }
        if (nodes[i].depth == kMovesMax) {
            continue;
        }
        for (uint32_t slot = 0; slot < Bucket::kSlots && count < kSearchNodes; ++slot) {
            const uint32_t bucket = other_bucket(nodes[i].bucket, buckets_[nodes[i].bucket].tags[slot]);
            // A return to a bucket on the chain would move one slot twice.
            bool is_on_path = bucket == nodes[i].bucket;
            for (uint32_t at = i; !is_on_path && nodes[at].depth > 0; at = nodes[at].parent) {
                is_on_path = bucket == nodes[nodes[at].parent].bucket;
            }
            if (!is_on_path) {
                // Read when its turn comes, after the loads of its siblings have been started too.
                prefetch_read(&buckets_[bucket]);
                nodes[count++] = {bucket, static_cast<uint16_t>(i), static_cast<uint8_t>(slot),
                                  static_cast<uint8_t>(nodes[i].depth + 1)};
            }
        }
    }
    return kNone;
}

}  // namespace penstock::conn
