// SPDX-License-Identifier: Apache-2.0
// Which gateways serve a Service on all of their workers: what the gateways' threads report, collected for
// the thread that writes the condition penstock.io/Programmed (PRESENCE-001).
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/kube/object_id.hpp"
#include "control/kube/objects.hpp"

namespace penstock::sync {

class ProgrammedBoard {
 public:
    // `wake` is called after each change, by the reporting thread.
    explicit ProgrammedBoard(std::function<void()> wake) : wake_(std::move(wake)) {}

    // A gateway serves the Service, or does not any more. Any thread.
    void report(const std::string& gateway, const kube::ObjectName& service, bool is_served);

    // Services whose gateways changed since the last call, in order. Any thread.
    [[nodiscard]] std::vector<kube::ObjectName> take_changed();
    // The gateways that serve the Service, in the order of names; nullopt: no gateway has reported on it. Any
    // thread.
    [[nodiscard]] std::optional<std::vector<std::string>> gateways_of(const kube::ObjectName& service) const;
    // The Service has no address any more. Any thread.
    void forget(const kube::ObjectName& service);

 private:
    const std::function<void()> wake_;
    mutable std::mutex mutex_;
    std::map<kube::ObjectName, std::set<std::string>> served_by_;  // guarded by mutex_
    std::set<kube::ObjectName> changed_;                           // guarded by mutex_
};

// True with the names of the gateways, False without any. Gateways of other processes are not counted.
[[nodiscard]] kube::Condition programmed_condition(const std::vector<std::string>& gateways);

}  // namespace penstock::sync
