// Longest prefix match as a sorted array. Prefixes nest, so they cut the address space into disjoint intervals that each have one answer;
// the array holds where each interval starts, and one binary search finds the answer for prefixes of every length.
//
//   10.0.0.0/8 -> A       starts:  0      10.0.0.0   10.1.0.0   10.2.0.0   11.0.0.0
//   10.1.0.0/16 -> B      answers: none   A          B          A          none
//
// Built in O(n log n) and at most 2n+1 long, whatever the lengths are: a table that is rebuilt for every change of a route or a neighbour
// must not cost 16 million entries (DIR-24-8) when it holds ten.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/check.hpp"

namespace penstock::route {

// `Key` is an address as an unsigned number: uint32_t, or Uint128.
template <typename Key>
class IntervalMap {
 public:
    static constexpr uint32_t kNone = ~uint32_t{0};

    // All addresses from `first` to `last`, both included, get `answer` unless a longer prefix says otherwise.
    struct Range {
        Key first;
        Key last;
        uint32_t answer;
    };

    // The empty map: no address has an answer.
    IntervalMap() : starts_{Key{0}}, answers_{kNone} {}

    // Ranges are prefixes: two of them nest or are disjoint. Of equal ones the later wins.
    explicit IntervalMap(std::vector<Range> ranges) : IntervalMap() {
        // Outer ranges before the inner ones that start with them.
        std::ranges::stable_sort(ranges,
                                 [](const Range& a, const Range& b) { return a.first != b.first ? a.first < b.first : a.last > b.last; });
        std::vector<Range> open;  // the ranges around the current place, innermost last
        const auto close_innermost = [&] {
            const Key last = open.back().last;
            open.pop_back();
            if (last != static_cast<Key>(~Key{0})) {  // nothing follows the last address
                cut(static_cast<Key>(last + 1), open.empty() ? kNone : open.back().answer);
            }
        };
        for (const Range& range : ranges) {
            while (!open.empty() && open.back().last < range.first) {
                close_innermost();
            }
            PENSTOCK_ASSERT(open.empty() || range.last <= open.back().last);
            open.push_back(range);
            cut(range.first, range.answer);
        }
        while (!open.empty()) {
            close_innermost();
        }
    }

    // The answer for `address`, or kNone. The loop halves a count that does not depend on the data, so the compiler can make it free of
    // branches; the last steps stay within one cache line (16 starts of IPv4 a line).
    [[nodiscard]] uint32_t find(Key address) const noexcept {
        const Key* base = starts_.data();
        size_t count = starts_.size();
        while (count > 1) {
            const size_t half = count / 2;
            base += base[half] <= address ? half : 0;
            count -= half;
        }
        return answers_[static_cast<size_t>(base - starts_.data())];
    }

 private:
    // From `start` on the answer is `answer`. Called with ascending starts; the last call for one start holds.
    void cut(Key start, uint32_t answer) {
        if (starts_.back() == start) {
            answers_.back() = answer;
        } else if (answers_.back() != answer) {
            starts_.push_back(start);
            answers_.push_back(answer);
        }
    }

    std::vector<Key> starts_;  // ascending; the first is address 0
    std::vector<uint32_t> answers_;
};

}  // namespace penstock::route
