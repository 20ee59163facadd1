// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/inspect.hpp"

#include <rte_cycles.h>
#include <rte_mempool.h>

#include <algorithm>

#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {

namespace {
const pipeline::WorkerContext& context_of(const WorkerSet::Impl& impl, WorkerId id) {
    return impl.workers_[id.value]->context();
}

bool looks_up(const conn::Table& connections, const packet::FlowKey& key, conn::Table::Lookup& lookup,
              int attempts) {
    for (int i = 0; i < attempts; ++i) {
        if (connections.look_up(key, connections.hash(key), lookup)) {
            return true;
        }
    }
    return false;
}
}  // namespace

uint32_t Inspector::workers() const {
    return static_cast<uint32_t>(workers_->impl_->workers_.size());
}

WorkerView Inspector::worker(WorkerId id) const {
    const WorkerSet::Impl& impl = *workers_->impl_;
    const Worker& worker = *impl.workers_[id.value];
    const pipeline::WorkerContext& context = worker.context();
    WorkerView view;
    view.id = id;
    view.cpu = impl.options.cpus[id.value];
    view.connections = context.connections.size();
    view.connections_max = context.connections.capacity();
    view.generation = worker.generation();
    const uint64_t lived = ticks_between({worker.started_at()}, context.timeline.shown(rte_rdtsc())).value;
    if (worker.started_at() != 0 && lived > 0) {
        view.busy_ratio =
            static_cast<double>(counter(id, stats::Counter::BusyTicks)) / static_cast<double>(lived);
        view.sleep_ratio =
            static_cast<double>(counter(id, stats::Counter::SleepTicks)) / static_cast<double>(lived);
    }
    view.idle = worker.idle_mode() == IdleMode::Poll ? "poll"
                : worker.is_interrupted()            ? "interrupt"
                                                     : "sleep";
    view.phase = to_string(worker.phase());
    return view;
}

uint64_t Inspector::counter(WorkerId id, stats::Counter counter) const {
    const uint64_t by_worker = (*context_of(*workers_->impl_, id).counters.worker)[counter].read();
    return by_worker + (counter == stats::Counter::FromHost && id.value == 0
                            ? workers_->impl_->host_frames_lost.read()
                            : 0);
}

uint64_t Inspector::drops(WorkerId id, DropReason reason) const {
    const uint64_t by_worker = (*context_of(*workers_->impl_, id).counters.worker)[reason].read();
    return by_worker + (id.value == 0 ? workers_->impl_->host_drops[static_cast<size_t>(reason)].read() : 0);
}

PortTotals Inspector::port(NicPortId id) const {
    PortTotals totals;
    for (const auto& worker : workers_->impl_->workers_) {
        const stats::PortCounters& row = worker->context().counters.worker->ports[id.value];
        totals.received += row.received.read();
        totals.handed_off += row.handed_off.read();
        totals.handoff_lost += row.handoff_lost.read();
        totals.replies_misplaced += row.replies_misplaced.read();
    }
    return totals;
}

uint64_t Inspector::exhaustion_stamp(WorkerId id, size_t slot) const {
    return context_of(*workers_->impl_, id).counters.worker->exhausted.stamp(slot);
}

ServiceTotals Inspector::service(ServiceId id) const {
    ServiceTotals totals;
    for (const auto& worker : workers_->impl_->workers_) {
        const stats::ServiceCounters& row = worker->context().counters.services[id.value];
        totals.new_flows += row.new_flows.read();
        totals.forward_packets += row.forward().packets.read();
        totals.forward_bytes += row.forward().bytes.read();
        totals.reverse_packets += row.reverse().packets.read();
        totals.reverse_bytes += row.reverse().bytes.read();
        totals.rejected += row.rejected.read();
        totals.dropped += row.dropped.read();
        totals.connections += row.connections.read();
    }
    return totals;
}

BackendTotals Inspector::backend(BackendId id) const {
    BackendTotals totals;
    for (const auto& worker : workers_->impl_->workers_) {
        const stats::BackendCounters& row = worker->context().counters.backends[id.value];
        totals.new_flows += row.new_flows.read();
        totals.connections += row.connections.read();
        totals.open += row.open.read();
    }
    return totals;
}

uint64_t Inspector::open_connections(WorkerId id, uint32_t backends) const {
    uint64_t open = 0;
    for (const stats::BackendCounters& row :
         context_of(*workers_->impl_, id).counters.backends.first(backends)) {
        open += row.open.read();
    }
    return open;
}

