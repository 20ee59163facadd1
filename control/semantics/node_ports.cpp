// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/node_ports.hpp"

#include <algorithm>

#include "control/semantics/notices.hpp"
#include "control/semantics/prefix_set.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

template <typename T>
void sort_unique(std::vector<T>& values) {
    std::ranges::sort(values);
    const auto [first, last] = std::ranges::unique(values);
    values.erase(first, last);
}

}  // namespace

model::NodePortAddresses node_port_addresses_of(const kube::Node* node, const model::GatewayIdentity& gateway,
                                                const Policy& policy, std::vector<ObjectNotice>& notices) {
    model::NodePortAddresses result;
    if (gateway.mode != model::GatewayMode::Node) {
        return result;
    }
    result.within = PrefixSet(policy.node_port_within).outermost();
    result.primary_only = policy.node_port_primary_only;

    const auto report = [&](std::string_view reason, std::string message) {
        notices.push_back({.kind = "Node",
                           .object = {.namespace_name = "", .name = gateway.node_name},
                           .notice = {.level = model::Notice::Level::Warning,
                                      .reason = std::string(reason),
                                      .message = std::move(message)}});
    };
    if (node == nullptr) {
        report(reason::kNodeNotFound,
               "there is no Node with the gateway's node name " + quoted(gateway.node_name) +
                   (policy.node_port_primary_only ? "; no address serves NodePorts" : ""));
        return result;
    }
    for (const kube::NodeAddress& entry : node->addresses) {
        // `primary` means the InternalIPs. A host name is not an address.
        if (entry.type != "InternalIP" && (entry.type != "ExternalIP" || policy.node_port_primary_only)) {
            continue;
        }
        if (const auto address = IpAddr::parse(entry.address)) {
            result.node_addresses.push_back(*address);
        } else {
            report(reason::kInvalidNodeAddress,
                   "status.addresses: " + entry.type + " " + quoted(entry.address) + " is not an IP address");
        }
    }
    sort_unique(result.node_addresses);
    return result;
}

}  // namespace penstock::semantics
