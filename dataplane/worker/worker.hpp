// One worker: the poll loop over its queues and rings, and the housekeeping between bursts. Everything it touches per packet is its own, or
// the snapshot of the round.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "dataplane/config/publish.hpp"
#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"
#include "dataplane/pipeline/io.hpp"

namespace penstock::worker {

class Worker {
 public:
    // `shares_cpu`: another busy thread runs on the same CPU, so an idle round gives the CPU away.
    Worker(std::unique_ptr<pipeline::WorkerContext> context, const pipeline::WorkerIo& io, config::Publisher& publisher, bool shares_cpu);

    // The poll loop; returns once stop() was called. On the worker's lcore.
    void run() noexcept;
    // Any thread.
    void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }  // pairs with nothing: the loop ends a round later

    [[nodiscard]] const pipeline::WorkerContext& context() const noexcept { return *owned_; }
    // Generation of the snapshot that the last round used. Any thread.
    [[nodiscard]] uint64_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
    // TSC at the first round; 0 before. Any thread.
    [[nodiscard]] uint64_t started_at() const noexcept { return started_at_.load(std::memory_order_relaxed); }

    // After run() has returned, on the stopping thread: frees the packets that wait for next hops.
    void free_held_packets() noexcept;

 private:
    uint32_t round() noexcept;
    void housekeeping() noexcept;

    std::unique_ptr<pipeline::WorkerContext> owned_;
    pipeline::WorkerContext& context_;
    pipeline::WorkerIo io_;
    pipeline::Burst burst_;
    config::Publisher& publisher_;
    const bool shares_cpu_;
    TscTime next_housekeeping_;
    std::atomic<bool> stopping_{false};
    std::atomic<uint64_t> generation_{0};
    std::atomic<uint64_t> started_at_{0};
};

}  // namespace penstock::worker
