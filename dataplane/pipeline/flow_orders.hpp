// SPDX-License-Identifier: Apache-2.0
// Ends flows by order of the control thread (conn/flow_order.hpp; docs/adr/0017). A worker processes the
// orders of the snapshot in slices, one a round. A UDP flow or an unanswered opening is erased, so that the
// next packet opens a new flow. A TCP connection is reset on both sides.
//
// The gateway does not track sequence numbers, so it obtains them from the two stacks. A probe, an
// unacceptable ACK, is answered by an ACK with the stack's current numbers (RFC 9293, 3.10.7.4). Each segment
// of a connection in state Resetting, that answer or any other, is turned into the RST that its sender must
// accept, and into one for the other side. The verification tags of an SCTP association are known: an ABORT
// to each side ends it, and each further packet is answered by another ABORT (associations.hpp).
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"

namespace penstock::pipeline {

struct Burst;
struct WorkerContext;

// Processes one slice. Returns the number of orders and connections visited; 0: nothing is due, or the limit
// of resets is reached.
uint32_t work_off_flow_orders(WorkerContext& ctx) noexcept;

// Packet i belongs to a connection in state Resetting and is not a RST: it becomes the RST for its sender,
// and the other side gets one too.
void reset_both_sides(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// For the sweep, which visits a connection in state Resetting or Aborting some seconds after its order.
// Probes or aborts it once more, in case the first segment was lost, could not leave, or was taken for the
// duplicate of a real ACK.
void end_again(WorkerContext& ctx, ConnectionIndex index) noexcept;

}  // namespace penstock::pipeline
