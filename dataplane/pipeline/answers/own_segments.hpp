// SPDX-License-Identifier: Apache-2.0
// Builds segments that a worker originates: probes, RSTs and ABORTs for the side that has not sent the packet
// being served. They are collected until the end of the round (state/own_segment_list.hpp).
#pragma once

#include <cstdint>

#include "dataplane/packet/answers/reset.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::pipeline {

struct WorkerContext;

// Adds a segment from key.source to key.destination. Returns false if it cannot leave now: no room, no route,
// or a next hop that Linux still has to resolve. The segment is never held, because the hold queue is
// reserved for received packets. A caller that needs the segment sends it again.
bool send_segment(WorkerContext& ctx, const packet::FlowKey& key, packet::SegmentNumbers numbers,
                  packet::TcpFlags flags) noexcept;
// Same for an ABORT with the receiver's verification tag.
bool send_abort(WorkerContext& ctx, const packet::FlowKey& key, uint32_t tag) noexcept;

}  // namespace penstock::pipeline
