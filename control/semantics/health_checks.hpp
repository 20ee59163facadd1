// SPDX-License-Identifier: Apache-2.0
// healthCheckNodePort: an external load balancer queries this port to learn whether this node has Pods of a
// Service with policy Local (HC-001 to HC-005). The port is claimed like a NodePort of both families, because
// it is answered on the same addresses. It therefore has one owner (SVC-018) and also conflicts with the
// nodePort of another Service.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/semantics/conflicts.hpp"
#include "control/semantics/endpoints/endpoint_selection.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/policy.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

// The port to answer on this gateway; 0: none.
[[nodiscard]] L4Port health_check_port_of(const kube::Service& service, ServiceType type,
                                          const model::GatewayIdentity& gateway, const Policy& policy);

// The tuples to claim for the port, under kHealthCheckIndex.
[[nodiscard]] std::vector<FrontendTuple> health_check_tuples(L4Port port);

// Counts the ready endpoints on the gateway's own node by address, over all ports and families of a Service
// (EP-019). Terminating endpoints that are used because no endpoint is ready do not count: the check fails
// while they are still served (HC-004).
class LocalEndpoints {
 public:
    // `candidates` must not contain forbidden addresses.
    void add(std::span<const Candidate> candidates, const std::string& node_name);
    [[nodiscard]] uint32_t count() const noexcept { return static_cast<uint32_t>(addresses_.size()); }

 private:
    std::set<IpAddr> addresses_;
};

}  // namespace penstock::semantics
