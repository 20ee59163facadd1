// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/capture.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {

namespace {

// Waits until every worker has ended the round that it was in at `moment`; not for a stopped worker.
void wait_for_round(const config::Publisher& publisher, config::Publisher::Moment moment) {
    const auto until = std::chrono::steady_clock::now() + config::Publisher::kWaitMax;
    while (!publisher.has_passed(moment) && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

// Slots of a ring in this memory.
uint32_t slots_in(size_t bytes, const pipeline::TapOptions& options) {
    return static_cast<uint32_t>(std::bit_floor(bytes / (sizeof(capture::Record) + options.snap_bytes)));
}

}  // namespace

Result<std::unique_ptr<Capture>> Capture::start(WorkerSet& workers, const pipeline::TapOptions& options) {
    WorkerSet::Impl& impl = workers.impl();
    if (impl.former_taps && impl.publisher->has_passed(impl.former_taps->unused_after)) {
        impl.former_taps.reset();
    }
    if (impl.is_captured || impl.former_taps) {
        return fail(Errc::AlreadyExists, impl.is_captured
                                             ? "a capture is running; only one runs at a time"
                                             : "a stopped worker has not ended the former capture yet");
    }
    const uint32_t slots = slots_in(std::max(kBytes / impl.workers_.size(), kBytesOfWorkerMin), options);
    std::vector<std::unique_ptr<pipeline::Tap>> taps;
    const uint32_t number = ++impl.captures;
    for (const auto& worker : impl.workers_) {
        taps.push_back(std::make_unique<pipeline::Tap>(options, slots));
        worker->begin_capture(*taps.back(), number);
    }
    auto host_tap = std::make_unique<HostTap>(options, slots_in(kBytesOfWorkerMin, options));
    {
        const std::lock_guard lock(impl.host_tap_mutex);
        impl.host_tap = host_tap.get();
    }
    impl.is_captured = true;
    wait_for_round(*impl.publisher, impl.publisher->now());
    return std::unique_ptr<Capture>(new Capture(workers, std::move(taps), std::move(host_tap)));
}

Capture::~Capture() {
    stop();
    WorkerSet::Impl& impl = workers_.impl();
    if (!impl.publisher->has_passed(stopped_at_)) {
        impl.former_taps = WorkerSet::Impl::FormerTaps{stopped_at_, std::move(taps_)};
    }
    impl.is_captured = false;
}

void Capture::stop() {
    if (!runs_) {
        return;
    }
    runs_ = false;
    WorkerSet::Impl& impl = workers_.impl();
    for (const auto& worker : impl.workers_) {
        worker->end_capture();
    }
    {
        const std::lock_guard lock(impl.host_tap_mutex);
        impl.host_tap = nullptr;
    }
    stopped_at_ = impl.publisher->now();
    wait_for_round(*impl.publisher, stopped_at_);
}

uint32_t Capture::read(uint32_t max, const Visit& visit) {
    uint32_t count = 0;
    for (const auto& tap : taps_) {
        count += tap->ring().read(max - count, visit);
    }
    return count + host_tap_->ring().read(max - count, visit);
}

uint64_t Capture::lost() const {
    uint64_t lost = host_tap_->ring().lost();
    for (const auto& tap : taps_) {
        lost += tap->ring().lost();
    }
    return lost;
}

}  // namespace penstock::worker
