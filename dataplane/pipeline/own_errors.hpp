// ICMP errors that the gateway itself sends about packets that it cannot forward (ICMP-004, ICMP-006): the packet becomes the error, in its
// own buffer, and goes back to its sender. ADR 0026 says from which address, and why.
//
// Never about ICMP, fragments other than the first, groups, and sources that name no single host; and no more often than the limit of all
// answers allows (REJ-003). What gets no answer is dropped for the reason that it could not be forwarded for, or for the limit.
#pragma once

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

// Packet i, whose time to live ends here. It is not translated yet.
PENSTOCK_NOINLINE void tell_expired(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// Packet i, which has been translated, exceeds `mtu` IP bytes and must not be cut.
PENSTOCK_NOINLINE void tell_too_big(WorkerContext& ctx, Burst& burst, uint32_t i, uint16_t mtu) noexcept;

}  // namespace penstock::pipeline
