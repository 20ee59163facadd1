// SPDX-License-Identifier: Apache-2.0
// Stage 4: packets of known connections are tracked, translated and forwarded. Their next hops are looked up
// in a pass of their own (find_hops() in translate.hpp); the rest is a single pass. The data that it reads
// was prefetched by the lookup or is in the cache, as routes and counters are, so there is no latency to hide
// between its steps.
#pragma once

#include "dataplane/pipeline/associations.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Must run before new_flow, which may evict a connection of this burst from a full table: the connection's
// packets have left by then.
void serve_hits(WorkerContext& ctx, Burst& burst) noexcept;

// Serves packet i, of connection found[i], by itself: one that has become a hit after serve_hits(). Returns
// Tracked::Reopens, and does nothing, if the packet reopens its connection.
PENSTOCK_NOINLINE Tracked serve_late_hit(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
