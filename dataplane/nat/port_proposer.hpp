// SNAT ports of one worker, proposed and not owned: which (SNAT address, port, endpoint, protocol) is taken is known to the connection
// table, whose insert() refuses a reverse key that exists. So a pool needs no memory per port while few of its ports are live: it proposes
// the next port in its order, and where that is taken (seldom), the next one again.
//
//   PoolKey --hash--> set of 16 tags (one line) --> pool (one line): key, cursor, live count, map or none
//                                                                                            |
//                          map: 1 bit a port known to be taken, 1 bit a block known to be full   only from as many live ports as it has
//                          words
//
// Order. A pool goes round this worker's blocks of 64 ports, and through the ports of a block, in an order drawn from its keyed hash
// (port_order.hpp), beginning at a random place (RFC 6056). A freed port rests until the cursor has gone round, while the endpoint may
// still hold it in TIME-WAIT. A pool without live ports keeps its cursor until its line is wanted for another key.
//
// Refusals. Each is a live port that the cursor has met, so a round meets no more of them than are live: below 1/64 of the proposals
// without a map, and with one each port once. Ports that were taken in a row and stayed lie in a row when the cursor returns, therefore it
// jumps once it has met kRefusalsInRow of them: fewer than 1/64 of the ports are taken, and 16 jumps to random places in growing windows
// all fail with a probability below 2^-70. Then the pool gets a map all the same.
//
// Exhaustion is exact: it is said only where no port is usable, or where a map shows every usable port as taken. A port that was marked
// for another's connection (one of the shared pool) is found again by looking at one block anew each time the pool seems exhausted.
//
// Shared pool. With more keys live than a set holds pools, a new key is served by kShared, which has neither key nor map: it starts at a
// random place for each connection and gives up after kSharedProposals. The table keeps tuples unique there too.
//
// A burst may hold several proposals before the first is confirmed. Refusals must be followed up one connection at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/nat/port_order.hpp"
#include "dataplane/nat/port_rules.hpp"
#include "dataplane/nat/port_share.hpp"

namespace penstock::nat {

using PoolNumber = Id<struct PoolTag, uint32_t>;  // a pool of one worker; kept in the connection, which gives its port back with it
inline constexpr PoolNumber kShared{0xffff'fffe};

class PortProposer {
 public:
    // Bytes for at most `connections` bound ports of the worker with the largest share; 0 where connections is 0 or beyond 2^28 + 1.
    [[nodiscard]] static size_t memory_needed(uint32_t connections, PortRange range, uint32_t workers) noexcept;
    // Clears `memory`, which must outlive the proposer and begin on a cache line. Every PortRules.range later lies within `range`.
    static Result<PortProposer> create(std::span<std::byte> memory, uint32_t connections, PortRange range, WorkerId self, uint32_t workers,
                                       const HashKey& secret);

    PortProposer(PortProposer&&) noexcept = default;
    PortProposer& operator=(PortProposer&&) noexcept = default;
    PortProposer(const PortProposer&) = delete;
    PortProposer& operator=(const PortProposer&) = delete;

    // For a burst: hash() and prefetch() all, prefetch_pool() all, then open() and propose().
    [[nodiscard]] uint64_t hash(const PoolKey& key) const noexcept;
    void prefetch(uint64_t hash) const noexcept;
    void prefetch_pool(uint64_t hash) const noexcept;
    // The pool's line, ahead of give_back().
    void prefetch(PoolNumber number) const noexcept;

    // The key's pool, opened if need be; kShared where there is no room for one. Until a port of it is bound, a pool may be given to
    // another key; that costs some evenness and nothing else.
    [[nodiscard]] PoolNumber open(const PoolKey& key, uint64_t hash) noexcept;
    // A port to try, and moves the cursor behind it. Empty: exhausted under these rules.
    [[nodiscard]] std::optional<L4Port> propose(PoolNumber number, const PortRules& rules) noexcept;
    // What became of a proposal: the connection is in the table, or the table said that the tuple is taken. A proposal may also be dropped
    // without a word. At most `connections` are bound at once.
    void bind(PoolNumber number, L4Port port) noexcept;
    void refuse(PoolNumber number, L4Port port) noexcept;
    // The connection whose proposal was bound has gone.
    void give_back(PoolNumber number, L4Port port) noexcept;

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

    struct Pool;
    struct TagSet;
    struct Layout;
    // The head of a map. Its words follow it: a bit a full block, then a word of taken ports a block, both by the place that a block has
    // in the pool's order.
    struct Map {
        uint32_t pool;
        uint32_t version;  // PortRules.version under which blocks were found full
        uint32_t older;    // neighbours among those that may be withdrawn, or the next free one
        uint32_t newer;
    };

    PortProposer(const PortShare& share, const HashKey& secret) noexcept : share_(share), order_(share.blocks()), mix_(secret) {}

    [[nodiscard]] Pool& at(PoolNumber number) const noexcept;
    [[nodiscard]] TagSet& set_of(uint64_t hash) const noexcept;
    [[nodiscard]] uint32_t pool_to_replace(uint32_t first) noexcept;

    void enter(Pool& pool, uint32_t turn, uint32_t place) const noexcept;
    void start_at_random(Pool& pool) noexcept;
    void jump(Pool& pool) noexcept;
    [[nodiscard]] bool move_on(Pool& pool) const noexcept;
    [[nodiscard]] std::optional<L4Port> next_in_block(Pool& pool, uint64_t candidates) const noexcept;
    [[nodiscard]] bool look_anew(Pool& pool, const PortRules& rules) noexcept;

    [[nodiscard]] Map& map_at(uint32_t map) const noexcept;
    [[nodiscard]] uint64_t* full_of(const Pool& pool) const noexcept;
    [[nodiscard]] uint64_t* taken_of(const Pool& pool) const noexcept;
    void give_map(uint32_t number) noexcept;
    void withdraw_map(Pool& pool) noexcept;
    [[nodiscard]] uint32_t turn_of(const Pool& pool, L4Port port) const noexcept;
    void mark(Pool& pool, L4Port port) noexcept;
    void unmark(Pool& pool, L4Port port) noexcept;
    void line_up(uint32_t map) noexcept;
    void leave_line(uint32_t map) noexcept;
    [[nodiscard]] uint64_t random() noexcept;

    PortShare share_;
    BlockOrder order_;
    KeyedMix mix_;
    std::span<TagSet> sets_;
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
    uint32_t pools_live_ = 0;
    uint64_t draws_ = 0;
};

}  // namespace penstock::nat
