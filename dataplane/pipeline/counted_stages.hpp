// SPDX-License-Identifier: Apache-2.0
// run_stages() of a worker with flow records: the packets of each connection are counted as well. A function
// of its own, so that packets cost nothing more while flow records are off.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Needs ctx.flow_log.
void run_counted_stages(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
