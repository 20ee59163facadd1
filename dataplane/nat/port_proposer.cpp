// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/port_proposer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace penstock::nat {
namespace {

// Number of full blocks, in addition to 1/64 of the pool's blocks, in which ports may become free between two
// walks of a pool. Beyond it, walks start at the cursor again.
constexpr uint32_t kOpenedByChance = 8;

constexpr uint64_t bit(uint32_t n) noexcept {
    return 1ULL << (n % 64);
}

}  // namespace

PoolNumber PortProposer::find_or_open(const PoolKey& key, uint64_t hash) noexcept {
    PoolTags& set = set_of(hash);
    const uint32_t first = first_of(set);
    const uint32_t tag = tag_of(hash);
    for (uint32_t found = match16(set.tags, tag); found != 0; found &= found - 1) {
        const uint32_t number = first + static_cast<uint32_t>(std::countr_zero(found));
        if (pools_[number].is_of(key)) {
            return {number};
        }
    }
    const uint32_t never_used = match16(set.tags, 0);
    const uint32_t number = never_used != 0 ? first + static_cast<uint32_t>(std::countr_zero(never_used))
                                            : pool_to_replace(first);
    if (number == kNone) {
        return kShared;
    }
    Pool& pool = pools_[number];
    if (pool.map != Pool::kNoMap) {
        withdraw_map(pool);
    }
    pool = {.snat = key.snat,
            .endpoint = key.endpoint,
            .endpoint_port = key.endpoint_port,
            .protocol = key.protocol,
            .map = Pool::kNoMap,
            .recent = true};
    if (share_.blocks() > 0) {
        start_at_random(pool);
    }
    set.tags[number - first] = tag;
    return {number};
}

// Selects a pool of a set without live ports to replace, in turn (clock algorithm). Pools that were opened or
// lost their last port since the turn began are spared until all others have been replaced. kNone: all have
// live ports.
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
    const uint64_t key = hash(pool.key());
    pool.turn = turn % kPortBlocks;
    pool.place = static_cast<uint8_t>(place);
    pool.block = order_.block_at(key, turn) % kPortBlocks;
    pool.order = static_cast<uint32_t>(mix_.of(key, turn)) % (1U << PortOrder::kKeyBits);
    pool.usable = 0;
}

void PortProposer::start_at_random(Pool& pool) noexcept {
    const uint64_t drawn = random();
    enter(pool, static_cast<uint32_t>((drawn >> 32) * share_.blocks() >> 32),
          static_cast<uint32_t>(drawn) % kPortsPerBlock);
}

// Jumps forward past consecutive taken ports, to a random position in the next 64 blocks, then 128, up to
// half a round, so that a freed port still rests. With fewer live ports than blocks, the first jump lands on
// a taken port with a probability of at most 1/4, the next of 1/8, and so on.
void PortProposer::jump(Pool& pool) noexcept {
    const uint32_t window =
        std::max(1U, std::min(share_.blocks() / 2, 64U << std::min(pool.refusals - kRefusalsInRow, 4U)));
    const uint64_t drawn = random();
    const uint32_t blocks = 1 + static_cast<uint32_t>((drawn >> 32) * window >> 32);
    pool.pass(blocks);
    enter(pool, (pool.turn + blocks) % share_.blocks(), static_cast<uint32_t>(drawn) % kPortsPerBlock);
}

// Moves to the next block that is not known to be full. False: all are full.
bool PortProposer::move_on(Pool& pool) const noexcept {
    uint32_t next = pool.turn + 1U;
    if (pool.map != Pool::kNoMap) {
        const uint64_t* full = full_of(pool);
        // The first open block at or after `from`, or one past the last.
        const auto first_open = [&](uint32_t from) {
            uint64_t open = from < share_.blocks() ? ~full[from / 64] & (~0ULL << (from % 64)) : 0;
            uint32_t word = from / 64;
            while (open == 0 && ++word < full_words_) {
                open = ~full[word];
            }
            return std::min(share_.blocks(), open == 0
                                                 ? share_.blocks()
                                                 : word * 64 + static_cast<uint32_t>(std::countr_zero(open)));
        };
        next = first_open(next);
        if (next == share_.blocks() && first_open(0) == share_.blocks()) {
            return false;
        }
        if (next == share_.blocks()) {
            next += first_open(0);
        }
    }
    pool.pass(next - pool.turn);
    enter(pool, next % share_.blocks(), 0);
    return true;
}

OwnPorts PortProposer::own_among_all(const PoolKey& key, NicPortId reply_egress) const noexcept {
    const ReplyRule* rule = rules_->of_replies(reply_egress, key.snat.family(), key.protocol);
    if (rule == nullptr) {
        return {self_, workers_};
    }
    return rule->own_ports(self_, {.source = key.endpoint,
                                   .destination = key.snat,
                                   .source_port = key.endpoint_port,
                                   .destination_port = 0,
                                   .protocol = key.protocol});
}

