// SPDX-License-Identifier: Apache-2.0
// Lists of CPUs as the kernel writes them: "0-3,8". Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::host {

// Ascending, each CPU once. An empty text is an empty list. Nullopt: not such a list, or a CPU above kCpuMax
// (core_plan.hpp).
[[nodiscard]] std::optional<std::vector<unsigned>> parse_cpu_list(std::string_view text);

// "0-3,8" for ascending numbers; "" for none.
[[nodiscard]] std::string cpu_list_text(const std::vector<unsigned>& cpus);

}  // namespace penstock::host
