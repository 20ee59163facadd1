// SPDX-License-Identifier: Apache-2.0
// Names of a Service's flow log below the folder of the gateway (ANN-12). They come from objects that any
// user of a namespace may write, and become parts of a path: no name leads out of the folder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "dataplane/base/text.hpp"

namespace penstock {

inline constexpr size_t kLogSinkMin = 3, kLogSinkMax = 63, kLogPrefixMax = 128;

// A folder: 3-63 characters of a-z, 0-9, '.' and '-'.
[[nodiscard]] inline bool is_log_sink(std::string_view text) {
    return text.size() >= kLogSinkMin && text.size() <= kLogSinkMax && std::ranges::all_of(text, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
           });
}

// Folders below it, separated by '/': letters, digits, '.', '-' and '_'; none is empty, "." or "..".
[[nodiscard]] inline bool is_log_prefix(std::string_view text) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '-' || c == '_' || c == '/';
    };
    return text.size() <= kLogPrefixMax && std::ranges::all_of(text, is_allowed) &&
           std::ranges::none_of(split(text, '/'), [](std::string_view folder) {
               return folder.empty() || folder == "." || folder == "..";
           });
}

}  // namespace penstock
