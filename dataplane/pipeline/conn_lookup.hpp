// Stage 3: find each packet's owner, and on the owner its connection.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packets whose connection lives on another worker get Verdict::Handoff; the others are looked up, the whole burst's memory accesses
// overlapping. A miss leaves found[i] without a hit, for new_flow.
void conn_lookup(WorkerContext& ctx, Burst& burst) noexcept;

// Packet i opens the tuple of a finished connection anew, which this worker had and has closed. Where the Service's source mode has changed
// since, the new connection is another worker's: true, and the packet is on its way there.
bool hand_to_opener(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
