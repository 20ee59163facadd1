#include "dataplane/pipeline/placement.hpp"

namespace penstock::pipeline {
namespace {

enum class Rule : uint8_t { Frontend, SnatReply, KeptReply, Receiver };

// A reply to full NAT is addressed to a SNAT port. Ports that Linux or a NodePort uses are never taken for SNAT, so they need no owner.
bool is_snat_reply(const packet::FlowKey& key, const config::Snapshot& snapshot) noexcept {
    const nat::SnatConfig& snat = *snapshot.snat;
    if (key.destination_port < snat.ports.first || key.destination_port > snat.ports.last) {
        return false;
    }
    for (const nat::SnatAddress& candidate : snat.addresses) {
        if (candidate.address == key.destination) {
            return !(candidate.shared_with_host && key.destination_port >= snat.host_ephemeral.first &&
                     key.destination_port <= snat.host_ephemeral.last);
        }
    }
    return false;
}

// Where they are not the same for clients inside the cluster and outside: those for what this client is, and has been.
lb::SourceModes modes_for(const IpAddr& client, const lb::PlacementModes& modes, const lb::ClusterClients& cluster) noexcept {
    const bool were_outside = cluster.were_outside(client);
    const bool were_inside = cluster.were_inside(client);
    return {.translate_seen = (were_outside && modes.translate_seen) || (were_inside && modes.inside.translate_seen),
            .keep_seen = (were_outside && modes.keep_seen) || (were_inside && modes.inside.keep_seen),
            .current = cluster.are_inside(client) ? modes.inside.current : modes.current};
}

Rule rule_of(const packet::FlowKey& key, const config::Snapshot& snapshot, lb::SourceModes& modes) noexcept {
    const lb::PlacementModes all = snapshot.services->placement_modes(key.destination, key.destination_port, key.protocol);
    modes = all;
    if (all.ask_for_client()) [[unlikely]] {
        modes = modes_for(key.source, all, *snapshot.cluster_clients);
    }
    if (modes.any()) {
        return Rule::Frontend;
    }
    if (is_snat_reply(key, snapshot)) {
        return Rule::SnatReply;
    }
    // A reply of a flow whose source was kept is addressed to the client, and placed by it.
    if (snapshot.services->is_kept_backend(key.source, key.source_port, key.protocol)) {
        return Rule::KeptReply;
    }
    return Rule::Receiver;
}

}  // namespace

Candidates place(const packet::FlowKey& key, const config::Snapshot& snapshot, const nat::ReplyOwner& owner, WorkerId receiver,
                 bool flow_stays_on_queue) noexcept {
    Candidates candidates;
    lb::SourceModes modes;
    switch (rule_of(key, snapshot, modes)) {
        case Rule::Frontend: {
            const WorkerId translated = flow_stays_on_queue ? receiver : owner.of_tuple(key);
            const WorkerId kept = owner.of_client(key.source);
            const bool keeps_now = modes.current == lb::SourceMode::Keep;
            // The NodePort of a Service that is gone may be a SNAT port again. New flows are not opened here, so every owner is asked.
            if (is_snat_reply(key, snapshot) && snapshot.services->find(key.destination, key.destination_port, key.protocol) == nullptr) {
                candidates.add(owner.of_snat_port(key.destination_port));
            }
            if (keeps_now ? modes.translate_seen : modes.keep_seen) {
                candidates.add(keeps_now ? translated : kept);  // the rule of earlier flows
            }
            candidates.add(keeps_now ? kept : translated);
            break;
        }
        case Rule::SnatReply:
            candidates.add(owner.of_snat_port(key.destination_port));
            break;
        case Rule::KeptReply:
            candidates.add(owner.of_client(key.destination));
            break;
        case Rule::Receiver:
            candidates.add(receiver);
            break;
    }
    return candidates;
}

Candidates place_from_host(const packet::FlowKey& key, const config::Snapshot& snapshot, const nat::ReplyOwner& owner,
                           WorkerId receiver) noexcept {
    if (snapshot.services->placement_modes(key.destination, key.destination_port, key.protocol).any()) {
        return place(key, snapshot, owner, receiver, false);
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

const char* placement_rule(const packet::FlowKey& key, const config::Snapshot& snapshot, bool flow_stays_on_queue) noexcept {
    lb::SourceModes modes;
    switch (rule_of(key, snapshot, modes)) {
        case Rule::Frontend:
            if (modes.current == lb::SourceMode::Keep) {
                return "the keyed hash of the client's address, because the Service keeps the source";
            }
            return flow_stays_on_queue ? "the receiver, because the port keeps a flow on one queue" : "the keyed hash of the 5-tuple";
        case Rule::SnatReply:
            return "the worker that owns this SNAT port";
        case Rule::KeptReply:
            return "the keyed hash of the client's address, because the source is a backend of a Service that keeps it";
        case Rule::Receiver:
            return "the receiver: the packet belongs to no Service";
    }
    return "";
}

}  // namespace penstock::pipeline
