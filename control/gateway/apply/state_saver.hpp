// Writes the last good configuration behind the reconciler's back: syncing a disk takes longer than applying a change, and only the newest
// state matters. One thread; a state that is replaced before its turn is never written.
//
// A change after a quiet time is written at once. While changes keep coming, each write is followed by a rest of nine times what it took,
// at most kRestMax: so saving takes a tenth of a processor and of the disk at any size, and a crash loses what was applied in the last
// kRestMax, and the time of one write, at worst.
//
// A write that fails (no room, a read-only disk) is repeated until it succeeds, after pauses that double from kRetryFirst to kRetryMax. The
// newest state is written then.
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

// What is in force, as the reconciler has it.
struct StateInForce {
    rpc::StateVersion version;
    std::shared_ptr<const Compiled> compiled;
    model::Environment environment;
};

// Where saving stands, for status and metrics.
struct SaveStatus {
    uint64_t failures = 0;  // since the start
    std::string error;      // of the last attempt; "" if it succeeded
    std::optional<std::chrono::steady_clock::time_point> failing_since;  // set while `error` is
};

class StateSaver {
 public:
    static constexpr std::chrono::seconds kRestMax{30};
    static constexpr std::chrono::milliseconds kRetryFirst{500};
    static constexpr std::chrono::seconds kRetryMax{30};
    // Before the attempt that follows `failures` failed ones in a row, at least one.
    [[nodiscard]] static std::chrono::milliseconds pause_after(uint64_t failures) noexcept;
    [[nodiscard]] static std::chrono::nanoseconds rest_after(std::chrono::nanoseconds write) noexcept;

    explicit StateSaver(std::string path);
    ~StateSaver();  // writes what still waits, in one attempt
    StateSaver(const StateSaver&) = delete;
    StateSaver& operator=(const StateSaver&) = delete;

    // Costs next to nothing.
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
