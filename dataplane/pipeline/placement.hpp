// Which worker a packet's connection lives on. Pure: the same answer on every worker, from the packet and the snapshot alone, so that both
// directions of a flow meet on one owner whatever queues they arrive on (architecture page, "Replies come home").
//
// Usually there is one candidate. A frontend whose traffic policy was switched while flows lived has two: flows from before were placed by
// the old rule, new ones are by the new one. Then the packet visits the old rule's owner first; only the last candidate may open a flow.
//
// A reply to a SNAT address that arrives where RSS was foretold to bring it is looked for on its receiver before anything is computed; only
// where it is unknown there, the hash says whose it is. So RSS that does what it told costs a reply nothing, and RSS that lies one visit.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "dataplane/base/ids.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::pipeline {

struct Candidates {
    std::array<WorkerId, 3> workers{};
    uint8_t count = 0;
    bool is_foretold =
        false;  // RSS or a flow rule of the arrival port should have brought the packet to its owner
    bool is_first_guess = false;  // asked with Ask::ReceiverFirst: on a miss ask again for everybody
    void add(WorkerId worker) noexcept {
        if (count == 0 || workers[count - 1] != worker) {  // two rules may agree
            workers[count++] = worker;
        }
    }
    // The configuration may change while a packet is on its way, so a position that another worker counted need not be there any more.
    [[nodiscard]] uint8_t in_range(uint8_t tried) const noexcept {
        return tried < count ? tried : static_cast<uint8_t>(count - 1);
    }
    [[nodiscard]] bool is_last(uint8_t tried) const noexcept { return tried + 1 >= count; }
};

// What a NicPort promises of where packets arrive.
struct PortPromises {
    // All packets of one 5-tuple arrive on one worker's queues: true with RSS over as many queues as workers, or with a single worker. Then
    // the worker that receives a full-NAT flow's first packet owns it. False, for instance, with one af_xdp queue for several workers: then
    // only ReplyOwner::of_tuple() and of_client() keep a flow together.
    bool flow_stays_on_queue = false;
    // rte_flow rules lead each block of SNAT ports to its owner's queue; counts what arrives elsewhere.
    bool snat_blocks_on_queue = false;
};

// How a packet came to the gateway.
struct Arrived {
    WorkerId receiver;  // whose receive queue it came from
    NicPortId port;
    PortPromises promises;
    const lb::FrontendRow* known = nullptr;  // the destination's frontend, where a mark has named it
};

enum class Ask : uint8_t {
    ReceiverFirst,  // by the receiver itself, before anybody else was asked: as little as may do
    Everybody,
};

[[nodiscard]] Candidates place(const packet::FlowKey& key, const config::Snapshot& snapshot,
                               const nat::ReplyOwner& owner, const Arrived& arrived, Ask ask) noexcept;

// Whose flow an ICMP error may be about.
struct ErrorOwners {
    Candidates candidates;  // in turn; none: the quoted packet is no Service's
    // The flow belongs to whoever received its first packet, and the error says nothing certain about how that one was chosen: its arrival
    // port may be another one than the flow's, or its hash unknown. Behind the candidates, all workers may be asked.
    bool may_be_anywhere = false;

    [[nodiscard]] uint32_t turns(uint32_t workers) const noexcept {
        return candidates.count + (may_be_anywhere && candidates.count > 0 ? workers - 1 : 0);
    }
    // Whom to ask in which turn below turns(): the candidates, then from the last one on all the others.
    [[nodiscard]] WorkerId at(uint32_t turn, uint32_t workers) const noexcept {
        if (turn < candidates.count) {
            return candidates.workers[turn];
        }
        const uint32_t last = candidates.workers[candidates.count - 1].value;
        return {static_cast<uint8_t>((last + turn - candidates.count + 1) % workers)};
    }
};

// By the packet that it quotes (packet::quoted_packet()), which the gateway has sent. `of_any_port`: the best promises of all ports.
[[nodiscard]] ErrorOwners place_error(const packet::FlowKey& quoted, const config::Snapshot& snapshot,
                                      const nat::ReplyOwner& owner, const Arrived& arrived,
                                      const PortPromises& of_any_port) noexcept;

// Who would have received a packet with this key if the NIC had seen its ports, which it cannot in a fragment and behind what encloses a
// quoted packet. Where the arrival port's RSS is not known, whoever received this one.
[[nodiscard]] WorkerId receiver_of_whole(const packet::FlowKey& key, const nat::ReplyOwner& owner,
                                         const Arrived& arrived) noexcept;

// Whether the destination is a Service's or a SNAT address.
[[nodiscard]] bool may_be_of_flow(const IpAddr& destination, const config::Snapshot& snapshot) noexcept;

// Whether a fragment between these may be of a flow: it goes to a frontend's or a SNAT address, or comes from an endpoint that answers to
// its clients' own addresses.
[[nodiscard]] bool fragment_may_be_of_flow(const IpAddr& source, const IpAddr& destination,
                                           const config::Snapshot& snapshot) noexcept;

// The same for a packet that Linux has sent through a twin; `receiver` serves that twin. The queue says nothing then: Linux may change the
// twin in the middle of a flow. An endpoint on the host answers to the client itself, and to a port that tells the owner where the client's
// address does not (new_flow.cpp); so both are asked, if any endpoint has the source's port.
[[nodiscard]] Candidates place_from_host(const packet::FlowKey& key, const config::Snapshot& snapshot,
                                         const nat::ReplyOwner& owner, WorkerId receiver) noexcept;

// What decided, for explain: "the keyed hash of the 5-tuple", "RSS of NicPort 1: hash 0x51ccc178, entry 120 -> worker 0", ...
[[nodiscard]] std::string placement_rule(const packet::FlowKey& key, const config::Snapshot& snapshot,
                                         const nat::ReplyOwner& owner, const Arrived& arrived);
// The same of a reply to a SNAT address with that nat::SnatAddresses::reply_egress().
[[nodiscard]] std::string reply_rule_text(const packet::FlowKey& reply, NicPortId egress,
                                          const nat::ReplyOwner& owner);

}  // namespace penstock::pipeline
