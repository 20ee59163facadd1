// SPDX-License-Identifier: Apache-2.0
// A full table of connections, replaced at random until its layout is that of a long-running table. Fresh
// tables are too fast, because over time more keys are in their second bucket (docs/adr/0010).
//
// A Store provides: Key; static key(number, direction); insert(slot, number); erase(slot, number);
// lookup<with state>(keys) -> hits. A Store that can begin a burst before it ends the previous one has
// expect(keys) and lookup_expected<with state>(keys).
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "perf/harness/cycles.hpp"
#include "perf/harness/order.hpp"
#include "perf/harness/windows.hpp"
#include "perf/micro/connections.hpp"

namespace penstock::perf {

template <typename Store>
class Population {
 public:
    static constexpr uint32_t kBurst = RteYardstick::kBurst;
    // Timed as one span, because the bursts of a busy worker follow one another directly; the fences of a
    // span per burst would drain the processor's pipeline after each burst.
    static constexpr uint32_t kBurstsTogether = 16;

    explicit Population(uint32_t connections) : store_(connections), number_in_slot_(connections) {
        for (uint32_t slot = 0; slot < connections; ++slot) {
            number_in_slot_[slot] = next_number_++;
            must_insert(slot);
        }
    }

    // Replaces `count` connections, chosen at random.
    void churn(uint64_t count) {
        for (; count > 0; --count) {
            const uint32_t slot = prng_.below(connections());
            store_.erase(slot, number_in_slot_[slot]);
            number_in_slot_[slot] = next_number_++;
            must_insert(slot);
        }
    }

    // Bursts of lookups of keys that are in the table, both directions in equal shares; every one must be
    // found.
    template <bool kWithState>
    BurstClock look_up(Order& order, uint64_t budget_cycles) {
        return run<kWithState, false>(budget_cycles, kBurst, [&] { return number_in_slot_[order.next()]; });
    }
    // The same, each burst begun before the previous one has ended.
    template <bool kWithState>
    BurstClock look_up_ahead(Order& order, uint64_t budget_cycles) {
        return run<kWithState, true>(budget_cycles, kBurst, [&] { return number_in_slot_[order.next()]; });
    }
    // Lookups of absent keys; none may be found.
    BurstClock miss(uint64_t budget_cycles) {
        return run<false, false>(budget_cycles, 0,
                                 [&] { return kStrangers + static_cast<uint32_t>(prng_.next() >> 34); });
    }

    [[nodiscard]] uint32_t connections() const noexcept {
        return static_cast<uint32_t>(number_in_slot_.size());
    }
    [[nodiscard]] Store& store() noexcept { return store_; }

 private:
    void must_insert(uint32_t slot) {
        if (!store_.insert(slot, number_in_slot_[slot])) {
            std::fprintf(stderr, "a table for %u connections refused one before it was full\n",
                         connections());
            std::exit(1);
        }
    }

    template <bool kWithState, bool kAhead, typename F>
    BurstClock run(uint64_t budget_cycles, uint32_t hits_expected, F&& next_number) {
        BurstClock clock;
        std::array<typename Store::Key, kBurst * kBurstsTogether> keys;
        while (clock.cycles() < budget_cycles) {
            for (typename Store::Key& key : keys) {
                const uint64_t direction = prng_.next() >> 63;
                key = Store::key(next_number(), static_cast<conn::Direction>(direction));
            }
            uint32_t hits = 0;
            const uint64_t start = cycles_begin();
            if constexpr (kAhead) {
                store_.expect(std::span(keys).first(kBurst));
            }
            for (uint32_t first = 0; first < keys.size(); first += kBurst) {
                const auto burst = std::span(keys).subspan(first, kBurst);
                if constexpr (kAhead) {
                    const uint32_t next = first + kBurst;
                    if (next < keys.size()) {
                        store_.expect(std::span(keys).subspan(next, kBurst));
                    }
                    hits += store_.template lookup_expected<kWithState>(burst);
                } else {
                    hits += store_.template lookup<kWithState>(burst);
                }
            }
            const uint64_t cycles = cycles_end() - start;
            if (hits != hits_expected * kBurstsTogether) {
                std::fprintf(stderr, "%u of %zu keys were found, not %u\n", hits, keys.size(),
                             hits_expected * kBurstsTogether);
                std::exit(1);
            }
            clock.add(cycles, static_cast<uint32_t>(keys.size()));
        }
        return clock;
    }

    Store store_;
    std::vector<uint32_t> number_in_slot_;
    uint32_t next_number_ = 0;
    Prng prng_{42};
};

}  // namespace penstock::perf
