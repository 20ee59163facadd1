// What lies in PortProposer's memory. A key is found in two lines: its set's tags, then its pool.
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
    // The key, without the padding of one.
    IpAddr snat;
    IpAddr endpoint;
    L4Port endpoint_port;
    Protocol protocol;
    uint8_t place;                // the next port in the cursor's block, by PortOrder; 64: behind the last
    uint32_t version;             // PortRules.version that `usable` is of
    uint64_t usable;              // PortRules.usable() of the cursor's block; 0 where it is to be asked for
    uint32_t live;                // bound ports
    uint32_t map;                 // or kNoMap
    uint32_t order : 22;          // key of the block's PortOrder
    uint32_t block : 10;          // the cursor's, by its number in the share: BlockOrder::block_at(turn)
    uint32_t turn : 10;           // the same by its place in BlockOrder
    uint32_t passed_blocks : 12;  // since a port was last bound or none was found
    uint32_t refusals : 9;        // since then
    uint32_t
        recent : 1;  // opened, or lost its last live port, since pools of its set were last replaced in turn

    static constexpr uint32_t kNoMap = ~0U;
    static constexpr uint32_t kRefusalsMax = (1U << 9) - 1;  // and no further
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

// The head of a map. Its words follow it: for each of the worker's blocks, in this order,
//   a bit a block known to be full, by its place in the pool's order
//   the same once more, by the block's number in the share: most ports that are freed lie in blocks that are not full
//   a word of taken ports, by the block's number
struct PortMap {
    uint32_t pool;
    uint32_t version;  // PortRules.version under which blocks were found full
    uint32_t older;    // neighbours among those that may be withdrawn, or the next free one
    uint32_t newer;
    uint32_t marked;  // ports
    // Where the last walk() ended: the block's place in the pool's order, the next port's in the block.
    uint32_t walk_turn : 10;
    uint32_t walk_next : 7;
    uint32_t has_walked : 1;
    uint32_t
        opened : 14;  // full blocks that a port of has come free since then, and no further than it can count

    static constexpr uint32_t kOpenedMax = (1U << 14) - 1;
};
static_assert(sizeof(PortMap) % sizeof(uint64_t) == 0);

}  // namespace penstock::nat
