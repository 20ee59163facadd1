// SPDX-License-Identifier: Apache-2.0
// Proposes the SNAT ports of one worker, without owning them. The connection table holds which (SNAT address,
// port, endpoint, protocol) is taken: its insert() refuses a reverse key that exists. A pool therefore needs
// no memory per port while few of its ports are live. It proposes the next port in its order, and if that
// port is taken (rarely), the one after it.
//
//   PoolKey --hash--> set of 16 tags (one line) --> pool (one line): key, cursor, live count, map or none
//                                                                                            |
//                    map: 1 bit per port known to be taken, 2 bits per block known to be full;
//                         only if the pool has at least as many live ports as the map has words
//
// Ownership. If no NicPort's RSS is predictable, whole blocks of 64 belong to the worker, and only those are
// counted (PortShare). Otherwise the pool uses all blocks, and in each block the ports with replies that
// arrive at the worker (PortRules.own): with n workers about one in n.
//
// Order. A pool cycles through the blocks, and through the ports of a block, in an order derived from its
// keyed hash (port_order.hpp), starting at a random position (RFC 6056). A freed port rests until the cursor
// has completed a round, while the endpoint may still hold it in TIME-WAIT. A pool without live ports keeps
// its cursor until its line is needed for another key.
//
// Refusals. Each refusal is a live port under the cursor, so a round has at most as many refusals as there
// are live ports. Without a map these are below 1/64 of the proposals (1/8 if ports are chosen by hash); with
// a map each port is refused at most once. Ports that were taken consecutively and stayed are consecutive
// again when the cursor returns. The cursor therefore jumps after kRefusalsInRow refusals. As fewer than 1/64
// of the ports are taken, 16 jumps to random positions in growing windows all fail with a probability below
// 2^-70 (2^-25 by hash). If they do, the pool gets a map in spite of its few ports.
//
// Exhaustion is exact: it is reported only if no port is usable, or if a map shows every usable port as
// taken. A port may have been marked for a connection of the shared pool. To find such a port again, one
// block is checked anew each time the pool appears exhausted.
//
// Shared pool. If more keys are live than a set has pools, a new key is served by kShared, which has neither
// key nor map. It starts at a random position for each connection and gives up after kSharedProposals. The
// table keeps tuples unique there too.
//
// A burst may contain several proposals before the first is confirmed. Refusals must be processed one
// connection at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/match8.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/nat/pool.hpp"
#include "dataplane/nat/port_order.hpp"
#include "dataplane/nat/port_rules.hpp"
#include "dataplane/nat/port_share.hpp"

