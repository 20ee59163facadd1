// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/names.hpp"

#include <algorithm>
#include <string>

namespace penstock::lb {
namespace {

// Independent of the locale: names are ASCII.
bool equal_without_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

Result<SchedulerKind> parse_scheduler(std::string_view text) {
    std::string known;
    for (const SchedulerKind kind : kSchedulerKinds) {
        if (equal_without_case(text, to_string(kind))) {
            return kind;
        }
        known += known.empty() ? "" : ", ";
        known += to_string(kind);
    }
    // An annotation may contain anything; 64 bytes are enough to identify it.
    return fail(Errc::InvalidArgument,
                "unknown scheduler \"" + std::string(text.substr(0, 64)) + "\" (use one of " + known + ")");
}

}  // namespace penstock::lb
