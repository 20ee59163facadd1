// SPDX-License-Identifier: Apache-2.0
// The values of options, as text: booleans, words, numbers with a range and a unit, durations, paths, lists.
// Every error is InvalidArgument, quotes the value and states the rule: "\"65\" must be 4 to 64 packets".
// Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::options {

// "\"VALUE\" RULE", for example with the rule "must be on or off".
[[nodiscard]] std::unexpected<Error> refuse(std::string_view value, const std::string& rule);

// on, off. Also true, false, yes, no, 1 and 0, in any case.
[[nodiscard]] Result<bool> parse_on_off(std::string_view text);

// The accepted numbers, with the unit for error texts.
struct Range {
    uint64_t min = 0;
    uint64_t max = UINT64_MAX;
    std::string_view unit = {};
};
// A decimal number without sign.
[[nodiscard]] Result<uint64_t> parse_number(std::string_view text, const Range& range);

// Seconds, optionally with a fraction: "0.5". The result is cut to whole milliseconds.
[[nodiscard]] Result<std::chrono::milliseconds> parse_seconds(std::string_view text,
                                                              std::chrono::milliseconds min,
                                                              std::chrono::milliseconds max);

// FIRST-LAST, both within the range.
struct Interval {
    uint64_t first = 0;
    uint64_t last = 0;
};
[[nodiscard]] Result<Interval> parse_interval(std::string_view text, const Range& range);

// The absolute path of a file.
[[nodiscard]] Result<std::string> parse_file(std::string_view text);

// One word of an enumeration.
template <typename T>
struct Word {
    std::string_view spelled;
    T value;
};
// "a", "a or b", "a, b or c".
[[nodiscard]] std::string alternatives(const std::vector<std::string_view>& words);

template <typename T>
[[nodiscard]] Result<T> parse_word(std::string_view text, const std::vector<Word<T>>& words) {
    const auto found = std::ranges::find(words, text, &Word<T>::spelled);
    if (found != words.end()) {
        return found->value;
    }
    std::vector<std::string_view> spelled;
    std::ranges::transform(words, std::back_inserter(spelled), &Word<T>::spelled);
    return refuse(text, "must be " + alternatives(spelled));
}

}  // namespace penstock::options
