// SPDX-License-Identifier: Apache-2.0
#include "control/kube/follow/collections.hpp"

#include <utility>

namespace penstock::kube {
namespace {

// Headless Services are reached only by DNS, and Services with a proxy name belong to another proxy (SVC-004,
// SVC-005).
constexpr std::string_view kNotHeadless = "!service.kubernetes.io/headless";
constexpr std::string_view kNotForOthers = "!service.kubernetes.io/service-proxy-name";

// RFC 3986, 2.3: everything except unreserved characters is escaped.
std::string percent_encoded(std::string_view text) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string encoded;
    for (const char c : text) {
        const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                c == '-' || c == '.' || c == '_' || c == '~';
        if (unreserved) {
            encoded += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            encoded += {'%', kHex[byte >> 4U], kHex[byte & 0xFU]};
        }
    }
    return encoded;
}

Collection collection_of(ObjectKind kind, std::string api_version, const Scope& scope) {
    std::string path = (api_version == "v1" ? "/api/" : "/apis/") + api_version;
    if (!is_cluster_scoped(kind) && !scope.namespace_name.empty()) {
        path += "/namespaces/" + percent_encoded(scope.namespace_name);
    }
    path.append("/").append(resource_name(kind));
    return {.kind = kind,
            .api_version = std::move(api_version),
            .path = std::move(path),
            .label_selector = "",
            .field_selector = ""};
}

class Target {
 public:
    explicit Target(const Collection& collection) : text_(collection.path) {
        add_unless_empty("labelSelector", collection.label_selector);
        add_unless_empty("fieldSelector", collection.field_selector);
    }
    void add(std::string_view name, std::string_view value) {
        text_ += text_.find('?') == std::string::npos ? '?' : '&';
        text_.append(name).append("=").append(percent_encoded(value));
    }
    void add_unless_empty(std::string_view name, std::string_view value) {
        if (!value.empty()) {
            add(name, value);
        }
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

 private:
    std::string text_;
};

}  // namespace

std::string_view resource_name(ObjectKind kind) noexcept {
    switch (kind) {
        case ObjectKind::Service:
            return "services";
        case ObjectKind::EndpointSlice:
            return "endpointslices";
        case ObjectKind::Endpoints:
            return "endpoints";
        case ObjectKind::Node:
            return "nodes";
        case ObjectKind::AddressPool:
            return "addresspools";
        case ObjectKind::Namespace:
            return "namespaces";
    }
    return "?";
}

Collection services_of(const Scope& scope) {
    Collection services = collection_of(ObjectKind::Service, "v1", scope);
    services.label_selector = kNotHeadless;
    if (!scope.with_proxy_services) {  // no selector can express "absent, or this value"
        services.label_selector.append(",").append(kNotForOthers);
    }
    services.field_selector = "spec.clusterIP!=None";
    return services;
}

Collection all_nodes() {
    return collection_of(ObjectKind::Node, "v1", {});
}

Collection all_pools() {
    return collection_of(ObjectKind::AddressPool, std::string(kPoolApiVersion), {});
}

Collection all_namespaces() {
    return collection_of(ObjectKind::Namespace, "v1", {});
}

std::vector<Collection> endpoints_of(const Scope& scope) {
    std::vector<Collection> candidates;
    if (!scope.endpoints_only) {
        candidates.push_back(collection_of(ObjectKind::EndpointSlice, "discovery.k8s.io/v1", scope));
        candidates.push_back(collection_of(ObjectKind::EndpointSlice, "discovery.k8s.io/v1beta1", scope));
    }
    candidates.push_back(collection_of(ObjectKind::Endpoints, "v1", scope));
    for (Collection& candidate : candidates) {
        candidate.label_selector = kNotHeadless;
    }
    return candidates;
}

std::string list_target(const Collection& collection, const ListQuery& query) {
    Target target(collection);
    if (query.limited) {
        target.add("limit", std::to_string(kListLimit));
    }
    if (!query.continue_token.empty()) {
        target.add("continue", query.continue_token);
    } else if (!query.not_older_than.empty()) {
        target.add("resourceVersion", query.not_older_than);
        target.add("resourceVersionMatch", "NotOlderThan");
    }
    return target.take();
}

std::string watch_target(const Collection& collection, const WatchQuery& query) {
    Target target(collection);
    target.add("watch", "1");
    target.add("allowWatchBookmarks", "true");
    if (query.initial_events) {
        target.add("sendInitialEvents", "true");
        target.add("resourceVersionMatch", "NotOlderThan");
    }
    target.add_unless_empty("resourceVersion", query.version);
    target.add("timeoutSeconds", std::to_string(query.timeout_s));
    return target.take();
}

}  // namespace penstock::kube
