// SPDX-License-Identifier: Apache-2.0
// Stage 3: computes each packet's owner and, on the owner, looks up its connection.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packets of connections owned by another worker get Verdict::Handoff. The others are looked up, with the
// memory accesses of the whole burst overlapping. A miss leaves found[i] without a hit, for new_flow.
void conn_lookup(WorkerContext& ctx, Burst& burst) noexcept;

// Packet i reuses the tuple of a finished connection that this worker owned and has closed. If the Service's
// source mode has changed since then, another worker owns the new connection. Returns true in that case: the
// packet is handed to that worker.
bool hand_to_opener(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// Packet i was handed to this worker as the owner of its connection (kTriesMoved), and the worker has none.
// Hands it to its last candidate, which may open a flow. False: that is this worker.
bool hand_back(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
