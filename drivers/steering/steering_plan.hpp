// SPDX-License-Identifier: Apache-2.0
// How the replies of a NicPort's flows reach their owner worker, with the reason; shown by `penstockctl get
// ports`. Pure.
//
// There are three methods: predictable RSS, rte_flow rules, and handoff over rings, which is always correct
// and always available. If a method cannot be used, the reason is recorded and the next one is tried. The
// plan also determines whether the port keeps a flow on one queue. That selects the owner of a new flow: the
// worker that received its first packet (if the flow stays on its queue), or a keyed hash of the packet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataplane/nat/reply_hash.hpp"
#include "drivers/pmd/profiles.hpp"
#include "drivers/port/capabilities.hpp"
#include "drivers/steering/rss.hpp"

namespace penstock::drivers {

enum class Steering : uint8_t {
    PredictableRss,  // SNAT ports are chosen by the NIC's own hash (nat/reply_hash.hpp)
    FlowRules,       // one rule per worker steers the replies to its SNAT ports to its queue
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

// Granted at configuration, and found at start.
struct SteeringFacts {
    unsigned workers = 1;
    uint16_t rx_queues = 1;
    RssReading rss;
    bool other_hash = false;  // PmdProfile::other_hash_reason applies to the device as it was opened
    // finding of the self-check that contradicts `rss` (self_check.hpp); "" if none
    std::string check_failed;
    FlowKindSupport snat_to_queue;  // whether the port accepts a rule that steers SNAT ports to a queue
};

[[nodiscard]] SteeringPlan plan_steering(const PmdProfile& profile, const SteeringFacts& facts);

}  // namespace penstock::drivers
