// What a PMD offers and what it is known for, as data. The facts that a driver reports itself are asked of it; what it does not say, and
// has cost somebody an evening, stands in drivers/pmd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::drivers {

// How a port with several receive queues chooses one for a frame.
enum class RxSpread : uint8_t {
    Reported,  // as rte_eth_dev_info says: RSS in hardware where flow_type_rss_offloads is not 0
    None,      // one queue, or a queue that the sender chooses: nothing to promise
    Unsteady,  // spread by flow, but a flow may change its queue while it lives
};

struct PmdProfile {
    std::string_view driver;  // as rte_eth_dev_info::driver_name says; for a vdev also the start of its name
    RxSpread spread = RxSpread::Reported;
    std::string_view spread_reason;  // why, where `spread` is not Reported
    bool kernel_hears = false;       // the kernel's own stack gets each frame too: needs IngressGuard
    bool uses_interface = false;     // its iface argument names a Linux interface that it works on
    bool needs_interface = false;    // and it must be given
    bool mtu_by_interface = false;   // the MTU is the Linux interface's; rte_eth_dev_set_mtu is not the way
    bool bifurcated = false;         // the kernel keeps what no flow rule takes: rte_flow_isolate parts the gateway's traffic from its own
    uint32_t mbufs_per_queue = 0;    // buffers that a queue pair holds besides its descriptors
    uint32_t mbuf_object_max = 0;    // largest mempool object that it takes, in bytes; 0: any
};

// The profile of a driver name or of a vdev's name; one that nobody wrote down gets the defaults above (driver ""), which trust what it
// reports.
[[nodiscard]] const PmdProfile& pmd_profile(std::string_view driver) noexcept;

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
