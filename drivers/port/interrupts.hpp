// Which interrupts are asked of a device. Pure.
//
// A driver that cannot give receive interrupts takes the wish in silence and has no descriptor to wait on later, so what it is known for
// is written down; link and removal interrupts it declares itself.
#pragma once

#include <string>
#include <string_view>

namespace penstock::drivers {

struct InterruptWish {
    bool rx_queues = false;
    bool link = false;
    bool removal = false;
    std::string why_no_rx_queues;  // where they are not asked for although a worker could sleep by them
    std::string why_no_link;       // where it is not asked for
};

// The driver raises an interrupt for a receive queue (its rx_queue_intr_enable in DPDK 22.11, or, for net_tap, its descriptors).
[[nodiscard]] bool has_rx_interrupts(std::string_view driver) noexcept;

struct DeclaredInterrupts {
    bool link = false;         // rte_eth_dev_info::dev_flags has RTE_ETH_DEV_INTR_LSC
    bool removal = false;      // and RTE_ETH_DEV_INTR_RMV
    bool silent_link = false;  // PmdProfile::silent_link
};

// `sleeps`: workers sleep when idle.
[[nodiscard]] InterruptWish wish_interrupts(std::string_view driver, bool sleeps,
                                            DeclaredInterrupts declared);

}  // namespace penstock::drivers
