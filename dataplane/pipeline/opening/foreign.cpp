// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/foreign.hpp"

#include "dataplane/nat/source_search.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/pipeline/opening/opening.hpp"

namespace penstock::pipeline {
namespace {

using conn::Connection;
using packet::FlowKey;

nat::PoolKey pool_key(const Connection& connection) noexcept {
    return {connection.reverse.destination, connection.reverse.source, connection.reverse.source_port,
            connection.reverse.protocol};
}

}  // namespace

WorkerId owner_of_foreign(const Connection& connection, const config::Snapshot& snapshot,
                          const nat::ReplyOwner& owner) noexcept {
    const FlowKey& reverse = connection.reverse;
    if (connection.source_kept) {
        // The endpoint is on the host and answers to a port of the owner's (new_flow.cpp, take_own_port).
        return reverse.destination_port != connection.forward.source_port
                   ? owner.of_snat_port(reverse.destination_port)
                   : owner.of_client(connection.forward.source);
    }
    const nat::SnatAddress* address = snapshot.snat->addresses.find(reverse.destination);
    return address == nullptr ? WorkerId{} : owner.of_snat_reply(address->egress, reverse);
}

std::optional<ForeignRefusal> examine_foreign(const WorkerContext& ctx, const config::Snapshot& snapshot,
                                              CoarseTime now, ForeignConnection& foreign) noexcept {
    Connection& connection = foreign.connection;
    const FlowKey& forward = connection.forward;
    const FlowKey& reverse = connection.reverse;
    ctx.by_backend.prefetch_head(connection.backend);
    if (units_between(connection.last_seen, now) >
        ctx.aging.limits().limit_for(forward.protocol, connection, *snapshot.idle_limits)) {
        return ForeignRefusal::Expired;
    }
    connection.snat_index = 0;
    connection.snat_pool = 0;
    if (!connection.source_kept) {
        const nat::SnatConfig& config = *snapshot.snat;
        const nat::SnatAddress* address = config.addresses.find(reverse.destination);
        if (address == nullptr) {
            return ForeignRefusal::NoSnatPort;
        }
        connection.snat_index = static_cast<uint8_t>(address - &config.addresses[0]);
        const nat::PoolKey key = pool_key(connection);
        // A NodePort that is declared later does not end the connections that use its number. Ports of both
        // parts: another gateway may have opened the flow, or the role in the share has changed.
        nat::PortRules rules =
            nat::rules_towards(ctx.snat_ports, config, connection.snat_index, nat::HostPorts{}, key);
        rules.in_block = nat::ports_in_block(nat::PortPart::All);
        if (!rules.is_usable(reverse.destination_port)) {
            return ForeignRefusal::NoSnatPort;
        }
        foreign.pool_hash = ctx.snat_ports.hash(key);
        ctx.snat_ports.prefetch(foreign.pool_hash);
    }
    const packet::TranslationDeltas deltas = packet::translation_deltas(
        forward, {reverse.destination, reverse.source, reverse.destination_port, reverse.source_port});
    connection.l4_delta = deltas.l4;
    connection.ip_delta = deltas.ip;
    foreign.forward_hash = ctx.connections.hash(forward);
    foreign.reverse_hash = ctx.connections.hash(reverse);
    ctx.connections.prefetch_buckets(foreign.forward_hash);
    ctx.connections.prefetch_buckets(foreign.reverse_hash);
    return std::nullopt;
}

nat::PoolNumber prefetch_pool(const WorkerContext& ctx, const ForeignConnection& foreign) noexcept {
    return foreign.connection.source_kept ? nat::PoolNumber{}
                                          : ctx.snat_ports.prefetch_pool(foreign.pool_hash);
}

std::optional<ForeignRefusal> insert_foreign(WorkerContext& ctx, ForeignConnection& foreign,
                                             WhenFull when_full, nat::PoolNumber probably,
                                             ConnectionIndex& inserted) noexcept {
    Connection& connection = foreign.connection;
    nat::PoolNumber pool;
    if (!connection.source_kept) {
        pool = ctx.snat_ports.open(pool_key(connection), foreign.pool_hash, probably);
        connection.snat_pool = pool.value;
    }
    const conn::Inserted result =
        when_full == WhenFull::Evict
            ? insert_connection(ctx, connection, foreign.forward_hash, foreign.reverse_hash)
            : ctx.connections.insert(connection, foreign.forward_hash, foreign.reverse_hash);
    if (result.status != conn::InsertStatus::Inserted) {
        return result.status == conn::InsertStatus::Full ? ForeignRefusal::TableFull
                                                         : ForeignRefusal::Duplicate;
    }
    inserted = result.index;
    ctx.by_backend.add(inserted, connection.backend);
    if (!connection.source_kept) {
        ctx.snat_ports.bind(pool, connection.reverse.destination_port);
    }
    ctx.prefixes.add(PrefixCounts::slot_of(connection.forward.source, ctx.owner.mix));
    ctx.counters.services[connection.service.value].connections.add(1);
    stats::BackendCounters& backend = ctx.counters.backends[connection.backend.value];
    backend.connections.add(1);
    backend.open.add(is_open(ctx.connections.at(inserted)) ? 1 : 0);
    return std::nullopt;
}

}  // namespace penstock::pipeline
