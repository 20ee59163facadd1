// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/aging.hpp"

#include "dataplane/pipeline/flow_orders.hpp"
#include "dataplane/pipeline/liveness.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

void age_connections(WorkerContext& ctx, uint32_t budget_units) noexcept {
    const uint32_t gone = ctx.aging.tick(
        ctx.connections, ctx.now_coarse, *ctx.snapshot->idle_limits, budget_units,
        [&](ConnectionIndex index) { release_connection(ctx, index, Removal::Expired); },
        [&](ConnectionIndex index) { end_again(ctx, index); },
        [&](ConnectionIndex index) { return probe_for_life(ctx, index); });
    if (gone > 0) {
        ctx.count()[stats::Counter::Connections].set(ctx.connections.size());
    }
}

}  // namespace penstock::pipeline
