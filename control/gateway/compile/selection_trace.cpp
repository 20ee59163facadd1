// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/selection_trace.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace penstock::gateway {
namespace {

struct Step {
    model::Exclusion why;
    std::string_view name;
    std::string_view fate;  // of the excluded endpoints
};

// In the order of the semantics. Terminating endpoints are evaluated among those that a policy leaves
// (EP-013).
constexpr std::array<Step, model::kExclusions> kSteps = {
    Step{model::Exclusion::ForbiddenAddress, "address filter", "forbidden as an endpoint"},
    Step{model::Exclusion::NodeSelector, "node selector", "on a node excluded by the Service"},
    Step{model::Exclusion::NotReady, "readiness", "not ready"},
    Step{model::Exclusion::NotLocal, "policy Local", "not on this node"},
    Step{model::Exclusion::Terminating, "terminating", "terminating while others are ready"},
    Step{model::Exclusion::TopologyKeys, "topology keys", "not the nearest"},
    Step{model::Exclusion::TopologyHints, "topology hints", "hinted for other zones or nodes"},
};

template <typename Endpoints>
std::string names_of(const Endpoints& endpoints) {
    std::string text;
    size_t named = 0;
    for (const auto& one : endpoints) {
        if (named == kNamesMax) {
            return text + " and " + std::to_string(endpoints.size() - named) + " more";
        }
        text += (named++ == 0 ? "" : ", ") + one.socket().to_string();
    }
    return text;
}

// "readiness: 3 of 5 left; not ready: 10.0.0.1:80, 10.0.0.2:80".
template <typename Endpoints>
std::string sentence(std::string_view step, size_t left, size_t before, std::string_view fate,
                     const Endpoints& taken_out) {
    std::string text =
        std::string(step) + ": " + std::to_string(left) + " of " + std::to_string(before) + " left";
    if (!taken_out.empty()) {
        text += "; " + std::string(fate) + ": " + names_of(taken_out);
    }
    return text;
}

}  // namespace

std::optional<MetFrontend> frontend_at(const DesiredServices& services, lb::FrontendClass cls,
                                       const IpAddr& address, L4Port port, Protocol protocol) {
    const bool node_port = cls == lb::FrontendClass::NodePort;
    for (const auto& [key, service] : services) {
        if (key.protocol != protocol) {
            continue;
        }
        const auto is_met = [&](const model::Frontend& one) {
            return one.cls == cls && one.port == port &&
                   (node_port ? one.family == address.family() : one.address == address);
        };
        const auto found = std::ranges::find_if(service->frontends, is_met);
        if (found != service->frontends.end()) {
            return MetFrontend{.service = service.get(), .frontend = &*found};
        }
    }
    return std::nullopt;
}

const model::BackendSet& set_for(const MetFrontend& met, const std::vector<Prefix>& pod_cidrs,
                                 const IpAddr& client) {
    const model::Frontend& frontend = *met.frontend;
    const bool inside = frontend.inside_set && std::ranges::any_of(pod_cidrs, [&](const Prefix& cidr) {
                            return cidr.contains(client);
                        });
    return met.service->sets.at(inside ? *frontend.inside_set : frontend.set);
}

std::vector<std::string> selection_trace(const model::BackendSet& set) {
    size_t left = set.endpoints.size() + set.excluded.size();
    std::vector<std::string> trace;
    if (set.translates_family) {
        trace.push_back(std::string("families: no ") + to_string(set.family) + " endpoint for new flows; " +
                        to_string(set.endpoint_family()) + " ones serve (penstock.io/translate-family)");
    }
    trace.push_back("endpoints: " + std::to_string(left) + " known, each (address, port) once");
    for (const Step& step : kSteps) {
        std::vector<model::ExcludedEndpoint> taken_out;
        std::ranges::copy_if(set.excluded, std::back_inserter(taken_out),
                             [&](const model::ExcludedEndpoint& one) { return one.why == step.why; });
        // The address filter and readiness apply to every Service. The other steps get a line only if they
        // excluded endpoints.
        const bool is_always_asked =
            step.why == model::Exclusion::ForbiddenAddress || step.why == model::Exclusion::NotReady;
        if (is_always_asked || !taken_out.empty()) {
            trace.push_back(sentence(step.name, left - taken_out.size(), left, step.fate, taken_out));
            left -= taken_out.size();
        }
    }
    std::vector<model::Endpoint> weightless;
    std::ranges::copy_if(set.endpoints, std::back_inserter(weightless),
                         [](const model::Endpoint& one) { return one.weight == 0; });
    trace.push_back(sentence("weight", left - weightless.size(), left, "of weight 0", weightless));
    return trace;
}

}  // namespace penstock::gateway
