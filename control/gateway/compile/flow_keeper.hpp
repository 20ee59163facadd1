// SPDX-License-Identifier: Apache-2.0
// Determines which flows must end because their endpoint or frontend is gone, and when. A flow has a place
// (the address and port of an endpoint) and the frontend that it arrived by. It is valid as long as some port
// of the same Service object, by name and uid, has that frontend and has that place among its endpoints.
// Otherwise it is orphaned:
//
//   frontend owned by a port of its Service?  --no-->  DRAIN-007  (deleted, renumbered, lost to another
//                   | yes                                    Service, or a NodePort address removed)
//   place present at that port?               --no-->  DRAIN-004  (endpoint gone); UDP requires a
//                   | yes                                    *serving* endpoint (UDP-001)
//   valid: nothing else matters (policies, hints, weights, affinity, schedulers: UDP-004, ETP-007)
//
// Orphaned UDP flows end at once. Orphaned TCP and SCTP flows end after the Service's drain_timeout_s,
// counted from that moment. Flows that become valid again are left alone (DRAIN-004). A changed timeout
// applies to drains in progress, from the moment at which they began: 0 ends the flows, an unset timeout lets
// them continue.
//
// A Service has a few frontends and its endpoints, and a change examines all pairs of both. The cost
// therefore depends on the size of the Service, and other Services cost nothing. Flow orders name ids, and
// ids are reused: an id that belongs to another backend or Service by now is not ended.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/gateway/compile/id_map.hpp"
#include "control/model/desired.hpp"
#include "dataplane/conn/flow_order.hpp"

namespace penstock::gateway {

// A pure state machine: time is an argument. Not thread-safe.
class FlowKeeper {
 public:
    using Time = std::chrono::steady_clock::time_point;
    // Number of flows that the workers have of a backend now. The keeper's state of a removed backend is
    // dropped when it is 0.
    using FlowsOf = std::function<uint64_t(BackendId)>;

    // Maximum number of lost frontends kept for a service port. Beyond it the one lost first is dropped
    // early: its draining flows end, and those without a timeout are left alone.
    static constexpr size_t kLostFrontendsMax = 16;

    // Call after each run of the compiler, with its results. Before the call, the configuration of the
    // previous run is in force in every worker. Returns the orders that are due, to be given to the workers
    // together with the run's table.
    [[nodiscard]] std::vector<conn::FlowOrder> follow(const CompileChanges& changes, const Compiled& compiled,
                                                      const IdMap& ids, const FlowsOf& flows_of, Time now);
    // Flows of a former process, of a service port in force that has lost their endpoint or their frontend.
    // From `now` on they are treated as if it were lost now; wake() is due at once. `id`: of the backend at
    // `place`. False: they must end at once, and no order will do it: UDP flows without a home, and flows of
    // no service port in force.
    [[nodiscard]] bool inherit(const model::ServiceKey& key, const SocketAddress& place,
                               const SocketAddress& frontend, BackendId id, Time now);
    // The orders that have become due by time alone.
    [[nodiscard]] std::vector<conn::FlowOrder> wake(const IdMap& ids, const FlowsOf& flows_of, Time now);
    // Time of the next wake().
    [[nodiscard]] std::optional<Time> deadline() const;

    // Number of backends kept, including those that are offered. For tests and metrics.
    [[nodiscard]] size_t backends() const noexcept { return backends_; }

 private:
    // One protocol of one Service object.
    struct ObjectKey {
        std::string namespace_name;
        std::string name;
        Protocol protocol = Protocol::Tcp;
        std::string uid;
        auto operator<=>(const ObjectKey&) const = default;
    };

    // Orphaned flows of a backend by one frontend.
    struct Orphaned {
        SocketAddress frontend;
        Time since;
        bool ended = false;  // ordered, or no such flows ever existed
    };
    struct Backend {
        SocketAddress place;
        BackendId id;
        bool offered = true;        // by the version in force, it may get flows
        uint64_t withdrawn_in = 0;  // if not offered: the run in which it was withdrawn
        std::vector<Orphaned> orphaned;
    };
    struct Frontend {
        SocketAddress at;
        bool owned = true;
        Time lost;  // if not owned: the time of the loss
    };
    // The flows of one service port. They carry its ids.
    struct PortFlows {
        model::ServiceKey key;
        ServiceId id;
        std::shared_ptr<const model::Service> in_force;  // null: no longer
        std::vector<Frontend> frontends;  // current frontends, and former ones while flows by them may remain
        std::vector<Backend> backends;    // sorted by place
    };
    struct Object {
        const ObjectKey* key = nullptr;
        std::map<std::string, PortFlows> ports;  // by port name
        std::optional<uint32_t> drain_timeout_s;
        std::optional<Time> deadline;  // as in deadlines_
        bool in_dead = false;          // queued in dead_
    };
    // Objects are processed in the order of their names, not of their addresses, so that orders are
    // deterministic.
    struct ByName {
        bool operator()(const Object* a, const Object* b) const noexcept { return *a->key < *b->key; }
    };
    struct Sooner {
        bool operator()(const std::pair<Time, Object*>& a, const std::pair<Time, Object*>& b) const noexcept {
            return a.first != b.first ? a.first < b.first : ByName{}(a.second, b.second);
        }
    };
    struct Run;
    class Update;

    Object& object_of(const model::ServiceKey& key, const InternedText& uid);
    [[nodiscard]] PortFlows* port_in_force(const model::ServiceKey& key);
    void take_over(const model::ServiceKey& key, const Programmed* now, Run& run);
    void lose_frontend(const ChangedTuple& tuple, Run& run);
    void own_frontend(const ChangedTuple& tuple, Run& run);
    void update(Object& object, Run& run);
    void update_some_dead(Run& run);
    void set_deadline(Object& object, std::optional<Time> deadline);

    std::map<ObjectKey, Object> objects_;
    std::unordered_map<model::ServiceKey, Object*, ServiceKeyHash> in_force_;  // each in one object
    std::set<std::pair<Time, Object*>, Sooner> deadlines_;
    std::deque<Object*> dead_;  // objects with nothing in force; examined in turn until no flow is left
    uint64_t runs_ = 0;
    size_t backends_ = 0;
};

}  // namespace penstock::gateway
