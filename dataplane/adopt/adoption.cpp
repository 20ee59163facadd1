// SPDX-License-Identifier: Apache-2.0
#include "dataplane/adopt/adoption.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "dataplane/pipeline/opening/foreign.hpp"

namespace penstock::adopt {
namespace {

using conn::Connection;
using packet::FlowKey;
using pipeline::ForeignRefusal;
using pipeline::MovedFlows;
using pipeline::WorkerContext;
using stats::Counter;

// Connections whose accesses to memory overlap: as many as half a burst (limits::kBurstMax).
constexpr uint32_t kTogether = 32;

// Different LeavingFlows for which a backend is kept. A damaged table may have as many as units.
constexpr size_t kLeavingMax = 65'536;

// Another core's counter may be slightly ahead, but never a minute (2 x 10^3 units).
constexpr int32_t kAheadMax = 2'000;

// Puts times of the near future right. False: no process of this boot has written them.
bool has_sane_times(Connection& connection, CoarseTime now) noexcept {
    for (CoarseTime* time : {&connection.last_seen, &connection.opened_at}) {
        const int32_t age = units_between(*time, now);
        if (age < -kAheadMax) {
            return false;
        }
        if (age < 0) {
            *time = now;
        }
    }
    return units_between(connection.last_seen, connection.opened_at) <= kAheadMax;
}

// Whether the gateway can have opened it, whatever its configuration was.
bool is_possible(const Connection& connection) noexcept {
    const IpAddr& client = connection.forward.source;
    if (client.is_unspecified() || client.is_multicast()) {
        return false;
    }
    return !connection.source_kept || connection.reverse.destination == client;
}

NotAdopted reason_of(ForeignRefusal refusal) noexcept {
    switch (refusal) {
        case ForeignRefusal::Expired:
            return NotAdopted::Expired;
        case ForeignRefusal::NoSnatPort:
            return NotAdopted::NoSnatPort;
        case ForeignRefusal::Duplicate:
            return NotAdopted::Duplicate;
        case ForeignRefusal::TableFull:
            return NotAdopted::TableFull;
    }
    return NotAdopted::Damaged;
}

}  // namespace

// The connections of one worker, some at a time.
class Adoption::Batch {
 public:
    Batch(const Adoption& adoption, WorkerContext& ctx, Result& result) noexcept
        : adoption_(adoption), ctx_(ctx), result_(result), services_(*adoption.snapshot_.services) {}

    void add(const Connection& connection, Origin origin) noexcept {
        Candidate& added = candidates_[count_++];
        added.foreign.connection = connection;
        added.origin = origin;
        const FlowKey& forward = connection.forward;
        added.frontend_hash = services_.hash(forward.destination, forward.destination_port, forward.protocol);
        services_.prefetch(added.frontend_hash);
        if (count_ == kTogether) {
            insert_all();
        }
    }

    void insert_all() noexcept {
        uint32_t passed = 0;
        for (uint32_t i = 0; i < count_; ++i) {
            const Place place = place_of(candidates_[i]);
            if (place == Place::Later) {
                result_.leaving.push_back(candidates_[i].origin);
            } else if (place == Place::Lost) {
            } else if (const std::optional<ForeignRefusal> refusal = examine_foreign(
                           ctx_, adoption_.snapshot_, adoption_.now_, candidates_[i].foreign)) {
                lose(reason_of(*refusal));
            } else if (const uint32_t to = passed++; to != i) {
                candidates_[to] = candidates_[i];
            }
        }
        count_ = 0;
        ctx_.connections.prefetch_units(passed);
        std::array<nat::PoolNumber, kTogether> pools;
        for (uint32_t i = 0; i < passed; ++i) {
            const pipeline::ForeignConnection& foreign = candidates_[i].foreign;
            ctx_.by_backend.prefetch_newest(foreign.connection.backend);
            pools[i] = prefetch_pool(ctx_, foreign);
        }
        for (uint32_t i = 0; i < passed; ++i) {
            insert(candidates_[i].foreign, pools[i]);
        }
    }

 private:
    void lose(NotAdopted reason) noexcept { ++result_.lost[static_cast<size_t>(reason)]; }

