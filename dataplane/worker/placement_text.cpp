// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/placement_text.hpp"

#include <array>

namespace penstock::worker {
namespace {

// `egress`: nat::SnatAddresses::reply_egress() of the SNAT address.
std::string reply_rule_text(const packet::FlowKey& reply, NicPortId egress, const nat::ReplyOwner& owner) {
    const nat::ReplyRule* rule = owner.rule_of_replies(egress, reply.source.family(), reply.protocol);
    if (rule == nullptr) {
        return "the SNAT port's block " + std::to_string(reply.destination_port / nat::kPortsPerBlock) +
               " -> worker " + std::to_string(owner.of_snat_port(reply.destination_port).value);
    }
    const nat::ReplyRule::Way way = rule->way_of(reply);
    std::array<char, 9> hex{};
    for (uint32_t digit = 0; digit < 8; ++digit) {
        hex[digit] = "0123456789abcdef"[way.hash >> (28 - 4 * digit) & 15];
    }
    return "RSS of NicPort " + std::to_string(rule->port().value) + ": hash 0x" + hex.data() + ", entry " +
           std::to_string(way.entry) + " -> worker " + std::to_string(way.worker.value);
}

}  // namespace

std::string placement_text(const packet::FlowKey& key, const config::Snapshot& snapshot,
                           const nat::ReplyOwner& owner, const pipeline::Arrived& arrived) {
    using pipeline::PlacementRule;
    const pipeline::PlacementReason reason = pipeline::placement_reason(key, snapshot, arrived);
    switch (reason.rule) {
        case PlacementRule::ClientOfKeptSource:
            return "the keyed hash of the client's address, because the Service keeps the source";
        case PlacementRule::AssociationPort:
            return "the block of the association's own port, which it keeps";
        case PlacementRule::Tuple:
            return "the keyed hash of the 5-tuple";
        case PlacementRule::ReceiverOfFlow:
            return "the receiver, because the port keeps a flow on one queue";
        case PlacementRule::SnatReply:
            return reply_rule_text(key, reason.reply_egress, owner);
        case PlacementRule::ClientOfKeptReply:
            return "the keyed hash of the client's address, because the source is a backend of a Service "
                   "that keeps client addresses";
        case PlacementRule::NoService:
            return "the receiver: the packet belongs to no Service";
    }
    return "";
}

}  // namespace penstock::worker
