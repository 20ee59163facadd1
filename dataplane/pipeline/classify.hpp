// SPDX-License-Identifier: Apache-2.0
// Stage 2: parses each frame and decides the packets that cannot belong to a flow: frames for other
// destinations, malformed ones, and everything that Linux handles (ARP, NDP, ICMP, multicast, fragments to
// the host). ARP and NDP about VIPs that workers answer for are left to serve_icmp.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Afterwards a packet with Verdict::None is a whole TCP or UDP packet with a valid key, in `flows` or
// `host_flows`, or a fragment that may belong to one, in `fragments`.
void classify(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
