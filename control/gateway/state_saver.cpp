#include "control/gateway/state_saver.hpp"

#include <algorithm>
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

std::chrono::nanoseconds StateSaver::rest_after(std::chrono::nanoseconds write) noexcept {
    return std::min<std::chrono::nanoseconds>(9 * write, kRestMax);
}

void StateSaver::save(StateInForce state) {
    {
        const std::lock_guard lock(mutex_);
        next_ = std::move(state);
    }
    wake_.notify_one();
}

void StateSaver::run() {
    using Clock = std::chrono::steady_clock;
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return next_ || stopping_; });
        if (!next_) {
            return;
        }
        const StateInForce state = std::move(*std::exchange(next_, std::nullopt));
        lock.unlock();
        const auto began = Clock::now();
        write(state);
        const auto ended = Clock::now();
        lock.lock();
        wake_.wait_until(lock, ended + rest_after(ended - began), [this] { return stopping_; });
    }
}

// Not what was asked: a refused version must not come back from the file as a good one.
void StateSaver::write(const StateInForce& in_force) const {
    DesiredState state{.version = in_force.version, .services = {}, .environment = in_force.environment};
    for (const auto& [key, programmed] : in_force.compiled->services) {
        state.services.insert_or_assign(key, programmed.desired);
    }
    if (const auto written = write_last_good(path_, state); !written) {
        log::get("control").error("the last good configuration is not saved: {}", written.error().what);
    } else {
        log::get("control").debug("saved {} service ports, version {} of {}", state.services.size(), state.version.number,
                                  state.version.source);
    }
}

}  // namespace penstock::gateway
