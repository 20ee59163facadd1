#include "dataplane/lb/scheduler.hpp"

namespace penstock::lb {
namespace {

// Public and fixed, unlike every other hash key of the product: each worker, each gateway and each restart must send a 5-tuple to the same
// backend (SCHED-004). The price is known: who knows the backends can choose source ports that all meet one of them. That is also why the
// quick hash serves as well as a pseudo-random one. Changing either moves nearly every client.
constexpr KeyedMix kMaglevFlowMix(HashKey{0x70656e73746f636bULL, 0x6d61676c65766d68ULL});  // "penstock", "maglevmh"

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one word of state, so that a peek from another thread is one load.
constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15ULL;
constexpr uint64_t splitmix_output(uint64_t state) noexcept {
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    return state ^ (state >> 31);
}

// A number below `n` from 64 random bits by multiplication (Lemire 2019, without the rejection): the largest set is 2^20 backends, so no
// share is off by more than one part in 2^44.
uint32_t scale(uint64_t random, uint32_t n) noexcept {
    return static_cast<uint32_t>((static_cast<unsigned __int128>(random) * n) >> 64);
}

}  // namespace

SchedulerState::SchedulerState(std::span<uint32_t> cursors, uint64_t seed) noexcept : cursors_(cursors), random_state_(seed) {
    PENSTOCK_CHECK(cursors.size() >= kCursors);
    for (uint32_t& cursor : cursors_.first(kCursors)) {
        cursor = static_cast<uint32_t>(draw() >> 32);
    }
}

uint64_t SchedulerState::peek_draw() const noexcept {
    // atomic_ref takes no const object before C++26; this only loads.
    const uint64_t state = std::atomic_ref(const_cast<uint64_t&>(random_state_)).load(std::memory_order_relaxed);
    return splitmix_output(state + kSplitMixStep);
}

uint64_t SchedulerState::draw() noexcept {
    const std::atomic_ref state(random_state_);
    const uint64_t next = state.load(std::memory_order_relaxed) + kSplitMixStep;
    state.store(next, std::memory_order_relaxed);
    return splitmix_output(next);
}

uint32_t peek(const Service& service, const BackendSet& set, const packet::FlowKey& forward, const SchedulerState& state) noexcept {
    PENSTOCK_ASSERT(!set.usable.empty());
    const auto n = static_cast<uint32_t>(set.usable.size());
    switch (service.scheduler) {
        case SchedulerKind::Random:
            return scale(state.peek_draw(), n);
        case SchedulerKind::Maglev:
            return set.ring.pick(packet::hash_of(forward, kMaglevFlowMix));
        case SchedulerKind::RoundRobin:
            break;
    }
    return detail::rotation_index(state.cursor(service.id, detail::index_of(service, set)), n);
}

uint32_t detail::pick_without_turn(const Service& service, const BackendSet& set, const packet::FlowKey& forward,
                                   SchedulerState& state) noexcept {
    const uint32_t chosen = peek(service, set, forward, state);
    if (service.scheduler == SchedulerKind::Random) {
        state.draw();
    }
    return chosen;
}

}  // namespace penstock::lb
