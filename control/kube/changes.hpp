// SPDX-License-Identifier: Apache-2.0
// Changes that a source of objects passes to its readers: the objects that changed, each with its current
// value. Objects are immutable and shared, so a change costs a pointer, and every reader keeps its own index
// without copying objects.
//
//     source (API server or manifests) -> Store -> Changes -> semantics::Engine of each gateway
//
// Changes are states, not events: only the newest state of an object counts. Changes that queue up for a slow
// reader are therefore merged into one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/objects.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::kube {

using ServicePtr = std::shared_ptr<const Service>;
using EndpointSlicePtr = std::shared_ptr<const EndpointSlice>;
using NodePtr = std::shared_ptr<const Node>;
using AddressPoolPtr = std::shared_ptr<const AddressPool>;
using NamespacePtr = std::shared_ptr<const Namespace>;

struct Changes {
    // Null: the object was deleted.
    std::map<ObjectName, ServicePtr> services;
    std::map<ObjectName, EndpointSlicePtr> slices;
    std::map<std::string, NodePtr> nodes;
    std::map<std::string, AddressPoolPtr> pools;
    std::map<std::string, NamespacePtr> namespaces;
    // The first list of this optional kind is part of these changes. Before it, an absent object is unknown;
    // afterwards it does not exist.
    bool pools_listed = false;
    bool namespaces_listed = false;
    // The addresses in the status of Services that cannot be decoded (GEN-003), for the allocator: no other
    // Service may get them. Empty: the Service can be decoded, or was deleted.
    std::map<ObjectName, std::vector<IpAddr>> held_addresses;

    [[nodiscard]] bool is_empty() const noexcept {
        return services.empty() && slices.empty() && nodes.empty() && pools.empty() && namespaces.empty() &&
               !pools_listed && !namespaces_listed && held_addresses.empty();
    }

    // Merges `later`, which is newer than this.
    void merge(Changes later) {
        take_newer(services, std::move(later.services));
        take_newer(slices, std::move(later.slices));
        take_newer(nodes, std::move(later.nodes));
        take_newer(pools, std::move(later.pools));
        take_newer(namespaces, std::move(later.namespaces));
        pools_listed |= later.pools_listed;
        namespaces_listed |= later.namespaces_listed;
        take_newer(held_addresses, std::move(later.held_addresses));
    }

 private:
    template <typename Map>
    static void take_newer(Map& into, Map later) {
        // node by node: the cost depends on the size of `later`, not of the accumulated changes
        while (!later.empty()) {
            auto done = into.insert(later.extract(later.begin()));
            if (!done.inserted) {
                done.position->second = std::move(done.node.mapped());
            }
        }
    }
};

// All objects in their current state, as a reader assembles them from Changes.
struct Objects {
    std::map<ObjectName, ServicePtr> services;
    std::map<ObjectName, EndpointSlicePtr> slices;
    std::map<std::string, NodePtr> nodes;
    std::map<std::string, AddressPoolPtr> pools;
    std::map<std::string, NamespacePtr> namespaces;
    bool pools_listed = false;  // see Changes
    bool namespaces_listed = false;

    // Costs the logarithm of the number of objects, times the number of changes.
    void apply(const Changes& changes) {
        apply_to(services, changes.services);
        apply_to(slices, changes.slices);
        apply_to(nodes, changes.nodes);
        apply_to(pools, changes.pools);
        apply_to(namespaces, changes.namespaces);
        pools_listed |= changes.pools_listed;
        namespaces_listed |= changes.namespaces_listed;
    }

 private:
    template <typename Map>
    static void apply_to(Map& objects, const Map& changes) {
        for (const auto& [name, object] : changes) {
            if (object == nullptr) {
                objects.erase(name);
            } else {
                objects.insert_or_assign(name, object);
            }
        }
    }
};

}  // namespace penstock::kube
