#include "control/gateway/state_saver.hpp"

#include <utility>

#include "control/log/log.hpp"

namespace penstock::gateway {

StateSaver::StateSaver(std::string path) : path_(std::move(path)), thread_([this] { run(); }) {}

StateSaver::~StateSaver() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void StateSaver::save(DesiredState state) {
    {
        const std::lock_guard lock(mutex_);
        next_ = std::move(state);
    }
    wake_.notify_one();
}

void StateSaver::run() {
    for (;;) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return next_ || stopping_; });
        if (!next_) {
            return;
        }
        const DesiredState state = std::move(*std::exchange(next_, std::nullopt));
        lock.unlock();
        if (const auto written = write_last_good(path_, state); !written) {
            log::get("control").error("the last good configuration is not saved: {}", written.error().what);
        } else {
            log::get("control").debug("saved {} service ports, version {} of {}", state.services.size(), state.version.number,
                                      state.version.source);
        }
    }
}

}  // namespace penstock::gateway
