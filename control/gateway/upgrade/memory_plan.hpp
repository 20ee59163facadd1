// SPDX-License-Identifier: Apache-2.0
// What a gateway process lays out its memory by: its workers, the queues and hashes of its started ports, and
// its pools of packet buffers. A successor that cannot have the ports yet creates all of it as the process
// that forwards has it. If its own ports turn out to differ, it creates the memory again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "dataplane/nat/reply_hash.hpp"
#include "drivers/eal/mempool.hpp"
#include "penstock/v1/upgrade.pb.h"

namespace penstock::gateway {

struct MemoryPlan {
    struct Port {
        uint16_t rx_queues = 1;
        uint16_t tx_queues = 1;
        std::optional<nat::ReplyHash> reply_hash;
        bool operator==(const Port&) const = default;
    };
    uint32_t workers = 0;
    std::vector<Port> ports;                     // by NicPortId
    std::map<int, drivers::MempoolShape> pools;  // by NUMA node
    bool operator==(const MemoryPlan&) const = default;
};

[[nodiscard]] v1::UpgradeMemory to_proto(const MemoryPlan& plan);
// Empty: no plan, the plan of another number of workers or ports, or one that no process can have. The other
// process may be of another release.
[[nodiscard]] std::optional<MemoryPlan> plan_from_proto(const v1::UpgradeMemory& memory, uint32_t workers,
                                                        size_t ports);

}  // namespace penstock::gateway
