// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace penstock::manifest {
namespace {

constexpr std::array<std::string_view, 5> kNulls{"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 11> kTrues{"true", "True", "TRUE", "yes", "Yes", "YES",
                                                  "on",   "On",   "ON",   "y",   "Y"};
constexpr std::array<std::string_view, 11> kFalses{"false", "False", "FALSE", "no", "No", "NO",
                                                   "off",   "Off",   "OFF",   "n",  "N"};

template <size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& words, std::string_view text) noexcept {
    return std::find(words.begin(), words.end(), text) != words.end();
}

struct Digits {
    std::string_view text;
    int base = 10;
};

Digits without_base_prefix(std::string_view digits) noexcept {
    if (digits.size() > 2 && digits[0] == '0') {
        switch (digits[1]) {
            case 'x':
                return {digits.substr(2), 16};
            case 'o':
                return {digits.substr(2), 8};
            case 'b':
                return {digits.substr(2), 2};
            default:
                break;
        }
    }
    if (digits.size() > 1 && digits[0] == '0') {
        return {digits.substr(1), 8};
    }
    return {digits, 10};
}

bool is_decimal(std::string_view text) noexcept {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// [digits][.digits][e[+-]digits] with at least one digit before the exponent, or .inf, or .nan. Digits alone
// match too: they did not fit an integer.
bool is_float(std::string_view text) noexcept {
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
        text.remove_prefix(1);
    }
    if (text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" ||
        text == ".NAN") {
        return true;
    }
    const size_t exponent = text.find_first_of("eE");
    if (exponent != std::string_view::npos) {
        std::string_view digits = text.substr(exponent + 1);
        if (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) {
            digits.remove_prefix(1);
        }
        if (!is_decimal(digits)) {
            return false;
        }
        text = text.substr(0, exponent);
    }
    const size_t dot = text.find('.');
    if (dot == std::string_view::npos) {
        return is_decimal(text);
    }
    const std::string_view whole = text.substr(0, dot);
    const std::string_view fraction = text.substr(dot + 1);
    return (whole.empty() || is_decimal(whole)) && (fraction.empty() || is_decimal(fraction)) &&
           !(whole.empty() && fraction.empty());
}

std::optional<int64_t> integer_of(std::string_view text) {
    bool negative = false;
    if (text[0] == '+' || text[0] == '-') {
        negative = text[0] == '-';
        text.remove_prefix(1);
    }
    if (text.empty() || text[0] < '0' || text[0] > '9') {
        return std::nullopt;
    }
    std::string packed(negative ? "-" : "");
    const Digits digits = without_base_prefix(text);
    std::copy_if(digits.text.begin(), digits.text.end(), std::back_inserter(packed),
                 [](char c) { return c != '_'; });
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(packed.data(), packed.data() + packed.size(), value, digits.base);
    if (error != std::errc{} || end != packed.data() + packed.size()) {
        return std::nullopt;
    }
    return value;
}

}  // namespace

Scalar resolve_plain(std::string_view text) noexcept {
    if (is_one_of(kNulls, text)) {
        return {.kind = Value::Kind::Null};
    }
    if (is_one_of(kTrues, text)) {
        return {.kind = Value::Kind::Boolean, .boolean = true};
    }
    if (is_one_of(kFalses, text)) {
        return {.kind = Value::Kind::Boolean, .boolean = false};
    }
    // Longer text is not a meaningful number; this avoids parsing a megabyte of digits.
    constexpr size_t kNumberLengthMax = 80;
    if (text.size() <= kNumberLengthMax) {
        if (const auto integer = integer_of(text)) {
            return {.kind = Value::Kind::Integer, .integer = *integer};
        }
        if (is_float(text)) {
            return {.kind = Value::Kind::Float};
        }
    }
    return {.kind = Value::Kind::String};
}

}  // namespace penstock::manifest
