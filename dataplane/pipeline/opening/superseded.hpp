// SPDX-License-Identifier: Apache-2.0
// Ends connections of this gateway that the other gateway of the share serves by now, as control orders it
// (copies::Store::order_end): the entry is idle here, and hides the copy of the connection, or of a later one
// of its client tuple. No packet is sent about it. The next packet takes the copy over
// (opening/take_over.hpp).
#pragma once

namespace penstock::pipeline {

struct WorkerContext;

// Some of the orders. Leaves connections alone that a packet has renewed meanwhile. Needs ctx.copies.
void end_superseded(WorkerContext& ctx) noexcept;

}  // namespace penstock::pipeline
