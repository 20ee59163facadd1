// SPDX-License-Identifier: Apache-2.0
// The lookup that any thread may make. The worker's own are in table.hpp: they read whole buckets at once.
#include "dataplane/conn/table.hpp"

namespace penstock::conn {

// The words of a bucket are read one by one: a tag may be that of the next key of the slot, and a reference
// that of its former one. So the key of the entry is compared, and its generation shows that the entry lived
// throughout. The acquires order the reads before a later read of Store::puts_.
bool Table::look_up(const packet::FlowKey& key, uint64_t hash, Lookup& out) const noexcept {
    const uint32_t tag = tag_of(hash);
    const uint32_t first = first_bucket(hash);
    for (const uint32_t at : {first, other_bucket(first, tag)}) {
        const detail::Bucket& bucket = buckets_[at];
        for (uint32_t slot = 0; slot < detail::Bucket::kSlots; ++slot) {
            if (__atomic_load_n(&bucket.tags[slot], __ATOMIC_ACQUIRE) != tag) {
                continue;
            }
            const uint32_t reference = __atomic_load_n(&bucket.references[slot], __ATOMIC_ACQUIRE);
            const uint32_t unit = reference >> 1;
            const auto direction = static_cast<Direction>(reference & 1);
            const uint32_t before = __atomic_load_n(&entries_[unit].generation, __ATOMIC_ACQUIRE);
            if (read(unit, out.connection) &&
                __atomic_load_n(&entries_[unit].generation, __ATOMIC_ACQUIRE) == before &&
                key == (direction == Direction::Forward ? out.connection.forward : out.connection.reverse)) {
                out.found = {{unit}, direction};
                out.generation = before;
                return true;
            }
        }
    }
    return false;
}

}  // namespace penstock::conn
