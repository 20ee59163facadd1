// Stage 6: every packet of a burst meets its verdict: it is sent, punted, handed on, held, or freed and counted. The only place where
// packets leave a worker.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "dataplane/pipeline/state/io.hpp"

namespace penstock::pipeline {

// Empties the burst. Whatever a queue or ring does not take at once is dropped for its reason: a worker never waits.
void dispose(WorkerContext& ctx, WorkerIo& io, Burst& burst) noexcept;

// Sends packets whose next hop has become known and drops those that waited too long. Called when the snapshot's generation has moved, and
// every few milliseconds.
void release_pending(WorkerContext& ctx, WorkerIo& io) noexcept;

// Drops fragments that have waited too long for the first one of their datagram. Called every few milliseconds.
void expire_fragments(WorkerContext& ctx) noexcept;

// Sends what the stages and the orders have collected in ctx.own_segments, and empties it.
void send_own_segments(WorkerContext& ctx, WorkerIo& io) noexcept;

// Sends what workers without a transmit queue have put into this one's rings. Returns how many.
uint32_t send_for_others(WorkerContext& ctx, WorkerIo& io) noexcept;

}  // namespace penstock::pipeline
