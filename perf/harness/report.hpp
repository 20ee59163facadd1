// SPDX-License-Identifier: Apache-2.0
// The output lines of benchmarks: `name value unit`, `gate ID value limit pass|fail`, `# remark`.
// scripts/bench converts them to JSON and derives its exit code from the gates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::perf {

// "name value unit"; neither name nor unit contains a space.
void print_value(std::string_view name, double value, std::string_view unit);
void print_remark(const std::string& text);

void print_gate_at_most(std::string_view id, double value, double limit);
void print_gate_at_least(std::string_view id, double value, double limit);
// A target: printed like a gate under its own keyword, but it never fails.
void print_aim_at_most(std::string_view id, double value, double limit);

// 1000 "1k", 65536 "64k", 10000000 "10M".
[[nodiscard]] std::string short_count(uint32_t n);
// ".1k": suffix of a result's name.
[[nodiscard]] std::string size_suffix(uint32_t n);

}  // namespace penstock::perf
