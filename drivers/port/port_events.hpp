// SPDX-License-Identifier: Apache-2.0
// Events of a running device, as reported by its PMD or by Linux: a link change, or the removal of the
// device. The PMD's callbacks run on a DPDK thread and only set a flag here. A control thread reads the flags
// and acts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace penstock::drivers {

class PortEvents {
 public:
    // Subscribes to the device's events. `device`: its DPDK name. `ifindex`: of the Linux interface that it
    // works on, whose removal many PMDs do not notice; 0: no interface, or the PMD reports the removal
    // itself.
    static std::unique_ptr<PortEvents> listen(uint16_t dpdk_port, std::string device, unsigned ifindex);
    ~PortEvents();  // afterwards no callback runs
    PortEvents(const PortEvents&) = delete;
    PortEvents& operator=(const PortEvents&) = delete;

    // True if the PMD reported a link change since the last call. One control thread.
    [[nodiscard]] bool take_link_change() noexcept {
        return link_changed_.exchange(false, std::memory_order_relaxed);
    }
    // The PMD reported that the device was removed. Any thread.
    [[nodiscard]] bool is_reported_gone() const noexcept { return gone_.load(std::memory_order_relaxed); }
    // As above, or its Linux interface no longer exists (a system call). Any control thread.
    [[nodiscard]] bool is_gone() const noexcept;

 private:
    PortEvents(uint16_t dpdk_port, std::string device, unsigned ifindex) noexcept
        : dpdk_port_(dpdk_port), device_(std::move(device)), ifindex_(ifindex) {}
    const uint16_t dpdk_port_;
    const std::string device_;
    const unsigned ifindex_;
    std::atomic<bool> link_changed_{false};
    std::atomic<bool> gone_{false};
};

}  // namespace penstock::drivers
