#include "dataplane/conn/aging.hpp"

namespace penstock::conn {

TimeoutTicks::TimeoutTicks(const Timeouts& timeouts, TscRate rate) noexcept {
    // last_seen may lag by kTouchAfterMs; without the same on top a connection could end before its time (RFC 5382, REQ-5: never earlier).
    const auto limit = [&](uint32_t seconds) { return TscTicks{rate.seconds(seconds).value + rate.milliseconds(kTouchAfterMs).value}; };
    const auto set = [&](TcpState state, uint32_t seconds) { tcp_[static_cast<size_t>(state)] = limit(seconds); };
    set(TcpState::SynSent, timeouts.tcp_half_open_s);
    set(TcpState::SynReceived, timeouts.tcp_half_open_s);
    set(TcpState::Established, timeouts.tcp_established_s);
    set(TcpState::FinForward, timeouts.tcp_closing_s);
    set(TcpState::FinReverse, timeouts.tcp_closing_s);
    set(TcpState::TimeWait, timeouts.tcp_closing_s);
    set(TcpState::Closed, timeouts.tcp_closed_s);
    udp_ = {limit(timeouts.udp_one_way_s), limit(timeouts.udp_two_way_s)};
    sctp_ = {limit(timeouts.sctp_half_open_s), limit(timeouts.sctp_established_s)};
}

ConnectionIndex Aging::find_victim(const Table& table, uint32_t budget_slots) noexcept {
    const auto is_one_sided = [](const Connection& c) {
        return c.is_tcp() ? c.tcp_state() == TcpState::SynSent || c.tcp_state() == TcpState::SynReceived
                          : c.datagram_state() == DatagramState::OneWay;
    };
    const uint32_t end = table.high_water();
    ConnectionIndex oldest;
    ConnectionIndex finished;
    for (uint32_t left = std::min(budget_slots, end); left > 0; --left) {
        const uint32_t slot = next(victim_cursor_, end);
        if (!table.is_live(slot)) {
            continue;
        }
        const Connection& candidate = table.at({slot});
        if (is_one_sided(candidate)) {
            if (!oldest.is_set() || candidate.opened_at < table.at(oldest).opened_at) {
                oldest = {slot};
            }
        } else if (candidate.is_tcp() && candidate.tcp_state() == TcpState::TimeWait &&
                   (!finished.is_set() || candidate.last_seen < table.at(finished).last_seen)) {
            finished = {slot};
        }
    }
    return oldest.is_set() ? oldest : finished;
}

}  // namespace penstock::conn
