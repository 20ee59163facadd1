// SPDX-License-Identifier: Apache-2.0
// MSS clamping, if configured (`--port ...;mss=N`), for a link with a smaller MTU than both ends assume, such
// as an overlay, on a path that drops the ICMP errors which would report it.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// If packet i is a TCP segment with SYN, lowers its MSS option to what both its arrival port and its egress
// port allow. A segment with data that exceeds the MTU is left unchanged, since it does not leave. Its
// connection is found[i]; it is not translated yet.
PENSTOCK_NOINLINE void lower_offered_mss(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
