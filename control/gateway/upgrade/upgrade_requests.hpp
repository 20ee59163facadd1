// SPDX-License-Identifier: Apache-2.0
// Requests of API clients for an upgrade, which the supervisor accepts or refuses, and the last upgrade as
// the supervisor has reported it. Any thread. The main thread reads the supervisor's socket and passes its
// messages on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "dataplane/base/result.hpp"
#include "penstock/v1/upgrade.pb.h"

namespace penstock::gateway {

class UpgradeRequests {
 public:
    static constexpr std::chrono::seconds kPatience{5};  // the supervisor answers in milliseconds
    // Sends a request to the supervisor.
    using Send = std::function<Status(const v1::UpgradeNote& request)>;

    // `send`: null without a supervisor.
    explicit UpgradeRequests(Send send) : send_(std::move(send)) {}

    // Sends a request to the supervisor, and waits for its answer. `requested_by`: the client's identity.
    // Outdated: there is no supervisor. Unavailable: it did not answer, or this process is stopping. Other
    // errors are the supervisor's.
    Result<v1::UpgradeResponse> request(const v1::UpgradeRequest& request, const std::string& requested_by);
    // With age_ms; empty: there is no supervisor.
    [[nodiscard]] std::optional<v1::Upgrade> last() const;

    // From the supervisor.
    void take_answer(const v1::UpgradeNote& answer);
    void take_record(const v1::UpgradeNote& record);
    // request() returns at once from now on.
    void stop();

 private:
    const Send send_;
    std::mutex asking_;  // one request at a time
    mutable std::mutex mutex_;
    std::condition_variable answered_;
    std::optional<v1::UpgradeNote> answer_;
    v1::UpgradeNote record_;
    bool is_stopped_ = false;
};

}  // namespace penstock::gateway
