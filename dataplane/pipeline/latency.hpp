// SPDX-License-Identifier: Apache-2.0
// Measures the latencies of TCP connections: connect (the client's SYN to the endpoint's SYN-ACK) and first
// byte (the client's first payload, or the end of the handshake, to the endpoint's first payload). All times
// are those of the worker's rounds. Call these functions only if ctx.latency is set.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Behind new_flow(): the connections that it has opened in this burst begin to wait.
void start_latencies(WorkerContext& ctx, const Burst& burst) noexcept;

// Packet i passes, has been tracked, and is not translated yet. Its connection found[i] waits.
PENSTOCK_NOINLINE void measure_latency(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
