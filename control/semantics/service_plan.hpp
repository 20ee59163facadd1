// One Service judged in two steps, with what all Services claim from each other in between:
//
//   plan_service     the object alone, against facts about the cluster -> ports, the frontends they ask for, what there is to tell
//   claims_of        ... laid into FrontendOwners, for every Service
//   decide_service   the plan, the owners and the Service's own slices -> one model::Service a port
//
// Neither step reads another Service, so a changed Service or slice costs one plan and one decision, as long as facts and owners stay.
// Who has to be judged again where they do not stay is the engine's business.
#pragma once

#include <vector>

#include "control/kube/changes.hpp"
#include "control/semantics/annotations.hpp"
#include "control/semantics/conflicts.hpp"
#include "control/semantics/endpoint_selection.hpp"
#include "control/semantics/frontends.hpp"
#include "control/semantics/health_checks.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/rights.hpp"
#include "control/semantics/semantics.hpp"
#include "control/semantics/slices.hpp"
#include "control/semantics/surroundings.hpp"

namespace penstock::semantics {

struct PortPlan {
    ServicePort port;
    std::vector<AskedFrontend> frontends;
};

struct ServicePlan {
    kube::ObjectName name;
    kube::ServicePtr object;  // null only in a plan of nothing
    CreationTime created;
    std::vector<IpAddr> cluster_ips;
    std::vector<PortPlan> ports;
    Families families;
    SourceRanges ranges;
    AnnotationSettings settings;             // views into `object`
    std::vector<std::string> topology_keys;  // empty: no constraint
    uint32_t affinity_timeout_s = 0;         // 0: none
    // Whether the gateway is to hear of it: the Service names something for the outside, even if all of it was refused.
    bool concerns_gateway = false;
    L4Port health_check = 0;  // HC-001; 0: none
    Notices notices;          // about the whole Service
};

// `rights` are those of `around`.
[[nodiscard]] ServicePlan plan_service(const kube::ObjectName& name, const kube::ServicePtr& service,
                                       const Surroundings& around, const ExternalIpRights& rights);

// Sorted.
[[nodiscard]] std::vector<Claim> claims_of(const ServicePlan& plan);

// Whether a decision reads labels of the endpoints' Nodes.
[[nodiscard]] bool reads_node_labels(const ServicePlan& plan, const ServiceSlices& slices);

// Sorted by key; empty where the Service does not concern the gateway. Their notices include the plan's.
[[nodiscard]] std::vector<model::Service> decide_service(const ServicePlan& plan,
                                                         const FrontendOwners& owners,
                                                         const ServiceSlices& slices,
                                                         const Surroundings& around);

}  // namespace penstock::semantics
