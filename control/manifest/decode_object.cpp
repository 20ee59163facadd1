// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/decode_object.hpp"

#include <string_view>

#include "control/base/dns_name.hpp"
#include "control/kube/object_schema.hpp"
#include "control/kube/pool_schema.hpp"

namespace penstock::manifest {
namespace {

constexpr std::string_view kCore = "v1";
constexpr std::string_view kDiscovery = "discovery.k8s.io/v1";
constexpr std::string_view kDiscoveryBeta = "discovery.k8s.io/v1beta1";

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
    if (type.api_version == kCore && type.kind == "Namespace") {
        return ObjectKind::Namespace;
    }
    if (type.api_version == kube::kPoolApiVersion && type.kind == "AddressPool") {
        return ObjectKind::AddressPool;
    }
    if ((type.api_version == kDiscovery || type.api_version == kDiscoveryBeta) &&
        type.kind == "EndpointSlice") {
        return ObjectKind::EndpointSlice;
    }
    return std::nullopt;
}

std::optional<ObjectId> identify(ObjectKind kind, const Fields& object) {
    return kube::read_id(object, kind);
}

std::optional<std::string> wrong_name(const ObjectId& id) {
    constexpr const char* kLabelRule =
        "up to 63 characters of a-z, 0-9 and '-', an alphanumeric one first and last";
    if (!id.name.namespace_name.empty() && !is_dns_label(id.name.namespace_name)) {
        return std::string("metadata.namespace is not a DNS label: ") + kLabelRule;
    }
    if ((id.kind == ObjectKind::Service || id.kind == ObjectKind::Namespace) && !is_dns_label(id.name.name)) {
        return std::string("metadata.name is not a DNS label: ") + kLabelRule;
    }
    if (!is_dns_name(id.name.name)) {
        return std::string("metadata.name is not a DNS name: labels with dots between them, each of ") +
               kLabelRule;
    }
    return std::nullopt;
}

Object decode_object(const ObjectId& id, const TypeOfObject& type, const Fields& object) {
    switch (id.kind) {
        case ObjectKind::EndpointSlice:
            return kube::read_slice(object, id.name, type.api_version == kDiscoveryBeta);
        case ObjectKind::Node:
            return kube::read_node(object, id.name);
        case ObjectKind::AddressPool:
            return kube::read_pool(object, id.name);
        case ObjectKind::Namespace:
            return kube::read_namespace(object, id.name);
        case ObjectKind::Service:
        case ObjectKind::Endpoints:  // never passed: kind_of() does not return it
            break;
    }
    return kube::read_service(object, id.name, kube::Writer::Manifest);
}

}  // namespace penstock::manifest