    enum class Place : uint8_t {
        Found,
        Later,  // its Service has lost its frontend or endpoint: finish() decides
        Lost,   // and counted
    };
    // Finds the connection's Service and backend in the current configuration.
    Place place_of(Candidate& candidate) noexcept {
        Connection& connection = candidate.foreign.connection;
        const FlowKey& forward = connection.forward;
        const FlowKey& reverse = connection.reverse;
        const lb::FrontendRow* frontend = services_.find(forward.destination, forward.destination_port,
                                                         forward.protocol, candidate.frontend_hash);
        const bool has_frontend = frontend != nullptr && is_same(connection.service, frontend->service->id);
        BackendId backend;
        const lb::Service* service = nullptr;
        if (has_frontend) [[likely]] {
            service = frontend->service;
            backend = adoption_.services_.endpoint(service->id, reverse.source, reverse.source_port);
        }
        if (!backend.is_set()) [[unlikely]] {
            const LeavingFlows flows = adoption_.leaving_flows(connection);
            service = adoption_.services_.service(flows.service);
            const bool may_stay = service != nullptr && service->protocol == forward.protocol &&
                                  adoption_.former_.keep_leaving != nullptr;
            if (may_stay && adoption_.kept_leaving_.empty()) {
                return Place::Later;
            }
            if (const auto kept = adoption_.kept_leaving_.find(flows);
                may_stay && kept != adoption_.kept_leaving_.end()) {
                backend = kept->second;
            }
            if (!backend.is_set()) {
                lose(has_frontend ? NotAdopted::NoEndpoint : NotAdopted::NoFrontend);
                return Place::Lost;
            }
        }
        connection.service = service->id;
        connection.backend = backend;
        connection.is_pinned = service->has_affinity();
        return Place::Found;
    }

    [[nodiscard]] bool is_same(ServiceId former, ServiceId current) const noexcept {
        const std::optional<std::vector<ServiceId>>& names = adoption_.former_.services;
        return !names || (former.value < names->size() && (*names)[former.value] == current);
    }

    void insert(pipeline::ForeignConnection& foreign, nat::PoolNumber probably) noexcept {
        ConnectionIndex inserted;
        if (const std::optional<ForeignRefusal> refusal =
                insert_foreign(ctx_, foreign, pipeline::WhenFull::Refuse, probably, inserted)) {
            return lose(reason_of(*refusal));
        }
        ++result_.adopted;
        if (ctx_.workers > 1) {
            adoption_.note_moved(ctx_.self, foreign.connection, result_);
        }
    }

