// Endpoints on their way through the steps of EP-020, and those that did not come through, each with the step that took it out: what a new
// flow may not choose still decides what becomes of flows that are there (UDP-001, DRAIN-003), and somebody will ask where it went.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/model/desired.hpp"

namespace penstock::semantics {

// What an endpoint's conditions come to; the better one first (EP-004).
enum class Readiness : uint8_t {
    Ready,        // the normal set, whatever `terminating` says (EP-011)
    Terminating,  // not ready, but serving and terminating: used where nobody is ready
    Unusable,
};

// EP-010: what is not said counts as ready and serving, and not as terminating.
[[nodiscard]] constexpr Readiness readiness_of(const kube::Endpoint& endpoint) noexcept {
    if (endpoint.ready.value_or(true)) {
        return Readiness::Ready;
    }
    return endpoint.serving.value_or(true) && endpoint.terminating.value_or(false) ? Readiness::Terminating
                                                                                   : Readiness::Unusable;
}

// Whether it still answers those that it talks with.
[[nodiscard]] constexpr bool is_serving(const kube::Endpoint& endpoint) noexcept {
    return endpoint.ready.value_or(true) || endpoint.serving.value_or(true);
}

struct Candidate {
    IpAddr address;
    L4Port port = 0;
    Readiness readiness = Readiness::Ready;
    std::optional<uint16_t> weight;              // as its slice says (EP-018)
    const kube::Endpoint* endpoint = nullptr;    // nodeName, zone and hints; borrowed from the object set
    const kube::EndpointSlice* slice = nullptr;  // the one that the endpoint is in; likewise
};
using Candidates = std::vector<Candidate>;

struct Selection {
    Candidates left;                                // sorted by (address, port), unique
    std::vector<model::ExcludedEndpoint> excluded;  // in the order in which they went

    // One step: whoever does not stay is excluded, for the reason `why`.
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
