// Between lookup and translate: what a packet does to the connection it belongs to. TCP state advances, idle time starts again, the
// Service's counters move. A SYN on a finished connection becomes a miss, with found[i] still a hit: new_flow ends the old connection once
// the packets of this burst that belong to it have been translated.
#pragma once

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

void track(WorkerContext& ctx, Burst& burst) noexcept;

// The same for one packet whose found[i] is fresh: new_flow's, for packets whose connection was opened earlier in their own burst. False
// where the packet has become a miss; else it is dropped or goes on.
[[nodiscard]] bool track_packet(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
