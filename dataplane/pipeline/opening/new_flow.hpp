// SPDX-License-Identifier: Apache-2.0
// Stage 5, for misses and for packets that reopen a finished connection: admit the packet, select a backend,
// bind a SNAT address and port, insert the connection, forward the packet. The misses of a burst are
// processed together, step by step, each step prefetching for the next.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

void new_flow(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
