// SPDX-License-Identifier: Apache-2.0
// Schedulers over random backends, compared with the simplest models: counts for wrr, a search of all
// backends for lc, wlc, sed and nq.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "dataplane/lb/scheduler.hpp"
#include "tests/support/prng.hpp"

namespace penstock::lb {
namespace scheduler_property_test {

using enum SchedulerKind;

std::vector<Backend> random_backends(test::Prng& random, uint32_t count, uint16_t weight_max) {
    std::vector<Backend> made;
    for (uint32_t i = 0; i < count; ++i) {
        made.push_back({.id = {i},
                        .address = IpAddr::v4(Be32::from_host(0x0a000000u + i)),
                        .port = 80,
                        .weight = static_cast<uint16_t>(random.between(1, weight_max))});
    }
    return made;
}

Service service_of(std::vector<Backend> backends, SchedulerKind scheduler) {
    Service service{.id = {3}, .scheduler = scheduler};
    service.sets.resize(1);
    service.sets[0].usable = std::move(backends);
    prepare(service.sets[0], scheduler);
    return service;
}

// Several workers with their rows of counters; the first one picks.
struct Workers {
    explicit Workers(uint32_t count, size_t backends, uint64_t seed = 1)
        : counters(tables(count, backends)), rows(rows_of(counters)), state(cursors, seed, rows) {}
    static std::vector<std::vector<stats::BackendCounters>> tables(uint32_t count, size_t backends) {
        std::vector<std::vector<stats::BackendCounters>> made;
        for (uint32_t w = 0; w < count; ++w) {
            made.emplace_back(backends);
        }
        return made;
    }
    static std::vector<const stats::BackendCounters*> rows_of(
        const std::vector<std::vector<stats::BackendCounters>>& counters) {
        std::vector<const stats::BackendCounters*> made;
        for (const auto& of_worker : counters) {
            made.push_back(of_worker.data());
        }
        return made;
    }
    uint32_t pick(const Service& service, const packet::FlowKey& flow = {}) {
        return lb::pick(service, service.sets[0], flow, state);
    }

