// What a source of objects tells its readers: which objects are others now, and what they are. Objects are immutable and shared, so a
// change costs a pointer, and every reader keeps an index of its own without copying what is in it.
//
//     source (API server or manifests) -> Store -> Changes -> semantics::Engine of each gateway
//
// Changes are states, not events: only the newest of an object counts, so those that pile up for a slow reader merge into one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "control/kube/objects.hpp"

namespace penstock::kube {

using ServicePtr = std::shared_ptr<const Service>;
using EndpointSlicePtr = std::shared_ptr<const EndpointSlice>;
using NodePtr = std::shared_ptr<const Node>;

struct Changes {
    // Null: the object is gone.
    std::map<ObjectName, ServicePtr> services;
    std::map<ObjectName, EndpointSlicePtr> slices;
    std::map<std::string, NodePtr> nodes;

    [[nodiscard]] bool is_empty() const noexcept {
        return services.empty() && slices.empty() && nodes.empty();
    }

    // `later` happened after this.
    void merge(Changes later) {
        take_newer(services, std::move(later.services));
        take_newer(slices, std::move(later.slices));
        take_newer(nodes, std::move(later.nodes));
    }

 private:
    template <typename Map>
    static void take_newer(Map& into, Map later) {
        while (!later.empty()) {  // node by node: costs what `later` has, not what has piled up
            auto done = into.insert(later.extract(later.begin()));
            if (!done.inserted) {
                done.position->second = std::move(done.node.mapped());
            }
        }
    }
};

// All objects as they are now: what a reader has put together from Changes.
struct Objects {
    std::map<ObjectName, ServicePtr> services;
    std::map<ObjectName, EndpointSlicePtr> slices;
    std::map<std::string, NodePtr> nodes;

    // Costs the logarithm of what is there, times what changed.
    void apply(const Changes& changes) {
        apply_to(services, changes.services);
        apply_to(slices, changes.slices);
        apply_to(nodes, changes.nodes);
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
