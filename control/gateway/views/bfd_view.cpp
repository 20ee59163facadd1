// SPDX-License-Identifier: Apache-2.0
// BFD sessions of the workers.
#include <algorithm>
#include <chrono>
#include <string>

#include "control/gateway/views/status_view.hpp"

namespace penstock::gateway {

v1::Bfd StatusView::bfd_summary() const {
    const bfd::FrrLink::View view = running_.bfd->view();
    v1::Bfd out;
    out.set_socket(view.path);
    out.set_fault(view.fault);
    out.set_withheld(view.is_withheld);
    out.set_sessions(static_cast<uint32_t>(view.sessions.size()));
    out.set_up(static_cast<uint32_t>(std::ranges::count_if(
        view.sessions, [](const auto& session) { return session.status.state == bfd::State::Up; })));
    return out;
}

v1::ListBfdSessionsResponse StatusView::bfd_sessions() const {
    v1::ListBfdSessionsResponse out;
    if (running_.bfd == nullptr) {
        return out;
    }
    const auto now = std::chrono::steady_clock::now();
    const bfd::FrrLink::View view = running_.bfd->view();
    for (const bfd::FrrLink::Session& session : view.sessions) {
        v1::BfdSession& to = *out.add_sessions();
        to.set_peer(session.peer.to_string());
        to.set_local(session.local.is_unspecified() ? "" : session.local.to_string());
        to.set_twin(session.twin);
        to.set_state(std::string(text_of(session.status.state)));
        to.set_state_age_ms(static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::milliseconds>(now - session.changed_at).count()));
        std::string reason = session.refusal;
        if (reason.empty() && session.status.state != bfd::State::Up) {
            reason = text_of(session.status.diagnostic);
        }
        to.set_reason(reason);
        to.set_discriminator(session.discriminator);
        to.set_remote_discriminator(session.status.remote_discriminator);
        to.set_min_tx_us(session.min_tx_us);
        to.set_min_rx_us(session.min_rx_us);
        to.set_detect_multiplier(session.detect_multiplier);
        to.set_remote_min_tx_us(session.status.remote.desired_min_tx_us);
        to.set_remote_min_rx_us(session.status.remote.required_min_rx_us);
        to.set_remote_detect_multiplier(session.status.remote.detect_multiplier);
        to.set_times_down(session.times_down);
        to.set_received(session.received);
        to.set_sent(session.sent);
        to.set_withheld(session.withheld);
        to.set_unsendable(session.unsendable);
    }
    return out;
}

}  // namespace penstock::gateway
