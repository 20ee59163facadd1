// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/text.hpp"

#include <algorithm>

namespace penstock::semantics {
namespace {

// Not <cctype>: its results depend on the locale.
constexpr bool is_printable(char c) noexcept {
    return c >= ' ' && c <= '~';
}

}  // namespace

std::string printable(std::string_view text, size_t chars_max) {
    static constexpr std::string_view kHex = "0123456789abcdef";
    std::string shown;
    shown.reserve(std::min(text.size(), chars_max));
    for (const char c : text.substr(0, chars_max)) {
        if (is_printable(c)) {
            shown += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            shown += "\\x";
            shown += kHex[byte >> 4];
            shown += kHex[byte & 15];
        }
    }
    if (text.size() > chars_max) {
        shown += "...";
    }
    return shown;
}

InternedText name_for_people(const InternedText& text) {
    constexpr size_t kBytesMax = 253;  // RFC 1123
    const std::string_view name = text;
    const auto fits = [](char c) { return is_printable(c) && c != ' ' && c != '/' && c != ':'; };
    return name.size() <= kBytesMax && std::ranges::all_of(name, fits) ? text : InternedText();
}

std::string quoted(std::string_view text) {
    return "\"" + printable(text) + "\"";
}

}  // namespace penstock::semantics
