// SPDX-License-Identifier: Apache-2.0
// Checks that precede the evaluation of ports and addresses: whether a Service may have frontends at all, and
// of which families (SVC-001..005, DUAL-001).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::semantics {

enum class ServiceType : uint8_t { ClusterIp, NodePort, LoadBalancer, ExternalName };

// An unknown type is treated as ClusterIP, the subset that all types have in common, with a notice (GEN-002).
[[nodiscard]] ServiceType type_of(const kube::Service& service, Notices& notices);

// nodePorts of other types are left over from an earlier type.
[[nodiscard]] constexpr bool has_node_ports(ServiceType type) noexcept {
    return type == ServiceType::NodePort || type == ServiceType::LoadBalancer;
}

enum class Standing : uint8_t {
    Served,
    Ignored,           // labelled for another proxy (SVC-004) or as headless (SVC-005): no notices about it
    BadName,           // not accepted by an API server, and not valid in messages
    ExternalName,      // SVC-003
    Headless,          // clusterIP None (SVC-002)
    AwaitsClusterIp,   // clusterIP still empty, but will be allocated (SVC-002)
    InvalidClusterIp,  // clusterIP is not an address
};

[[nodiscard]] Standing standing_of(const kube::ObjectName& name, const kube::Service& service,
                                   const Policy& policy);

// The reason why a Service of this standing gets no frontends, as the sentence of a notice; "" for Served and
// Ignored.
[[nodiscard]] std::string_view explanation(Standing standing) noexcept;

// The addresses that the cluster has allocated to this Service, whether or not they are served (SVC-014). An
// address that is still in an ExternalName Service is stale: the API server has released it.
[[nodiscard]] std::vector<IpAddr> cluster_ips_of(const kube::Service& service);

struct Families {
    bool v4 = false;
    bool v6 = false;
    [[nodiscard]] bool has(IpFamily family) const noexcept { return family == IpFamily::V4 ? v4 : v6; }
    [[nodiscard]] static constexpr Families both() noexcept { return {.v4 = true, .v6 = true}; }
    void add(IpFamily family) noexcept { (family == IpFamily::V4 ? v4 : v6) = true; }
    [[nodiscard]] bool none() const noexcept { return !v4 && !v6; }
    bool operator==(const Families&) const = default;
};

// The families in ipFamilies, otherwise those of the ClusterIPs (DUAL-001). A manifest may have neither,
// because no server allocates addresses. Then the families of its external and ingress addresses are used, or
// IPv4 if it has none. The result is never empty.
[[nodiscard]] Families families_of(const kube::Service& service, Notices& notices);

}  // namespace penstock::semantics
