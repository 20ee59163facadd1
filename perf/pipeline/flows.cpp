// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline/flows.hpp"

#include <algorithm>

#include "dataplane/base/check.hpp"
#include "perf/pipeline/frames.hpp"

namespace penstock::perf {

Flows::Flows(Gateway& gateway, uint32_t connections)
    : gateway_(gateway), numbers_(connections), bindings_(connections) {}

void Flows::establish(Player& player, BurstClock& syn_clock) {
    std::vector<Packet> syns;
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < count();) {
        syns.clear();
        slots.clear();
        for (; slot < count() && syns.size() < Player::kFramesMax; ++slot) {
            syns.push_back(fresh_syn());
            slots.push_back(slot);
        }
        player.play(syns, syn_clock);
        for (size_t i = 0; i < syns.size(); ++i) {
            numbers_[slots[i]] = syns[i].number;
            bindings_[slots[i]] = gateway_.binding_of(syns[i].leaves_as);
        }
        shake_hands(player, slots);
    }
}

// SYN-ACK and ACK.
void Flows::shake_hands(Player& player, std::span<const uint32_t> slots) {
    std::vector<Packet> packets;
    for (const bool from_client : {false, true}) {
        packets.clear();
        for (const uint32_t slot : slots) {
            packets.push_back(packet(slot, from_client));
            packets.back().tcp_flags = from_client ? kAck : kSyn | kAck;
        }
        BurstClock unused;
        player.play(packets, unused);
    }
}

Packet Flows::packet(uint32_t slot, bool from_client) const {
    const packet::FlowKey client = gateway_.client_tuple(numbers_[slot]);
    const packet::FlowKey reply = gateway_.reply_tuple(bindings_[slot]);
    return from_client
               ? Packet{.key = client, .expected = reply.reversed(), .tcp_flags = kAck}
               : Packet{.key = reply, .expected = client.reversed(), .tcp_flags = kAck, .from_client = false};
}

Packet Flows::fresh_syn() {
    const uint32_t number = next_number_++;
    return {.key = gateway_.client_tuple(number),
            .number = number,
            .tcp_flags = kSyn,
            .outcome = Packet::Outcome::Opens};
}

void Flows::take_over(Player& player, std::span<const Packet> syns, Order& order) {
    conn::Table& table = gateway_.context().connections;
    std::vector<uint32_t> slots;
    for (const Packet& syn : syns) {
        uint32_t slot = order.next();
        while (std::find(slots.begin(), slots.end(), slot) != slots.end()) {
            slot = order.next();
        }
        slots.push_back(slot);
        const packet::FlowKey old = gateway_.client_tuple(numbers_[slot]);
        const conn::Found found = table.find(old, table.hash(old));
        PENSTOCK_CHECK(found.is_hit());
        pipeline::close_connection(gateway_.context(), found.index, pipeline::Removal::Reopened);
        numbers_[slot] = syn.number;
        bindings_[slot] = gateway_.binding_of(syn.leaves_as);
    }
    shake_hands(player, slots);
}

Packet Flows::stray() {
    Packet packet{
        .key = gateway_.client_tuple(next_number_++), .tcp_flags = kSyn, .outcome = Packet::Outcome::Refused};
    packet.key.destination_port = 81;
    return packet;
}

}  // namespace penstock::perf
