// SPDX-License-Identifier: Apache-2.0
// Desired status of a Service of type LoadBalancer, its comparison with the current one, and the PATCH
// between them (STATUS-001 to STATUS-005). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/lease/lease.hpp"
#include "control/kube/objects.hpp"

namespace penstock::kube {

// True after the workers of the gateways confirmed the Service (PRESENCE-001).
inline constexpr std::string_view kProgrammedCondition = "penstock.io/Programmed";

// Status that the Service shall have. Empty: no trace of Penstock; the Service was released (LB-013).
struct ServiceStatus {
    std::vector<LoadBalancerIngress> ingress;  // in the order of ipFamilies (STATUS-004)
    // Allocated and Programmed; one that is absent is removed from the Service.
    std::vector<Condition> conditions;
    std::optional<int64_t> observed_generation;  // metadata.generation, if known
    bool operator==(const ServiceStatus&) const = default;
};

// The parts of a Service's status that Penstock writes.
[[nodiscard]] ServiceStatus status_of(const Service& service);

// Equal in effect: order does not matter, "" is ipMode VIP, addresses compare as addresses. The observed
// generation alone is no difference.
[[nodiscard]] bool is_same_ingress(const std::vector<LoadBalancerIngress>& a,
                                   const std::vector<LoadBalancerIngress>& b);
[[nodiscard]] bool is_same_status(const ServiceStatus& a, const ServiceStatus& b);

struct StatusPlan {
    enum class Action : uint8_t {
        None,     // the effective status is equal
        Write,    // PATCH with `body`
        Foreign,  // the ingress is of another writer and is left alone
    };
    Action action = Action::None;
    // application/strategic-merge-patch+json
    std::string body;
};

// The write that turns the status of `current`, which has version `resource_version`, into `desired`.
// Ingress without our marker is adopted if each of its addresses is desired, otherwise it is foreign. `now`:
// time of transition of conditions whose status changes.
[[nodiscard]] StatusPlan plan_status(const Service& current, std::string_view resource_version,
                                     const ServiceStatus& desired, WallTime now);

// "/api/v1/namespaces/NAMESPACE/services/NAME/status"
[[nodiscard]] std::string service_status_target(const ObjectName& name);

}  // namespace penstock::kube
