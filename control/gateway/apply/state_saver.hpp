// SPDX-License-Identifier: Apache-2.0
// Writes the last good configuration on its own thread: syncing a disk takes longer than applying a change,
// and only the newest state matters. A state that is replaced before it is written is never written.
//
// The first change after a quiet period is written at once. While changes continue, each write is followed by
// a rest of nine times its duration, at most kRestMax. Saving therefore takes a tenth of a processor and of
// the disk at any size. A crash loses at most what was applied in the last kRestMax and in the duration of
// one write.
//
// A write that fails (disk full or read-only) is repeated until it succeeds, after pauses that double from
// kRetryFirst to kRetryMax. Each attempt writes the newest state.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "control/gateway/apply/last_good.hpp"
#include "control/gateway/compile/compile.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// The reconciler's state in force.
struct StateInForce {
    rpc::StateVersion version;
    std::shared_ptr<const Compiled> compiled;
    model::Environment environment;
};

// State of saving, for status and metrics.
struct SaveStatus {
    uint64_t failures = 0;  // since the start
    std::string error;      // of the last attempt; "" if it succeeded
    std::optional<std::chrono::steady_clock::time_point> failing_since;  // set while `error` is set
};

class StateSaver {
 public:
    static constexpr std::chrono::seconds kRestMax{30};
    static constexpr std::chrono::milliseconds kRetryFirst{500};
    static constexpr std::chrono::seconds kRetryMax{30};
    // The pause before the attempt that follows `failures` (at least one) consecutive failed attempts.
    [[nodiscard]] static std::chrono::milliseconds pause_after(uint64_t failures) noexcept;
    [[nodiscard]] static std::chrono::nanoseconds rest_after(std::chrono::nanoseconds write) noexcept;

    explicit StateSaver(std::string path);
    ~StateSaver();  // writes the pending state, in one attempt
    StateSaver(const StateSaver&) = delete;
    StateSaver& operator=(const StateSaver&) = delete;

    // Costs almost nothing.
    void save(StateInForce state);
    // Any thread.
    [[nodiscard]] SaveStatus status() const;

 private:
    void run();
    [[nodiscard]] Status write(const StateInForce& state) const;
    void note(const Status& written, std::chrono::steady_clock::time_point now);

    const std::string path_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    SaveStatus status_;
    uint64_t failures_in_a_row_ = 0;
    std::optional<StateInForce> next_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace penstock::gateway
