// SPDX-License-Identifier: Apache-2.0
// Refusal of a packet that opens no flow: a TCP RST, a port unreachable or an SCTP ABORT to its sender
// (packet/answers/reject.hpp), or a drop. Both are counted at the Service.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Drops packet i and counts it at the Service of `frontend`, if there is one.
inline void drop_counted(WorkerContext& ctx, Burst& burst, uint32_t i, const lb::FrontendRow* frontend,
                         DropReason reason) noexcept {
    burst.drop(i, reason);
    if (frontend != nullptr) {
        ctx.counters.services[frontend->service->id.value].dropped.add(1);
        if (reason == DropReason::SnatPortsExhausted) {
            ctx.count().exhausted.note(frontend->service->id);
        }
    }
}

// Turns packet i, which is as it arrived, into its own answer, addressed to the client. `frontend`: of the
// packet's destination, or null.
void reject(WorkerContext& ctx, Burst& burst, uint32_t i, const lb::FrontendRow* frontend) noexcept;

}  // namespace penstock::pipeline
