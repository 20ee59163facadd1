// SNAT ports of one worker, proposed and not owned: which (SNAT address, port, endpoint, protocol) is taken is known to the connection
// table, whose insert() refuses a reverse key that exists. So a pool needs no memory per port while few of its ports are live: it proposes
// the next port in its order, and where that is taken (seldom), the next one again.
//
//   PoolKey --hash--> set of 16 tags (one line) --> pool (one line): key, cursor, live count, map or none
//                                                                                            |
//                          map: 1 bit a port known to be taken, 2 bits a block known to be full;
//                               only from as many live ports as it has words
//
// Whose ports. Where no NicPort's RSS can be foretold, whole blocks of 64 are the worker's, and only those are counted (PortShare). Else
// all blocks are, and of each the ports whose replies come home to the worker (PortRules.own): with n workers one in n, more or less.
//
// Order. A pool goes round the blocks, and through the ports of a block, in an order drawn from its keyed hash
// (port_order.hpp), beginning at a random place (RFC 6056). A freed port rests until the cursor has gone round, while the endpoint may
// still hold it in TIME-WAIT. A pool without live ports keeps its cursor until its line is wanted for another key.
//
// Refusals. Each is a live port that the cursor has met, so a round meets no more of them than are live: below 1/64 of the proposals
// without a map (1/8 where ports are chosen by hash), and with one each port once. Ports that were taken in a row and stayed lie in a row
// when the cursor returns, therefore it jumps once it has met kRefusalsInRow of them: fewer than 1/64 of the ports are taken, and 16 jumps
// to random places in growing windows all fail with a probability below 2^-70 (2^-25 by hash). Then the pool gets a map all the same.
//
// Exhaustion is exact: it is said only where no port is usable, or where a map shows every usable port as taken. A port that was marked
// for another's connection (one of the shared pool) is found again by looking at one block anew each time the pool seems exhausted.
//
// Shared pool. With more keys live than a set holds pools, a new key is served by kShared, which has neither key nor map: it starts at a
// random place for each connection and gives up after kSharedProposals. The table keeps tuples unique there too.
//
// A burst may hold several proposals before the first is confirmed. Refusals must be followed up one connection at a time.
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

using PoolNumber =
    Id<struct PoolTag,
       uint32_t>;  // a pool of one worker; kept in the connection, which gives its port back with it
