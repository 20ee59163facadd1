// SPDX-License-Identifier: Apache-2.0
// The profile of each PMD (poll mode driver): its capabilities and known properties, as one table.
// Capabilities that a driver reports are read from it (drivers/port/capabilities.hpp). Facts that it does not
// report, and that are hard to find out, are recorded in the table. They are expectations: if the device
// reports something else, the report is used. The facts are from DPDK 22.11; paths are relative to its source
// tree.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace penstock::drivers {

// How a port with several receive queues chooses the queue of a frame.
enum class RxSpread : uint8_t {
    Reported,  // as rte_eth_dev_info reports: RSS in hardware if flow_type_rss_offloads is not 0
    None,      // one queue, or the sender chooses the queue: not predictable
    Unsteady,  // spread by flow, but a live flow may move to another queue
};

// The packet types for which the hash covers both addresses and both L4 ports.
struct RssKinds {
    bool tcp4 = false, udp4 = false, tcp6 = false, udp6 = false;
    [[nodiscard]] constexpr bool any() const noexcept { return tcp4 || udp4 || tcp6 || udp6; }
    constexpr bool operator==(const RssKinds&) const = default;
};
inline constexpr RssKinds kAllRssKinds{true, true, true, true};

// Access to an RSS key or indirection table.
enum class RssAccess : uint8_t {
    Hidden,    // cannot be read, so no queue can be predicted
    Fixed,     // can be read
    Settable,  // can be read and set
};

// Expected RSS of a driver. The device is queried, and its report is used. `penstockctl get ports` shows
// where the two differ.
struct RssExpectation {
    RssKinds kinds;
    RssAccess key = RssAccess::Hidden;
    uint8_t key_bytes = 0;
    RssAccess table = RssAccess::Hidden;
    constexpr bool operator==(const RssExpectation&) const = default;
};

// What the rte_flow of a driver is expected to accept, as bits. No bits: no rte_flow. Only the trial of a
// rule is decisive (flow_install.hpp).
struct FlowExpectation {
    static constexpr uint8_t kEth = 1, kVlan = 2, kIpv4 = 4, kIpv6 = 8, kTcp = 16, kUdp = 32;
    static constexpr uint8_t kAllItems = kEth | kVlan | kIpv4 | kIpv6 | kTcp | kUdp;
    static constexpr uint8_t kQueue = 1, kDrop = 2, kMark = 4, kCount = 8, kRss = 16, kPassthru = 32;
    uint8_t items = 0;
    uint8_t actions = 0;
    // Single bits of an L4 port can be matched, so one rule can cover a worker's SNAT ports.
    bool masks_ports = false;
    constexpr bool operator==(const FlowExpectation&) const = default;
};

// How DPDK gets access to a device.
enum class Binding : uint8_t {
    // Unbound from the kernel driver and bound to vfio-pci; absent from `ip link` until it is bound back.
    Vfio,
    // Shared with its kernel driver, nothing to bind. rte_flow_isolate leaves to the kernel all frames that
    // no rule takes.
    Bifurcated,
    Interface,  // through a Linux interface, which stays
    Software,   // nothing outside of this process, or another process
};

// A property of a driver that cannot be guessed.
struct Quirk {
    std::string_view what;
    std::string_view source;  // the page or file, and the function
};

struct PmdProfile {
    std::string_view driver;  // as in rte_eth_dev_info::driver_name; for a vdev also the start of its name
    std::string_view family;  // the usual name of the hardware
    Binding binding = Binding::Vfio;
    RxSpread spread = RxSpread::Reported;
    std::string_view spread_reason;  // the reason if `spread` is not Reported
    RssExpectation rss;
    // Set if the hash is not Toeplitz, or cannot be proved to be. If `other_hash_if` names a device argument:
    // only when that argument is set.
    std::string_view other_hash_reason;
    std::string_view other_hash_if;
    FlowExpectation flow;
    bool silent_link = false;  // declares a link interrupt that is not raised when the link goes down
    // rte_eth_conf::lpbk_mode 1 loops its transmit side back, and no frame reaches the wire.
    bool loops_back = false;
    bool rss_reported_with_hash = false;  // reports key and types only if RTE_ETH_RX_OFFLOAD_RSS_HASH is on
    // Drops frames of VLANs that were not configured on it, unless it is promiscuous.
    bool filters_vlans = false;
    bool kernel_hears = false;  // the kernel's own stack receives each frame too: needs IngressGuard
    // Two processes can have the same device. Each one receives every frame.
    bool opens_twice = false;
    // Two processes can have probed the same device, but only one of them can have its queues.
    bool probes_twice = false;
    // The kernel releases a queue some time after its process has closed it.
    bool releases_queues_late = false;
    // Only the kernel counts the frames that its packet sockets had no room for: needs PacketSockets.
    bool counts_no_missed = false;
    bool uses_interface = false;    // its iface argument names the Linux interface that it works on
    bool needs_interface = false;   // and that argument is mandatory
    bool mtu_by_interface = false;  // the MTU is that of the Linux interface; rte_eth_dev_set_mtu is not used
    uint32_t mbufs_per_queue = 0;   // buffers that a queue pair holds in addition to its descriptors
    uint32_t mbuf_object_max = 0;   // largest mempool object that it accepts, in bytes; 0: any
    std::span<const Quirk> quirks = {};
};

// The profile for a driver name or a vdev name. An unknown driver gets the defaults above (driver ""), which
// rely on its own report.
[[nodiscard]] const PmdProfile& pmd_profile(std::string_view driver) noexcept;
// All recorded profiles, for documents and tests.
[[nodiscard]] std::span<const PmdProfile> pmd_profiles() noexcept;

}  // namespace penstock::drivers
