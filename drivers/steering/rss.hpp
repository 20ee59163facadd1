// SPDX-License-Identifier: Apache-2.0
// Receive-side scaling of one port: the request to the device, and the device's report. Only the values that
// were *read back* are used. A NIC with a readable key of its own serves as well as one that takes our key.
// If a NIC takes a key and reports another, the reported one is used (and verified, self_check.hpp).
//
// One random key serves the whole gateway. Random, because a client that knows the key can aim all of its
// flows at one queue. One, so that the SNAT ports of two NicPorts are chosen alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/result.hpp"
#include "dataplane/nat/reply_hash.hpp"
#include "drivers/pmd/profiles.hpp"
#include "drivers/port/port_setting.hpp"

namespace penstock::drivers {

// ethdev stores a key's length in 8 bits, so this length is enough for every device. Each device is given as
// many bytes as it reports to take.
inline constexpr size_t kRssKeyBytesMax = UINT8_MAX;
// Used for a device that does not report its key length: the default length that ethdev documents.
inline constexpr uint8_t kRssKeyBytesUsual = 40;

// Drawn from the kernel's random source. A key is drawn again if it might give a worker too few SNAT ports
// (nat::obstacle_of), for any table and any number of workers. Terminates the program if the kernel has no
// random source. Start-up only.
[[nodiscard]] std::vector<uint8_t> random_rss_key();

[[nodiscard]] std::string to_string(const RssKinds& kinds);  // "tcp4,udp4"; "none"
[[nodiscard]] RssKinds rss_kinds(uint64_t types) noexcept;   // from RTE_ETH_RSS_* bits
[[nodiscard]] RssKinds without(RssKinds kinds,
                               const RssKinds& others);  // the members of `kinds` that are not in `others`

// The RSS behaviour found on a started device.
struct RssReading {
    bool granted = false;         // it spreads by a hash over addresses and L4 ports
    RssKinds kinds;               // the packet types that it hashes
    std::vector<uint8_t> key;     // empty: cannot be read
    std::vector<uint16_t> table;  // the RETA: queue by hash % size; empty: cannot be read
    bool key_taken = false;       // it is the requested one
    bool table_taken = false;     // likewise
    std::string key_reason;       // why `key` is empty
    std::string table_reason;     // why `table` is empty
};

// Why queues cannot be predicted from this reading; "" if they can. `workers` poll the queues in turn
// (worker_set.hpp, PortPlan::rx_queues).
[[nodiscard]] std::string obstacle_of(const RssReading& reading, unsigned workers);
// The reading in terms of workers. Only if there is no obstacle.
[[nodiscard]] nat::ReplyHash reply_hash_of(const RssReading& reading, unsigned workers);

// Differences between the device and its driver's profile: "the key cannot be set; udp6 is not hashed". "" if
// there are none, or if the driver has no profile.
[[nodiscard]] std::string difference(const PmdProfile& profile, const RssReading& reading);

// The RSS configuration for rte_eth_dev_configure, and what the device accepted.
struct RssRequest {
    std::vector<uint8_t>
        // as long as the device takes; empty: the device's own. DPDK keeps a pointer to it while the port
        // exists
        key;
    std::string key_refused;  // why the device's own key is used although another one was requested
    uint64_t types = 0;       // RTE_ETH_RSS_*
    uint16_t queues = 1;
};

// Configures the table of a started port, and its key if the device did not keep the one of its
// configuration. Reads both back and records each as a setting. Main thread.
[[nodiscard]] RssReading configure_rss(uint16_t dpdk_port, RssRequest& request,
                                       std::vector<PortSetting>& settings);

}  // namespace penstock::drivers
