// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/worker.hpp"

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <sched.h>

#include <algorithm>

#include "dataplane/pipeline/aging.hpp"
#include "dataplane/pipeline/bfd.hpp"
#include "dataplane/pipeline/flow_orders.hpp"
#include "dataplane/pipeline/opening/superseded.hpp"
#include "dataplane/pipeline/rx.hpp"
#include "dataplane/pipeline/tap.hpp"
#include "dataplane/pipeline/tx.hpp"

namespace penstock::worker {

using stats::Counter;

namespace {
// Idle rounds before a worker that shares its CPU yields it: enough that a burst which arrives back to back
// is not interrupted.
constexpr uint32_t kIdleRoundsBeforeYield = 32;
}  // namespace

Worker::Worker(std::unique_ptr<pipeline::WorkerContext> context, const pipeline::WorkerIo& io,
               config::Publisher& publisher, const DetachedPorts& detached, Manner manner)
    : owned_(std::move(context)),
      context_(*owned_),
      io_(io),
      publisher_(publisher),
      detached_(detached),
      manner_(manner),
      run_stages_(pipeline::stages_of(context_)),
      interrupted_(manner.idle == IdleMode::Adaptive && Sleeper::can_be_interrupted(io)),
      idle_(manner.idle, context_.rate, interrupted_),
      sleeper_(io_) {}

void Worker::run() noexcept {
    if (manner_.idle == IdleMode::Adaptive) {
        sleeper_.prepare(interrupted_);
    }
    publisher_.go_online(context_.self);
    uint64_t before = read_time();
    started_at_.store(before, std::memory_order_relaxed);
    context_.now = {before};
    next_housekeeping_ = context_.now;
    for (;;) {
        const uint32_t orders = orders_.load(std::memory_order_acquire);  // pairs with begin_capture()
        if ((orders & kStop) != 0) {
            break;
        }
        if (orders != 0) {
            set_tap(tap_.load(std::memory_order_relaxed));
            poll<true>(orders, before);
            set_tap(nullptr);
        } else {
            poll<false>(orders, before);
        }
    }
    publisher_.go_offline(context_.self);
    enter(Phase::Stopped);
}

void Worker::set_tap(pipeline::Tap* tap) noexcept {
    context_.tap = tap;
    watch_ports();
}

template <bool kTapped>
void Worker::poll(uint32_t orders, uint64_t& before) noexcept {
    while (orders_.load(std::memory_order_relaxed) == (kTapped ? orders : 0)) {
        const uint32_t packets = round<kTapped>();
        const uint64_t after = read_time();
        context_.count()[Counter::Polls].add(1);
        if (packets > 0) {
            context_.count()[Counter::BusyTicks].add(after - before);
            rounds_before_yield_ = kIdleRoundsBeforeYield;
            idle_.after_round(true, {after});
            if (sleeper_.is_armed()) {
                sleeper_.disarm();
            }
            before = after;
        } else {
            context_.count()[Counter::EmptyPolls].add(1);
            before = rest(after);
        }
    }
}

uint64_t Worker::read_time() noexcept {
    return context_.timeline.at(rte_rdtsc()).value;
}

// Called only when no packet waits, so its system calls cost the packet path nothing.
uint64_t Worker::rest(uint64_t now) noexcept {
    if (const TscTicks length = idle_.after_round(false, {now}); length.value > 0) {
        if (!sleeper_.is_armed()) {
            sleeper_.arm();
            return now;
        }
        // Never beyond the time of the next housekeeping.
        const TscTicks until_housekeeping = ticks_between({now}, next_housekeeping_);
        // A publication or the removal of a port must not wait for a sleeping worker.
        publisher_.go_offline(context_.self);
        enter(Phase::Asleep);
        sleeper_.sleep(std::min(length, until_housekeeping), context_.rate);
        publisher_.go_online(context_.self);
        look_for_detached_ports();
        sleeper_.disarm();
        const uint64_t awake = read_time();
        context_.count()[Counter::Sleeps].add(1);
        context_.count()[Counter::SleepTicks].add(awake - now);
        return awake;
    }
    if (manner_.shares_cpu && --rounds_before_yield_ == 0) {
        rounds_before_yield_ = kIdleRoundsBeforeYield;
        sched_yield();
    }
    return now;
}

void Worker::look_for_detached_ports() noexcept {
    const uint32_t detached = detached_.read();
    if (detached == detached_seen_) [[likely]] {
        return;
    }
    detached_seen_ = detached;
    watch_ports();
}

void Worker::watch_ports() noexcept {
    for (uint32_t p = 0; p < io_.ports; ++p) {
        io_.port[p].removed = (detached_seen_ >> p & 1) != 0;
        io_.port[p].watched = io_.port[p].removed || context_.tap != nullptr;
    }
}

template <bool kTapped>
uint32_t Worker::round() noexcept {
    if constexpr (kTapped) {
        context_.tap->set_time(rte_rdtsc());
    }
    const config::Snapshot* snapshot = publisher_.read();
    look_for_detached_ports();
    context_.begin_round(snapshot, {rte_rdtsc()});
    const bool changed = snapshot->generation != generation_.load(std::memory_order_relaxed);
    if (changed) {
        generation_.store(snapshot->generation, std::memory_order_relaxed);
        pipeline::release_pending(context_, io_);  // the change may resolve the next hops that they wait for
    }

    uint32_t packets = 0;
    const auto serve_burst = [&]() PENSTOCK_INLINE_LAMBDA {
        if constexpr (kTapped) {
            context_.tap->set_time(rte_rdtsc());
            context_.tap->arrived(burst_);
        }
        enter(Phase::Forwarding);
        run_stages_(context_, burst_);
        if constexpr (kTapped) {
            context_.tap->decided(context_, burst_);
        }
        enter(Phase::Sending);
        pipeline::dispose(context_, io_, burst_);
        if constexpr (kTapped) {
            context_.tap->disposed();
        }
    };
    const auto process = [&](uint32_t taken) {
        if (taken > 0) {
            serve_burst();
            packets += taken;
        }
        // Immediately, so that they directly follow the first fragment that they waited for, in every ring
        // and queue.
        while (context_.fragments.has_ready()) [[unlikely]] {
            pipeline::receive_ready_fragments(context_, burst_);
            serve_burst();
        }
        enter(Phase::Receiving);
    };
    enter(Phase::Receiving);
    for (uint32_t p = 0; p < io_.ports; ++p) {
        const pipeline::PortIo& port = io_.port[p];
        for (uint16_t queue = port.removed ? port.rx_queues : port.first_rx_queue; queue < port.rx_queues;
             queue = static_cast<uint16_t>(queue + port.rx_queue_step)) {
            process(pipeline::receive(context_, io_, NicPortId{static_cast<uint8_t>(p)}, queue, burst_));
        }
    }
    for (uint32_t p = 0; p < io_.ports; ++p) {
        process(pipeline::receive_from_host(context_, io_, NicPortId{static_cast<uint8_t>(p)}, burst_));
    }
    process(pipeline::receive_handed(context_, io_, burst_));
    enter(Phase::Sending);
    if constexpr (kTapped) {
        context_.tap->suspend(true);
    }
    packets += pipeline::send_for_others(context_, io_);
    if constexpr (kTapped) {
        context_.tap->suspend(false);
        context_.tap->set_time(rte_rdtsc());
    }
    // After the packets: a round without packets does nothing else, and in a round with many packets the
    // slice waits for the packets, not the reverse.
    if (changed || context_.flow_orders.is_waiting) {
        enter(Phase::FlowOrders);
        packets += pipeline::work_off_flow_orders(context_);
    }

    if (context_.now >= next_housekeeping_) {
        enter(Phase::Housekeeping);
        housekeeping();
        next_housekeeping_ = context_.now + context_.rate.milliseconds(conn::kAgingTickMs);
    }
    if (context_.own_segments.count > 0) {
        pipeline::send_own_segments(context_, io_);
    }
    if (context_.bfd != nullptr && context_.self == pipeline::kBfdWorker) {
        pipeline::run_bfd(context_, io_);
    }
    // No reference into the snapshot is held any more.
    publisher_.quiescent(context_.self);
    // A thread that waited for this point may now close a port's device, and an idle worker is about to arm
    // its queues.
    look_for_detached_ports();
    return packets;
}

void Worker::housekeeping() noexcept {
    const uint64_t before = read_time();
    pipeline::age_connections(context_, conn::units_per_tick(context_.connections.capacity()));
    context_.count()[Counter::AgingTicks].add(read_time() - before);
    if (context_.copies != nullptr) {
        pipeline::end_superseded(context_);
    }
    if (!context_.pending.empty()) {
        pipeline::release_pending(context_, io_);
    }
    if (context_.fragments.waiting() > 0) {
        pipeline::expire_fragments(context_);
    }
    context_.count()[Counter::FragmentsWaiting].set(context_.fragments.waiting());
}

void Worker::free_held_packets() noexcept {
    context_.fragments.clear([](rte_mbuf* mbuf) { rte_pktmbuf_free(mbuf); });
    context_.pending.clear([](rte_mbuf* mbuf) { rte_pktmbuf_free(mbuf); });
}

}  // namespace penstock::worker
