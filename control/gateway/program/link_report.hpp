// What the log says of a port's link: each change, unless it flaps. A cable that is loose or a peer that restarts over and over must not
// fill the disk. Pure: time is an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace penstock::gateway {

class LinkReport {
 public:
    using Time = std::chrono::steady_clock::time_point;
    // Changes told one by one in each period; more are counted, and told together when it is over.
    static constexpr uint32_t kToldPerPeriod = 10;
    static constexpr std::chrono::seconds kPeriod{60};

    explicit LinkReport(bool up) noexcept : up_(up) {}

    // The link as it is now; called on each change and from time to time. What to log, "" for nothing: "link is down", "link is up",
    // "link is up, after 31 changes in 60 s that were not told".
    [[nodiscard]] std::string look(bool up, Time now);

 private:
    bool up_;
    Time period_begin_{};
    uint32_t changes_ = 0;  // in this period
};

}  // namespace penstock::gateway
