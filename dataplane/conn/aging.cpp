// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/aging.hpp"

#include <limits>

#include "dataplane/conn/sctp_state.hpp"

namespace penstock::conn {
namespace {

template <typename Either>
Worth worth(const Either& entry) noexcept {
    if (entry.is_sctp()) {
        const SctpState state = entry.sctp_state();
        return is_opening(state) ? Worth::OneSided : is_open(state) ? Worth::Keep : Worth::Finished;
    }
    if (!entry.is_tcp()) {
        return entry.datagram_state() == DatagramState::OneWay ? Worth::OneSided
               : is_brief(entry.opened_at, entry.last_seen)    ? Worth::Brief
                                                               : Worth::Keep;
    }
    switch (entry.tcp_state()) {
        case TcpState::SynSent:
        case TcpState::SynReceived:
        case TcpState::PickedUp:
            return Worth::OneSided;
        case TcpState::TimeWait:
        case TcpState::Closed:
        case TcpState::Resetting:
        case TcpState::RstForward:
        case TcpState::RstReverse:
        case TcpState::RstForwardProbed:
        case TcpState::RstReverseProbed:
        case TcpState::RstForwardProbedAgain:
        case TcpState::RstReverseProbedAgain:
            return Worth::Finished;
        default:
            return Worth::Keep;
    }
}

}  // namespace

Worth worth_of(const Entry& entry) noexcept {
    return worth(entry);
}
Worth worth_of(const Connection& connection) noexcept {
    return worth(connection);
}

Limits::Limits(const Timeouts& timeouts, TscRate rate) noexcept : rate_(rate), clock_(rate) {
    const auto set = [&](TcpState state, uint32_t seconds) {
        tcp_[static_cast<size_t>(state)] = units_of(seconds);
    };
    set(TcpState::SynSent, timeouts.tcp_half_open_s);
    set(TcpState::SynReceived, timeouts.tcp_half_open_s);
    set(TcpState::PickedUp, timeouts.tcp_half_open_s);
    set(TcpState::Established, timeouts.tcp_established_s);
    set(TcpState::FinForward, timeouts.tcp_closing_s);
    set(TcpState::FinReverse, timeouts.tcp_closing_s);
    set(TcpState::TimeWait, timeouts.tcp_closing_s);
    set(TcpState::Closed, timeouts.tcp_closed_s);
    set(TcpState::Resetting, timeouts.tcp_closed_s);
    set(TcpState::RstForward, timeouts.tcp_closing_s);
    set(TcpState::RstReverse, timeouts.tcp_closing_s);
    for (const TcpState first : {TcpState::FinForwardProbed, TcpState::FinReverseProbed,
                                 TcpState::RstForwardProbed, TcpState::RstReverseProbed}) {
        set(first, timeouts.tcp_probed_s);
        set(probed(first), timeouts.tcp_probed_s);
    }
    udp_ = {units_of(timeouts.udp_one_way_s), units_of(timeouts.udp_two_way_s)};
    const auto set_sctp = [&](SctpState state, uint32_t seconds) {
        sctp_[static_cast<size_t>(state)] = units_of(seconds);
    };
    set_sctp(SctpState::CookieWait, timeouts.sctp_half_open_s);
    set_sctp(SctpState::CookieEchoed, timeouts.sctp_half_open_s);
    set_sctp(SctpState::Established, timeouts.sctp_established_s);
    set_sctp(SctpState::Restarting, timeouts.sctp_established_s);
    set_sctp(SctpState::BackendRestarting, timeouts.sctp_established_s);
    set_sctp(SctpState::Shutdown, timeouts.sctp_closing_s);
    set_sctp(SctpState::ShutdownAcked, timeouts.sctp_closing_s);
    set_sctp(SctpState::Closed, timeouts.sctp_closed_s);
    set_sctp(SctpState::Aborting, timeouts.sctp_closed_s);
}

int32_t Limits::units_of(uint32_t seconds) const noexcept {
    // last_seen may lag by kTouchAfterUnits, one second at most, and by the unit lost to truncation. The
    // limit is extended by both; otherwise a connection could end early (RFC 5382, REQ-5: never earlier).
    const uint64_t units = clock_.units(rate_.seconds(uint64_t{seconds} + 1)) + uint64_t{1};
    return static_cast<int32_t>(std::min<uint64_t>(units, std::numeric_limits<int32_t>::max()));
}

int32_t Limits::sweep_period() const noexcept {
    return static_cast<int32_t>(clock_.units(rate_.milliseconds(kSweepPeriodMs)));
}

Victims Aging::find_victims(const Table& table, IpFamily family, uint32_t budget_units,
                            const Appraiser& appraise) noexcept {
    const uint32_t end = table.high_water();
    struct Best {
        Victims victims;
        CoarseTime since;
        uint32_t held = 0;
    };
    std::array<Best, 5> best_of;  // by Worth
    const auto consider = [&](const Victims& candidate, Appraisal appraisal, CoarseTime opened,
                              CoarseTime seen) {
        const CoarseTime since = appraisal.worth == Worth::OneSided ? opened : seen;
        Best& best = best_of[static_cast<size_t>(appraisal.worth)];
        const bool is_older = units_between(since, best.since) > 0;
        if (best.victims.count == 0 || appraisal.held > best.held ||
            (appraisal.held == best.held && is_older)) {
            best = {candidate, since, appraisal.held};
        }
    };
    for (uint32_t left = std::min(budget_units, end); left > 0; --left) {
        const uint32_t unit = next(victim_cursor_, end);
        if (family == IpFamily::V4) {
            if (table.is_live(unit)) {
                const Entry& entry = table.at({unit});
                consider({{{{unit}}}, 1}, appraise(entry), entry.opened_at, entry.last_seen);
            }
            continue;
        }
        if (unit % 2 != 0) {
            continue;
        }
        // The connections of a pair are evicted together or not at all. The pair is as old as its younger
        // half.
        Victims pair;
        Appraisal whole{Worth::OneSided, 0};
        CoarseTime opened;
        CoarseTime seen;
        for (const uint32_t half : {unit, unit + 1}) {
            if (!table.is_live(half)) {
                continue;
            }
            const Entry& entry = table.at({half});
            const Appraisal appraisal = appraise(entry);
            whole = appraisal.worth < whole.worth ? appraisal : whole;
            opened = pair.count == 0 || units_between(opened, entry.opened_at) > 0 ? entry.opened_at : opened;
            seen = pair.count == 0 || units_between(seen, entry.last_seen) > 0 ? entry.last_seen : seen;
            pair.index[pair.count++] = {half};
        }
        if (pair.count > 0) {
            consider(pair, whole, opened, seen);
        }
    }
    for (const Worth worth : {Worth::OneSided, Worth::Finished, Worth::Brief, Worth::Surplus}) {
        if (const Victims& victims = best_of[static_cast<size_t>(worth)].victims; victims.count > 0) {
            return victims;
        }
    }
    return {};
}

}  // namespace penstock::conn
