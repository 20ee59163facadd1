// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/admit.hpp"

#include <algorithm>

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/pipeline/opening/reverse_path.hpp"

namespace penstock::pipeline {
namespace {

// Whether the source is one of the gateway's own: an address of the host, a broadcast address of one of its
// links (not a valid source, RFC 1122, 3.2.1.3), a SNAT address, or a frontend. From outside such a source is
// spoofed, or the packet has looped. Answers would go to a host that sent nothing, and two UDP frontends
// would answer each other forever. Only the declared ports of a VIP count, because an external IP may be
// another host's own address (XIP-003). New flows hardly ever have such a source, so each check first tests
// one bit that excludes it.
PENSTOCK_ALWAYS_INLINE bool is_gateways_own(const config::Snapshot& snapshot,
                                            const packet::FlowKey& key) noexcept {
    return snapshot.routes->is_local_source(key.source) || snapshot.snat->addresses.contains(key.source) ||
           snapshot.services->is_frontend(key.source, key.source_port, key.protocol);
}

// A packet of no flow from the port of an endpoint that answers, or recently answered, to its clients' own
// addresses: a late reply or a retransmission. Linux would forward it unchanged, and the client would get an
// answer from an address to which it has sent nothing (NAT-006). A SYN or an INIT opens a connection of the
// endpoint's own. Endpoints that see a SNAT address reply only to that address, so their replies cannot reach
// a client directly.
bool is_stray(const config::Snapshot& snapshot, const packet::Parsed& parsed) noexcept {
    const packet::FlowKey& key = parsed.key;
    const bool begins =
        (key.protocol == Protocol::Tcp && conn::classify(parsed.tcp_flags) == conn::TcpFlagClass::Syn) ||
        (key.protocol == Protocol::Sctp && parsed.sctp_event == packet::SctpEvent::Init);
    return !begins && snapshot.services->is_kept_backend(key.source, key.source_port, key.protocol);
}

// The address is a VIP and nothing else, and no Service declares the port (LB-021). RSTs, invalid segments
// and SCTP packets that open no association are never answered.
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

// SRC-007: the host has several addresses, and the routes select the one it sends from. The host is allowed
// if the ranges include any of its addresses.
bool allows(const lb::SourceFilter& filter, const config::Snapshot& snapshot, const IpAddr& client,
            Sender sender) noexcept {
    return filter.allows(client) ||
           (sender == Sender::Host && std::ranges::any_of(snapshot.routes->addresses(), [&](const auto& own) {
                return filter.allows(own.address);
            }));
}

// ETP-006: the host gets the backend set for clients inside the cluster, which includes endpoints everywhere.
const lb::BackendSet& set_for(const lb::FrontendRow& frontend, const config::Snapshot& snapshot,
                              const IpAddr& client, Sender sender) noexcept {
    return sender == Sender::Host ? frontend.service->sets[frontend.inside_set]
                                  : frontend.backends(client, *snapshot.cluster_clients);
}

// An ACK of no flow (REJ-005), whose connection may have been opened by another gateway. That gateway's
// choice of the backend can be repeated if it was made by a hash, which is the same on every gateway. If the
// source was translated, the endpoint has the connection under a port of that gateway's and could only answer
// with a RST.
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
    // A packet that Linux forwards for other hosts has already passed Linux's routes. A port that no Service
    // declares is not a frontend.
    if (sender == Sender::Host &&
        (frontend == nullptr || !snapshot.routes->is_host_address(parsed.key.source))) {
        return {};
    }
    const auto is_forged = [&] { return sender == Sender::Outside && is_gateways_own(snapshot, parsed.key); };
    const auto is_orphaned = [&] {
        return sender == Sender::Outside &&
               source_path(snapshot, parsed.key.source, arrival) != SourcePath::Ok;
    };
    const auto drop = [&](DropReason reason) {
        return Admission{Admission::Kind::Drop, reason, frontend, nullptr};
    };

    if (frontend == nullptr) {
        // An address assigned to Linux belongs to Linux on every port that no Service declares (XIP-003). An
        // address that is only a VIP has no owner for such ports, and a punt would only make Linux answer for
        // an address that it does not have.
        if (snapshot.routes->is_local(parsed.key.destination)) {
            return {};
        }
        if (snapshot.services->is_vip(parsed.key.destination)) {
            return is_forged()     ? drop(DropReason::MartianSource)
                   : is_orphaned() ? drop(DropReason::ReversePath)
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
    if (is_orphaned()) {
        return drop(DropReason::ReversePath);
    }
    if (parsed.key.protocol == Protocol::Tcp) {
        if (const conn::TcpFlagClass flags = conn::classify(parsed.tcp_flags);
            flags != conn::TcpFlagClass::Syn) [[unlikely]] {
            return mid_stream(snapshot, frontend, parsed, sender, flags);
        }
    }
    // Includes a HEARTBEAT from a second address of the client (SCTP-003).
    if (parsed.key.protocol == Protocol::Sctp && parsed.sctp_event != packet::SctpEvent::Init) {
        return drop(DropReason::SctpNoAssociation);
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
