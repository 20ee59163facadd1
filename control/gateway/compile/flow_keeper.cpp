// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/flow_keeper.hpp"

#include <algorithm>
#include <list>

#include "control/gateway/compile/kept_endpoints.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::gateway {
namespace {

// Maximum number of flow counts of backends of dead Services queried in a run, so that a large draining
// Service does not delay changes of others.
constexpr size_t kDeadBackendsPerRun = 4'096;

}  // namespace

struct FlowKeeper::Run {
    const IdMap& ids;
    const FlowsOf& flows_of;
    Time now;
    std::set<Object*, ByName> concerned = {};
    std::vector<conn::FlowOrder> orders = {};
};

// Processes one object: finds flows that became orphaned or valid again, issues the orders that are due, and
// drops the state of backends without flows.
class FlowKeeper::Update {
 public:
    Update(Object& object, uint64_t run_number, Run& run)
        : object_(object), run_number_(run_number), run_(run) {
        for (auto& [name, port] : object.ports) {
            if (port.in_force == nullptr) {
                continue;
            }
            places_.push_back(endpoints_with_flows(*port.in_force));
            for (const Frontend& frontend : port.frontends) {
                if (frontend.owned) {
                    homes_.insert_or_assign(frontend.at, &places_.back());
                }
            }
        }
    }
    // Returns the next moment at which an order is due.
    std::optional<Time> run() {
        for (auto& [name, port] : object_.ports) {
            take_over_backends(port);
            for (Backend& backend : port.backends) {
                find_orphaned(port, backend);
                end_due(port, backend);
            }
            std::erase_if(port.backends, [&](const Backend& backend) { return is_over(port, backend); });
            forget_frontends(port);
            // For the state that is still kept.
            for (const Backend& backend : port.backends) {
                note_next(backend);
            }
        }
        std::erase_if(object_.ports, [](const auto& entry) {
            return entry.second.in_force == nullptr && entry.second.backends.empty();
        });
        return next_;
    }

 private:
    static bool is_all_ended(const PortFlows& port, const Backend& backend) {
        return backend.orphaned.size() == port.frontends.size() &&
               std::ranges::all_of(backend.orphaned, &Orphaned::ended);
    }
    static Orphaned* orphaned_by(Backend& backend, const SocketAddress& frontend) {
        const auto found = std::ranges::find(backend.orphaned, frontend, &Orphaned::frontend);
        return found == backend.orphaned.end() ? nullptr : &*found;
    }
    [[nodiscard]] bool is_at_home(const SocketAddress& place, const SocketAddress& frontend) const {
        const auto home = homes_.find(frontend);
        return home != homes_.end() && std::ranges::binary_search(*home->second, place);
    }
    [[nodiscard]] BackendKey key_of(const PortFlows& port, const Backend& backend) const {
        return {port.id, backend.place.address, backend.place.port, InternedText(object_.key->uid)};
    }
    // Whether the id still belongs to this backend, and its Service's id still to this service port.
    [[nodiscard]] bool is_bound(const PortFlows& port, const Backend& backend) const {
        const BackendKey* bound_to = run_.ids.backends.key_of(backend.id);
        const model::ServiceKey* service = run_.ids.services.key_of(port.id);
        return bound_to != nullptr && service != nullptr && *service == port.key &&
               *bound_to == key_of(port, backend);
    }
    [[nodiscard]] std::optional<Time> due(const Orphaned& orphaned) const {
        if (object_.key->protocol == Protocol::Udp) {
            return orphaned.since;
        }
        return object_.drain_timeout_s
                   ? std::optional(orphaned.since + std::chrono::seconds(*object_.drain_timeout_s))
                   : std::nullopt;
    }
    void order(const PortFlows& port, const Backend& backend, const SocketAddress& frontend) {
        if (is_bound(port, backend)) {
            run_.orders.push_back({backend.id, frontend.address, frontend.port});
        }
    }

