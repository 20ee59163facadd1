// SPDX-License-Identifier: Apache-2.0
// run_stages() of a worker that also counts the packets of each connection, for flow records, or measures
// latencies. These are functions of their own, so that packets cost nothing more while both are off.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

using RunStages = void (*)(WorkerContext& ctx, Burst& burst) noexcept;

// The function for this worker, by ctx.flow_log and ctx.latency, which do not change while it runs.
[[nodiscard]] RunStages stages_of(const WorkerContext& ctx) noexcept;

}  // namespace penstock::pipeline
