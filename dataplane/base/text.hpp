// SPDX-License-Identifier: Apache-2.0
// Parts of short texts from the environment and from input: words without blanks, fields of a list, whole
// numbers. Pure; not used for packets.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace penstock {

inline constexpr std::string_view kBlanks = " \t\n\v\f\r";

// `text` without leading and trailing `blanks`.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text,
                                                 std::string_view blanks = kBlanks) noexcept {
    const size_t first = text.find_first_not_of(blanks);
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The trimmed fields of `text`: "a, b,,c" at ',' gives a, b, "", c. An empty text gives one empty field.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> fields;
    while (true) {
        const size_t end = text.find(separator);
        fields.push_back(trimmed(text.substr(0, end)));
        if (end == std::string_view::npos) {
            return fields;
        }
        text.remove_prefix(end + 1);
    }
}

// The whole text as a number without sign and prefix. Empty for any other text and for a number that does not
// fit T.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> whole_number(std::string_view text, int base = 10) noexcept {
    T value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    const bool is_whole = error == std::errc() && end == text.data() + text.size() && text.front() != '-';
    return is_whole ? std::optional(value) : std::nullopt;
}

}  // namespace penstock
