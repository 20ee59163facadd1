#include "drivers/steering_plan.hpp"

namespace penstock::drivers {

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
    } else if (facts.rx_queues < facts.workers) {
        // A flow would stay on its queue, but workers without a queue would never own one: spread by a hash instead.
        plan.reason = std::to_string(facts.rx_queues) + " receive queues for " + std::to_string(facts.workers) + " workers";
    } else if (profile.spread != RxSpread::Reported) {
        plan.reason = profile.spread_reason;
    } else if (!facts.rss_granted) {
        plan.reason = "the device has no RSS over addresses and ports";
    } else {
        plan.flow_stays_on_queue = true;
        plan.reason = "RSS keeps a flow on its queue; replies are handed over";
    }
    return plan;
}

}  // namespace penstock::drivers
