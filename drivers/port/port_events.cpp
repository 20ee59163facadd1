// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/port_events.hpp"

#include <net/if.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

namespace penstock::drivers {
namespace {

// Each event has its own flag. The callback may touch nothing else.
int note(uint16_t, rte_eth_event_type, void* flag, void*) {
    static_cast<std::atomic<bool>*>(flag)->store(true, std::memory_order_relaxed);
    return 0;
}

// A removal request for a device that is bound to vfio-pci: the kernel requests the device back. The bus
// reports the request, not the PMD (drivers/bus/pci/linux/pci_vfio.c, pci_vfio_req_handler).
void note_removal(const char*, rte_dev_event_type event, void* flag) {
    if (event == RTE_DEV_EVENT_REMOVE) {
        static_cast<std::atomic<bool>*>(flag)->store(true, std::memory_order_relaxed);
    }
}

void stop_listening(uint16_t port, rte_eth_event_type event, void* flag) {
    // -EAGAIN: the callback is running, which is brief.
    while (rte_eth_dev_callback_unregister(port, event, note, flag) == -EAGAIN) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

}  // namespace

std::unique_ptr<PortEvents> PortEvents::listen(uint16_t dpdk_port, std::string device, unsigned ifindex) {
    std::unique_ptr<PortEvents> events(new PortEvents(dpdk_port, std::move(device), ifindex));
    // A registration fails only if memory is exhausted. Such events are then found by polling.
    rte_eth_dev_callback_register(dpdk_port, RTE_ETH_EVENT_INTR_LSC, note, &events->link_changed_);
    rte_eth_dev_callback_register(dpdk_port, RTE_ETH_EVENT_INTR_RMV, note, &events->gone_);
    rte_dev_event_callback_register(events->device_.c_str(), note_removal, &events->gone_);
    return events;
}

PortEvents::~PortEvents() {
    stop_listening(dpdk_port_, RTE_ETH_EVENT_INTR_LSC, &link_changed_);
    stop_listening(dpdk_port_, RTE_ETH_EVENT_INTR_RMV, &gone_);
    while (rte_dev_event_callback_unregister(device_.c_str(), note_removal, &gone_) == -EAGAIN) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

bool PortEvents::is_gone() const noexcept {
    std::array<char, IF_NAMESIZE> name{};
    return is_reported_gone() ||
           (ifindex_ != 0 && if_indextoname(ifindex_, name.data()) == nullptr && errno == ENXIO);
}

}  // namespace penstock::drivers
