// MSS clamping, where an operator asks for it (`--port ...;mss=N`): a link that is narrower than its ends believe, such as an overlay's,
// and on the way to which somebody drops the ICMP errors that would say so.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Lowers what packet i offers, if it is a TCP segment with SYN, to what the port that it came by and the port that it will leave by allow.
// One with data that exceeds its way stays as it is, since it does not leave. Its connection is found[i]; it is not translated yet.
PENSTOCK_NOINLINE void lower_offered_mss(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
