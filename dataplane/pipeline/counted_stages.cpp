// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/counted_stages.hpp"

#include "dataplane/pipeline/flow_records.hpp"
#include "dataplane/pipeline/stage_order.hpp"
#include "dataplane/pipeline/track.hpp"
#include "dataplane/pipeline/translate.hpp"

namespace penstock::pipeline {
namespace {

// As serve_hits(), and counts.
void serve_counted_hits(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t at = 0; at < burst.hits.count; ++at) {
        ctx.flow_log->prefetch(burst.found[burst.hits.at[at]].index);
    }
    uint64_t hits = 0;
    for (uint32_t at = 0; at < burst.hits.count; ++at) {
        const uint32_t i = burst.hits.at[at];
        const Passage passage(ctx, burst, i);
        const Tracked tracked = track_one(ctx, burst, i);
        passage.count(ctx);
        if (tracked == Tracked::GoesOn) [[likely]] {
            send_one(ctx, burst, i);
            ++hits;
        } else if (tracked == Tracked::Reopens) {
            burst.reopening.add(i);
        }
    }
    ctx.count()[stats::Counter::ConnectionHits].add(hits);
}

}  // namespace

void run_counted_stages(WorkerContext& ctx, Burst& burst) noexcept {
    run_in_order<serve_counted_hits, follow_counted_fragments>(ctx, burst);
}

}  // namespace penstock::pipeline
