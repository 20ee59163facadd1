// Free SNAT ports of one worker. A port is unique per (SNAT address, endpoint address, endpoint port, protocol), so each such key has a
// pool of its own, and a port that is busy towards one endpoint is free towards the next.
//
//   PoolKey --hash--> pool: cursor block, ports of that block still to be handed out, live count
//                       |
//   (pool, block) --hash--> open block: 64 used bits       exists only while one of its ports is live
//                       `-> full map: 1 bit a block        exists only while the pool has 64 live ports or more
//
// A pool's cursor starts at a random block and takes the ports of each block in random order before it moves on (RFC 6056: random per
// start, keyed). So a freed port rests until the cursor has gone round, while the endpoint may still hold it in TIME-WAIT. A pool without
// live ports keeps its cursor until its node is wanted for another key, the longest unused first.
//
// take() and give_back() cost a few lines each: what is full is skipped by its bit, and a pool without the full map has fewer than 64
// blocks that could be in the way. Memory is fixed and cannot run out before the connections do: an open block holds a live port, a pool
// with live ports too, a full map 64 of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/nat/port_rules.hpp"
#include "dataplane/nat/reply_owner.hpp"

namespace penstock::nat {

class PortPool {
 public:
    // Bytes for at most `connections` live ports; 0 where connections is 0 or beyond 2^28.
    [[nodiscard]] static size_t memory_needed(uint32_t connections) noexcept;
    // Clears `memory`, which must outlive the pool and begin on a cache line. `self` owns the blocks that ReplyOwner::of_snat_port says.
    static Result<PortPool> create(std::span<std::byte> memory, uint32_t connections, WorkerId self, uint32_t workers,
                                   const HashKey& secret);

    PortPool(PortPool&&) noexcept = default;
    PortPool& operator=(PortPool&&) noexcept = default;
    PortPool(const PortPool&) = delete;
    PortPool& operator=(const PortPool&) = delete;

    // Empty: no port of this worker's share is free for the key under the rules, or `connections` ports are live.
    [[nodiscard]] std::optional<L4Port> take(const PoolKey& key, const PortRules& rules) noexcept;
    // `port` must be live for `key`.
    void give_back(const PoolKey& key, L4Port port) noexcept;

    // Live ports over all keys.
    [[nodiscard]] uint32_t in_use() const noexcept { return in_use_; }

    // Nodes in use, for the tests that show that nothing leaks.
    struct Usage {
        uint32_t pools_live;  // with live ports
        uint32_t open_blocks;
        uint32_t full_maps;
        bool operator==(const Usage&) const = default;
    };
    [[nodiscard]] Usage usage() const noexcept { return {pools_.used - idle_pools_, blocks_.used, maps_.used}; }

 private:
    static constexpr uint32_t kNone = ~0U;

    struct Pool;
    struct Block;
    struct FullMap;
    struct Layout;
    // Nodes of one size, handed out by number: first those given back, then those never used.
    template <typename Node>
    struct Arena {
        std::span<Node> nodes;
        uint32_t free_head = kNone;
        uint32_t fresh = 0;
        uint32_t used = 0;
        [[nodiscard]] uint32_t take() noexcept;
        void give_back(uint32_t index) noexcept;
    };

    PortPool() = default;
    // First and last of this worker's blocks that hold ports of a range, counted among its own; first > last: none.
    struct OwnBlocks {
        uint32_t first;
        uint32_t last;
    };
    [[nodiscard]] OwnBlocks own_blocks(PortRange range) const noexcept;
    [[nodiscard]] uint32_t own_at_or_behind(uint32_t port_block) const noexcept;
    // From this worker's count to the port space's, as ReplyOwner::of_snat_port divides it.
    [[nodiscard]] uint32_t block_of(uint32_t own_block) const noexcept { return own_block * workers_ + self_; }

    [[nodiscard]] uint32_t chain_of(const PoolKey& key) const noexcept;
    [[nodiscard]] uint32_t find_pool(const PoolKey& key, uint32_t chain) const noexcept;
    [[nodiscard]] uint32_t open_pool(const PoolKey& key, uint32_t chain, const PortRules& rules) noexcept;
    void become_idle(uint32_t pool) noexcept;
    void leave_idle(uint32_t pool) noexcept;
    [[nodiscard]] bool move_on(uint32_t pool, const PortRules& rules) noexcept;
    [[nodiscard]] uint32_t skip_forbidden(uint32_t block, const FullMap* map, const PortRules& rules) const noexcept;

    [[nodiscard]] uint32_t* find_block(uint32_t pool, uint32_t block) const noexcept;
    [[nodiscard]] uint64_t free_ports(uint32_t pool, uint32_t block, const PortRules& rules) const noexcept;
    void mark_used(uint32_t pool, uint32_t block, uint64_t port) noexcept;
    void mark_free(uint32_t pool, uint32_t block, uint64_t port) noexcept;
    [[nodiscard]] uint64_t random() noexcept;

    Arena<Pool> pools_;
    Arena<Block> blocks_;
    Arena<FullMap> maps_;
    std::span<uint32_t> pool_chains_;
    std::span<uint32_t> block_chains_;
    uint32_t idle_oldest_ = kNone;  // pools without live ports, in the order they became so
    uint32_t idle_newest_ = kNone;
    uint32_t idle_pools_ = 0;
    uint32_t in_use_ = 0;
    uint32_t connections_ = 0;
    uint32_t workers_ = 1;
    uint32_t self_ = 0;
    HashKey secret_;
    uint64_t draws_ = 0;
};

}  // namespace penstock::nat
