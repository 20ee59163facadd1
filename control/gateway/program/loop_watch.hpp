// SPDX-License-Identifier: Apache-2.0
// The thread that watches all other loops of penstockd. It logs each stall and its end, and provides the list
// for health endpoints, status and metrics (StallWatch detects stalls).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/program/stall_watch.hpp"

namespace penstock::gateway {

// All loops at the last check. Immutable.
struct LoopHealth {
    struct Loop {
        std::string name;
        bool forwards = false;
        bool is_stalled = false;
        std::string why;  // "worker 0 has made no round since 2026-01-02T03:04:05Z; it stopped in: receiving"
    };
    std::vector<Loop> loops;

    [[nodiscard]] std::vector<std::string> stalls() const;
    // False if a stalled loop stops traffic.
    [[nodiscard]] bool forwards() const noexcept;
};

class LoopWatch {
 public:
    static constexpr std::chrono::milliseconds kLookEvery{200};

    struct Source {
        StallWatch::Loop loop;
        std::function<LoopReading()> read;  // on the watching thread
    };
    struct Options {
        std::vector<Source> sources;
        std::function<void()> on_change;  // on the watching thread, after health() has changed
        std::function<void(const LoopHealth&)> at_each_look;  // on the watching thread, after each check
    };
    // All objects that the functions of `options` use must outlive it.
    explicit LoopWatch(Options options);
    LoopWatch(const LoopWatch&) = delete;
    LoopWatch& operator=(const LoopWatch&) = delete;

    // Stops checking; health() stays unchanged. Idempotent.
    void stop();
    // Any thread; never null.
    [[nodiscard]] std::shared_ptr<const LoopHealth> health() const;

 private:
    void run(const std::stop_token& stopped);
    void look();

    const Options options_;
    StallWatch watch_;
    mutable std::mutex mutex_;
    std::shared_ptr<const LoopHealth> health_;
    std::jthread thread_;  // last: it uses all members above
};

}  // namespace penstock::gateway
