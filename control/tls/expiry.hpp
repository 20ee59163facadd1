// SPDX-License-Identifier: Apache-2.0
// Decides when to log that a certificate expires: when less than a quarter of its lifetime is left, at most
// 14 days, then once a day and when it has expired. Renewal tools begin at a third, so the warning means that
// renewal is late. Uses no clock of its own.
#pragma once

#include <chrono>
#include <optional>

namespace penstock::tls {

class ExpiryNotice {
 public:
    using Time = std::chrono::system_clock::time_point;
    static constexpr std::chrono::hours kEarliest{14 * 24};
    static constexpr std::chrono::hours kRepeat{24};

    enum class What { ExpiresSoon, Expired };
    // Without memory: whether the renewal is late at `now`.
    [[nodiscard]] static std::optional<What> state_at(Time now, Time valid_from, Time expires);
    // The line to log at `now`; empty: none. Starts again if the times are those of another certificate.
    [[nodiscard]] std::optional<What> due(Time now, Time valid_from, Time expires);

 private:
    Time expires_{};
    std::optional<What> logged_;
    Time logged_at_{};
};

}  // namespace penstock::tls
