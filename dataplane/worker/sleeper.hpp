// SPDX-License-Identifier: Apache-2.0
// Sleep of a worker: for a limited time, or until a packet arrives on one of its receive queues if all of
// them can raise interrupts. The worker's own thread only.
#pragma once

#include "dataplane/base/time.hpp"
#include "dataplane/pipeline/state/io.hpp"

namespace penstock::worker {

class Sleeper {
 public:
    explicit Sleeper(const pipeline::WorkerIo& io) noexcept : io_(io) {}
    ~Sleeper();
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    // Whether all receive queues of a worker can raise interrupts. False without queues: packets then arrive
    // by rings.
    [[nodiscard]] static bool can_be_interrupted(const pipeline::WorkerIo& io) noexcept;

    // On the worker's thread, before the first sleep: makes timers exact and, if `interrupted`, registers the
    // interrupts of its queues. If that fails, sleeps end by time alone, within the same limits.
    void prepare(bool interrupted) noexcept;

    // Requests an interrupt from each queue for its next packet. An earlier packet may have raised none: poll
    // once more, then sleep.
    void arm() noexcept;
    [[nodiscard]] bool is_armed() const noexcept { return armed_; }

    // Sleeps for at most `length`. Touches no device.
    void sleep(TscTicks length, TscRate rate) noexcept;
    void disarm() noexcept;

 private:
    template <typename Each>
    void for_each_queue(Each each) const noexcept;

    const pipeline::WorkerIo& io_;
    int epoll_ = -1;  // -1: sleeps end by time alone
    bool armed_ = false;
};

}  // namespace penstock::worker
