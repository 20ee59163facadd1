// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/bfd_notes.hpp"

#include <cstdint>

#include "dataplane/base/ip.hpp"
#include "dataplane/bfd/control_packet.hpp"

namespace penstock::gateway {
namespace {

using bfd::SessionBook;

std::optional<SessionBook::Kept> session_of(const v1::HandedBfdSession& from,
                                            const std::function<NicPortId(const std::string&)>& port_of) {
    const auto local = IpAddr::parse(from.local());
    const auto peer = IpAddr::parse(from.peer());
    const NicPortId egress = from.twin().empty() ? NicPortId{} : port_of(from.twin());
    if (!local || !peer || local->family() != peer->family() || from.discriminator() == 0 ||
        from.ttl_min() > UINT8_MAX || from.detect_multiplier() == 0 || from.detect_multiplier() > UINT8_MAX ||
        from.min_tx_us() == 0 || from.state() > static_cast<uint32_t>(bfd::State::Up) ||
        (!from.twin().empty() && !egress.is_set())) {
        return std::nullopt;
    }
    SessionBook::Kept kept{.terms = {.discriminator = from.discriminator(),
                                     .local = *local,
                                     .peer = *peer,
                                     .egress = egress,
                                     .is_passive = from.passive(),
                                     .is_shut_down = from.shut_down(),
                                     .control_plane_independent = from.control_plane_independent(),
                                     .ttl_min = static_cast<uint8_t>(from.ttl_min()),
                                     .detect_multiplier = static_cast<uint8_t>(from.detect_multiplier()),
                                     .desired_min_tx_us = from.min_tx_us(),
                                     .required_min_rx_us = from.min_rx_us()},
                           .status = {},
                           .twin = from.twin()};
    const std::string& bytes = from.last_received();
    const auto last = bfd::parse(ByteView(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    if (last) {
        kept.status.state = static_cast<bfd::State>(from.state());
        kept.status.diagnostic = static_cast<bfd::Diagnostic>(from.diagnostic() & 0x1f);
        kept.status.remote_discriminator = last->my_discriminator;
        kept.status.remote = *last;
    }
    return kept;
}

}  // namespace

v1::HandedBfd proto_of(std::span<const SessionBook::Kept> sessions, uint8_t version) {
    v1::HandedBfd out;
    out.set_protocol_version(version);
    for (const SessionBook::Kept& kept : sessions) {
        const bfd::Terms& terms = kept.terms;
        v1::HandedBfdSession& to = *out.add_sessions();
        to.set_discriminator(terms.discriminator);
        to.set_local(terms.local.to_string());
        to.set_peer(terms.peer.to_string());
        to.set_twin(kept.twin);
        to.set_passive(terms.is_passive);
        to.set_shut_down(terms.is_shut_down);
        to.set_control_plane_independent(terms.control_plane_independent);
        to.set_ttl_min(terms.ttl_min);
        to.set_detect_multiplier(terms.detect_multiplier);
        to.set_min_tx_us(terms.desired_min_tx_us);
        to.set_min_rx_us(terms.required_min_rx_us);
        to.set_state(static_cast<uint32_t>(kept.status.state));
        to.set_diagnostic(static_cast<uint32_t>(kept.status.diagnostic));
        if (kept.status.remote_discriminator != 0) {
            const auto bytes = bfd::wire_of(kept.status.remote);
            to.set_last_received(bytes.data(), bytes.size());
        }
    }
    return out;
}

std::vector<SessionBook::Kept> kept_of(const v1::HandedBfd& handed,
                                       const std::function<NicPortId(const std::string&)>& port_of) {
    std::vector<SessionBook::Kept> sessions;
    for (const v1::HandedBfdSession& from : handed.sessions()) {
        if (auto kept = session_of(from, port_of)) {
            sessions.push_back(std::move(*kept));
        }
    }
    return sessions;
}

}  // namespace penstock::gateway
