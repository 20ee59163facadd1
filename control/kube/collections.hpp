// What is asked of an API server: which collections, filtered how, by which requests. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/object_id.hpp"

namespace penstock::kube {

// How much of a cluster is followed.
struct Scope {
    std::string namespace_name;   // "": all of them
    bool nodes = true;            // namespace-scoped rights give none
    bool endpoints_only = false;  // core Endpoints, whatever else is served (EP-001)
    bool with_proxy_services =
        false;  // Services that name a proxy may be ours (SVC-004); else servers may leave them out
};

// One collection, as one server serves it.
struct Collection {
    ObjectKind kind = ObjectKind::Service;
    std::string api_version;     // "v1", "discovery.k8s.io/v1"
    std::string path;            // "/api/v1/services"
    std::string label_selector;  // "": none
    // Servers know few fields and answer 400 for others; results must not depend on it (APISYNC-016).
    std::string field_selector;
    bool operator==(const Collection&) const = default;
};

// "services", "endpointslices", "endpoints", "nodes": as paths and rules name them.
[[nodiscard]] std::string_view resource_name(ObjectKind kind) noexcept;

[[nodiscard]] Collection services_of(const Scope& scope);
[[nodiscard]] Collection all_nodes();
// Where endpoints may be, best first: the first that is served is the truth, alone (EP-001).
[[nodiscard]] std::vector<Collection> endpoints_of(const Scope& scope);

// Objects in one answer to a list (APISYNC-002); also the default of kubectl.
inline constexpr int kListLimit = 500;

// A list that begins, or goes on behind `continue_token`, which stands for version and position itself.
struct ListQuery {
    bool limited = true;
    std::string continue_token;
    std::string not_older_than;  // "": the newest that there is
};
[[nodiscard]] std::string list_target(const Collection& collection, const ListQuery& query);

struct WatchQuery {
    std::string version;
    bool initial_events = false;  // what there is comes first, as a list in events (APISYNC-011)
    int64_t timeout_s = 0;
};
[[nodiscard]] std::string watch_target(const Collection& collection, const WatchQuery& query);

}  // namespace penstock::kube
