// SPDX-License-Identifier: Apache-2.0
// Two DPDK ports with a wire between them, made of two rings: one port receives what the other sends. No
// memory except the rings' is shared, and no system call is made.
#pragma once

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <array>
#include <cstdint>
#include <string>

#include "dataplane/base/check.hpp"

namespace penstock::perf {

class RingWire {
 public:
    RingWire(const std::string& name, rte_mempool* pool) {
        for (size_t i = 0; i < rings_.size(); ++i) {
            rings_[i] = rte_ring_create((name + std::to_string(i)).c_str(), kSlots, SOCKET_ID_ANY,
                                        RING_F_SP_ENQ | RING_F_SC_DEQ);
            PENSTOCK_CHECK(rings_[i] != nullptr);
        }
        ports_ = {open(name + "_a", rings_[0], rings_[1], pool),
                  open(name + "_b", rings_[1], rings_[0], pool)};
    }
    ~RingWire() {
        for (const uint16_t port : ports_) {
            rte_eth_dev_stop(port);
            rte_eth_dev_close(port);
        }
        for (rte_ring* ring : rings_) {
            rte_ring_free(ring);
        }
    }
    RingWire(const RingWire&) = delete;
    RingWire& operator=(const RingWire&) = delete;

    [[nodiscard]] uint16_t gateway_end() const noexcept { return ports_[0]; }
    [[nodiscard]] uint16_t other_end() const noexcept { return ports_[1]; }

 private:
    static constexpr unsigned kSlots =
        8192;  // so that little is lost while another process has one end's CPU

    static uint16_t open(const std::string& name, rte_ring* receive, rte_ring* send, rte_mempool* pool) {
        const int port = rte_eth_from_rings(name.c_str(), &receive, 1, &send, 1, 0);
        PENSTOCK_CHECK(port >= 0);
        const auto id = static_cast<uint16_t>(port);
        const rte_eth_conf conf{};
        PENSTOCK_CHECK(rte_eth_dev_configure(id, 1, 1, &conf) == 0 &&
                       rte_eth_rx_queue_setup(id, 0, kSlots, 0, nullptr, pool) == 0 &&
                       rte_eth_tx_queue_setup(id, 0, kSlots, 0, nullptr) == 0 && rte_eth_dev_start(id) == 0);
        return id;
    }

    std::array<rte_ring*, 2> rings_{};
    std::array<uint16_t, 2> ports_{};
};

}  // namespace penstock::perf
