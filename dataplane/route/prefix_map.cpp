#include "dataplane/route/prefix_map.hpp"

#include <limits>

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
    std::vector<SearchForest<uint64_t>::Piece> highs;
    std::vector<SearchForest<uint64_t>::Piece> lows;  // of the first half under way, where an interval starts or ends inside it
    const auto close_lows = [&](uint64_t high) {
        highs.push_back({high, forest_.add(lows)});
        lows.clear();
    };
    for (size_t i = 0; i < intervals.size(); ++i) {
        const Uint128 first = intervals.cuts()[i].first;
        const Uint128 last = intervals.last(i);
        const TreeRef answer = TreeRef::answer(intervals.cuts()[i].answer);
        auto first_high = static_cast<uint64_t>(first >> 64);
        const auto last_high = static_cast<uint64_t>(last >> 64);
        const auto last_low = static_cast<uint64_t>(last);
        if (static_cast<uint64_t>(first) != 0) {
            lows.push_back({first_high == last_high ? last_low : kLastLow, answer});
            if (lows.back().last != kLastLow) {
                continue;
            }
            close_lows(first_high);
            if (first_high == last_high) {
                continue;
            }
            ++first_high;
        }
        if (last_low == kLastLow) {
            highs.push_back({last_high, answer});
            continue;
        }
        if (first_high < last_high) {
            highs.push_back({last_high - 1, answer});
        }
        lows.push_back({last_low, answer});
    }
    root_ = forest_.add(highs);
}

}  // namespace penstock::route
