// Writes the last good configuration behind the reconciler's back: syncing a disk takes longer than applying a change, and only the newest
// state matters. One thread; a state that is replaced before its turn is never written.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "control/gateway/last_good.hpp"

namespace penstock::gateway {

class StateSaver {
 public:
    explicit StateSaver(std::string path);
    ~StateSaver();  // writes what still waits
    StateSaver(const StateSaver&) = delete;
    StateSaver& operator=(const StateSaver&) = delete;

    void save(DesiredState state);

 private:
    void run();

    const std::string path_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::optional<DesiredState> next_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace penstock::gateway
