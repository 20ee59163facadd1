// SPDX-License-Identifier: Apache-2.0
// Kubernetes Service semantics as one pure function: (Services, EndpointSlices, Nodes, gateway identity,
// policy) -> desired state. The table tests and the property tests use it; the programs use the incremental
// engine (control/semantics/engine.hpp).
#pragma once

#include <vector>

#include "control/kube/objects.hpp"
#include "control/model/desired.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::semantics {

struct Outcome {
    model::Desired desired;
    // All notices, including those inside `desired`, sorted; for logs and Events.
    std::vector<ObjectNotice> notices;
    bool operator==(const Outcome&) const = default;
};

// Evaluates everything at once, like a new engine. Any thread.
[[nodiscard]] Outcome evaluate(const kube::ObjectSet& objects, const model::GatewayIdentity& gateway,
                               const Policy& policy);

}  // namespace penstock::semantics
