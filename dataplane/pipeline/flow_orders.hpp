// Working off what the control thread wants ended (conn/flow_order.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::pipeline {

// How far one worker has come with the orders. Written by the worker, read by any thread.
class FlowOrderProgress {
 public:
    // Number of the last order finished. Acquires what finish() released: whoever reads it finds the flows' counters moved.
    [[nodiscard]] uint64_t done() const noexcept { return done_.load(std::memory_order_acquire); }
    void finish(uint64_t number) noexcept { done_.store(number, std::memory_order_release); }

 private:
    std::atomic<uint64_t> done_{0};
};

}  // namespace penstock::pipeline
