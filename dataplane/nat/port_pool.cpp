#include "dataplane/nat/port_pool.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::nat {
namespace {

constexpr uint32_t kConnectionsMax = (1U << 28) + 1;  // one more than a connection table can hold (pipeline/context.hpp)

// Live ports from which a pool has a full map: two bytes a port at most, and fewer than 64 blocks to look through without it.
constexpr uint32_t kMapFromPorts = 64;

// One of the set bits, by a random number: the first at or after a random place. Not quite even where bits are sparse, and nobody who does
// not know the key can tell.
uint32_t pick_bit(uint64_t bits, uint64_t random) noexcept {
    const int turn = static_cast<int>(random % kPortsPerBlock);
    return (static_cast<uint32_t>(std::countr_zero(std::rotr(bits, turn))) + static_cast<uint32_t>(turn)) % kPortsPerBlock;
}

constexpr uint64_t bit(uint32_t n) noexcept {
    return 1ULL << n;
}

}  // namespace

struct PortPool::Pool {
    PoolKey key;
    uint32_t next;      // in its chain, or in the arena's free list
    uint64_t fresh;     // ports of the cursor's block that its visit has yet to hand out
    uint16_t cursor;    // the block being handed out, counted among this worker's own
    L4Port last_freed;  // 0: none yet
    uint32_t live;      // ports in use
    union {
        uint32_t map;         // live > 0: the full map, or kNone
        uint32_t idle_older;  // live == 0: neighbours in the order of idleness
    };
    union {
        uint32_t map_version;  // live > 0: PortRules.version that the full map was made under
        uint32_t idle_newer;
    };
};

struct PortPool::Block {
    uint64_t used;  // never 0
    uint32_t next;
    uint32_t pool;
    uint32_t number;  // counted among this worker's own
};

// Blocks of a pool without a port to give, by their number among this worker's own.
struct PortPool::FullMap {
    uint64_t words[kPortBlocks / 64];
    uint32_t next;
};

template <typename Node>
uint32_t PortPool::Arena<Node>::take() noexcept {
    PENSTOCK_ASSERT(used < nodes.size());
    ++used;
    if (free_head == kNone) {
        return fresh++;
    }
    const uint32_t index = free_head;
    free_head = nodes[index].next;
    return index;
}

template <typename Node>
void PortPool::Arena<Node>::give_back(uint32_t index) noexcept {
    --used;
    nodes[index].next = free_head;
    free_head = index;
}

namespace {
// Fills with the number that ends a chain; also touches every page of it, so that no worker faults later.
void clear_chains(std::span<uint32_t> chains) noexcept {
    std::memset(chains.data(), 0xff, chains.size_bytes());
}

constexpr size_t aligned(size_t bytes) noexcept {
    return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}
}  // namespace

// How many of each there are, in the order in which they lie in the memory.
struct PortPool::Layout {
    explicit Layout(uint32_t connections) noexcept
        : pools(connections + 1),  // one more than can be live, so that a key that finds no port has a cursor all the same
          blocks(connections),
          maps(connections / kMapFromPorts),
          chains(std::bit_ceil(connections)) {}
    [[nodiscard]] size_t bytes() const noexcept {
        return aligned(pools * sizeof(Pool)) + aligned(blocks * sizeof(Block)) + aligned(maps * sizeof(FullMap)) +
               2 * aligned(chains * sizeof(uint32_t));
    }
    size_t pools, blocks, maps, chains;
};

size_t PortPool::memory_needed(uint32_t connections) noexcept {
    static_assert(sizeof(Pool) == kCacheLine, "a pool is looked up for every new flow and shall cost one line");
    return connections == 0 || connections > kConnectionsMax ? 0 : Layout(connections).bytes();
}

