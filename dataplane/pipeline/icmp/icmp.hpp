// Stage for ICMP, behind the blocklist: errors about flows, and echo requests to Services' addresses. All else of ICMP was settled by
// classify.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

PENSTOCK_NOINLINE void serve_icmp(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
