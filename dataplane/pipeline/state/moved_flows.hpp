// SPDX-License-Identifier: Apache-2.0
// The owners of adopted flows that placement.hpp does not compute. A connection of a former process belongs
// to the worker that its replies reach. If the number of workers, the keys or the modes of its frontend have
// changed, packets of the other direction may be placed on another worker. When that one has found no
// connection, it looks here.
//
// Nothing is ever removed: the entry of a flow that has ended costs the next flow of the same tuple two
// handoffs. That flow is opened by the worker on which placement.hpp places it, as any other. Keys are stored
// as 56 bits of their keyed hash. A wrong match has the same effect.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::pipeline {

// Complete before the workers start, then read by all of them.
class MovedFlows {
 public:
    // A key and its owner in one word: see word_of().
    using Word = uint64_t;

    MovedFlows() = default;
    explicit MovedFlows(const HashKey& secret) noexcept : mix_(secret) {}

    [[nodiscard]] Word word_of(const packet::FlowKey& key, WorkerId owner) const noexcept {
        static_assert(limits::kWorkersMax < 0xff);
        return fingerprint(key) | (owner.value + 1U);
    }
    // Makes room for this number of words in total, before the first add(). 16 to 32 bytes each.
    void reserve(size_t words) { slots_.assign(words == 0 ? 0 : std::bit_ceil(2 * words), 0); }
    void add(Word word) noexcept {
        PENSTOCK_ASSERT(size_ < slots_.size() / 2);
        size_t at = first(word);
        while (slots_[at] != 0) {
            at = next(at);
        }
        slots_[at] = word;
        ++size_;
    }

    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    // The owner of the flow with this key; unset: not a moved one. Terminates, because half of the slots are
    // free. Not empty().
    [[nodiscard]] WorkerId owner_of(const packet::FlowKey& key) const noexcept {
        const uint64_t wanted = fingerprint(key);
        for (size_t at = first(wanted); slots_[at] != 0; at = next(at)) {
            if ((slots_[at] & ~kOwner) == wanted) {
                return {static_cast<uint8_t>((slots_[at] & kOwner) - 1)};
            }
        }
        return {};
    }

 private:
    static constexpr uint64_t kOwner = 0xff;

    [[nodiscard]] uint64_t fingerprint(const packet::FlowKey& key) const noexcept {
        return packet::hash_of(key, mix_) & ~kOwner;
    }
    [[nodiscard]] size_t first(uint64_t word) const noexcept { return word >> 8 & (slots_.size() - 1); }
    [[nodiscard]] size_t next(size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }

    KeyedMix mix_;
    std::vector<Word> slots_;  // a power of two; 0: free
    size_t size_ = 0;
};

}  // namespace penstock::pipeline
