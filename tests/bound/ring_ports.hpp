// SPDX-License-Identifier: Apache-2.0
// Two NicPorts made of rings: the test acts as the wire. It puts each frame into a queue of its choice and
// takes the frames that the workers send.
#pragma once

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <cstring>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {

class RingPort {
 public:
    RingPort(const std::string& name, uint16_t queues, rte_mempool* pool) : pool_(pool) {
        for (uint16_t q = 0; q < queues; ++q) {
            to_worker_.push_back(make_ring(name + "_in" + std::to_string(q)));
            from_worker_.push_back(make_ring(name + "_out" + std::to_string(q)));
        }
        const int port = rte_eth_from_rings(name.c_str(), to_worker_.data(), queues, from_worker_.data(),
                                            queues, rte_socket_id());
        PENSTOCK_CHECK(port >= 0);
        id_ = static_cast<uint16_t>(port);
        rte_eth_conf conf{};
        PENSTOCK_CHECK(rte_eth_dev_configure(id_, queues, queues, &conf) == 0);
        for (uint16_t q = 0; q < queues; ++q) {
            PENSTOCK_CHECK(rte_eth_rx_queue_setup(id_, q, 1024, rte_socket_id(), nullptr, pool) == 0);
            PENSTOCK_CHECK(rte_eth_tx_queue_setup(id_, q, 1024, rte_socket_id(), nullptr) == 0);
        }
        PENSTOCK_CHECK(rte_eth_dev_start(id_) == 0);
    }
    ~RingPort() {
        rte_eth_dev_stop(id_);
        rte_eth_dev_close(id_);
        for (rte_ring* ring : to_worker_) {
            free_ring(ring);
        }
        for (rte_ring* ring : from_worker_) {
            free_ring(ring);
        }
    }
    RingPort(const RingPort&) = delete;
    RingPort& operator=(const RingPort&) = delete;

    [[nodiscard]] uint16_t dpdk_port() const { return id_; }

    // Waits for room, for a limited time: if a worker has stopped, the test fails instead of hanging.
    void put(const std::vector<uint8_t>& frame, uint16_t queue) {
        rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_);
        PENSTOCK_CHECK(mbuf != nullptr);
        std::memcpy(rte_pktmbuf_append(mbuf, static_cast<uint16_t>(frame.size())), frame.data(),
                    frame.size());
        put(mbuf, queue);
    }
    void put(rte_mbuf* mbuf, uint16_t queue) {
        for (const Patience patience; rte_ring_enqueue(to_worker_[queue], mbuf) != 0;) {
            PENSTOCK_CHECK(patience.wait());
        }
    }
    // The next frame that left by any queue, or null if none comes.
    [[nodiscard]] rte_mbuf* take() {
        rte_mbuf* mbuf = try_take();
        for (const Patience patience; mbuf == nullptr && patience.wait();) {
            mbuf = try_take();
        }
        return mbuf;
    }
    [[nodiscard]] rte_mbuf* try_take() {
        for (rte_ring* ring : from_worker_) {
            void* packet = nullptr;
            if (rte_ring_dequeue(ring, &packet) == 0) {
                return static_cast<rte_mbuf*>(packet);
            }
        }
        return nullptr;
    }
    // take(), as bytes; empty if no packet came.
    [[nodiscard]] std::vector<uint8_t> take_frame() {
        rte_mbuf* mbuf = take();
        if (mbuf == nullptr) {
            return {};
        }
        const auto* first = rte_pktmbuf_mtod(mbuf, const uint8_t*);
        std::vector<uint8_t> frame(first, first + mbuf->data_len);
        rte_pktmbuf_free(mbuf);
        return frame;
    }

 private:
    static rte_ring* make_ring(const std::string& name) {
        rte_ring* ring = rte_ring_create(name.c_str(), 2048, static_cast<int>(rte_socket_id()), 0);
        PENSTOCK_CHECK(ring != nullptr);
        return ring;
    }
    static void free_ring(rte_ring* ring) {
        void* packet = nullptr;
        while (rte_ring_dequeue(ring, &packet) == 0) {
            rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
        }
        rte_ring_free(ring);
    }

    rte_mempool* pool_;
    std::vector<rte_ring*> to_worker_, from_worker_;
    uint16_t id_ = 0;
};

}  // namespace penstock::test