namespace penstock::nat {

// A pool of one worker. Stored in the connection, which returns its port to this pool.
using PoolNumber = Id<struct PoolTag, uint32_t>;
inline constexpr PoolNumber kShared{0xffff'fffe};

class PortProposer {
 public:
    // Bytes for at most `connections` bound ports of the worker with the largest share. 0 if connections is 0
    // or exceeds 2^28 + 1.
    [[nodiscard]] static size_t memory_needed(uint32_t connections, PortRange range, uint32_t workers,
                                              const ReplyRules* rules = nullptr) noexcept;
    // Clears `memory`, which must outlive the proposer and start on a cache line. Every later PortRules.range
    // must lie within `range`. `rules` are borrowed. Null or empty: ports belong to workers in blocks.
    static Result<PortProposer> create(std::span<std::byte> memory, uint32_t connections, PortRange range,
                                       WorkerId self, uint32_t workers, const HashKey& secret,
                                       const ReplyRules* rules = nullptr);

    PortProposer(PortProposer&&) noexcept = default;
    PortProposer& operator=(PortProposer&&) noexcept = default;
    PortProposer(const PortProposer&) = delete;
    PortProposer& operator=(const PortProposer&) = delete;

    // For a burst: hash() and prefetch() for all, prefetch_pool() for all, then open() and propose().
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hash(const PoolKey& key) const noexcept;
    PENSTOCK_ALWAYS_INLINE void prefetch(uint64_t hash) const noexcept { prefetch_read(&set_of(hash)); }
    // Returns the probable position of the key's pool, for open(); unset if the key has no pool.
    PENSTOCK_ALWAYS_INLINE PoolNumber prefetch_pool(uint64_t hash) const noexcept;
    // Prefetches the pool's line before give_back().
    PENSTOCK_ALWAYS_INLINE void prefetch(PoolNumber number) const noexcept { prefetch_read(&at(number)); }

    // The key's pool, opened if necessary; kShared if there is no room. Until one of its ports is bound, a
    // pool may be reassigned to another key; the only cost is a less even use of the ports.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE PoolNumber open(const PoolKey& key, uint64_t hash,
                                                         PoolNumber probably = {}) noexcept {
        return probably.is_set() && pools_[probably.value].is_of(key) ? probably : find_or_open(key, hash);
    }
    // For PortRules.own: the ports towards key.endpoint with replies that arrive at this worker.
    // `reply_egress`: SnatAddresses::reply_egress().
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE OwnPorts own_ports(const PoolKey& key,
                                                            NicPortId reply_egress) const noexcept {
        return rules_ == nullptr ? OwnPorts() : own_among_all(key, reply_egress);
    }
    // Returns a port to try and moves the cursor past it. Empty: no port is left under these rules.
    [[nodiscard]] std::optional<L4Port> propose(PoolNumber number, const PortRules& rules) noexcept {
        const L4Port port = propose_in_block(number, rules.version);
        return port != 0 ? port : propose_next(number, rules);
    }
    // The same for the common case: the last proposal had the same rules, and its block has a free port left.
    // 0: call propose().
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE L4Port propose_in_block(PoolNumber number,
                                                                 uint32_t rules_version) noexcept;
    // Report the result of a proposal: the connection is in the table, or the table refused the tuple. A
    // proposal may also be dropped without a report. At most `connections` ports are bound at once.
    PENSTOCK_ALWAYS_INLINE void bind(PoolNumber number, L4Port port) noexcept;
    void refuse(PoolNumber number, L4Port port) noexcept;
    // The connection of a bound port has been removed.
    PENSTOCK_ALWAYS_INLINE void give_back(PoolNumber number, L4Port port) noexcept;

    // The position at which a walk passed a port.
    struct WalkPosition {
        L4Port port = 0;
        uint16_t turn = 0;  // turn of its block
        uint8_t next = 0;   // the position after the port in its block
    };
    // For a pool without free ports: returns the usable ports that were allocated the longest time ago, taken
    // or not. The first walk starts at the cursor, each later one at the end of the last. Returns the number
    // of ports. It is below out.size() after a full round, in which some ports may occur twice.
    uint32_t walk(PoolNumber number, const PortRules& rules, std::span<WalkPosition> out) noexcept;
    // Makes the next walk start after one of these ports.
    void go_behind(PoolNumber number, const WalkPosition& position) noexcept;
    // Calls visit(first port, bits) for each block with ports of this worker that are usable under `rules`.
    // Any thread: reads only data that never changes.
    template <typename Visit>
    void for_each_usable(const PortRules& rules, Visit&& visit) const {
        for (uint32_t index = 0; index < share_.blocks(); ++index) {
            const uint32_t block = share_.block_at(index);
            if (const uint64_t usable = rules.usable(block); usable != 0) {
                visit(static_cast<L4Port>(block * kPortsPerBlock), usable);
            }
        }
    }

    // Number of bound ports.
    [[nodiscard]] uint32_t in_use() const noexcept { return in_use_; }
    // For tests that check for leaks, and for `status`.
    struct Usage {
        uint32_t pools_live;   // with bound ports; without the shared pool
        uint32_t maps;         // in use by pools
        uint32_t shared_live;  // ports bound through kShared
        bool operator==(const Usage&) const = default;
    };
    [[nodiscard]] Usage usage() const noexcept;

    // A pool jumps after this number of consecutive refusals, and gets a map after twice this number.
    static constexpr uint32_t kRefusalsInRow = 16;
    // If nine tenths of a key's ports are taken by others, this number of proposals fails only once in 10^11
    // times.
    static constexpr uint32_t kSharedProposals = 256;

 private:
    static constexpr uint32_t kNone = ~0U;

    struct Layout;

    PortProposer(const PortShare& share, const HashKey& secret) noexcept
        : share_(share), order_(share.blocks()), mix_(secret) {}

    [[nodiscard]] Pool& at(PoolNumber number) const noexcept {
        return pools_[std::min<size_t>(number.value, pools_.size() - 1)];
    }
    // The set is derived from the high half of the hash, the tag from the low half.
    [[nodiscard]] PoolTags& set_of(uint64_t hash) const noexcept {
        return sets_[(hash >> 32) * sets_.size() >> 32];
    }
    [[nodiscard]] static uint32_t tag_of(uint64_t hash) noexcept {
        return std::max(static_cast<uint32_t>(hash), 1U);
    }
    [[nodiscard]] uint32_t first_of(const PoolTags& set) const noexcept {
        return static_cast<uint32_t>(&set - sets_.data()) * kPoolsPerSet;
    }
    [[nodiscard]] PoolNumber find_or_open(const PoolKey& key, uint64_t hash) noexcept;
    [[nodiscard]] uint32_t pool_to_replace(uint32_t first) noexcept;

    void enter(Pool& pool, uint32_t turn, uint32_t place) const noexcept;
    void start_at_random(Pool& pool) noexcept;
    void jump(Pool& pool) noexcept;
    [[nodiscard]] bool move_on(Pool& pool) const noexcept;
    [[nodiscard]] L4Port next_in_block(Pool& pool, uint64_t candidates) const noexcept;
    [[nodiscard]] L4Port propose_later_in_block(Pool& pool, uint32_t rules_version) const noexcept;
    [[nodiscard]] OwnPorts own_among_all(const PoolKey& key, NicPortId reply_egress) const noexcept;
    [[nodiscard]] std::optional<L4Port> propose_next(PoolNumber number, const PortRules& rules) noexcept;
    [[nodiscard]] bool look_anew(Pool& pool, const PortRules& rules) noexcept;

    [[nodiscard]] PortMap& map_at(uint32_t map) const noexcept {
        return *reinterpret_cast<PortMap*>(maps_ + map * map_stride_);
    }
    [[nodiscard]] uint64_t* full_of(const Pool& pool) const noexcept {
        return reinterpret_cast<uint64_t*>(&map_at(pool.map) + 1);
    }
    [[nodiscard]] uint64_t* full_by_number_of(const Pool& pool) const noexcept {
        return full_of(pool) + full_words_;
    }
    [[nodiscard]] uint64_t* taken_of(const Pool& pool) const noexcept {
        return full_of(pool) + 2 * size_t{full_words_};
    }
    void note_full(const Pool& pool) const noexcept;
    void note_open(const Pool& pool, uint32_t turn, uint32_t block) const noexcept;
    void give_map(uint32_t number) noexcept;
    void withdraw_map(Pool& pool) noexcept;
    void bind_in_map(Pool& pool, L4Port port) noexcept;
    void give_back_in_map(Pool& pool, L4Port port) noexcept;
    void mark(Pool& pool, L4Port port) noexcept;
    void line_up(uint32_t map) noexcept;
    void leave_line(uint32_t map) noexcept;
    [[nodiscard]] uint64_t random() noexcept { return mix_.of(++draws_, ~0ULL); }

    PortShare share_;  // all blocks if ports are chosen by hash
    const ReplyRules* rules_ = nullptr;
    WorkerId self_{0};
    uint32_t workers_ = 1;
    BlockOrder order_;
    KeyedMix mix_;
    std::span<PoolTags> sets_;
    std::span<Pool> pools_;
    std::byte* maps_ = nullptr;
    size_t map_stride_ = 0;
    uint32_t full_words_ = 0;
    uint32_t map_from_ = 0;  // number of live ports from which a pool keeps its map
    uint32_t maps_count_ = 0;
    uint32_t maps_fresh_ = 0;
    uint32_t maps_free_ = kNone;
    uint32_t maps_used_ = 0;
    // The maps of pools with fewer live ports; they are withdrawn for pools with more.
    uint32_t line_oldest_ = kNone;
    uint32_t line_newest_ = kNone;
    uint32_t connections_ = 0;
    uint32_t in_use_ = 0;
    uint32_t pools_live_ = 0;  // includes the shared pool
    uint64_t draws_ = 0;
};

// The operations that most connections need. The others are in port_proposer.cpp, those
// of the start in port_proposer_memory.cpp.

PENSTOCK_ALWAYS_INLINE uint64_t PortProposer::hash(const PoolKey& key) const noexcept {
    const auto snat = load<std::array<uint64_t, 2>>(&key.snat);
    const auto endpoint = load<std::array<uint64_t, 2>>(&key.endpoint);
    return mix_.of(snat[0], snat[1], endpoint[0], endpoint[1],
                   uint64_t{key.endpoint_port} << 8 | static_cast<uint8_t>(key.protocol));
}

PENSTOCK_ALWAYS_INLINE PoolNumber PortProposer::prefetch_pool(uint64_t hash) const noexcept {
    const PoolTags& set = set_of(hash);
    const uint32_t found = match16(set.tags, tag_of(hash));
    if (found == 0) {
        return {};
    }
    const PoolNumber number{first_of(set) + static_cast<uint32_t>(std::countr_zero(found))};
    prefetch_read(&pools_[number.value]);
    return number;
}

PENSTOCK_ALWAYS_INLINE L4Port PortProposer::propose_in_block(PoolNumber number,
                                                             uint32_t rules_version) noexcept {
    Pool& pool = at(number);
    const uint64_t taken = pool.map == Pool::kNoMap ? 0 : taken_of(pool)[pool.block];
    const uint32_t port = PortOrder(pool.order).port_at(pool.place);
    if (((pool.usable & ~taken) >> port & 1) == 0 || pool.version != rules_version ||
        pool.place == kPortsPerBlock) [[unlikely]] {
        return propose_later_in_block(pool, rules_version);
    }
    ++pool.place;
    return static_cast<L4Port>(share_.block_at(pool.block) * kPortsPerBlock + port);
}

PENSTOCK_ALWAYS_INLINE void PortProposer::bind(PoolNumber number, L4Port port) noexcept {
    PENSTOCK_ASSERT(in_use_ < connections_);
    Pool& pool = at(number);
    pool.start_counting();
    ++in_use_;
    ++pool.live;
    pools_live_ += pool.live == 1 ? 1 : 0;
    if (pool.map != Pool::kNoMap || pool.live >= map_from_) {
        bind_in_map(pool, port);
    }
}

PENSTOCK_ALWAYS_INLINE void PortProposer::give_back(PoolNumber number, L4Port port) noexcept {
    Pool& pool = at(number);
    PENSTOCK_ASSERT(in_use_ > 0 && pool.live > 0);
    --in_use_;
    --pool.live;
    if (pool.map != Pool::kNoMap) {
        give_back_in_map(pool, port);
    }
    if (pool.live == 0) {
        --pools_live_;
        pool.recent = true;
    }
}

}  // namespace penstock::nat
