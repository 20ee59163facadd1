// SPDX-License-Identifier: Apache-2.0
// Kubernetes label selectors: "tier=web,zone in (a, b),!canary". All requirements must match. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::annotations {

using Labels = std::map<std::string, std::string>;

// An optional DNS prefix of at most 253 bytes and '/', then 1-63 alphanumerics, '-', '_' and '.',
// alphanumeric at both ends.
[[nodiscard]] bool is_label_key(std::string_view text) noexcept;
// The same rule without a prefix, or empty.
[[nodiscard]] bool is_label_value(std::string_view text) noexcept;

class Selector {
 public:
    // Maximum number of requirements. Each object is compared with each requirement, for up to 10,000
    // endpoints at once. An annotation has room for 80,000 requirements: half a millisecond per endpoint,
    // during which all other changes wait. Selectors written by hand have fewer than ten.
    static constexpr size_t kPartsMax = 64;

    Selector() = default;  // matches everything

    // Accepts key, !key, key=value, key==value, key!=value, key in (v1, v2), key notin (v1, v2), joined by
    // commas; white space is ignored. On failure, InvalidArgument names the requirement that cannot be
    // parsed.
    static Result<Selector> parse(std::string_view text);

    [[nodiscard]] bool matches(const Labels& labels) const;
    // In the notation of parse(): "tier=web,zone in (a,b),!canary"; "" if it matches everything.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool is_empty() const noexcept { return parts_.empty(); }
    bool operator==(const Selector&) const = default;

 private:
    enum class Operator : uint8_t { Exists, Absent, In, NotIn };
    struct Part {
        std::string key;
        Operator op = Operator::Exists;
        std::vector<std::string> values;
        bool operator==(const Part&) const = default;
    };
    class Reader;

    std::vector<Part> parts_;
};

}  // namespace penstock::annotations