// propose_in_block() if the port at the next position is not available. Either it is taken, or it belongs to
// another worker, as most ports do if they are chosen by hash.
PENSTOCK_NOINLINE L4Port PortProposer::propose_later_in_block(Pool& pool,
                                                              uint32_t rules_version) const noexcept {
    if (pool.version != rules_version || pool.usable == 0) {
        return 0;
    }
    return next_in_block(pool, pool.usable & ~(pool.map == Pool::kNoMap ? 0 : taken_of(pool)[pool.block]));
}

// The next candidate in the order of the cursor's block, or 0. Leaves the cursor after it, or after the
// block.
L4Port PortProposer::next_in_block(Pool& pool, uint64_t candidates) const noexcept {
    const PortOrder order(pool.order);
    while (pool.place < kPortsPerBlock) {
        const uint32_t port = order.port_at(pool.place++);
        if ((candidates & bit(port)) != 0) {
            return static_cast<L4Port>(share_.block_at(pool.block) * kPortsPerBlock + port);
        }
    }
    return 0;
}

std::optional<L4Port> PortProposer::propose_next(PoolNumber number, const PortRules& rules) noexcept {
    Pool& pool = at(number);
    if (share_.blocks() == 0) {
        return std::nullopt;
    }
    if (number == kShared) {
        if (pool.refusals >= kSharedProposals ||
            (pool.refusals > 0 && pool.passed_blocks > share_.blocks())) {
            pool.start_counting();
            return std::nullopt;
        }
        if (pool.refusals == 0) {
            pool.passed_blocks = 0;
            start_at_random(pool);
        }
    } else if (pool.refusals >= kRefusalsInRow) {
        jump(pool);
    }
    const bool has_map = pool.map != Pool::kNoMap;
    if (has_map && map_at(pool.map).version != rules.version) {
        std::memset(full_of(pool), 0, 2 * full_words_ * sizeof(uint64_t));
        map_at(pool.map).version = rules.version;
    }
    // Visits every block once, and the first again for the positions before the cursor.
    for (uint32_t visits = 0; visits <= share_.blocks(); ++visits) {
        const uint64_t usable = rules.usable(share_.block_at(pool.block));
        const uint64_t candidates = usable & ~(has_map ? taken_of(pool)[pool.block] : 0);
        if (candidates == 0 && has_map) {
            note_full(pool);
        }
        if (candidates != 0) {
            if (const L4Port port = next_in_block(pool, candidates); port != 0) {
                if (number != kShared) {  // its next connection has other rules
                    pool.usable = usable;
                    pool.version = rules.version;
                }
                return port;
            }
        }
        if (!move_on(pool)) {
            break;
        }
    }
    if (pool.refusals == 0 && look_anew(pool, rules)) {
        return propose_next(number, rules);
    }
    pool.start_counting();
    return std::nullopt;
}

// A walk has a position of its own, because the cursor leaves the order when single ports become free. It
// then moves to the next of these, past ports that were allocated longer ago. When enough blocks have had
// free ports that proposals must have continued in order, the cursor is correct again.
uint32_t PortProposer::walk(PoolNumber number, const PortRules& rules, std::span<WalkPosition> out) noexcept {
    if (share_.blocks() == 0) {
        return 0;
    }
    Pool cursor = at(number);
    if (cursor.map != Pool::kNoMap) {
        const PortMap& map = map_at(cursor.map);
        if (map.has_walked && map.opened <= kOpenedByChance + share_.blocks() / kPortsPerBlock) {
            enter(cursor, map.walk_turn, map.walk_next);
        }
    }
    uint32_t count = 0;
    // Visits every block once, and the first again for the positions before the cursor.
    for (uint32_t visits = 0; visits <= share_.blocks(); ++visits) {
        const uint64_t usable = rules.usable(share_.block_at(cursor.block));
        while (count < out.size()) {
            const L4Port port = usable == 0 ? L4Port{0} : next_in_block(cursor, usable);
            if (port == 0) {
                break;
            }
            out[count++] = {port, static_cast<uint16_t>(cursor.turn), cursor.place};
        }
        if (count == out.size()) {
            break;
        }
        enter(cursor, (cursor.turn + 1U) % share_.blocks(), 0);
    }
    go_behind(number, {0, static_cast<uint16_t>(cursor.turn), cursor.place});
    return count;
}

void PortProposer::go_behind(PoolNumber number, const WalkPosition& position) noexcept {
    Pool& pool = at(number);
    if (pool.map == Pool::kNoMap) {
        return enter(pool, position.turn, position.next);
    }
    PortMap& map = map_at(pool.map);
    map.walk_turn = position.turn % kPortBlocks;
    map.walk_next = position.next & 0x7f;
    map.has_walked = 1;
    map.opened = 0;
}

