// SPDX-License-Identifier: Apache-2.0
// Computes the worker that owns a packet's connection. Pure: the result is the same on every worker, from the
// packet and the snapshot alone. Therefore both directions of a flow reach the same owner, whatever queues
// they arrive on (architecture page, "Ownership of replies").
//
// Usually there is one candidate. A frontend with a traffic policy changed while it had flows has two:
// existing flows were placed by the old rule, new ones are placed by the new rule. The packet then visits the
// owner of the old rule first. Only the last candidate may open a flow.
//
// A reply to a SNAT address may arrive on the receiver that predictable RSS selects. It is first looked up
// there, before the owner is computed. The owner is computed from the hash only if the lookup misses. If RSS
// works as predicted, this costs a reply nothing; otherwise it costs one visit.
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/pipeline/state/candidates.hpp"
#include "dataplane/pipeline/state/port_promises.hpp"

namespace penstock::pipeline {

// How a packet reached the gateway.
struct Arrived {
    WorkerId receiver;  // the worker on whose receive queue it arrived
    NicPortId port;
    PortPromises promises;
    const lb::FrontendRow* known = nullptr;  // the destination's frontend, if a mark has named it
};

enum class Ask : uint8_t {
    ReceiverFirst,  // computed by the receiver itself, before any other worker: the least that may suffice
    EachWorker,
};

[[nodiscard]] Candidates place(const packet::FlowKey& key, const config::Snapshot& snapshot,
                               const nat::ReplyOwner& owner, const Arrived& arrived, Ask ask) noexcept;

// The owner of the packets that place() is mostly called for: to a frontend that has always translated the
// source, for all clients, and replies to a SNAT address whose owner no rule of RSS determines. It is then
// the only candidate of place(), and not foretold. Unset: place() determines the candidates.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE WorkerId usual_owner(const packet::FlowKey& key,
                                                          const config::Snapshot& snapshot,
                                                          const nat::ReplyOwner& owner, WorkerId receiver,
                                                          const PortPromises& promises) noexcept {
    if (promises.snat_blocks_on_queue || owner.rules != nullptr || key.protocol == Protocol::Sctp) {
        return {};
    }
    const lb::ServiceTable& services = *snapshot.services;
    if (services.may_be_placed(key.destination_port, key.protocol)) {
        const lb::FrontendRow* row = services.find(key.destination, key.destination_port, key.protocol);
        if (row == nullptr || row->modes.keep_seen || row->modes.ask_for_client()) {
            return {};
        }
        return promises.flow_stays_on_queue ? receiver : owner.of_tuple(key);
    }
    const nat::SnatConfig& snat = *snapshot.snat;
    if (key.destination_port < snat.ports.first || key.destination_port > snat.ports.last) {
        return {};
    }
    const nat::SnatAddress* address = snat.addresses.find(key.destination);
    if (address == nullptr ||
        (address->shared_with_host && key.destination_port >= snat.host_ephemeral.first &&
         key.destination_port <= snat.host_ephemeral.last)) {
        return {};
    }
    return owner.of_snat_port(key.destination_port);
}

// The workers that may own the flow of an ICMP error.
struct ErrorOwners {
    Candidates candidates;  // in turn; none: the quoted packet belongs to no Service
    // The flow is owned by the worker that received its first packet, and the error does not reliably show
    // how that worker was selected: the arrival port of the error may differ from the flow's, or its hash is
    // unknown. After the candidates, all workers may be searched.
    bool may_be_anywhere = false;

    [[nodiscard]] uint32_t turns(uint32_t workers) const noexcept {
        return candidates.count + (may_be_anywhere && candidates.count > 0 ? workers - 1 : 0);
    }
    // The worker to search in a turn below turns(): the candidates, then all others, starting after the last
    // candidate.
    [[nodiscard]] WorkerId at(uint32_t turn, uint32_t workers) const noexcept {
        if (turn < candidates.count) {
            return candidates.workers[turn];
        }
        const uint32_t last = candidates.workers[candidates.count - 1].value;
        return {static_cast<uint8_t>((last + turn - candidates.count + 1) % workers)};
    }
};

// Derived from the quoted packet (packet::quoted_packet()), which the gateway has sent. `of_any_port`: the
// best promises of all ports.
[[nodiscard]] ErrorOwners place_error(const packet::FlowKey& quoted, const config::Snapshot& snapshot,
                                      const nat::ReplyOwner& owner, const Arrived& arrived,
                                      const PortPromises& of_any_port) noexcept;

// The worker that would have received a packet with this key if the NIC had seen its ports. The NIC cannot
// see them in a fragment or behind the headers that enclose a quoted packet. If the arrival port's RSS is
// unknown: the worker that received this packet.
[[nodiscard]] WorkerId receiver_of_whole(const packet::FlowKey& key, const nat::ReplyOwner& owner,
                                         const Arrived& arrived) noexcept;

// Whether the destination is an address of a Service or a SNAT address.
[[nodiscard]] bool may_be_of_flow(const IpAddr& destination, const config::Snapshot& snapshot) noexcept;

// Whether a fragment between these addresses may belong to a flow: it is sent to a frontend or a SNAT
// address, or comes from an endpoint that answers to its clients' own addresses.
[[nodiscard]] bool fragment_may_be_of_flow(const IpAddr& source, const IpAddr& destination,
                                           const config::Snapshot& snapshot) noexcept;

// Same for a packet that Linux has sent through a twin; `receiver` serves that twin. The queue has no meaning
// here: Linux may change the twin in the middle of a flow. An endpoint on the host answers to the client's
// address, and to a port that determines the owner if the client's address does not (new_flow.cpp). Both
// candidates are returned if any endpoint has the source's port.
[[nodiscard]] Candidates place_from_host(const packet::FlowKey& key, const config::Snapshot& snapshot,
                                         const nat::ReplyOwner& owner, WorkerId receiver) noexcept;

// The rule by which place() selects the owner. Used by explain.
enum class PlacementRule : uint8_t {
    ClientOfKeptSource,  // keyed hash of the client's address: the Service keeps the source
    AssociationPort,     // the block of the association's own port, which it keeps
    Tuple,               // keyed hash of the 5-tuple
    ReceiverOfFlow,      // the receiver: the port keeps a flow on one queue
    SnatReply,           // nat::ReplyOwner::of_snat_reply()
    ClientOfKeptReply,   // same: the source is a backend of a Service that keeps client addresses
    NoService,           // the receiver: the packet belongs to no Service
};
struct PlacementReason {
    PlacementRule rule;
    NicPortId reply_egress;  // of SnatReply: nat::SnatAddresses::reply_egress()
};
[[nodiscard]] PlacementReason placement_reason(const packet::FlowKey& key, const config::Snapshot& snapshot,
                                               const Arrived& arrived) noexcept;

}  // namespace penstock::pipeline
