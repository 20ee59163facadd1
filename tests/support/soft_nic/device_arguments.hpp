// SPDX-License-Identifier: Apache-2.0
// The arguments of a software NIC (listed in soft_nic.hpp), parsed and checked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace penstock::test {

// Access of the driver's owner to a setting of the NIC. For the redirection table only: Partly sets its last
// entry, and the next queue in all others; Beyond accepts the table, and reports a last entry that names the
// first queue that does not exist.
enum class Access : uint8_t { Set, Fixed, Ignored, Hidden, Partly, Beyond };

// Availability of rte_flow_isolate.
enum class Isolate : uint8_t { Never, AnyTime, Stopped };

enum class Spread : uint8_t { Rss, Random, Zero, Wander, Lies };

struct DeviceArguments {
    uint16_t queues = 16;
    uint8_t key_bytes = 40;
    Access key = Access::Set;
    uint16_t reta = 128;
    Access reta_access = Access::Set;
    uint64_t rss_types = 0;  // RTE_ETH_RSS_*
    bool rss_hash = true;
    Spread spread = Spread::Rss;
    uint64_t seed = 1;
    uint32_t flow_rules = 1024;
    uint64_t flow_items = 0;    // a bit for each RTE_FLOW_ITEM_TYPE_*, all below 64
    uint64_t flow_actions = 0;  // a bit for each RTE_FLOW_ACTION_TYPE_*, all below 64
    bool whole_masks_only = false;
    uint32_t flow_priorities = 1;
    Isolate isolate = Isolate::AnyTime;
    bool checksum = true;
    bool loopback = true;
    bool interrupts = true;
    uint16_t mtu_max = 9216;
    std::optional<std::array<uint8_t, 6>> mac;
};

// Empty, with the reason in `error`, if `text` ("queues=4,reta=64") is invalid.
[[nodiscard]] std::optional<DeviceArguments> parse_device_arguments(const std::string& text,
                                                                    std::string& error);

}  // namespace penstock::test
