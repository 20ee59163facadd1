// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/handshake.hpp"

#include "dataplane/packet/answers/reset.hpp"

namespace penstock::pipeline {

using conn::Direction;
using conn::SentNumbers;
using conn::TcpAction;
using conn::TcpState;

namespace {

// The range of sequence numbers of the endpoint's segment, behind a SYN and without a FIN.
struct Occupied {
    uint32_t begin, end;
};
Occupied occupied_by(const Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const auto tcp = load<packet::TcpHeader>(burst.data[i] + parsed.l4_offset);
    const uint32_t syn = parsed.tcp_flags.has(packet::TcpFlags::kSyn) ? 1 : 0,
                   fin = parsed.tcp_flags.has(packet::TcpFlags::kFin) ? 1 : 0;
    return {tcp.seq.host() + syn, packet::numbers_behind(burst.data[i], parsed).seq - fin};
}

TcpState note(WorkerContext& ctx, const Burst& burst, uint32_t i, conn::TcpStep step) noexcept {
    const ConnectionIndex index = burst.found[i].index;
    const TcpState before = ctx.connections.at(index).tcp_state();
    const Occupied occupied = occupied_by(burst, i);
    SentNumbers sent = ctx.connections.sent_numbers(index);
    if (before == TcpState::PickedUp) {
        if (conn::classify(burst.parsed[i].tcp_flags) == conn::TcpFlagClass::Ack &&
            occupied.begin == sent.first) {
            return TcpState::Established;
        }
        sent = {};
    }
    burst.parsed[i].tcp_flags.has(packet::TcpFlags::kSyn) ? sent.add_answer(occupied.begin, occupied.end)
                                                          : sent.add(occupied.begin, occupied.end);
    ctx.connections.set_sent_numbers(index, sent);
    return step.next;
}

}  // namespace

TcpState state_after(WorkerContext& ctx, const Burst& burst, uint32_t i, conn::TcpStep step) noexcept {
    const conn::Found found = burst.found[i];
    const TcpState before = ctx.connections.at(found.index).tcp_state();
    switch (step.action) {
        case TcpAction::Verify: {
            const uint32_t ack = packet::numbers_behind(burst.data[i], burst.parsed[i]).ack;
            return ctx.connections.sent_numbers(found.index).allow(ack) ? step.next : before;
        }
        case TcpAction::Note:
        case TcpAction::Revive:
            return note(ctx, burst, i, step);
        case TcpAction::End:
            // During the handshake the numbers still verify the client's ACK. In later states they are stale,
            // or used for another purpose.
            if (conn::is_behind_rst(step.next) && before != TcpState::SynReceived) {
                ctx.connections.set_sent_numbers(found.index, {});
            }
            return step.next;
        default:
            return step.next;
    }
}

std::array<uint32_t, 2> tags_of_picked_up(const Burst& burst, uint32_t i) noexcept {
    std::array<uint32_t, 2> tags{};
    tags[static_cast<size_t>(Direction::Reverse)] =
        packet::numbers_behind(burst.data[i], burst.parsed[i]).ack;
    return tags;
}

}  // namespace penstock::pipeline
