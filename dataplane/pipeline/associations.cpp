// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/associations.hpp"

#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/packet/answers/reject.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/sctp.hpp"
#include "dataplane/pipeline/answers/own_segments.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/other_family.hpp"

namespace penstock::pipeline {
namespace {

using conn::Direction;
using stats::Counter;

template <packet::WireAddress Address>
void translate_by(Burst& burst, uint32_t i, const conn::Entry& association, Direction direction,
                  const Address& source, const Address& destination) noexcept {
    const Direction other = conn::opposite(direction);
    packet::translate_association<Address>(burst.data[i], burst.parsed[i], source, destination,
                                           Be16::from_host(association.destination_port(other)),
                                           Be16::from_host(association.source_port(other)),
                                           association.ip_delta.inverse_if(static_cast<uint16_t>(direction)));
}

// The association was ended by an order: each further packet is answered by an ABORT.
void answer_by_abort(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    if (!ctx.flow_orders.answering.take(ctx.now)) {
        return burst.drop(i, DropReason::ResetLimited);
    }
    const IpAddr sender = burst.parsed[i].key.source;
    const auto answer = packet::make_reflecting_abort(std::span(burst.data[i], burst.capacity[i]),
                                                      burst.length[i], burst.parsed[i]);
    if (!answer) {
        return burst.drop(i, answer.error());
    }
    burst.length[i] = *answer;
    burst.answers[i] = true;
    forward_one(ctx, burst, i, sender, static_cast<uint16_t>(*answer - sizeof(packet::EthernetHeader)));
    ctx.count()[Counter::ResetsSent].add(burst.verdict[i] == Verdict::Drop ? 0 : 1);
}

conn::SctpPacket packet_of(const Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const bool is_init = parsed.sctp_event == packet::SctpEvent::Init;
    return {.event = parsed.sctp_event,
            .reflects_tag = parsed.sctp_reflects_tag,
            .tag = packet::verification_tag(burst.data[i], parsed),
            .initiate_tag = is_init ? packet::initiate_tag(burst.data[i], parsed) : 0};
}

void remember(WorkerContext& ctx, ConnectionIndex index, const conn::Association& before,
              const conn::SctpStep& step) noexcept {
    const conn::Association& after = step.next;
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
        const auto at = static_cast<size_t>(direction);
        if (before.tags[at] != after.tags[at]) {
            ctx.connections.set_tag(index, direction, after.tags[at]);
        }
    }
    if (conn::is_open(before.state) && !conn::is_open(after.state)) {
        ctx.counters.backends[ctx.connections.at(index).backend.value].open.subtract(1);
    }
    ctx.connections.set_state(index, after.state, ctx.now_coarse);
    if (conn::is_opening(before.state) && after.state == conn::SctpState::Established &&
        ctx.connections.at(index).is_pinned) {
        confirm_affinity(ctx, index);
    }
    if (step.shows_life) {
        ctx.connections.touch(index, ctx.now_coarse);
    }
}

}  // namespace

Tracked serve_association(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const conn::Found found = burst.found[i];
    const conn::Entry& entry = ctx.connections.at(found.index);
    const conn::Association before{entry.sctp_state(), entry.tags};
    const conn::SctpStep step = conn::step(before, found.direction, packet_of(burst, i));
    switch (step.action) {
        case conn::SctpAction::Pass:
            break;
        case conn::SctpAction::Reopen:
            return Tracked::Reopens;
        case conn::SctpAction::Answer:
            answer_by_abort(ctx, burst, i);
            return Tracked::HasVerdict;
        case conn::SctpAction::WrongTag:
            burst.drop(i, DropReason::SctpWrongTag);
            return Tracked::HasVerdict;
        case conn::SctpAction::Stray:
            burst.drop(i, DropReason::SctpNoAssociation);
            return Tracked::HasVerdict;
    }
    remember(ctx, found.index, before, step);
    stats::ServiceCounters::Passed& passed =
        ctx.counters.services[entry.service.value].passed[static_cast<size_t>(found.direction)];
    passed.packets.add(1);
    passed.bytes.add(burst.parsed[i].l3_length);
    ctx.count()[Counter::ConnectionHits].add(1);
    send_association(ctx, burst, i);
    return Tracked::HasVerdict;
}

void send_association(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const conn::Entry& association = ctx.connections.at(burst.found[i].index);
    const Direction direction = burst.found[i].direction;
    const Direction other = conn::opposite(direction);
    if (!association.is_v6()) {
        const Be32 destination = association.v4_source(other);
        translate_by(burst, i, association, direction, association.v4_destination(other), destination);
        forward_one(ctx, burst, i, destination, burst.parsed[i].l3_length);
    } else if (association.is_mixed()) {
        send_to_other_family(ctx, burst, i, burst.found[i]);
    } else {
        const std::array<uint8_t, 16>& destination = association.v6_source(other);
        translate_by(burst, i, association, direction, association.v6_destination(other), destination);
        forward_one(ctx, burst, i, IpAddr::v6(destination), burst.parsed[i].l3_length);
    }
}

void abort_both_sides(WorkerContext& ctx, ConnectionIndex index) noexcept {
    const conn::Entry& entry = ctx.connections.at(index);
    for (const Direction side : {Direction::Forward, Direction::Reverse}) {
        // A packet to the sender of `side` travels in the other direction.
        const uint32_t tag = entry.tags[static_cast<size_t>(conn::opposite(side))];
        if (tag != 0 && send_abort(ctx, entry.key(side).reversed(), tag)) {
            ctx.count()[Counter::ResetsSent].add(1);
        }
    }
}

}  // namespace penstock::pipeline
