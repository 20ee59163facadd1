#include "dataplane/pipeline/stages.hpp"

#include "dataplane/pipeline/classify.hpp"
#include "dataplane/pipeline/conn_lookup.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/new_flow.hpp"
#include "dataplane/pipeline/track.hpp"
#include "dataplane/pipeline/translate.hpp"

namespace penstock::pipeline {

void run_stages(WorkerContext& ctx, Burst& burst) noexcept {
    classify(ctx, burst);
    conn_lookup(ctx, burst);
    track(ctx, burst);
    // Before new_flow, which may give up a connection of this burst to make room in a full table: its packets have left by then.
    translate(ctx, burst);
    new_flow(ctx, burst);
    forward(ctx, burst);
}

}  // namespace penstock::pipeline
