#include "dataplane/pipeline/admit.hpp"

#include <algorithm>

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/pipeline/reverse_path.hpp"

namespace penstock::pipeline {
namespace {

// What the gateway itself says something from: the host's addresses and the broadcast addresses of its links, which are no host's to send
// from (RFC 1122, 3.2.1.3), SNAT addresses, and frontends. From outside it is forged, or has come round a loop: answers would go to who
// has asked nothing, and two frontends of UDP would answer each other for ever. Of a VIP it is only the ports that Services declare,
// because an external IP may be some host's own address (XIP-003). A new flow's source hardly ever is any of that, so each question begins
// with one bit that says so.
PENSTOCK_ALWAYS_INLINE bool is_gateways_own(const config::Snapshot& snapshot,
                                            const packet::FlowKey& key) noexcept {
    return snapshot.routes->is_local_source(key.source) || snapshot.snat->addresses.contains(key.source) ||
           snapshot.services->is_frontend(key.source, key.source_port, key.protocol);
}

// From the port of an endpoint that answers clients under their own addresses, now or lately, and of no flow: a late reply, a
// retransmission. Linux would forward it as it is, and its client would get an answer from an address that it has never asked (NAT-006). A
// SYN or an INIT begins something of the endpoint's own. Endpoints that see a SNAT address reply to nothing else, so theirs cannot stray.
bool is_stray(const config::Snapshot& snapshot, const packet::Parsed& parsed) noexcept {
    const packet::FlowKey& key = parsed.key;
    const bool begins =
        (key.protocol == Protocol::Tcp && conn::classify(parsed.tcp_flags) == conn::TcpFlagClass::Syn) ||
        (key.protocol == Protocol::Sctp && parsed.sctp_event == packet::SctpEvent::Init);
    return !begins && snapshot.services->is_kept_backend(key.source, key.source_port, key.protocol);
}

// The address is a VIP and nothing else, and no Service declares the port (LB-021). A RST is never answered, nor what is no segment at all,
// nor what begins no association.
Admission closed_port(const config::Snapshot& snapshot, const packet::Parsed& parsed) noexcept {
    const bool is_answerable = [&] {
        if (parsed.key.protocol == Protocol::Sctp) {
            return parsed.sctp_event == packet::SctpEvent::Init;
        }
        if (parsed.key.protocol != Protocol::Tcp) {
            return true;
        }
        const conn::TcpFlagClass flags = conn::classify(parsed.tcp_flags);
        return flags != conn::TcpFlagClass::Rst && flags != conn::TcpFlagClass::Invalid;
    }();
    if (snapshot.rejects_closed_vip_ports && is_answerable) {
        return {Admission::Kind::Reject, {}, nullptr, nullptr};
    }
    return {Admission::Kind::Drop, DropReason::VipPortClosed, nullptr, nullptr};
}

// SRC-007: the host has several addresses, and which of them it sends from is the routes' choice; one that the ranges name lets it in.
bool allows(const lb::SourceFilter& filter, const config::Snapshot& snapshot, const IpAddr& client,
            Sender sender) noexcept {
    return filter.allows(client) ||
           (sender == Sender::Host && std::ranges::any_of(snapshot.routes->addresses(), [&](const auto& own) {
                return filter.allows(own.address);
            }));
}

// ETP-006: the host has the set of those inside, which looks for endpoints everywhere.
const lb::BackendSet& set_for(const lb::FrontendRow& frontend, const config::Snapshot& snapshot,
                              const IpAddr& client, Sender sender) noexcept {
    return sender == Sender::Host ? frontend.service->sets[frontend.inside_set]
                                  : frontend.backends(client, *snapshot.cluster_clients);
}

// An ACK of no flow (REJ-005). Where another gateway may have opened its connection, that gateway's choice can be made again if it was a
// hash, the same on every gateway. And where the source was translated, the endpoint knows the connection by a port of that gateway's, so
// that nothing but a RST would come of it.
bool may_be_picked_up(const config::Snapshot& snapshot, const lb::FrontendRow& frontend,
                      const lb::BackendSet& set, Sender sender) noexcept {
    const lb::SchedulerKind scheduler = frontend.service->scheduler;
    return snapshot.packets.picks_up_midstream && sender == Sender::Outside &&
           (scheduler == lb::SchedulerKind::SourceHash || scheduler == lb::SchedulerKind::Maglev) &&
           set.source == lb::SourceMode::Keep && !set.usable.empty();
}

// A segment of class `flags`, not Syn, that belongs to no flow.
PENSTOCK_NOINLINE Admission mid_stream(const config::Snapshot& snapshot, const lb::FrontendRow* frontend,
                                       const packet::Parsed& parsed, Sender sender,
                                       conn::TcpFlagClass flags) noexcept {
    if (flags == conn::TcpFlagClass::Rst) {  // the flow it resets is gone already; a RST is never answered
        return {Admission::Kind::Drop, DropReason::RejectNotAllowed, frontend, nullptr};
    }
    if (flags == conn::TcpFlagClass::Invalid) {
        return {Admission::Kind::Drop, DropReason::InvalidTcpFlags, frontend, nullptr};
    }
    if (flags == conn::TcpFlagClass::Ack) {
        const lb::BackendSet& set = set_for(*frontend, snapshot, parsed.key.source, sender);
        if (may_be_picked_up(snapshot, *frontend, set, sender)) {
            return parsed.ttl <= 1
                       ? Admission{Admission::Kind::Drop, DropReason::TtlExpired, frontend, nullptr}
                       : Admission{Admission::Kind::PickUp, {}, frontend, &set};
        }
    }
    return {Admission::Kind::Reject, {}, frontend, nullptr};  // RST (REJ-005)
}

}  // namespace

Admission admit(const config::Snapshot& snapshot, const lb::FrontendRow* frontend,
                const packet::Parsed& parsed, NicPortId arrival, Sender sender) noexcept {
    // What Linux forwards for others has been through its routes already, and what no Service declares is no Service's.
    if (sender == Sender::Host &&
        (frontend == nullptr || !snapshot.routes->is_host_address(parsed.key.source))) {
        return {};
    }
    const auto is_forged = [&] { return sender == Sender::Outside && is_gateways_own(snapshot, parsed.key); };
    const auto is_astray = [&] {
        return sender == Sender::Outside &&
               source_path(snapshot, parsed.key.source, arrival) != SourcePath::Ok;
    };
    const auto drop = [&](DropReason reason) {
        return Admission{Admission::Kind::Drop, reason, frontend, nullptr};
    };

    if (frontend == nullptr) {
        // An address that Linux has is Linux's on every port that no Service declares (XIP-003). An address that is only a VIP belongs to
        // nobody there, and asking Linux would only make it answer for an address it lacks.
        if (snapshot.routes->is_local(parsed.key.destination)) {
            return {};
        }
        if (snapshot.services->is_vip(parsed.key.destination)) {
            return is_forged()   ? drop(DropReason::MartianSource)
                   : is_astray() ? drop(DropReason::ReversePath)
                                 : closed_port(snapshot, parsed);
        }
        return is_stray(snapshot, parsed) ? drop(DropReason::StrayReply) : Admission{};
    }
    if (frontend->filter != nullptr && !allows(*frontend->filter, snapshot, parsed.key.source, sender)) {
        return drop(DropReason::SourceNotAllowed);
    }
    if (is_forged()) {
        return drop(DropReason::MartianSource);
    }
    if (is_astray()) {
        return drop(DropReason::ReversePath);
    }
    if (parsed.key.protocol == Protocol::Tcp) {
        if (const conn::TcpFlagClass flags = conn::classify(parsed.tcp_flags);
            flags != conn::TcpFlagClass::Syn) [[unlikely]] {
            return mid_stream(snapshot, frontend, parsed, sender, flags);
        }
    }
    if (parsed.key.protocol == Protocol::Sctp && parsed.sctp_event != packet::SctpEvent::Init) {
        return drop(
            DropReason::
                SctpNoAssociation);  // also a HEARTBEAT from a second address of the client's (SCTP-003)
    }
    const lb::BackendSet& set = set_for(*frontend, snapshot, parsed.key.source, sender);
    if (set.usable.empty()) {
        switch (set.when_empty) {
            case lb::EmptyAction::Reject:
                return {Admission::Kind::Reject, {}, frontend, &set};
            case lb::EmptyAction::Drop:
                return drop(DropReason::NoEndpoint);
            case lb::EmptyAction::DropNoLocal:
                return drop(DropReason::NoLocalEndpoint);
        }
    }
    if (parsed.ttl <= 1) {
        return drop(DropReason::TtlExpired);
    }
    return {Admission::Kind::Open, {}, frontend, &set};
}

}  // namespace penstock::pipeline
