// A flow whose client and endpoint are of different families (ANN-32) leaves as a packet of the other one. That it is one is known from its
// connection alone (conn::Entry::is_mixed), so that other flows pay a test at most; and such a flow is always source-translated.
//
// What can be told of a packet to its sender is told before it is converted: the error quotes what is still in the frame. Afterwards
// parsed[i] describes what arrived, and only the frame what leaves.
#pragma once

#include "dataplane/packet/other_family.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i, a Flow or a later Fragment of `flow`, which is mixed, leaves: converted (RFC 7915), and on its way to the destination that this
// gives it. Where it is too long for that way, it leaves in fragments if its sender allows it, else its sender is told; IPv4 that may be
// cut leaves in fragments also where it is too long for the least that IPv6 carries.
PENSTOCK_NOINLINE void send_to_other_family(WorkerContext& ctx, Burst& burst, uint32_t i,
                                            conn::Found flow) noexcept;

// Whether a packet that will be converted, as `frame` holds it, may leave by `hop`, whole or in fragments; otherwise its sender will be
// told.
[[nodiscard]] bool can_go_by_converted(const route::Hop& hop, ByteView frame,
                                       const packet::Parsed& parsed) noexcept;

// The frame of packet i and the room around it, for conversion; and back, when it has been converted.
[[nodiscard]] packet::MovableFrame frame_to_convert(const Burst& burst, uint32_t i) noexcept;
void take_converted(Burst& burst, uint32_t i, const packet::MovableFrame& converted) noexcept;

}  // namespace penstock::pipeline