    std::vector<uint32_t> cursors = std::vector<uint32_t>(SchedulerState::kCursors);
    std::vector<std::vector<stats::BackendCounters>> counters;
    std::vector<const stats::BackendCounters*> rows;
    SchedulerState state;
};

uint64_t sum_of_weights(const std::vector<Backend>& backends) {
    return std::accumulate(backends.begin(), backends.end(), uint64_t{0},
                           [](uint64_t sum, const Backend& b) { return sum + b.weight; });
}

TEST(WeightedRoundRobinProperty, EveryRunIsSharedExactly_SCHED002) {
    test::Prng random;
    for (int attempt = 0; attempt < 200; ++attempt) {
        const auto n = static_cast<uint32_t>(random.between(1, 40));
        const Service service =
            service_of(random_backends(random, n, attempt % 2 == 0 ? 5 : 200), WeightedRoundRobin);
        const std::vector<Backend>& backends = service.sets[0].usable;
        Workers worker(1, n, random.next());
        for (uint64_t lead = random.below(1'000); lead > 0; --lead) {  // any run, from any start
            (void)worker.pick(service);
        }
        const uint64_t k = random.between(1, 3);
        std::vector<uint64_t> taken(n);
        for (uint64_t i = 0; i < k * sum_of_weights(backends); ++i) {
            ++taken.at(worker.pick(service));
        }
        for (uint32_t i = 0; i < n; ++i) {
            ASSERT_EQ(taken[i], k * backends[i].weight) << "backend " << i << " of " << n << ", k " << k;
        }
    }
}

// No bursts: in any run, each backend is near its share.
TEST(WeightedRoundRobinProperty, AnyRunIsNearItsShare_SCHED002) {
    test::Prng random;
    double worst = 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
        const auto n = static_cast<uint32_t>(random.between(2, 64));
        const std::vector<Backend> backends =
            random_backends(random, n, static_cast<uint16_t>(attempt % 3 == 0 ? 1'000 : 10));
        const WeightedOrder order = WeightedOrder::build(backends);
        const uint64_t sum = order.length();
        // Number of flows minus the share, at each place of a turn. The excess or deficit of a run is a
        // difference of two of these.
        std::vector<double> ahead(n), least(n), most(n);
        for (uint32_t place = 0; place < sum; ++place) {
            ahead[order.at(place)] += 1;
            for (uint32_t i = 0; i < n; ++i) {
                ahead[i] -= backends[i].weight / double(sum_of_weights(backends));
                least[i] = std::min(least[i], ahead[i]);
                most[i] = std::max(most[i], ahead[i]);
            }
        }
        for (uint32_t i = 0; i < n; ++i) {
            worst = std::max(worst, most[i] - least[i]);
            ASSERT_LT(most[i] - least[i], 1 + std::log2(n)) << "backend " << i << " of " << n;
        }
    }
    RecordProperty("worst", std::to_string(worst));  // 3.0 in one run
}

TEST(WeightedRoundRobinProperty, TenThousandOfTheHighestWeights_SCHED002) {
    constexpr uint32_t kBackends = 10'000;
    test::Prng random;
    std::vector<Backend> backends = random_backends(random, kBackends, 65'535);
    backends[0].weight = 65'535;
    backends[1].weight = 65'534;  // no common divisor
    const WeightedOrder order = WeightedOrder::build(backends);
    ASSERT_EQ(order.length(), sum_of_weights(backends));
    // A turn is too long to walk, but each place from 0 on is one flow. The first 1/64 of a turn gives each
    // backend about 1/64 of its weight.
    std::vector<uint32_t> taken(kBackends);
    const uint32_t run = order.length() / 64;
    for (uint32_t place = 0; place < run; ++place) {
        ++taken[order.at(place)];
    }
    for (uint32_t i = 0; i < kBackends; ++i) {
        ASSERT_NEAR(taken[i], backends[i].weight / 64.0, 4) << i;
    }
}

// More than 2^32 flows in a turn: weights are rounded, and every backend is included.
TEST(WeightedRoundRobinProperty, WeightsBeyondTheCursorAreHalved) {
    constexpr uint32_t kBackends = 200'000;
    test::Prng random;
    std::vector<Backend> backends = random_backends(random, kBackends, 1);
    for (Backend& backend : backends) {
        backend.weight = 65'535;
    }
    backends[7].weight = 1;
    const WeightedOrder order = WeightedOrder::build(backends);
    EXPECT_EQ(order.length(), (kBackends - 1) * 16'383u + 1);
    EXPECT_LT(order.at(order.length() - 1), kBackends);
}

// The definition of each scheduler in the simplest form: all loads as fractions, sorted.
uint32_t model_of(SchedulerKind kind, const std::vector<Backend>& backends,
                  const std::vector<uint64_t>& open) {
    const auto load = [&](uint32_t i) {
        switch (kind) {
            case LeastConnection:
                return static_cast<long double>(open[i]);
            case WeightedLeastConnection:
                return static_cast<long double>(open[i]) / backends[i].weight;
            default:
                return static_cast<long double>(open[i] + 1) / backends[i].weight;
        }
    };
    std::vector<uint32_t> order(backends.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return load(a) < load(b); });
    if (kind == NeverQueue) {
        if (const auto idle = std::ranges::find(open, 0u); idle != open.end()) {
            return static_cast<uint32_t>(idle - open.begin());
        }
    }
    return order.front();
}

TEST(LeastLoadedProperty, AgreesWithTheDefinition_SCHED003) {
    test::Prng random;
    for (int attempt = 0; attempt < 3'000; ++attempt) {
        const auto n = static_cast<uint32_t>(random.between(1, 12));
        const auto workers = static_cast<uint32_t>(random.between(1, 4));
        const std::vector<Backend> backends =
            random_backends(random, n, static_cast<uint16_t>(random.between(1, 6)));
        Workers world(workers, n, random.next());
        std::vector<uint64_t> open(n);
        for (auto& of_worker : world.counters) {
            for (uint32_t i = 0; i < n; ++i) {
                const auto flows = static_cast<uint32_t>(random.below(random.one_in(3) ? 2 : 9));
                of_worker[i].open.set(flows);
                of_worker[i].connections.set(flows + 5);  // finished flows are not included
                open[i] += flows;
            }
        }
        for (const SchedulerKind kind :
             {LeastConnection, WeightedLeastConnection, ShortestExpectedDelay, NeverQueue}) {
            const Service service = service_of(backends, kind);
            ASSERT_EQ(world.pick(service), model_of(kind, backends, open)) << to_string(kind) << " of " << n;
        }
    }
}

// The largest possible numbers: no product overflows.
TEST(LeastLoadedProperty, ExtremesAreCompared_SCHED003) {
    std::vector<Backend> backends = {{.id = {0}, .weight = 65'535}, {.id = {1}, .weight = 65'534}};
    Workers world(limits::kWorkersMax, 2);
    for (auto& of_worker : world.counters) {
        of_worker[0].open.set(~uint32_t{0});
        of_worker[1].open.set(~uint32_t{0});
    }
    for (const SchedulerKind kind : {WeightedLeastConnection, ShortestExpectedDelay, NeverQueue}) {
        EXPECT_EQ(world.pick(service_of(backends, kind)), 0u) << to_string(kind);
    }
}

TEST(TwoChoicesProperty, TheLesserOfTwoDifferentOnes_SCHED003) {
    test::Prng random;
    constexpr uint32_t kBackends = 8;
    std::vector<Backend> backends = random_backends(random, kBackends, 1);
    Workers world(2, kBackends);
    for (uint32_t i = 0; i < kBackends; ++i) {
        world.counters[i % 2][i].open.set(i);  // all loads differ
    }
    const Service service = service_of(backends, TwoChoices);
    constexpr uint32_t kFlows = 56'000;
    std::vector<uint32_t> taken(kBackends);
    for (uint32_t i = 0; i < kFlows; ++i) {
        ++taken[world.pick(service)];
    }
    // Backend i wins against each backend behind it: 7 - i of 28 pairs.
    for (uint32_t i = 0; i < kBackends; ++i) {
        EXPECT_NEAR(taken[i], kFlows / 28 * (7 - i), 600) << i;
    }
    // By weight: double weight wins if flows + 1 are less than double.
    backends = {{.id = {4}, .weight = 2}, {.id = {2}, .weight = 1}};  // (4+1)/2 < (2+1)/1
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(world.pick(service_of(backends, TwoChoices)), 0u);
    }
    EXPECT_EQ(world.pick(service_of({{.id = {0}}}, TwoChoices)), 0u);
}

// Balls into bins: with lasting flows, a random choice leaves some backend far above the mean, and two
// choices do not.
TEST(TwoChoicesProperty, TenThousandStayBalanced_SCHED003) {
    constexpr uint32_t kBackends = 10'000;
    test::Prng random;
    const Service service = service_of(random_backends(random, kBackends, 1), TwoChoices);
    Workers world(1, kBackends);
    for (uint32_t i = 0; i < 10 * kBackends; ++i) {
        world.counters[0][world.pick(service)].open.add(1);
    }
    uint32_t most = 0;
    for (const stats::BackendCounters& row : world.counters[0]) {
        most = std::max(most, row.open.read());
    }
    EXPECT_LE(most, 14u);  // log2 log2 n above the mean of 10; a single choice gives about 24
}

// Each scheduler at the size of the largest ordinary Service: it returns a backend, and peek() returned the
// same before.
TEST(EveryScheduler, ServesTenThousandBackends_SCHED001_SCHED004) {
    constexpr uint32_t kBackends = 10'000;
    test::Prng random;
    const std::vector<Backend> backends = random_backends(random, kBackends, 100);
    for (const SchedulerKind kind : kSchedulerKinds) {
        const Service service = service_of(backends, kind);
        Workers one(1, kBackends, 1);
        std::vector<bool> met(kBackends);
        for (uint32_t i = 0; i < 2'000; ++i) {
            packet::FlowKey flow;
            flow.source = IpAddr::v4(Be32::from_host(static_cast<uint32_t>(random.next())));
            flow.destination = IpAddr::v4(Be32::from_host(static_cast<uint32_t>(random.next())));
            const uint32_t foretold = peek(service, service.sets[0], flow, one.state);
            const uint32_t chosen = one.pick(service, flow);
            ASSERT_EQ(chosen, foretold) << to_string(kind);
            ASSERT_LT(chosen, kBackends);
            met[chosen] = true;
            one.counters[0][chosen].open.add(1);
        }
        // 2,000 draws by weight give about 1,750 different backends; sed fills the heaviest first, with
        // several flows each.
        EXPECT_GT(std::ranges::count(met, true), 1'000) << to_string(kind);
    }
}

}  // namespace scheduler_property_test
}  // namespace penstock::lb
