// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/hits.hpp"

#include "dataplane/pipeline/flow_records.hpp"
#include "dataplane/pipeline/track.hpp"
#include "dataplane/pipeline/translate.hpp"

namespace penstock::pipeline {

void serve_hits(WorkerContext& ctx, Burst& burst) noexcept {
    HitHops hops;
    find_hops(ctx, burst, hops);
    uint64_t hits = 0;
    for (uint32_t at = 0; at < burst.hits.count; ++at) {
        const uint32_t i = burst.hits.at[at];
        const Tracked tracked = track_one(ctx, burst, i);
        if (tracked == Tracked::GoesOn) [[likely]] {
            send_by(ctx, burst, i, hops[at]);
            ++hits;
        } else if (tracked == Tracked::Reopens) {
            burst.reopening.add(i);
        }
    }
    ctx.count()[stats::Counter::ConnectionHits].add(hits);
}

Tracked serve_late_hit(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const Passage passage(ctx, burst, i);
    const Tracked tracked = track_one(ctx, burst, i);
    if (ctx.flow_log != nullptr) [[unlikely]] {
        passage.count(ctx);
    }
    if (tracked == Tracked::GoesOn) {
        ctx.count()[stats::Counter::ConnectionHits].add(1);
        send_one(ctx, burst, i);
    }
    return tracked;
}

}  // namespace penstock::pipeline
