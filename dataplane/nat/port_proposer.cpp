#include "dataplane/nat/port_proposer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/match8.hpp"

namespace penstock::nat {
namespace {

constexpr uint32_t kConnectionsMax = (1U << 28) + 1;  // one more than a connection table can hold (pipeline/context.hpp)

// A worker that holds 10 million connections has more pools than there can be endpoints (limits::kBackendsMax), and the one line of each
// costs a connection 8 bytes. The least is for small tables, whose few connections may all go to different endpoints.
constexpr uint32_t kConnectionsPerPool = 8;
constexpr uint32_t kPoolsMin = 4'096;
static_assert(10'000'000 / kConnectionsPerPool > limits::kBackendsMax);

constexpr uint32_t kPoolsPerSet = 16;

// Least live ports of a pool that keeps a map, however few words it has: fewer are found as soon without one, and the map's head is paid
// for by them too.
constexpr uint32_t kMapFromMin = 16;

// Maps beyond those that the live ports can claim, for pools with fewer that met many taken ports in a row. With one a pool always gets
// it; the others keep pools from taking it from each other.
constexpr uint32_t kSpareMaps = 8;

constexpr uint64_t bit(uint32_t n) noexcept {
    return 1ULL << (n % 64);
}

constexpr void add_saturating(uint16_t& count, uint32_t more) noexcept {
    count = static_cast<uint16_t>(std::min(count + more, 0xffffU));
}

}  // namespace

struct alignas(kCacheLine) PortProposer::TagSet {
    uint32_t tags[kPoolsPerSet];  // 0: never used
};

struct alignas(kCacheLine) PortProposer::Pool {
    PoolKey key;
    bool recent;        // opened, or lost its last live port, since pools of its set were last replaced in turn
    uint8_t place;      // the next one in the cursor's block, by PortOrder; 64: behind the last
    uint16_t turn;      // the cursor's block, by its place in BlockOrder
    uint64_t hash;      // of the key; draws both orders
    uint32_t live;      // bound ports
    uint32_t map;       // or kNone
    uint16_t marked;    // ports that the map shows as taken; port 0 never is, so all fit
    uint16_t refusals;  // since a port was last bound or none was found
    uint16_t passed;    // blocks since then
    uint16_t block;     // order_.block_at(hash, turn)
};

// How many of each there are, in the order in which they lie in the memory.
struct PortProposer::Layout {
    Layout(uint32_t connections, uint32_t blocks) noexcept
        : sets((std::max(connections / kConnectionsPerPool, kPoolsMin) + kPoolsPerSet - 1) / kPoolsPerSet),
          pools(sets * kPoolsPerSet + 1),
          map_from(std::max(blocks, kMapFromMin)),
          maps(connections / map_from + kSpareMaps),
          full_words((blocks + 63) / 64),
          map_stride(sizeof(Map) + (full_words + blocks) * sizeof(uint64_t)) {}
    [[nodiscard]] size_t bytes() const noexcept { return sets * sizeof(TagSet) + pools * sizeof(Pool) + maps * map_stride; }
    size_t sets, pools;
    uint32_t map_from;
    size_t maps, full_words, map_stride;
};

size_t PortProposer::memory_needed(uint32_t connections, PortRange range, uint32_t workers) noexcept {
    static_assert(sizeof(Pool) == kCacheLine && sizeof(TagSet) == kCacheLine, "a pool is found in two lines");
    if (connections == 0 || connections > kConnectionsMax) {
        return 0;
    }
    size_t most = 0;
    for (uint32_t worker = 0; worker < workers; ++worker) {
        most = std::max(most, Layout(connections, PortShare(range, {static_cast<uint8_t>(worker)}, workers).blocks()).bytes());
    }
    return most;
}

Result<PortProposer> PortProposer::create(std::span<std::byte> memory, uint32_t connections, PortRange range, WorkerId self,
                                          uint32_t workers, const HashKey& secret) {
    if (workers == 0 || workers > limits::kWorkersMax || self.value >= workers) {
        return fail(Errc::InvalidArgument,
                    "SNAT ports: there is no worker " + std::to_string(self.value) + " of " + std::to_string(workers));
    }
    const size_t needed = memory_needed(connections, range, workers);
    if (needed == 0) {
        return fail(Errc::InvalidArgument,
                    "SNAT ports: " + std::to_string(connections) + " connections is not between 1 and " + std::to_string(kConnectionsMax));
    }
    if (memory.size() < needed || reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return fail(Errc::InvalidArgument, "SNAT ports: " + std::to_string(connections) + " connections need " + std::to_string(needed) +
                                               " bytes from the start of a cache line");
    }
    const PortShare share(range, self, workers);
    const Layout layout(connections, share.blocks());
    // Also touches every page of it, so that no worker faults later.
    std::memset(memory.data(), 0, layout.bytes());
    PortProposer proposer(share, secret);
    proposer.sets_ = {reinterpret_cast<TagSet*>(memory.data()), layout.sets};
    proposer.pools_ = {reinterpret_cast<Pool*>(memory.data() + layout.sets * sizeof(TagSet)), layout.pools};
    proposer.maps_ = memory.data() + layout.sets * sizeof(TagSet) + layout.pools * sizeof(Pool);
    proposer.map_stride_ = layout.map_stride;
    proposer.full_words_ = static_cast<uint32_t>(layout.full_words);
    proposer.map_from_ = layout.map_from;
    proposer.maps_count_ = static_cast<uint32_t>(layout.maps);
    proposer.connections_ = connections;
    for (Pool& pool : proposer.pools_) {
        pool.map = kNone;
    }
    proposer.at(kShared).hash = proposer.random();
    return proposer;
}

uint64_t PortProposer::hash(const PoolKey& key) const noexcept {
    const auto snat = load<std::array<uint64_t, 2>>(&key.snat);
    const auto endpoint = load<std::array<uint64_t, 2>>(&key.endpoint);
    return mix_.of(snat[0], snat[1], endpoint[0], endpoint[1], uint64_t{key.endpoint_port} << 8 | static_cast<uint8_t>(key.protocol));
}

namespace {
// The set comes of the high half, the tag of the low one.
uint32_t tag_of(uint64_t hash) noexcept {
    return std::max(static_cast<uint32_t>(hash), 1U);
}
}  // namespace

PortProposer::TagSet& PortProposer::set_of(uint64_t hash) const noexcept {
    return sets_[(hash >> 32) * sets_.size() >> 32];
}

PortProposer::Pool& PortProposer::at(PoolNumber number) const noexcept {
    return number == kShared ? pools_.back() : pools_[number.value];
}

void PortProposer::prefetch(uint64_t hash) const noexcept {
    prefetch_read(&set_of(hash));
}

void PortProposer::prefetch_pool(uint64_t hash) const noexcept {
    const TagSet& set = set_of(hash);
    const uint32_t found = match8(set.tags, tag_of(hash)) | match8(set.tags + 8, tag_of(hash)) << 8;
    if (found != 0) {
        prefetch_read(&pools_[static_cast<size_t>(&set - sets_.data()) * kPoolsPerSet + static_cast<size_t>(std::countr_zero(found))]);
    }
}

void PortProposer::prefetch(PoolNumber number) const noexcept {
    prefetch_read(&at(number));
}

PoolNumber PortProposer::open(const PoolKey& key, uint64_t hash) noexcept {
    TagSet& set = set_of(hash);
    const uint32_t first = static_cast<uint32_t>(&set - sets_.data()) * kPoolsPerSet;
    const uint32_t tag = tag_of(hash);
    for (uint32_t found = match8(set.tags, tag) | match8(set.tags + 8, tag) << 8; found != 0; found &= found - 1) {
        const uint32_t number = first + static_cast<uint32_t>(std::countr_zero(found));
        if (pools_[number].key == key) {
            return {number};
        }
    }
    const uint32_t never_used = match8(set.tags, 0) | match8(set.tags + 8, 0) << 8;
    const uint32_t number = never_used != 0 ? first + static_cast<uint32_t>(std::countr_zero(never_used)) : pool_to_replace(first);
    if (number == kNone) {
        return kShared;
    }
    Pool& pool = pools_[number];
    if (pool.map != kNone) {
        withdraw_map(pool);
    }
    pool = {.key = key, .recent = true, .hash = hash, .map = kNone};
    if (share_.blocks() > 0) {
        start_at_random(pool);
    }
    set.tags[number - first] = tag;
    return {number};
}

// A pool of a set without live ports, in turn (clock): those that were opened or lost their last port since the turn began are spared until
// all others have given way. kNone: all have live ports.
uint32_t PortProposer::pool_to_replace(uint32_t first) noexcept {
    uint32_t idle = kNone;
    for (uint32_t number = first; number < first + kPoolsPerSet; ++number) {
        if (pools_[number].live == 0) {
            if (!pools_[number].recent) {
                return number;
            }
            idle = idle == kNone ? number : idle;
        }
    }
    for (uint32_t number = first; number < first + kPoolsPerSet; ++number) {
        pools_[number].recent = false;
    }
    return idle;
}

void PortProposer::enter(Pool& pool, uint32_t turn, uint32_t place) const noexcept {
    pool.turn = static_cast<uint16_t>(turn);
    pool.place = static_cast<uint8_t>(place);
    pool.block = static_cast<uint16_t>(order_.block_at(pool.hash, turn));
}

void PortProposer::start_at_random(Pool& pool) noexcept {
    const uint64_t drawn = random();
    enter(pool, static_cast<uint32_t>((drawn >> 32) * share_.blocks() >> 32), static_cast<uint32_t>(drawn) % kPortsPerBlock);
}

// Forward past ports that were taken in a row: anywhere in the next 64 blocks, then 128, up to half a round, so that a freed port still
// rests. With fewer live ports than blocks the first lands on a taken one once in four times at most, the next once in eight, and so on.
void PortProposer::jump(Pool& pool) noexcept {
    const uint32_t window = std::max(1U, std::min(share_.blocks() / 2, 64U << std::min(pool.refusals - kRefusalsInRow, 4U)));
    const uint64_t drawn = random();
    const uint32_t blocks = 1 + static_cast<uint32_t>((drawn >> 32) * window >> 32);
    add_saturating(pool.passed, blocks);
    enter(pool, (pool.turn + blocks) % share_.blocks(), static_cast<uint32_t>(drawn) % kPortsPerBlock);
}

// To the next block that is not known to be full. False: all are.
bool PortProposer::move_on(Pool& pool) const noexcept {
    uint32_t next = pool.turn + 1U;
    if (pool.map != kNone) {
        const uint64_t* full = full_of(pool);
        // The first open block at or behind `from`, or one behind the last.
        const auto first_open = [&](uint32_t from) {
            uint64_t open = from < share_.blocks() ? ~full[from / 64] & (~0ULL << (from % 64)) : 0;
            uint32_t word = from / 64;
            while (open == 0 && ++word < full_words_) {
                open = ~full[word];
            }
            return std::min(share_.blocks(), open == 0 ? share_.blocks() : word * 64 + static_cast<uint32_t>(std::countr_zero(open)));
        };
        next = first_open(next);
        if (next == share_.blocks() && first_open(0) == share_.blocks()) {
            return false;
        }
        if (next == share_.blocks()) {
            next += first_open(0);
        }
    }
    add_saturating(pool.passed, next - pool.turn);
    enter(pool, next % share_.blocks(), 0);
    return true;
}

// The candidate that comes next in the order of the cursor's block; the cursor ends behind it, or behind the block.
std::optional<L4Port> PortProposer::next_in_block(Pool& pool, uint64_t candidates) const noexcept {
    const PortOrder order(mix_.of(pool.hash, pool.turn));
    while (pool.place < kPortsPerBlock) {
        const uint32_t port = order.port_at(pool.place++);
        if ((candidates & bit(port)) != 0) {
            return static_cast<L4Port>(share_.block_at(pool.block) * kPortsPerBlock + port);
        }
    }
    return std::nullopt;
}

std::optional<L4Port> PortProposer::propose(PoolNumber number, const PortRules& rules) noexcept {
    Pool& pool = at(number);
    if (share_.blocks() == 0) {
        return std::nullopt;
    }
    if (number == kShared) {
        if (pool.refusals >= kSharedProposals || (pool.refusals > 0 && pool.passed > share_.blocks())) {
            pool.refusals = pool.passed = 0;
            return std::nullopt;
        }
        if (pool.refusals == 0) {
            pool.passed = 0;
            start_at_random(pool);
        }
    } else if (pool.refusals >= kRefusalsInRow) {
        jump(pool);
    }
    uint64_t* full = nullptr;
    const uint64_t* taken = nullptr;
    if (pool.map != kNone) {
        full = full_of(pool);
        taken = taken_of(pool);
        if (Map& map = map_at(pool.map); map.version != rules.version) {
            std::memset(full, 0, full_words_ * sizeof(uint64_t));
            map.version = rules.version;
        }
    }
    // Every block once, and the first again for the places that lie before the cursor.
    for (uint32_t visits = 0; visits <= share_.blocks(); ++visits) {
        const uint64_t candidates = rules.usable(share_.block_at(pool.block)) & (taken != nullptr ? ~taken[pool.turn] : ~0ULL);
        if (candidates == 0 && full != nullptr) {
            full[pool.turn / 64] |= bit(pool.turn);
        }
        if (candidates != 0) {
            if (const std::optional<L4Port> port = next_in_block(pool, candidates)) {
                return port;
            }
        }
        if (!move_on(pool)) {
            break;
        }
    }
    if (pool.refusals == 0 && look_anew(pool, rules)) {
        return propose(number, rules);
    }
    pool.refusals = pool.passed = 0;
    return std::nullopt;
}

// More ports are marked than the pool has live ones: some belonged to others, and may be free by now. Forgets the marks of the next block
// that may have such a port, whose ports are then proposed again. One block each time, so that a pool that is exhausted in earnest costs
// a new connection at most 64 refusals.
bool PortProposer::look_anew(Pool& pool, const PortRules& rules) noexcept {
    if (pool.map == kNone || pool.marked <= pool.live) {
        return false;
    }
    for (uint32_t step = 1; step <= share_.blocks(); ++step) {
        const uint32_t turn = (pool.turn + step) % share_.blocks();
        uint64_t& taken = taken_of(pool)[turn];
        if (taken != 0 && (taken & rules.usable(share_.block_at(order_.block_at(pool.hash, turn)))) != 0) {
            pool.marked = static_cast<uint16_t>(pool.marked - std::popcount(taken));
            taken = 0;
            full_of(pool)[turn / 64] &= ~bit(turn);
            enter(pool, turn, 0);
            return true;
        }
    }
    return false;
}

void PortProposer::bind(PoolNumber number, L4Port port) noexcept {
    PENSTOCK_ASSERT(in_use_ < connections_);
    Pool& pool = at(number);
    pool.refusals = pool.passed = 0;
    ++in_use_;
    ++pool.live;
    if (number == kShared) {
        return;
    }
    pools_live_ += pool.live == 1 ? 1 : 0;
    if (pool.map == kNone) {
        if (pool.live < map_from_) {
            return;
        }
        give_map(number.value);
    } else if (pool.live == map_from_) {
        leave_line(pool.map);
    }
    mark(pool, port);
}

void PortProposer::refuse(PoolNumber number, L4Port port) noexcept {
    Pool& pool = at(number);
    add_saturating(pool.refusals, 1);
    if (number == kShared) {
        return;
    }
    // One that has been round meets its own refusals again: few ports are usable, and all may be taken.
    if (pool.map == kNone && (pool.refusals >= 2 * kRefusalsInRow || pool.passed >= share_.blocks())) {
        give_map(number.value);
    }
    if (pool.map != kNone) {
        mark(pool, port);
    }
}

void PortProposer::give_back(PoolNumber number, L4Port port) noexcept {
    Pool& pool = at(number);
    PENSTOCK_ASSERT(in_use_ > 0 && pool.live > 0);
    --in_use_;
    --pool.live;
    if (number == kShared) {
        return;
    }
    if (pool.map != kNone) {
        unmark(pool, port);
        if (pool.live + 1 == map_from_) {
            line_up(pool.map);
        }
    }
    if (pool.live == 0) {
        --pools_live_;
        pool.recent = true;
        if (pool.map != kNone) {
            withdraw_map(pool);
        }
    }
}

PortProposer::Usage PortProposer::usage() const noexcept {
    return {pools_live_, maps_used_, at(kShared).live};
}

PortProposer::Map& PortProposer::map_at(uint32_t map) const noexcept {
    return *reinterpret_cast<Map*>(maps_ + map * map_stride_);
}

uint64_t* PortProposer::full_of(const Pool& pool) const noexcept {
    return reinterpret_cast<uint64_t*>(&map_at(pool.map) + 1);
}

uint64_t* PortProposer::taken_of(const Pool& pool) const noexcept {
    return full_of(pool) + full_words_;
}

// There always is one to give: pools whose maps cannot be withdrawn have map_from_ live ports each, and connections / map_from_ of those
// are fewer than all maps.
void PortProposer::give_map(uint32_t number) noexcept {
    if (maps_free_ == kNone && maps_fresh_ == maps_count_) {
        PENSTOCK_ASSERT(line_oldest_ != kNone);
        withdraw_map(pools_[map_at(line_oldest_).pool]);
    }
    uint32_t given = maps_free_;
    if (given == kNone) {
        given = maps_fresh_++;
    } else {
        maps_free_ = map_at(given).older;
    }
    ++maps_used_;
    Map& map = map_at(given);
    std::memset(&map, 0, map_stride_);
    map.pool = number;
    Pool& pool = pools_[number];
    pool.map = given;
    pool.marked = 0;
    if (pool.live < map_from_) {
        line_up(given);
    }
}

void PortProposer::withdraw_map(Pool& pool) noexcept {
    if (pool.live < map_from_) {
        leave_line(pool.map);
    }
    map_at(pool.map).older = maps_free_;
    maps_free_ = pool.map;
    --maps_used_;
    pool.map = kNone;
    pool.marked = 0;
}

// The place of the port's block in the pool's order. A port that was just proposed lies where the cursor is.
uint32_t PortProposer::turn_of(const Pool& pool, L4Port port) const noexcept {
    const uint32_t block = share_.index_of(port / kPortsPerBlock);
    return block == pool.block ? pool.turn : order_.place_of(pool.hash, block);
}

void PortProposer::mark(Pool& pool, L4Port port) noexcept {
    const uint32_t turn = turn_of(pool, port);
    uint64_t& taken = taken_of(pool)[turn];
    pool.marked = static_cast<uint16_t>(pool.marked + ((taken & bit(port)) == 0 ? 1 : 0));
    taken |= bit(port);
}

void PortProposer::unmark(Pool& pool, L4Port port) noexcept {
    const uint32_t turn = turn_of(pool, port);
    uint64_t& taken = taken_of(pool)[turn];
    pool.marked = static_cast<uint16_t>(pool.marked - ((taken & bit(port)) != 0 ? 1 : 0));
    taken &= ~bit(port);
    full_of(pool)[turn / 64] &= ~bit(turn);
}

void PortProposer::line_up(uint32_t number) noexcept {
    Map& map = map_at(number);
    map.older = line_newest_;
    map.newer = kNone;
    (line_newest_ == kNone ? line_oldest_ : map_at(line_newest_).newer) = number;
    line_newest_ = number;
}

void PortProposer::leave_line(uint32_t number) noexcept {
    const Map& map = map_at(number);
    (map.older == kNone ? line_oldest_ : map_at(map.older).newer) = map.newer;
    (map.newer == kNone ? line_newest_ : map_at(map.newer).older) = map.older;
}

uint64_t PortProposer::random() noexcept {
    return mix_.of(++draws_, ~0ULL);
}

}  // namespace penstock::nat
