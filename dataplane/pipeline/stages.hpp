// SPDX-License-Identifier: Apache-2.0
// The stages between receive and disposal. They use no rte_*: a test fills a burst from bytes, calls
// run_stages, and reads verdicts, frames and counters.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

void run_stages(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
