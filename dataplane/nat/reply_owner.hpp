// SPDX-License-Identifier: Apache-2.0
// Computes the owner worker of a packet: pure arithmetic with the same result on every worker. The two
// directions of a connection therefore meet on one worker, whatever queue the NIC chose
// (docs/architecture.md, "Ownership of replies"). A worker that receives a packet of another owner hands it
// off. These functions compute the owner without reading any worker's table.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/nat/port_blocks.hpp"
#include "dataplane/nat/reply_rules.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::nat {

struct ReplyOwner {
    uint32_t workers = 1;
    HashKey secret;  // keyed; otherwise an attacker could aim all its flows at one worker
    KeyedMix mix = KeyedMix(secret);
    // The rules of the NicPorts' RSS. Null: no NicPort's RSS is predictable. Must outlive all users.
    const ReplyRules* rules = nullptr;

    // The rule for replies to a SNAT address with this SnatAddress::egress. Null: of_snat_port() applies.
    [[nodiscard]] const ReplyRule* rule_of_replies(NicPortId egress, IpFamily family,
                                                   Protocol protocol) const noexcept {
        return rules == nullptr ? nullptr : rules->of_replies(egress, family, protocol);
    }
    // For a reply to such an address, with its tuple as received: the worker with the pool that the port came
    // from.
    [[nodiscard]] WorkerId of_snat_reply(NicPortId egress, const packet::FlowKey& reply) const noexcept {
        const ReplyRule* rule = rule_of_replies(egress, reply.source.family(), reply.protocol);
        return rule == nullptr ? of_snat_port(reply.destination_port) : rule->worker_of(reply);
    }

    // If no rule covers a reply, SNAT ports belong to workers in blocks. Blocks are assigned in turn, so that
    // any range of ports is shared evenly.
    [[nodiscard]] constexpr WorkerId of_snat_port(L4Port port) const noexcept {
        return {static_cast<uint8_t>((port / kPortsPerBlock) % workers)};
    }
    // A port at or above 1024 that of_snat_port() assigns to `worker`. Each `number` has one; consecutive
    // numbers have consecutive ports of the worker and wrap around.
    [[nodiscard]] constexpr L4Port port_of(WorkerId worker, uint64_t number) const noexcept {
        constexpr uint32_t kFirstBlock = 1024 / kPortsPerBlock;
        const uint32_t first = kFirstBlock + (worker.value + workers - kFirstBlock % workers) % workers;
        const uint32_t blocks = (kPortBlocks - first + workers - 1) / workers;
        const auto at = static_cast<uint32_t>(number % (uint64_t{blocks} * kPortsPerBlock));
        return static_cast<L4Port>((first + at / kPortsPerBlock * workers) * kPortsPerBlock +
                                   at % kPortsPerBlock);
    }
    // For flows that keep their source. The client's address is then the only field of the reply that also
    // occurs in the first packet and is reliable before the flow is found. Call it with the forward packet's
    // source, or the reverse packet's destination.
    [[nodiscard]] WorkerId of_client(const IpAddr& client) const noexcept {
        return spread(client_hash(client));
    }
    // For a forward packet on a NicPort without flow_stays_on_queue.
    [[nodiscard]] WorkerId of_tuple(const packet::FlowKey& forward) const noexcept {
        return spread(packet::hash_of(forward, mix));
    }
    // For a fragment: these fields are common to all fragments of a datagram (packet::datagram_id()), and no
    // others are.
    [[nodiscard]] WorkerId of_datagram(const IpAddr& source, const IpAddr& destination, uint8_t protocol,
                                       uint32_t id) const noexcept {
        const auto from = load<std::array<uint64_t, 2>>(source.bytes().data()),
                   to = load<std::array<uint64_t, 2>>(destination.bytes().data());
        return spread(mix.of(from[0], from[1], to[0], to[1], uint64_t{id} << 8 | protocol));
    }
    // Evenly distributed over clients, and the same on every worker.
    [[nodiscard]] uint64_t client_hash(const IpAddr& client) const noexcept {
        return packet::hash_of(client, mix);
    }

 private:
    // Scales the high word to the number of workers: no division, and even to one part in 2^32.
    [[nodiscard]] WorkerId spread(uint64_t hash) const noexcept {
        return {static_cast<uint8_t>(((hash >> 32) * workers) >> 32)};
    }
};

}  // namespace penstock::nat
