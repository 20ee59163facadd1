// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/strays.hpp"

#include <algorithm>
#include <cstddef>

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/answers/own_errors.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/opening/reverse_path.hpp"

namespace penstock::pipeline {
namespace {

using shares::Strays;

// A gateway that is not on a link would be reached through a router, which would send the packet back here:
// its destination is still the VIP.
bool is_on_link(const route::Hop& hop, const IpAddr& link) noexcept {
    return hop.is_destination || hop.address == link;
}

bool has_failed(const route::RouteTable& routes, const route::Hop& hop) noexcept {
    return hop.neighbour_index != route::Hop::kNoNeighbour &&
           routes.neighbours()[hop.neighbour_index].state == route::NeighbourState::Failed;
}

StrayState examine(const config::Snapshot& snapshot, const Strays::Gateway& gateway,
                   const route::Hop* hop) noexcept {
    if (!gateway.takes_strays) {
        return StrayState::Away;
    }
    if (hop == nullptr || !is_on_link(*hop, gateway.link)) {
        return StrayState::NotOnLink;
    }
    return has_failed(*snapshot.routes, *hop) ? StrayState::Unanswered : StrayState::Reached;
}

// Whether the frame has come from the gateway that it would be sent to.
bool is_from_target(const StrayHop& next, const uint8_t* frame) noexcept {
    const auto sender = load<MacAddr>(frame + offsetof(packet::EthernetHeader, source));
    return next.hop->is_usable &&
           std::equal(sender.bytes.begin(), sender.bytes.end(), next.hop->ethernet_addresses.begin());
}

void send_stray(WorkerContext& ctx, Burst& burst, uint32_t i, const StrayHop& next) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (parsed.ttl <= 1) {
        return burst.drop(i, DropReason::StrayTtl);
    }
    if (!can_go_by(*next.hop, burst.data[i], parsed)) {
        return send_too_big(ctx, burst, i, next.hop->mtu, Frame::AsArrived);
    }
    packet::pass_hop(burst.data[i], parsed);
    forward_by(ctx, burst, i, next.hop, ctx.snapshot->strays->gateway(next.gateway)->link, parsed.l3_length);
    ctx.count()[stats::Counter::StraysForwarded].add(1);
}

// Requests the resolution of candidates whose neighbour entry has failed: no packet is sent to them, so
// nothing else would.
void request_resolution(WorkerContext& ctx, const Strays::Candidates& candidates) noexcept {
    const Strays& strays = *ctx.snapshot->strays;
    for (const Strays::GatewayNumber number : candidates.gateways) {
        const Strays::Gateway* const gateway = strays.gateway(number);
        if (gateway == nullptr || strays.is_self(number)) {
            return;
        }
        const route::Hop* const hop = ctx.snapshot->routes->hop(gateway->link);
        const StrayState state = examine(*ctx.snapshot, *gateway, hop);
        if (state == StrayState::Reached) {
            return;
        }
        if (state == StrayState::Unanswered &&
            ctx.unheld_asks.ask(UnheldAsks::Kind::Configured, hop->egress, gateway->link,
                                ctx.owner.client_hash(gateway->link), ctx.now)) {
            ctx.resolve->push({hop->egress, gateway->link});
        }
    }
}

// False: the packet is served here.
bool send_if_stray(WorkerContext& ctx, Burst& burst, uint32_t i,
                   const Strays::Candidates& candidates) noexcept {
    const std::optional<StrayHop> next = stray_hop(*ctx.snapshot, candidates);
    if (!next || next->gateway != candidates.gateways[0]) {
        request_resolution(ctx, candidates);
    }
    if (!next) {
        return false;
    }
    if (is_from_target(*next, burst.data[i])) {
        ctx.count()[stats::Counter::StraysReturned].add(1);
        return false;
    }
    send_stray(ctx, burst, i, *next);
    return true;
}

// The candidates by the destination alone. `snapshot` has strays.
std::optional<Strays::Candidates> candidates_of_destination(const config::Snapshot& snapshot,
                                                            const packet::FlowKey& key) noexcept {
    if (auto candidates = snapshot.strays->of_snat(key.destination, key.destination_port)) {
        return candidates;
    }
    return snapshot.services->is_vip(key.destination)
               ? std::optional(snapshot.strays->of_vip(key.destination, key.source))
               : std::nullopt;
}

bool is_of_host(const config::Snapshot& snapshot, const packet::FlowKey& key) noexcept {
    return snapshot.routes->is_local(key.destination) || snapshot.routes->is_local_source(key.source);
}

}  // namespace

const char* to_string(StrayState state) noexcept {
    switch (state) {
        case StrayState::Reached:
            break;
        case StrayState::Away:
            return "away";
        case StrayState::NotOnLink:
            return "not on a link";
        case StrayState::Unanswered:
            return "does not answer";
    }
    return "yes";
}

