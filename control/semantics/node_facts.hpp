// What is read of Nodes apart from their Pod CIDRs: where they are reached, and whether they may get traffic that comes from outside
// (LB-019, HC-006, PRESENCE-005).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "control/base/interned.hpp"
#include "control/kube/changes.hpp"
#include "control/semantics/address_count.hpp"
#include "control/semantics/semantics.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

// The cluster is about to take the Node away: it says so by deletionTimestamp, its autoscaler by the taint ToBeDeletedByClusterAutoscaler.
[[nodiscard]] bool is_leaving(const kube::Node& node);

// Why the gateway on this Node withholds its VIPs from the link; "" if it does not (PRESENCE-005).
[[nodiscard]] std::string why_vips_withheld(const std::string& name, const kube::Node& node,
                                            const Policy& policy);

struct NodeFact {
    InternedText name;
    InternedText zone;
    // Of each family the first InternalIP that an endpoint may have, else the first such ExternalIP (NODEPORT-009).
    std::optional<IpAddr> v4;
    std::optional<IpAddr> v6;
    bool eligible = true;  // LB-019: neither excluded by its label nor leaving
    bool ready = true;
    kube::NodePtr object;  // its labels are asked by selectors (ANN-14)
    [[nodiscard]] const std::map<std::string, std::string>& labels() const noexcept {
        return object->meta.labels;
    }
    [[nodiscard]] const std::optional<IpAddr>& address(IpFamily family) const noexcept {
        return family == IpFamily::V4 ? v4 : v6;
    }
    // Whether all that is read is the same, as it mostly is when a Node's heartbeat comes.
    [[nodiscard]] bool reads_like(const NodeFact& other) const;
};

[[nodiscard]] NodeFact node_fact_of(const std::string& name, const kube::NodePtr& node);

// Of all Nodes, as they come and go.
class NodeFacts {
 public:
    // `node` null: it is gone. True where anything is different now.
    bool put(const std::string& name, const kube::NodePtr& node);
    // Whether some Node is reached at `address`.
    [[nodiscard]] bool contains(const IpAddr& address) const { return addresses_.contains(address); }
    [[nodiscard]] const std::map<std::string, NodeFact>& all() const noexcept { return nodes_; }

 private:
    std::map<std::string, NodeFact> nodes_;
    AddressCount addresses_;
};

}  // namespace penstock::semantics
