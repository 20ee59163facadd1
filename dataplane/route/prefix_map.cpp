// SPDX-License-Identifier: Apache-2.0
#include "dataplane/route/prefix_map.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace penstock::route {

PrefixMap4::PrefixMap4(const Intervals<uint32_t>& intervals) {
    if (intervals.size() <= kOneTreeMax) {
        std::vector<SearchForest<uint32_t>::Piece> pieces;
        for (size_t i = 0; i < intervals.size(); ++i) {
            pieces.push_back({intervals.last(i), TreeRef::answer(intervals.cuts()[i].answer)});
        }
        root_ = wide_.add(pieces);
        return;
    }
    constexpr uint32_t kChunks = 65'536;
    by_top_.reserve(kChunks);
    std::vector<SearchForest<uint16_t>::Piece> pieces;
    size_t at = 0;  // the interval that holds the chunk's first address
    for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
        const uint32_t last_of_chunk = chunk << 16 | 0xffff;
        pieces.clear();
        for (;; ++at) {
            const uint32_t last = std::min(intervals.last(at), last_of_chunk);
            pieces.push_back({static_cast<uint16_t>(last), TreeRef::answer(intervals.cuts()[at].answer)});
            if (last == last_of_chunk) {
                break;
            }
        }
        at += intervals.last(at) == last_of_chunk ? 1 : 0;
        by_top_.push_back(chunks_.add(pieces));
    }
}

PrefixMap6::PrefixMap6(const Intervals<Uint128>& intervals) {
    constexpr uint64_t kLastLow = std::numeric_limits<uint64_t>::max();
    using Piece = SearchForest<uint64_t>::Piece;
    // A range of first halves up to `last`, with its answers: one piece for each range of second halves,
    // mostly a single one.
    struct High {
        uint64_t last;
        size_t lows_begin;
        size_t lows_count;
    };
    std::vector<High> highs;
    std::vector<Piece> lows;
    size_t lows_begin = 0;
    size_t lows_most = 0;
    const auto close = [&](uint64_t high) {
        highs.push_back({high, lows_begin, lows.size() - lows_begin});
        lows_most = std::max(lows_most, highs.back().lows_count);
        lows_begin = lows.size();
    };
    for (size_t i = 0; i < intervals.size(); ++i) {
        const Uint128 first = intervals.cuts()[i].first;
        const Uint128 last = intervals.last(i);
        const TreeRef answer = TreeRef::answer(intervals.cuts()[i].answer);
        auto first_high = static_cast<uint64_t>(first >> 64);
        const auto last_high = static_cast<uint64_t>(last >> 64);
        const auto last_low = static_cast<uint64_t>(last);
        if (static_cast<uint64_t>(first) != 0) {
            // The interval starts inside a subnet, after other intervals.
            lows.push_back({first_high == last_high ? last_low : kLastLow, answer});
            if (lows.back().last != kLastLow) {
                continue;
            }
            close(first_high);
            if (first_high == last_high) {
                continue;
            }
            ++first_high;
        }
        if (last_low == kLastLow) {
            lows.push_back({kLastLow, answer});
            close(last_high);
            continue;
        }
        if (first_high < last_high) {
            lows.push_back({kLastLow, answer});
            close(last_high - 1);
        }
        lows.push_back({last_low, answer});
    }

    const uint32_t low_depth = highs.size() <= kEvenMax ? forest_.depth_of(lows_most) : 0;
    std::vector<Piece> pieces;
    pieces.reserve(highs.size());
    for (const High& high : highs) {
        pieces.push_back(
            {high.last, forest_.add(std::span(lows).subspan(high.lows_begin, high.lows_count), low_depth)});
    }
    root_ = forest_.add(pieces);
}

}  // namespace penstock::route
