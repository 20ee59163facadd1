#include "control/gateway/flow_keeper.hpp"

#include <algorithm>
#include <list>

namespace penstock::gateway {
namespace {

using Socket = std::pair<IpAddr, L4Port>;

// In a run, backends of dead Services are asked for flows up to this many, so that a big one that drains makes no change of another late.
constexpr size_t kDeadBackendsPerRun = 4'096;

void sort_unique(std::vector<Socket>& sockets) {
    std::ranges::sort(sockets);
    const auto repeated = std::ranges::unique(sockets);
    sockets.erase(repeated.begin(), repeated.end());
}

// Of all sets: whom policies and topology leave out keeps its flows.
std::vector<Socket> offered_places(const model::Service& service) {
    std::vector<Socket> places;
    for (const auto& set : service.sets) {
        for (const auto& endpoint : set.endpoints) {
            places.emplace_back(endpoint.address, endpoint.port);
        }
    }
    sort_unique(places);
    return places;
}
std::vector<Socket> places_with_flows(const model::Service& service) {
    const bool must_serve = service.key.protocol == Protocol::Udp;
    std::vector<Socket> places = offered_places(service);
    for (const auto& set : service.sets) {
        for (const auto& endpoint : set.excluded) {
            if (endpoint.why != model::Exclusion::ForbiddenAddress && (endpoint.serving || !must_serve)) {
                places.emplace_back(endpoint.address, endpoint.port);
            }
        }
    }
    sort_unique(places);
    return places;
}

}  // namespace

struct FlowKeeper::Run {
    const IdMap& ids;
    const FlowsOf& flows_of;
    Time now;
    std::set<Life*> concerned = {};
    std::vector<conn::FlowOrder> orders = {};
};

// One look at a Life: finds who has gone astray or come home, orders what is due, forgets what has no flows.
class FlowKeeper::Settling {
 public:
    Settling(Life& life, uint64_t run_number, Run& run) : life_(life), run_number_(run_number), run_(run) {
        for (auto& [name, line] : life.lines) {
            if (line.in_force == nullptr) {
                continue;
            }
            places_.push_back(places_with_flows(*line.in_force));
            for (const Door& door : line.doors) {
                if (door.owned) {
                    homes_.insert_or_assign(door.at, &places_.back());
                }
            }
        }
    }
    // The next moment at which something is due.
    std::optional<Time> settle() {
        for (auto& [name, line] : life_.lines) {
            take_over_backends(line);
            for (Backend& backend : line.backends) {
                find_astray(line, backend);
                end_due(line, backend);
            }
            std::erase_if(line.backends, [&](const Backend& backend) { return is_over(line, backend); });
            forget_doors(line);
        }
        std::erase_if(life_.lines, [](const auto& entry) { return entry.second.in_force == nullptr && entry.second.backends.empty(); });
        return next_;
    }

 private:
    static bool is_all_ended(const Line& line, const Backend& backend) {
        return backend.astray.size() == line.doors.size() && std::ranges::all_of(backend.astray, &Astray::ended);
    }
    static Astray* astray_by(Backend& backend, const Socket& door) {
        const auto found = std::ranges::find(backend.astray, door, &Astray::door);
        return found == backend.astray.end() ? nullptr : &*found;
    }
    [[nodiscard]] bool is_at_home(const Socket& place, const Socket& door) const {
        const auto home = homes_.find(door);
        return home != homes_.end() && std::ranges::binary_search(*home->second, place);
    }
    [[nodiscard]] BackendKey key_of(const Line& line, const Backend& backend) const {
        return {line.id, backend.place.first, backend.place.second, InternedText(life_.key->uid)};
    }
    // Whether the id still means this backend, and its Service still this one.
    [[nodiscard]] bool is_bound(const Line& line, const Backend& backend) const {
        const BackendKey* bound_to = run_.ids.backends.key_of(backend.id);
        const model::ServiceKey* service = run_.ids.services.key_of(line.id);
        return bound_to != nullptr && service != nullptr && *service == line.key && *bound_to == key_of(line, backend);
    }
    [[nodiscard]] std::optional<Time> due(const Astray& astray) const {
        if (life_.key->protocol == Protocol::Udp) {
            return astray.since;
        }
        return life_.drain_timeout_s ? std::optional(astray.since + std::chrono::seconds(*life_.drain_timeout_s)) : std::nullopt;
    }
    void order(const Line& line, const Backend& backend, const Socket& door) {
        if (is_bound(line, backend)) {
            run_.orders.push_back({backend.id, door.first, door.second});
        }
    }

