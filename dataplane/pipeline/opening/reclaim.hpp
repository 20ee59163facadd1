// SPDX-License-Identifier: Apache-2.0
// Handles exhausted SNAT ports: if every port towards an endpoint is taken, a connection that a full table
// would evict gives its port to a new flow (docs/adr/0009).
#pragma once

#include "dataplane/nat/source_search.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Returns a source for packet i, the first of a flow to `endpoint` for which `search` has found none, and
// closes the connection that holds it. Null if none of the examined ports is available. Bounded: examines the
// kPortsLookedAt ports that were allocated longest ago, over all addresses.
[[nodiscard]] PENSTOCK_NOINLINE const nat::Source* reclaim_source(WorkerContext& ctx, const Burst& burst,
                                                                  uint32_t i, const lb::Backend& endpoint,
                                                                  nat::SourceSearch& search) noexcept;

// Packet i is a FIN from the client of connection found[i], not translated yet, and the connection is now
// closing. Records the client's sequence number and TCP timestamp for conn::passes_time_wait(). If both FIN
// and SYN have a timestamp and these differ, the timestamps decide; otherwise the sequence numbers do
// (RFC 6191, 2).
PENSTOCK_NOINLINE void note_finish(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
