// Which flows have to end because what they belong to is gone, and when. A flow has an endpoint's address and port, its place, and a
// frontend that it came in by. It is at home as long as some port of the same Service object, by name and uid, has that frontend and has
// that place among its endpoints:
//
//   frontend owned by a port of its Service?  --no-->  DRAIN-007  (deleted, renumbered, lost to another Service, a NodePort address gone)
//                   | yes
//   place present at that port?               --no-->  DRAIN-004  (endpoint gone); UDP asks for a *serving* one (UDP-001)
//                   | yes
//   at home: nothing else matters (policies, hints, weights, affinity, schedulers: UDP-004, ETP-007)
//
// UDP flows end when they are no longer at home, TCP and SCTP ones by the Service's drain_timeout_s, counted from that moment; whoever
// comes home again is left alone (DRAIN-004). A changed timeout applies to drains under way, from the moment at which they began: 0 ends
// them, unset lets them go on.
//
// What belongs to a Service is a few frontends and its endpoints, and a change asks about all pairs of both: it costs what the Service is,
// and other Services nothing. Orders name ids, and ids are given out anew: one that has been is not ended.
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

// A pure machine: time is an argument. Not thread-safe.
class FlowKeeper {
 public:
    using Time = std::chrono::steady_clock::time_point;
    // Flows that the workers have of a backend now. What the keeper remembers of a backend that is gone is forgotten when it is 0.
    using FlowsOf = std::function<uint64_t(BackendId)>;

    // So many frontends that a service port has lost are remembered. Beyond it the one lost first is settled early: its draining flows end,
    // and those without a timeout are left to themselves.
    static constexpr size_t kLostFrontendsMax = 16;

    // After each run of the compiler, with what it said; before it the one of the run before is in force in every worker. The orders that
    // are due, to be given to the workers together with the run's table.
    [[nodiscard]] std::vector<conn::FlowOrder> follow(const CompileChanges& changes, const Compiled& compiled,
                                                      const IdMap& ids, const FlowsOf& flows_of, Time now);
    // The orders that have become due by the clock alone.
    [[nodiscard]] std::vector<conn::FlowOrder> wake(const IdMap& ids, const FlowsOf& flows_of, Time now);
    // When to wake next.
    [[nodiscard]] std::optional<Time> deadline() const;

    // Backends remembered, those that are offered included; for tests and figures.
    [[nodiscard]] size_t backends() const noexcept { return backends_; }

 private:
    // Address and port of a place or a frontend.
    using Socket = std::pair<IpAddr, L4Port>;
    // One protocol of one Service object.
    struct ObjectKey {
        std::string namespace_name;
        std::string name;
        Protocol protocol = Protocol::Tcp;
        std::string uid;
        auto operator<=>(const ObjectKey&) const = default;
    };

    // Flows of a backend by one frontend that are not at home.
    struct Astray {
        Socket frontend;
        Time since;
        bool ended = false;  // ordered, or there never were any
    };
    struct Backend {
        Socket place;
        BackendId id;
        bool offered = true;        // an endpoint of the version in force: it may get new flows
        uint64_t withdrawn_in = 0;  // where not: the run since which
        std::vector<Astray> astray;
    };
    struct Frontend {
        Socket at;
        bool owned = true;
        Time lost;  // where not: since when
    };
    // One service port; its flows have its ids.
    struct ServicePort {
        model::ServiceKey key;
        ServiceId id;
        std::shared_ptr<const model::Service> in_force;  // null: no longer
        std::vector<Frontend> frontends;  // that it has, or had while flows by them may be left
        std::vector<Backend> backends;    // sorted by place
    };
    struct Object {
        const ObjectKey* key = nullptr;
        std::map<std::string, ServicePort> ports;  // by port name
        std::optional<uint32_t> drain_timeout_s;
        std::optional<Time> deadline;  // as in deadlines_
        bool in_dead = false;          // has its turn in dead_
    };
    // Objects are looked at in the order of their names, not of their addresses, so that orders are the same everywhere.
    struct ByName {
        bool operator()(const Object* a, const Object* b) const noexcept { return *a->key < *b->key; }
    };
    struct Sooner {
        bool operator()(const std::pair<Time, Object*>& a, const std::pair<Time, Object*>& b) const noexcept {
            return a.first != b.first ? a.first < b.first : ByName{}(a.second, b.second);
        }
    };
    struct Run;
    class Settling;

    Object& object_of(const model::ServiceKey& key, const InternedText& uid);
    [[nodiscard]] ServicePort* port_in_force(const model::ServiceKey& key);
    void take_over(const model::ServiceKey& key, const Programmed* now, Run& run);
    void lose_frontend(const CompileChanges::Row& row, Run& run);
    void own_frontend(const CompileChanges::Row& row, Run& run);
    void settle(Object& object, Run& run);
    void settle_some_dead(Run& run);
    void set_deadline(Object& object, std::optional<Time> deadline);

    std::map<ObjectKey, Object> objects_;
    std::unordered_map<model::ServiceKey, Object*, ServiceKeyHash> in_force_;  // each in one object
    std::set<std::pair<Time, Object*>, Sooner> deadlines_;
    std::deque<Object*> dead_;  // that have nothing in force; looked at in turn, until no flow is left
    uint64_t runs_ = 0;
    size_t backends_ = 0;
};

}  // namespace penstock::gateway
