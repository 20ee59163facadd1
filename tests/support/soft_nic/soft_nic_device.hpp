// SPDX-License-Identifier: Apache-2.0
// The driver of a software NIC (soft_nic.hpp): the functions called by ethdev, and the simulated silicon.
// Only this folder includes DPDK's driver headers.
#pragma once

#include <ethdev_driver.h>
#include <rte_ring.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/soft_nic/device_arguments.hpp"
#include "tests/support/soft_nic/flow_table.hpp"
#include "tests/support/soft_nic/frame_fields.hpp"
#include "tests/support/soft_nic/soft_nic.hpp"

namespace penstock::test {

class SoftNicDevice {
 public:
    SoftNicDevice(rte_eth_dev& dev, const DeviceArguments& arguments, const std::string& name);
    ~SoftNicDevice();
    SoftNicDevice(const SoftNicDevice&) = delete;
    SoftNicDevice& operator=(const SoftNicDevice&) = delete;
    static SoftNicDevice& of(const rte_eth_dev* dev) {
        return *static_cast<SoftNicDevice*>(dev->data->dev_private);
    }

    // Interface for the wire.
    Received receive(std::span<const uint8_t> frame);
    [[nodiscard]] size_t take_sent(std::span<rte_mbuf*> out);
    [[nodiscard]] std::vector<uint8_t> take_kernel();
    void set_link(bool up);
    void remove();

    // Interface for the driver: ethdev's operations and its burst functions.
    int info(rte_eth_dev_info& info) const;
    int configure();
    int start();
    int stop();
    int set_up_rx_queue(uint16_t queue, uint16_t descriptors, rte_mempool* pool);
    int set_up_tx_queue(uint16_t queue, uint16_t descriptors);
    void release_rx_queue(uint16_t queue);
    void release_tx_queue(uint16_t queue);
    int update_rss(const rte_eth_rss_conf& to);
    int read_rss(rte_eth_rss_conf& to) const;
    int update_reta(const rte_eth_rss_reta_entry64* groups, uint16_t size);
    int read_reta(rte_eth_rss_reta_entry64* groups, uint16_t size) const;
    int update_link();
    int read_stats(rte_eth_stats& stats) const;
    void reset_stats();
    int set_mac(const rte_ether_addr& mac);
    int arm_interrupt(uint16_t queue, bool armed);

    rte_eth_dev& dev;
    const DeviceArguments arguments;
    const std::string name;
    SoftNic handle;
    std::mutex mutex;  // guards data read by the wire that the owner may change
    FlowTable flows;
    bool isolated = false;
    bool waits = true;
    std::atomic<uint64_t> interrupts = 0;

    struct Totals {
        std::atomic<uint64_t> packets = 0, bytes = 0;
    };
    struct RxQueue {
        SoftNicDevice* device = nullptr;
        rte_ring* ring = nullptr;
        rte_mempool* pool = nullptr;
        int event_fd = -1;
        std::atomic<bool> armed = false;
        Totals totals;
    };
    struct TxQueue {
        SoftNicDevice* device = nullptr;
        rte_ring* ring = nullptr;
        Totals totals;
    };
    static uint16_t rx_burst(void* queue, rte_mbuf** packets, uint16_t count);
    static uint16_t tx_burst(void* queue, rte_mbuf** packets, uint16_t count);
    static uint32_t rx_pending(void* queue);

    [[nodiscard]] bool is_looped_back() const { return looped_back_; }

 private:
    struct Choice {
        uint16_t queue = 0;
        std::optional<uint32_t> hash;
    };
    [[nodiscard]] bool is_for_us(std::span<const uint8_t> frame) const;
    [[nodiscard]] Choice choose_queue(const FrameFields& fields);
    [[nodiscard]] Choice choose_by_rule(const FrameFields& fields, const FlowFate& fate) const;
    [[nodiscard]] rte_mbuf* make_mbuf(RxQueue& queue, std::span<const uint8_t> frame);
    [[nodiscard]] Received deliver(const FrameFields& fields, const Choice& choice,
                                   std::optional<uint32_t> mark);
    [[nodiscard]] uint16_t send(TxQueue& queue, rte_mbuf** packets, uint16_t count);
    void set_up_interrupts();
    void end_interrupts();
    void interrupt(RxQueue& queue);
    void drain();

    eth_dev_ops ops_{};
    rte_ether_addr mac_{};
    std::array<RxQueue, 64> rx_;
    std::array<TxQueue, 64> tx_;
    // The reported key, and the key used, which differs if the NIC lies.
    std::vector<uint8_t> key_, hashed_by_;
    std::vector<uint16_t> reta_;
    uint64_t rss_types_ = 0;  // as configured; 0: all to the first queue
    uint64_t random_state_;
    uint64_t received_ = 0;
    std::atomic<bool> running_ = false;
    std::atomic<bool> link_ = true;
    std::atomic<bool> removed_ = false;
    bool looped_back_ = false;
    std::atomic<uint64_t> missed_ = 0, no_mbuf_ = 0, errors_ = 0, tx_errors_ = 0;
    std::deque<std::vector<uint8_t>> kernel_;
    size_t next_tx_ = 0;  // the queue that the wire reads first
};

}  // namespace penstock::test
