// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/placement.hpp"

namespace penstock::pipeline {
namespace {

enum class Rule : uint8_t { Frontend, SnatReply, KeptReply, Receiver };

// Replies to full-NAT flows are addressed to a port of a SNAT address, which is returned. Ports used by Linux
// or by a NodePort are never used for SNAT, so they need no owner. Null: not such a reply.
const nat::SnatAddress* replied_address(const packet::FlowKey& key,
                                        const config::Snapshot& snapshot) noexcept {
    const nat::SnatConfig& snat = *snapshot.snat;
    if (key.destination_port < snat.ports.first || key.destination_port > snat.ports.last) {
        return nullptr;
    }
    const nat::SnatAddress* address = snat.addresses.find(key.destination);
    const bool is_hosts = address != nullptr && address->shared_with_host &&
                          key.destination_port >= snat.host_ephemeral.first &&
                          key.destination_port <= snat.host_ephemeral.last;
    return is_hosts ? nullptr : address;
}

// On the port where the reply arrived, RSS follows the rule by which the reply's SNAT port was chosen.
bool is_foretold(const nat::ReplyRule& rule, const packet::FlowKey& reply, const nat::ReplyOwner& owner,
                 NicPortId port) noexcept {
    const nat::ReplyRule* there = owner.rules->of_port(port);
    return there != nullptr && there->is_alike(rule) && there->covers(reply.source.family(), reply.protocol);
}

void add_owner_of_reply(const packet::FlowKey& reply, NicPortId egress, const nat::ReplyOwner& owner,
                        const Arrived& arrived, Ask ask, Candidates& candidates) noexcept {
    const nat::ReplyRule* rule = owner.rule_of_replies(egress, reply.source.family(), reply.protocol);
    if (rule == nullptr) {
        candidates.is_foretold = arrived.promises.snat_blocks_on_queue;
        return candidates.add(owner.of_snat_port(reply.destination_port));
    }
    if (is_foretold(*rule, reply, owner, arrived.port)) {
        candidates.is_foretold = true;
        candidates.add(arrived.receiver);
        if (ask == Ask::ReceiverFirst) {
            candidates.is_first_guess = true;
            return;
        }
    }
    candidates.add(rule->worker_of(reply));
}

// For modes that differ between clients inside and outside the cluster: the modes that apply, and have
// applied, to this client.
lb::SourceModes modes_for(const IpAddr& client, const lb::PlacementModes& modes,
                          const lb::ClusterClients& cluster) noexcept {
    const bool were_outside = cluster.were_outside(client);
    const bool were_inside = cluster.were_inside(client);
    return {.translate_seen =
                (were_outside && modes.translate_seen) || (were_inside && modes.inside.translate_seen),
            .keep_seen = (were_outside && modes.keep_seen) || (were_inside && modes.inside.keep_seen),
            .current = cluster.are_inside(client) ? modes.inside.current : modes.current};
}

// `known`: the destination's frontend, if known. Sets `modes` for Frontend, `replied` for SnatReply.
Rule rule_of(const packet::FlowKey& key, const config::Snapshot& snapshot, const lb::FrontendRow* known,
             lb::SourceModes& modes, const nat::SnatAddress*& replied) noexcept {
    if (known != nullptr || snapshot.services->may_be_placed(key.destination_port, key.protocol)) {
        const lb::PlacementModes all =
            known != nullptr
                ? known->modes
                : snapshot.services->placement_modes(key.destination, key.destination_port, key.protocol);
        modes = all;
        if (all.ask_for_client()) [[unlikely]] {
            modes = modes_for(key.source, all, *snapshot.cluster_clients);
        }
        if (modes.any()) {
            return Rule::Frontend;
        }
    }
    replied = replied_address(key, snapshot);
    if (replied != nullptr) {
        return Rule::SnatReply;
    }
    // A reply of a flow with a kept source is addressed to the client, and is placed by the client's address.
    if (snapshot.services->is_kept_backend(key.source, key.source_port, key.protocol)) {
        return Rule::KeptReply;
    }
    return Rule::Receiver;
}

bool keeps_port(const packet::FlowKey& association, const config::Snapshot& snapshot) noexcept {
    return association.source_port >= snapshot.snat->ports.first &&
           association.source_port <= snapshot.snat->ports.last;
}

// Whether the receiver of a flow's first packet receives all packets of the flow, while other flows have
// other receivers. A rule that steers a worker's SNAT ports to its queue also steers NodePorts of that
// address. From the moment the rule exists, all clients of such a NodePort reach one worker.
bool comes_to_one_of_many(const packet::FlowKey& key, const config::Snapshot& snapshot,
                          const PortPromises& promises) noexcept {
    return promises.flow_stays_on_queue &&
           !(promises.snat_blocks_on_queue && snapshot.snat->addresses.find(key.destination) != nullptr);
}

// The worker that opens a flow with a translated source. An association keeps its port if possible
// (new_flow.cpp), so that port determines the receiver of the replies.
WorkerId owner_of_translated(const packet::FlowKey& key, const config::Snapshot& snapshot,
                             const nat::ReplyOwner& owner, const Arrived& arrived) noexcept {
    if (key.protocol == Protocol::Sctp) [[unlikely]] {
        return keeps_port(key, snapshot) ? owner.of_snat_port(key.source_port) : owner.of_tuple(key);
    }
    return comes_to_one_of_many(key, snapshot, arrived.promises) ? arrived.receiver : owner.of_tuple(key);
}

}  // namespace

Candidates place(const packet::FlowKey& key, const config::Snapshot& snapshot, const nat::ReplyOwner& owner,
                 const Arrived& arrived, Ask ask) noexcept {
    Candidates candidates;
    lb::SourceModes modes;
    const nat::SnatAddress* replied = nullptr;
    switch (rule_of(key, snapshot, arrived.known, modes, replied)) {
        case Rule::Frontend: {
            const WorkerId translated = owner_of_translated(key, snapshot, owner, arrived);
            const WorkerId kept = owner.of_client(key.source);
            const bool keeps_now = modes.current == lb::SourceMode::Keep;
            // The NodePort of a deleted Service may be a SNAT port again. No new flow is opened here, so
            // every owner is a candidate.
            if (const nat::SnatAddress* address = replied_address(key, snapshot);
                address != nullptr &&
                snapshot.services->find(key.destination, key.destination_port, key.protocol) == nullptr) {
                candidates.add(owner.of_snat_reply(address->egress, key));
            }
            if (keeps_now ? modes.translate_seen : modes.keep_seen) {
                candidates.add(keeps_now ? translated : kept);  // the rule of earlier flows
            }
            candidates.add(keeps_now ? kept : translated);
            break;
        }
        case Rule::SnatReply:
            add_owner_of_reply(key, replied->egress, owner, arrived, ask, candidates);
            break;
        case Rule::KeptReply:
            candidates.add(owner.of_client(key.destination));
            break;
        case Rule::Receiver:
            candidates.add(arrived.receiver);
            break;
    }
    return candidates;
}

WorkerId receiver_of_whole(const packet::FlowKey& key, const nat::ReplyOwner& owner,
                           const Arrived& arrived) noexcept {
    const nat::ReplyRule* rule = owner.rules != nullptr ? owner.rules->of_port(arrived.port) : nullptr;
    return rule != nullptr && rule->covers(key.source.family(), key.protocol) ? rule->worker_of(key)
                                                                              : arrived.receiver;
}

ErrorOwners place_error(const packet::FlowKey& quoted, const config::Snapshot& snapshot,
                        const nat::ReplyOwner& owner, const Arrived& arrived,
                        const PortPromises& of_any_port) noexcept {
    const packet::FlowKey answered = quoted.reversed();  // a packet of the flow that travels like the error
    lb::SourceModes modes;
    const nat::SnatAddress* replied = nullptr;
    const Rule rule = rule_of(answered, snapshot, nullptr, modes, replied);
    if (rule == Rule::Receiver) {
        return {};
    }
    Arrived as_answered = arrived;
    as_answered.known = nullptr;  // of the error's destination, if set at all
    as_answered.receiver = receiver_of_whole(answered, owner, arrived);
    // An association's owner never depends on a queue (owner_of_translated).
    return {.candidates = place(answered, snapshot, owner, as_answered, Ask::EachWorker),
            .may_be_anywhere = rule == Rule::Frontend && modes.translate_seen &&
                               answered.protocol != Protocol::Sctp &&
                               comes_to_one_of_many(answered, snapshot, of_any_port)};
}

bool may_be_of_flow(const IpAddr& destination, const config::Snapshot& snapshot) noexcept {
    return snapshot.services->is_vip(destination) || snapshot.snat->addresses.find(destination) != nullptr;
}

bool fragment_may_be_of_flow(const IpAddr& source, const IpAddr& destination,
                             const config::Snapshot& snapshot) noexcept {
    const lb::ServiceTable& services = *snapshot.services;
    return services.is_flow_address(destination) || snapshot.snat->addresses.find(destination) != nullptr ||
           services.is_flow_address(source);
}

Candidates place_from_host(const packet::FlowKey& key, const config::Snapshot& snapshot,
                           const nat::ReplyOwner& owner, WorkerId receiver) noexcept {
    if (snapshot.services->placement_modes(key.destination, key.destination_port, key.protocol).any()) {
        return place(key, snapshot, owner, {.receiver = receiver, .port = {}, .promises = {}},
                     Ask::EachWorker);
    }
    Candidates candidates;
    if (snapshot.services->is_endpoint_port(key.source_port, key.protocol)) {
        candidates.add(owner.of_client(key.destination));
        candidates.add(owner.of_snat_port(key.destination_port));
    } else {
        candidates.add(receiver);
    }
    return candidates;
}

PlacementReason placement_reason(const packet::FlowKey& key, const config::Snapshot& snapshot,
                                 const Arrived& arrived) noexcept {
    lb::SourceModes modes;
    const nat::SnatAddress* replied = nullptr;
    switch (rule_of(key, snapshot, arrived.known, modes, replied)) {
        case Rule::Frontend:
            if (modes.current == lb::SourceMode::Keep) {
                return {PlacementRule::ClientOfKeptSource, {}};
            }
            if (key.protocol == Protocol::Sctp) {
                return {keeps_port(key, snapshot) ? PlacementRule::AssociationPort : PlacementRule::Tuple,
                        {}};
            }
            return {comes_to_one_of_many(key, snapshot, arrived.promises) ? PlacementRule::ReceiverOfFlow
                                                                          : PlacementRule::Tuple,
                    {}};
        case Rule::SnatReply:
            return {PlacementRule::SnatReply, replied->egress};
        case Rule::KeptReply:
            return {PlacementRule::ClientOfKeptReply, {}};
        case Rule::Receiver:
            break;
    }
    return {PlacementRule::NoService, {}};
}

}  // namespace penstock::pipeline
