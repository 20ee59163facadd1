// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/apply/acceptance.hpp"

#include <unordered_set>
#include <utility>

#include "control/gateway/compile/affinity_epochs.hpp"
#include "control/gateway/compile/id_map.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {

std::string version_text(const rpc::StateVersion& version) {
    return version.number == 0 ? "nothing"
                               : "version " + std::to_string(version.number) + " of " + version.source;
}

Result<std::vector<model::ServiceKey>> Acceptance::accept(rpc::StateUpdate& update,
                                                          const Refusals& refusals) {
    if (update.base && (state_.accepted.number == 0 || *update.base != state_.accepted)) {
        return fail(Errc::Outdated, "the delta builds on " + version_text(*update.base) + ", but " +
                                        version_text(state_.accepted) + " is in force");
    }
    auto touched = update.base ? accept_delta(update) : accept_full(update, refusals);
    for (auto& [key, why] : update.invalid) {
        log::get("control").warn("{}", why);
        state_.invalid.insert_or_assign(key, why);
    }
    state_.accepted = update.version;
    return touched;
}

std::vector<model::ServiceKey> Acceptance::accept_full(rpc::StateUpdate& update, const Refusals& refusals) {
    std::unordered_set<model::ServiceKey, ServiceKeyHash> named;
    for (const auto& [key, why] : update.invalid) {
        named.insert(key);
    }
    for (const auto& service : update.services) {
        named.insert(service.key);
    }
    std::vector<model::ServiceKey> touched;
    for (const auto& [key, service] : state_.asked) {
        if (!named.contains(key)) {
            touched.push_back(key);
        }
    }
    for (const auto& key : touched) {
        note_affinity_end(key, nullptr);
        state_.asked.erase(key);
    }
    state_.invalid.clear();
    for (auto& service : update.services) {
        model::ServiceKey key = service.key;
        // Service ports that could not be programmed are tried again with every message, and therefore
        // reported again.
        if (put(std::move(service)) || refusals.contains(key)) {
            touched.push_back(std::move(key));
        }
    }
    state_.environment = update.environment.value_or(model::Environment{});
    return touched;
}

std::vector<model::ServiceKey> Acceptance::accept_delta(rpc::StateUpdate& update) {
    std::vector<model::ServiceKey> touched;
    for (const auto& key : update.removed) {
        state_.invalid.erase(key);
        note_affinity_end(key, nullptr);
        if (state_.asked.erase(key) != 0) {
            touched.push_back(key);
        }
    }
    for (auto& service : update.services) {
        state_.invalid.erase(service.key);
        touched.push_back(service.key);
        put(std::move(service));
    }
    if (update.environment) {
        state_.environment = std::move(*update.environment);
    }
    return touched;
}

// Returns true if the service port is new or differs. An equal one keeps its object, by which compile()
// detects that it is unchanged.
bool Acceptance::put(model::Service service) {
    const auto* present = state_.asked.get(service.key);
    if (present != nullptr && **present == service) {
        return false;
    }
    const model::ServiceKey key = service.key;
    note_affinity_end(key, &service);
    state_.asked.insert_or_assign(key, std::make_shared<const model::Service>(std::move(service)));
    return true;
}

// Call before `next` (null: nothing) replaces the key's entry. Messages that are combined into one
// compilation leave no trace of intermediate versions, but a Service with affinity off for a moment
// starts empty (AFF-007).
void Acceptance::note_affinity_end(const model::ServiceKey& key, const model::Service* next) {
    const auto* present = state_.asked.get(key);
    if (present != nullptr && (*present)->affinity_timeout_s != 0 &&
        (next == nullptr || !keeps_affinity(**present, *next))) {
        affinity_ended_.push_back(key);
    }
}

}  // namespace penstock::gateway
