// healthCheckNodePort: where an outer load balancer asks this node whether it has Pods of a Service of policy Local (HC-001 to HC-005). A
// check is claimed like a NodePort of both families, since that is where it is answered: so one port has one owner, whoever wants it
// (SVC-018), and another Service's nodePort counts as well.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/semantics/conflicts.hpp"
#include "control/semantics/endpoint_selection.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/semantics.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

// The port to be answered on this gateway; 0: none.
[[nodiscard]] L4Port health_check_port_of(const kube::Service& service, ServiceType type,
                                          const model::GatewayIdentity& gateway, const Policy& policy);

// The tuples to be claimed for it, under kHealthCheckIndex.
[[nodiscard]] std::vector<FrontendTuple> health_check_tuples(L4Port port);

// Ready endpoints on the gateway's own node, counted by address over all ports and families of a Service (EP-019). Those that are used only
// because nobody is ready do not count: the check fails while they are still served (HC-004).
class LocalEndpoints {
 public:
    // Candidates without forbidden addresses.
    void add(std::span<const Candidate> candidates, const std::string& node_name);
    [[nodiscard]] uint32_t count() const noexcept { return static_cast<uint32_t>(addresses_.size()); }

 private:
    std::set<IpAddr> addresses_;
};

}  // namespace penstock::semantics
