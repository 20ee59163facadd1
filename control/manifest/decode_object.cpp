#include "control/manifest/decode_object.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace penstock::manifest {
namespace {

constexpr std::string_view kCore = "v1";
constexpr std::string_view kDiscovery = "discovery.k8s.io/v1";
constexpr std::string_view kDiscoveryBeta = "discovery.k8s.io/v1beta1";

kube::ObjectMeta decode_meta(const Fields& object, bool namespaced) {
    const Fields meta = object.mapping("metadata");
    return {.namespace_name = namespaced ? meta.text_or("namespace", "default") : std::string(),
            .name = meta.text("name"),
            .uid = meta.text("uid"),
            .creation_timestamp = meta.text("creationTimestamp"),
            .labels = meta.text_map("labels"),
            .annotations = meta.text_map("annotations")};
}

kube::ServicePort decode_service_port(const Fields& port) {
    kube::ServicePort result{.name = port.text("name"),
                             .protocol = port.text_or("protocol", "TCP"),
                             .port = port.integer("port").value_or(0),
                             .node_port = port.integer("nodePort").value_or(0),
                             .target_port = port.integer_or_text("targetPort")};
    if (result.target_port.empty()) {
        result.target_port = std::to_string(result.port);
    }
    return result;
}

kube::LoadBalancerIngress decode_ingress(const Fields& ingress) {
    kube::LoadBalancerIngress result{.ip = ingress.text("ip"), .hostname = ingress.text("hostname"), .ip_mode = ingress.text("ipMode")};
    for (const Fields& port : ingress.mappings("ports")) {
        result.ports.push_back(
            {.port = port.integer("port").value_or(0), .protocol = port.text_or("protocol", "TCP"), .error = port.text("error")});
    }
    return result;
}

// clusterIP is the first of clusterIPs; an API server fills in whichever of the two was left out.
void decode_cluster_ips(const Fields& spec, kube::Service& service) {
    service.awaits_cluster_ip = spec.has("clusterIP") || spec.has("clusterIPs");
    service.cluster_ip = spec.text("clusterIP");
    service.cluster_ips = spec.texts("clusterIPs");
    if (service.cluster_ip.empty() && !service.cluster_ips.empty()) {
        service.cluster_ip = service.cluster_ips.front();
    } else if (service.cluster_ips.empty() && !service.cluster_ip.empty()) {
        service.cluster_ips = {service.cluster_ip};
    }
}

kube::Service decode_service(const Fields& object) {
    kube::Service service{.meta = decode_meta(object, true)};
    const Fields spec = object.mapping("spec");
    service.type = spec.text_or("type", "ClusterIP");
    decode_cluster_ips(spec, service);
    service.ip_families = spec.texts("ipFamilies");
    service.external_ips = spec.texts("externalIPs");
    for (const Fields& port : spec.mappings("ports")) {
        service.ports.push_back(decode_service_port(port));
    }
    service.selector = spec.text_map("selector");
    service.external_traffic_policy = spec.text_or("externalTrafficPolicy", "Cluster");
    service.internal_traffic_policy = spec.text_or("internalTrafficPolicy", "Cluster");
    service.session_affinity = spec.text_or("sessionAffinity", "None");
    service.affinity_timeout_s =
        spec.mapping("sessionAffinityConfig").mapping("clientIP").integer("timeoutSeconds").value_or(service.affinity_timeout_s);
    service.load_balancer_ip = spec.text("loadBalancerIP");
    service.load_balancer_class = spec.text("loadBalancerClass");
    service.load_balancer_source_ranges = spec.texts("loadBalancerSourceRanges");
    service.allocate_load_balancer_node_ports = spec.boolean("allocateLoadBalancerNodePorts");
    service.health_check_node_port = spec.integer("healthCheckNodePort").value_or(0);
    service.publish_not_ready_addresses = spec.boolean("publishNotReadyAddresses").value_or(false);
    service.external_name = spec.text("externalName");
    for (const Fields& ingress : object.mapping("status").mapping("loadBalancer").mappings("ingress")) {
        service.ingress.push_back(decode_ingress(ingress));
    }
    return service;
}

std::vector<std::string> names_of(const std::vector<Fields>& entries) {
    std::vector<std::string> names;
    names.reserve(entries.size());
    for (const Fields& entry : entries) {
        names.push_back(entry.text("name"));
    }
    return names;
}

kube::Endpoint decode_endpoint(const Fields& endpoint, bool beta) {
    const Fields conditions = endpoint.mapping("conditions");
    const Fields hints = endpoint.mapping("hints");
    const std::vector<std::string> addresses = endpoint.texts("addresses");
    kube::Endpoint result{.address = addresses.empty() ? kube::EndpointAddress() : kube::EndpointAddress(addresses.front()),
                          .ready = conditions.boolean("ready"),
                          .serving = conditions.boolean("serving"),
                          .terminating = conditions.boolean("terminating"),
                          .node_name = endpoint.text("nodeName"),
                          .zone = endpoint.text("zone"),
                          .hints_for_zones = names_of(hints.mappings("forZones")),
                          .hints_for_nodes = names_of(hints.mappings("forNodes"))};
    if (beta) {
        // v1beta1 carries the zone, and until 1.20 the node as well, only as topology labels.
        const auto topology = endpoint.text_map("topology");
        const auto label = [&](const char* key) {
            const auto found = topology.find(key);
            return found == topology.end() ? std::string() : found->second;
        };
        if (result.node_name.empty()) {
            result.node_name = label("kubernetes.io/hostname");
        }
        if (result.zone.empty()) {
            result.zone = label("topology.kubernetes.io/zone");
        }
    }
    return result;
}

kube::EndpointSlice decode_slice(const Fields& object, bool beta) {
    kube::EndpointSlice slice{.meta = decode_meta(object, true), .address_type = object.text("addressType")};
    for (const Fields& endpoint : object.mappings("endpoints")) {
        slice.endpoints.push_back(decode_endpoint(endpoint, beta));
    }
    for (const Fields& port : object.mappings("ports")) {
        slice.ports.push_back({.name = port.text("name"), .protocol = port.text_or("protocol", "TCP"), .port = port.integer("port")});
    }
    return slice;
}

kube::Node decode_node(const Fields& object) {
    kube::Node node{.meta = decode_meta(object, false)};
    const Fields spec = object.mapping("spec");
    node.pod_cidrs = spec.texts("podCIDRs");
    if (const std::string cidr = spec.text("podCIDR"); node.pod_cidrs.empty() && !cidr.empty()) {
        node.pod_cidrs = {cidr};
    }
    node.unschedulable = spec.boolean("unschedulable").value_or(false);
    const Fields status = object.mapping("status");
    for (const Fields& address : status.mappings("addresses")) {
        node.addresses.push_back({.type = address.text("type"), .address = address.text("address")});
    }
    for (const Fields& condition : status.mappings("conditions")) {
        const std::string value = condition.text("status");
        if (condition.text("type") == "Ready" && (value == "False" || value == "Unknown")) {
            node.ready = false;
        }
    }
    return node;
}

}  // namespace

