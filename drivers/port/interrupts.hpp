// SPDX-License-Identifier: Apache-2.0
// The interrupts to request from a device. Pure.
//
// A driver without receive interrupts accepts the request silently and provides no file descriptor later, so
// the drivers that have them are listed. Link and removal interrupts are declared by the driver.
#pragma once

#include <string>
#include <string_view>

namespace penstock::drivers {

struct InterruptWish {
    bool rx_queues = false;
    bool link = false;
    bool removal = false;
    std::string why_no_rx_queues;  // set if they are not requested although workers sleep
    std::string why_no_link;       // set if it is not requested
};

// The driver raises an interrupt per receive queue (rx_queue_intr_enable in DPDK 22.11, or, for net_tap, its
// file descriptors).
[[nodiscard]] bool has_rx_interrupts(std::string_view driver) noexcept;

struct DeclaredInterrupts {
    bool link = false;         // rte_eth_dev_info::dev_flags has RTE_ETH_DEV_INTR_LSC
    bool removal = false;      // dev_flags has RTE_ETH_DEV_INTR_RMV
    bool silent_link = false;  // PmdProfile::silent_link
};

// `sleeps`: workers sleep when idle.
[[nodiscard]] InterruptWish wish_interrupts(std::string_view driver, bool sleeps,
                                            DeclaredInterrupts declared);

}  // namespace penstock::drivers
