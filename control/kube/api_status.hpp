// What an API server says instead of what it was asked for: metav1.Status, the body of an answer of 400 and above and the object of a
// watch's ERROR event. Pure values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::kube {

struct ApiStatus {
    int64_t code = 0;                                 // as HTTP counts; 0 where absent
    std::string reason;                               // "Expired", "Gone", "Timeout", "TooManyRequests", ...
    std::string message;                              // for people
    std::optional<std::chrono::seconds> retry_after;  // details.retryAfterSeconds, where above 0
    struct Cause {
        std::string reason;
        std::string message;
        bool operator==(const Cause&) const = default;
    };
    std::vector<Cause> causes;  // details.causes
    bool operator==(const ApiStatus&) const = default;

    // The version that was asked for is no longer kept: only a list helps (APISYNC-006).
    [[nodiscard]] bool is_expired() const noexcept {
        return code == 410 || reason == "Expired" || reason == "Gone";
    }
    // This server has not seen the version that was asked for yet (APISYNC-010). Servers before 1.19 say it only in the cause's message.
    [[nodiscard]] bool is_version_too_large() const noexcept;
    // "410 Expired: too old resource version: 1 (2)"
    [[nodiscard]] std::string to_string() const;
};

}  // namespace penstock::kube
