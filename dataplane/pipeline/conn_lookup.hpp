// Stage 3: find each packet's owner, and on the owner its connection.
#pragma once

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

// Packets whose connection lives on another worker get Verdict::Handoff; the others are looked up, the whole burst's memory accesses
// overlapping. A miss leaves found[i] without a hit, for new_flow.
void conn_lookup(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
