// SPDX-License-Identifier: Apache-2.0
// Stage 1: takes a burst from a receive queue, from Linux, or from the handoff ring.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "dataplane/pipeline/state/io.hpp"

namespace penstock::pipeline {

// Fills `burst` from one receive queue. Returns the number of packets taken (some may have been dropped
// immediately).
uint32_t receive(WorkerContext& ctx, WorkerIo& io, NicPortId port, uint16_t queue, Burst& burst) noexcept;

// Fills `burst` with frames that Linux has sent through the twin of `port`. Returns the number taken; 0 if
// another worker serves the twin.
uint32_t receive_from_host(WorkerContext& ctx, WorkerIo& io, NicPortId port, Burst& burst) noexcept;

// Fills `burst` with packets that other workers received for this one. Returns the number taken.
uint32_t receive_handed(WorkerContext& ctx, WorkerIo& io, Burst& burst) noexcept;

// Fills `burst` with fragments whose datagram's first fragment has arrived (ctx.fragments.has_ready()).
void receive_ready_fragments(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