// Called if more ports are marked than the pool has live ones: some belonged to other connections and may be
// free by now. Clears the marks of the next block that may have such a port; its ports are then proposed
// again. Only one block per call, so that a truly exhausted pool costs a new connection at most 64 refusals.
bool PortProposer::look_anew(Pool& pool, const PortRules& rules) noexcept {
    if (pool.map == Pool::kNoMap || map_at(pool.map).marked <= pool.live) {
        return false;
    }
    const uint64_t key = hash(pool.key());
    for (uint32_t step = 1; step <= share_.blocks(); ++step) {
        const uint32_t turn = (pool.turn + step) % share_.blocks();
        const uint32_t block = order_.block_at(key, turn);
        uint64_t& taken = taken_of(pool)[block];
        if ((taken & rules.usable(share_.block_at(block))) != 0) {
            map_at(pool.map).marked -= static_cast<uint32_t>(std::popcount(taken));
            taken = 0;
            note_open(pool, turn, block);
            enter(pool, turn, 0);
            return true;
        }
    }
    return false;
}

// bind() for a pool that has a map or must get one now.
void PortProposer::bind_in_map(Pool& pool, L4Port port) noexcept {
    if (&pool == &at(kShared)) {
        return;
    }
    if (pool.map == Pool::kNoMap) {
        give_map(static_cast<uint32_t>(&pool - pools_.data()));
    } else if (pool.live == map_from_) {
        leave_line(pool.map);
    }
    mark(pool, port);
}

void PortProposer::refuse(PoolNumber number, L4Port port) noexcept {
    Pool& pool = at(number);
    pool.refuse();
    pool.usable = 0;  // makes propose() compute the block's ports again
    if (number == kShared) {
        return;
    }
    // After a full round a pool meets its own refusals again: few ports are usable, and all may be taken.
    if (pool.map == Pool::kNoMap &&
        (pool.refusals >= 2 * kRefusalsInRow || pool.passed_blocks >= share_.blocks())) {
        give_map(number.value);
    }
    if (pool.map != Pool::kNoMap) {
        mark(pool, port);
    }
}

void PortProposer::give_back_in_map(Pool& pool, L4Port port) noexcept {
    const uint32_t block = share_.index_of(port / kPortsPerBlock);
    uint64_t& taken = taken_of(pool)[block];
    map_at(pool.map).marked -= static_cast<uint32_t>(taken >> port % 64 & 1);
    taken &= ~bit(port);
    if ((full_by_number_of(pool)[block / 64] & bit(block)) != 0) [[unlikely]] {
        note_open(pool, order_.place_of(hash(pool.key()), block), block);
        PortMap& map = map_at(pool.map);
        map.opened = std::min<uint32_t>(map.opened + 1U, PortMap::kOpenedMax) & PortMap::kOpenedMax;
    }
    if (pool.live + 1 == map_from_) {
        line_up(pool.map);
    } else if (pool.live == 0) {
        withdraw_map(pool);
    }
}

PortProposer::Usage PortProposer::usage() const noexcept {
    const uint32_t shared_live = at(kShared).live;
    return {pools_live_ - (shared_live > 0 ? 1 : 0), maps_used_, shared_live};
}

// Marks the block of the cursor.
void PortProposer::note_full(const Pool& pool) const noexcept {
    full_of(pool)[pool.turn / 64] |= bit(pool.turn);
    full_by_number_of(pool)[pool.block / 64] |= bit(pool.block);
}

void PortProposer::note_open(const Pool& pool, uint32_t turn, uint32_t block) const noexcept {
    full_of(pool)[turn / 64] &= ~bit(turn);
    full_by_number_of(pool)[block / 64] &= ~bit(block);
}

// A map is always available. Each pool with a map that cannot be withdrawn has map_from_ live ports. There
// are at most connections / map_from_ of these pools, fewer than maps.
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
    PortMap& map = map_at(given);
    std::memset(&map, 0, map_stride_);
    map.pool = number;
    Pool& pool = pools_[number];
    pool.map = given;
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
    pool.map = Pool::kNoMap;
}

void PortProposer::mark(Pool& pool, L4Port port) noexcept {
    uint64_t& taken = taken_of(pool)[share_.index_of(port / kPortsPerBlock)];
    map_at(pool.map).marked += (taken & bit(port)) == 0 ? 1 : 0;
    taken |= bit(port);
}

void PortProposer::line_up(uint32_t number) noexcept {
    PortMap& map = map_at(number);
    map.older = line_newest_;
    map.newer = kNone;
    (line_newest_ == kNone ? line_oldest_ : map_at(line_newest_).newer) = number;
    line_newest_ = number;
}

void PortProposer::leave_line(uint32_t number) noexcept {
    const PortMap& map = map_at(number);
    (map.older == kNone ? line_oldest_ : map_at(map.older).newer) = map.newer;
    (map.newer == kNone ? line_newest_ : map_at(map.newer).older) = map.older;
}

}  // namespace penstock::nat
