// SPDX-License-Identifier: Apache-2.0
// Error report of an API server: metav1.Status, the body of a response with status 400 or above, and the
// object of an ERROR event of a watch. Pure values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::kube {

struct ApiStatus {
    int64_t code = 0;                                 // HTTP status code; 0 if absent
    std::string reason;                               // "Expired", "Gone", "Timeout", "TooManyRequests", ...
    std::string message;                              // human-readable
    std::optional<std::chrono::seconds> retry_after;  // details.retryAfterSeconds, if above 0
    struct Cause {
        std::string reason;
        std::string message;
        bool operator==(const Cause&) const = default;
    };
    std::vector<Cause> causes;  // details.causes
    bool operator==(const ApiStatus&) const = default;

    // The requested version is no longer kept: only a new list helps (APISYNC-006).
    [[nodiscard]] bool is_expired() const noexcept {
        return code == 410 || reason == "Expired" || reason == "Gone";
    }
    // This server has not reached the requested version yet (APISYNC-010). Servers before 1.19 report this
    // only in the message of the cause.
    [[nodiscard]] bool is_version_too_large() const noexcept;
    // "410 Expired: too old resource version: 1 (2)"
    [[nodiscard]] std::string to_string() const;
};

}  // namespace penstock::kube
