// Why a gateway does not do as it was asked with a service port. Its last good version, if any, stays in use meanwhile.
#pragma once

#include <string>
#include <string_view>

namespace penstock::model {

// The words of the requirement sheet that a gateway refuses with; as those of a Notice they become the reason of an Event.
inline constexpr std::string_view kCapacityExceeded = "CapacityExceeded";
inline constexpr std::string_view kFrontendConflict = "FrontendConflict";
inline constexpr std::string_view kInvalidService = "InvalidService";

struct Refusal {
    std::string_view reason;  // one of the above: it outlives everybody
    std::string why;          // names the thing and the rule
    bool operator==(const Refusal&) const = default;
};

}  // namespace penstock::model
