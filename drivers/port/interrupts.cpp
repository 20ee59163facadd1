// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/interrupts.hpp"

#include <algorithm>
#include <array>

namespace penstock::drivers {
namespace {

// Driver names as in rte_eth_dev_info. Three drivers are not listed although they implement the call.
// net_memif: its descriptors are not those that ethdev returns. net_vhost and net_virtio_user: the peer may
// not kick.
constexpr std::array<std::string_view, 19> kWithRxInterrupts = {
    "mlx5_pci",     "mlx5_auxiliary", "net_mlx4",     "net_ice",      "net_iavf", "net_i40e",   "net_ixgbe",
    "net_ixgbe_vf", "net_e1000_igb",  "net_e1000_em", "net_igc",      "net_ena",  "net_virtio", "net_vmxnet3",
    "net_bnxt",     "net_enic",       "net_hns3",     "net_atlantic", "net_tap",
};

}  // namespace

bool has_rx_interrupts(std::string_view driver) noexcept {
    return std::ranges::find(kWithRxInterrupts, driver) != kWithRxInterrupts.end();
}

InterruptWish wish_interrupts(std::string_view driver, bool sleeps, DeclaredInterrupts declared) {
    InterruptWish wish{.rx_queues = sleeps && has_rx_interrupts(driver),
                       .link = declared.link && !declared.silent_link,
                       .removal = declared.removal,
                       .why_no_rx_queues = {},
                       .why_no_link = {}};
    if (!wish.link) {
        wish.why_no_link = declared.link ? "it is known not to be raised" : "the device has none";
    }
    if (sleeps && !wish.rx_queues) {
        wish.why_no_rx_queues =
            std::string(driver) + " has none: sleeping workers poll again after 0.25 ms at most";
    }
    return wish;
}

}  // namespace penstock::drivers
