// SPDX-License-Identifier: Apache-2.0
// A small cluster that a test describes in a few lines, and its outcome as lines of text.
//
// The gateway is node "edge-1" in node mode and may use 203.0.113.0/24 and 2001:db8::/32, unless a test
// changes this.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/evaluate.hpp"

namespace penstock::semantics::testing {

using Lines = std::vector<std::string>;

inline IpAddr ip(std::string_view text) {
    return IpAddr::parse(text).value();
}
inline Prefix cidr(std::string_view text) {
    return Prefix::parse(text).value();
}

inline kube::ObjectName object_name(const std::string& text) {
    const size_t slash = text.find('/');
    return {.namespace_name = text.substr(0, slash), .name = text.substr(slash + 1)};
}

inline kube::Endpoint endpoint(const std::string& address, const std::string& node = "") {
    kube::Endpoint result;
    result.address = address;
    result.node_name = node;
    return result;
}

// Not ready, but still serving while terminating.
inline kube::Endpoint terminating_endpoint(const std::string& address, const std::string& node = "") {
    kube::Endpoint result = endpoint(address, node);
    result.ready = false;
    result.serving = true;
    result.terminating = true;
    return result;
}

inline kube::Endpoint unready_endpoint(const std::string& address, const std::string& node = "") {
    kube::Endpoint result = endpoint(address, node);
    result.ready = false;
    return result;
}

struct World {
    kube::ObjectSet objects;
    model::GatewayIdentity gateway{
        .gateway_name = "gw", .mode = model::GatewayMode::Node, .node_name = "edge-1"};
    Policy policy{.allowed_external_cidrs = {cidr("203.0.113.0/24"), cidr("2001:db8::/32")}};

    World() { objects.nodes["edge-1"].meta.name = "edge-1"; }

    // A ClusterIP Service with one unnamed port, 80/TCP. If no ClusterIP is given, it is "10.96.0.N" with a
    // unique N.
    kube::Service& service(const std::string& name, const std::string& cluster_ip = "") {
        kube::Service& made = objects.services[object_name(name)];
        made.meta.namespace_name = object_name(name).namespace_name;
        made.meta.name = object_name(name).name;
        made.cluster_ip =
            cluster_ip.empty() ? "10.96.0." + std::to_string(objects.services.size()) : cluster_ip;
        made.cluster_ips = {made.cluster_ip};
        made.ports = {{.port = 80}};
        return made;
    }

    // A slice of `service` in the same namespace, with one unnamed TCP port.
    kube::EndpointSlice& slice(const std::string& name, const std::string& service,
                               std::vector<kube::Endpoint> endpoints, int64_t port = 8080,
                               const std::string& address_type = "IPv4") {
        kube::EndpointSlice& made =
            objects.slices[{.namespace_name = object_name(service).namespace_name, .name = name}];
        made.meta.namespace_name = object_name(service).namespace_name;
        made.meta.name = name;
        made.meta.labels["kubernetes.io/service-name"] = object_name(service).name;
        made.address_type = address_type;
        made.endpoints = std::move(endpoints);
        made.ports = {{.port = port}};
        return made;
    }

    [[nodiscard]] Outcome evaluate() const { return semantics::evaluate(objects, gateway, policy); }
};

inline std::string class_letter(lb::FrontendClass cls) {
    switch (cls) {
        case lb::FrontendClass::ClusterIp:
            return "C";
        case lb::FrontendClass::LoadBalancerIp:
            return "L";
        case lb::FrontendClass::ExternalIp:
            return "X";
        case lb::FrontendClass::NodePort:
            return "N";
    }
    return "?";
}

// "default/web/TCP X 203.0.113.7 80", "default/web/TCP N IPv4 30080", followed by " filtered" if source
// ranges apply.
inline Lines frontends(const Outcome& outcome) {
    Lines lines;
    for (const auto& [key, service] : outcome.desired.services) {
        for (const model::Frontend& frontend : service.frontends) {
            const bool node_port = frontend.cls == lb::FrontendClass::NodePort;
            lines.push_back(
                key.to_string() + " " + class_letter(frontend.cls) + " " +
                (node_port ? std::string(to_string(frontend.family)) : frontend.address.to_string()) + " " +
                std::to_string(frontend.port) + (frontend.filtered ? " filtered" : ""));
        }
    }
    return lines;
}

// The keys of all service ports in the desired state.
inline Lines keys(const Outcome& outcome) {
    Lines lines;
    for (const auto& [key, service] : outcome.desired.services) {
        lines.push_back(key.to_string());
    }
    return lines;
}

inline const model::Service* find(const Outcome& outcome, const std::string& key) {
    for (const auto& [candidate, service] : outcome.desired.services) {
        if (candidate.to_string() == key) {
            return &service;
        }
    }
    return nullptr;
}

// "10.244.0.1 8080", in order; {"no such service port"} if `key` does not exist.
inline Lines endpoints(const Outcome& outcome, const std::string& key, size_t set = 0) {
    const model::Service* service = find(outcome, key);
    if (service == nullptr || service->sets.size() <= set) {
        return {"no such service port or set"};
    }
    Lines lines;
    for (const model::Endpoint& one : service->sets[set].endpoints) {
        lines.push_back(one.address.to_string() + " " + std::to_string(one.port));
    }
    return lines;
}

inline const char* word_for(model::Exclusion why) {
    switch (why) {
        case model::Exclusion::ForbiddenAddress:
            return "forbidden";
        case model::Exclusion::NodeSelector:
            return "node selector";
        case model::Exclusion::NotReady:
            return "not ready";
        case model::Exclusion::Terminating:
            return "terminating";
        case model::Exclusion::NotLocal:
            return "not local";
        case model::Exclusion::TopologyKeys:
            return "topology keys";
        case model::Exclusion::TopologyHints:
            return "topology hints";
    }
    return "?";
}

// "10.244.0.1 not ready", followed by ", silent" if it does not serve; in order.
inline Lines excluded(const Outcome& outcome, const std::string& key, size_t set = 0) {
    const model::Service* service = find(outcome, key);
    if (service == nullptr || service->sets.size() <= set) {
        return {"no such service port or set"};
    }
    Lines lines;
    for (const model::ExcludedEndpoint& one : service->sets[set].excluded) {
        lines.push_back(one.address.to_string() + " " + word_for(one.why) + (one.serving ? "" : ", silent"));
    }
    return lines;
}

// "Service default/web InvalidPort", unique and sorted.
inline Lines reasons(const Outcome& outcome) {
    Lines lines;
    for (const ObjectNotice& notice : outcome.notices) {
        const std::string name = notice.object.namespace_name.empty()
                                     ? notice.object.name
                                     : notice.object.namespace_name + "/" + notice.object.name;
        lines.push_back(notice.kind + " " + name + " " + notice.notice.reason);
    }
    std::ranges::sort(lines);
    const auto [first, last] = std::ranges::unique(lines);
    lines.erase(first, last);
    return lines;
}

// The message of the only notice with `reason`; an error text if there is not exactly one.
inline std::string message(const Outcome& outcome, std::string_view reason) {
    std::string found;
    for (const ObjectNotice& notice : outcome.notices) {
        if (notice.notice.reason == reason) {
            if (!found.empty()) {
                return "several notices: " + found + " | " + notice.notice.message;
            }
            found = notice.notice.message;
        }
    }
    return found.empty() ? "no such notice" : found;
}

}  // namespace penstock::semantics::testing
