// SPDX-License-Identifier: Apache-2.0
// Evaluation of one Service in two steps, with the claims of all Services resolved in between:
//
//   plan_service     the object alone and facts about the cluster -> ports, requested frontends, notices
//   claims_of        the claims of the plan; added to FrontendOwners for every Service
//   decide_service   the plan, the owners and the Service's own slices -> one model::Service per port
//
// Neither step reads another Service. A changed Service or slice therefore costs one plan and one decision,
// as long as facts and owners are unchanged. If these change, the engine determines which Services to
// evaluate again.
#pragma once

#include <vector>

#include "control/kube/changes.hpp"
#include "control/semantics/annotations.hpp"
#include "control/semantics/conflicts.hpp"
#include "control/semantics/endpoints/endpoint_selection.hpp"
#include "control/semantics/endpoints/slices.hpp"
#include "control/semantics/frontends.hpp"
#include "control/semantics/health_checks.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/policy.hpp"
#include "control/semantics/rights.hpp"
#include "control/semantics/surroundings.hpp"

namespace penstock::semantics {

struct PortPlan {
    ValidPort port;
    std::vector<AskedFrontend> frontends;
};

struct ServicePlan {
    kube::ObjectName name;
    kube::ServicePtr object;  // null only in an empty plan
    CreationTime created;
    std::vector<IpAddr> cluster_ips;
    std::vector<PortPlan> ports;
    Families families;
    SourceRanges ranges;
    AnnotationSettings settings;             // views into `object`
    std::vector<std::string> topology_keys;  // empty: no constraint
    uint32_t affinity_timeout_s = 0;         // 0: none
    // Whether the Service is part of the gateway's desired state: it names a frontend, even if all frontends
    // were refused.
    bool concerns_gateway = false;
    L4Port health_check = 0;  // HC-001; 0: none
    Notices notices;          // about the whole Service
};

// `rights` must be derived from `around`.
[[nodiscard]] ServicePlan plan_service(const kube::ObjectName& name, const kube::ServicePtr& service,
                                       const Surroundings& around, const ExternalIpRights& rights);

// The claims of the plan, sorted.
[[nodiscard]] std::vector<Claim> claims_of(const ServicePlan& plan);

// Whether the decision reads labels of the endpoints' Nodes.
[[nodiscard]] bool reads_node_labels(const ServicePlan& plan, const ServiceSlices& slices);

// One model::Service for each port, sorted by key. Empty if the Service does not concern the gateway. The
// notices include those of the plan.
[[nodiscard]] std::vector<model::Service> decide_service(const ServicePlan& plan,
                                                         const FrontendOwners& owners,
                                                         const ServiceSlices& slices,
                                                         const Surroundings& around);

}  // namespace penstock::semantics
