// SPDX-License-Identifier: Apache-2.0
// The reason why a gateway refuses the configuration of a service port. The last good version of the port, if
// any, stays in use.
#pragma once

#include <string>
#include <string_view>

namespace penstock::model {

// Refusal reasons, as named in the requirement sheet. Like the reasons of notices, they become reasons of
// Events.
inline constexpr std::string_view kCapacityExceeded = "CapacityExceeded";
inline constexpr std::string_view kFrontendConflict = "FrontendConflict";
inline constexpr std::string_view kInvalidService = "InvalidService";

struct Refusal {
    std::string_view reason;  // one of the constants above (static lifetime)
    std::string why;          // names the object and the rule
    bool operator==(const Refusal&) const = default;
};

}  // namespace penstock::model
