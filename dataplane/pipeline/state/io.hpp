// SPDX-License-Identifier: Apache-2.0
// Sources and destinations of a worker's packets: receive and transmit queues, and the rings that join it to
// other workers and to the thread that serves the TAP twins. Rings hold mbufs and transfer their ownership. A
// worker never touches a packet that it has put into a ring.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/punt_class.hpp"

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

namespace penstock::pipeline {

// Packets collected for one destination, sent at the end of the burst that made them.
struct OutBuffer {
    uint32_t count = 0;
    std::array<rte_mbuf*, limits::kBurstMax> packets{};
};

struct PortIo {
    NicPortId id;
    bool used = false;
    uint16_t dpdk_port = 0;
    bool rx_checksum_checked = false;
    bool rx_interrupts = false;  // its receive queues can wake a sleeping worker
    // The device is gone: nothing is received from it, and packets that would leave through it are dropped.
    // The worker's own copy, updated between rounds (worker/detached_ports.hpp).
    bool removed = false;
    // Removed, or a capture records what leaves. One condition, so that neither costs a packet anything.
    bool watched = false;
    // Queues this worker polls: first_rx_queue, + rx_queue_step, ... below rx_queues. first >= rx_queues:
    // none.
    uint16_t first_rx_queue = 0;
    uint16_t rx_queue_step = 1;
    uint16_t rx_queues = 0;
    // The queue this worker sends on. If the port has too few queues: the ring of the worker that sends for
    // it.
    uint16_t tx_queue = 0;
    rte_ring* tx_through = nullptr;
    // Packets of workers without a queue, which this worker sends on its own queue. Null: there are none.
    rte_ring* tx_for_others = nullptr;
    std::array<rte_ring*, kPuntClasses> to_host{};  // many workers -> twin thread, by PuntClass
    // twin thread -> this worker; null: another worker serves this port's twin
    rte_ring* from_host = nullptr;
    OutBuffer tx;
    uint32_t punts = 0;  // in all of `punt`
    std::array<OutBuffer, kPuntClasses> punt;
};

struct WorkerIo {
    uint32_t ports = 0;
    uint16_t burst = limits::kBurstMax;             // packets taken from a queue at once, at most
    std::array<PortIo, limits::kNicPortsMax> port;  // by NicPortId
    rte_mempool* own_buffers = nullptr;             // for ctx.own_segments
    rte_ring* handoff_in = nullptr;
    std::array<rte_ring*, limits::kWorkersMax> handoff_to{};  // null for the worker itself
    std::array<OutBuffer, limits::kWorkersMax> handoff;
};

}  // namespace penstock::pipeline
