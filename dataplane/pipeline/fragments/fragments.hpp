// Fragments follow the flow of their datagram's first one (NAT-007). classify has handed them to the worker that all of their datagram meet
// at. There the first one, which has the L4 header, goes through the stages as any packet of its flow, to another worker where that one
// owns the flow; the others go where it went, or wait for it.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Before the look-up: burst.fragments are noted in ctx.fragments, and first ones join the flows. What belongs to no datagram, or to none
// that may pass, meets its verdict.
PENSTOCK_NOINLINE void take_fragments(WorkerContext& ctx, Burst& burst) noexcept;

// After the flows have met theirs: those of first ones decide about the rest.
PENSTOCK_NOINLINE void follow_fragments(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
