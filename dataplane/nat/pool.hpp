// What lies in PortProposer's memory. A key is found in two lines: its set's tags, then its pool.
#pragma once

#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/nat/port_rules.hpp"

namespace penstock::nat {

inline constexpr uint32_t kPoolsPerSet = 16;

struct alignas(kCacheLine) PoolTags {
    uint32_t tags[kPoolsPerSet];  // 0: never used
};

struct alignas(kCacheLine) Pool {
    PoolKey key;
    bool recent;        // opened, or lost its last live port, since pools of its set were last replaced in turn
    uint8_t place;      // the next one in the cursor's block, by PortOrder; 64: behind the last
    uint16_t turn;      // the cursor's block, by its place in BlockOrder
    uint64_t hash;      // of the key; draws both orders
    uint32_t live;      // bound ports
    uint32_t map;       // or kNoMap
    uint16_t marked;    // ports that the map shows as taken; port 0 never is, so all fit
    uint16_t block;     // BlockOrder::block_at(hash, turn)
    uint16_t refusals;  // since a port was last bound or none was found
    uint16_t passed;    // blocks since then

    static constexpr uint32_t kNoMap = ~0U;
};
static_assert(sizeof(Pool) == kCacheLine && sizeof(PoolTags) == kCacheLine);

// The head of a map. Its words follow it: for each of the worker's blocks, in this order,
//   a bit a block known to be full, by its place in the pool's order
//   the same once more, by the block's number in the share: most ports that are freed lie in blocks that are not full
//   a word of taken ports, by the block's number
struct PortMap {
    uint32_t pool;
    uint32_t version;  // PortRules.version under which blocks were found full
    uint32_t older;    // neighbours among those that may be withdrawn, or the next free one
    uint32_t newer;
};

}  // namespace penstock::nat
