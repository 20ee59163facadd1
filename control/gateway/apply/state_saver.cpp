// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/apply/state_saver.hpp"

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

std::chrono::milliseconds StateSaver::pause_after(uint64_t failures) noexcept {
    constexpr uint64_t kDoublingsMax = 10;  // far beyond kRetryMax
    return std::min<std::chrono::milliseconds>(kRetryFirst * (1 << std::min(failures - 1, kDoublingsMax)),
                                               kRetryMax);
}

SaveStatus StateSaver::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

void StateSaver::run() {
    using Clock = std::chrono::steady_clock;
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return next_ || stopping_; });
        if (!next_) {
            return;
        }
        StateInForce state = std::move(*std::exchange(next_, std::nullopt));
        lock.unlock();
        const auto began = Clock::now();
        const Status written = write(state);
        const auto ended = Clock::now();
        lock.lock();
        note(written, ended);
        if (!written) {
            if (stopping_) {
                return;
            }
            if (!next_) {
                next_ = std::move(state);
            }
        }
        const auto pause = written ? rest_after(ended - began) : pause_after(failures_in_a_row_);
        wake_.wait_until(lock, ended + pause, [this] { return stopping_; });
    }
}

// Called with the lock held. Repetitions of the same error are logged only at level debug, because a disk can
// stay full for days.
void StateSaver::note(const Status& written, std::chrono::steady_clock::time_point now) {
    auto& logger = log::get("control");
    if (written) {
        if (status_.failing_since) {
            logger.info("the last good configuration is saved again, after {} failed attempts",
                        failures_in_a_row_);
        }
        failures_in_a_row_ = 0;
        status_.error.clear();
        status_.failing_since.reset();
        return;
    }
    const std::string& why = written.error().what;
    const bool is_news = status_.error != why;
    ++status_.failures;
    ++failures_in_a_row_;
    status_.error = why;
    status_.failing_since = status_.failing_since.value_or(now);
    logger.log(is_news ? spdlog::level::err : spdlog::level::debug,
               "the last good configuration is not saved: {}; a restart would use an older one; next attempt "
               "in {} ms",
               why, pause_after(failures_in_a_row_).count());
}

// Writes the versions in force, not the desired ones: a refused version must not come back from the file as a
// good one.
Status StateSaver::write(const StateInForce& in_force) const {
    DesiredState state{.version = in_force.version, .services = {}, .environment = in_force.environment};
    for (const auto& [key, programmed] : in_force.compiled->services) {
        state.services.insert_or_assign(key, programmed.desired);
    }
    auto written = write_last_good(path_, state);
    if (written) {
        log::get("control").debug("saved {} service ports, version {} of {}", state.services.size(),
                                  state.version.number, state.version.source);
    }
    return written;
}

}  // namespace penstock::gateway
