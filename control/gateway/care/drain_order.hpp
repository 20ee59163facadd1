// SPDX-License-Identifier: Apache-2.0
// The order in which a gateway leaves service (PRESENCE-003). Pure: times and readings are arguments.
//
//   Serving --begin()--> Depreferred --traffic < 1 % or 10 s--> Withdrawn --no flow open--> Done
//      ^                    metric 900                      no routes    <--a flow opens--
//      +----------------------------- end(), from any step ------------------------------+
//
// Health checks fail from begin() on (ProxyFacts::drained). No step changes a flow: packets are forwarded
// until the process stops.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace penstock::gateway {

enum class DrainStep : uint8_t {
    Serving,
    Depreferred,  // VIPs are announced, but any other gateway is better
    Withdrawn,    // VIPs are not announced; flows are waited for
    Done,         // no flow is open
};
[[nodiscard]] const char* to_string(DrainStep step) noexcept;

class DrainOrder {
 public:
    using Time = std::chrono::steady_clock::time_point;
    // Routers have chosen another gateway by then, or there is none.
    static constexpr std::chrono::seconds kDepreferredMax{10};
    // Shortest interval of a packet rate. The caretaker makes a round each second.
    static constexpr std::chrono::milliseconds kRateInterval{900};
    // The rate has fallen if it is below one part in this many.
    static constexpr uint64_t kRateFraction = 100;

    // `has_metric`: VIPs are announced by routes; otherwise step Depreferred is skipped, because an
    // address on a link has no preference.
    explicit DrainOrder(bool has_metric) : has_metric_(has_metric) {}

    void begin(Time now);
    // Begins where an earlier process has left: no VIP is announced.
    void begin_withdrawn();
    // No effect while serving.
    void end();

    struct Readings {
        uint64_t vip_packets = 0;  // received for Services with VIPs, since start
        uint64_t open_flows = 0;
        bool is_announced = false;  // some VIP is
    };
    // One round. Call at least once per kRateInterval.
    void work(Time now, const Readings& readings);

    [[nodiscard]] DrainStep step() const noexcept { return step_; }
    // Depreferred: when it ends at the latest.
    [[nodiscard]] std::optional<Time> depreferred_until() const noexcept;

 private:
    void measure(Time now, uint64_t packets);

    const bool has_metric_;
    DrainStep step_ = DrainStep::Serving;
    Time began_{};
    // The last reading, and packets per second of the last interval and of the last one before begin();
    // empty: no interval is complete.
    std::optional<std::pair<Time, uint64_t>> last_;
    std::optional<uint64_t> rate_;
    std::optional<uint64_t> rate_before_;
};

}  // namespace penstock::gateway
