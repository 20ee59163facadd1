// SPDX-License-Identifier: Apache-2.0
// The last state of each object that a source reported, and the Changes that its readers have not taken yet.
// An object that is reported again unchanged keeps its pointer and is no change: a relist of 10,000 Services
// of which one differs costs the readers one Service (APISYNC-006).
//
//   reflector of each collection -> ObjectTable --.
//   folder of manifests --------> replace() ------+--> Changes, once every wanted table is listed (GEN-012)
//
// An object that cannot be decoded keeps its last good version for as long as the source names it (GEN-003).
// A pending deletion of an object is ignored: the object serves until it is gone (GEN-011). Source thread
// only.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/kube/decode.hpp"
#include "control/kube/log_lines.hpp"
#include "control/kube/objects.hpp"

namespace penstock::kube {

// Identifies one life of an object and its current version, for Events about it (EVT-001).
struct ObjectLife {
    std::string uid;
    std::string resource_version;  // "" from manifests
    bool operator==(const ObjectLife&) const = default;
};

// A Service and the version that this content has, for writes with a precondition (STATUS-001).
struct ServiceVersion {
    ServicePtr object;  // not null
    std::string resource_version;
};

// The same of an AddressPool.
struct PoolVersion {
    AddressPoolPtr object;  // not null
    std::string resource_version;
};

// One collection's part of the store, the interface for its reflector.
class ObjectTable {
 public:
    virtual ~ObjectTable() = default;

    // Inserts or replaces the object. A quarantined one keeps its stored value.
    virtual void upsert(DecodedObject object) = 0;
    // No effect if the object is unknown.
    virtual void erase(const ObjectName& name) = 0;

    // A list is collected beside the current contents and replaces them in one step. It costs a pointer for
    // each unchanged object.
    virtual void begin_list() = 0;  // discards a list that was not committed
    virtual void upsert_in_list(DecodedObject object) = 0;
    virtual void erase_in_list(const ObjectName& name) = 0;
    // Objects that the list does not name are removed. They are kept (Keep) if the list contained objects
    // that could not be identified: these may be the missing ones.
    enum class Missing : uint8_t { Erase, Keep };
    virtual void commit_list(Missing missing) = 0;
    virtual void drop_list() = 0;

    // nullopt if the object is unknown.
    [[nodiscard]] virtual std::optional<ObjectLife> life_of(const ObjectName& name) const = 0;
    // A first list has been committed.
    [[nodiscard]] virtual bool is_listed() const = 0;
    [[nodiscard]] virtual size_t size() const = 0;
    [[nodiscard]] virtual size_t quarantined() const = 0;
};

class Store {
 public:
    // `with_nodes` false: no Nodes will ever arrive, and the store does not wait for them.
    Store(bool with_nodes, LogLines& log);
    ~Store();

    [[nodiscard]] ObjectTable& services();
    [[nodiscard]] ObjectTable& slices();  // also of Endpoints: they arrive as the slices that represent them
    [[nodiscard]] ObjectTable& nodes();
    // Optional kinds: is_listed() does not wait for them. Changes reports their first lists.
    [[nodiscard]] ObjectTable& pools();
    [[nodiscard]] ObjectTable& namespaces();

    // The newest valid version, also if readers have not taken it yet; nullopt if the object is unknown. The
    // version of a pool is also that of its status, which is not decoded.
    [[nodiscard]] std::optional<ServiceVersion> service(const ObjectName& name) const;
    [[nodiscard]] std::optional<PoolVersion> pool(const std::string& name) const;

    // Replaces everything except pools at once by the contents of a manifest folder. These tables are listed
    // afterwards. Pools have a path of their own.
    void replace(const ObjectSet& objects);

    // Every required table has been listed: readers get a complete state (GEN-012).
    [[nodiscard]] bool is_listed() const;
    // Changes since the last call; empty before is_listed(). May include a change that has been reverted
    // since.
    [[nodiscard]] Changes take_changes();

 private:
    template <typename T>
    class Table;

    Changes pending_;
    bool with_nodes_;
    std::unique_ptr<Table<Service>> services_;
    std::unique_ptr<Table<EndpointSlice>> slices_;
    std::unique_ptr<Table<Node>> nodes_;
    std::unique_ptr<Table<AddressPool>> pools_;
    std::unique_ptr<Table<Namespace>> namespaces_;
};

}  // namespace penstock::kube
