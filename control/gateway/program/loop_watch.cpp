// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/loop_watch.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "control/gateway/care/proxy_health.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

std::vector<StallWatch::Loop> loops_of(const std::vector<LoopWatch::Source>& sources) {
    std::vector<StallWatch::Loop> loops;
    for (const LoopWatch::Source& source : sources) {
        loops.push_back(source.loop);
    }
    return loops;
}

std::string where(const std::string& stage) {
    return stage.empty() ? std::string() : "; it stopped in: " + stage;
}

std::string seconds_text(std::chrono::milliseconds time) {
    return std::to_string(time.count() / 1'000) + "." + std::to_string(time.count() % 1'000 / 100) + " s";
}

}  // namespace

std::vector<std::string> LoopHealth::stalls() const {
    std::vector<std::string> out;
    for (const Loop& loop : loops) {
        if (loop.is_stalled) {
            out.push_back(loop.why);
        }
    }
    return out;
}

bool LoopHealth::forwards() const noexcept {
    return std::ranges::none_of(loops, [](const Loop& loop) { return loop.is_stalled && loop.forwards; });
}

LoopWatch::LoopWatch(Options options) : options_(std::move(options)), watch_(loops_of(options_.sources)) {
    auto health = std::make_shared<LoopHealth>();
    for (const StallWatch::Loop& loop : watch_.loops()) {
        health->loops.push_back({.name = loop.name, .forwards = loop.forwards, .why = {}});
    }
    health_ = std::move(health);
    thread_ = std::jthread([this](const std::stop_token& stopped) { run(stopped); });
}

void LoopWatch::stop() {
    thread_.request_stop();
    if (thread_.joinable()) {
        thread_.join();
    }
}

std::shared_ptr<const LoopHealth> LoopWatch::health() const {
    const std::lock_guard lock(mutex_);
    return health_;
}

void LoopWatch::run(const std::stop_token& stopped) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stopped, kLookEvery, [] { return false; }) && !stopped.stop_requested()) {
        look();
    }
}

void LoopWatch::look() {
    std::vector<LoopReading> readings;
    for (const Source& source : options_.sources) {
        readings.push_back(source.read());
    }
    const auto changes = watch_.look(std::chrono::steady_clock::now(), readings);
    if (!changes.empty()) {
        auto& logger = log::get("control");
        auto next = std::make_shared<LoopHealth>(*health());
        for (const StallWatch::Change& change : changes) {
            LoopHealth::Loop& loop = next->loops[change.loop];
            loop.is_stalled = change.has_stalled;
            const auto began = std::chrono::system_clock::now() - change.silence;
            loop.why = change.has_stalled
                           ? loop.name + " has made no round since " + rfc3339(began) + where(change.stage)
                           : std::string();
            if (change.has_stalled) {
                logger.error("{} has made no round for {}{}", loop.name, seconds_text(change.silence),
                             where(change.stage));
            } else {
                logger.warn("{} is running again, after {}", loop.name, seconds_text(change.silence));
            }
        }
        {
            const std::lock_guard lock(mutex_);
            health_ = std::move(next);
        }
        options_.on_change();
    }
    if (options_.at_each_look) {
        options_.at_each_look(*health());
    }
}

}  // namespace penstock::gateway
