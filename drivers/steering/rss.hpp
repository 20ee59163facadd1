// Receive-side scaling of one port: what is asked of the device, and what it says that it does. What was *read back* is what counts: a NIC
// with a key of its own that can be read serves as well as one that takes ours, and one that takes a key and shows another is believed in
// what it shows (and put to the test, self_check.hpp).
//
// One random key serves the whole gateway. Random, because who knows the key can aim all of his flows at one queue; one, because then the
// SNAT ports of two NicPorts are chosen alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/result.hpp"
#include "dataplane/nat/reply_hash.hpp"
#include "drivers/port/capabilities.hpp"
#include "drivers/port/port_setting.hpp"

namespace penstock::drivers {

// ethdev counts a key's length in 8 bits, so this is enough for every device; each is given as much of it as it says to take.
inline constexpr size_t kRssKeyBytesMax = UINT8_MAX;
// Where a device does not say how long its key is: the length that ethdev documents as the default.
inline constexpr uint8_t kRssKeyBytesUsual = 40;

// From the kernel's random source; drawn again where chance made a key by which some worker might own too few SNAT ports
// (nat::obstacle_of), whatever the table and the number of workers. Stops the program where the kernel has no random source. Start-up only.
[[nodiscard]] std::vector<uint8_t> random_rss_key();

[[nodiscard]] std::string to_string(const RssKinds& kinds);  // "tcp4,udp4"; "none"
[[nodiscard]] RssKinds rss_kinds(uint64_t types) noexcept;   // of RTE_ETH_RSS_* bits
[[nodiscard]] RssKinds without(RssKinds kinds,
                               const RssKinds& others);  // those of `kinds` that are not in `others`

// What a started device was found to do.
struct RssReading {
    bool granted = false;         // it spreads by a hash over addresses and ports
    RssKinds kinds;               // of which packets
    std::vector<uint8_t> key;     // empty: cannot be read
    std::vector<uint16_t> table;  // the RETA: queue by hash % size; empty: cannot be read
    bool key_taken = false;       // it is ours
    bool table_taken = false;     // likewise
    std::string key_reason;       // why `key` is empty
    std::string table_reason;     // why `table` is empty
};

// Why no worker can be foretold from this; "" where it can. `workers` poll the queues in turn (worker_set.hpp, PortPlan::rx_queues).
[[nodiscard]] std::string obstacle_of(const RssReading& reading, unsigned workers);
// The reading in the workers' terms. Only where there is no obstacle.
[[nodiscard]] nat::ReplyHash reply_hash_of(const RssReading& reading, unsigned workers);

// In what the device differs from what is known of its driver: "the key cannot be set; udp6 is not hashed"; "" in nothing, and where
// nothing is known.
[[nodiscard]] std::string difference(const PmdProfile& profile, const RssReading& reading);

// What rte_eth_dev_configure is to be given, and what it took.
struct RssRequest {
    std::vector<uint8_t>
        key;  // as long as the device takes; empty: the device's own. DPDK keeps a pointer to it while the port lives
    std::string key_refused;  // why it is the device's own although another was to be had
    uint64_t types = 0;       // RTE_ETH_RSS_*
    uint16_t queues = 1;
};

// Of a started port: asks for the table, and for the key where the device did not keep it from its configuration; reads both back, and
// notes each as a setting. Main thread.
[[nodiscard]] RssReading settle_rss(uint16_t dpdk_port, RssRequest& request,
                                    std::vector<PortSetting>& settings);

}  // namespace penstock::drivers
