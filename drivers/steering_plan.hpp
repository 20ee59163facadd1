// How the replies of a NicPort's flows find the worker that owns them, with the reason; shown by `penstockctl get ports`. Pure.
//
// The house has three ways: predictable RSS, rte_flow rules, and handoff over rings. Handoff is always right and is what every port uses
// until the other two are there to be chosen; what the plan decides already is whether the port promises that a flow stays on one queue,
// because that decides who owns a new flow: the worker that received its first packet (promise kept), or a keyed hash of it.
#pragma once

#include <cstdint>
#include <string>

#include "drivers/capabilities.hpp"

namespace penstock::drivers {

enum class Steering : uint8_t { Handoff };
[[nodiscard]] const char* to_string(Steering steering) noexcept;  // "handoff"

struct SteeringPlan {
    Steering steering = Steering::Handoff;
    bool flow_stays_on_queue = false;
    std::string reason;
};

// What was granted when the port was configured.
struct SteeringFacts {
    unsigned workers = 1;
    uint16_t rx_queues = 1;
    bool rss_granted = false;  // the device accepted RSS over addresses and L4 ports
};

[[nodiscard]] SteeringPlan plan_steering(const PmdProfile& profile, const SteeringFacts& facts);

}  // namespace penstock::drivers
