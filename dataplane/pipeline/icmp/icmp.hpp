// SPDX-License-Identifier: Apache-2.0
// Stage for ICMP, behind the blocklist: errors about flows, echo requests to addresses of Services, and
// messages about VIPs that workers answer for (answers/link.hpp; ARP too). classify has already decided all
// other ICMP packets.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

PENSTOCK_NOINLINE void serve_icmp(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
