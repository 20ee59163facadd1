// Stage 4, misses only: admit the packet, pick a backend, bind a SNAT address and port, insert the connection. Rare next to hits, so it is
// kept out of line; everything it needs from the snapshot is found once.
#pragma once

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

void new_flow(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
