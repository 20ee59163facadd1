// Writes the last good configuration behind the reconciler's back: syncing a disk takes longer than applying a change, and only the newest
// state matters. One thread; a state that is replaced before its turn is never written.
//
// A change after a quiet time is written at once. While changes keep coming, each write is followed by a rest of nine times what it took,
// at most kRestMax: so saving takes a tenth of a processor and of the disk at any size, and a crash loses what was applied in the last
// kRestMax, and the time of one write, at worst.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "control/gateway/compile.hpp"
#include "control/gateway/last_good.hpp"

namespace penstock::gateway {

// What is in force, as the reconciler has it.
struct StateInForce {
    rpc::StateVersion version;
    std::shared_ptr<const Compiled> compiled;
    model::Environment environment;
};

class StateSaver {
 public:
    static constexpr std::chrono::seconds kRestMax{30};
    [[nodiscard]] static std::chrono::nanoseconds rest_after(std::chrono::nanoseconds write) noexcept;

    explicit StateSaver(std::string path);
    ~StateSaver();  // writes what still waits
    StateSaver(const StateSaver&) = delete;
    StateSaver& operator=(const StateSaver&) = delete;

    // Costs next to nothing.
    void save(StateInForce state);

 private:
    void run();
    void write(const StateInForce& state) const;

    const std::string path_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::optional<StateInForce> next_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace penstock::gateway
