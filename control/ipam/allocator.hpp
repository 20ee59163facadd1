// SPDX-License-Identifier: Apache-2.0
// Allocator of LoadBalancer addresses (LB-007..014, LB-022..025, DUAL-004). A state machine without I/O and
// clock: changes of pools, namespaces and Services in, allocations out. One thread.
//
// The result is a function of the inputs and of the addresses that the Services have already. An allocator
// that starts reads them from the status of the Services, so a restart moves no address (LB-008):
//   1. addresses that this allocator has granted,
//   2. status.loadBalancer.ingress if the condition penstock.io/Allocated is True,
//   3. status of other controllers, if a pool may serve the Service and covers the addresses,
//   4. requested addresses (ANN-22, spec.loadBalancerIP),
//   5. free choice, in a requested pool (ANN-23) or in all pools that may serve the Service.
// Within a step, the oldest Service comes first (creationTimestamp, UID, name).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/ipam/allocation.hpp"
#include "control/ipam/pool.hpp"
#include "control/kube/objects.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::ipam {

// A batch of changes; what it does not mention is unchanged.
struct Changes {
    std::optional<std::vector<Pool>> pools;  // all pools, as accepted by validate() (pool_rules.hpp)
    // Labels by name; nullopt if deleted. A namespace that was never given has no labels.
    std::map<std::string, std::optional<annotations::Labels>> namespaces;
    // Null if deleted. An object given again unchanged is no change.
    std::map<kube::ObjectName, std::shared_ptr<const kube::Service>> services;
    // Addresses of Services whose objects cannot be read (GEN-003): no other Service gets them. A Service
    // that has one already keeps it. Empty: none any more.
    std::map<kube::ObjectName, std::vector<IpAddr>> held;
};

class Allocator {
 public:
    // Reads only the ownership settings of `policy` (LB-002).
    explicit Allocator(semantics::Policy policy);
    ~Allocator();
    Allocator(Allocator&&) noexcept;
    Allocator& operator=(Allocator&&) noexcept;

    // Applies the changes and returns the sorted names of the Services whose allocation is different now,
    // including those that have none any more (deleted, or not owned). The first batch must contain all
    // pools, namespaces and Services that exist: a Service that arrives later cannot claim an address that
    // has been given away in the meantime.
    std::vector<kube::ObjectName> apply(const Changes& changes);

    // The allocation of an owned Service; null for other Services. Valid until the next apply().
    [[nodiscard]] const Allocation* find(const kube::ObjectName& service) const;

    // In the order of names.
    [[nodiscard]] std::vector<PoolUsage> usage() const;

 private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace penstock::ipam
