// SPDX-License-Identifier: Apache-2.0
// Log text for changes of a port's link, limited when the link flaps. A loose cable or a peer that restarts
// repeatedly must not fill the disk. Pure: time is an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace penstock::gateway {

class LinkReport {
 public:
    using Time = std::chrono::steady_clock::time_point;
    // Number of changes logged individually in each period. Further changes are counted and logged together
    // at its end.
    static constexpr uint32_t kToldPerPeriod = 10;
    static constexpr std::chrono::seconds kPeriod{60};

    explicit LinkReport(bool up) noexcept : up_(up) {}

    // Call on each change with the current link state, and periodically. Returns the text to log, "" for
    // none: "link is down", "link is up", "link is up, after 31 changes in 60 s that were not logged".
    [[nodiscard]] std::string look(bool up, Time now);

 private:
    bool up_;
    Time period_begin_{};
    uint32_t changes_ = 0;  // in this period
};

}  // namespace penstock::gateway
