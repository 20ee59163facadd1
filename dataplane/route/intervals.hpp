// SPDX-License-Identifier: Apache-2.0
// Prefixes as intervals. Prefixes nest, so they divide the address space into disjoint intervals with one
// answer each. The interval of an address thus yields its longest prefix, whatever the prefix lengths are.
//
//   10.0.0.0/8 -> A       first:   0      10.0.0.0   10.1.0.0   10.2.0.0   11.0.0.0
//   10.1.0.0/16 -> B      answer:  none   A          B          A          none
//
// n prefixes yield at most 2n+1 intervals; adjacent intervals with the same answer are merged. Used for
// building (control thread); workers search the structures of prefix_map.hpp, which are built from the
// intervals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/base/check.hpp"

namespace penstock::route {

// All addresses from `first` to `last`, inclusive, have `answer` unless a longer prefix overrides it. `Key`
// is an address as an unsigned number.
template <typename Key>
struct Range {
    Key first;
    Key last;
    uint32_t answer;
};

// From `first` up to the start of the next interval; the last interval includes the last address.
template <typename Key>
struct Interval {
    Key first;
    uint32_t answer;
    bool operator==(const Interval&) const = default;
};

template <typename Key>
class Intervals {
 public:
    static constexpr uint32_t kNone = 0;  // the answer outside all ranges

    Intervals() = default;

    // Ranges must be prefixes: any two of them nest or are disjoint. Of equal ranges the later one wins. O(n
    // log n).
    explicit Intervals(std::vector<Range<Key>> ranges)
        : Intervals(std::move(ranges),
                    [](std::span<const Range<Key>> equal) { return equal.back().answer; }) {}

    // `answer_of(equal)` returns the answer of equal ranges, which it receives in their original order; the
    // span is never empty.
    template <typename AnswerOf>
    Intervals(std::vector<Range<Key>> ranges, AnswerOf&& answer_of) {
        // Sorts outer ranges before the inner ones that start at the same address.
        std::ranges::stable_sort(ranges, [](const Range<Key>& a, const Range<Key>& b) {
            return a.first != b.first ? a.first < b.first : a.last > b.last;
        });
        size_t distinct = 0;
        for (size_t i = 0, end = 0; i < ranges.size(); i = end) {
            const Range<Key> range = ranges[i];
            for (end = i + 1;
                 end < ranges.size() && ranges[end].first == range.first && ranges[end].last == range.last;) {
                ++end;
            }
            const uint32_t answer = answer_of(std::span<const Range<Key>>(ranges).subspan(i, end - i));
            ranges[distinct++] = {range.first, range.last, answer};
        }
        ranges.resize(distinct);
        cuts_.reserve(ranges.size() * 2 + 1);
        std::vector<Range<Key>> open;  // the ranges around the current position, innermost last
        const auto close_innermost = [&] {
            const Key last = open.back().last;
            open.pop_back();
            if (last != kLast) {  // nothing follows the last address
                cut(static_cast<Key>(last + 1), open.empty() ? kNone : open.back().answer);
            }
        };
        for (const Range<Key>& range : ranges) {
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

    // The same intervals with other answers; adjacent intervals with equal new answers are merged. O(n).
    template <typename AnswerOf>
    [[nodiscard]] Intervals with_answers(AnswerOf&& answer_of) const {
        Intervals out;
        for (const Interval<Key>& interval : cuts_) {
            out.cut(interval.first, answer_of(interval.answer));
        }
        return out;
    }

    // Adds single addresses, which override everything; of equal ones the later wins. O(n + h log h), so that
    // a change of one neighbour does not sort a million routes again.
    void overlay(std::vector<Interval<Key>> hosts) {
        if (hosts.empty()) {
            return;
        }
        std::ranges::stable_sort(hosts, {}, &Interval<Key>::first);
        const std::vector<Interval<Key>> under = std::exchange(cuts_, {{Key{0}, kNone}});
        cuts_.reserve(under.size() + hosts.size() * 2);
        auto next = under.begin();
        for (size_t i = 0; i < hosts.size(); ++i) {
            const Interval<Key>& host = hosts[i];
            if (i + 1 < hosts.size() && hosts[i + 1].first == host.first) {
                continue;
            }
            for (; next != under.end() && next->first <= host.first; ++next) {
                cut(next->first, next->answer);
            }
            cut(host.first, host.answer);
            if (host.first != kLast) {
                cut(static_cast<Key>(host.first + 1), std::prev(next)->answer);
            }
        }
        for (; next != under.end(); ++next) {
            cut(next->first, next->answer);
        }
    }

    [[nodiscard]] uint32_t find(Key address) const {
        return std::prev(std::ranges::upper_bound(cuts_, address, {}, &Interval<Key>::first))->answer;
    }

    // In ascending order, never empty; the first starts at address 0.
    [[nodiscard]] const std::vector<Interval<Key>>& cuts() const noexcept { return cuts_; }
    [[nodiscard]] size_t size() const noexcept { return cuts_.size(); }
    // The last address of interval i.
    [[nodiscard]] Key last(size_t i) const noexcept {
        return i + 1 < cuts_.size() ? static_cast<Key>(cuts_[i + 1].first - 1) : kLast;
    }

 private:
    static constexpr Key kLast = static_cast<Key>(~Key{0});

    // Sets the answer from `first` on. Called in ascending order of positions; the last call for a position
    // wins.
    void cut(Key first, uint32_t answer) {
        if (cuts_.back().first == first) {
            cuts_.back().answer = answer;
        } else if (cuts_.back().answer != answer) {
            cuts_.push_back({first, answer});
        }
    }

    std::vector<Interval<Key>> cuts_{{Key{0}, kNone}};
};

}  // namespace penstock::route