Result<PortPool> PortPool::create(std::span<std::byte> memory, uint32_t connections, WorkerId self, uint32_t workers,
                                  const HashKey& secret) {
    const size_t needed = memory_needed(connections);
    if (needed == 0) {
        return fail(Errc::InvalidArgument,
                    "SNAT ports: " + std::to_string(connections) + " connections is not between 1 and " + std::to_string(kConnectionsMax));
    }
    if (memory.size() < needed || reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return fail(Errc::InvalidArgument, "SNAT ports: " + std::to_string(connections) + " connections need " + std::to_string(needed) +
                                               " bytes from the start of a cache line");
    }
    if (workers == 0 || workers > limits::kWorkersMax || self.value >= workers) {
        return fail(Errc::InvalidArgument,
                    "SNAT ports: there is no worker " + std::to_string(self.value) + " of " + std::to_string(workers));
    }
    const Layout layout(connections);
    std::byte* at = memory.data();
    const auto next = [&]<typename T>(std::span<T>& array, size_t count) {
        array = {reinterpret_cast<T*>(at), count};
        at += aligned(array.size_bytes());
    };
    std::memset(at, 0, needed);
    PortPool pool;
    next(pool.pools_.nodes, layout.pools);
    next(pool.blocks_.nodes, layout.blocks);
    next(pool.maps_.nodes, layout.maps);
    next(pool.pool_chains_, layout.chains);
    next(pool.block_chains_, layout.chains);
    clear_chains(pool.pool_chains_);
    clear_chains(pool.block_chains_);
    pool.connections_ = connections;
    pool.workers_ = workers;
    pool.self_ = self.value;
    pool.secret_ = secret;
    return pool;
}

std::optional<L4Port> PortPool::take(const PoolKey& key, const PortRules& rules) noexcept {
    if (in_use_ == connections_) {
        return std::nullopt;
    }
    const uint32_t chain = chain_of(key);
    uint32_t number = find_pool(key, chain);
    if (number == kNone) {
        number = open_pool(key, chain, rules);
    }
    Pool& pool = pools_.nodes[number];
    if (pool.live > 0 && pool.map != kNone && pool.map_version != rules.version) {
        std::memset(maps_.nodes[pool.map].words, 0, sizeof(FullMap::words));
        pool.map_version = rules.version;
    }
    pool.fresh &= rules.usable(block_of(pool.cursor));
    if (pool.fresh == 0 && !move_on(number, rules)) {
        return std::nullopt;
    }
    const uint32_t picked = pick_bit(pool.fresh, random());
    pool.fresh &= ~bit(picked);
    mark_used(number, pool.cursor, bit(picked));
    if (pool.live == 0) {
        leave_idle(number);
        pool.map = kNone;
    }
    ++in_use_;
    if (++pool.live >= kMapFromPorts && pool.map == kNone) {
        pool.map = maps_.take();
        pool.map_version = rules.version;
        std::memset(maps_.nodes[pool.map].words, 0, sizeof(FullMap::words));
    }
    return static_cast<L4Port>(block_of(pool.cursor) * kPortsPerBlock + picked);
}

void PortPool::give_back(const PoolKey& key, L4Port port) noexcept {
    const uint32_t number = find_pool(key, chain_of(key));
    PENSTOCK_ASSERT(number != kNone);
    Pool& pool = pools_.nodes[number];
    const uint32_t block = port / kPortsPerBlock / workers_;
    mark_free(number, block, bit(port % kPortsPerBlock));
    pool.last_freed = port;
    --in_use_;
    --pool.live;
    if (pool.map != kNone) {
        if (pool.live < kMapFromPorts) {
            maps_.give_back(pool.map);
            pool.map = kNone;
        } else {
            maps_.nodes[pool.map].words[block / 64] &= ~bit(block % 64);
        }
    }
    if (pool.live == 0) {
        become_idle(number);
    }
}