    // Places of backends that may get flows: those that are offered and, if the gateway takes over flows of
    // other gateways, those that keep their flows. The compiler has numbered all of these.
    [[nodiscard]] std::vector<SocketAddress> open_places(const PortFlows& port) const {
        const auto offered = offered_endpoints(*port.in_force);
        auto places = endpoints_with_flows(*port.in_force);
        std::erase_if(places, [&](const SocketAddress& place) {
            return !std::ranges::binary_search(offered, place) &&
                   !run_.ids.backends.find(key_of(port, Backend{.place = place, .id = {}}));
        });
        return places;
    }

    // Both lists are sorted.
    void take_over_backends(PortFlows& port) {
        const auto places = port.in_force == nullptr ? std::vector<SocketAddress>() : open_places(port);
        std::vector<Backend> next;
        next.reserve(std::max(places.size(), port.backends.size()));
        auto known = port.backends.begin();
        const auto withdraw_until = [&](const auto& is_end) {
            for (; known != port.backends.end() && !is_end(known->place); ++known) {
                if (std::exchange(known->offered, false)) {
                    known->withdrawn_in = run_number_;
                }
                next.push_back(std::move(*known));
            }
        };
        for (const SocketAddress& place : places) {
            withdraw_until([&](const SocketAddress& at) { return at >= place; });
            const bool is_known = known != port.backends.end() && known->place == place;
            if (is_known && known->offered) {
                next.push_back(std::move(*known++));
                continue;
            }
            const auto id = run_.ids.backends.find(key_of(port, Backend{.place = place, .id = {}}));
            PENSTOCK_CHECK(id);  // the compiler has given one to each backend in force
            if (is_known && known->id == *id) {
                known->offered = true;
                next.push_back(std::move(*known++));
                continue;
            }
            if (is_known) {
                ++known;  // its id belonged to another backend in the meantime
            }
            Backend& added = next.emplace_back(Backend{.place = place, .id = *id});
            for (const Frontend& frontend : port.frontends) {
                if (!frontend.owned) {
                    added.orphaned.push_back({frontend.at, run_.now, true});
                }
            }
        }
        withdraw_until([](const SocketAddress&) { return false; });
        port.backends = std::move(next);
    }

    void find_orphaned(const PortFlows& port, Backend& backend) {
        for (const Frontend& frontend : port.frontends) {
            Orphaned* orphaned = orphaned_by(backend, frontend.at);
            if (is_at_home(backend.place, frontend.at)) {
                if (orphaned != nullptr) {
                    *orphaned = backend.orphaned.back();
                    backend.orphaned.pop_back();
                }
            } else if (orphaned == nullptr) {
                backend.orphaned.push_back({frontend.at, run_.now, false});
            }
        }
    }

    void end_due(const PortFlows& port, Backend& backend) {
        std::vector<SocketAddress> frontends;
        for (Orphaned& orphaned : backend.orphaned) {
            const auto when = due(orphaned);
            if (!orphaned.ended && when && *when <= run_.now) {
                orphaned.ended = true;
                frontends.push_back(orphaned.frontend);
            }
        }
        if (frontends.empty()) {
            return;
        }
        if (is_all_ended(port, backend)) {
            frontends.assign(1, {});  // one order for all
        }
        for (const SocketAddress& frontend : frontends) {
            order(port, backend, frontend);
        }
    }

    void note_next(const Backend& backend) {
        for (const Orphaned& orphaned : backend.orphaned) {
            if (const auto when = due(orphaned); when && !orphaned.ended) {
                next_ = next_ ? std::min(*next_, *when) : *when;
            }
        }
    }

    // Whether no flow remains that might have to end later.
    [[nodiscard]] bool is_over(const PortFlows& port, const Backend& backend) const {
        if (backend.offered) {
            return false;
        }
        if (is_all_ended(port, backend) || !is_bound(port, backend)) {
            return true;
        }
        // Workers that still read the previous run's configuration may open flows.
        return backend.withdrawn_in < run_number_ && run_.flows_of && run_.flows_of(backend.id) == 0;
    }

