// SPDX-License-Identifier: Apache-2.0
// The life of a NicPort between start and end: interrupts, link, removal.
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <utility>

#include "drivers/eal/host_facts.hpp"
#include "drivers/port/memif_socket.hpp"
#include "drivers/port/nic_port.hpp"
#include "drivers/port/port_lock.hpp"

namespace penstock::drivers {

// A device with too few vectors for all interrupts refuses the whole configuration, so the least important
// request is dropped first.
int NicPort::configure_with_interrupts(rte_eth_conf& config) {
    const auto try_with = [&](bool rx_queues, bool link) {
        config.intr_conf.rxq = rx_queues ? 1 : 0;
        config.intr_conf.lsc = link ? 1 : 0;
        config.intr_conf.rmv = interrupts_.removal ? 1 : 0;
        return rte_eth_dev_configure(facts_.dpdk_port, facts_.rx_queues, facts_.tx_queues, &config);
    };
    int result = try_with(interrupts_.rx_queues, interrupts_.link);
    if (result != 0 && interrupts_.rx_queues) {
        interrupts_.why_no_rx_queues =
            std::string("the device refuses its configuration with them: ") + rte_strerror(-result);
        interrupts_.rx_queues = false;
        result = try_with(false, interrupts_.link);
    }
    if (result != 0 && interrupts_.link) {
        interrupts_.link = false;
        interrupts_.why_no_link =
            std::string("the device refuses its configuration with it: ") + rte_strerror(-result);
        result = try_with(false, false);
    }
    return result;
}

void NicPort::note_xdp_mode() {
    const size_t sockets = xdp_sockets_.size();
    const auto zero_copy = static_cast<size_t>(std::ranges::count_if(xdp_sockets_, &XdpSocket::is_zero_copy));
    const std::string* const forced = device_.argument("force_copy");
    const bool asks_copy = forced != nullptr && *forced != "0";
    const bool as_asked = asks_copy || zero_copy == sockets;
    note_setting(facts_.settings,
                 {.name = "af-xdp-mode",
                  .asked = asks_copy ? "copy" : "zero-copy",
                  .granted = zero_copy == sockets ? "zero-copy"
                             : zero_copy == 0     ? "copy"
                                                  : "zero-copy by " + std::to_string(zero_copy) + " of " +
                                                    std::to_string(sockets) + " queues",
                  .reason = as_asked ? ""
                                     : "the kernel driver of " + facts_.interface +
                                           " does not share buffers with AF_XDP sockets on these queues"});
}

int NicPort::start_with_interrupts() {
    int result = rte_eth_dev_start(facts_.dpdk_port);
    if (result != 0 && interrupts_.rx_queues) {
        interrupts_.rx_queues = false;
        interrupts_.why_no_rx_queues =
            std::string("the device does not start with them: ") + rte_strerror(-result);
        if (const Status again = configure(pool_, workers_); again) {
            result = rte_eth_dev_start(facts_.dpdk_port);
        }
    }
    if (result == 0) {
        record_interrupts();
    }
    return result;
}

void NicPort::record_interrupts() {
    facts_.rx_interrupts = interrupts_.rx_queues;
    for (uint16_t queue = 0; queue < facts_.rx_queues && facts_.rx_interrupts; ++queue) {
        if (rte_eth_dev_rx_intr_ctl_q_get_fd(facts_.dpdk_port, queue) < 0) {
            facts_.rx_interrupts = false;
            interrupts_.why_no_rx_queues =
                "receive queue " + std::to_string(queue) + " has no file descriptor to wait on";
        }
    }
    if (options_.rx_interrupts) {
        note_setting(facts_.settings, {.name = "rx-interrupts",
                                       .asked = "on",
                                       .granted = facts_.rx_interrupts ? "on" : "",
                                       .reason = facts_.rx_interrupts ? "" : interrupts_.why_no_rx_queues});
    }
    note_setting(
        facts_.settings,
        {.name = "link-interrupt",
         .asked = "on",
         .granted = interrupts_.link ? "on" : "",
         .reason =
             interrupts_.link ? "" : interrupts_.why_no_link + ": the link is polled ten times a second"});
}

Status NicPort::lock() {
    const std::string claimed = device_.is_pci ? device_.name : facts_.interface;
    if (!claimed.empty()) {  // devices such as net_ring and net_null belong to this process only
        PENSTOCK_TRY(const auto network, network_namespace());
        PENSTOCK_TRY(lock_,
                     FileLock::acquire(port_lock_path(options_.lock_directory, network, claimed), claimed));
    }
    for (const std::string& member : device_.members()) {
        if (is_pci_address(member)) {  // other members are ports of this process
            PENSTOCK_TRY(auto lock,
                         FileLock::acquire(port_lock_path(options_.lock_directory, 0, member), member));
            member_locks_.push_back(std::move(lock));
        }
    }
    return {};
}

void NicPort::unlock() {
    lock_ = FileLock();
    member_locks_.clear();
}

InterfaceChanges NicPort::leave_interface() {
    return interface_ ? interface_->leave() : InterfaceChanges{};
}

void NicPort::inherit_interface(const InterfaceChanges& former) {
    if (interface_) {
        interface_->inherit(former);
    }
}

void NicPort::discard_received() {
    if (!started_) {
        return;
    }
    // Frames that arrive meanwhile may keep a queue from becoming empty.
    const uint32_t frames_max = 4U * facts_.rx_descriptors;
    std::array<rte_mbuf*, 32> frames{};
    for (uint16_t queue = 0; queue < facts_.rx_queues; ++queue) {
        for (uint32_t dropped = 0; dropped < frames_max;) {
            const uint16_t got = rte_eth_rx_burst(facts_.dpdk_port, queue, frames.data(),
                                                  static_cast<uint16_t>(frames.size()));
            if (got == 0) {
                break;
            }
            rte_pktmbuf_free_bulk(frames.data(), got);
            dropped += got;
        }
    }
    rte_eth_stats_reset(facts_.dpdk_port);
    if (profile_->counts_no_missed) {
        packet_sockets_.forget_dropped();
    }
}

void NicPort::stop() {
    if (started_) {
        packet_sockets_.release();
        rte_eth_dev_stop(facts_.dpdk_port);
        started_ = false;
    }
}

void NicPort::abandon() {
    started_ = probed_ = false;
}

void NicPort::close() {
    stop();
    events_.reset();
    if (probed_) {
        rte_eth_dev_info info{};
        const bool known = rte_eth_dev_info_get(facts_.dpdk_port, &info) == 0;
        rte_eth_dev_close(facts_.dpdk_port);
        close_left_open(xdp_sockets_);
        if (known && info.device != nullptr) {
            rte_dev_remove(info.device);
        }
        if (const auto listener = memif_listener_of(device_)) {
            close_left_open(*listener);
        }
        probed_ = false;
    }
}

NicPort::~NicPort() {
    close();
}

void NicPort::remove() {
    const NicPortCounters last = counters();
    const std::lock_guard held(in_use_);
    last_counters_ = last;
    removed_.store(true, std::memory_order_relaxed);
    close();
    guard_.reset();
    interface_.reset();
    unlock();
}

NicPortCounters NicPort::counters() const {
    const std::lock_guard held(in_use_);
    rte_eth_stats stats{};
    if (is_removed() || rte_eth_stats_get(facts_.dpdk_port, &stats) != 0) {
        return last_counters_;
    }
    return {.rx_packets = stats.ipackets,
            .rx_bytes = stats.ibytes,
            .tx_packets = stats.opackets,
            .tx_bytes = stats.obytes,
            .rx_missed = stats.imissed + stats.rx_nombuf + packet_sockets_.dropped(),
            .rx_errors = stats.ierrors,
            .tx_errors = stats.oerrors};
}

bool NicPort::is_gone() const {
    const std::lock_guard held(in_use_);
    return is_removed() || events_->is_gone();
}

bool NicPort::take_link_change() {
    const std::lock_guard held(in_use_);
    return !is_removed() && events_->take_link_change();
}

bool NicPort::link_up() const {
    const std::lock_guard held(in_use_);
    rte_eth_link link{};
    if (is_removed() || rte_eth_link_get_nowait(facts_.dpdk_port, &link) != 0 ||
        link.link_status != RTE_ETH_LINK_UP) {
        return false;
    }
    // Drivers on a Linux interface report their link as up as long as they are started.
    return facts_.interface.empty() || KernelInterface::has_carrier(facts_.interface);
}

}  // namespace penstock::drivers
