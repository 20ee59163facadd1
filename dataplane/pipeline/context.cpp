#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

void release_connection(WorkerContext& ctx, const conn::Entry& connection) noexcept {
    if (!connection.source_kept) {
        ctx.snat_ports.give_back({connection.snat_pool}, connection.destination_port(conn::Direction::Reverse));
    }
    ctx.counters.services[connection.service.value].connections.subtract(1);
    ctx.counters.backends[connection.backend.value].connections.subtract(1);
    ctx.count()[stats::Counter::ClosedConnections].add(1);
}

void close_connection(WorkerContext& ctx, ConnectionIndex index) noexcept {
    release_connection(ctx, ctx.connections.at(index));
    ctx.connections.erase(index);
    ctx.count()[stats::Counter::Connections].set(ctx.connections.size());
}

}  // namespace penstock::pipeline
