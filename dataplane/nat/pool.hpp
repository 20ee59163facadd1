// SPDX-License-Identifier: Apache-2.0
// Layout of PortProposer's memory. A look-up of a key reads two cache lines: the tags of its set, and its
// pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/nat/port_order.hpp"
#include "dataplane/nat/port_rules.hpp"

namespace penstock::nat {

inline constexpr uint32_t kPoolsPerSet = 16;

struct alignas(kCacheLine) PoolTags {
    uint32_t tags[kPoolsPerSet];  // 0: never used
};

struct alignas(kCacheLine) Pool {
    // The key, without its padding.
    IpAddr snat;
    IpAddr endpoint;
    L4Port endpoint_port;
    Protocol protocol;
    // The next position in the cursor's block, by PortOrder; 64: past the last one.
    uint8_t place;
    uint32_t version;  // PortRules.version to which `usable` belongs
    // PortRules.usable() of the cursor's block; 0 if it must be computed again.
    uint64_t usable;
    uint32_t live;                // bound ports
    uint32_t map;                 // or kNoMap
    uint32_t order : 22;          // key of the block's PortOrder
    uint32_t block : 10;          // the cursor's block, as its index in the share: BlockOrder::block_at(turn)
    uint32_t turn : 10;           // the cursor's block, as its position in BlockOrder
    uint32_t passed_blocks : 12;  // since a port was last bound or none was found
    uint32_t refusals : 9;        // since the same event
    // Opened, or lost its last live port, since pools of its set were last replaced in turn.
    uint32_t recent : 1;

    static constexpr uint32_t kNoMap = ~0U;
    static constexpr uint32_t kRefusalsMax = (1U << 9) - 1;  // saturates here
    static constexpr uint32_t kPassedMax = (1U << 12) - 1;

    [[nodiscard]] PoolKey key() const noexcept { return {snat, endpoint, endpoint_port, protocol}; }
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool is_of(const PoolKey& key) const noexcept {
        return snat == key.snat && endpoint == key.endpoint && endpoint_port == key.endpoint_port &&
               protocol == key.protocol;
    }
    void refuse() noexcept { refusals = std::min(refusals + 1U, kRefusalsMax) & kRefusalsMax; }
    void pass(uint32_t blocks) noexcept {
        passed_blocks = std::min(passed_blocks + blocks, kPassedMax) & kPassedMax;
    }
    void start_counting() noexcept {
        refusals = 0;
        passed_blocks = 0;
    }
};
static_assert(PortOrder::kKeyBits == 22 && kPortBlocks == 1U << 10);
static_assert(sizeof(Pool) == kCacheLine && sizeof(PoolTags) == kCacheLine);

// The header of a map. Its words follow it, for each block of the worker in this order:
//   one bit for each block known to be full, by its position in the pool's order
//   the same again, by the block's index in the share: most freed ports are in blocks that are not full
//   one word of taken ports, by the block's index
struct PortMap {
    uint32_t pool;
    uint32_t version;  // PortRules.version under which blocks were found full
    uint32_t older;    // neighbours among the maps that can be withdrawn, or the next free one
    uint32_t newer;
    uint32_t marked;  // ports
    // The end of the last walk(): the block's position in the pool's order, and the next position within the
    // block.
    uint32_t walk_turn : 10;
    uint32_t walk_next : 7;
    uint32_t has_walked : 1;
    // Full blocks in which a port has become free since that walk; saturates at kOpenedMax.
    uint32_t opened : 14;

    static constexpr uint32_t kOpenedMax = (1U << 14) - 1;
};
static_assert(sizeof(PortMap) % sizeof(uint64_t) == 0);

}  // namespace penstock::nat
