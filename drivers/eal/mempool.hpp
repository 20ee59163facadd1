// SPDX-License-Identifier: Apache-2.0
// Packet buffers: one pool for each NUMA socket that has a port or a worker. All mbufs of the product come
// from these pools, including frames from Linux and answers that a worker builds from a received packet. The
// segments that a worker originates have a small pool of their own (WorkerSet).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/result.hpp"

struct rte_mempool;

namespace penstock::drivers {

// The demand for buffers on one socket. Every field is a sum over the ports and workers of that socket.
struct MempoolDemand {
    uint32_t rx_descriptors = 0;
    uint32_t tx_descriptors = 0;
    uint32_t driver_held = 0;  // PmdProfile::mbufs_per_queue
    uint32_t workers = 0;
    uint32_t ports = 0;
    // Transmit queues that serve workers without a queue: each has a ring in front of it.
    uint32_t tx_through = 0;
    // Largest frame with its Ethernet header, or the room that the PMD requires.
    uint32_t frame_bytes_max = 0;
    uint32_t object_bytes_max = 0;  // PmdProfile::mbuf_object_max of the strictest port; 0: any
    bool has_pci = false;           // a device accesses the buffers by itself
};

struct MempoolShape {
    uint32_t count = 0;      // mbufs
    uint32_t cache = 0;      // per lcore
    uint16_t data_room = 0;  // headroom included
    // Without hugepages, DPDK lets no buffer cross a page, which leaves gaps at the ends of pages.
    bool is_gapless = false;
    bool operator==(const MempoolShape&) const = default;
};

// The required pool, from limits.hpp; pure. InvalidArgument: a frame that fits in no mbuf, or that one of the
// ports cannot take.
[[nodiscard]] Result<MempoolShape> mempool_shape(const MempoolDemand& demand);

// The largest cache that DPDK accepts.
inline constexpr uint32_t kMempoolCacheMax = 512;

class Mempools {
 public:
    Mempools() = default;
    ~Mempools();
    Mempools(Mempools&& other) noexcept : pools_(std::exchange(other.pools_, {})) {}
    Mempools& operator=(Mempools&&) = delete;

    // Provides the pool of `socket` (any: the main lcore's). If it exists, it is not in use: it stays if it
    // has this shape, and is created again otherwise. Exhausted: the error gives the required MB.
    Status add(int socket, const MempoolDemand& demand);
    Status add(int socket, const MempoolShape& shape);
    [[nodiscard]] std::map<int, MempoolShape> shapes() const;  // by socket
    // The pool of `socket`, or otherwise that of another socket; null only before the first add().
    [[nodiscard]] rte_mempool* on(int socket) const noexcept;
    // Buffers that are neither in a pool nor in an lcore's cache. Exact only while no worker runs.
    [[nodiscard]] uint32_t in_use() const noexcept;
    struct Use {
        std::string name;
        uint32_t buffers = 0;
        uint32_t in_use = 0;  // approximate: lcore caches change during the summation
    };
    // Each pool. Any thread, once all are added.
    [[nodiscard]] std::vector<Use> use() const;

 private:
    struct Pool {
        rte_mempool* pool = nullptr;
        MempoolShape shape;
    };
    std::map<int, Pool> pools_;  // by socket
};

}  // namespace penstock::drivers
