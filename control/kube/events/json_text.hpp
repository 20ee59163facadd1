// SPDX-License-Identifier: Apache-2.0
// Text of requests to the API server: JSON members, times, path segments. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace penstock::kube {

// Each appends a member to `json`, with a comma before it unless an object was just opened. Names are
// literals of this program and are not escaped; values are.
void add_key(std::string& json, std::string_view name);
void add_text(std::string& json, std::string_view name, std::string_view value);
void add_text_if_any(std::string& json, std::string_view name, std::string_view value);
void add_number(std::string& json, std::string_view name, int64_t value);

// metav1.Time: RFC 3339 in whole seconds, UTC.
[[nodiscard]] std::string time_text(std::chrono::system_clock::time_point time);
// metav1.MicroTime: RFC 3339 with six decimals, UTC.
[[nodiscard]] std::string micro_time_text(std::chrono::system_clock::time_point time);

// One segment of a path: characters that could end it, or begin a query, are escaped.
[[nodiscard]] std::string path_segment(std::string_view text);

}  // namespace penstock::kube
