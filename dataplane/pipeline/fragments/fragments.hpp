// SPDX-License-Identifier: Apache-2.0
// Fragments follow the flow of their datagram's first fragment (NAT-007). classify has handed them to the
// worker at which all fragments of the datagram are collected. There the first fragment, which has the L4
// header, passes the stages like any packet of its flow, and is handed to another worker if that one owns the
// flow. The other fragments follow the first one or wait for it.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Runs before the lookup: records burst.fragments in ctx.fragments and adds first fragments to the flows.
// Fragments that belong to no datagram, or to a datagram that may not pass, receive their verdict.
PENSTOCK_NOINLINE void take_fragments(WorkerContext& ctx, Burst& burst) noexcept;

// Runs after the flows have received their verdicts: the verdicts of first fragments decide those of the
// others.
PENSTOCK_NOINLINE void follow_fragments(WorkerContext& ctx, Burst& burst) noexcept;
// The same, and counts the fragments of each connection in ctx.flow_log.
PENSTOCK_NOINLINE void follow_counted_fragments(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
