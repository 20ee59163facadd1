// SPDX-License-Identifier: Apache-2.0
// Texts and views of allocations, shared by the cluster's writer and the folder of manifests. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/sync/addresses/address_assignment.hpp"
#include "control/sync/addresses/address_status.hpp"

namespace penstock::sync {

// What an operator learns about a Service without the requested address: reason and message of an Event.
struct RefusalText {
    std::string reason;  // LB-024, or PoolMissing (LB-014)
    std::string message;
};
[[nodiscard]] std::optional<RefusalText> refusal_of(const ipam::Allocation& allocation);

[[nodiscard]] std::vector<kube::LoadBalancerIngress> ingress_of(const std::vector<IpAddr>& addresses);

// Everything except phase and writes.
[[nodiscard]] AddressStatus address_status_of(const AddressAssignment& assignment);

}  // namespace penstock::sync
