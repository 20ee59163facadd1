// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/stages.hpp"

#include "dataplane/pipeline/blocked.hpp"
#include "dataplane/pipeline/classify.hpp"
#include "dataplane/pipeline/conn_lookup.hpp"
#include "dataplane/pipeline/fragments/fragments.hpp"
#include "dataplane/pipeline/hits.hpp"
#include "dataplane/pipeline/icmp/icmp.hpp"
#include "dataplane/pipeline/ip_options.hpp"
#include "dataplane/pipeline/opening/new_flow.hpp"

namespace penstock::pipeline {

void run_stages(WorkerContext& ctx, Burst& burst) noexcept {
    classify(ctx, burst);
    if (!ctx.snapshot->packets.passes_ip_options) [[unlikely]] {
        drop_options(ctx, burst);
    }
    if (const route::PrefixSet* blocked = ctx.snapshot->blocked_sources.get(); blocked != nullptr)
        [[unlikely]] {
        drop_blocked(*blocked, burst);
    }
    if (burst.icmp.count > 0) [[unlikely]] {
        serve_icmp(ctx, burst);
    }
    if (burst.fragments.count > 0) [[unlikely]] {
        take_fragments(ctx, burst);
    }
    conn_lookup(ctx, burst);
    serve_hits(ctx, burst);
    new_flow(ctx, burst);
    if (burst.fragments.count > 0) [[unlikely]] {
        follow_fragments(ctx, burst);
    }
}

}  // namespace penstock::pipeline
