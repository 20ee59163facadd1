// SPDX-License-Identifier: Apache-2.0
// Requests to an API server: the collections to follow, their filters, and the request targets. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/object_id.hpp"

namespace penstock::kube {

// The part of a cluster that is followed.
struct Scope {
    std::string namespace_name;   // "": all namespaces
    bool nodes = true;            // namespace-scoped rights do not include Nodes
    bool endpoints_only = false;  // core Endpoints only, even if other collections are served (EP-001)
    // Services that name a proxy may be selected (SVC-004). If false, servers may filter them out.
    bool with_proxy_services = false;
    // Address pools and the labels of namespaces, by which addresses are allocated to Services (LB-007). Both
    // are optional: nothing waits for their first list, and the rights may be missing. Set `address_pools`
    // only if pools are not read from files.
    bool address_pools = false;
    bool namespaces = false;
};

// One collection, as served by one server.
struct Collection {
    ObjectKind kind = ObjectKind::Service;
    std::string api_version;     // "v1", "discovery.k8s.io/v1"
    std::string path;            // "/api/v1/services"
    std::string label_selector;  // "": none
    // Servers support few fields and respond with 400 for others. Results must not depend on this selector
    // (APISYNC-016).
    std::string field_selector;
    bool operator==(const Collection&) const = default;
};

// "services", "endpointslices", "addresspools", ...: the resource name in paths and RBAC rules.
[[nodiscard]] std::string_view resource_name(ObjectKind kind) noexcept;

[[nodiscard]] Collection services_of(const Scope& scope);
[[nodiscard]] Collection all_nodes();
[[nodiscard]] Collection all_pools();
[[nodiscard]] Collection all_namespaces();
// Collections that may hold endpoints, best first. Only the first one that is served is used (EP-001).
[[nodiscard]] std::vector<Collection> endpoints_of(const Scope& scope);

// Objects per page of a list (APISYNC-002); the same default as kubectl.
inline constexpr int kListLimit = 500;

// A list from its beginning, or its continuation at `continue_token`, which encodes version and position.
struct ListQuery {
    bool limited = true;
    std::string continue_token;
    std::string not_older_than;  // "": the newest version
};
[[nodiscard]] std::string list_target(const Collection& collection, const ListQuery& query);

struct WatchQuery {
    std::string version;
    bool initial_events = false;  // existing objects come first, as a list in events (APISYNC-011)
    int64_t timeout_s = 0;
};
[[nodiscard]] std::string watch_target(const Collection& collection, const WatchQuery& query);

}  // namespace penstock::kube
