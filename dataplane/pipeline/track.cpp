#include "dataplane/pipeline/track.hpp"

#include "dataplane/conn/tcp_state.hpp"

namespace penstock::pipeline {
namespace {

// What becomes of a packet of a known connection.
enum class Tracked : uint8_t { GoesOn, IsDropped, IsMiss };

PENSTOCK_ALWAYS_INLINE Tracked track_one(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    if (burst.parsed[i].ttl <= 1) [[unlikely]] {
        burst.drop(i, DropReason::TtlExpired);
        return Tracked::IsDropped;
    }
    const conn::Found found = burst.found[i];
    const conn::Entry& connection = ctx.connections.at(found.index);
    if (connection.is_tcp()) {
        const conn::TcpStep step = conn::step(connection.tcp_state(), found.direction, burst.parsed[i].tcp_flags);
        if (step.action != conn::TcpAction::Pass) [[unlikely]] {
            if (step.action == conn::TcpAction::Reopen) {
                return Tracked::IsMiss;
            }
            burst.drop(i, DropReason::InvalidTcpFlags);
            return Tracked::IsDropped;
        }
        ctx.connections.set_state(found.index, step.next, ctx.now_coarse);
    } else {
        ctx.connections.set_state(found.index, conn::step(connection.datagram_state(), found.direction), ctx.now_coarse);
    }
    ctx.connections.touch(found.index, ctx.now_coarse);
    stats::ServiceCounters& service = ctx.counters.services[connection.service.value];
    const bool forward = found.direction == conn::Direction::Forward;
    (forward ? service.forward_packets : service.reverse_packets).add(1);
    (forward ? service.forward_bytes : service.reverse_bytes).add(burst.parsed[i].l3_length);
    return Tracked::GoesOn;
}

}  // namespace

void track(WorkerContext& ctx, Burst& burst) noexcept {
    PacketList hits;
    for (uint32_t at = 0; at < burst.hits.count; ++at) {
        const uint32_t i = burst.hits.at[at];
        switch (track_one(ctx, burst, i)) {
            [[likely]] case Tracked::GoesOn:
                hits.add(i);
                break;
            case Tracked::IsDropped:
                break;
            case Tracked::IsMiss:
                burst.hash[i] = ctx.connections.hash(burst.parsed[i].key);
                burst.misses.add(i);
                break;
        }
    }
    burst.hits = hits;
    ctx.count()[stats::Counter::ConnectionHits].add(hits.count);
}

bool track_packet(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    switch (track_one(ctx, burst, i)) {
        case Tracked::GoesOn:
            ctx.count()[stats::Counter::ConnectionHits].add(1);
            return true;
        case Tracked::IsDropped:
            return true;
        case Tracked::IsMiss:
            break;
    }
    return false;
}

}  // namespace penstock::pipeline
