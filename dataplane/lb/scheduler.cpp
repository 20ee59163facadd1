// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/scheduler.hpp"

#include "dataplane/base/bytes.hpp"

namespace penstock::lb {
namespace {

// Public and fixed, unlike all other hash keys of the product: every worker, gateway and restart must send a
// 5-tuple to the same backend (SCHED-004). The known cost: a client that knows the backends can choose source
// ports that all select one backend. A pseudo-random function would not prevent that, so the fast hash is
// used. A change of key or hash moves nearly every client.
constexpr KeyedMix kMaglevFlowMix(HashKey{0x70656e73746f636bULL,
                                          0x6d61676c65766d68ULL});  // "penstock", "maglevmh"
// One key for client and frontend addresses: no set is looked up by both.
constexpr KeyedMix kAddressMix(HashKey{0x70656e73746f636bULL,
                                       0x616464726d697873ULL});  // "penstock", "addrmixs"

uint64_t hash_of(const IpAddr& address) noexcept {
    return kAddressMix.of(load<uint64_t>(address.bytes().data()), load<uint64_t>(address.bytes().data() + 8));
}

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one word of state, so that another thread can peek with one
// load.
constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15ULL;
constexpr uint64_t splitmix_output(uint64_t state) noexcept {
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    return state ^ (state >> 31);
}

// Maps 64 random bits to a number below `n` by multiplication (Lemire 2019, without the rejection). The
// largest set has 2^20 backends, so no share deviates by more than one part in 2^44.
uint32_t scale(uint64_t random, uint32_t n) noexcept {
    return static_cast<uint32_t>((static_cast<unsigned __int128>(random) * n) >> 64);
}

// The load of a backend: flows / weight.
struct Load {
    uint64_t flows;
    uint32_t weight;
    // Cannot overflow: flows of all workers take fewer than 40 bits, weights 16.
    [[nodiscard]] bool less_than(const Load& other) const noexcept {
        return flows * other.weight < other.flows * weight;
    }
};

// The backend with the least load: for lc without weights, for wlc with weights, for sed and nq with the new
// flow included. No load is below 0, so the first backend without open flows ends the search, except for sed,
// where a heavier one may be better.
uint32_t least_loaded(const BackendSet& set, const SchedulerState& state, SchedulerKind kind) noexcept {
    const uint64_t new_flow =
        kind == SchedulerKind::ShortestExpectedDelay || kind == SchedulerKind::NeverQueue ? 1 : 0;
    const bool takes_first_idle = kind != SchedulerKind::ShortestExpectedDelay;
    uint32_t least = 0;
    Load least_load{0, 1};
    for (uint32_t i = 0; i < set.usable.size(); ++i) {
        const Backend& backend = set.usable[i];
        const uint64_t open = state.open_flows(backend.id);
        if (takes_first_idle && open == 0) {
            return i;
        }
        const Load load{open + new_flow, kind == SchedulerKind::LeastConnection ? 1u : backend.weight};
        if (i == 0 || load.less_than(least_load)) {
            least = i;
            least_load = load;
        }
    }
    return least;
}

uint32_t lesser_of_two(const BackendSet& set, const SchedulerState& state, uint64_t random) noexcept {
    const auto n = static_cast<uint32_t>(set.usable.size());
    if (n == 1) {
        return 0;
    }
    const auto first = static_cast<uint32_t>((random >> 32) * n >> 32);
    const auto among_others = static_cast<uint32_t>((random & ~uint32_t{0}) * (n - 1) >> 32);
    const uint32_t second = among_others + (among_others >= first ? 1 : 0);
    const auto load_of = [&](uint32_t i) {
        return Load{state.open_flows(set.usable[i].id) + 1, set.usable[i].weight};
    };
    return load_of(second).less_than(load_of(first)) ? second : first;
}

}  // namespace

SchedulerState::SchedulerState(std::span<uint32_t> cursors, uint64_t seed, BackendRows rows) noexcept
    : cursors_(cursors), rows_(rows), random_state_(seed) {
    PENSTOCK_CHECK(cursors.size() >= kCursors);
    for (uint32_t& cursor : cursors_.first(kCursors)) {
        cursor = static_cast<uint32_t>(draw() >> 32);
    }
}

uint64_t SchedulerState::peek_draw() const noexcept {
    // atomic_ref does not accept const objects before C++26; this only loads.
    const uint64_t state =
        std::atomic_ref(const_cast<uint64_t&>(random_state_)).load(std::memory_order_relaxed);
    return splitmix_output(state + kSplitMixStep);
}

uint64_t SchedulerState::draw() noexcept {
    const std::atomic_ref state(random_state_);
    const uint64_t next = state.load(std::memory_order_relaxed) + kSplitMixStep;
    state.store(next, std::memory_order_relaxed);
    return splitmix_output(next);
}

uint32_t peek(const Service& service, const BackendSet& set, const packet::FlowKey& forward,
              const SchedulerState& state) noexcept {
    PENSTOCK_ASSERT(!set.usable.empty());
    const auto n = static_cast<uint32_t>(set.usable.size());
    const auto place = [&](uint32_t turn) {
        return detail::rotation_index(state.cursor(service.id, detail::index_of(service, set)), turn);
    };
    switch (service.scheduler) {
        case SchedulerKind::RoundRobin:
            break;
        case SchedulerKind::WeightedRoundRobin:
            return set.order.at(place(set.order.length()));
        case SchedulerKind::LeastConnection:
        case SchedulerKind::WeightedLeastConnection:
        case SchedulerKind::ShortestExpectedDelay:
        case SchedulerKind::NeverQueue:
            return least_loaded(set, state, service.scheduler);
        case SchedulerKind::TwoChoices:
            return lesser_of_two(set, state, state.peek_draw());
        case SchedulerKind::Random:
            return scale(state.peek_draw(), n);
        case SchedulerKind::SourceHash:
            return set.ring.pick(hash_of(forward.source));
        case SchedulerKind::DestinationHash:
            return set.ring.pick(hash_of(forward.destination));
        case SchedulerKind::Maglev:
            return set.ring.pick(service.affinity_timeout_s == 0 ? packet::hash_of(forward, kMaglevFlowMix)
                                                                 : hash_of(forward.source));
    }
    return place(n);
}

uint32_t detail::pick_without_turn(const Service& service, const BackendSet& set,
                                   const packet::FlowKey& forward, SchedulerState& state) noexcept {
    const uint32_t chosen = peek(service, set, forward, state);
    if (service.scheduler == SchedulerKind::WeightedRoundRobin) {
        const size_t index = index_of(service, set);
        state.set_cursor(service.id, index,
                         rotation_index(state.cursor(service.id, index), set.order.length()) + 1);
    } else if (service.scheduler == SchedulerKind::Random || service.scheduler == SchedulerKind::TwoChoices) {
        state.draw();
    }
    return chosen;
}

}  // namespace penstock::lb
