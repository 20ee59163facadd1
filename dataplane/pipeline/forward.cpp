// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/forward.hpp"

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/fragment.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/answers/own_errors.hpp"

namespace penstock::pipeline {
namespace {

// The source in the frame as it is now, after translation, possibly to the other family.
IpAddr source_in(const uint8_t* frame, const packet::Parsed& parsed) noexcept {
    const uint8_t* const header = frame + parsed.l3_offset;
    if (packet::ether_type(frame) == packet::kEtherTypeIpv4) {
        return IpAddr::v4(load<Be32>(header + offsetof(packet::Ipv4Header, source)));
    }
    return IpAddr::v6(load<std::array<uint8_t, 16>>(header + offsetof(packet::Ipv6Header, source)));
}

// An IPv4 packet without DF, or the result of converting one: send_to_other_family() has checked that. A
// packet that arrived as IPv6 is fragmented only by its sender, unless it is IPv4 now.
bool may_be_split(const uint8_t* frame, const packet::Parsed& parsed) noexcept {
    const uint8_t* const header = frame + parsed.l3_offset;
    if (packet::ether_type(frame) == packet::kEtherTypeIpv4) {
        const auto flags = load<Be16>(header + offsetof(packet::Ipv4Header, flags_and_offset));
        return (flags.host() & packet::Ipv4Header::kDontFragment) == 0;
    }
    return parsed.family == IpFamily::V4 &&
           header[offsetof(packet::Ipv6Header, next_header)] == packet::Ipv6ExtensionHeader::kFragment;
}

// Packet i is about to be fragmented. If its source has been translated, the fragments get an identification
// of the gateway's own, because two senders' ids may be the same (docs/adr/0025). A fragment has already got
// one, with the rest of its datagram (fragments.cpp).
void renumber(WorkerContext& ctx, Burst& burst, uint32_t i, const IpAddr& destination) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const bool is_flows = parsed.kind == packet::PacketKind::Flow && !burst.answers[i];
    if (parsed.is_fragment ||
        (is_flows && (!burst.found[i].is_hit() ||  // a stray (opening/strays.hpp)
                      keeps_source(ctx.connections.at(burst.found[i].index), burst.found[i].direction)))) {
        return;
    }
    packet::set_datagram_id(burst.data[i], ctx.next_datagram_id(destination));
}

}  // namespace

bool keeps_source(const conn::Entry& connection, conn::Direction direction) noexcept {
    return connection.source_kept && direction == conn::Direction::Forward;
}

bool can_go_by(const route::Hop& hop, const uint8_t* frame, const packet::Parsed& parsed) noexcept {
    return parsed.l3_length <= hop.mtu || may_be_split(frame, parsed);
}

// Linux may require that a packet arrives on the interface by which its answer would leave (rp_filter). So
// neither the twin of the arrival port nor the twin that has the address is always right.
NicPortId twin_towards(const route::RouteTable& routes, const IpAddr& source) noexcept {
    const route::Hop* const back = routes.hop(source);
    return back == nullptr ? NicPortId{} : back->egress;
}

void deliver_to_host(const WorkerContext& ctx, Burst& burst, uint32_t i, const IpAddr& destination) noexcept {
    const route::RouteTable& routes = *ctx.snapshot->routes;
    if (!routes.is_host_address(destination)) {
        return burst.drop(i, DropReason::NoRoute);
    }
    NicPortId& twin = burst.arrival[i].port;  // the port whose twin gets a punted packet
    if (const NicPortId back = twin_towards(routes, source_in(burst.data[i], burst.parsed[i]));
        back.is_set()) {
        twin = back;
    }
    store(burst.data[i], ctx.ports[twin.value].mac.bytes);
    burst.verdict[i] = Verdict::Punt;
}

void exceed_mtu(WorkerContext& ctx, Burst& burst, uint32_t i, const route::Hop& hop,
                const IpAddr& destination) noexcept {
    if (!may_be_split(burst.data[i], burst.parsed[i])) {
        return send_too_big(ctx, burst, i, hop.mtu, Frame::Translated);
    }
    renumber(ctx, burst, i, destination);
    burst.verdict[i] = Verdict::Split;
    burst.egress[i] = hop.egress;
    burst.split[i] = {hop.mtu, !hop.is_usable};
    if (!hop.is_usable) {
        burst.next_hop[i] = hop.next_hop_of(destination);
        return;
    }
    store(burst.data[i], hop.ethernet_addresses);
    ctx.neighbour_use.note(hop.neighbour, ctx.now_s);
}

}  // namespace penstock::pipeline
