// Kubernetes Service semantics, kept up to date: what one gateway shall do, as the objects and the gateway change. What it holds after any
// sequence of changes is what evaluate() makes of the objects that are left (GEN-006).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/model/desired.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

// What became different by one call.
struct Step {
    std::vector<std::shared_ptr<const model::Service>> upsert;    // new, or different in anything; sorted by key
    std::vector<model::ServiceKey> remove;                        // sorted
    std::optional<model::NodePortAddresses> node_port_addresses;  // where they differ
    std::vector<ObjectNotice> appeared;                           // sorted; those inside `upsert` included
    std::vector<ObjectNotice> gone;                               // sorted
    [[nodiscard]] bool is_empty() const noexcept {
        return upsert.empty() && remove.empty() && !node_port_addresses && appeared.empty() && gone.empty();
    }
};

// For one gateway; one thread.
class Engine {
 public:
    using Services = std::map<model::ServiceKey, std::shared_ptr<const model::Service>>;

    explicit Engine(Policy policy) : policy_(std::move(policy)) {}

    // Before the first call nothing is evaluated: apply() only remembers.
    Step set_gateway(const model::GatewayIdentity& gateway);
    Step apply(const kube::Changes& changes);

    // A value that stays the same keeps its pointer.
    [[nodiscard]] const Services& desired() const noexcept { return desired_; }
    [[nodiscard]] const model::NodePortAddresses& node_port_addresses() const noexcept { return node_port_addresses_; }
    [[nodiscard]] const kube::Objects& objects() const noexcept { return objects_; }

    // Evaluates everything from scratch and compares it with what is held (APISYNC-021): the keys that differ. What was wrong is right
    // afterwards.
    std::vector<model::ServiceKey> audit();

 private:
    Step evaluate_all();

    Policy policy_;
    std::optional<model::GatewayIdentity> gateway_;
    kube::Objects objects_;
    Services desired_;
    model::NodePortAddresses node_port_addresses_;
    std::vector<ObjectNotice> notices_;
};

}  // namespace penstock::semantics
