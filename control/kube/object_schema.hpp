// SPDX-License-Identifier: Apache-2.0
// The schema of the objects, shared by both notations. Converts the fields of an object, named as in the
// Kubernetes API, into plain structs with the API's defaults (GEN-004). The structs hold only the fields that
// the semantics read. Faults go to the list given to `Fields`. Pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/kube/fields.hpp"
#include "control/kube/kept_keys.hpp"
#include "control/kube/object_id.hpp"
#include "control/kube/objects.hpp"

namespace penstock::kube {

// Component that fills in absent fields.
enum class Writer : uint8_t {
    Server,    // an API server: an absent field is not set yet
    Manifest,  // no component
};

namespace schema {

// The API server applies defaults to "" in the same way as to an absent field.
template <FieldsLike Fields>
std::string text_or(const Fields& fields, std::string_view key, std::string_view when_empty) {
    const std::string_view text = fields.text(key);
    return std::string(text.empty() ? when_empty : text);
}

template <FieldsLike Fields>
std::vector<std::string> texts(const Fields& fields, std::string_view key) {
    std::vector<std::string> result;
    fields.each_text(key, [&](std::string_view text) { result.emplace_back(text); });
    return result;
}

template <FieldsLike Fields, typename Keep>
std::map<std::string, std::string> entries(const Fields& fields, std::string_view key, const Keep& keep) {
    std::map<std::string, std::string> result;
    fields.each_entry(key, [&](std::string_view name, std::string_view value) {
        if (keep(name)) {
            result.insert_or_assign(std::string(name), std::string(value));
        }
    });
    return result;
}

// Only Services are distinguished by UID and age (GEN-010, SVC-018). Events about a pool name its UID.
template <FieldsLike Fields>
ObjectMeta read_meta(const Fields& object, ObjectKind kind, const ObjectName& name) {
    const Fields meta = object.mapping("metadata");
    ObjectMeta result{.namespace_name = name.namespace_name, .name = name.name};
    if (kind == ObjectKind::Service || kind == ObjectKind::AddressPool) {
        result.uid = meta.text("uid");
        result.creation_timestamp = meta.text("creationTimestamp");
    }
    result.labels =
        entries(meta, "labels", [kind](std::string_view key) { return is_kept_label(kind, key); });
    result.annotations =
        entries(meta, "annotations", [kind](std::string_view key) { return is_kept_annotation(kind, key); });
    return result;
}

template <FieldsLike Fields>
ServicePort read_service_port(const Fields& port) {
    ServicePort result{.name = std::string(port.text("name")),
                       .protocol = text_or(port, "protocol", "TCP"),
                       .port = port.integer("port").value_or(0),
                       .node_port = port.integer("nodePort").value_or(0),
                       .target_port = port.integer_or_text("targetPort")};
    if (result.target_port.empty()) {
        result.target_port = std::to_string(result.port);
    }
    return result;
}

template <FieldsLike Fields>
LoadBalancerIngress read_ingress(const Fields& ingress) {
    LoadBalancerIngress result{.ip = std::string(ingress.text("ip")),
                               .hostname = std::string(ingress.text("hostname")),
                               .ip_mode = std::string(ingress.text("ipMode"))};
    ingress.each_mapping("ports", [&](const Fields& port) {
        result.ports.push_back({.port = port.integer("port").value_or(0),
                                .protocol = text_or(port, "protocol", "TCP"),
                                .error = std::string(port.text("error"))});
    });
    return result;
}

// Penstock's own conditions (STATUS-003).
template <FieldsLike Fields>
std::vector<Condition> read_conditions(const Fields& status) {
    std::vector<Condition> conditions;
    status.each_mapping("conditions", [&](const Fields& condition) {
        if (const std::string_view type = condition.text("type"); type.starts_with("penstock.io/")) {
            conditions.push_back({.type = std::string(type),
                                  .status = std::string(condition.text("status")),
                                  .reason = std::string(condition.text("reason")),
                                  .message = std::string(condition.text("message"))});
        }
    });
    return conditions;
}

// clusterIP is the first of clusterIPs; an API server fills in the one that was left out.
template <FieldsLike Fields>
void read_cluster_ips(const Fields& spec, Writer writer, Service& service) {
    service.awaits_cluster_ip = writer == Writer::Server || spec.has("clusterIP") || spec.has("clusterIPs");
    service.cluster_ip = spec.text("clusterIP");
    service.cluster_ips = texts(spec, "clusterIPs");
    if (service.cluster_ip.empty() && !service.cluster_ips.empty()) {
        service.cluster_ip = service.cluster_ips.front();
    } else if (service.cluster_ips.empty() && !service.cluster_ip.empty()) {
        service.cluster_ips = {service.cluster_ip};
    }
}

template <FieldsLike Fields>
InternedTexts read_hints(const Fields& hints, std::string_view key) {
    std::vector<std::string> names;
    hints.each_mapping(key, [&](const Fields& hint) { names.emplace_back(hint.text("name")); });
    return names;
}

// v1beta1 carries the zone, and until 1.20 also the node, only as topology labels (EP-016). Other labels are
// kept as they are.
template <FieldsLike Fields>
InternedTexts read_topology(const Fields& endpoint, Endpoint& result) {
    std::map<std::string, std::string> labels;
    endpoint.each_entry("topology", [&](std::string_view key, std::string_view value) {
        labels.insert_or_assign(std::string(key), value);
    });
    const auto take_over = [&](const char* key, InternedText& field) {
        if (const auto found = labels.find(key); field.empty() && found != labels.end()) {
            field = found->second;
        }
    };
    take_over("kubernetes.io/hostname", result.node_name);
    take_over("topology.kubernetes.io/zone", result.zone);
    std::vector<std::string> flat;
    for (const auto& [key, value] : labels) {
        flat.push_back(key);
        flat.push_back(value);
    }
    return flat;
}

template <FieldsLike Fields>
Endpoint read_endpoint(const Fields& endpoint) {
    Endpoint result;
    std::optional<std::string_view> address;
    endpoint.each_text("addresses",
                       [&](std::string_view text) { address = address.value_or(text); });  // EP-005
    if (address) {
        result.address = EndpointAddress(*address);
    }
    const Fields conditions = endpoint.mapping("conditions");
    result.ready = conditions.boolean("ready");
    result.serving = conditions.boolean("serving");
    result.terminating = conditions.boolean("terminating");
    result.node_name = endpoint.text("nodeName");
    result.zone = endpoint.text("zone");
    const Fields hints = endpoint.mapping("hints");
    result.hints_for_zones = read_hints(hints, "forZones");
    result.hints_for_nodes = read_hints(hints, "forNodes");
    return result;
}

template <FieldsLike Fields>
std::vector<EndpointPort> read_endpoint_ports(const Fields& fields) {
    std::vector<EndpointPort> ports;
    fields.each_mapping("ports", [&](const Fields& port) {
        ports.push_back({.name = std::string(port.text("name")),
                         .protocol = text_or(port, "protocol", "TCP"),
                         .port = port.integer("port")});
    });
    ports.shrink_to_fit();
    return ports;
}

}  // namespace schema

// nullopt without a usable name or namespace.
template <FieldsLike Fields>
std::optional<ObjectId> read_id(const Fields& object, ObjectKind kind) {
    const Fields meta = object.mapping("metadata");
    const std::string_view name = meta.text("name");
    std::string namespace_name =
        is_cluster_scoped(kind) ? std::string() : schema::text_or(meta, "namespace", "default");
    if (name.empty() || object.has_faults()) {
        return std::nullopt;
    }
    return ObjectId{kind, {.namespace_name = std::move(namespace_name), .name = std::string(name)}};
}

template <FieldsLike Fields>
Service read_service(const Fields& object, const ObjectName& name, Writer writer) {
    Service service{.meta = schema::read_meta(object, ObjectKind::Service, name)};
    const Fields spec = object.mapping("spec");
    service.type = schema::text_or(spec, "type", "ClusterIP");
    schema::read_cluster_ips(spec, writer, service);
    service.ip_families = schema::texts(spec, "ipFamilies");
    service.ip_family_policy = spec.text("ipFamilyPolicy");
    service.external_ips = schema::texts(spec, "externalIPs");
    spec.each_mapping("ports",
                      [&](const Fields& port) { service.ports.push_back(schema::read_service_port(port)); });
    service.selector = schema::entries(spec, "selector", [](std::string_view) { return true; });
    service.external_traffic_policy = schema::text_or(spec, "externalTrafficPolicy", "Cluster");
    service.internal_traffic_policy = schema::text_or(spec, "internalTrafficPolicy", "Cluster");
    service.session_affinity = schema::text_or(spec, "sessionAffinity", "None");
    service.traffic_distribution = spec.text("trafficDistribution");
    service.affinity_timeout_s = spec.mapping("sessionAffinityConfig")
                                     .mapping("clientIP")
                                     .integer("timeoutSeconds")
                                     .value_or(service.affinity_timeout_s);
    service.load_balancer_ip = spec.text("loadBalancerIP");
    service.load_balancer_class = spec.text("loadBalancerClass");
    service.load_balancer_source_ranges = schema::texts(spec, "loadBalancerSourceRanges");
    service.allocate_load_balancer_node_ports = spec.boolean("allocateLoadBalancerNodePorts");
    service.health_check_node_port = spec.integer("healthCheckNodePort").value_or(0);
    service.publish_not_ready_addresses = spec.boolean("publishNotReadyAddresses").value_or(false);
    service.external_name = spec.text("externalName");
    service.topology_keys = schema::texts(spec, "topologyKeys");
    const Fields status = object.mapping("status");
    status.mapping("loadBalancer").each_mapping("ingress", [&](const Fields& ingress) {
        service.ingress.push_back(schema::read_ingress(ingress));
    });
    service.conditions = schema::read_conditions(status);
    return service;
}

// `beta`: discovery.k8s.io/v1beta1.
template <FieldsLike Fields>
EndpointSlice read_slice(const Fields& object, const ObjectName& name, bool beta) {
    EndpointSlice slice{.meta = schema::read_meta(object, ObjectKind::EndpointSlice, name),
                        .address_type = std::string(object.text("addressType"))};
    bool any_topology = false;
    object.each_mapping("endpoints", [&](const Fields& endpoint) {
        slice.endpoints.push_back(schema::read_endpoint(endpoint));
        if (beta) {
            slice.topology.push_back(schema::read_topology(endpoint, slice.endpoints.back()));
            any_topology |= !slice.topology.back().empty();
        }
    });
    if (!any_topology) {
        slice.topology = {};
    }
    slice.topology.shrink_to_fit();
    slice.endpoints.shrink_to_fit();  // many are stored for a long time
    slice.ports = schema::read_endpoint_ports(object);
    return slice;
}

// EP-015: one slice for each subset and address family that has addresses, "NAME-SUBSET-ipv4". A malformed
// address goes into the slice of the family that it resembles, and is refused there by name.
template <FieldsLike Fields>
std::vector<EndpointSlice> read_endpoints(const Fields& object, const ObjectName& name) {
    std::vector<EndpointSlice> slices;
    const ObjectMeta meta = schema::read_meta(object, ObjectKind::Endpoints, name);
    size_t subset_index = 0;
    object.each_mapping("subsets", [&](const Fields& subset) {
        EndpointSlice by_family[2];
        const auto add = [&](std::string_view key, bool ready) {
            subset.each_mapping(key, [&](const Fields& address) {
                const std::string_view ip = address.text("ip");
                by_family[ip.find(':') == std::string_view::npos ? 0 : 1].endpoints.push_back(
                    {.address = EndpointAddress(ip),
                     .ready = ready,
                     .serving = ready,
                     .terminating = false,
                     .node_name = address.text("nodeName")});
            });
        };
        add("addresses", true);
        add("notReadyAddresses", false);
        const std::vector<EndpointPort> ports = schema::read_endpoint_ports(subset);
        for (const bool v6 : {false, true}) {
            EndpointSlice& slice = by_family[v6 ? 1 : 0];
            if (slice.endpoints.empty()) {
                continue;
            }
            slice.meta.namespace_name = name.namespace_name;
            slice.meta.name = name.name + "-" + std::to_string(subset_index) + (v6 ? "-ipv6" : "-ipv4");
            slice.meta.labels.emplace("kubernetes.io/service-name", name.name);
            slice.meta.annotations = meta.annotations;
            slice.from_endpoints = true;
            slice.address_type = v6 ? "IPv6" : "IPv4";
            slice.endpoints.shrink_to_fit();
            slice.ports = ports;
            slices.push_back(std::move(slice));
        }
        ++subset_index;
    });
    return slices;
}

template <FieldsLike Fields>
Node read_node(const Fields& object, const ObjectName& name) {
    Node node{.meta = schema::read_meta(object, ObjectKind::Node, name)};
    const Fields spec = object.mapping("spec");
    node.pod_cidrs = schema::texts(spec, "podCIDRs");
    if (const std::string_view cidr = spec.text("podCIDR"); node.pod_cidrs.empty() && !cidr.empty()) {
        node.pod_cidrs = {std::string(cidr)};
    }
    node.deleting = !object.mapping("metadata").text("deletionTimestamp").empty();
    spec.each_mapping("taints", [&](const Fields& taint) { node.taints.emplace_back(taint.text("key")); });
    node.unschedulable = spec.boolean("unschedulable").value_or(false);
    const Fields status = object.mapping("status");
    status.each_mapping("addresses", [&](const Fields& address) {
        node.addresses.push_back(
            {.type = std::string(address.text("type")), .address = std::string(address.text("address"))});
    });
    status.each_mapping("conditions", [&](const Fields& condition) {
        const std::string_view value = condition.text("status");
        if (condition.text("type") == "Ready" && (value == "False" || value == "Unknown")) {
            node.ready = false;
        }
        if (condition.text("type") == "NetworkUnavailable" && value == "True") {
            node.network_unavailable = true;
        }
    });
    return node;
}

}  // namespace penstock::kube
