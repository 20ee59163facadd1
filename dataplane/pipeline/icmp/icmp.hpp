// SPDX-License-Identifier: Apache-2.0
// Stage for ICMP, behind the blocklist: errors about flows, and echo requests to addresses of Services.
// classify has already decided all other ICMP packets.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

PENSTOCK_NOINLINE void serve_icmp(WorkerContext& ctx, Burst& burst) noexcept;

}  // namespace penstock::pipeline
