// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/liveness.hpp"

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/packet/answers/reset.hpp"
#include "dataplane/pipeline/answers/own_segments.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {
namespace {

using conn::Direction;
using conn::TcpState;

// Whether `side`'s answer can show that the connection is alive. After a FIN: only the side that it names as
// its sender. The other side has been waiting for that side, and a socket that its program never closes would
// answer forever. After a RST: both sides, because a client's answer counts only if its endpoint is alive.
bool is_asked(TcpState state, Direction side) noexcept {
    switch (state) {
        case TcpState::FinForward:
        case TcpState::FinForwardProbed:
            return side == Direction::Forward;
        case TcpState::FinReverse:
        case TcpState::FinReverseProbed:
            return side == Direction::Reverse;
        default:
            return true;
    }
}

}  // namespace

bool probe_for_life(WorkerContext& ctx, ConnectionIndex index) noexcept {
    const conn::Entry& entry = ctx.connections.at(index);
    const TcpState before = entry.tcp_state(), after = conn::probed(before);
    const bool is_first = conn::probed(after) != after;
    const int32_t limit = ctx.aging.limits().limit_for(Protocol::Tcp, entry.state);
    const bool is_too_late = is_first && units_between(entry.last_seen, ctx.now_coarse) > limit;
    if (is_too_late || ctx.own_segments.room() < 2 || !ctx.liveness_probes.take(ctx.now)) {
        return false;
    }
    const uint32_t number = is_first ? packet::kFirstProbe : packet::kSecondProbe;
    for (const Direction side : {Direction::Reverse, Direction::Forward}) {
        const bool is_sent =
            is_asked(before, side) && send_segment(ctx, entry.key(side).reversed(), {number, number},
                                                   packet::TcpFlags{packet::TcpFlags::kAck});
        ctx.count()[stats::Counter::LivenessProbes].add(is_sent ? 1 : 0);
    }
    ctx.connections.set_state(index, after, ctx.now_coarse);
    return true;
}

}  // namespace penstock::pipeline
