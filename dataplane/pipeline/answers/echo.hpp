// SPDX-License-Identifier: Apache-2.0
// Echo requests. A request to an address that belongs only to Services is answered here, by the worker that
// receives it (ICMP-007). It is not a flow and never reaches an endpoint. Linux answers for the host's own
// addresses and for a VIP that VIP presence has put on a twin.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i is an IcmpRole::EchoRequest.
void serve_echo(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
