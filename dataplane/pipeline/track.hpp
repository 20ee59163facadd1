// SPDX-License-Identifier: Apache-2.0
// Effect of a packet on its connection: the TCP state advances, the idle time restarts, the Service's
// counters are updated.
#pragma once

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/pipeline/answers/own_errors.hpp"
#include "dataplane/pipeline/associations.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

PENSTOCK_ALWAYS_INLINE void count_passed(WorkerContext& ctx, const Burst& burst, uint32_t i,
                                         const conn::Entry& connection) noexcept {
    stats::ServiceCounters::Passed& passed =
        ctx.counters.services[connection.service.value].passed[static_cast<size_t>(burst.found[i].direction)];
    passed.packets.add(1);
    passed.bytes.add(burst.parsed[i].l3_length);
}

// track_one() for everything except a plain segment of a TCP connection: segments that open, end or revive a
// connection or are refused, and packets of an association.
PENSTOCK_NOINLINE Tracked track_unusual(WorkerContext& ctx, Burst& burst, uint32_t i,
                                        conn::TcpStep step) noexcept;

// Packet i, of connection found[i].
PENSTOCK_ALWAYS_INLINE Tracked track_one(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    if (burst.parsed[i].ttl <= 1) [[unlikely]] {
        send_time_exceeded(ctx, burst, i);
        return Tracked::HasVerdict;
    }
    const conn::Found found = burst.found[i];
    const conn::Entry& connection = ctx.connections.at(found.index);
    if (connection.protocol != Protocol::Udp) {
        const conn::TcpStep step =
            conn::step(connection.tcp_state(), found.direction, burst.parsed[i].tcp_flags);
        if (step.action != conn::TcpAction::Pass) [[unlikely]] {
            return track_unusual(ctx, burst, i, step);
        }
        ctx.connections.set_state(found.index, step.next, ctx.now_coarse);
    } else {
        const conn::DatagramState next = conn::step(connection.datagram_state(), found.direction);
        if (next != connection.datagram_state()) [[unlikely]] {
            ctx.connections.set_state(found.index, next, ctx.now_coarse);
            if (connection.is_pinned) {
                confirm_affinity(ctx, found.index);
            }
        }
    }
    ctx.connections.touch(found.index, ctx.now_coarse);
    count_passed(ctx, burst, i, connection);
    return Tracked::GoesOn;
}

}  // namespace penstock::pipeline
