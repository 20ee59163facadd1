// SPDX-License-Identifier: Apache-2.0
#include "control/annotations/value.hpp"

#include <algorithm>

#include "control/annotations/selector.hpp"
#include "control/base/log_names.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::annotations {
namespace {

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equals(std::string_view a, std::string_view b, bool any_case) {
    return any_case ? std::ranges::equal(a, b, {}, lower, lower) : a == b;
}

// Digits only, without sign and decimal point. A number that exceeds 64 bits is outside every range.
std::optional<int64_t> digits_of(std::string_view text) {
    return whole_number<int64_t>(text);
}

bool read_bool(Value& value) {
    for (const std::string_view yes : {"true", "1", "t"}) {
        if (equals(value.text, yes, true)) {
            value.number = 1;
            value.word = "true";
            return true;
        }
    }
    value.word = "false";
    return std::ranges::any_of(std::array<std::string_view, 3>{"false", "0", "f"},
                               [&](std::string_view no) { return equals(value.text, no, true); });
}

bool read_number(const Rule& rule, Value& value) {
    std::string_view digits = value.text;
    int64_t worth = rule.worth;
    if (rule.kind == Kind::Duration) {
        const size_t suffix = std::string_view("smh").find(digits.back());
        if (suffix != std::string_view::npos) {
            constexpr std::array<int64_t, 3> kSeconds = {1, 60, 3600};
            worth = kSeconds[suffix];
            digits.remove_suffix(1);
        }
    }
    const auto number = digits_of(digits);
    // The range of an alias is in its own unit, that of a duration in seconds, regardless of the suffix.
    const int64_t scale = rule.kind == Kind::Duration ? worth : 1;
    if (!number || *number > rule.max / scale || *number * scale < rule.min) {
        return false;
    }
    value.number = *number * worth;
    return true;
}

bool read_word(const Rule& rule, Value& value) {
    for (const Word& word : rule.words) {
        if (equals(value.text, word.spelled, rule.any_case)) {
            value.word = word.means;
            return true;
        }
    }
    value.word = rule.any_other_means;
    return rule.kind == Kind::Word && !rule.any_other_means.empty();
}

bool is_of_length(const Rule& rule, std::string_view text) {
    return text.size() >= static_cast<size_t>(rule.min) && text.size() <= static_cast<size_t>(rule.max);
}

bool is_name(const Rule& rule, std::string_view text) {
    return is_of_length(rule, text) && std::ranges::all_of(text, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
           });
}

bool is_printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// A path that is valid in an HTTP request line without escaping.
bool is_url_path(const Rule& rule, std::string_view text) {
    return is_of_length(rule, text) && text.starts_with('/') && is_printable(text) &&
           text.find(' ') == std::string_view::npos;
}

bool are_all(std::string_view list, const auto& fits) {
    return std::ranges::all_of(split(list, ','), fits);
}

bool is_one_address_per_family(std::string_view list) {
    size_t v4 = 0;
    size_t v6 = 0;
    const bool all = are_all(list, [&](std::string_view item) {
        const auto address = IpAddr::parse(item);
        if (address) {
            ++(address->is_v4() ? v4 : v6);
        }
        return address.has_value();
    });
    return all && v4 <= 1 && v6 <= 1;
}

bool read_by(const Rule& rule, Value& value) {
    switch (rule.kind) {
        case Kind::Bool:
            return read_bool(value);
        case Kind::Number:
        case Kind::Duration:
            return read_number(rule, value);
        case Kind::Word:
            return false;  // handled by read_word
        case Kind::Name:
            return is_name(rule, value.text);
        case Kind::Text:
            return is_of_length(rule, value.text) && is_printable(value.text);
        case Kind::UrlPath:
            return is_url_path(rule, value.text);
        case Kind::FolderPath:
            return is_log_prefix(value.text);
        case Kind::LabelKey:
            return is_label_key(value.text);
        case Kind::Selector:
            return Selector::parse(value.text).has_value();
        case Kind::Names:
            return are_all(value.text, [&](std::string_view item) { return is_name(rule, item); });
        case Kind::OneAddressPerFamily:
            return is_one_address_per_family(value.text);
        case Kind::List:
            return true;
    }
    return false;
}

std::string range_text(const Rule& rule) {
    return std::to_string(rule.min) + "-" + std::to_string(rule.max);
}

std::string words_text(const Rule& rule) {
    std::string text;
    for (const Word& word : rule.words) {
        text += (text.empty() ? "" : ", ") + std::string(word.spelled);
    }
    return text;
}

}  // namespace

std::optional<Value> read(const SettingSpec& spec, const Annotations& annotations) {
    if (annotations.empty()) {
        return std::nullopt;
    }
    for (const Spelling& spelling : spec.spellings) {
        const auto found = annotations.find(std::string(spelling.key));
        if (found == annotations.end()) {
            continue;
        }
        Value value{.spelling = &spelling, .text = trimmed(found->second)};
        if (value.text.empty()) {
            continue;
        }
        value.valid = read_word(spelling.rule, value) || read_by(spelling.rule, value);
        return value;
    }
    return std::nullopt;
}

bool asks_for_more(const SettingSpec& spec, const Value& value) noexcept {
    return value.valid && !spec.only.empty() && value.word != spec.only;
}

std::string accepted(const Rule& rule) {
    const std::string words = words_text(rule);
    switch (rule.kind) {
        case Kind::Bool:
            return "true, false, 1, 0, t, f";
        case Kind::Number:
            return (words.empty() ? "" : words + ", ") + range_text(rule) +
                   (rule.unit.empty() ? "" : " " + std::string(rule.unit));
        case Kind::Duration:
            return range_text(rule) + " s, optionally with suffix s, m or h";
        case Kind::Word:
            return rule.any_other_means.empty() ? words
                                                : (words.empty() ? "" : words + ", ") + "any other value";
        case Kind::Name:
            return range_text(rule) + " characters of a-z, 0-9, '.' and '-'";
        case Kind::Text:
            return "printable ASCII, at most " + std::to_string(rule.max) + " characters";
        case Kind::UrlPath:
            return "a path that begins with '/', at most " + std::to_string(rule.max) + " characters";
        case Kind::FolderPath:
            return "folders of a-z, A-Z, 0-9, '.', '-' and '_', separated by '/', none of them '.' or '..', "
                   "at "
                   "most " +
                   std::to_string(rule.max) + " characters";
        case Kind::LabelKey:
            return "a label key";
        case Kind::Selector:
            return "a label selector of at most " + std::to_string(Selector::kPartsMax) + " requirements";
        case Kind::Names:
            return (words.empty() ? "" : words + ", or ") +
                   "names of a-z, 0-9, '.' and '-', separated by commas";
        case Kind::OneAddressPerFamily:
            return "IP addresses, at most one of each family, separated by commas";
        case Kind::List:
            return "a list separated by commas";
    }
    return "";
}

}  // namespace penstock::annotations
