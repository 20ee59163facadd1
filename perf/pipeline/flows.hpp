// Connections that stand in a gateway, and the packets of them that a bench asks for.
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

    // Opens all of them: SYN, SYN-ACK and ACK, every packet checked. The clock gets the SYNs' time.
    void establish(Player& player, BurstClock& syn_clock);

    // A packet of an established connection, forward or reverse.
    [[nodiscard]] Packet packet(uint32_t slot, bool from_client) const;
    // The SYN of a connection that has never been.
    [[nodiscard]] Packet fresh_syn();
    // After such SYNs came out: each takes over a slot, whose connection is closed, so that the table stays as full as it is; and its
    // handshake goes on.
    void take_over(Player& player, std::span<const Packet> syns, Order& slots);
    // A SYN to a port that no Service has.
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
