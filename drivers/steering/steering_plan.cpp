// SPDX-License-Identifier: Apache-2.0
#include "drivers/steering/steering_plan.hpp"

namespace penstock::drivers {
namespace {

// Why the queue of a reply cannot be predicted; "" if it can.
std::string obstacle_to_foretelling(const PmdProfile& profile, const SteeringFacts& facts) {
    if (profile.spread != RxSpread::Reported) {
        return std::string(profile.spread_reason);
    }
    if (std::string obstacle = obstacle_of(facts.rss, facts.workers); !obstacle.empty()) {
        return obstacle;
    }
    if (facts.other_hash) {
        return std::string(profile.other_hash_reason);
    }
    return facts.check_failed;
}

}  // namespace

const char* to_string(Steering steering) noexcept {
    switch (steering) {
        case Steering::PredictableRss:
            return "predictable-rss";
        case Steering::FlowRules:
            return "flow-rules";
        case Steering::Handoff:
            return "handoff";
    }
    return "unknown";
}

SteeringPlan plan_steering(const PmdProfile& profile, const SteeringFacts& facts) {
    SteeringPlan plan;
    if (facts.workers == 1) {
        plan.flow_stays_on_queue = true;
        plan.reason = "one worker owns everything";
        return plan;
    }
    if (facts.rx_queues < facts.workers) {
        // A flow stays on its queue here too, but workers without a queue would never own one, so the owner
        // is a hash of the packet. Rules and SNAT ports cannot bring such workers any packets either.
        plan.reason = std::to_string(facts.rx_queues) + " receive queues for " +
                      std::to_string(facts.workers) + " workers";
        return plan;
    }
    // A hash that cannot be predicted still is a function of the packet. But packets whose L4 ports it omits
    // concentrate on few queues, and the workers of these queues would own them all. Handoff spreads them
    // better. If the self-check failed, it is unknown whether the queue is a function of the packet at all.
    // With a device that chooses at random, a flow would open a new connection on each queue that it reaches.
    plan.flow_stays_on_queue = profile.spread == RxSpread::Reported && facts.rss.granted &&
                               facts.rss.kinds.tcp4 && facts.rss.kinds.udp4 && facts.check_failed.empty();
    const std::string obstacle = obstacle_to_foretelling(profile, facts);
    if (obstacle.empty()) {
        plan.steering = Steering::PredictableRss;
        plan.reply_hash = reply_hash_of(facts.rss, facts.workers);
        plan.reason = "SNAT ports are chosen by the port's own RSS hash of " + to_string(facts.rss.kinds);
        if (const RssKinds others = without(kAllRssKinds, facts.rss.kinds); others.any()) {
            plan.reason += "; replies of " + to_string(others) + " are handed over";
        }
        return plan;
    }
    if (facts.snat_to_queue.validates) {
        plan.steering = Steering::FlowRules;
        plan.reason = "a flow rule sends each worker's SNAT ports to its queue; not by RSS: " + obstacle;
        return plan;
    }
    plan.reason = obstacle;
    if (!facts.snat_to_queue.reason.empty()) {
        plan.reason += "; no flow rules: " + facts.snat_to_queue.reason;
    }
    return plan;
}

}  // namespace penstock::drivers
