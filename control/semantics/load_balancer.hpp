// LoadBalancer IPs: what status.loadBalancer.ingress opens on this gateway (LB-001, LB-003..006). The status is authoritative;
// spec.loadBalancerIP is a wish and opens nothing.
#pragma once

#include <utility>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/semantics.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

struct LoadBalancerAddress {
    IpAddr address;
    // Ports that Penstock itself has reported as not served (LB-006).
    std::vector<std::pair<L4Port, Protocol>> closed;
};

// LB-002: whether Penstock is this Service's load balancer. Only for type LoadBalancer.
// Another implementation's by its loadBalancerClass: the cluster gets no word about it from here, even where --lb-vip-scope serves it
// (LB-002).
[[nodiscard]] bool is_foreign(const kube::Service& service, const Policy& policy) noexcept;

[[nodiscard]] bool is_owned(const kube::Service& service, const Policy& policy) noexcept;

// Whether this gateway serves ingress IPs of this Service at all (LB-003).
[[nodiscard]] bool in_vip_scope(const kube::Service& service, model::GatewayMode mode,
                                const Policy& policy) noexcept;

// In the order of the object, each address once. Only for a Service in_vip_scope().
[[nodiscard]] std::vector<LoadBalancerAddress> load_balancer_addresses_of(const kube::Service& service,
                                                                          Families families,
                                                                          const Policy& policy,
                                                                          Notices& notices);

}  // namespace penstock::semantics