std::optional<uint64_t> Inspector::neighbour_idle_ms(NeighbourId id) const {
    std::optional<uint64_t> idle_s;
    for (const auto& worker : workers_->impl_->workers_) {
        const pipeline::WorkerContext& context = worker->context();
        const route::UseSeconds last = context.neighbour_use.last_used(id);
        if (last != 0) {
            const uint64_t now_s = context.rate.to_seconds({context.timeline.shown(rte_rdtsc()).value}) + 1;
            idle_s = std::min(idle_s.value_or(~uint64_t{0}), now_s > last ? now_s - last : 0);
        }
    }
    return idle_s ? std::optional(*idle_s * 1000) : std::nullopt;
}

void Inspector::for_each_connection(const std::function<bool(const ConnectionView&)>& visit) const {
    const std::shared_ptr<const conn::IdleLimits> own_limits = workers_->current().idle_limits;
    for (const auto& worker : workers_->impl_->workers_) {
        const pipeline::WorkerContext& context = worker->context();
        const uint32_t end = context.connections.high_water();
        for (uint32_t slot = 0; slot < end; ++slot) {
            conn::Connection connection;
            if (!context.connections.read(slot, connection)) {
                continue;
            }
            const CoarseTime now = context.clock.at(context.timeline.shown(rte_rdtsc()));
            ConnectionView view;
            view.forward = connection.forward;
            view.reverse = connection.reverse;
            view.service = connection.service;
            view.backend = connection.backend;
            view.worker = context.self;
            view.source_kept = connection.source_kept;
            view.state = std::string(connection.state_name());
            view.age_ms = context.clock.to_milliseconds(units_between(connection.opened_at, now));
            view.idle_ms = context.clock.to_milliseconds(units_between(connection.last_seen, now));
            const uint64_t limit_ms = context.clock.to_milliseconds(
                context.aging.limits().limit_for(connection.forward.protocol, connection, *own_limits));
            view.expires_ms = limit_ms > view.idle_ms ? limit_ms - view.idle_ms : 0;
            if (!visit(view)) {
                return;
            }
        }
    }
}

std::vector<const conn::Table*> Inspector::connection_tables() const {
    std::vector<const conn::Table*> tables;
    for (const auto& worker : workers_->impl_->workers_) {
        tables.push_back(&worker->context().connections);
    }
    return tables;
}

CoarseClock Inspector::coarse_clock() const {
    return workers_->impl_->workers_.front()->context().clock;
}

CoarseTime Inspector::coarse_now() const {
    const pipeline::WorkerContext& context = workers_->impl_->workers_.front()->context();
    return context.clock.at(context.timeline.shown(rte_rdtsc()));
}

std::function<int32_t(const conn::Connection&)> Inspector::idle_limits() const {
    const conn::Limits& limits = workers_->impl_->workers_.front()->context().aging.limits();
    return [&limits, now = workers_->current()](conn::Connection connection) {
        const packet::FlowKey& key = connection.forward;
        const lb::FrontendRow* frontend =
            now.services->find(key.destination, key.destination_port, key.protocol);
        connection.service = frontend == nullptr ? ServiceId{} : frontend->service->id;
        return limits.limit_for(key.protocol, connection, *now.idle_limits);
    };
}

bool Inspector::has_connection(const packet::FlowKey& forward, const packet::FlowKey& reverse) const {
    conn::Table::Lookup lookup;
    return std::ranges::any_of(workers_->impl_->workers_, [&](const auto& worker) {
        return looks_up(worker->context().connections, forward, lookup, kLookups) &&
               lookup.connection.reverse == reverse;
    });
}

std::optional<copies::OwnConnection> Inspector::find_connection(const packet::FlowKey& key) const {
    conn::Table::Lookup lookup;
    for (const auto& worker : workers_->impl_->workers_) {
        if (looks_up(worker->context().connections, key, lookup, kLookups)) {
            return copies::OwnConnection{.worker = worker->context().self,
                                         .unit = lookup.found.index.value,
                                         .generation = lookup.generation,
                                         .connection = lookup.connection};
        }
    }
    return std::nullopt;
}

std::vector<nat::SnatUse> Inspector::snat_use() const {
    const config::Snapshot now = workers_->current();
    nat::SnatCensus census(*now.snat,
                           [&now](Protocol protocol) { return now.services->node_port_bits(protocol); });
    for (const auto& worker : workers_->impl_->workers_) {
        const conn::Table& connections = worker->context().connections;
        const uint32_t end = connections.high_water();
        conn::Connection connection;
        for (uint32_t slot = 0; slot < end; ++slot) {
            if (connections.read(slot, connection) && !connection.source_kept) {
                const packet::FlowKey& reverse = connection.reverse;
                census.count({reverse.destination, reverse.source, reverse.source_port, reverse.protocol},
                             reverse.destination_port);
            }
        }
    }
    return census.result();
}

BufferPoolView Inspector::own_buffers() const {
    const rte_mempool* pool = workers_->impl_->own_buffers;
    return {.name = pool->name, .buffers = pool->size, .in_use = rte_mempool_in_use_count(pool)};
}

}  // namespace penstock::worker
