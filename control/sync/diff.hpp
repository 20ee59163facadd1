// (old desired state, new desired state) -> what to tell a gateway that has the old one. Pure; any thread. Cost follows the number of
// service ports, the result the number that changed.
#pragma once

#include <optional>
#include <vector>

#include "control/model/desired.hpp"

namespace penstock::sync {

struct Changes {
    std::vector<model::Service> upsert;                           // new, or different in anything; sorted by key
    std::vector<model::ServiceKey> remove;                        // sorted
    std::optional<model::NodePortAddresses> node_port_addresses;  // where they differ
    [[nodiscard]] bool is_empty() const noexcept { return upsert.empty() && remove.empty() && !node_port_addresses; }
    bool operator==(const Changes&) const = default;
};

// All of a Kubernetes Service's ports that change are in one result, and a gateway applies one message at once (GEN-007).
[[nodiscard]] Changes diff(const model::Desired& from, const model::Desired& to);

}  // namespace penstock::sync
