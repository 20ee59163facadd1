// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/counted_stages.hpp"

#include "dataplane/pipeline/flow_records.hpp"
#include "dataplane/pipeline/latency.hpp"
#include "dataplane/pipeline/stage_order.hpp"
#include "dataplane/pipeline/stages.hpp"
#include "dataplane/pipeline/track.hpp"
#include "dataplane/pipeline/translate.hpp"

namespace penstock::pipeline {
namespace {

// As serve_hits(). kCounts: counts for flow records. kMeasures: measures latencies.
template <bool kCounts, bool kMeasures>
void serve_watched_hits(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t at = 0; at < burst.hits.count; ++at) {
        const ConnectionIndex index = burst.found[burst.hits.at[at]].index;
        if constexpr (kCounts) {
            ctx.flow_log->prefetch(index);
        }
        if constexpr (kMeasures) {
            ctx.latency->prefetch(index);
        }
    }
    HitHops hops;
    find_hops(ctx, burst, hops);
    uint64_t hits = 0;
    for (uint32_t at = 0; at < burst.hits.count; ++at) {
        const uint32_t i = burst.hits.at[at];
        const auto track = [&]() PENSTOCK_INLINE_LAMBDA {
            if constexpr (kCounts) {
                const Passage passage(ctx, burst, i);
                const Tracked result = track_one(ctx, burst, i);
                passage.count(ctx);
                return result;
            } else {
                return track_one(ctx, burst, i);
            }
        };
        const Tracked tracked = track();
        if (tracked == Tracked::GoesOn) [[likely]] {
            if constexpr (kMeasures) {
                if (ctx.latency->is_waiting(burst.found[i].index)) [[unlikely]] {
                    measure_latency(ctx, burst, i);
                }
            }
            send_by(ctx, burst, i, hops[at]);
            ++hits;
        } else if (tracked == Tracked::Reopens) {
            burst.reopening.add(i);
        }
    }
    ctx.count()[stats::Counter::ConnectionHits].add(hits);
}

template <bool kCounts, bool kMeasures>
void run_watched_stages(WorkerContext& ctx, Burst& burst) noexcept {
    run_in_order<serve_watched_hits<kCounts, kMeasures>,
                 kCounts ? follow_counted_fragments : follow_fragments>(ctx, burst);
    if constexpr (kMeasures) {
        start_latencies(ctx, burst);
    }
}

}  // namespace

RunStages stages_of(const WorkerContext& ctx) noexcept {
    if (ctx.latency != nullptr) {
        return ctx.flow_log != nullptr ? run_watched_stages<true, true> : run_watched_stages<false, true>;
    }
    return ctx.flow_log != nullptr ? run_watched_stages<true, false> : run_stages;
}

}  // namespace penstock::pipeline
