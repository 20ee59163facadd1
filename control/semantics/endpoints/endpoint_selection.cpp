// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/endpoints/endpoint_selection.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include "control/semantics/address_rules.hpp"
#include "control/semantics/endpoints/topology.hpp"
#include "control/semantics/service_port.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

std::string in_slice(const NamedSlice& slice) {
    return "EndpointSlice " + printable(slice.name) + ": ";
}

// The port number in this slice, or nullopt if the slice does not have the port. The first of several valid
// entries is used.
std::optional<L4Port> port_number_in(const NamedSlice& slice, const std::string& port_name, Protocol protocol,
                                     Notices& notices) {
    for (const kube::EndpointPort& entry : slice.slice->ports) {
        if (entry.name != port_name || parse_protocol(entry.protocol) != protocol) {
            continue;
        }
        if (!entry.port || *entry.port == 0) {
            notices.warn(reason::kInvalidPort, in_slice(slice) + "port " + quoted(entry.name) +
                                                   " has no number; \"all ports\" is not supported");
        } else if (!is_l4_port(*entry.port)) {
            notices.warn(reason::kInvalidPort, in_slice(slice) + "port " + quoted(entry.name) + " is " +
                                                   std::to_string(*entry.port) + ", not in 1-65535");
        } else {
            return static_cast<L4Port>(*entry.port);
        }
    }
    return std::nullopt;
}

// Only addresses[0] is used (EP-005).
std::optional<IpAddr> address_of(const kube::Endpoint& endpoint, IpFamily family, const NamedSlice& slice,
                                 Notices& notices) {
    if (endpoint.address.is_absent()) {
        notices.warn(reason::kInvalidEndpointAddress, in_slice(slice) + "an endpoint has no address");
        return std::nullopt;
    }
    const std::optional<IpAddr>& address = endpoint.address.ip();
    if (!address) {
        const std::string why = IpAddr::parse(endpoint.address.bad_text()).error().what;
        notices.warn(reason::kInvalidEndpointAddress, in_slice(slice) + printable(why, 2 * kShownCharsMax));
        return std::nullopt;
    }
    if (address->family() != family) {
        notices.warn(reason::kInvalidEndpointAddress, in_slice(slice) + address->to_string() +
                                                          " does not belong in a slice of addressType " +
                                                          to_string(family));
        return std::nullopt;
    }
    return *address;
}

constexpr const char* kWeight = "penstock.io/weight";

// EP-018. A blank value counts as unset (ANN-G2).
std::optional<uint16_t> weight_of(const NamedSlice& slice, Notices& notices) {
    const kube::ObjectMeta& meta = slice.slice->meta;
    const auto found = meta.annotations.find(kWeight);
    const std::string_view text =
        found == meta.annotations.end() ? std::string_view() : trimmed(found->second);
    if (text.empty()) {
        return std::nullopt;
    }
    const auto weight = whole_number<uint16_t>(text);
    if (!weight) {
        notices.warn(reason::kInvalidAnnotation, in_slice(slice) + kWeight + ": " + quoted(text) +
                                                     " is not in 0-65535; the annotation is ignored");
    }
    return weight;
}

void keep_ready_before_terminating(Selection& selection) {
    if (std::ranges::find(selection.left, Readiness::Ready, &Candidate::readiness) != selection.left.end()) {
        selection.keep_if(model::Exclusion::Terminating,
                          [](const Candidate& one) { return one.readiness == Readiness::Ready; });
    }
}

void keep_usable(Selection& selection) {
    selection.keep_if(model::Exclusion::NotReady,
                      [](const Candidate& one) { return one.readiness != Readiness::Unusable; });
}

}  // namespace

Candidates merged_endpoints(std::span<const NamedSlice> slices, const std::string& port_name,
                            Protocol protocol, IpFamily family, Notices& notices) {
    Candidates merged;
    for (const NamedSlice& slice : slices) {
        if (slice.slice->address_type != to_string(family)) {
            continue;
        }
        const auto port = port_number_in(slice, port_name, protocol, notices);
        if (!port) {
            continue;
        }
        const auto weight = weight_of(slice, notices);
        for (const kube::Endpoint& endpoint : slice.slice->endpoints) {
            if (const auto address = address_of(endpoint, family, slice, notices)) {
                merged.push_back({.address = *address,
                                  .port = *port,
                                  .readiness = readiness_of(endpoint),
                                  .weight = weight,
                                  .endpoint = &endpoint,
                                  .slice = slice.slice.get()});
            }
        }
    }
    // Stable: equal candidates stay in the order of their slices' names.
    std::ranges::stable_sort(merged, {}, [](const Candidate& candidate) {
        return std::tuple(candidate.address, candidate.port, candidate.readiness);
    });
    const auto [first, last] = std::ranges::unique(
        merged, {}, [](const Candidate& candidate) { return std::tuple(candidate.address, candidate.port); });
    merged.erase(first, last);
    return merged;
}

void drop_forbidden(Selection& selection, const AddressCount& cluster_ips, const FrontendOwners& owners,
                    Notices& notices) {
    selection.keep_if(model::Exclusion::ForbiddenAddress, [&](const Candidate& candidate) {
        std::string_view why = unfit_as_endpoint(candidate.address);
        if (why.empty() && cluster_ips.contains(candidate.address)) {
            why = "the ClusterIP of a Service";
        }
        if (why.empty() && owners.owns_vip(candidate.address)) {
            why = "a LoadBalancer or external IP of this gateway";
        }
        if (!why.empty()) {
            notices.warn(reason::kInvalidEndpointAddress, "endpoint " + candidate.address.to_string() +
                                                              " is " + std::string(why) + " and is skipped");
        }
        return why.empty();
    });
}

void select_nodes(Selection& selection, const annotations::Selector& selector, const Nodes& nodes) {
    selection.keep_if(model::Exclusion::NodeSelector, [&](const Candidate& candidate) {
        const kube::Node* node = node_called(candidate.endpoint->node_name, nodes);
        return node != nullptr && selector.matches(node->meta.labels);
    });
}

void weigh_by_node(Candidates& candidates, const std::string& label, const Nodes& nodes) {
    for (Candidate& candidate : candidates) {
        const auto text = label_of(node_called(candidate.endpoint->node_name, nodes), label);
        if (text && !candidate.weight) {
            candidate.weight = whole_number<uint16_t>(*text);
        }
    }
}

void select_cluster(Selection& selection) {
    keep_usable(selection);
    keep_ready_before_terminating(selection);
}

void select_local(Selection& selection, std::string_view node_name) {
    keep_usable(selection);
    selection.keep_if(model::Exclusion::NotLocal, [&](const Candidate& one) {
        return !node_name.empty() && one.endpoint->node_name == node_name;
    });
    keep_ready_before_terminating(selection);
}

bool has_usable(const Candidates& candidates) {
    return std::ranges::any_of(candidates, [](const Candidate& one) { return one.weight != 0; });
}

}  // namespace penstock::semantics
