#include "dataplane/pipeline/track.hpp"

#include "dataplane/conn/tcp_state.hpp"

namespace penstock::pipeline {
namespace {

// Advances the connection by this packet. False: the packet goes no further, or has become a miss.
bool advance(WorkerContext& ctx, Burst& burst, uint32_t i, TscTicks aged) noexcept {
    const conn::Found found = burst.found[i];
    const conn::Connection& connection = ctx.connections.at(found.index);
    if (!connection.is_tcp()) {
        ctx.connections.set_state(found.index, conn::step(connection.datagram_state(), found.direction), ctx.now);
    } else {
        const conn::TcpStep step = conn::step(connection.tcp_state(), found.direction, burst.parsed[i].tcp_flags);
        switch (step.action) {
            case conn::TcpAction::Pass:
                ctx.connections.set_state(found.index, step.next, ctx.now);
                break;
            case conn::TcpAction::Reopen:
                close_connection(ctx, found.index);
                burst.found[i] = {};
                return false;
            case conn::TcpAction::Invalid:
                burst.drop(i, DropReason::InvalidTcpFlags);
                return false;
        }
    }
    ctx.connections.touch(found.index, ctx.now, aged);
    return true;
}

// True where the packet goes on.
PENSTOCK_ALWAYS_INLINE bool track_one(WorkerContext& ctx, Burst& burst, uint32_t i, TscTicks aged) noexcept {
    if (burst.parsed[i].ttl <= 1) [[unlikely]] {
        burst.drop(i, DropReason::TtlExpired);
        return false;
    }
    if (!advance(ctx, burst, i, aged)) {
        return false;
    }
    stats::ServiceCounters& service = ctx.counters.services[ctx.connections.at(burst.found[i].index).service.value];
    const bool forward = burst.found[i].direction == conn::Direction::Forward;
    (forward ? service.forward_packets : service.reverse_packets).add(1);
    (forward ? service.forward_bytes : service.reverse_bytes).add(burst.parsed[i].l3_length);
    return true;
}

}  // namespace

void track(WorkerContext& ctx, Burst& burst) noexcept {
    const TscTicks aged = ctx.rate.milliseconds(conn::kTouchAfterMs);
    uint64_t hits = 0;
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (!burst.under_way(i) || !burst.found[i].is_hit()) {
            continue;
        }
        // A packet earlier in this burst may have ended the connection that the lookup found (a SYN on a finished one).
        if (ctx.connections.generation(burst.found[i].index) != burst.generation[i]) [[unlikely]] {
            burst.found[i] = {};
            continue;
        }
        hits += track_one(ctx, burst, i, aged) ? 1 : 0;
    }
    ctx.count()[stats::Counter::ConnectionHits].add(hits);
}

void track_packet(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const bool hit = track_one(ctx, burst, i, ctx.rate.milliseconds(conn::kTouchAfterMs));
    ctx.count()[stats::Counter::ConnectionHits].add(hit ? 1 : 0);
}

}  // namespace penstock::pipeline
