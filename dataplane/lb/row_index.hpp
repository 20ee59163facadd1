// Finds a row of some array by a keyed hash: an open-addressing array of (tag, row number), eight to a cache line, beside rows that lie
// densely wherever their owner keeps them. A key that is absent is nearly always told so by this one line; a key that is present costs the
// row's own line as well.
//
//   hash:  [ tag: high 32 bits | ... low bits: home slot ]        slots: |tag,row|tag,row|free|tag,row| ...   linear probing, at most half
//   full
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"

namespace penstock::lb {

class RowIndex {
 public:
    static constexpr uint32_t kNoRow = ~uint32_t{0};

    RowIndex() = default;  // finds nothing
    explicit RowIndex(size_t rows_max) : slots_(std::bit_ceil(rows_max * 2 + 2)), mask_(slots_.size() - 1) {}

    // `matches(row)` compares the full key of that row. kNoRow where no row matches.
    template <typename Matches>
    [[nodiscard]] uint32_t find(uint64_t hash, Matches&& matches) const noexcept {
        if (slots_.empty()) {
            return kNoRow;
        }
        for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.row == kNoRow) {
                return kNoRow;
            }
            if (slot.tag == tag_of(hash) && matches(slot.row)) {
                return slot.row;
            }
        }
    }

    // The caller has found that the key is absent, and inserts no more rows than it announced: a free slot ends every search.
    void insert(uint64_t hash, uint32_t row) noexcept {
        ++rows_;
        PENSTOCK_CHECK(rows_ * 2 <= slots_.size());
        size_t at = hash & mask_;
        while (slots_[at].row != kNoRow) {
            at = (at + 1) & mask_;
        }
        slots_[at] = {tag_of(hash), row};
    }

    void prefetch(uint64_t hash) const noexcept {
        if (!slots_.empty()) {
            prefetch_read(&slots_[hash & mask_]);
        }
    }

 private:
    struct Slot {
        uint32_t tag = 0;
        uint32_t row = kNoRow;
    };
    static uint32_t tag_of(uint64_t hash) noexcept { return static_cast<uint32_t>(hash >> 32); }

    std::vector<Slot> slots_;
    size_t mask_ = 0;
    size_t rows_ = 0;
};

}  // namespace penstock::lb
