// Stage 6: route, neighbour, Ethernet header. A packet whose next hop is unknown is held while Linux is asked.
#pragma once

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

void forward(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
