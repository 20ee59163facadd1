// SPDX-License-Identifier: Apache-2.0
// Progress of a worker in the flow orders of the snapshot, and its limits of resets (flow_orders.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/pipeline/state/reject_limiter.hpp"

namespace penstock::pipeline {

// Written by the worker; done() may be called by any thread.
class FlowOrderWork {
 public:
    explicit FlowOrderWork(TscRate rate) noexcept
        : probing(limits::kResetFlowsPerSecond, limits::kResetFlowsBurst, rate),
          answering(limits::kResetAnswersPerSecond, limits::kResetAnswersBurst, rate) {}

    // Number of the last finished order. Acquires what finish() released: a reader of the number also sees
    // the updated counters of the flows.
    [[nodiscard]] uint64_t done() const noexcept { return done_.load(std::memory_order_acquire); }
    void finish(uint64_t number) noexcept {
        done_.store(number, std::memory_order_release);
        is_walking = false;
    }

    bool is_walking = false;  // the order after done() has begun
    bool is_waiting = true;   // work may be left; if false, there is none until the next snapshot
    RejectLimiter probing, answering;

 private:
    std::atomic<uint64_t> done_{0};
};

}  // namespace penstock::pipeline
