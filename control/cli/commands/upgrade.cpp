// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

std::string ms_text(uint64_t us) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f ms", static_cast<double>(us) / 1000);
    return text.data();
}

std::string name_of(const v1::Upgrade& upgrade) {
    return "upgrade " + std::to_string(upgrade.number()) + " to " + upgrade.binary() +
           (upgrade.version().empty() ? "" : " (penstockd " + upgrade.version() + ")");
}

// Prints the steps that have been added since the last call to stderr.
class Progress {
 public:
    void print(const v1::Upgrade& upgrade) {
        for (int i = printed_; i < upgrade.steps_size(); ++i) {
            std::cerr << ms_text(upgrade.steps(i).at_us()) << ": " << upgrade.steps(i).name() << "\n";
        }
        printed_ = std::max(printed_, upgrade.steps_size());
    }

 private:
    int printed_ = 0;
};

Error failure(const v1::Upgrade& upgrade) {
    std::string text = name_of(upgrade) + " failed: " + upgrade.why();
    if (!upgrade.last_lines().empty()) {
        text += "\nlast lines of the successor's log:";
        for (const std::string& line : upgrade.last_lines()) {
            text += "\n  " + line;
        }
    }
    return {Errc::Exhausted, text};
}

// The process that answers ends during the upgrade, so calls fail for a while.
bool is_passing(const Error& error) {
    return error.code == Errc::Unavailable || error.code == Errc::Internal;
}

Result<v1::Upgrade> wait_for_result(Gateway& gateway, uint64_t number, std::chrono::seconds limit) {
    constexpr std::chrono::milliseconds kEvery{100};
    const auto until = std::chrono::steady_clock::now() + limit;
    Progress progress;
    for (;;) {
        const auto status = gateway.status();
        if (!status && !is_passing(status.error())) {
            return std::unexpected(status.error());
        }
        if (status && status->upgrade().number() < number) {
            return fail(Errc::Exhausted,
                        "upgrade " + std::to_string(number) +
                            ": the supervisor has started again, and has no record of it; its "
                            "log has the reason");
        }
        if (status && status->upgrade().number() > number) {
            return fail(Errc::Exhausted,
                        "upgrade " + std::to_string(number) +
                            " is over, and another one was requested; the log has its result");
        }
        if (status) {
            progress.print(status->upgrade());
            if (status->upgrade().state() != v1::Upgrade::STATE_RUNNING) {
                return status->upgrade();
            }
        }
        if (std::chrono::steady_clock::now() >= until) {
            return fail(Errc::Exhausted, "upgrade " + std::to_string(number) + " is not over after " +
                                             std::to_string(limit.count()) +
                                             " s; `penstockctl status` has its result later");
        }
        std::this_thread::sleep_for(kEvery);
    }
}

Result<std::string> run_upgrade(Gateway* gateway, const Request& request) {
    v1::UpgradeRequest wanted;
    wanted.set_binary(request.binary);
    PENSTOCK_TRY(const auto begun, gateway->upgrade(wanted));
    if (!request.waits) {
        return "upgrade " + std::to_string(begun.number()) +
               " has begun; `penstockctl status` has its result\n";
    }
    constexpr std::chrono::seconds kWaitDefault{300};
    const auto limit = request.timeout_given ? std::chrono::seconds(request.timeout_s) : kWaitDefault;
    PENSTOCK_TRY(const auto upgrade, wait_for_result(*gateway, begun.number(), limit));
    if (upgrade.state() != v1::Upgrade::STATE_DONE) {
        return std::unexpected(failure(upgrade));
    }
    return name_of(upgrade) + " is done, the pause was " + ms_text(upgrade.pause_us()) + "\n";
}

}  // namespace

std::string upgrade_text(const v1::Upgrade& upgrade) {
    const std::string age = duration_text(upgrade.age_ms());
    switch (upgrade.state()) {
        case v1::Upgrade::STATE_RUNNING:
            return name_of(upgrade) + " is under way for " + age;
        case v1::Upgrade::STATE_DONE:
            return name_of(upgrade) + ", done " + age + " ago, pause " + ms_text(upgrade.pause_us());
        case v1::Upgrade::STATE_FAILED:
            return name_of(upgrade) + ", failed " + age + " ago: " + upgrade.why();
        default:
            return "none since the start of the supervisor";
    }
}

Command upgrade() {
    return {.words = {"upgrade"},
            .options = {"binary", "wait"},
            .summary =
                "Replace penstockd by a new binary while connections continue; requires penstockd "
                "--supervise on",
            .run = run_upgrade};
}

}  // namespace penstock::cli
