// SPDX-License-Identifier: Apache-2.0
// Identifies an object: kind, namespace and name. Pure values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::kube {

// The kinds that Penstock reads. Endpoints of the core group replace EndpointSlices if a server has none
// (EP-001).
enum class ObjectKind : uint8_t { Service, EndpointSlice, Endpoints, Node, AddressPool, Namespace };
[[nodiscard]] const char* to_string(ObjectKind kind) noexcept;
// Objects of these kinds are in no namespace.
[[nodiscard]] constexpr bool is_cluster_scoped(ObjectKind kind) noexcept {
    return kind == ObjectKind::Node || kind == ObjectKind::AddressPool || kind == ObjectKind::Namespace;
}

// Kinds that only the allocation of addresses reads. Nothing else waits for their first list (GEN-012).
[[nodiscard]] constexpr bool is_optional(ObjectKind kind) noexcept {
    return kind == ObjectKind::AddressPool || kind == ObjectKind::Namespace;
}

// apiVersion of AddressPool.
inline constexpr std::string_view kPoolApiVersion = "penstock.io/v1alpha1";

// Identity of an object within its kind.
struct ObjectName {
    std::string namespace_name;  // "" for cluster-scoped objects
    std::string name;
    auto operator<=>(const ObjectName&) const = default;
};

struct ObjectId {
    ObjectKind kind = ObjectKind::Service;
    ObjectName name;
    auto operator<=>(const ObjectId&) const = default;
    // "Service default/web", "Node edge-1", "AddressPool office".
    [[nodiscard]] std::string to_string() const;
};

}  // namespace penstock::kube