StrayState stray_state(const config::Snapshot& snapshot, const Strays::Gateway& gateway) noexcept {
    return examine(snapshot, gateway, snapshot.routes->hop(gateway.link));
}

std::optional<Strays::Candidates> candidates_of(const config::Snapshot& snapshot,
                                                const packet::FlowKey& key) noexcept {
    if (snapshot.strays == nullptr || is_of_host(snapshot, key)) {
        return std::nullopt;
    }
    return candidates_of_destination(snapshot, key);
}

std::optional<StrayHop> stray_hop(const config::Snapshot& snapshot,
                                  const Strays::Candidates& candidates) noexcept {
    const Strays& strays = *snapshot.strays;
    for (const Strays::GatewayNumber number : candidates.gateways) {
        if (strays.is_self(number)) {
            return std::nullopt;
        }
        const Strays::Gateway* const gateway = strays.gateway(number);
        if (gateway == nullptr) {
            continue;
        }
        const route::Hop* const hop = snapshot.routes->hop(gateway->link);
        if (examine(snapshot, *gateway, hop) == StrayState::Reached) {
            return StrayHop{number, hop};
        }
    }
    return std::nullopt;
}

bool may_be_forwarded(const config::Snapshot& snapshot, const packet::FlowKey& key,
                      NicPortId arrival) noexcept {
    return !snapshot.services->is_vip(key.destination) ||
           source_path(snapshot, key.source, arrival) == SourcePath::Ok;
}

bool precedes_copies(const config::Snapshot& snapshot, const packet::FlowKey& key) noexcept {
    const std::optional<Strays::Candidates> candidates = candidates_of(snapshot, key);
    return candidates && candidates->is_spread && stray_hop(snapshot, *candidates);
}

bool forward_if_stray(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const Arrival& arrival = burst.arrival[i];
    const packet::FlowKey& key = burst.parsed[i].key;
    if (arrival.note.from_host) {
        return false;
    }
    const std::optional<Strays::Candidates> candidates = candidates_of_destination(*ctx.snapshot, key);
    // Most packets are those of own shares: they need no further examination.
    return candidates && !ctx.snapshot->strays->is_self(candidates->gateways[0]) &&
           !is_of_host(*ctx.snapshot, key) && may_be_forwarded(*ctx.snapshot, key, arrival.port) &&
           send_if_stray(ctx, burst, i, *candidates);
}

void forward_strays(WorkerContext& ctx, Burst& burst) noexcept {
    PacketList left;
    for (uint32_t at = 0; at < burst.misses.count; ++at) {
        const uint32_t i = burst.misses.at[at];
        if (!forward_if_stray(ctx, burst, i)) {
            left.add(i);
        }
    }
    burst.misses = left;
}

bool forward_stray_error(WorkerContext& ctx, Burst& burst, uint32_t i,
                         const packet::FlowKey& quoted) noexcept {
    // The error travels as packets in the other direction do.
    const packet::FlowKey answer = quoted.reversed();
    if (burst.arrival[i].note.from_host ||
        ctx.snapshot->routes->is_local_source(burst.parsed[i].key.source)) {
        return false;
    }
    const std::optional<Strays::Candidates> candidates = candidates_of(*ctx.snapshot, answer);
    return candidates && send_if_stray(ctx, burst, i, *candidates);
}

Strays::GatewayNumber stray_gateway_of(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (ctx.snapshot->strays == nullptr || burst.arrival[i].note.from_host ||
        parsed.kind != packet::PacketKind::Flow || burst.found[i].is_hit() ||
        !may_be_forwarded(*ctx.snapshot, parsed.key, burst.arrival[i].port)) {
        return Strays::kNone;
    }
    const std::optional<Strays::Candidates> candidates = candidates_of(*ctx.snapshot, parsed.key);
    const std::optional<StrayHop> next = candidates ? stray_hop(*ctx.snapshot, *candidates) : std::nullopt;
    return next ? next->gateway : Strays::kNone;
}

void forward_stray_fragment(WorkerContext& ctx, Burst& burst, uint32_t i,
                            Strays::GatewayNumber gateway) noexcept {
    // The plan may have changed since the first fragment.
    const Strays* const strays = ctx.snapshot->strays.get();
    const Strays::Gateway* const to = strays == nullptr ? nullptr : strays->gateway(gateway);
    const route::Hop* const hop = to == nullptr ? nullptr : ctx.snapshot->routes->hop(to->link);
    if (to == nullptr || examine(*ctx.snapshot, *to, hop) != StrayState::Reached) {
        return burst.drop(i, DropReason::Fragment);
    }
    send_stray(ctx, burst, i, {gateway, hop});
}

}  // namespace penstock::pipeline
