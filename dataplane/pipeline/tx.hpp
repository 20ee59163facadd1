// SPDX-License-Identifier: Apache-2.0
// Stage 6: executes every packet's verdict: it is sent, punted, handed over, held, or freed and counted. The
// only place where packets leave a worker.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "dataplane/pipeline/state/io.hpp"

namespace penstock::pipeline {

// Empties the burst. A packet that a queue or ring does not accept at once is dropped and counted under the
// matching reason: a worker never waits.
void dispose(WorkerContext& ctx, WorkerIo& io, Burst& burst) noexcept;

// Sends packets with a resolved next hop and drops those that waited too long. Called when the snapshot's
// generation has changed, and every few milliseconds.
void release_pending(WorkerContext& ctx, WorkerIo& io) noexcept;

// Drops fragments that have waited too long for the first fragment of their datagram. Called every few
// milliseconds.
void expire_fragments(WorkerContext& ctx) noexcept;

// Sends the segments that stages and orders have collected in ctx.own_segments, and empties it.
void send_own_segments(WorkerContext& ctx, WorkerIo& io) noexcept;

// Sends one packet of the gateway's own with a complete frame.
void send_at_once(WorkerContext& ctx, WorkerIo& io, NicPortId egress, rte_mbuf* mbuf) noexcept;

// Sends the packets that workers without a transmit queue have put into this worker's rings. Returns their
// number.
uint32_t send_for_others(WorkerContext& ctx, WorkerIo& io) noexcept;

}  // namespace penstock::pipeline