    const Adoption& adoption_;
    WorkerContext& ctx_;
    Result& result_;
    const lb::ServiceTable& services_;
    std::array<Candidate, kTogether> candidates_;
    uint32_t count_ = 0;
};

Adoption::Adoption(const FormerTables& former, const config::Snapshot& snapshot,
                   std::span<WorkerContext* const> workers, TscTime now)
    : former_(former),
      snapshot_(snapshot),
      workers_(workers),
      now_(workers.front()->clock.at(now)),
      services_(*snapshot.services, former.kept_endpoints),
      moved_(HashKey::random()),
      results_(workers.size()) {
    for (const std::span<const std::byte> memory : former.connections) {
        const auto table =
            former.layout ? conn::FormerTable::open(memory, *former.layout) : conn::FormerTable::open(memory);
        if (table) {
            tables_.push_back(*table);
        } else {
            ++results_.front().lost[static_cast<size_t>(NotAdopted::TableDamaged)];
        }
    }
    const WorkerContext& any = *workers.front();
    for (uint8_t port = 0; port < limits::kNicPortsMax; ++port) {
        if (any.ports[port].mac.is_zero()) {
            continue;  // not in use
        }
        const Way way{any.ports[port].promises,
                      {port},
                      any.owner.rules == nullptr ? nullptr : any.owner.rules->of_port({port})};
        const bool is_known = std::ranges::any_of(ways_, [&](const Way& other) {
            const bool is_alike = way.rule == nullptr || other.rule == nullptr
                                      ? way.rule == other.rule
                                      : way.rule->is_alike(*other.rule);
            return is_alike && way.promises.flow_stays_on_queue == other.promises.flow_stays_on_queue &&
                   way.promises.snat_blocks_on_queue == other.promises.snat_blocks_on_queue;
        });
        if (!is_known) {
            ways_.push_back(way);
        }
    }
}

bool Adoption::is_led_to(WorkerId owner, const FlowKey& key) const noexcept {
    const WorkerContext& any = *workers_.front();
    // If the receiver is not known, it is one that does not help.
    const WorkerId elsewhere{static_cast<uint8_t>(owner.value == 0 ? 1 : 0)};
    const auto visits = [&](const pipeline::Candidates& candidates) {
        return std::find(candidates.workers.begin(), candidates.workers.begin() + candidates.count, owner) !=
               candidates.workers.begin() + candidates.count;
    };
    if (snapshot_.routes->is_host_address(key.source)) {
        return visits(pipeline::place_from_host(key, snapshot_, any.owner, elsewhere));
    }
    return std::ranges::all_of(ways_, [&](const Way& way) {
        const bool is_foretold = way.rule != nullptr && way.promises.flow_stays_on_queue &&
                                 way.rule->covers(key.source.family(), key.protocol);
        return visits(pipeline::place(key, snapshot_, any.owner,
                                      {.receiver = is_foretold ? way.rule->worker_of(key) : elsewhere,
                                       .port = way.port,
                                       .promises = way.promises},
                                      pipeline::Ask::EachWorker));
    });
}

void Adoption::note_moved(WorkerId owner, const Connection& connection, Result& result) const {
    bool is_moved = false;
    for (const FlowKey& key : {connection.forward, connection.reverse}) {
        if (!is_led_to(owner, key)) {
            result.words.push_back(moved_.word_of(key, owner));
            is_moved = true;
        }
    }
    result.moved += is_moved ? 1 : 0;
}

void Adoption::adopt(WorkerId worker) {
    WorkerContext& ctx = *workers_[worker.value];
    Result& result = results_[worker.value];
    // What is lost before its owner is known is counted by one of those that see it.
    std::array<uint64_t, kNotAdopted> unowned{};
    const auto lose = [&](NotAdopted reason) { ++unowned[static_cast<size_t>(reason)]; };
    Batch batch(*this, ctx, result);
    Connection connection;
    for (uint32_t table = 0; table < tables_.size(); ++table) {
        for (uint32_t unit = 0; unit < tables_[table].units(); ++unit) {
            switch (read({table, unit}, connection)) {
                case conn::FormerTable::Unit::Empty:
                    continue;
                case conn::FormerTable::Unit::Unknown:
                    lose(NotAdopted::UnknownValue);
                    continue;
                case conn::FormerTable::Unit::Damaged:
                    lose(NotAdopted::Damaged);
                    continue;
                case conn::FormerTable::Unit::Live:
                    break;
            }
            const WorkerId owner = pipeline::owner_of_foreign(connection, snapshot_, ctx.owner);
            if (!owner.is_set()) {
                lose(NotAdopted::NoSnatPort);
            } else if (owner == worker) {
                batch.add(connection, {table, unit});
            }
        }
    }
    batch.insert_all();
    count(worker);
    if (worker.value == 0) {
        for (size_t reason = 0; reason < kNotAdopted; ++reason) {
            result.lost[reason] += unowned[reason];
        }
    }
}

void Adoption::count(WorkerId worker) const noexcept {
    WorkerContext& ctx = *workers_[worker.value];
    ctx.count()[Counter::AdoptedConnections].set(results_[worker.value].adopted);
    ctx.count()[Counter::Connections].set(ctx.connections.size());
}

conn::FormerTable::Unit Adoption::read(Origin origin, Connection& connection) const noexcept {
    const conn::FormerTable::Unit seen = tables_[origin.table].read(origin.unit, connection);
    return seen == conn::FormerTable::Unit::Live &&
                   (!is_possible(connection) || !has_sane_times(connection, now_))
               ? conn::FormerTable::Unit::Damaged
               : seen;
}

// The Service is unset if the snapshot does not have it, or if it is not known.
LeavingFlows Adoption::leaving_flows(const Connection& connection) const noexcept {
    const std::optional<std::vector<ServiceId>>& names = former_.services;
    return {.service = names && connection.service.value < names->size() ? (*names)[connection.service.value]
                                                                         : ServiceId{},
            .endpoint = {connection.reverse.source, connection.reverse.source_port},
            .frontend = {connection.forward.destination, connection.forward.destination_port}};
}

// Once all other connections are in the tables: there are few of these, or none.
void Adoption::adopt_leaving() {
    Connection connection;
    std::map<LeavingFlows, BackendId> flows;
    for (const Result& result : results_) {
        for (const Origin origin : result.leaving) {
            if (flows.size() < kLeavingMax && read(origin, connection) == conn::FormerTable::Unit::Live) {
                flows.try_emplace(leaving_flows(connection));
            }
        }
    }
    if (flows.empty()) {
        return;
    }
    for (auto& [which, backend] : flows) {
        backend = former_.keep_leaving(which);
    }
    kept_leaving_ = std::move(flows);
    for (uint8_t worker = 0; worker < workers_.size(); ++worker) {
        Result& result = results_[worker];
        Batch batch(*this, *workers_[worker], result);
        for (const Origin origin : std::exchange(result.leaving, {})) {
            if (read(origin, connection) == conn::FormerTable::Unit::Live) {
                batch.add(connection, origin);
            }
        }
        batch.insert_all();
        count({worker});
    }
}

Report Adoption::finish(MovedFlows& moved) {
    adopt_leaving();
    Report report;
    if (former_.layout) {
        report.converted_from = former_.layout->version;
    }
    size_t words = 0;
    for (const Result& result : results_) {
        report.adopted.push_back(result.adopted);
        report.moved += result.moved;
        for (size_t reason = 0; reason < kNotAdopted; ++reason) {
            report.lost[reason] += result.lost[reason];
        }
        words += result.words.size();
    }
    if (words > 0) {
        moved_.reserve(words);
        for (const Result& result : results_) {
            for (const MovedFlows::Word word : result.words) {
                moved_.add(word);
            }
        }
        moved = std::move(moved_);
        for (WorkerContext* ctx : workers_) {
            ctx->moved = &moved;
        }
    }
    return report;
}

}  // namespace penstock::adopt
