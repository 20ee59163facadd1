// SPDX-License-Identifier: Apache-2.0
// Tags of a Service in its flow records: "stage=prod,team=web" (ANN-21). They come from objects that any user
// of a namespace may write, so their number, lengths and characters are limited.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/base/text.hpp"

namespace penstock {

inline constexpr size_t kLogTagsMax = 50, kLogTagKeyMax = 128, kLogTagValueMax = 256;
inline constexpr std::string_view kLogTagRule =
    "KEY=VALUE, up to 128 and 256 letters, digits, spaces and characters of +-._:/@, each key once";

using LogTag = std::pair<std::string_view, std::string_view>;

// The parts of a pair; the value may contain '=' and may be empty.
[[nodiscard]] inline LogTag split_log_tag(std::string_view pair) {
    const size_t equals = std::min(pair.find('='), pair.size());
    return {trimmed(pair.substr(0, equals)), trimmed(pair.substr(std::min(equals + 1, pair.size())))};
}

[[nodiscard]] inline bool is_log_tag(std::string_view pair) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view(" +-._:/@").contains(c);
    };
    const auto [key, value] = split_log_tag(pair);
    return pair.contains('=') && !key.empty() && key.size() <= kLogTagKeyMax &&
           value.size() <= kLogTagValueMax && std::ranges::all_of(key, is_allowed) &&
           std::ranges::all_of(value, [&](char c) { return c == '=' || is_allowed(c); });
}

// A whole list, as the control plane sends it: at most kLogTagsMax pairs, sorted by key, each key once.
[[nodiscard]] inline bool is_log_tags(std::string_view list) {
    const std::vector<std::string_view> pairs = split(list, ',');
    return pairs.size() <= kLogTagsMax && std::ranges::all_of(pairs, is_log_tag) &&
           std::ranges::adjacent_find(pairs, [](std::string_view a, std::string_view b) {
               return split_log_tag(a).first >= split_log_tag(b).first;
           }) == pairs.end();
}

}  // namespace penstock