    // Both sides are sorted.
    void take_over_backends(Line& line) {
        const auto places = line.in_force == nullptr ? std::vector<Socket>() : offered_places(*line.in_force);
        std::vector<Backend> next;
        next.reserve(std::max(places.size(), line.backends.size()));
        auto known = line.backends.begin();
        const auto withdraw_until = [&](const auto& is_end) {
            for (; known != line.backends.end() && !is_end(known->place); ++known) {
                if (std::exchange(known->offered, false)) {
                    known->withdrawn_in = run_number_;
                }
                next.push_back(std::move(*known));
            }
        };
        for (const Socket& place : places) {
            withdraw_until([&](const Socket& at) { return at >= place; });
            const bool is_known = known != line.backends.end() && known->place == place;
            if (is_known && known->offered) {
                next.push_back(std::move(*known++));
                continue;
            }
            const auto id = run_.ids.backends.find(key_of(line, Backend{.place = place, .id = {}}));
            if (is_known && known->id == *id) {
                known->offered = true;
                next.push_back(std::move(*known++));
                continue;
            }
            if (is_known) {
                ++known;  // its id has been somebody else's meanwhile
            }
            Backend& added = next.emplace_back(Backend{.place = place, .id = *id});
            for (const Door& door : line.doors) {
                if (!door.owned) {
                    added.astray.push_back({door.at, run_.now, true});
                }
            }
        }
        withdraw_until([](const Socket&) { return false; });
        line.backends = std::move(next);
    }

    void find_astray(const Line& line, Backend& backend) {
        for (const Door& door : line.doors) {
            Astray* astray = astray_by(backend, door.at);
            if (is_at_home(backend.place, door.at)) {
                if (astray != nullptr) {
                    *astray = backend.astray.back();
                    backend.astray.pop_back();
                }
            } else if (astray == nullptr) {
                backend.astray.push_back({door.at, run_.now, false});
            }
        }
    }

    void end_due(const Line& line, Backend& backend) {
        std::vector<Socket> doors;
        for (Astray& astray : backend.astray) {
            const auto when = due(astray);
            if (astray.ended || !when) {
                continue;
            }
            if (*when > run_.now) {
                next_ = next_ ? std::min(*next_, *when) : *when;
                continue;
            }
            astray.ended = true;
            doors.push_back(astray.door);
        }
        if (doors.empty()) {
            return;
        }
        if (is_all_ended(line, backend)) {
            doors.assign(1, {});  // one order for all
        }
        for (const Socket& door : doors) {
            order(line, backend, door);
        }
    }

    // Whether no flow of it is left that could have to end one day.
    [[nodiscard]] bool is_over(const Line& line, const Backend& backend) const {
        if (backend.offered) {
            return false;
        }
        if (is_all_ended(line, backend) || !is_bound(line, backend)) {
            return true;
        }
        // Workers that still read the run before may open flows yet.
        return backend.withdrawn_in < run_number_ && run_.flows_of && run_.flows_of(backend.id) == 0;
    }

    void forget_doors(Line& line) {
        const auto forget = [&](const Socket& door) {
            for (Backend& backend : line.backends) {
                std::erase_if(backend.astray, [&](const Astray& astray) { return astray.door == door; });
            }
            std::erase_if(line.doors, [&](const Door& each) { return each.at == door; });
        };
        std::vector<Door> lost;
        for (const Door& door : line.doors) {
            if (!door.owned) {
                lost.push_back(door);
            }
        }
        std::ranges::sort(lost, std::ranges::greater(), &Door::lost);
        for (size_t i = 0; i < lost.size(); ++i) {
            const auto is_ended = [&](Backend& backend) {
                const Astray* astray = astray_by(backend, lost[i].at);
                return astray != nullptr && astray->ended;
            };
            const bool all_ended = std::ranges::all_of(line.backends, is_ended);
            if (!all_ended && i < kLostDoorsMax) {
                continue;
            }
            const bool ends = life_.key->protocol == Protocol::Udp || life_.drain_timeout_s.has_value();
            for (Backend& backend : line.backends) {
                if (!all_ended && ends && !is_ended(backend)) {
                    order(line, backend, lost[i].at);
                }
            }
            forget(lost[i].at);
        }
    }

    Life& life_;
    const uint64_t run_number_;
    Run& run_;
    std::list<std::vector<Socket>> places_;
    std::map<Socket, const std::vector<Socket>*> homes_;  // by door: the places that keep flows which came in by it
    std::optional<Time> next_;
};

std::vector<conn::FlowOrder> FlowKeeper::follow(const CompileChanges& changes, const Compiled& compiled, const IdMap& ids,
                                                const FlowsOf& flows_of, Time now) {
    ++runs_;
    Run run{.ids = ids, .flows_of = flows_of, .now = now};
    for (const auto& row : changes.rows) {
        lose_door(row, run);
    }
    for (const auto& key : changes.services) {
        take_over(key, compiled.services.get(key), run);
    }
    for (const auto& row : changes.rows) {
        own_door(row, run);
    }
    for (Life* life : run.concerned) {
        settle(*life, run);
    }
    settle_some_dead(run);
    return std::move(run.orders);
}

std::vector<conn::FlowOrder> FlowKeeper::wake(const IdMap& ids, const FlowsOf& flows_of, Time now) {
    Run run{.ids = ids, .flows_of = flows_of, .now = now};
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
        settle(*deadlines_.begin()->second, run);
    }
    return std::move(run.orders);
}

