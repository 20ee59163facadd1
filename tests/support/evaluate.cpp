// SPDX-License-Identifier: Apache-2.0
#include "tests/support/evaluate.hpp"

#include "control/semantics/engine.hpp"

namespace penstock::semantics {
namespace {

// Fills `pointers` with non-owning pointers to `objects`.
template <typename Pointers, typename Objects>
void borrow(Pointers& pointers, const Objects& objects) {
    for (const auto& [name, object] : objects) {
        pointers.emplace(name, typename Pointers::mapped_type(typename Pointers::mapped_type(), &object));
    }
}

}  // namespace

Outcome evaluate(const kube::ObjectSet& objects, const model::GatewayIdentity& gateway,
                 const Policy& policy) {
    kube::Changes all;
    borrow(all.services, objects.services);
    borrow(all.slices, objects.slices);
    borrow(all.nodes, objects.nodes);
    Engine engine(policy);
    engine.apply(all);
    Outcome outcome{.desired = {}, .notices = engine.set_gateway(gateway).appeared};
    for (const auto& [key, service] : engine.desired()) {
        outcome.desired.services.emplace(key, *service);
    }
    outcome.desired.environment = engine.environment();
    return outcome;
}

}  // namespace penstock::semantics
