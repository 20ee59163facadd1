// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"

namespace penstock::cli {
namespace {

std::string open_text(uint64_t connections) {
    return std::to_string(connections) + (connections == 1 ? " connection is" : " connections are") + " open";
}

// An older penstockd does not distinguish open connections from closed ones.
template <typename Answer>
uint64_t open_of(const Answer& answer) {
    return answer.has_open_connections() ? answer.open_connections() : answer.connections();
}

// An older penstockd does not report the steps of a drain.
bool is_over(const v1::Status& status) {
    return status.drain_step().empty() ? open_of(status) == 0 : status.drain_step() == "done";
}

// Waits until the drain is done, at most `limit`, and returns the number of connections that are open
// then. They are not terminated; the user can terminate them by stopping penstockd. Progress is printed to
// stderr.
struct Waited {
    bool is_over = false;
    uint64_t open = 0;
};
Result<Waited> wait_for_end(Gateway& gateway, uint64_t open_at_first, std::chrono::seconds limit) {
    constexpr std::chrono::milliseconds kEvery{250};
    constexpr std::chrono::seconds kPrintEvery{5};
    const auto until = std::chrono::steady_clock::now() + limit;
    auto print_at = std::chrono::steady_clock::now() + kPrintEvery;
    for (;;) {
        PENSTOCK_TRY(const auto status, gateway.status());
        const auto now = std::chrono::steady_clock::now();
        if (status.drain_step().empty() && open_at_first == 0) {
            return Waited{true, 0};
        }
        if (is_over(status) || now >= until) {
            return Waited{is_over(status), open_of(status)};
        }
        if (const std::string progress = drain_progress(status); !progress.empty() && now >= print_at) {
            print_at = now + kPrintEvery;
            std::cerr << progress << "; "
                      << std::chrono::duration_cast<std::chrono::seconds>(until - now).count() << " s left\n";
        }
        std::this_thread::sleep_for(kEvery);
    }
}

Result<v1::SetDrainedResponse> set(Gateway& gateway, bool drained, bool until_restart) {
    v1::SetDrainedRequest request;
    request.set_drained(drained);
    request.set_until_restart(until_restart);
    return gateway.set_drained(request);
}

std::string restart_text(const v1::SetDrainedResponse& answer) {
    return answer.not_kept().empty() ? std::string() : "; not kept over a restart: " + answer.not_kept();
}

Result<std::string> run_drain(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto drained, set(*gateway, true, request.until_restart));
    const std::string done = "drained: health checks answer 503" + restart_text(drained);
    if (!request.timeout_given) {
        return done + "; " + open_text(open_of(drained)) + "\n";
    }
    PENSTOCK_TRY(const Waited waited,
                 wait_for_end(*gateway, open_of(drained), std::chrono::seconds(request.timeout_s)));
    if (!waited.is_over) {
        return fail(Errc::Exhausted, "drained, but after " + std::to_string(request.timeout_s) + " s " +
                                         open_text(waited.open) + "; open connections are not terminated");
    }
    return done + ", and no connection is open\n";
}

Result<std::string> run_undrain(Gateway* gateway, const Request&) {
    PENSTOCK_TRY(const auto drained, set(*gateway, false, false));
    if (!drained.not_kept().empty()) {
        return fail(Errc::Exhausted,
                    "in service, but the next start will be drained again: " + drained.not_kept());
    }
    return "in service: health checks report the actual state; " + open_text(open_of(drained)) + "\n";
}

}  // namespace

Command drain() {
    return {.words = {"drain"},
            .options = {"until-restart"},
            .summary =
                "Take the gateway out of service until undrain, also over a restart: health checks answer "
                "503, forwarding "
                "continues. With --timeout, wait for the last open connection to end",
            .run = run_drain};
}

Command undrain() {
    return {.words = {"undrain"}, .summary = "Return the gateway to service after drain", .run = run_undrain};
}

}  // namespace penstock::cli
