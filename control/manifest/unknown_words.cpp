// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/unknown_words.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "control/base/nearest.hpp"
#include "control/kube/fields.hpp"

namespace penstock::manifest {
namespace {

using kube::ObjectKind;
using Words = std::span<const std::string_view>;
using std::string_view;

// Fields of all versions from 1.16 to 1.36, including those removed since.
constexpr string_view kObject[] = {"apiVersion", "kind", "metadata", "spec", "status"};
constexpr string_view kSlice[] = {"apiVersion", "kind", "metadata", "addressType", "endpoints", "ports"};
constexpr string_view kMetadata[] = {"annotations",
                                     "clusterName",
                                     "creationTimestamp",
                                     "deletionGracePeriodSeconds",
                                     "deletionTimestamp",
                                     "finalizers",
                                     "generateName",
                                     "generation",
                                     "labels",
                                     "managedFields",
                                     "name",
                                     "namespace",
                                     "ownerReferences",
                                     "resourceVersion",
                                     "selfLink",
                                     "uid"};
constexpr string_view kServiceSpec[] = {"allocateLoadBalancerNodePorts",
                                        "clusterIP",
                                        "clusterIPs",
                                        "externalIPs",
                                        "externalName",
                                        "externalTrafficPolicy",
                                        "healthCheckNodePort",
                                        "internalTrafficPolicy",
                                        "ipFamilies",
                                        "ipFamily",
                                        "ipFamilyPolicy",
                                        "loadBalancerClass",
                                        "loadBalancerIP",
                                        "loadBalancerSourceRanges",
                                        "ports",
                                        "publishNotReadyAddresses",
                                        "selector",
                                        "sessionAffinity",
                                        "sessionAffinityConfig",
                                        "topologyKeys",
                                        "trafficDistribution",
                                        "type"};
constexpr string_view kServicePort[] = {"appProtocol", "name", "nodePort", "port", "protocol", "targetPort"};
constexpr string_view kAffinityConfig[] = {"clientIP"};
constexpr string_view kClientIp[] = {"timeoutSeconds"};
constexpr string_view kServiceStatus[] = {"conditions", "loadBalancer"};
constexpr string_view kLoadBalancer[] = {"ingress"};
constexpr string_view kIngress[] = {"hostname", "ip", "ipMode", "ports"};
constexpr string_view kIngressPort[] = {"error", "port", "protocol"};
constexpr string_view kEndpoint[] = {"addresses", "conditions", "deprecatedTopology", "hints", "hostname",
                                     "nodeName",  "targetRef",  "topology",           "zone"};
constexpr string_view kConditions[] = {"ready", "serving", "terminating"};
constexpr string_view kHints[] = {"forNodes", "forZones"};
constexpr string_view kHint[] = {"name"};
constexpr string_view kSlicePort[] = {"appProtocol", "name", "port", "protocol"};
constexpr string_view kNodeSpec[] = {"configSource", "externalID", "podCIDR",      "podCIDRs",
                                     "providerID",   "taints",     "unschedulable"};
constexpr string_view kTaint[] = {"effect", "key", "timeAdded", "value"};

constexpr string_view kNamespaceSpec[] = {"finalizers"};
constexpr string_view kPoolSpec[] = {"addresses", "autoAssign", "avoidBuggyIPs",     "disabled",
                                     "enforce",   "internal",   "namespaceSelector", "namespaces",
                                     "priority",  "reassign",   "reservations",      "serviceSelector"};
constexpr string_view kLabelSelector[] = {"matchExpressions", "matchLabels"};
constexpr string_view kLabelRequirement[] = {"key", "operator", "values"};
constexpr string_view kReservation[] = {"address", "name", "namespace"};

struct Mapping {
    string_view path;  // "[]" stands for each item of a list
    Words fields;
};
constexpr Mapping kServiceMappings[] = {{"", kObject},
                                        {"metadata", kMetadata},
                                        {"spec", kServiceSpec},
                                        {"spec.ports[]", kServicePort},
                                        {"spec.sessionAffinityConfig", kAffinityConfig},
                                        {"spec.sessionAffinityConfig.clientIP", kClientIp},
                                        {"status", kServiceStatus},
                                        {"status.loadBalancer", kLoadBalancer},
                                        {"status.loadBalancer.ingress[]", kIngress},
                                        {"status.loadBalancer.ingress[].ports[]", kIngressPort}};
constexpr Mapping kSliceMappings[] = {{"", kSlice},
                                      {"metadata", kMetadata},
                                      {"endpoints[]", kEndpoint},
                                      {"endpoints[].conditions", kConditions},
                                      {"endpoints[].hints", kHints},
                                      {"endpoints[].hints.forNodes[]", kHint},
                                      {"endpoints[].hints.forZones[]", kHint},
                                      {"ports[]", kSlicePort}};
constexpr Mapping kNodeMappings[] = {
    {"", kObject}, {"metadata", kMetadata}, {"spec", kNodeSpec}, {"spec.taints[]", kTaint}};
constexpr Mapping kNamespaceMappings[] = {{"", kObject}, {"metadata", kMetadata}, {"spec", kNamespaceSpec}};
constexpr Mapping kPoolMappings[] = {{"", kObject},
                                     {"metadata", kMetadata},
                                     {"spec", kPoolSpec},
                                     {"spec.namespaceSelector", kLabelSelector},
                                     {"spec.namespaceSelector.matchExpressions[]", kLabelRequirement},
                                     {"spec.serviceSelector", kLabelSelector},
                                     {"spec.serviceSelector.matchExpressions[]", kLabelRequirement},
                                     {"spec.reservations[]", kReservation}};

// Kinds of core/v1, and of the discovery group.
constexpr string_view kCoreKinds[] = {"Service",
                                      "Node",
                                      "List",
                                      "Binding",
                                      "ComponentStatus",
                                      "ConfigMap",
                                      "Endpoints",
                                      "Event",
                                      "LimitRange",
                                      "Namespace",
                                      "PersistentVolume",
                                      "PersistentVolumeClaim",
                                      "Pod",
                                      "PodTemplate",
                                      "ReplicationController",
                                      "ResourceQuota",
                                      "Secret",
                                      "ServiceAccount"};
constexpr string_view kDiscoveryKinds[] = {"EndpointSlice"};
constexpr string_view kPoolKinds[] = {"AddressPool"};
constexpr string_view kPoolGroup = "penstock.io/";
constexpr string_view kDiscoveryGroup = "discovery.k8s.io/";
constexpr string_view kDiscoveryVersions[] = {"discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"};

std::span<const Mapping> mappings_of(ObjectKind kind) {
    switch (kind) {
        case ObjectKind::EndpointSlice:
            return kSliceMappings;
        case ObjectKind::Node:
            return kNodeMappings;
        case ObjectKind::AddressPool:
            return kPoolMappings;
        case ObjectKind::Namespace:
            return kNamespaceMappings;
        case ObjectKind::Service:
        case ObjectKind::Endpoints:  // no manifest is read as Endpoints
            break;
    }
    return kServiceMappings;
}

std::string did_you_mean(string_view word, Words words) {
    const string_view nearest = nearest_of(word, words);
    return nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?";
}

// `shown` is the path of `value` for messages ("spec.ports[0]"), `path` the one for the tables
// ("spec.ports[]").
void look_through(const Value& value, std::span<const Mapping> mappings, const std::string& path,
                  const std::string& shown, std::vector<Fault>& found) {
    if (value.kind == Value::Kind::List) {
        for (size_t i = 0; i < value.items.size(); ++i) {
            look_through(*value.items[i], mappings, path + "[]", kube::path_of_item(shown, i), found);
        }
        return;
    }
    const auto known = std::ranges::find(mappings, path, &Mapping::path);
    if (value.kind != Value::Kind::Mapping || known == mappings.end()) {
        return;
    }
    for (const auto& [name, field] : value.fields) {
        if (std::ranges::find(known->fields, name) == known->fields.end()) {
            found.push_back({field->line, "unknown field " + kube::path_of_field(shown, name) +
                                              " is ignored" + did_you_mean(name, known->fields)});
        } else {
            look_through(*field, mappings, path.empty() ? name : path + "." + name,
                         kube::path_of_field(shown, name), found);
        }
    }
}

bool is_known(string_view kind, Words kinds) {
    constexpr string_view kList = "List";
    return std::ranges::find(kinds, kind) != kinds.end() ||
           (kind.ends_with(kList) &&
            std::ranges::find(kinds, kind.substr(0, kind.size() - kList.size())) != kinds.end());
}

}  // namespace

std::vector<Fault> unknown_fields(const Value& object, ObjectKind kind) {
    std::vector<Fault> found;
    look_through(object, mappings_of(kind), "", "", found);
    return found;
}

std::optional<std::string> unknown_type(const TypeOfObject& type) {
    const std::string shown = type.api_version + " " + type.kind;
    const bool is_core = type.api_version == "v1";
    const bool is_discovery =
        std::ranges::find(kDiscoveryVersions, type.api_version) != std::end(kDiscoveryVersions);
    if (is_core || is_discovery) {
        const Words kinds = is_core ? Words(kCoreKinds) : Words(kDiscoveryKinds);
        if (is_known(type.kind, kinds)) {
            return std::nullopt;
        }
        if (is_core && is_known(type.kind, kDiscoveryKinds)) {
            return shown + " is ignored: its apiVersion is discovery.k8s.io/v1";
        }
        return "unknown kind " + shown + " is ignored" + did_you_mean(type.kind, kinds);
    }
    if (type.api_version.starts_with(kPoolGroup) && is_known(type.kind, kPoolKinds)) {
        return shown + " is ignored: AddressPools are read as penstock.io/v1alpha1";
    }
    if (type.api_version.find('/') == std::string::npos && is_known(type.kind, kCoreKinds)) {
        return shown + " is ignored: its apiVersion is v1";
    }
    if (type.api_version.starts_with(kDiscoveryGroup) || is_known(type.kind, kDiscoveryKinds)) {
        return shown + " is ignored: EndpointSlices are read as discovery.k8s.io/v1 or v1beta1";
    }
    return std::nullopt;
}

}  // namespace penstock::manifest