// Moves the cursor to the next of this worker's blocks that has a port to give, going round once, and fills `fresh` with its ports. The
// port given back last is left to its rest unless it is the only one.
bool PortPool::move_on(uint32_t number, const PortRules& rules) noexcept {
    Pool& pool = pools_.nodes[number];
    const OwnBlocks own = own_blocks(rules.range);
    if (own.first > own.last) {
        return false;
    }
    FullMap* map = pool.live > 0 && pool.map != kNone ? &maps_.nodes[pool.map] : nullptr;
    uint32_t last_resort = kNone;
    // Settles in the first block of from..to that will do.
    const auto search = [&](uint32_t from, uint32_t to) {
        for (uint32_t block = from; block <= to; ++block) {
            block = skip_forbidden(block, map, rules);
            if (block > to) {
                return false;
            }
            const uint64_t free = free_ports(number, block, rules);
            const bool rests_here = pool.last_freed != 0 && block_of(block) == pool.last_freed / kPortsPerBlock;
            const uint64_t rested = rests_here ? free & ~bit(pool.last_freed % kPortsPerBlock) : free;
            if (rested != 0) {
                pool.cursor = static_cast<uint16_t>(block);
                pool.fresh = rested;
                return true;
            }
            if (free != 0) {
                last_resort = block;
            } else if (map != nullptr) {
                map->words[block / 64] |= bit(block % 64);
            }
        }
        return false;
    };
    const uint32_t start = pool.cursor >= own.first && pool.cursor < own.last ? pool.cursor + 1 : own.first;
    if (search(start, own.last) || (start > own.first && search(own.first, start - 1))) {
        return true;
    }
    if (last_resort == kNone) {
        return false;
    }
    pool.cursor = static_cast<uint16_t>(last_resort);
    pool.fresh = free_ports(number, last_resort, rules);
    return true;
}

// The first block at or behind `block` that is neither known to be full nor wholly inside the excluded range; may lie behind the last one.
uint32_t PortPool::skip_forbidden(uint32_t block, const FullMap* map, const PortRules& rules) const noexcept {
    for (;;) {
        const uint32_t before = block;
        if (const uint32_t start = block_of(block) * kPortsPerBlock;
            start >= rules.excluded.first && start + kPortsPerBlock - 1 <= rules.excluded.last) {
            block = own_at_or_behind((rules.excluded.last + 1U) / kPortsPerBlock);
        }
        if (map != nullptr && block < kPortBlocks) {
            uint32_t word = block / 64;
            uint64_t open = ~map->words[word] & (~0ULL << (block % 64));
            while (open == 0 && ++word < std::size(map->words)) {
                open = ~map->words[word];
            }
            block = word * 64 + (open == 0 ? 0 : static_cast<uint32_t>(std::countr_zero(open)));
        }
        if (block == before || block >= kPortBlocks) {
            return block;
        }
    }
}

uint32_t PortPool::own_at_or_behind(uint32_t port_block) const noexcept {
    return port_block <= self_ ? 0 : (port_block - self_ + workers_ - 1) / workers_;
}

PortPool::OwnBlocks PortPool::own_blocks(PortRange range) const noexcept {
    const uint32_t last = range.last / kPortsPerBlock;
    if (range.first > range.last || last < self_) {
        return {1, 0};
    }
    return {own_at_or_behind(range.first / kPortsPerBlock), (last - self_) / workers_};
}

uint64_t PortPool::free_ports(uint32_t pool, uint32_t block, const PortRules& rules) const noexcept {
    const uint64_t usable = rules.usable(block_of(block));
    const uint32_t* link = usable == 0 ? nullptr : find_block(pool, block);
    return link == nullptr || *link == kNone ? usable : usable & ~blocks_.nodes[*link].used;
}

uint32_t PortPool::chain_of(const PoolKey& key) const noexcept {
    const auto snat = load<std::array<uint64_t, 2>>(&key.snat);
    const auto endpoint = load<std::array<uint64_t, 2>>(&key.endpoint);
    const uint64_t rest = uint64_t{key.endpoint_port} << 8 | static_cast<uint8_t>(key.protocol);
    const uint64_t hash = siphash13<5>(secret_, {snat[0], snat[1], endpoint[0], endpoint[1], rest});
    return static_cast<uint32_t>(hash) & static_cast<uint32_t>(pool_chains_.size() - 1);
}

