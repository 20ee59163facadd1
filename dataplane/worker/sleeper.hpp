// How a worker sleeps: for a time, or until a packet arrives on one of its receive queues where all of them can interrupt. The worker's own
// thread only.
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

    // A worker without queues is never woken by one: what it gets comes by rings.
    [[nodiscard]] static bool can_be_interrupted(const pipeline::WorkerIo& io) noexcept;

    // On the worker's thread, before the first sleep: makes timers exact, and collects the queues' interrupts where `interrupted`. Where
    // that fails, sleeps end by time alone: the same as far as they are bounded by it.
    void prepare(bool interrupted) noexcept;

    // Asks the queues for an interrupt with their next packet. One that came before may have raised none: look once more, then sleep.
    void arm() noexcept;
    [[nodiscard]] bool is_armed() const noexcept { return armed_; }

    // Sleeps, at most so long. Touches no device.
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
