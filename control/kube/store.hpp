// What a source last said about each object, and the Changes that its readers have not taken yet. An object that is said again unchanged
// keeps its pointer and is no change: a relist of 10,000 Services of which one differs costs the readers one Service (APISYNC-006).
//
//     reflector of each collection -> ObjectTable --.
//     folder of manifests --------> replace() ------+--> Changes, once every wanted table has been listed (GEN-012)
//
// An object that cannot be decoded keeps its last good version for as long as the source names it (GEN-003). Whether an object is about to
// be deleted is not looked at: it serves until it is gone (GEN-011). Source thread only.
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

// Which life of an object is meant, and how far it is in it: what an Event about it has to say (EVT-001).
struct ObjectLife {
    std::string uid;
    std::string resource_version;  // "" from manifests
    bool operator==(const ObjectLife&) const = default;
};

// One collection's part of the store, as its reflector writes it.
class ObjectTable {
 public:
    virtual ~ObjectTable() = default;

    // The object as it is now, known before or not. Quarantined: what is known of it stays.
    virtual void upsert(DecodedObject object) = 0;
    // Fine where it is not known.
    virtual void erase(const ObjectName& name) = 0;

    // A list is collected beside what is there, and takes its place as one step. It costs a pointer for each object that did not change.
    virtual void begin_list() = 0;  // forgets a list that was not committed
    virtual void upsert_in_list(DecodedObject object) = 0;
    virtual void erase_in_list(const ObjectName& name) = 0;
    // Whatever the list does not name is gone. Not so (Keep) where it held objects that could not be told by name: they may be those.
    enum class Missing : uint8_t { Erase, Keep };
    virtual void commit_list(Missing missing) = 0;
    virtual void drop_list() = 0;

    // Nullopt where it is not known.
    [[nodiscard]] virtual std::optional<ObjectLife> life_of(const ObjectName& name) const = 0;
    // A first list has been committed.
    [[nodiscard]] virtual bool is_listed() const = 0;
    [[nodiscard]] virtual size_t size() const = 0;
    [[nodiscard]] virtual size_t quarantined() const = 0;
};

class Store {
 public:
    // `with_nodes` false: no Nodes will ever come, and nobody waits for them.
    Store(bool with_nodes, LogLines& log);
    ~Store();

    [[nodiscard]] ObjectTable& services();
    [[nodiscard]] ObjectTable&
    slices();  // of Endpoints as well: they arrive as the slices that they stand for
    [[nodiscard]] ObjectTable& nodes();

    // Everything at once: what a folder of manifests says. All tables are listed afterwards.
    void replace(const ObjectSet& objects);

    // Every table that is waited for has been listed: what readers get is a whole (GEN-012).
    [[nodiscard]] bool is_listed() const;
    // What changed since the last call; empty before is_listed(). A change that was undone meanwhile may be among it.
    [[nodiscard]] Changes take_changes();

 private:
    template <typename T>
    class Table;

    Changes pending_;
    bool with_nodes_;
    std::unique_ptr<Table<Service>> services_;
    std::unique_ptr<Table<EndpointSlice>> slices_;
    std::unique_ptr<Table<Node>> nodes_;
};

}  // namespace penstock::kube
