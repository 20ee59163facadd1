// SPDX-License-Identifier: Apache-2.0
// LoadBalancer IPs: the addresses in status.loadBalancer.ingress that this gateway serves (LB-001,
// LB-003..006). The status is authoritative. spec.loadBalancerIP is only a request and opens nothing.
#pragma once

#include <utility>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/policy.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

struct LoadBalancerAddress {
    IpAddr address;
    // Ports that Penstock has reported as not served (LB-006)
    std::vector<std::pair<L4Port, Protocol>> closed;
};

// Whether the Service belongs to another load balancer implementation by its loadBalancerClass (LB-002).
// Nothing about such a Service is reported to the cluster, even if --lb-vip-scope serves it.
[[nodiscard]] bool is_foreign(const kube::Service& service, const Policy& policy) noexcept;

// Whether Penstock is the load balancer of this Service (LB-002). Only for type LoadBalancer.
[[nodiscard]] bool is_owned(const kube::Service& service, const Policy& policy) noexcept;

// Whether this gateway serves ingress IPs of this Service (LB-003).
[[nodiscard]] bool in_vip_scope(const kube::Service& service, model::GatewayMode mode,
                                const Policy& policy) noexcept;

// The addresses in the order of the object, without duplicates. Only for a Service for which in_vip_scope()
// is true.
[[nodiscard]] std::vector<LoadBalancerAddress> load_balancer_addresses_of(const kube::Service& service,
                                                                          Families families,
                                                                          const Policy& policy,
                                                                          Notices& notices);

}  // namespace penstock::semantics
