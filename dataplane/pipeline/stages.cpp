// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/stages.hpp"

#include "dataplane/pipeline/hits.hpp"
#include "dataplane/pipeline/stage_order.hpp"

namespace penstock::pipeline {

void run_stages(WorkerContext& ctx, Burst& burst) noexcept {
    run_in_order<serve_hits, follow_fragments>(ctx, burst);
}

}  // namespace penstock::pipeline
