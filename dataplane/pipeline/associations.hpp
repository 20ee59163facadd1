// SPDX-License-Identifier: Apache-2.0
// SCTP associations in the packet path. They are looked up, opened and counted like other flows. This unit
// holds what is specific to SCTP (tags, checksum, ABORTs), so that TCP and UDP pay nothing for it.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Result of tracking a packet of a known connection. Reopens: a SYN or an INIT on a finished connection.
// new_flow ends that connection later, after the packets of this burst that belong to it have left.
enum class Tracked : uint8_t { GoesOn, HasVerdict, Reopens };

// Tracks packet i of the association found[i], and counts, translates and forwards it, or drops it. Returns
// Reopens or HasVerdict.
PENSTOCK_NOINLINE Tracked serve_association(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// Sends packet i, of association found[i]: as send_one() (translate.hpp).
PENSTOCK_NOINLINE void send_association(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// Aborts the association at both ends, as far as their tags are known.
void abort_both_sides(WorkerContext& ctx, ConnectionIndex index) noexcept;

}  // namespace penstock::pipeline
