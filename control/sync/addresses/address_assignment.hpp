// SPDX-License-Identifier: Apache-2.0
// Addresses of the LoadBalancer Services that Penstock owns: feeds the allocator with the objects of a
// source, and turns its results into the status that each Service shall have (LB-007..014,
// STATUS-003..005). A machine without I/O, clock and thread; used by the cluster's writer and by the
// folder of manifests.
//
//     changes of the source -> Services, Namespaces, pools -> ipam::Allocator -> status of each owned Service
//
// Pools are accepted as a whole list. A list that breaks a rule (LB-015) is reported, and the pools before it
// stay in use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/ipam/allocator.hpp"
#include "control/ipam/pool_rules.hpp"
#include "control/kube/changes.hpp"
#include "control/kube/status/pool_status_writer.hpp"
#include "control/kube/status/service_status.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::sync {

class AddressAssignment {
 public:
    struct Settings {
        semantics::Policy policy;
        std::vector<ipam::ProtectedPrefix> protected_prefixes;  // no pool may overlap them
    };

    explicit AddressAssignment(Settings settings);

    // New versions of objects; other kinds are ignored. Nothing is allocated before run().
    void note(const kube::Changes& changes);
    // Pools and Namespaces have been listed. The first changes of a source contain all Services, so no
    // address of an existing Service is given away (LB-008).
    [[nodiscard]] bool is_ready() const noexcept { return pools_listed_ && namespaces_listed_; }

    // Discards all allocations. The next run() evaluates the objects from scratch: addresses in their status
    // come first.
    void restart();
    // Discards all allocations, and collects no changes until restart(): for a process that does not
    // allocate.
    void stop();

    // Brings allocations up to date; only where is_ready(). Returns the names of the Services whose
    // allocation changed, in order.
    [[nodiscard]] std::vector<kube::ObjectName> run();

    // The allocation of an owned Service, as of the last run(); null for others.
    [[nodiscard]] const ipam::Allocation* allocation_of(const kube::ObjectName& service) const;
    // The status that results from it; nullopt: not owned, nothing of Penstock shall be in the status
    // (LB-013). Contains the condition Allocated, and not Programmed.
    [[nodiscard]] std::optional<kube::ServiceStatus> status_of(const kube::ObjectName& service) const;
    [[nodiscard]] const kube::Service* find(const kube::ObjectName& service) const;
    // Names of the owned Services.
    [[nodiscard]] std::vector<kube::ObjectName> owned() const;
    // The same, and Services whose status has our conditions although they are not owned any more.
    [[nodiscard]] std::vector<kube::ObjectName> followed() const;

    [[nodiscard]] std::vector<ipam::PoolUsage> usage() const { return allocator_->usage(); }
    // Status of each pool that exists, by name: counts, and the condition Accepted.
    [[nodiscard]] std::map<std::string, kube::PoolStatus> pool_statuses() const;
    // Pools as they are in force.
    [[nodiscard]] const std::vector<ipam::Pool>& pools() const noexcept { return pools_in_force_; }
    // Why the newest list of pools is not in force; "": it is.
    [[nodiscard]] const std::string& pools_refused() const noexcept { return pools_refused_; }

 private:
    void accept_pools();

    const Settings settings_;
    std::optional<ipam::Allocator> allocator_;               // never empty
    std::map<kube::ObjectName, kube::ServicePtr> services_;  // of type LoadBalancer, or with our conditions
    std::map<kube::ObjectName, std::vector<IpAddr>> held_;   // of Services that cannot be read
    std::map<std::string, annotations::Labels> namespaces_;
    std::map<std::string, kube::AddressPoolPtr> pools_;
    std::vector<ipam::Pool> pools_in_force_;
    std::string pools_refused_;
    ipam::Changes pending_;  // stays empty while is_stopped_
    bool is_stopped_ = false;
    bool pools_changed_ = false;   // since the last run()
    bool pools_accepted_ = false;  // at least one list was accepted
    bool pools_listed_ = false, namespaces_listed_ = false;
};

}  // namespace penstock::sync
