// SPDX-License-Identifier: Apache-2.0
// Facts read from Nodes, except Pod CIDRs: their addresses, and whether they may receive external traffic
// (LB-019, HC-006, PRESENCE-005).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "control/base/interned.hpp"
#include "control/kube/changes.hpp"
#include "control/semantics/address_count.hpp"
#include "control/semantics/policy.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

// Whether the Node is about to be removed: it has a deletionTimestamp or the autoscaler's taint
// ToBeDeletedByClusterAutoscaler.
[[nodiscard]] bool is_leaving(const kube::Node& node);

// The reason why the gateway on this Node withholds its VIPs from the link, or "" if it does not
// (PRESENCE-005).
[[nodiscard]] std::string why_vips_withheld(const std::string& name, const kube::Node& node,
                                            const Policy& policy);

struct NodeFact {
    InternedText name;
    InternedText zone;
    // For each family, the first InternalIP that may be an endpoint, otherwise the first such ExternalIP
    // (NODEPORT-009).
    std::optional<IpAddr> v4;
    std::optional<IpAddr> v6;
    bool eligible = true;  // LB-019: neither excluded by its label nor leaving
    bool ready = true;
    kube::NodePtr object;  // selectors read its labels (ANN-14)
    [[nodiscard]] const std::map<std::string, std::string>& labels() const noexcept {
        return object->meta.labels;
    }
    [[nodiscard]] const std::optional<IpAddr>& address(IpFamily family) const noexcept {
        return family == IpFamily::V4 ? v4 : v6;
    }
    // Whether all facts are equal. This is the usual case for a Node heartbeat.
    [[nodiscard]] bool reads_like(const NodeFact& other) const;
};

[[nodiscard]] NodeFact node_fact_of(const std::string& name, const kube::NodePtr& node);

// The facts of all current Nodes.
class NodeFacts {
 public:
    // Adds, updates or, if `node` is null, removes a Node. Returns true if any fact changed.
    bool put(const std::string& name, const kube::NodePtr& node);
    // Whether `address` is the address of a Node.
    [[nodiscard]] bool contains(const IpAddr& address) const { return addresses_.contains(address); }
    [[nodiscard]] const std::map<std::string, NodeFact>& all() const noexcept { return nodes_; }

 private:
    std::map<std::string, NodeFact> nodes_;
    AddressCount addresses_;
};

}  // namespace penstock::semantics
