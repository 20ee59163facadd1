// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/track.hpp"

#include "dataplane/pipeline/flow_orders.hpp"
#include "dataplane/pipeline/handshake.hpp"
#include "dataplane/pipeline/offered_mss.hpp"
#include "dataplane/pipeline/opening/reclaim.hpp"

namespace penstock::pipeline {

using conn::TcpAction;

Tracked track_unusual(WorkerContext& ctx, Burst& burst, uint32_t i, conn::TcpStep step) noexcept {
    const conn::Found found = burst.found[i];
    const conn::Entry& connection = ctx.connections.at(found.index);
    if (connection.is_sctp()) {  // SCTP has no TCP flags
        return serve_association(ctx, burst, i);
    }
    if (step.action == TcpAction::Reopen) {
        return Tracked::Reopens;
    }
    if (step.action == TcpAction::Reset) {
        reset_both_sides(ctx, burst, i);
        return Tracked::HasVerdict;
    }
    if (step.action == TcpAction::Invalid) {
        burst.drop(i, DropReason::InvalidTcpFlags);
        return Tracked::HasVerdict;
    }
    count_passed(ctx, burst, i, connection);
    if (burst.parsed[i].tcp_flags.has(packet::TcpFlags::kSyn)) {
        lower_offered_mss(ctx, burst, i);
        // A live endpoint answers, which revives the connection. The client of a dead endpoint must not stay
        // bound to it, so its SYNs do not restart the idle time.
        if (step.action == TcpAction::Offer && conn::is_behind_rst(step.next)) {
            return Tracked::GoesOn;
        }
    }
    const conn::TcpState before = connection.tcp_state(), after = state_after(ctx, burst, i, step);
    if (step.action == TcpAction::Verify && after == before) {
        return Tracked::GoesOn;  // it verifies nothing, so it does not restart the idle time either
    }
    auto& open = ctx.counters.backends[connection.backend.value].open;
    if (step.action == TcpAction::End) {
        open.subtract(1);
    } else if (!conn::is_open(before) && conn::is_open(after)) {
        open.add(1);
    }
    // In other states the numbers of the handshake are still needed.
    if (found.direction == conn::Direction::Forward &&
        burst.parsed[i].tcp_flags.has(packet::TcpFlags::kFin) &&
        (after == conn::TcpState::FinForward || after == conn::TcpState::TimeWait)) {
        note_finish(ctx, burst, i);
    }
    ctx.connections.set_state(found.index, after, ctx.now_coarse);
    if (connection.is_pinned && after != before &&
        (after == conn::TcpState::Established || after == conn::TcpState::FinForward)) [[unlikely]] {
        confirm_affinity(ctx, found.index);
    }
    ctx.connections.touch(found.index, ctx.now_coarse);
    return Tracked::GoesOn;
}

}  // namespace penstock::pipeline
