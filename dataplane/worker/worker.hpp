// SPDX-License-Identifier: Apache-2.0
// One worker: the poll loop over its queues and rings, and the housekeeping between bursts. Everything it
// touches per packet is its own or belongs to the snapshot of the round.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "dataplane/config/publish.hpp"
#include "dataplane/pipeline/counted_stages.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "dataplane/pipeline/state/io.hpp"
#include "dataplane/worker/detached_ports.hpp"
#include "dataplane/worker/idle.hpp"
#include "dataplane/worker/phase.hpp"
#include "dataplane/worker/sleeper.hpp"

namespace penstock::worker {

class Worker {
 public:
    struct Manner {
        // another busy thread runs on the same CPU, so an idle round gives the CPU away
        bool shares_cpu = false;
        IdleMode idle = IdleMode::Poll;
    };
    // `publisher` and `detached` must outlive the worker.
    Worker(std::unique_ptr<pipeline::WorkerContext> context, const pipeline::WorkerIo& io,
           config::Publisher& publisher, const DetachedPorts& detached, Manner manner);

    // The poll loop; returns after stop() was called. On the worker's lcore.
    void run() noexcept;
    // Any thread. The store pairs with nothing: the loop may end a round later.
    void stop() noexcept { orders_.fetch_or(kStop, std::memory_order_relaxed); }
    // Control threads, one at a time. From one of the next rounds on, the worker reports its packets to
    // `tap`. `capture` is not 0, and differs from that of the call before. Releases the tap; acquired by
    // run().
    void begin_capture(pipeline::Tap& tap, uint32_t capture) noexcept {
        tap_.store(&tap, std::memory_order_relaxed);
        orders_.fetch_or(capture << kCaptureShift, std::memory_order_release);
    }
    // The tap is no longer used when the worker has passed a quiescent point after the call
    // (config::Publisher::has_passed).
    void end_capture() noexcept { orders_.fetch_and(kStop, std::memory_order_release); }

    [[nodiscard]] const pipeline::WorkerContext& context() const noexcept { return *owned_; }
    // For another Worker in place of this one, before run().
    [[nodiscard]] std::unique_ptr<pipeline::WorkerContext> release_context() { return std::move(owned_); }
    // Generation of the snapshot used by the last round. Any thread.
    [[nodiscard]] uint64_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
    // The part of the round that the worker is in, or was in when it stopped. Any thread.
    [[nodiscard]] Phase phase() const noexcept { return phase_.load(std::memory_order_relaxed); }
    // Time of the first round, on the worker's timeline; 0 before it. Any thread.
    [[nodiscard]] uint64_t started_at() const noexcept { return started_at_.load(std::memory_order_relaxed); }
    [[nodiscard]] IdleMode idle_mode() const noexcept { return manner_.idle; }
    // A packet on any of its receive queues ends its sleep.
    [[nodiscard]] bool is_interrupted() const noexcept { return interrupted_; }

    // After run() has returned, on the stopping thread: frees the packets held for next hops or for first
    // fragments.
    void free_held_packets() noexcept;

 private:
    // orders_: bit 0 ends the loop; the bits above are the number of the capture, 0 if there is none. One
    // comparison per round covers both, so that a capture costs nothing while none runs.
    static constexpr uint32_t kStop = 1, kCaptureShift = 1;

    // The poll loop, until orders_ differs from `orders`. Not kTapped: `orders` is 0.
    template <bool kTapped>
    void poll(uint32_t orders, uint64_t& before) noexcept;
    template <bool kTapped>
    uint32_t round() noexcept;
    void set_tap(pipeline::Tap* tap) noexcept;
    // Sets PortIo::removed and watched.
    void watch_ports() noexcept;
    // The store pairs with nothing.
    void enter(Phase phase) noexcept { phase_.store(phase, std::memory_order_relaxed); }
    void housekeeping() noexcept;
    // Ticks on the worker's timeline; never decreases.
    [[nodiscard]] uint64_t read_time() noexcept;
    void look_for_detached_ports() noexcept;
    // Called after an empty round that ended at `now`; sleeps if it is time. Returns the time from which the
    // next round counts.
    uint64_t rest(uint64_t now) noexcept;

    std::unique_ptr<pipeline::WorkerContext> owned_;
    pipeline::WorkerContext& context_;
    pipeline::WorkerIo io_;
    pipeline::Burst burst_;
    config::Publisher& publisher_;
    const DetachedPorts& detached_;
    const Manner manner_;
    const pipeline::RunStages run_stages_;
    const bool interrupted_;
    IdleWatch idle_;
    Sleeper sleeper_;
    uint32_t rounds_before_yield_ = 1;
    uint32_t detached_seen_ = 0;
    TscTime next_housekeeping_;
    std::atomic<uint32_t> orders_{0};
    std::atomic<pipeline::Tap*> tap_{nullptr};  // pairs with orders_
    std::atomic<uint64_t> generation_{0};
    std::atomic<uint64_t> started_at_{0};
    std::atomic<Phase> phase_{Phase::Starting};
};

}  // namespace penstock::worker
