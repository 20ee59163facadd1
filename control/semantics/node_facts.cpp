// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/node_facts.hpp"

#include <algorithm>
#include <string_view>

#include "control/semantics/address_rules.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

constexpr const char* kExcludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers";
constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";
constexpr const char* kAutoscalerTaint = "ToBeDeletedByClusterAutoscaler";

bool is_excluded(const kube::Node& node) {
    return node.meta.labels.contains(kExcludeLabel);
}

std::optional<IpAddr> first_address(const kube::Node& node, std::string_view type, IpFamily family) {
    for (const kube::NodeAddress& entry : node.addresses) {
        if (entry.type != type) {
            continue;
        }
        if (const auto address = IpAddr::parse(entry.address);
            address && address->family() == family && unfit_as_endpoint(*address).empty()) {
            return *address;
        }
    }
    return std::nullopt;
}

std::optional<IpAddr> node_address(const kube::Node& node, IpFamily family) {
    const auto internal = first_address(node, "InternalIP", family);
    return internal ? internal : first_address(node, "ExternalIP", family);
}

template <typename Change>
void each_node_address(const NodeFact& fact, const Change& change) {
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        if (fact.address(family)) {
            change(*fact.address(family));
        }
    }
}

}  // namespace

bool is_leaving(const kube::Node& node) {
    return node.deleting || std::ranges::find(node.taints, kAutoscalerTaint) != node.taints.end();
}

std::string why_vips_withheld(const std::string& name, const kube::Node& node, const Policy& policy) {
    std::string why;
    if (!policy.ignore_exclude_label && is_excluded(node)) {
        why = "Node " + printable(name) + " has the label " + kExcludeLabel;
    }
    if (!policy.ignore_network_unavailable && node.network_unavailable) {
        why += (why.empty() ? "" : "; ") +
               ("Node " + printable(name) + " has the condition NetworkUnavailable=True");
    }
    return why;
}

bool NodeFact::reads_like(const NodeFact& other) const {
    return name == other.name && zone == other.zone && v4 == other.v4 && v6 == other.v6 &&
           eligible == other.eligible && ready == other.ready && labels() == other.labels();
}

NodeFact node_fact_of(const std::string& name, const kube::NodePtr& object) {
    const kube::Node& node = *object;
    const auto zone = node.meta.labels.find(kZoneLabel);
    return {.name = name_for_people(name),
            .zone = zone == node.meta.labels.end() ? InternedText() : name_for_people(zone->second),
            .v4 = node_address(node, IpFamily::V4),
            .v6 = node_address(node, IpFamily::V6),
            .eligible = !is_leaving(node) && !is_excluded(node),
            .ready = node.ready,
            .object = object};
}

bool NodeFacts::put(const std::string& name, const kube::NodePtr& node) {
    const auto known = nodes_.find(name);
    if (node == nullptr) {
        if (known == nodes_.end()) {
            return false;
        }
        each_node_address(known->second, [this](const IpAddr& address) { addresses_.remove(address); });
        nodes_.erase(known);
        return true;
    }
    NodeFact fact = node_fact_of(name, node);
    if (known != nodes_.end() && known->second.reads_like(fact)) {
        known->second.object = node;
        return false;
    }
    if (known != nodes_.end()) {
        each_node_address(known->second, [this](const IpAddr& address) { addresses_.remove(address); });
    }
    each_node_address(fact, [this](const IpAddr& address) { addresses_.add(address); });
    nodes_.insert_or_assign(name, std::move(fact));
    return true;
}

}  // namespace penstock::semantics
