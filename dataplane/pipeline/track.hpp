// Between lookup and new_flow: what a packet does to the connection it belongs to. TCP state advances, idle time starts again, the
// Service's counters move. A SYN on a finished connection ends the old one and turns the packet into a miss.
#pragma once

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

void track(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
