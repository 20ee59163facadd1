// Echo requests. One to an address that only Services have is answered here, by the worker that it reaches (ICMP-007): it is no flow, and
// no endpoint ever sees it. The host's own addresses are Linux's, and so is a VIP that VIP presence has put on a twin.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i is an IcmpRole::EchoRequest.
void serve_echo(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
