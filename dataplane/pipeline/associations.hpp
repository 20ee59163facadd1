// SCTP associations on their way through a worker. They are found, opened and counted like other flows; what is theirs alone, the tags, the
// checksum and the ABORTs, is here and costs TCP and UDP nothing.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// What becomes of a packet of a known connection. A SYN or an INIT on a finished one is a miss, and ends it later: new_flow, once the
// packets of this burst that belong to it have left.
enum class Tracked : uint8_t { GoesOn, IsSettled, IsMiss };

// Packet i of the association found[i]: tracked, counted, translated and forwarded, or dropped. IsMiss, or IsSettled.
PENSTOCK_NOINLINE Tracked serve_association(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// Packet i, whose association is found[i], leaves: as send_one() (translate.hpp).
PENSTOCK_NOINLINE void send_association(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// Tells both ends of an association that it is over, as far as their tags are known.
void abort_both_sides(WorkerContext& ctx, ConnectionIndex index) noexcept;

}  // namespace penstock::pipeline
