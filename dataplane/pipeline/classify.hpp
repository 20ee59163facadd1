// Stage 2: what is this packet? Parses each frame and settles those that no flow can claim: frames not for us, broken ones, and
// everything that Linux handles (ARP, NDP, ICMP, multicast, fragments to the host).
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Afterwards a packet with Verdict::None is a whole TCP or UDP packet with a valid key, in `flows` or `host_flows`, or a fragment that may
// be of one, in `fragments`.
void classify(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
