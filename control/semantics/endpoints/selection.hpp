// SPDX-License-Identifier: Apache-2.0
// The state of endpoint selection between the steps of EP-020: the endpoints that are left, and those
// excluded, each with the step that excluded it. Excluded endpoints are kept because they still decide what
// happens to existing flows (UDP-001, DRAIN-003), and because operators need to see why an endpoint is not
// used.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/model/desired.hpp"

namespace penstock::semantics {

// The result of an endpoint's conditions, best first (EP-004).
enum class Readiness : uint8_t {
    Ready,        // the normal case, regardless of `terminating` (EP-011)
    Terminating,  // not ready, but serving and terminating: used if no endpoint is ready
    Unusable,
};

// EP-010: unset conditions count as ready, serving and not terminating.
[[nodiscard]] constexpr Readiness readiness_of(const kube::Endpoint& endpoint) noexcept {
    if (endpoint.ready.value_or(true)) {
        return Readiness::Ready;
    }
    return endpoint.serving.value_or(true) && endpoint.terminating.value_or(false) ? Readiness::Terminating
                                                                                   : Readiness::Unusable;
}

// Whether the endpoint still serves its existing flows.
[[nodiscard]] constexpr bool is_serving(const kube::Endpoint& endpoint) noexcept {
    return endpoint.ready.value_or(true) || endpoint.serving.value_or(true);
}

struct Candidate {
    IpAddr address;
    L4Port port = 0;
    Readiness readiness = Readiness::Ready;
    std::optional<uint16_t> weight;            // from its slice (EP-018)
    const kube::Endpoint* endpoint = nullptr;  // nodeName, zone and hints; not owned, part of the object set
    const kube::EndpointSlice* slice = nullptr;  // the slice that contains the endpoint; not owned
};
using Candidates = std::vector<Candidate>;

struct Selection {
    Candidates left;                                // sorted by (address, port), unique
    std::vector<model::ExcludedEndpoint> excluded;  // in the order of exclusion

    // One step: endpoints for which `stays` is false are excluded with the reason `why`.
    template <typename Stays>
    void keep_if(model::Exclusion why, const Stays& stays) {
        std::erase_if(left, [&](const Candidate& one) {
            if (stays(one)) {
                return false;
            }
            excluded.push_back(
                {.address = one.address, .port = one.port, .why = why, .serving = is_serving(*one.endpoint)});
            return true;
        });
    }
};

}  // namespace penstock::semantics
