// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/take_over.hpp"

#include <algorithm>
#include <optional>

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/copies/sweep.hpp"
#include "dataplane/pipeline/conn_lookup.hpp"
#include "dataplane/pipeline/hits.hpp"
#include "dataplane/pipeline/opening/strays.hpp"

namespace penstock::pipeline {
namespace {

using packet::FlowKey;
using stats::Counter;

// Sets the connection's Service and backend. False: the current configuration has no such frontend, or the
// Service of that frontend has no such endpoint, not even one that keeps its flows only.
bool find_service(const config::Snapshot& snapshot, conn::Connection& connection) noexcept {
    const FlowKey& forward = connection.forward;
    const FlowKey& reverse = connection.reverse;
    const lb::FrontendRow* frontend =
        snapshot.services->find(forward.destination, forward.destination_port, forward.protocol);
    if (frontend == nullptr) {
        return false;
    }
    const lb::Service& service = *frontend->service;
    connection.service = service.id;
    connection.backend = service.flow_endpoints.find(reverse.source, reverse.source_port);
    connection.is_pinned = service.has_affinity();
    return connection.backend.is_set();
}

// Unset: the copy is refused.
ConnectionIndex insert_copy(WorkerContext& ctx, const conn::Connection& copy) noexcept {
    ForeignConnection foreign{};
    ConnectionIndex inserted;
    if (!prepare_copy(ctx, *ctx.snapshot, ctx.now_coarse, copy, foreign) ||
        insert_foreign(ctx, foreign, WhenFull::Evict, prefetch_pool(ctx, foreign), inserted)) {
        return {};
    }
    if (ctx.latency != nullptr) {
        ctx.latency->waits[inserted.value] = {};  // of a former connection in its place
    }
    return inserted;
}

}  // namespace

bool prepare_copy(const WorkerContext& ctx, const config::Snapshot& snapshot, CoarseTime now,
                  const conn::Connection& copy, ForeignConnection& foreign) noexcept {
    // The time of a copy may lag behind that of its connection (copies::Sweep::kRefreshS), and a pass.
    constexpr uint64_t kLagMs = 1'000 * (copies::Sweep::kRefreshS + 1);
    const auto lag = static_cast<int32_t>(ctx.clock.from_milliseconds(kLagMs));
    const int32_t idle = units_between(copy.last_seen, now);
    foreign.connection = copy;
    foreign.connection.last_seen = {now.value - static_cast<uint32_t>(std::max(0, idle - lag))};
    return find_service(snapshot, foreign.connection) && !examine_foreign(ctx, snapshot, now, foreign);
}

bool may_take_over(const packet::Parsed& packet) noexcept {
    switch (packet.key.protocol) {
        case Protocol::Tcp: {
            const conn::TcpFlagClass flags = conn::classify(packet.tcp_flags);
            return flags != conn::TcpFlagClass::Syn && flags != conn::TcpFlagClass::Invalid;
        }
        case Protocol::Udp:
            return true;
        case Protocol::Sctp:
            return packet.sctp_event != packet::SctpEvent::Init;
    }
    return false;
}

WorkerId owner_of_copy(const copies::Store& copies, const packet::Parsed& packet,
                       const config::Snapshot& snapshot, const nat::ReplyOwner& owner) noexcept {
    const std::optional<copies::Store::Found> copy = copies.find(packet.key);
    return copy && (copy->is_taken ||
                    (may_take_over(packet) && !copies.is_refused(*copy, snapshot.generation)))
               ? owner_of_foreign(copy->connection, snapshot, owner)
               : WorkerId{};
}

conn::Found take_over(WorkerContext& ctx, const FlowKey& key) noexcept {
    const std::optional<copies::Store::Found> copy = ctx.copies->find(key);
    if (!copy) {
        return {};
    }
    if (copy->is_taken) {
        // by an earlier packet of this burst; otherwise the connection has ended here
        return ctx.connections.find(key, ctx.connections.hash(key));
    }
    if (ctx.copies->is_refused(*copy, ctx.snapshot->generation)) {
        return {};
    }
    const WorkerId owner = owner_of_foreign(copy->connection, *ctx.snapshot, ctx.owner);
    if (owner.is_set() && owner != ctx.self) {
        return {};
    }
    const ConnectionIndex inserted = owner.is_set() ? insert_copy(ctx, copy->connection) : ConnectionIndex{};
    if (!inserted.is_set()) {
        ctx.copies->mark_refused(*copy, ctx.snapshot->generation);
        ctx.count()[Counter::CopiesRefused].add(1);
        return {};
    }
    ctx.copies->mark_taken(*copy);
    ctx.count()[Counter::ConnectionsTakenOver].add(1);
    ctx.count()[Counter::Connections].set(ctx.connections.size());
    return {inserted, copy->direction};
}

void take_over_copies(WorkerContext& ctx, Burst& burst) noexcept {
    PacketList left;
    bool has_served = false;
    for (uint32_t at = 0; at < burst.misses.count; ++at) {
        const uint32_t i = burst.misses.at[at];
        const packet::Parsed& parsed = burst.parsed[i];
        conn::Found found;
        if (may_take_over(parsed) && !precedes_copies(*ctx.snapshot, parsed.key)) {
            found = take_over(ctx, parsed.key);
        }
        if (found.is_hit()) {
            burst.found[i] = found;
            if (serve_late_hit(ctx, burst, i) == Tracked::Reopens) {
                burst.reopening.add(i);
            }
            has_served = true;
        } else if (burst.arrival[i].note.tried != kTriesMoved || !hand_back(ctx, burst, i)) {
            left.add(i);
        }
    }
    burst.misses = left;
    if (!has_served) {
        return;
    }
    // A SYN whose tuple another packet of this burst has just taken over is no miss any more.
    burst.misses.count = 0;
    for (uint32_t at = 0; at < left.count; ++at) {
        const uint32_t i = left.at[at];
        const bool is_known = ctx.connections.find(burst.parsed[i].key, burst.hash[i]).is_hit();
        (is_known ? burst.reopening : burst.misses).add(i);
    }
}

bool is_reserved_by_copy(const copies::Store& copies, const FlowKey& forward,
                         const FlowKey& reverse) noexcept {
    if (copies.size() == 0) {
        return false;
    }
    const std::optional<copies::Store::Found> copy = copies.find(reverse);
    return copy && copy->connection.forward != forward;
}

}  // namespace penstock::pipeline
