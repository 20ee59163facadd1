// SPDX-License-Identifier: Apache-2.0
// The open connections of a gateway, and their packets for a bench.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "perf/harness/order.hpp"
#include "perf/pipeline/player.hpp"

namespace penstock::perf {

class Flows {
 public:
    Flows(Gateway& gateway, uint32_t connections);

    // Opens all of them with SYN, SYN-ACK and ACK; every packet is checked. The clock gets the time of the
    // SYNs.
    void establish(Player& player, BurstClock& syn_clock);

    // A packet of an established connection, forward or reverse.
    [[nodiscard]] Packet packet(uint32_t slot, bool from_client) const;
    // The SYN of a new connection.
    [[nodiscard]] Packet fresh_syn();
    // Called after such SYNs were forwarded. Each new connection takes over the slot of another one, which is
    // closed, so the table's load stays constant. Its handshake continues.
    void take_over(Player& player, std::span<const Packet> syns, Order& slots);
    // A SYN to a port without a Service.
    [[nodiscard]] Packet stray();

    [[nodiscard]] uint32_t count() const noexcept { return static_cast<uint32_t>(numbers_.size()); }

 private:
    void shake_hands(Player& player, std::span<const uint32_t> slots);

    Gateway& gateway_;
    std::vector<uint32_t> numbers_;
    std::vector<Gateway::Binding> bindings_;
    uint32_t next_number_ = 0;
};

}  // namespace penstock::perf
