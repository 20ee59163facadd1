// SPDX-License-Identifier: Apache-2.0
// Mid-stream pick-up: a TCP connection that another gateway has opened continues here (REJ-005).
#pragma once

#include "dataplane/pipeline/opening/admit.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Picks up the connection of packet i. The endpoint identifies it by the client's own address and port. If
// these cannot be kept, the client gets a RST: the endpoint is the client itself, or the client's socket
// already has a flow to it through another frontend.
PENSTOCK_NOINLINE void pick_up(WorkerContext& ctx, Burst& burst, uint32_t i,
                               const Admission& admission) noexcept;

}  // namespace penstock::pipeline
