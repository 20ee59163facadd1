// SPDX-License-Identifier: Apache-2.0
// Verifies that a NicPort's RSS behaves as reported, before it is relied on. The check uses known packets
// whose queue is predicted by DPDK's rte_softrss, which shares no code with our own Toeplitz hash.
//
//   by computing   our own hash predicts the same queue for each packet. Always possible. Verifies our hash
//                  and relies on the device's report.
//   by loopback    the packets are sent through the port with its transmit side looped back to its receive
//                  side, and the receive queue is compared. Verifies the device, if it supports that
//                  (PmdProfile::loops_back).
//
// Errors that neither check detects are counted during traffic: a reply that reaches a worker other than its
// owner, although the hash predicted the owner, is handed over and counted (replies_misplaced).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "drivers/steering/rss.hpp"

struct rte_mempool;

namespace penstock::drivers {

struct KnownPacket {
    packet::FlowKey key;  // as on the wire
    uint16_t queue = 0;   // predicted
};

// Packets of each type that the reading covers, to documentation addresses (RFC 5737, RFC 3849); the same at
// each call. Only for a reading without an obstacle.
[[nodiscard]] std::vector<KnownPacket> known_packets(const RssReading& reading);

// Where our own hash and rte_softrss disagree; "" if they agree.
[[nodiscard]] std::string disagreement_by_computing(const RssReading& reading,
                                                    std::span<const KnownPacket> packets);

// Result of the loopback check.
struct LoopbackAnswer {
    unsigned sent = 0;
    unsigned returned = 0;
    unsigned misplaced = 0;       // of the returned
    std::string first_misplaced;  // "TCP 192.0.2.1:1024 -> ... reached queue 1 instead of 0"

    // Why the result forbids prediction; "" if it does not. Missing packets forbid nothing: they only show
    // that the device does not loop back.
    [[nodiscard]] std::string disagreement() const;
};

// Sends the packets to the port's own address by its first transmit queue and polls all receive queues until
// all packets are back, or `patience_ms` have passed. For a started port that loops back. No other thread may
// use its queues.
[[nodiscard]] LoopbackAnswer check_by_loopback(uint16_t dpdk_port, uint16_t rx_queues, const MacAddr& own,
                                               rte_mempool* pool, std::span<const KnownPacket> packets,
                                               unsigned patience_ms);

}  // namespace penstock::drivers
