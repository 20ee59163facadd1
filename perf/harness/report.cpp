// SPDX-License-Identifier: Apache-2.0
#include "perf/harness/report.hpp"

#include <cstdint>
#include <cstdio>

namespace penstock::perf {
namespace {

void print_verdict(const char* word, std::string_view id, double value, const char* relation, double limit,
                   bool passed) {
    std::printf("%s %.*s %.3f %s%g %s\n", word, static_cast<int>(id.size()), id.data(), value, relation,
                limit, passed ? "pass" : "fail");
    std::fflush(stdout);
}

}  // namespace

void print_value(std::string_view name, double value, std::string_view unit) {
    std::printf("%.*s %.4g %.*s\n", static_cast<int>(name.size()), name.data(), value,
                static_cast<int>(unit.size()), unit.data());
    std::fflush(stdout);
}
void print_remark(const std::string& text) {
    std::printf("# %s\n", text.c_str());
    std::fflush(stdout);
}

void print_gate_at_most(std::string_view id, double value, double limit) {
    print_verdict("gate", id, value, "<=", limit, value <= limit);
}
void print_gate_at_least(std::string_view id, double value, double limit) {
    print_verdict("gate", id, value, ">=", limit, value >= limit);
}
void print_aim_at_most(std::string_view id, double value, double limit) {
    print_verdict("aim", id, value, "<=", limit, value <= limit);
}

std::string short_count(uint32_t n) {
    if (n % 1'000'000 == 0) {
        return std::to_string(n / 1'000'000).append("M");
    }
    if (n % 1'000 == 0) {
        return std::to_string(n / 1'000).append("k");
    }
    return n % 1'024 == 0 ? std::to_string(n / 1'024).append("k") : std::to_string(n);
}

std::string size_suffix(uint32_t n) {
    std::string text(1, '.');
    return text.append(short_count(n));
}

}  // namespace penstock::perf
