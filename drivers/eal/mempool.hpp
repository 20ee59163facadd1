// Packet buffers: one pool for each NUMA socket that has a port or a worker. Every mbuf of the product comes from here, frames from Linux
// and answers that a worker makes of what it received included; the segments that it makes up have a small pool of their own (WorkerSet).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/result.hpp"

struct rte_mempool;

namespace penstock::drivers {

// What the buffers of one socket are for. Every figure is a sum over ports and workers of that socket.
struct MempoolDemand {
    uint32_t rx_descriptors = 0;
    uint32_t tx_descriptors = 0;
    uint32_t driver_held = 0;  // PmdProfile::mbufs_per_queue
    uint32_t workers = 0;
    uint32_t ports = 0;
    uint32_t tx_through =
        0;  // transmit queues that serve workers without one: each has a ring in front of it
    uint32_t frame_bytes_max = 0;   // largest frame, Ethernet header included, or what the PMD wants room for
    uint32_t object_bytes_max = 0;  // PmdProfile::mbuf_object_max of the strictest port; 0: any
};

struct MempoolShape {
    uint32_t count = 0;      // mbufs
    uint32_t cache = 0;      // of each lcore
    uint16_t data_room = 0;  // headroom included
    bool operator==(const MempoolShape&) const = default;
};

// The sum, from limits.hpp; pure. InvalidArgument: a frame that fits no mbuf, or that one of the ports cannot take.
[[nodiscard]] Result<MempoolShape> mempool_shape(const MempoolDemand& demand);

class Mempools {
 public:
    Mempools() = default;
    ~Mempools();
    Mempools(Mempools&& other) noexcept : pools_(std::exchange(other.pools_, {})) {}
    Mempools& operator=(Mempools&&) = delete;

    // Takes a pool on `socket` (any: where the main lcore is). Exhausted: names how many MB were wanted.
    Status add(int socket, const MempoolDemand& demand);
    // The pool of `socket`, or of the socket next best; null only before the first add().
    [[nodiscard]] rte_mempool* on(int socket) const noexcept;
    // Buffers neither in a pool nor in a lcore's cache; the whole truth only while no worker runs.
    [[nodiscard]] uint32_t in_use() const noexcept;
    struct Use {
        std::string name;
        uint32_t buffers = 0;
        uint32_t in_use = 0;  // about: lcores' caches change while they are added up
    };
    // Each pool. Any thread, once all are added.
    [[nodiscard]] std::vector<Use> use() const;

 private:
    std::map<int, rte_mempool*> pools_;
};

}  // namespace penstock::drivers
