// What a PMD offers and what it is known for, as data. The facts that a driver reports itself are asked of it; what it does not say, and
// has cost somebody an evening, stands in drivers/pmd, a file for each. What is written there is an expectation: what the device says wins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::drivers {

// How a port with several receive queues chooses one for a frame.
enum class RxSpread : uint8_t {
    Reported,  // as rte_eth_dev_info says: RSS in hardware where flow_type_rss_offloads is not 0
    None,      // one queue, or a queue that the sender chooses: nothing to promise
    Unsteady,  // spread by flow, but a flow may change its queue while it lives
};

// Which packets a hash over both addresses and both L4 ports is computed of.
struct RssKinds {
    bool tcp4 = false, udp4 = false, tcp6 = false, udp6 = false;
    [[nodiscard]] constexpr bool any() const noexcept { return tcp4 || udp4 || tcp6 || udp6; }
    constexpr bool operator==(const RssKinds&) const = default;
};
inline constexpr RssKinds kAllRssKinds{true, true, true, true};

// What can be done with an RSS key or indirection table.
enum class RssAccess : uint8_t {
    Hidden,    // it cannot be read, so no queue can be foretold
    Fixed,     // it can be read
    Settable,  // and set
};

// What is expected of a driver's RSS. The device is asked, and what it says wins; where it says otherwise, `penstockctl get ports` tells
// both.
struct RssExpectation {
    RssKinds kinds;
    RssAccess key = RssAccess::Hidden;
    uint8_t key_bytes = 0;
    RssAccess table = RssAccess::Hidden;
    constexpr bool operator==(const RssExpectation&) const = default;
};

// What a driver's rte_flow is expected to take, as bits; no bits: it has none. What counts is a rule that was tried (flow_install.hpp).
struct FlowExpectation {
    static constexpr uint8_t kEth = 1, kVlan = 2, kIpv4 = 4, kIpv6 = 8, kTcp = 16, kUdp = 32;
    static constexpr uint8_t kAllItems = kEth | kVlan | kIpv4 | kIpv6 | kTcp | kUdp;
    static constexpr uint8_t kQueue = 1, kDrop = 2, kMark = 4, kCount = 8, kRss = 16, kPassthru = 32;
    uint8_t items = 0;
    uint8_t actions = 0;
    bool masks_ports =
        false;  // some bits of an L4 port may be matched: one rule can stand for a worker's SNAT ports
    constexpr bool operator==(const FlowExpectation&) const = default;
};

// How a device comes to DPDK.
enum class Binding : uint8_t {
    Vfio,  // taken from the kernel and bound to vfio-pci; gone from `ip link` until it is bound back
    Bifurcated,  // its kernel driver stays and shares it: nothing to bind; rte_flow_isolate leaves to it what no rule takes
    Interface,  // through a Linux interface that stays
    Software,   // nothing outside of this process, or another process
};

// Something to know that nobody would guess.
struct Quirk {
    std::string_view what;
    std::string_view source;  // the page or file, and the function
};

struct PmdProfile {
    std::string_view driver;  // as rte_eth_dev_info::driver_name says; for a vdev also the start of its name
    std::string_view family;  // what people call what it drives
    Binding binding = Binding::Vfio;
    RxSpread spread = RxSpread::Reported;
    std::string_view spread_reason;  // why, where `spread` is not Reported
    RssExpectation rss;
    // Its hash is not Toeplitz, or cannot be known to be; where `other_hash_if` names a device argument, only with that one set.
    std::string_view other_hash_reason;
    std::string_view other_hash_if;
    FlowExpectation flow;
    bool silent_link = false;  // declares a link interrupt that does not come when the link goes down
    bool loops_back =
        false;  // rte_eth_conf::lpbk_mode 1 leads its transmit side back, and nothing reaches the wire
    bool rss_told_with_hash = false;  // tells key and types only where RTE_ETH_RX_OFFLOAD_RSS_HASH is on
    bool filters_vlans =
        false;  // keeps back frames of VLANs that nobody has named to it, unless it is promiscuous
    bool kernel_hears = false;  // the kernel's own stack gets each frame too: needs IngressGuard
    bool counts_no_missed =
        false;  // frames that its packet sockets had no room for are counted by the kernel alone: needs PacketSockets
    bool uses_interface = false;    // its iface argument names a Linux interface that it works on
    bool needs_interface = false;   // and it must be given
    bool mtu_by_interface = false;  // the MTU is the Linux interface's; rte_eth_dev_set_mtu is not the way
    uint32_t mbufs_per_queue = 0;   // buffers that a queue pair holds besides its descriptors
    uint32_t mbuf_object_max = 0;   // largest mempool object that it takes, in bytes; 0: any
    std::span<const Quirk> quirks = {};
};

// The profile of a driver name or of a vdev's name; one that nobody wrote down gets the defaults above (driver ""), which trust what it
// reports.
[[nodiscard]] const PmdProfile& pmd_profile(std::string_view driver) noexcept;
// All that were written down, for people and tests.
[[nodiscard]] std::span<const PmdProfile* const> pmd_profiles() noexcept;

// One NicPort, after it was asked.
struct Capabilities {
    std::string driver;
    uint16_t rx_queues_max = 1;
    uint16_t tx_queues_max = 1;
    uint64_t rx_offloads = 0;  // RTE_ETH_RX_OFFLOAD_*
    uint64_t tx_offloads = 0;  // RTE_ETH_TX_OFFLOAD_*
    uint64_t rss_types = 0;    // RTE_ETH_RSS_*
    uint16_t reta_size = 0;
    uint8_t hash_key_bytes = 0;
    uint16_t mtu_max = 1500;  // IP bytes
    int socket = -1;          // NUMA node; -1: any
};

// One kind of rte_flow rule on one started NicPort.
struct FlowKindSupport {
    bool validates = false;
    std::string reason;  // why not: what the driver said, or what is missing
};

// Which kinds of rule (flow_rule.hpp) a started NicPort validates. Asked by probe_flow_support() (flow_install.hpp), which leaves
// nothing behind.
struct FlowSupport {
    FlowKindSupport snat_to_queue;
    FlowKindSupport vip_isolate;
    FlowKindSupport source_drop;
    FlowKindSupport vip_mark;
    bool counts = false;  // a rule may have a COUNT action, and so be read
};

}  // namespace penstock::drivers