std::optional<FlowKeeper::Time> FlowKeeper::deadline() const {
    return deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first);
}

FlowKeeper::Life& FlowKeeper::life_of(const model::ServiceKey& key, const InternedText& uid) {
    const auto [life, is_new] = lives_.try_emplace(LifeKey{key.namespace_name, key.name, key.protocol, uid.value()});
    life->second.key = &life->first;
    return life->second;
}

FlowKeeper::Line* FlowKeeper::line_in_force(const model::ServiceKey& key) {
    const auto life = in_force_.find(key);
    return life == in_force_.end() ? nullptr : &life->second->lines.at(key.port_name);
}

void FlowKeeper::take_over(const model::ServiceKey& key, const Programmed* now, Run& run) {
    Life* next = now == nullptr ? nullptr : &life_of(key, now->desired->uid);
    if (const auto former = in_force_.find(key); former != in_force_.end() && former->second != next) {
        Line& line = former->second->lines.at(key.port_name);
        line.in_force = nullptr;
        for (Door& door : line.doors) {
            door.lost = door.owned ? run.now : door.lost;
            door.owned = false;
        }
        run.concerned.insert(former->second);
        in_force_.erase(former);
    }
    if (next == nullptr) {
        return;
    }
    Line& line = next->lines[key.port_name];
    if (line.id != now->service->id) {
        backends_ -= line.backends.size();
        line.backends.clear();  // its former id has become another Service's
    }
    line.key = key;
    line.id = now->service->id;
    line.in_force = now->desired;
    next->drain_timeout_s = now->desired->drain_timeout_s;
    in_force_.insert_or_assign(key, next);
    run.concerned.insert(next);
}

void FlowKeeper::lose_door(const CompileChanges::Row& row, Run& run) {
    Line* line = row.before && row.before != row.after ? line_in_force(*row.before) : nullptr;
    if (line == nullptr) {
        return;
    }
    const auto door = std::ranges::find(line->doors, Socket{row.address, row.port}, &Door::at);
    if (door != line->doors.end() && std::exchange(door->owned, false)) {
        door->lost = run.now;
        run.concerned.insert(in_force_.at(*row.before));
    }
}

void FlowKeeper::own_door(const CompileChanges::Row& row, Run& run) {
    if (!row.after) {
        return;
    }
    Line& line = *line_in_force(*row.after);
    const auto door = std::ranges::find(line.doors, Socket{row.address, row.port}, &Door::at);
    if (door == line.doors.end()) {
        line.doors.push_back({.at = {row.address, row.port}});
    } else if (std::exchange(door->owned, true)) {
        return;
    }
    run.concerned.insert(in_force_.at(*row.after));
}

void FlowKeeper::settle(Life& life, Run& run) {
    const auto count = [&] {
        size_t backends = 0;
        for (const auto& [name, line] : life.lines) {
            backends += line.backends.size();
        }
        return backends;
    };
    backends_ -= count();
    set_deadline(life, Settling(life, runs_, run).settle());
    backends_ += count();
    const bool is_dead = std::ranges::none_of(life.lines, [](const auto& entry) { return entry.second.in_force != nullptr; });
    if (is_dead && !std::exchange(life.in_dead, true)) {
        dead_.push_back(&life);
    }
}

// Each in its turn, and at least one: so what is left of Services that are gone is forgotten as fast as others go.
void FlowKeeper::settle_some_dead(Run& run) {
    size_t asked = 0;
    for (size_t turns = dead_.size(); turns > 0 && asked < kDeadBackendsPerRun; --turns) {
        Life& life = *dead_.front();
        dead_.pop_front();
        life.in_dead = false;
        for (const auto& [name, line] : life.lines) {
            asked += line.backends.size();
        }
        settle(life, run);  // takes its turn again where it is still dead
        if (life.lines.empty()) {
            dead_.pop_back();
            lives_.erase(lives_.find(*life.key));
        }
    }
}

void FlowKeeper::set_deadline(Life& life, std::optional<Time> deadline) {
    if (life.deadline == deadline) {
        return;
    }
    if (life.deadline) {
        deadlines_.erase({*life.deadline, &life});
    }
    life.deadline = deadline;
    if (deadline) {
        deadlines_.emplace(*deadline, &life);
    }
}

}  // namespace penstock::gateway
