// What drivers do not report about themselves. Each fact was met, or stands in the driver's source (DPDK 22.11).
#include <algorithm>
#include <array>

#include "drivers/capabilities.hpp"

namespace penstock::drivers {
namespace {

// AF_XDP keeps buffers in its fill ring before the first frame comes, and in its completion ring after the last has left
// (ETH_AF_XDP_DFLT_NUM_DESCS each).
constexpr uint32_t kXdpRing = 2048;
// An XDP buffer may not cross a page.
constexpr uint32_t kXdpObjectMax = 4096;

constexpr std::array kProfiles = {
    PmdProfile{.driver = "net_af_packet",
               .spread = RxSpread::Unsteady,
               .spread_reason = "the kernel's fanout moves a flow to another queue when its own is full",
               .kernel_hears = true,
               .uses_interface = true,
               .needs_interface = true,
               .mtu_by_interface = true},  // reports 1,518 as its largest frame whatever its slots hold, so ethdev refuses a larger MTU
    PmdProfile{.driver = "net_af_xdp",
               .spread = RxSpread::None,
               .spread_reason = "queues follow the interface's own RSS, which the driver cannot see",
               .uses_interface = true,
               .needs_interface = true,
               .mtu_by_interface = true,
               .mbufs_per_queue = 2 * kXdpRing,
               .mbuf_object_max = kXdpObjectMax},
    PmdProfile{.driver = "net_tap",
               .spread = RxSpread::Unsteady,
               .spread_reason = "the kernel sends a flow to the TAP queue that it last came from"},
    PmdProfile{.driver = "net_pcap",
               .spread = RxSpread::None,
               .spread_reason = "libpcap does not spread",
               .kernel_hears = true,  // with iface=; with files there is no interface to guard
               .uses_interface = true},
    PmdProfile{.driver = "net_memif", .spread = RxSpread::None, .spread_reason = "the other process chooses the queue"},
    PmdProfile{.driver = "net_ring", .spread = RxSpread::None, .spread_reason = "whoever fills the ring chooses the queue"},
    PmdProfile{.driver = "net_null", .spread = RxSpread::None, .spread_reason = "its RSS can be set and read, and does nothing"},
    PmdProfile{.driver = "net_vhost", .spread = RxSpread::None, .spread_reason = "the guest chooses the queue"},
    PmdProfile{.driver = "net_virtio_user", .spread = RxSpread::None, .spread_reason = "the vhost side chooses the queue"},
    PmdProfile{.driver = "net_virtio"},    // reports RSS truly: a device without it reports none (tried with QEMU's rss=on)
    PmdProfile{.driver = "net_e1000_em"},  // one queue and no RSS, as reported
    PmdProfile{.driver = "net_vmxnet3"},   // RSS without a RETA, as reported
};

constexpr PmdProfile kUnknown{};

}  // namespace

const PmdProfile& pmd_profile(std::string_view driver) noexcept {
    // net_virtio_user0 begins with net_virtio too: the longest name wins.
    const PmdProfile* best = &kUnknown;
    for (const PmdProfile& profile : kProfiles) {
        if (driver.starts_with(profile.driver) && profile.driver.size() > best->driver.size()) {
            best = &profile;
        }
    }
    return *best;
}

}  // namespace penstock::drivers
