// SPDX-License-Identifier: Apache-2.0
// Packets of flows with a client and an endpoint of different families (ANN-32) are converted to the other
// family. Only the connection marks such a flow (conn::Entry::is_mixed), so other flows pay at most one test.
// A mixed flow always uses full NAT.
//
// Errors to the sender of a packet are sent before the conversion, because they quote the content of the
// frame. Afterwards parsed[i] describes the packet as it arrived, and only the frame holds the packet that
// leaves.
#pragma once

#include "dataplane/packet/other_family.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Converts packet i, a Flow or a later Fragment of the mixed `flow` (RFC 7915), and forwards it to the
// resulting destination. A packet that exceeds the MTU of the route there leaves in fragments if its sender
// allows it; otherwise an ICMP error is sent. IPv4 without DF is also fragmented if it exceeds the minimum
// MTU of IPv6.
PENSTOCK_NOINLINE void send_to_other_family(WorkerContext& ctx, Burst& burst, uint32_t i,
                                            conn::Found flow) noexcept;

// Whether a packet to be converted, as `frame` holds it, may leave by `hop`, whole or in fragments. If not,
// an ICMP error will be sent to its sender.
[[nodiscard]] bool can_go_by_converted(const route::Hop& hop, ByteView frame,
                                       const packet::Parsed& parsed) noexcept;

// The frame of packet i and the room around it, for conversion; and back after the conversion.
[[nodiscard]] packet::MovableFrame frame_to_convert(const Burst& burst, uint32_t i) noexcept;
void take_converted(Burst& burst, uint32_t i, const packet::MovableFrame& converted) noexcept;

}  // namespace penstock::pipeline
