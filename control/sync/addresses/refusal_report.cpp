// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/refusal_report.hpp"

namespace penstock::sync {

std::optional<RefusalText> refusal_of(const ipam::Allocation& allocation) {
    if (allocation.refusal) {
        return RefusalText{ipam::to_string(allocation.refusal->reason), allocation.refusal->message};
    }
    if (!allocation.pool_missing.empty()) {
        return RefusalText{"PoolMissing", allocation.pool_missing};
    }
    return std::nullopt;
}

std::vector<kube::LoadBalancerIngress> ingress_of(const std::vector<IpAddr>& addresses) {
    std::vector<kube::LoadBalancerIngress> ingress;
    for (const IpAddr& address : addresses) {
        ingress.push_back({.ip = address.to_string(), .hostname = {}, .ip_mode = "VIP", .ports = {}});
    }
    return ingress;
}

AddressStatus address_status_of(const AddressAssignment& assignment) {
    AddressStatus status;
    status.pools = assignment.pools();
    status.usage = assignment.usage();
    status.pools_refused = assignment.pools_refused();
    for (const kube::ObjectName& name : assignment.owned()) {
        const ipam::Allocation& allocation = *assignment.allocation_of(name);
        if (!allocation.addresses.empty()) {
            status.addresses.emplace(name, allocation.addresses);
        }
        if (allocation.refusal) {
            status.refused.push_back({name, allocation.refusal->reason, allocation.refusal->message});
        }
    }
    return status;
}

}  // namespace penstock::sync
