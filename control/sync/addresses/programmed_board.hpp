// SPDX-License-Identifier: Apache-2.0
// Which gateways serve a Service on all of their workers (PRESENCE-001), collected for the thread that writes
// the condition penstock.io/Programmed:
//
//   threads of this process's gateways --report(), set_reachable()--> board --> AddressWriter
//   other processes' gateways -> GatewayReports --report_other()----->
//
// A gateway that is unreachable keeps its entries, which do not count until it is reachable again.
#pragma once

#include <cstdint>
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

    // A gateway of this process serves the Service, or does not any more. Any thread.
    void report(const std::string& gateway, const kube::ObjectName& service, bool is_served);
    // A gateway of this process has the state of this process, or is gone. A gateway that was never reported
    // here counts as reachable. Any thread.
    void set_reachable(const std::string& gateway, bool is_reachable);

    // The same for a gateway that another process supplies. A reachable gateway of this process with the same
    // name takes precedence. Any thread.
    void report_other(const std::string& gateway, const kube::ObjectName& service, bool is_served);
    // The gateways of other processes that report at present. What others have reported is forgotten. Any
    // thread.
    void set_others(std::set<std::string> gateways);

    // Services whose gateways changed since the last call, in order. Any thread.
    [[nodiscard]] std::vector<kube::ObjectName> take_changed();
    // The gateways that serve the Service, in the order of names; nullopt: no gateway has reported on it. Any
    // thread.
    [[nodiscard]] std::optional<std::vector<std::string>> gateways_of(const kube::ObjectName& service) const;
    // Each gateway of other processes has reported on the Service. Any thread.
    [[nodiscard]] bool is_complete(const kube::ObjectName& service) const;
    // The Service has no address any more. Any thread.
    void forget(const kube::ObjectName& service);

    // Reachable gateways of this process, in order. Any thread.
    [[nodiscard]] std::vector<std::string> own_gateways() const;
    // Those of the Services that the gateway of this process does not serve. Any thread.
    [[nodiscard]] std::vector<kube::ObjectName> not_served_by(
        const std::string& gateway, const std::vector<kube::ObjectName>& services) const;
    // Increases with each change of the own gateways. Any thread.
    [[nodiscard]] uint64_t own_version() const;

 private:
    // By gateway: it serves the Service.
    struct Entry {
        std::map<std::string, bool> own;
        std::map<std::string, bool> others;
    };
    [[nodiscard]] bool is_own(const std::string& gateway) const;
    void note_all_changed();

    const std::function<void()> wake_;
    mutable std::mutex mutex_;
    std::map<kube::ObjectName, Entry> entries_;  // guarded by mutex_, as all below
    std::map<std::string, bool> reachable_;      // gateways of this process
    std::set<std::string> others_;
    std::set<kube::ObjectName> changed_;
    uint64_t own_version_ = 0;
};

// True with the names of the gateways, False without any.
[[nodiscard]] kube::Condition programmed_condition(const std::vector<std::string>& gateways);

}  // namespace penstock::sync
