// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/control_loop.hpp"

#include <csignal>

#include "control/gateway/program/port_follower.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

constexpr int kSleepMaxMs = 10;  // TwinIo sleeps at most 2 ms; this is only an upper bound
constexpr auto kHousekeeping = std::chrono::seconds(1);
// Maximum number of resolutions passed on in one round. The rest stays in the workers' ring until the next
// round, a few milliseconds later.
constexpr int kResolutionsPerRound = 256;

// A library handles this signal.
bool has_handler(int signal) {
    struct sigaction present{};
    return sigaction(signal, nullptr, &present) == 0 && present.sa_handler != SIG_DFL &&
           present.sa_handler != SIG_IGN;
}

}  // namespace

std::optional<process::Signal> ControlLoop::run() {
    auto next_housekeeping = Clock::now();
    PortFollower followed(workers, flows, ports, twins, link_changed);
    std::optional<process::Signal> stopping_on;
    for (;;) {
        twin_io.poll_once(kSleepMaxMs);
        rounds.fetch_add(1, std::memory_order_relaxed);
        const auto now = Clock::now();
        if (const auto stop = handle_signals(now, stopping_on)) {
            return *stop;
        }
        if (must_hand_over()) {
            return std::nullopt;
        }
        for (int i = 0; i < kResolutionsPerRound; ++i) {
            const auto request = workers.take_neighbour_request();
            if (!request) {
                break;
            }
            linux_follower.resolve(*request);
        }
        followed.follow(now);
        if (now >= next_housekeeping) {
            next_housekeeping = now + kHousekeeping;
            workers.sweep_affinity();
            each_second(now);
            if (stopping_on && stop_drain.is_over(now, drain_step())) {
                return *stopping_on;
            }
        }
    }
}

std::optional<process::Signal> ControlLoop::handle_signals(Clock::time_point now,
                                                           std::optional<process::Signal>& stopping_on) {
    for (auto signal = signals.take(); signal.number != 0; signal = signals.take()) {
        switch (signal.meaning) {
            case process::Signal::Meaning::Stop:
                if (stop_drain.take_signal(now) == StopDrain::Answer::StopNow) {
                    return signal;
                }
                stopping_on = signal;
                begin_drain();
                break;
            case process::Signal::Meaning::Reload:
                reload();
                break;
            case process::Signal::Meaning::Unknown:
                if (has_handler(signal.number)) {
                    break;  // of net_tap, which gets a real-time signal for each received frame
                }
                log::get("control").warn(
                    "{} is ignored: penstockd stops on SIGTERM and SIGINT, and reloads on SIGHUP",
                    signal.name());
                break;
        }
    }
    return std::nullopt;
}

}  // namespace penstock::gateway
