#include "dataplane/pipeline/other_family.hpp"

#include <algorithm>

#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/own_errors.hpp"

namespace penstock::pipeline {
namespace {

constexpr uint16_t kIpv6MtuMin = 1280;  // RFC 8200, 5

// What of the packet, as it arrived, is too long for a hop that carries `mtu` bytes of the other family.
enum class TooLong : uint8_t { Cut, Tell };

TooLong too_long(ByteView frame, const packet::Parsed& parsed) noexcept {
    if (parsed.family == IpFamily::V4) {
        return packet::may_be_cut(frame, parsed) ? TooLong::Cut : TooLong::Tell;
    }
    // No sender of IPv6 is asked for shorter ones than these, so as IPv4 they may be cut (RFC 7915, 5.1).
    return parsed.l3_length <= kIpv6MtuMin ? TooLong::Cut : TooLong::Tell;
}

// The same MTU in the family of the packet that arrived (RFC 7915, 4.2 and 5.1).
uint16_t mtu_for_sender(IpFamily family, uint16_t mtu) noexcept {
    if (family == IpFamily::V4) {
        return static_cast<uint16_t>(mtu - std::min(mtu, packet::kFamilyHeaderDifference));
    }
    return static_cast<uint16_t>(std::clamp(mtu + packet::kFamilyHeaderDifference, int{kIpv6MtuMin}, int{UINT16_MAX}));
}

}  // namespace

packet::MovableFrame frame_to_convert(const Burst& burst, uint32_t i) noexcept {
    return {.data = burst.data[i], .length = burst.length[i], .headroom = burst.headroom[i], .capacity = burst.capacity[i]};
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
    bool needs_cut = false;
    if (hop != nullptr && packet::bytes_in_other_family(parsed) > hop->mtu) {
        if (too_long(ByteView(burst.data[i], burst.length[i]), parsed) == TooLong::Tell) {
            return tell_too_big(ctx, burst, i, mtu_for_sender(parsed.family, hop->mtu), Frame::AsArrived);
        }
        needs_cut = parsed.family == IpFamily::V4;
    }
    packet::MovableFrame frame = frame_to_convert(burst, i);
    const packet::FamilyRewrite rewrite{.source = leaves.source,
                                        .destination = leaves.destination,
                                        .source_port = Be16::from_host(leaves.source_port),
                                        .destination_port = Be16::from_host(leaves.destination_port),
                                        .l4 = connection.l4_delta.inverse_if(static_cast<uint16_t>(flow.direction))};
    if (const auto converted = packet::to_other_family(frame, parsed, rewrite, ctx.next_ipv4_id(), needs_cut); !converted) {
        return burst.drop(i, converted.error());
    }
    take_converted(burst, i, frame);
    forward_one(ctx, burst, i, leaves.destination, static_cast<uint16_t>(burst.length[i] - parsed.l3_offset));
}

}  // namespace penstock::pipeline
