// SPDX-License-Identifier: Apache-2.0
// Small parsers shared by the options. Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace penstock::gateway {

// Splits at `separator`: "a,b,,c" at ',' gives a, b, "", c. An empty text gives one empty piece.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> pieces;
    for (;;) {
        const size_t end = text.find(separator);
        pieces.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return pieces;
        }
        text.remove_prefix(end + 1);
    }
}

[[nodiscard]] inline std::string_view trim(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The whole text as a decimal number without sign, at most `max`. Empty if the text is anything else.
[[nodiscard]] inline std::optional<unsigned> number(std::string_view text, unsigned max) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
    return whole && value <= max ? std::optional(value) : std::nullopt;
}

}  // namespace penstock::gateway
