// How the replies of a NicPort's flows find the worker that owns them, with the reason; shown by `penstockctl get ports`. Pure.
//
// The house has three ways: predictable RSS, rte_flow rules, and handoff over rings, which is always right and always there. Each is
// refused by name, and the next one taken. The plan also decides whether the port promises that a flow stays on one queue, because that
// decides who owns a new flow: the worker that received its first packet (promise kept), or a keyed hash of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataplane/nat/reply_hash.hpp"
#include "drivers/port/capabilities.hpp"
#include "drivers/steering/rss.hpp"

namespace penstock::drivers {

enum class Steering : uint8_t {
    PredictableRss,  // SNAT ports are chosen by the NIC's own hash (nat/reply_hash.hpp)
    FlowRules,       // a rule for each worker's SNAT ports sends their replies to its queue
    Handoff,
};
[[nodiscard]] const char* to_string(
    Steering steering) noexcept;  // "predictable-rss", "flow-rules", "handoff"

struct SteeringPlan {
    Steering steering = Steering::Handoff;
    bool flow_stays_on_queue = false;
    std::string reason;
    std::optional<nat::ReplyHash> reply_hash;  // with PredictableRss
};

// What was granted when the port was configured, and found when it was started.
struct SteeringFacts {
    unsigned workers = 1;
    uint16_t rx_queues = 1;
    RssReading rss;
    bool other_hash = false;   // PmdProfile::other_hash_reason applies to the device as it was opened
    std::string check_failed;  // what the self-check saw that contradicts `rss` (self_check.hpp); "" nothing
    FlowKindSupport snat_to_queue;  // whether the port validates a rule that sends SNAT ports to a queue
};

[[nodiscard]] SteeringPlan plan_steering(const PmdProfile& profile, const SteeringFacts& facts);

}  // namespace penstock::drivers