uint32_t PortPool::find_pool(const PoolKey& key, uint32_t chain) const noexcept {
    uint32_t pool = pool_chains_[chain];
    while (pool != kNone && !(pools_.nodes[pool].key == key)) {
        pool = pools_.nodes[pool].next;
    }
    return pool;
}

uint32_t PortPool::open_pool(const PoolKey& key, uint32_t chain, const PortRules& rules) noexcept {
    if (pools_.used == pools_.nodes.size()) {
        const uint32_t oldest = idle_oldest_;
        leave_idle(oldest);
        uint32_t* link = &pool_chains_[chain_of(pools_.nodes[oldest].key)];
        while (*link != oldest) {
            link = &pools_.nodes[*link].next;
        }
        *link = pools_.nodes[oldest].next;
        pools_.give_back(oldest);
    }
    const uint32_t number = pools_.take();
    Pool& pool = pools_.nodes[number];
    pool = {};
    pool.key = key;
    pool.next = pool_chains_[chain];
    pool_chains_[chain] = number;
    // Drawn among blocks that have a port, or those behind a long excluded range would start far more pools than others. Eight draws miss
    // the usable half of an ordinary configuration once in 256, and then only evenness suffers.
    const OwnBlocks own = own_blocks(rules.range);
    for (int draws = 0; draws < 8 && own.first <= own.last && pool.fresh == 0; ++draws) {
        pool.cursor = static_cast<uint16_t>(own.first + random() % (own.last - own.first + 1));
        pool.fresh = rules.usable(block_of(pool.cursor));
    }
    become_idle(number);
    return number;
}

void PortPool::become_idle(uint32_t number) noexcept {
    Pool& pool = pools_.nodes[number];
    pool.idle_older = idle_newest_;
    pool.idle_newer = kNone;
    (idle_newest_ == kNone ? idle_oldest_ : pools_.nodes[idle_newest_].idle_newer) = number;
    idle_newest_ = number;
    ++idle_pools_;
}

void PortPool::leave_idle(uint32_t number) noexcept {
    const Pool& pool = pools_.nodes[number];
    (pool.idle_older == kNone ? idle_oldest_ : pools_.nodes[pool.idle_older].idle_newer) = pool.idle_newer;
    (pool.idle_newer == kNone ? idle_newest_ : pools_.nodes[pool.idle_newer].idle_older) = pool.idle_older;
    --idle_pools_;
}

// The link that holds the block's number: a chain's head or a node's `next`. *link is kNone where the block is not open.
uint32_t* PortPool::find_block(uint32_t pool, uint32_t block) const noexcept {
    // Both numbers are ours, so this hash needs no key. The odd multiplier is 2^64 divided by the golden ratio (Knuth 6.4).
    const uint64_t hash = (uint64_t{pool} * kPortBlocks + block) * 0x9e3779b97f4a7c15ULL;
    uint32_t* link = &block_chains_[(hash >> 32) & (block_chains_.size() - 1)];
    while (*link != kNone && (blocks_.nodes[*link].pool != pool || blocks_.nodes[*link].number != block)) {
        link = &blocks_.nodes[*link].next;
    }
    return link;
}

void PortPool::mark_used(uint32_t pool, uint32_t block, uint64_t port) noexcept {
    uint32_t* link = find_block(pool, block);
    if (*link == kNone) {
        const uint32_t node = blocks_.take();
        blocks_.nodes[node] = {.used = 0, .next = kNone, .pool = pool, .number = block};
        *link = node;
    }
    blocks_.nodes[*link].used |= port;
}

void PortPool::mark_free(uint32_t pool, uint32_t block, uint64_t port) noexcept {
    uint32_t* link = find_block(pool, block);
    PENSTOCK_ASSERT(*link != kNone && (blocks_.nodes[*link].used & port) != 0);
    const uint32_t node = *link;
    blocks_.nodes[node].used &= ~port;
    if (blocks_.nodes[node].used == 0) {
        *link = blocks_.nodes[node].next;
        blocks_.give_back(node);
    }
}

uint64_t PortPool::random() noexcept {
    return siphash13<1>(secret_, {++draws_});
}

}  // namespace penstock::nat