    void forget_frontends(PortFlows& port) {
        const auto forget = [&](const SocketAddress& frontend) {
            for (Backend& backend : port.backends) {
                std::erase_if(backend.orphaned,
                              [&](const Orphaned& orphaned) { return orphaned.frontend == frontend; });
            }
            std::erase_if(port.frontends, [&](const Frontend& each) { return each.at == frontend; });
        };
        std::vector<Frontend> lost;
        for (const Frontend& frontend : port.frontends) {
            if (!frontend.owned) {
                lost.push_back(frontend);
            }
        }
        std::ranges::sort(lost, std::ranges::greater(), &Frontend::lost);
        for (size_t i = 0; i < lost.size(); ++i) {
            const auto is_ended = [&](Backend& backend) {
                const Orphaned* orphaned = orphaned_by(backend, lost[i].at);
                return orphaned != nullptr && orphaned->ended;
            };
            const bool all_ended = std::ranges::all_of(port.backends, is_ended);
            if (!all_ended && i < kLostFrontendsMax) {
                continue;
            }
            const bool ends = object_.key->protocol == Protocol::Udp || object_.drain_timeout_s.has_value();
            for (Backend& backend : port.backends) {
                if (!all_ended && ends && !is_ended(backend)) {
                    order(port, backend, lost[i].at);
                }
            }
            forget(lost[i].at);
        }
    }

    Object& object_;
    const uint64_t run_number_;
    Run& run_;
    std::list<std::vector<SocketAddress>> places_;
    // By frontend: the places that keep flows which arrived by it.
    std::map<SocketAddress, const std::vector<SocketAddress>*> homes_;
    std::optional<Time> next_;
};

std::vector<conn::FlowOrder> FlowKeeper::follow(const CompileChanges& changes, const Compiled& compiled,
                                                const IdMap& ids, const FlowsOf& flows_of, Time now) {
    ++runs_;
    Run run{.ids = ids, .flows_of = flows_of, .now = now};
    for (const ChangedTuple& tuple : changes.tuples) {
        lose_frontend(tuple, run);
    }
    for (const auto& key : changes.services) {
        take_over(key, compiled.services.get(key), run);
    }
    for (const ChangedTuple& tuple : changes.tuples) {
        own_frontend(tuple, run);
    }
    for (Object* object : run.concerned) {
        update(*object, run);
    }
    update_some_dead(run);
    return std::move(run.orders);
}

bool FlowKeeper::inherit(const model::ServiceKey& key, const SocketAddress& place,
                         const SocketAddress& frontend, BackendId id, Time now) {
    const auto found = in_force_.find(key);
    if (found == in_force_.end()) {
        return false;
    }
    Object& object = *found->second;
    const auto is_home = [&](const auto& entry) {
        const PortFlows& port = entry.second;
        const auto known = std::ranges::find(port.frontends, frontend, &Frontend::at);
        return port.in_force != nullptr && known != port.frontends.end() && known->owned &&
               std::ranges::binary_search(endpoints_with_flows(*port.in_force), place);
    };
    if (key.protocol == Protocol::Udp && std::ranges::none_of(object.ports, is_home)) {
        return false;
    }
    PortFlows& port = object.ports.at(key.port_name);
    if (std::ranges::find(port.frontends, frontend, &Frontend::at) == port.frontends.end()) {
        port.frontends.push_back({.at = frontend, .owned = false, .lost = now});
    }
    const auto at = std::ranges::lower_bound(port.backends, place, {}, &Backend::place);
    if (at == port.backends.end() || at->place != place) {
        port.backends.insert(
            at, Backend{.place = place, .id = id, .offered = false, .withdrawn_in = runs_, .orphaned = {}});
        ++backends_;
    }
    set_deadline(object, std::min(object.deadline.value_or(now), now));
    return true;
}

std::vector<conn::FlowOrder> FlowKeeper::wake(const IdMap& ids, const FlowsOf& flows_of, Time now) {
    Run run{.ids = ids, .flows_of = flows_of, .now = now};
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
        update(*deadlines_.begin()->second, run);
    }
    return std::move(run.orders);
}

std::optional<FlowKeeper::Time> FlowKeeper::deadline() const {
    return deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first);
}

FlowKeeper::Object& FlowKeeper::object_of(const model::ServiceKey& key, const InternedText& uid) {
    const auto [object, is_new] =
        objects_.try_emplace(ObjectKey{key.namespace_name, key.name, key.protocol, uid.value()});
    object->second.key = &object->first;
    return object->second;
}

