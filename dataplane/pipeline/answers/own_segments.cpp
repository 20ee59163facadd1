// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/answers/own_segments.hpp"

#include "dataplane/packet/sctp.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {
namespace {

void ask_for(WorkerContext& ctx, NicPortId egress, const IpAddr& next_hop) noexcept {
    OwnSegments& own = ctx.own_segments;
    if (own.asked_for == next_hop && ticks_between(own.asked_at, ctx.now) < ctx.rate.seconds(1)) {
        return;
    }
    own.asked_for = next_hop;
    own.asked_at = ctx.now;
    ctx.resolve->push({egress, next_hop});
}

// `build` writes the frame and returns its length.
template <typename Build>
bool send_built(WorkerContext& ctx, const packet::FlowKey& key, Build&& build) noexcept {
    const auto add_segment = [&build](OwnSegments& own) -> OwnSegment& {
        OwnSegment& segment = own.at[own.count++];
        segment.length = build(segment.frame);
        segment.to_host = false;
        return segment;
    };
    ctx.count()[stats::Counter::SegmentsMade].add(1);
    OwnSegments& own = ctx.own_segments;
    if (own.room() == 0) {
        ctx.count()[DropReason::ResetLimited].add(1);
        return false;
    }
    const route::Hop* hop = ctx.snapshot->routes->hop(key.destination);
    if (hop == nullptr) {
        const NicPortId twin = twin_towards(*ctx.snapshot->routes, key.source);
        if (twin.is_set() && ctx.snapshot->routes->is_host_address(key.destination)) {
            OwnSegment& segment = add_segment(own);
            segment.to_host = true;
            segment.egress = twin;
            const MacAddr& mac = ctx.ports[twin.value].mac;
            store(segment.frame.data(), std::array{mac.bytes, mac.bytes});
            return true;
        }
        ctx.count()[DropReason::NoRoute].add(1);
        return false;
    }
    if (!hop->is_usable) {
        ask_for(ctx, hop->egress, hop->next_hop_of(key.destination));
        ctx.count()[DropReason::NextHopUnresolved].add(1);
        return false;
    }
    OwnSegment& segment = add_segment(own);
    segment.egress = hop->egress;
    store(segment.frame.data(), hop->ethernet_addresses);
    ctx.neighbour_use.note(hop->neighbour, ctx.now_s);
    return true;
}

}  // namespace

bool send_segment(WorkerContext& ctx, const packet::FlowKey& key, packet::SegmentNumbers numbers,
                  packet::TcpFlags flags) noexcept {
    return send_built(ctx, key, [&](std::span<uint8_t> frame) {
        return packet::build_segment(frame, key, numbers, flags);
    });
}

bool send_abort(WorkerContext& ctx, const packet::FlowKey& key, uint32_t tag) noexcept {
    return send_built(ctx, key,
                      [&](std::span<uint8_t> frame) { return packet::build_abort(frame, key, tag); });
}

}  // namespace penstock::pipeline
