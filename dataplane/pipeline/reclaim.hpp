// SNAT ports that have run out: where every port towards an endpoint is taken, a connection that a full table would evict gives up its port
// for a new flow (docs/adr/0009).
#pragma once

#include "dataplane/nat/source_search.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// A source for packet i, the first of a flow to `endpoint` for which `search` has found none: closes the connection that holds it. Null: of
// the ports that were looked at none may be had. Bounded: kPortsLookedAt of the ports that were handed out longest ago, over all addresses.
[[nodiscard]] PENSTOCK_NOINLINE const nat::Source* reclaim_source(WorkerContext& ctx, const Burst& burst,
                                                                  uint32_t i, const lb::Backend& endpoint,
                                                                  nat::SourceSearch& search) noexcept;

// Packet i is a FIN of the client's of connection found[i], not translated yet, and the connection is closing now. Keeps how far the client
// has come, for passes_time_wait().
PENSTOCK_NOINLINE void note_finish(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
