// SPDX-License-Identifier: Apache-2.0
// A NicPort made of rings, a queue for each worker: the bench preloads the received packets, and removes the
// sent ones.
#pragma once

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"

namespace penstock::perf {

class QueuePort {
 public:
    // Each ring has `slots` places for a whole preloaded batch, in either direction.
    QueuePort(const std::string& name, uint16_t queues, unsigned slots, rte_mempool* pool) {
        for (uint16_t q = 0; q < queues; ++q) {
            in_.push_back(make(name + "_in" + std::to_string(q), slots));
            out_.push_back(make(name + "_out" + std::to_string(q), slots));
        }
        const int port = rte_eth_from_rings(name.c_str(), in_.data(), queues, out_.data(), queues, 0);
        PENSTOCK_CHECK(port >= 0);
        id_ = static_cast<uint16_t>(port);
        const rte_eth_conf conf{};
        PENSTOCK_CHECK(rte_eth_dev_configure(id_, queues, queues, &conf) == 0);
        for (uint16_t q = 0; q < queues; ++q) {
            PENSTOCK_CHECK(rte_eth_rx_queue_setup(id_, q, 1024, 0, nullptr, pool) == 0 &&
                           rte_eth_tx_queue_setup(id_, q, 1024, 0, nullptr) == 0);
        }
        PENSTOCK_CHECK(rte_eth_dev_start(id_) == 0);
    }
    ~QueuePort() {
        rte_eth_dev_stop(id_);
        rte_eth_dev_close(id_);
        for (rte_ring* ring : in_) {
            rte_ring_free(ring);
        }
        for (rte_ring* ring : out_) {
            rte_ring_free(ring);
        }
    }
    QueuePort(const QueuePort&) = delete;
    QueuePort& operator=(const QueuePort&) = delete;

    [[nodiscard]] uint16_t id() const noexcept { return id_; }
    // All at once.
    void preload(uint16_t queue, std::span<rte_mbuf*> packets) {
        const auto count = static_cast<unsigned>(packets.size());
        PENSTOCK_CHECK(rte_ring_enqueue_bulk(in_[queue], reinterpret_cast<void**>(packets.data()), count,
                                             nullptr) == count);
    }
    [[nodiscard]] uint32_t sent() const noexcept {
        uint32_t sum = 0;
        for (const rte_ring* ring : out_) {
            sum += rte_ring_count(ring);
        }
        return sum;
    }
    // Moves packets that were sent on `queue` to `packets`, as many as fit, and returns their number. The
    // caller owns them.
    uint32_t take(uint16_t queue, std::span<rte_mbuf*> packets) noexcept {
        return rte_ring_dequeue_burst(out_[queue], reinterpret_cast<void**>(packets.data()),
                                      static_cast<unsigned>(packets.size()), nullptr);
    }
    // Calls `visit` for each packet that was sent, and frees it.
    template <typename Visit>
    void take_all(Visit&& visit) {
        for (rte_ring* ring : out_) {
            void* packet = nullptr;
            while (rte_ring_dequeue(ring, &packet) == 0) {
                visit(*static_cast<rte_mbuf*>(packet));
                rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
            }
        }
    }

 private:
    static rte_ring* make(const std::string& name, unsigned slots) {
        rte_ring* ring = rte_ring_create(name.c_str(), slots, SOCKET_ID_ANY, RING_F_EXACT_SZ);
        PENSTOCK_CHECK(ring != nullptr);
        return ring;
    }
    uint16_t id_ = 0;
    std::vector<rte_ring*> in_, out_;
};

}  // namespace penstock::perf