std::optional<TypeOfObject> item_type_of(const TypeOfObject& type) {
    if (type.api_version == kCore && type.kind == "List") {
        return TypeOfObject{};
    }
    constexpr std::string_view kSuffix = "List";
    if (type.kind.ends_with(kSuffix)) {
        TypeOfObject item{type.api_version, type.kind.substr(0, type.kind.size() - kSuffix.size())};
        if (kind_of(item)) {
            return item;
        }
    }
    return std::nullopt;
}

std::optional<ObjectKind> kind_of(const TypeOfObject& type) noexcept {
    if (type.api_version == kCore && type.kind == "Service") {
        return ObjectKind::Service;
    }
    if (type.api_version == kCore && type.kind == "Node") {
        return ObjectKind::Node;
    }
    if ((type.api_version == kDiscovery || type.api_version == kDiscoveryBeta) && type.kind == "EndpointSlice") {
        return ObjectKind::EndpointSlice;
    }
    return std::nullopt;
}

std::optional<ObjectId> identify(ObjectKind kind, const Fields& object) {
    const Fields meta = object.mapping("metadata");
    const bool namespaced = kind != ObjectKind::Node;
    const std::string name = meta.text("name");
    const std::string namespace_name = namespaced ? meta.text_or("namespace", "default") : std::string();
    if (name.empty() || object.has_faults()) {
        return std::nullopt;
    }
    return ObjectId{kind, {.namespace_name = namespace_name, .name = name}};
}

Object decode_object(ObjectKind kind, const TypeOfObject& type, const Fields& object) {
    switch (kind) {
        case ObjectKind::EndpointSlice:
            return decode_slice(object, type.api_version == kDiscoveryBeta);
        case ObjectKind::Node:
            return decode_node(object);
        case ObjectKind::Service:
        case ObjectKind::Endpoints:  // never asked for: kind_of() knows none
            break;
    }
    return decode_service(object);
}

}  // namespace penstock::manifest
