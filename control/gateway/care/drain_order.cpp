// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/drain_order.hpp"

namespace penstock::gateway {

const char* to_string(DrainStep step) noexcept {
    switch (step) {
        case DrainStep::Serving:
            return "serving";
        case DrainStep::Depreferred:
            return "depreferred";
        case DrainStep::Withdrawn:
            return "withdrawn";
        case DrainStep::Done:
            return "done";
    }
    return "unknown";
}

void DrainOrder::begin(Time now) {
    if (step_ != DrainStep::Serving) {
        return;
    }
    step_ = has_metric_ ? DrainStep::Depreferred : DrainStep::Withdrawn;
    began_ = now;
    rate_before_ = rate_;
    // The interval in progress is partly of the time before.
    rate_.reset();
    last_.reset();
}

void DrainOrder::begin_withdrawn() {
    step_ = DrainStep::Withdrawn;
}

void DrainOrder::end() {
    if (step_ == DrainStep::Serving) {
        return;
    }
    step_ = DrainStep::Serving;
    rate_.reset();
    last_.reset();
}

void DrainOrder::measure(Time now, uint64_t packets) {
    if (!last_) {
        last_ = {now, packets};
        return;
    }
    const auto interval = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_->first);
    if (interval < kRateInterval) {
        return;
    }
    // The sum falls when a Service is deleted, which is no sign that routers send elsewhere: the next
    // interval counts.
    if (packets >= last_->second) {
        rate_ = (packets - last_->second) * 1'000 / static_cast<uint64_t>(interval.count());
    }
    last_ = {now, packets};
}

void DrainOrder::work(Time now, const Readings& readings) {
    measure(now, readings.vip_packets);
    if (step_ == DrainStep::Depreferred) {
        const bool has_moved =
            rate_ && rate_before_ &&
            (*rate_ * kRateFraction < *rate_before_ || (*rate_ == 0 && *rate_before_ == 0));
        if (has_moved || now - began_ >= kDepreferredMax) {
            step_ = DrainStep::Withdrawn;
        }
    } else if (step_ == DrainStep::Withdrawn || step_ == DrainStep::Done) {
        const bool is_done = readings.open_flows == 0 && !readings.is_announced;
        step_ = is_done ? DrainStep::Done : DrainStep::Withdrawn;
    }
}

std::optional<DrainOrder::Time> DrainOrder::depreferred_until() const noexcept {
    return step_ == DrainStep::Depreferred ? std::optional(began_ + kDepreferredMax) : std::nullopt;
}

}  // namespace penstock::gateway
