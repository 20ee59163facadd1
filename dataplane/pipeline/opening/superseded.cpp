// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/superseded.hpp"

#include <cstdint>

#include "dataplane/base/limits.hpp"
#include "dataplane/copies/store.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

void end_superseded(WorkerContext& ctx) noexcept {
    for (uint32_t n = 0; n < limits::kFlowOrderSlice; ++n) {
        const auto ending = ctx.copies->next_ending(ctx.self);
        if (!ending) {
            return;
        }
        const ConnectionIndex index{ending->unit};
        if (ctx.connections.is_live(ending->unit) &&
            ctx.connections.generation(index) == ending->generation &&
            ctx.connections.at(index).last_seen == ending->last_seen) {
            close_connection(ctx, index, Removal::Reopened);
        }
    }
}

}  // namespace penstock::pipeline
