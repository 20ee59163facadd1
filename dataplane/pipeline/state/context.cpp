// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/state/context.hpp"

#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/pipeline/flow_records.hpp"

namespace penstock::pipeline {

lb::AffinityTable::Question affinity_question(const WorkerContext& ctx, const lb::Service& service,
                                              const lb::BackendSet& set, const IpAddr& client,
                                              CoarseTime now) noexcept {
    return {.key = {service.affinity_owner, service.affinity_epoch, client},
            .set = set,
            .now = now,
            .limit = static_cast<int32_t>(ctx.clock.units(ctx.rate.seconds(service.affinity_timeout_s)))};
}

void confirm_affinity(WorkerContext& ctx, ConnectionIndex index) noexcept {
    const conn::Entry& connection = ctx.connections.at(index);
    const packet::FlowKey forward = connection.key(conn::Direction::Forward);
    const lb::ServiceTable& services = *ctx.snapshot->services;
    const lb::FrontendRow* frontend =
        services.find(forward.destination, forward.destination_port, forward.protocol,
                      services.hash(forward.destination, forward.destination_port, forward.protocol));
    if (frontend == nullptr || frontend->service->id != connection.service ||
        !frontend->service->has_affinity()) {
        return;  // the configuration has changed
    }
    for (const lb::BackendSet& set : frontend->service->sets) {
        const uint32_t position = set.pinned_position(connection.backend);
        if (position != lb::BackendPositions::kNone) {
            const auto question =
                affinity_question(ctx, *frontend->service, set, forward.source, ctx.now_coarse);
            ctx.count()[stats::Counter::AffinityEvictions].add(
                ctx.affinity.establish(question, position).evicted ? 1 : 0);
            return;
        }
    }
}

bool is_open(const conn::Entry& connection) noexcept {
    switch (connection.protocol) {
        case Protocol::Tcp:
            return conn::is_open(connection.tcp_state());
        case Protocol::Udp:
            return true;
        case Protocol::Sctp:
            return conn::is_open(connection.sctp_state());
    }
    return true;
}

void release_connection(WorkerContext& ctx, ConnectionIndex index, Removal removal) noexcept {
    const conn::Entry& connection = ctx.connections.at(index);
    if (ctx.flow_log != nullptr) [[unlikely]] {
        record_end(ctx, index, removal);
    }
    ctx.by_backend.remove(index, connection.backend);
    if (!connection.source_kept) {
        ctx.snat_ports.give_back({connection.snat_pool},
                                 connection.destination_port(conn::Direction::Reverse));
    }
    ctx.counters.services[connection.service.value].connections.subtract(1);
    ctx.prefixes.subtract(prefix_slot_of(connection, ctx.owner.mix));
    stats::BackendCounters& backend = ctx.counters.backends[connection.backend.value];
    backend.connections.subtract(1);
    // Otherwise its end was counted with the packet that ended it (track.hpp, associations.cpp).
    if (is_open(connection)) {
        backend.open.subtract(1);
    }
    ctx.count()[stats::Counter::ClosedConnections].add(1);
}

void close_connection(WorkerContext& ctx, ConnectionIndex index, Removal removal) noexcept {
    release_connection(ctx, index, removal);
    ctx.connections.erase(index);
    ctx.count()[stats::Counter::Connections].set(ctx.connections.size());
}

}  // namespace penstock::pipeline
