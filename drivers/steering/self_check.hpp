// Whether a NicPort's RSS really does what it tells, found out before anybody relies on it: known packets, whose queue is foretold by
// DPDK's rte_softrss, which knows nothing of our own Toeplitz.
//
//   by computing   our own hash foretells the same queue of each of them. Always possible; it proves us, and takes the device's word.
//   by loopback    they are sent through the port itself with its transmit side led back to its receive side, and the queue that they come
//                  out of is compared. It proves the device, where the device can do that (PmdProfile::loops_back).
//
// What neither can see, workers count while traffic flows: a reply that arrives at a worker who does not own it, although the hash foretold
// so, is handed over and counted (replies_misplaced).
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
    uint16_t queue = 0;   // foretold
};

// Of each kind that the reading covers, to addresses that belong on no wire (RFC 5737, RFC 3849); the same at each call. Only of a reading
// without an obstacle.
[[nodiscard]] std::vector<KnownPacket> known_packets(const RssReading& reading);

// How our own hash and rte_softrss disagree; "" where they do not.
[[nodiscard]] std::string disagreement_by_computing(const RssReading& reading,
                                                    std::span<const KnownPacket> packets);

// What came back of the known packets.
struct LoopbackAnswer {
    unsigned sent = 0;
    unsigned returned = 0;
    unsigned misplaced = 0;       // of the returned
    std::string first_misplaced;  // "TCP 192.0.2.1:1024 -> ... came to queue 1 instead of 0"

    // Why the answer forbids to foretell; "" where it does not. One that never came forbids nothing: it says that nothing was looped.
    [[nodiscard]] std::string disagreement() const;
};

// Sends them to the port's own address by its first transmit queue and polls all receive queues until all are back, or `patience_ms` have
// passed. Of a started port that loops back; nobody else may use its queues.
[[nodiscard]] LoopbackAnswer check_by_loopback(uint16_t dpdk_port, uint16_t rx_queues, const MacAddr& own,
                                               rte_mempool* pool, std::span<const KnownPacket> packets,
                                               unsigned patience_ms);

}  // namespace penstock::drivers
