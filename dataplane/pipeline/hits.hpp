// Stage 4: packets of known connections are tracked, translated and sent on their way, all in one pass: what it reads was prefetched by the
// look-up, or lies in the cache as routes and counters do, so there is nothing to wait for between the steps.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Comes before new_flow, which may give up a connection of this burst to make room in a full table: its packets have left by then.
void serve_hits(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