inline constexpr PoolNumber kShared{0xffff'fffe};

class PortProposer {
 public:
    // Bytes for at most `connections` bound ports of the worker with the largest share; 0 where connections is 0 or beyond 2^28 + 1.
    [[nodiscard]] static size_t memory_needed(uint32_t connections, PortRange range, uint32_t workers,
                                              const ReplyRules* rules = nullptr) noexcept;
    // Clears `memory`, which must outlive the proposer and begin on a cache line. Every PortRules.range later lies within `range`. `rules`
    // are borrowed; null or empty: ports belong to workers in blocks.
    static Result<PortProposer> create(std::span<std::byte> memory, uint32_t connections, PortRange range,
                                       WorkerId self, uint32_t workers, const HashKey& secret,
                                       const ReplyRules* rules = nullptr);

    PortProposer(PortProposer&&) noexcept = default;
    PortProposer& operator=(PortProposer&&) noexcept = default;
    PortProposer(const PortProposer&) = delete;
    PortProposer& operator=(const PortProposer&) = delete;

    // For a burst: hash() and prefetch() all, prefetch_pool() all, then open() and propose().
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE uint64_t hash(const PoolKey& key) const noexcept;
    PENSTOCK_ALWAYS_INLINE void prefetch(uint64_t hash) const noexcept { prefetch_read(&set_of(hash)); }
    // Says where the key's pool probably is, for open(); unset where it has none.
    PENSTOCK_ALWAYS_INLINE PoolNumber prefetch_pool(uint64_t hash) const noexcept;
    // The pool's line, ahead of give_back().
    PENSTOCK_ALWAYS_INLINE void prefetch(PoolNumber number) const noexcept { prefetch_read(&at(number)); }

    // The key's pool, opened if need be; kShared where there is no room for one. Until a port of it is bound, a pool may be given to
    // another key; that costs some evenness and nothing else.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE PoolNumber open(const PoolKey& key, uint64_t hash,
                                                         PoolNumber probably = {}) noexcept {
        return probably.is_set() && pools_[probably.value].is_of(key) ? probably : find_or_open(key, hash);
    }
    // For PortRules.own: the ports towards key.endpoint whose replies this worker receives. `reply_egress`: SnatAddresses::reply_egress().
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE OwnPorts own_ports(const PoolKey& key,
                                                            NicPortId reply_egress) const noexcept {
        return rules_ == nullptr ? OwnPorts() : own_among_all(key, reply_egress);
    }
    // A port to try, and moves the cursor behind it. Empty: exhausted under these rules.
    [[nodiscard]] std::optional<L4Port> propose(PoolNumber number, const PortRules& rules) noexcept {
        const L4Port port = propose_in_block(number, rules.version);
        return port != 0 ? port : propose_next(number, rules);
    }
    // The same where the last proposal was of the same rules and its block has a free port left, as is nearly always so. 0: ask propose().
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE L4Port propose_in_block(PoolNumber number,
                                                                 uint32_t rules_version) noexcept;
    // What became of a proposal: the connection is in the table, or the table said that the tuple is taken. A proposal may also be dropped
    // without a word. At most `connections` are bound at once.
    PENSTOCK_ALWAYS_INLINE void bind(PoolNumber number, L4Port port) noexcept;
    void refuse(PoolNumber number, L4Port port) noexcept;
    // The connection whose proposal was bound has gone.
    PENSTOCK_ALWAYS_INLINE void give_back(PoolNumber number, L4Port port) noexcept;

    // Where a walk has passed a port.
    struct Place {
        L4Port port = 0;
        uint16_t turn = 0;  // of its block
        uint8_t next = 0;   // the place behind it in the block
    };
    // For a pool whose ports are all taken: the usable ports that were handed out longest ago, taken or not. The first walk begins at the
    // cursor, the next ones where the last one ended. Returns how many; fewer than fit where it has been round, and then some may be met
    // twice.
    uint32_t walk(PoolNumber number, const PortRules& rules, std::span<Place> out) noexcept;
    // The next walk begins behind one of those.
    void go_behind(PoolNumber number, const Place& place) noexcept;
    // visit(first port, bits) for each block that holds ports of the worker's that are usable under `rules`. Any thread: reads what never
    // changes.
    template <typename Visit>
    void for_each_usable(const PortRules& rules, Visit&& visit) const {
        for (uint32_t index = 0; index < share_.blocks(); ++index) {
            const uint32_t block = share_.block_at(index);
            if (const uint64_t usable = rules.usable(block); usable != 0) {
                visit(static_cast<L4Port>(block * kPortsPerBlock), usable);
            }
        }
    }

    // Bound ports.
    [[nodiscard]] uint32_t in_use() const noexcept { return in_use_; }
    // For the tests that show that nothing leaks, and for `status`.
    struct Usage {
        uint32_t pools_live;   // with bound ports; the shared one is not counted
        uint32_t maps;         // in the hands of pools
        uint32_t shared_live;  // ports bound through kShared
        bool operator==(const Usage&) const = default;
    };
    [[nodiscard]] Usage usage() const noexcept;

    // A pool that met this many taken ports in a row jumps; one that met twice as many gets a map.
    static constexpr uint32_t kRefusalsInRow = 16;
    // Nine tenths of a key's ports may be taken by others and this many proposals still fail but once in 10^11 times.
    static constexpr uint32_t kSharedProposals = 256;

 private:
    static constexpr uint32_t kNone = ~0U;

    struct Layout;

    PortProposer(const PortShare& share, const HashKey& secret) noexcept
        : share_(share), order_(share.blocks()), mix_(secret) {}

    [[nodiscard]] Pool& at(PoolNumber number) const noexcept {
        return pools_[std::min<size_t>(number.value, pools_.size() - 1)];
    }
    // The set comes of the hash's high half, the tag of the low one.
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

    PortShare share_;  // where ports are chosen by hash, all blocks
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
    uint32_t map_from_ = 0;  // live ports from which a pool may keep its map
    uint32_t maps_count_ = 0;
    uint32_t maps_fresh_ = 0;
    uint32_t maps_free_ = kNone;
    uint32_t maps_used_ = 0;
    uint32_t line_oldest_ = kNone;  // maps of pools with fewer live ports, which give way to those with more
    uint32_t line_newest_ = kNone;
    uint32_t connections_ = 0;
    uint32_t in_use_ = 0;
    uint32_t pools_live_ = 0;  // the shared one counts here
    uint64_t draws_ = 0;
};

// What a connection costs in most cases. The rest is in port_proposer.cpp.

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
