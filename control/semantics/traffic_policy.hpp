// What a traffic policy makes of the candidates: who may be chosen, whether the client's address is kept, and what a new flow meets where
// nobody may be chosen (ETP-001..004, REJ-001).
#pragma once

#include <cstdint>

#include "control/semantics/endpoint_selection.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

enum class TrafficPolicy : uint8_t { Cluster, Local };

// externalTrafficPolicy; an unknown value is Cluster, and said (ETP-008). Ask only where the Service has L, X or N frontends: elsewhere the
// field means nothing.
[[nodiscard]] TrafficPolicy external_policy_of(const kube::Service& service, Notices& notices);

// The set behind a Service's L, X and N frontends of `family`. `candidates` have passed drop_forbidden(); `no_endpoints` is what the
// Service wants where there is no usable endpoint anywhere.
[[nodiscard]] model::BackendSet external_backend_set(const Candidates& candidates, IpFamily family, TrafficPolicy policy,
                                                     const model::GatewayIdentity& gateway, lb::EmptyAction no_endpoints);

}  // namespace penstock::semantics
