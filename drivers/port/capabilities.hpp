// SPDX-License-Identifier: Apache-2.0
// The capabilities of one NicPort as its device reports them, and the rte_flow rules that it accepts. What is
// known of a driver beforehand is in drivers/pmd/profiles.hpp; if the device reports something else, the
// report is used.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::drivers {

// One NicPort, as queried.
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
    std::string reason;  // why not: the driver's message, or the missing condition
};

// The kinds of rule (flow_rule.hpp) that a started NicPort accepts. Filled by probe_flow_support()
// (flow_install.hpp), which leaves no rule behind.
struct FlowSupport {
    FlowKindSupport snat_to_queue;
    FlowKindSupport vip_isolate;
    FlowKindSupport source_drop;
    FlowKindSupport vip_mark;
    bool counts = false;  // a rule may have a COUNT action, so that its hits can be read
};

}  // namespace penstock::drivers