FlowKeeper::PortFlows* FlowKeeper::port_in_force(const model::ServiceKey& key) {
    const auto object = in_force_.find(key);
    return object == in_force_.end() ? nullptr : &object->second->ports.at(key.port_name);
}

void FlowKeeper::take_over(const model::ServiceKey& key, const Programmed* now, Run& run) {
    Object* next = now == nullptr ? nullptr : &object_of(key, now->desired->uid);
    if (const auto former = in_force_.find(key); former != in_force_.end() && former->second != next) {
        PortFlows& port = former->second->ports.at(key.port_name);
        port.in_force = nullptr;
        for (Frontend& frontend : port.frontends) {
            frontend.lost = frontend.owned ? run.now : frontend.lost;
            frontend.owned = false;
        }
        run.concerned.insert(former->second);
        in_force_.erase(former);
    }
    if (next == nullptr) {
        return;
    }
    PortFlows& port = next->ports[key.port_name];
    if (port.id != now->service->id) {
        backends_ -= port.backends.size();
        port.backends.clear();  // its former id belongs to another Service now
    }
    port.key = key;
    port.id = now->service->id;
    if (std::exchange(port.in_force, now->desired) != now->desired) {
        next->drain_timeout_s = now->desired->drain_timeout_s;
    }
    in_force_.insert_or_assign(key, next);
    run.concerned.insert(next);
}

void FlowKeeper::lose_frontend(const ChangedTuple& tuple, Run& run) {
    PortFlows* port = tuple.before && tuple.before != tuple.after ? port_in_force(*tuple.before) : nullptr;
    if (port == nullptr) {
        return;
    }
    const auto frontend = std::ranges::find(port->frontends, tuple.at, &Frontend::at);
    if (frontend != port->frontends.end() && std::exchange(frontend->owned, false)) {
        frontend->lost = run.now;
        run.concerned.insert(in_force_.at(*tuple.before));
    }
}

void FlowKeeper::own_frontend(const ChangedTuple& tuple, Run& run) {
    if (!tuple.after) {
        return;
    }
    PortFlows& port = *port_in_force(*tuple.after);
    const auto frontend = std::ranges::find(port.frontends, tuple.at, &Frontend::at);
    if (frontend == port.frontends.end()) {
        port.frontends.push_back({.at = tuple.at});
    } else if (std::exchange(frontend->owned, true)) {
        return;
    }
    run.concerned.insert(in_force_.at(*tuple.after));
}

void FlowKeeper::update(Object& object, Run& run) {
    const auto count = [&] {
        size_t backends = 0;
        for (const auto& [name, port] : object.ports) {
            backends += port.backends.size();
        }
        return backends;
    };
    backends_ -= count();
    set_deadline(object, Update(object, runs_, run).run());
    backends_ += count();
    const bool is_dead = std::ranges::none_of(
        object.ports, [](const auto& entry) { return entry.second.in_force != nullptr; });
    if (is_dead && !std::exchange(object.in_dead, true)) {
        dead_.push_back(&object);
    }
}

// Objects take turns, and at least one is processed. State of removed Services is therefore dropped as fast
// as Services are removed.
void FlowKeeper::update_some_dead(Run& run) {
    size_t asked = 0;
    for (size_t turns = dead_.size(); turns > 0 && asked < kDeadBackendsPerRun; --turns) {
        Object& object = *dead_.front();
        dead_.pop_front();
        object.in_dead = false;
        for (const auto& [name, port] : object.ports) {
            asked += port.backends.size();
        }
        update(object, run);  // queued again if it is still dead
        if (object.ports.empty()) {
            PENSTOCK_CHECK(!dead_.empty() && dead_.back() == &object);  // without ports it is still dead
            dead_.pop_back();
            objects_.erase(objects_.find(*object.key));
        }
    }
}

void FlowKeeper::set_deadline(Object& object, std::optional<Time> deadline) {
    if (object.deadline == deadline) {
        return;
    }
    if (object.deadline) {
        deadlines_.erase({*object.deadline, &object});
    }
    object.deadline = deadline;
    if (deadline) {
        deadlines_.emplace(*deadline, &object);
    }
}

}  // namespace penstock::gateway
