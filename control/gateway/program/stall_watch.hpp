// Finds threads that have stopped going round their loop. Pure: readings and moments go in, changes come out; the thread around it is
// LoopWatch.
//
// A loop has stalled when it has made no round for its limit and several looks in a row have found that. The looks matter after this
// process itself was stopped: then all loops look late at the first look, and none has had the time to go on.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::gateway {

// One loop at one moment.
struct LoopReading {
    uint64_t rounds = 0;
    bool is_resting = false;  // it waits for work, and makes no rounds meanwhile
    std::string stage = {};   // what it does now, where that is known
};

class StallWatch {
 public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr uint32_t kLooks = 3;

    struct Loop {
        std::string name;  // "worker 0"
        std::chrono::milliseconds limit;
        bool forwards = false;  // traffic stops with it
    };
    struct Stall {
        size_t loop = 0;
        std::string stage;
        Time since;  // its last round, as seen
    };
    struct Change {
        size_t loop = 0;
        bool has_stalled = false;  // else: it goes round again
        std::string stage;         // in which it stopped
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
