// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/flow_orders.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/packet/answers/reject.hpp"
#include "dataplane/pipeline/answers/own_segments.hpp"
#include "dataplane/pipeline/associations.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {
namespace {

using conn::Direction;
using conn::SctpState;
using conn::TcpState;
using packet::TcpFlags;
using stats::Counter;

// Effect of an order on a connection.
enum class Ending : uint8_t { None, Erase, Reset };

Ending ending_of(const conn::Entry& entry) noexcept {
    if (entry.is_sctp()) {
        return entry.sctp_state() == SctpState::CookieWait ? Ending::Erase
               : conn::is_open(entry.sctp_state())         ? Ending::Reset
                                                           : Ending::None;
    }
    if (!entry.is_tcp()) {
        return Ending::Erase;
    }
    switch (entry.tcp_state()) {
        // The client has not been answered, so its next SYN may open a new flow to a working endpoint.
        case TcpState::SynSent:
            return Ending::Erase;
        // Closed by both sides; the tuple must not be reused yet (ADR 0009).
        case TcpState::TimeWait:
        case TcpState::Resetting:
            return Ending::None;
        // Closed too: the RST that closed it may have been forged.
        case TcpState::SynReceived:
        case TcpState::PickedUp:
        case TcpState::Established:
        case TcpState::FinForward:
        case TcpState::FinReverse:
        case TcpState::Closed:
        case TcpState::RstForward:
        case TcpState::RstReverse:
        case TcpState::FinForwardProbed:
        case TcpState::FinReverseProbed:
        case TcpState::RstForwardProbed:
        case TcpState::RstReverseProbed:
        case TcpState::FinForwardProbedAgain:
        case TcpState::FinReverseProbedAgain:
        case TcpState::RstForwardProbedAgain:
        case TcpState::RstReverseProbedAgain:
            return Ending::Reset;
    }
    return Ending::None;
}

bool concerns(const conn::FlowOrder& order, const conn::Entry& entry) noexcept {
    return order.frontend_port == 0 || (entry.destination_port(Direction::Forward) == order.frontend_port &&
                                        entry.key(Direction::Forward).destination == order.frontend);
}

void probe(WorkerContext& ctx, ConnectionIndex index, uint32_t seq) noexcept {
    const conn::Entry& entry = ctx.connections.at(index);
    for (const Direction side : {Direction::Forward, Direction::Reverse}) {
        if (send_segment(ctx, entry.key(side).reversed(), {seq, seq}, TcpFlags{TcpFlags::kAck})) {
            ctx.count()[Counter::ResetProbes].add(1);
        }
    }
}

void begin_reset(WorkerContext& ctx, ConnectionIndex index) noexcept {
    if (ctx.connections.at(index).is_sctp()) {
        ctx.connections.set_state(index, SctpState::Aborting, ctx.now_coarse);
        return abort_both_sides(ctx, index);
    }
    ctx.connections.set_state(index, TcpState::Resetting, ctx.now_coarse);
    probe(ctx, index, packet::kFirstProbe);
}

// Ends the next connections of the walk, at most `budget`; returns the number visited.
uint32_t end_some(WorkerContext& ctx, const conn::FlowOrder& order, uint32_t budget) noexcept {
    std::array<ConnectionIndex, limits::kFlowOrderSlice> flows;
    const uint32_t count = ctx.by_backend.walk(std::span(flows).first(budget));
    for (uint32_t i = 0; i < count; ++i) {
        prefetch_read(&ctx.connections.at(flows[i]));
        ctx.by_backend.prefetch_neighbours(flows[i]);
    }
    std::array<Ending, limits::kFlowOrderSlice> ending;
    for (uint32_t i = 0; i < count; ++i) {
        const conn::Entry& entry = ctx.connections.at(flows[i]);
        ending[i] = concerns(order, entry) ? ending_of(entry) : Ending::None;
        if (ending[i] == Ending::Erase) {
            ctx.connections.prefetch_for_erase(flows[i]);
        }
    }
    for (uint32_t i = 0; i < count; ++i) {
        switch (ending[i]) {
            case Ending::None:
                continue;
            case Ending::Erase:
                close_connection(ctx, flows[i], Removal::Ordered);
                break;
            case Ending::Reset:
                if (ctx.own_segments.room() < 2 || !ctx.flow_orders.probing.take(ctx.now)) {
                    ctx.by_backend.walk_again_from(flows[i]);
                    return i;
                }
                if (const conn::Entry& entry = ctx.connections.at(flows[i]); is_open(entry)) {
                    ctx.counters.backends[entry.backend.value].open.subtract(1);
                }
                begin_reset(ctx, flows[i]);
                break;
        }
        ctx.count()[Counter::EndedConnections].add(1);
    }
    return count;
}

}  // namespace

uint32_t work_off_flow_orders(WorkerContext& ctx) noexcept {
    FlowOrderWork& work = ctx.flow_orders;
    const conn::FlowOrders& orders = *ctx.snapshot->flow_orders;
    // All workers have finished the earlier orders, or this worker started after them.
    if (work.done() + 1 < orders.first) {
        work.finish(orders.first - 1);
    }
    uint32_t looked_at = 0;
    while (work.done() < orders.last() && looked_at < limits::kFlowOrderSlice) {
        const conn::FlowOrder& order = orders.orders[work.done() + 1 - orders.first];
        if (!work.is_walking) {
            ctx.by_backend.begin_walk(order.backend);
            work.is_walking = true;
            ++looked_at;  // finding the head may cost a cache line
        }
        const uint32_t flows = end_some(ctx, order, limits::kFlowOrderSlice - looked_at);
        looked_at += flows;
        if (ctx.by_backend.is_walk_over()) {
            work.finish(work.done() + 1);
        } else if (flows == 0) {
            break;
        }
    }
    work.is_waiting = work.done() < orders.last();
    return looked_at;
}

void reset_both_sides(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    if (!ctx.flow_orders.answering.take(ctx.now)) {
        return burst.drop(i, DropReason::ResetLimited);
    }
    const conn::Found found = burst.found[i];
    const IpAddr sender = burst.parsed[i].key.source;
    const packet::SegmentNumbers numbers = packet::numbers_behind(burst.data[i], burst.parsed[i]);
    const auto answer =
        packet::make_reject(std::span(burst.data[i], burst.capacity[i]), burst.length[i], burst.parsed[i]);
    if (!answer) {
        return burst.drop(i, answer.error());
    }
    burst.length[i] = *answer;
    burst.answers[i] = true;
    forward_one(ctx, burst, i, sender, static_cast<uint16_t>(*answer - sizeof(packet::EthernetHeader)));
    // Acts as if the sender had reset the connection directly behind the data it has sent. If some of that
    // data was lost before it reached the other side, that side answers with its expected number (RFC 5961,
    // 3) and is reset exactly there.
    const packet::FlowKey onward =
        ctx.connections.at(found.index).key(conn::opposite(found.direction)).reversed();
    const bool is_sent = send_segment(ctx, onward, numbers, TcpFlags{TcpFlags::kRst | TcpFlags::kAck});
    ctx.count()[Counter::ResetsSent].add((burst.verdict[i] == Verdict::Drop ? 0 : 1) + (is_sent ? 1 : 0));
}

void end_again(WorkerContext& ctx, ConnectionIndex index) noexcept {
    if (ctx.own_segments.room() >= 2 && ctx.flow_orders.probing.take(ctx.now)) {
        ctx.connections.at(index).is_sctp() ? abort_both_sides(ctx, index)
                                            : probe(ctx, index, packet::kSecondProbe);
    }
}

}  // namespace penstock::pipeline
