// SPDX-License-Identifier: Apache-2.0
// Detects threads with a stalled loop. Pure: readings and times are arguments, changes are results.
// LoopWatch runs the thread.
//
// A loop is stalled if it made no round within its limit and several consecutive checks have found that. The
// number of checks matters after this process itself was stopped: then all loops are late at the first check,
// before any of them could continue.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::gateway {

// The reading of one loop at one time.
struct LoopReading {
    uint64_t rounds = 0;
    bool is_resting = false;  // waits for work and makes no rounds meanwhile
    std::string stage = {};   // the current stage, if known
};

class StallWatch {
 public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr uint32_t kLooks = 3;

    struct Loop {
        std::string name;  // "worker 0"
        std::chrono::milliseconds limit;
        bool forwards = false;  // traffic stops if this loop stalls
    };
    struct Stall {
        size_t loop = 0;
        std::string stage;
        Time since;  // time at which its last round was observed
    };
    struct Change {
        size_t loop = 0;
        bool has_stalled = false;  // otherwise: running again
        std::string stage;         // the stage in which it stopped
        std::chrono::milliseconds silence{};
    };

    explicit StallWatch(std::vector<Loop> loops) : loops_(std::move(loops)), states_(loops_.size()) {}

    // `readings` in the order of the loops.
    std::vector<Change> look(Time now, std::span<const LoopReading> readings);
    // In the order of the loops.
    [[nodiscard]] std::vector<Stall> stalled() const;
    [[nodiscard]] const std::vector<Loop>& loops() const noexcept { return loops_; }

 private:
    struct State {
        std::optional<uint64_t> rounds;
        Time progress_at{};
        uint32_t looks = 0;  // since then
        bool is_stalled = false;
        std::string stage;
    };
    std::vector<Loop> loops_;
    std::vector<State> states_;
};

}  // namespace penstock::gateway
