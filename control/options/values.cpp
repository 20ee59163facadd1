// SPDX-License-Identifier: Apache-2.0
#include "control/options/values.hpp"

#include <charconv>
#include <utility>

#include "dataplane/base/text.hpp"

namespace penstock::options {
namespace {

std::string range_text(const Range& range) {
    return std::to_string(range.min) + " to " + std::to_string(range.max) +
           (range.unit.empty() ? "" : " " + std::string(range.unit));
}

bool equals_in_any_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

std::unexpected<Error> refuse(std::string_view value, const std::string& rule) {
    return fail(Errc::InvalidArgument, "\"" + std::string(value) + "\" " + rule);
}

Result<bool> parse_on_off(std::string_view text) {
    static constexpr std::pair<std::string_view, bool> kSpellings[] = {
        {"on", true},  {"off", false}, {"true", true}, {"false", false},
        {"yes", true}, {"no", false},  {"1", true},    {"0", false}};
    for (const auto& [spelling, value] : kSpellings) {
        if (equals_in_any_case(text, spelling)) {
            return value;
        }
    }
    return refuse(text, "must be on or off");
}

Result<uint64_t> parse_number(std::string_view text, const Range& range) {
    const auto number = whole_number<uint64_t>(trimmed(text));
    if (!number || *number < range.min || *number > range.max) {
        return refuse(text, "must be " + range_text(range));
    }
    return *number;
}

Result<std::chrono::milliseconds> parse_seconds(std::string_view text, std::chrono::milliseconds min,
                                                std::chrono::milliseconds max) {
    using Seconds = std::chrono::duration<double>;
    const auto shown = [](std::chrono::milliseconds time) {
        std::string digits = std::to_string(Seconds(time).count());
        digits.erase(digits.find_last_not_of('0') + 1);
        return digits.ends_with('.') ? digits.substr(0, digits.size() - 1) : digits;
    };
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc{} || end != text.data() + text.size() || !(Seconds(seconds) >= min) ||
        !(Seconds(seconds) <= max)) {
        return refuse(text, "must be " + shown(min) + " to " + shown(max) + " seconds");
    }
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

Result<Interval> parse_interval(std::string_view text, const Range& range) {
    const auto ends = split(text, '-');
    const auto first = whole_number<uint64_t>(ends.front());
    const auto last = whole_number<uint64_t>(ends.back());
    if (ends.size() != 2 || !first || !last || *first < range.min || *last > range.max || *first > *last) {
        return refuse(text, "must be FIRST-LAST within " + range_text(range));
    }
    return Interval{*first, *last};
}

Result<std::string> parse_file(std::string_view text) {
    if (!text.starts_with('/') || text.ends_with('/')) {
        return refuse(text, "must be the absolute path of a file");
    }
    return std::string(text);
}

std::string alternatives(const std::vector<std::string_view>& words) {
    std::string text;
    for (size_t i = 0; i < words.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
    }
    return text;
}

}  // namespace penstock::options
