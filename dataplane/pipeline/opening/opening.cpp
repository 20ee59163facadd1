// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/opening.hpp"

namespace penstock::pipeline {

const lb::Backend* choose_pinned(WorkerContext& ctx, const lb::Service& service, const lb::BackendSet& set,
                                 const packet::FlowKey& forward, lb::AffinityTable::Pin& pin) noexcept {
    const lb::AffinityTable::Question question =
        affinity_question(ctx, service, set, forward.source, ctx.now_coarse);
    lb::AffinityTable::Answer answer = ctx.affinity.find(question);
    const bool is_known = answer.position != lb::AffinityTable::Answer::kNone;
    if (!is_known) {
        answer = ctx.affinity.agree(question, lb::pick(service, set, forward, ctx.schedulers));
        ctx.count()[stats::Counter::AffinityEvictions].add(answer.evicted ? 1 : 0);
    }
    ctx.count()[is_known ? stats::Counter::AffinityHits : stats::Counter::AffinityMisses].add(1);
    pin = answer.pin;
    return &set.usable[answer.position];
}

}  // namespace penstock::pipeline
