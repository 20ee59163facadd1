// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/decode_object.hpp"

#include <algorithm>
#include <string_view>

#include "control/kube/object_schema.hpp"

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
    constexpr size_t kNameBytesMax = 253;  // RFC 1123
    const auto is_label = [](std::string_view text) {
        constexpr size_t kLabelBytesMax = 63;
        const auto is_alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
        return !text.empty() && text.size() <= kLabelBytesMax && is_alphanumeric(text.front()) &&
               is_alphanumeric(text.back()) &&
               std::ranges::all_of(text, [&](char c) { return is_alphanumeric(c) || c == '-'; });
    };
    const auto is_subdomain = [&](std::string_view text) {
        while (text.size() <= kNameBytesMax) {
            const size_t dot = text.find('.');
            if (!is_label(text.substr(0, dot))) {
                return false;
            }
            if (dot == std::string_view::npos) {
                return true;
            }
            text.remove_prefix(dot + 1);
        }
        return false;
    };
    constexpr const char* kLabelRule =
        "up to 63 characters of a-z, 0-9 and '-', an alphanumeric one first and last";
    if (!id.name.namespace_name.empty() && !is_label(id.name.namespace_name)) {
        return std::string("metadata.namespace is not a DNS label: ") + kLabelRule;
    }
    if (id.kind == ObjectKind::Service && !is_label(id.name.name)) {
        return std::string("metadata.name is not a DNS label: ") + kLabelRule;
    }
    if (!is_subdomain(id.name.name)) {
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
        case ObjectKind::Service:
        case ObjectKind::Endpoints:  // never passed: kind_of() does not return it
            break;
    }
    return kube::read_service(object, id.name, kube::Writer::Manifest);
}

}  // namespace penstock::manifest
