// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/latency.hpp"

#include "dataplane/conn/tcp_state.hpp"

namespace penstock::pipeline {
namespace {

using Phase = LatencyWait::Phase;
using packet::TcpFlags;

void add(WorkerContext& ctx, const conn::Entry& connection,
         stats::LatencyHistogram stats::LatencyCounters::* which, TscTime since) noexcept {
    LatencyMeter& meter = *ctx.latency;
    const TscTicks latency = ticks_between(since, ctx.now);
    (meter.services[connection.service.value].*which).add(latency, meter.bounds);
    if (!meter.backends.empty()) {
        (meter.backends[connection.backend.value].*which).add(latency, meter.bounds);
    }
}

bool has_payload(const packet::Parsed& parsed) noexcept {
    return parsed.l3_offset + parsed.l3_length > parsed.payload_offset;
}

// The wait after packet i of a connection whose SYN-ACK has passed.
LatencyWait after_handshake_begun(WorkerContext& ctx, const Burst& burst, uint32_t i,
                                  LatencyWait wait) noexcept {
    const conn::Found found = burst.found[i];
    const conn::Entry& connection = ctx.connections.at(found.index);
    const packet::Parsed& parsed = burst.parsed[i];
    if (found.direction == conn::Direction::Reverse) {
        if (has_payload(parsed)) {
            add(ctx, connection, &stats::LatencyCounters::first_byte, wait.since());
            return {};
        }
        return parsed.tcp_flags.has(TcpFlags::kFin) ? LatencyWait() : wait;
    }
    // Until its ACK is verified, a segment may be spoofed.
    if (wait.phase() == Phase::FirstByte || connection.tcp_state() == conn::TcpState::SynReceived) {
        return wait;
    }
    if (has_payload(parsed)) {
        return {Phase::FirstByte, ctx.now};
    }
    return wait.phase() == Phase::Handshake ? LatencyWait(Phase::Request, ctx.now) : wait;
}

}  // namespace

void start_latencies(WorkerContext& ctx, const Burst& burst) noexcept {
    // A later packet of the burst may have evicted a connection that an earlier one opened. A connection that
    // is live at its place was also opened in this burst.
    const auto start = [&](uint32_t i) {
        const conn::Found found = burst.found[i];
        if (!found.is_hit() || !ctx.connections.is_live(found.index.value)) {
            return;
        }
        const conn::Entry& connection = ctx.connections.at(found.index);
        const bool is_opening = connection.is_tcp() && connection.tcp_state() == conn::TcpState::SynSent;
        ctx.latency->waits[found.index.value] =
            is_opening ? LatencyWait(Phase::Connect, ctx.now) : LatencyWait();
    };
    for (uint32_t at = 0; at < burst.misses.count; ++at) {
        start(burst.misses.at[at]);
    }
    for (uint32_t at = 0; at < burst.reopening.count; ++at) {
        start(burst.reopening.at[at]);
    }
}

void measure_latency(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const conn::Found found = burst.found[i];
    LatencyWait& wait = ctx.latency->waits[found.index.value];
    const TcpFlags flags = burst.parsed[i].tcp_flags;
    if (flags.has(TcpFlags::kRst)) {
        wait = {};
    } else if (wait.phase() != Phase::Connect) {
        wait = after_handshake_begun(ctx, burst, i, wait);
    } else if (found.direction == conn::Direction::Reverse && flags.has(TcpFlags::kSyn | TcpFlags::kAck)) {
        add(ctx, ctx.connections.at(found.index), &stats::LatencyCounters::connect, wait.since());
        // Payload in the SYN-ACK (RFC 7413) has no begin that could be measured.
        wait = has_payload(burst.parsed[i]) ? LatencyWait() : LatencyWait(Phase::Handshake, ctx.now);
    }
}

}  // namespace penstock::pipeline
