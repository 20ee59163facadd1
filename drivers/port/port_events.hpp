// What happens to a device while it runs, as far as its PMD or Linux tells: the link changed, or the device is gone. The PMD's callbacks
// run on a thread of DPDK's and only note it here; a control thread asks and acts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace penstock::drivers {

class PortEvents {
 public:
    // Listens to the device's events. `device`: its name for DPDK. `ifindex`: of the Linux interface that it works on, whose disappearance
    // many PMDs do not notice; 0: it has none, or keeps track by itself.
    static std::unique_ptr<PortEvents> listen(uint16_t dpdk_port, std::string device, unsigned ifindex);
    ~PortEvents();  // nobody calls back any more
    PortEvents(const PortEvents&) = delete;
    PortEvents& operator=(const PortEvents&) = delete;

    // Whether the PMD told of a change of the link since the last call. One control thread.
    [[nodiscard]] bool take_link_change() noexcept {
        return link_changed_.exchange(false, std::memory_order_relaxed);
    }
    // The PMD told that the device was removed. Any thread.
    [[nodiscard]] bool is_told_gone() const noexcept { return gone_.load(std::memory_order_relaxed); }
    // Or its Linux interface is no more: asks Linux. Any control thread.
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
