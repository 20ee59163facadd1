// SPDX-License-Identifier: Apache-2.0
// Objects for the tests of this folder, as a source delivers them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::test {

inline semantics::Policy sync_policy() {
    semantics::Policy policy;
    policy.allowed_external_cidrs = {Prefix::parse("80.0.0.0/8").value()};
    return policy;
}

// One port, served at an external address. Only addresses in 80/8 are allowed.
inline kube::Service service_at(const std::string& name, const std::string& address) {
    return {.meta = {.namespace_name = "default", .name = name},
            .cluster_ip = "10.96.0.1",
            .external_ips = {address},
            .ports = {{.name = "http", .port = 80, .target_port = "80"}}};
}

inline kube::EndpointSlice slice_of(const std::string& service, const std::string& name,
                                    const std::vector<std::string>& addresses, const std::string& node = "") {
    kube::EndpointSlice slice{.meta = {.namespace_name = "default", .name = name}, .address_type = "IPv4"};
    slice.meta.labels["kubernetes.io/service-name"] = service;
    for (const std::string& address : addresses) {
        slice.endpoints.push_back({.address = address, .ready = true, .node_name = node});
    }
    slice.ports = {{"http", "TCP", 8080}};
    return slice;
}

inline kube::Changes changes_of(const std::vector<kube::Service>& services,
                                const std::vector<kube::EndpointSlice>& slices = {}) {
    kube::Changes changes;
    for (const kube::Service& service : services) {
        changes.services[{service.meta.namespace_name, service.meta.name}] =
            std::make_shared<const kube::Service>(service);
    }
    for (const kube::EndpointSlice& slice : slices) {
        changes.slices[{slice.meta.namespace_name, slice.meta.name}] =
            std::make_shared<const kube::EndpointSlice>(slice);
    }
    return changes;
}

inline kube::Changes without_service(const std::string& name) {
    kube::Changes changes;
    changes.services[{"default", name}] = nullptr;
    return changes;
}

inline kube::Changes without_slice(const std::string& name) {
    kube::Changes changes;
    changes.slices[{"default", name}] = nullptr;
    return changes;
}

}  // namespace penstock::test
