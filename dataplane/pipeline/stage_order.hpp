// SPDX-License-Identifier: Apache-2.0
// The order of the stages between receive and disposal, in one place, for the functions that run them
// (stages.hpp, counted_stages.hpp).
#pragma once

#include "dataplane/pipeline/blocked.hpp"
#include "dataplane/pipeline/classify.hpp"
#include "dataplane/pipeline/conn_lookup.hpp"
#include "dataplane/pipeline/fragments/fragments.hpp"
#include "dataplane/pipeline/icmp/icmp.hpp"
#include "dataplane/pipeline/ip_options.hpp"
#include "dataplane/pipeline/opening/new_flow.hpp"

namespace penstock::pipeline {

using Stage = void (*)(WorkerContext&, Burst&) noexcept;

template <Stage serve_known, Stage follow>
PENSTOCK_ALWAYS_INLINE void run_in_order(WorkerContext& ctx, Burst& burst) noexcept {
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
    serve_known(ctx, burst);
    new_flow(ctx, burst);
    if (burst.fragments.count > 0) [[unlikely]] {
        follow(ctx, burst);
    }
}

}  // namespace penstock::pipeline
