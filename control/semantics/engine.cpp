#include "control/semantics/engine.hpp"

#include <algorithm>
#include <iterator>

namespace penstock::semantics {

Step Engine::set_gateway(const model::GatewayIdentity& gateway) {
    if (gateway_ == gateway) {
        return {};
    }
    gateway_ = gateway;
    return evaluate_all();
}

Step Engine::apply(const kube::Changes& changes) {
    objects_.apply(changes);
    return gateway_ ? evaluate_all() : Step{};
}

Step Engine::evaluate_all() {
    kube::ObjectSet all;
    for (const auto& [name, service] : objects_.services) {
        all.services.emplace(name, *service);
    }
    for (const auto& [name, slice] : objects_.slices) {
        all.slices.emplace(name, *slice);
    }
    for (const auto& [name, node] : objects_.nodes) {
        all.nodes.emplace(name, *node);
    }
    Outcome outcome = evaluate(all, *gateway_, policy_);
    Step step;
    for (auto& [key, service] : outcome.desired.services) {
        auto& held = desired_[key];
        if (held == nullptr || *held != service) {
            held = std::make_shared<const model::Service>(std::move(service));
            step.upsert.push_back(held);
        }
    }
    std::erase_if(desired_, [&](const auto& held) {
        if (outcome.desired.services.contains(held.first)) {
            return false;
        }
        step.remove.push_back(held.first);
        return true;
    });
    if (node_port_addresses_ != outcome.desired.node_port_addresses) {
        node_port_addresses_ = outcome.desired.node_port_addresses;
        step.node_port_addresses = node_port_addresses_;
    }
    std::ranges::set_difference(outcome.notices, notices_, std::back_inserter(step.appeared));
    std::ranges::set_difference(notices_, outcome.notices, std::back_inserter(step.gone));
    notices_ = std::move(outcome.notices);
    return step;
}

std::vector<model::ServiceKey> Engine::audit() {
    std::vector<model::ServiceKey> differing;
    if (!gateway_) {
        return differing;
    }
    Step step = evaluate_all();
    for (const auto& service : step.upsert) {
        differing.push_back(service->key);
    }
    differing.insert(differing.end(), step.remove.begin(), step.remove.end());
    std::ranges::sort(differing);
    return differing;
}

}  // namespace penstock::semantics
