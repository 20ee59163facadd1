// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/other_family.hpp"

#include <algorithm>

#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/answers/own_errors.hpp"
#include "dataplane/pipeline/forward.hpp"

namespace penstock::pipeline {
namespace {

// The size to which longer IPv4 packets without DF are fragmented. Their sender does not discover the path
// MTU, and over IPv6 no router behind the gateway may fragment them, so the size is the minimum that every
// link carries (RFC 7915, 4).
uint16_t cut_to(const route::Hop& hop) noexcept {
    return std::min(hop.mtu, packet::kIpv6MtuMin);
}

// The same MTU in the family of the packet as it arrived (RFC 7915, 4.2 and 5.1).
uint16_t mtu_for_sender(const packet::Parsed& parsed, uint16_t mtu) noexcept {
    if (parsed.family == IpFamily::V4) {
        const size_t longer =
            packet::kFamilyHeaderDifference + (parsed.is_fragment ? sizeof(packet::Ipv6ExtensionHeader) : 0);
        return static_cast<uint16_t>(mtu - std::min<size_t>(mtu, longer));
    }
    return static_cast<uint16_t>(
        std::clamp(mtu + packet::kFamilyHeaderDifference, int{packet::kIpv6MtuMin}, int{UINT16_MAX}));
}

}  // namespace

// IPv6 senders are never required to send less than 1,280 bytes, so such packets may be fragmented as IPv4
// (RFC 7915, 5.1).
bool can_go_by_converted(const route::Hop& hop, ByteView frame, const packet::Parsed& parsed) noexcept {
    const bool may_be_cut = parsed.family == IpFamily::V4 ? packet::may_be_cut(frame, parsed)
                                                          : parsed.l3_length <= packet::kIpv6MtuMin;
    return may_be_cut || packet::bytes_in_other_family(parsed) <= hop.mtu;
}

packet::MovableFrame frame_to_convert(const Burst& burst, uint32_t i) noexcept {
    return {.data = burst.data[i],
            .length = burst.length[i],
            .headroom = burst.headroom[i],
            .capacity = burst.capacity[i]};
}

void take_converted(Burst& burst, uint32_t i, const packet::MovableFrame& converted) noexcept {
    burst.moved.add(i);
    burst.data[i] = converted.data;
    burst.length[i] = converted.length;
    burst.headroom[i] = converted.headroom;
    burst.capacity[i] = converted.capacity;
}

void send_to_other_family(WorkerContext& ctx, Burst& burst, uint32_t i, conn::Found flow) noexcept {
    const conn::Entry& connection = ctx.connections.at(flow.index);
    PENSTOCK_ASSERT(connection.is_mixed());
    const packet::Parsed& parsed = burst.parsed[i];
    const packet::FlowKey leaves = connection.key(conn::opposite(flow.direction)).reversed();
    const route::Hop* const hop = ctx.snapshot->routes->hop(leaves.destination);
    const ByteView arrived(burst.data[i], burst.length[i]);
    if (hop != nullptr && !can_go_by_converted(*hop, arrived, parsed)) {
        return send_too_big(ctx, burst, i, mtu_for_sender(parsed, hop->mtu), Frame::AsArrived);
    }
    const bool is_cut = hop != nullptr && packet::may_be_cut(arrived, parsed) &&
                        packet::bytes_in_other_family(parsed) > cut_to(*hop);
    packet::MovableFrame frame = frame_to_convert(burst, i);
    const packet::FamilyRewrite rewrite{
        .source = leaves.source,
        .destination = leaves.destination,
        .source_port = Be16::from_host(leaves.source_port),
        .destination_port = Be16::from_host(leaves.destination_port),
        .l4 = connection.l4_delta.inverse_if(static_cast<uint16_t>(flow.direction)),
        .protocol = connection.protocol};
    const uint16_t id = ctx.next_ipv4_id(leaves.destination);
    if (const auto converted = packet::to_other_family(frame, parsed, rewrite, id, is_cut); !converted) {
        return burst.drop(i, converted.error());
    }
    take_converted(burst, i, frame);
    if (is_cut) {
        route::Hop narrow = *hop;
        narrow.mtu = cut_to(*hop);
        return exceed_mtu(ctx, burst, i, narrow, leaves.destination);
    }
    forward_one(ctx, burst, i, leaves.destination, static_cast<uint16_t>(burst.length[i] - parsed.l3_offset));
}

}  // namespace penstock::pipeline
