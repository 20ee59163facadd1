// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/scheduler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/unit/lb/lb_fixture.hpp"

namespace penstock::lb {
namespace scheduler_test {

using test::make_backends;
using test::make_service;

// The memory and the scheduler state of one worker.
struct Worker {
    explicit Worker(uint64_t seed) : state(cursors, seed, rows) {}
    std::vector<uint32_t> cursors = std::vector<uint32_t>(SchedulerState::kCursors);
    std::vector<stats::BackendCounters> counters = std::vector<stats::BackendCounters>(20'000);
    std::array<const stats::BackendCounters*, 1> rows{counters.data()};
    SchedulerState state;
    uint32_t pick(const Service& service, const packet::FlowKey& flow = {}) {
        return lb::pick(service, service.sets[0], flow, state);
    }
};

packet::FlowKey flow(uint32_t client, L4Port client_port) {
    return {IpAddr::v4(Be32::from_host(0xc0000200u + client)),
            IpAddr::v4(80, 11, 12, 10),
            client_port,
            80,
            Protocol::Tcp,
            {}};
}

TEST(RoundRobin, EveryRunIsSharedExactly_SCHED002) {
    for (const uint32_t n : {1u, 2u, 3u, 7u, 100u}) {
        Worker worker(n);
        const auto service = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(n));
        for (const uint32_t lead : {0u, 1u, n - 1}) {  // any run, from any start
            for (uint32_t i = 0; i < lead; ++i) {
                (void)worker.pick(*service);
            }
            constexpr uint32_t kRounds = 3;
            std::vector<uint32_t> taken(n);
            for (uint32_t i = 0; i < kRounds * n; ++i) {
                ++taken.at(worker.pick(*service));
            }
            EXPECT_EQ(taken, std::vector<uint32_t>(n, kRounds))
                << n << " endpoints, run begins after " << lead;
        }
    }
}

TEST(RoundRobin, OverAllWorkersTheDeviationIsBounded_SCHED002) {
    constexpr uint32_t kWorkers = 4;
    constexpr uint32_t kEndpoints = 5;
    const auto service = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(kEndpoints));
    std::vector<uint32_t> taken(kEndpoints);
    uint32_t flows = 0;
    for (uint32_t w = 0; w < kWorkers; ++w) {
        Worker worker(w);
        for (uint32_t i = 0; i < 13 + 7 * w; ++i, ++flows) {
            ++taken[worker.pick(*service)];
        }
    }
    for (const uint32_t count : taken) {
        EXPECT_NEAR(count, double(flows) / kEndpoints, kWorkers);
    }
}

// After a change the rotation continues at its position, within one place, on each worker. It never sends all
// flows to the first backend.
TEST(RoundRobin, AChangeDoesNotRestartTheRotation_SCHED002) {
    constexpr uint32_t kEndpoints = 10;
    const auto service = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(kEndpoints));
    const auto grown = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(kEndpoints + 1));
    const auto shrunk = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(kEndpoints - 1));
    const auto halved = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(kEndpoints / 2));
    std::map<uint32_t, uint32_t> first_after_halving;
    for (uint32_t last = 0; last < kEndpoints; ++last) {
        Worker worker(1);
        while (worker.pick(*service) != last) {
        }
        EXPECT_EQ(peek(*grown, grown->sets[0], {}, worker.state), last + 1) << "added at the end";
        EXPECT_EQ(peek(*shrunk, shrunk->sets[0], {}, worker.state), (last + 1) % (kEndpoints - 1))
            << "removed from the end";
        ++first_after_halving[worker.pick(*halved)];
    }
    EXPECT_EQ(first_after_halving.size(), kEndpoints / 2) << "workers that stood apart still do";
}

TEST(RoundRobin, SetsAndServicesRotateApart_SCHED002) {
    Worker worker(3);
    const auto service = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(4));
    service->sets.push_back({.usable = make_backends(3)});
    const auto other = make_service(6, "other", SchedulerKind::RoundRobin, make_backends(4));
    std::vector<uint32_t> external(4);
    std::vector<uint32_t> internal(3);
    for (uint32_t i = 0; i < 12; ++i) {
        ++external[pick(*service, service->sets[0], {}, worker.state)];
        ++internal[pick(*service, service->sets[1], {}, worker.state)];
        (void)worker.pick(*other);
    }
    EXPECT_EQ(external, std::vector<uint32_t>(4, 3));
    EXPECT_EQ(internal, std::vector<uint32_t>(3, 4));
}

TEST(RoundRobin, WorkersBeginApart) {
    const auto service = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(64));
    std::map<uint32_t, int> first;
    for (uint64_t w = 0; w < 32; ++w) {
        ++first[Worker(w).pick(*service)];
    }
    // 32 draws out of 64 give about 25 different values; 12 or fewer would indicate a constant.
    EXPECT_GT(first.size(), 12u);
}

TEST(RoundRobin, IdsAtTheLimitHaveACursor) {
    Worker worker(1);
    const auto service =
        make_service(limits::kServicesMax - 1, "last", SchedulerKind::RoundRobin, make_backends(2));
    service->sets.resize(2);
    service->sets[1].usable = make_backends(2);
    EXPECT_NE(pick(*service, service->sets[1], {}, worker.state),
              pick(*service, service->sets[1], {}, worker.state));
}

TEST(Random, SharesAreEven_SCHED001) {
    constexpr uint32_t kEndpoints = 10;
    constexpr uint32_t kFlows = 100'000;
    Worker worker(42);
    const auto service = make_service(5, "web", SchedulerKind::Random, make_backends(kEndpoints));
    std::vector<uint32_t> taken(kEndpoints);
    for (uint32_t i = 0; i < kFlows; ++i) {
        ++taken.at(worker.pick(*service));
    }
    for (const uint32_t count : taken) {
        EXPECT_NEAR(count, kFlows / kEndpoints, 500);  // five standard deviations of 95; the seed is fixed
    }
}

TEST(Maglev, EveryWorkerAgrees_SCHED004) {
    Worker one(1);
    Worker two(2);
    const auto service = make_service(5, "web", SchedulerKind::Maglev, make_backends(7));
    const auto rebuilt =
        make_service(9, "web", SchedulerKind::Maglev, make_backends(7));  // after a restart, with another id
    std::vector<uint32_t> taken(7);
    for (uint32_t client = 0; client < 100; ++client) {
        for (L4Port port = 40000; port < 40010; ++port) {
            const uint32_t chosen = one.pick(*service, flow(client, port));
            ASSERT_EQ(two.pick(*service, flow(client, port)), chosen);
            ASSERT_EQ(two.pick(*rebuilt, flow(client, port)), chosen);
            ++taken.at(chosen);
        }
    }
    EXPECT_GT(*std::ranges::min_element(taken),
              90u);  // 143 expected, standard deviation 11; the tuples are fixed
}

// The mapping of 5-tuples to backends is fixed from the first release on: if a release changed it, upgrading
// one of two gateways would split clients.
TEST(Maglev, PlacesAreFixedForEver_SCHED004) {
    Worker worker(1);
    const auto service = make_service(5, "web", SchedulerKind::Maglev, make_backends(100));
    std::vector<uint32_t> chosen;
    for (uint32_t client = 0; client < 8; ++client) {
        chosen.push_back(worker.pick(*service, flow(client, 40000)));
    }
    EXPECT_EQ(chosen, (std::vector<uint32_t>{95, 84, 63, 55, 13, 1, 25, 25}));
}

uint32_t chosen_for(Worker& worker, const Service& service, const char* client, L4Port client_port,
                    const char* frontend) {
    return worker.pick(service, {test::ip(client), test::ip(frontend), client_port, 80, Protocol::Tcp, {}});
}

TEST(SourceHash, OnlyTheClientsAddressDecides_SCHED004) {
    Worker one(1), two(2);
    const auto service = make_service(5, "web", SchedulerKind::SourceHash, make_backends(100));
    const auto rebuilt = make_service(9, "other", SchedulerKind::SourceHash,
                                      make_backends(100));  // another worker, id and restart
    std::map<uint32_t, int> met;
    for (uint32_t client = 0; client < 200; ++client) {
        const std::string address = "192.0.2." + std::to_string(client);
        const uint32_t chosen = chosen_for(one, *service, address.c_str(), 40000, "80.11.12.10");
        EXPECT_EQ(chosen_for(two, *rebuilt, address.c_str(), 40001, "80.11.12.11"), chosen);
        ++met[chosen];
    }
    EXPECT_GT(met.size(), 60u);  // 87 expected from 200 draws among 100
}

TEST(DestinationHash, OnlyTheFrontendsAddressDecides_SCHED004) {
    Worker one(1), two(2);
    const auto service = make_service(5, "web", SchedulerKind::DestinationHash, make_backends(100));
    std::map<uint32_t, int> met;
    for (uint32_t vip = 0; vip < 200; ++vip) {
        const std::string address = "203.0.113." + std::to_string(vip);
        const uint32_t chosen = chosen_for(one, *service, "192.0.2.1", 40000, address.c_str());
        EXPECT_EQ(chosen_for(two, *service, "192.0.2.77", 50000, address.c_str()), chosen);
        ++met[chosen];
    }
    EXPECT_GT(met.size(), 60u);
}

TEST(HashSchedulers, HonourWeights_SCHED004) {
    for (const SchedulerKind kind :
         {SchedulerKind::SourceHash, SchedulerKind::DestinationHash, SchedulerKind::Maglev}) {
        Worker worker(1);
        std::vector<Backend> backends = make_backends(2);
        backends[1].weight = 3;
        const auto service = make_service(5, "web", kind, backends);
        uint32_t second = 0;
        for (uint32_t i = 0; i < 4'000; ++i) {
            second += worker.pick(*service, {IpAddr::v4(Be32::from_host(0xc0000200u + i)),
                                             IpAddr::v4(Be32::from_host(0xcb000000u + i)),
                                             static_cast<L4Port>(1'024 + i),
                                             80,
                                             Protocol::Tcp,
                                             {}});
        }
        EXPECT_NEAR(second, 3'000, 150) << to_string(kind);  // standard deviation 27; the tuples are fixed
    }
}

TEST(Maglev, WithAffinityTheClientsAddressDecides_SCHED004) {
    Worker worker(1);
    const auto service = make_service(5, "web", SchedulerKind::Maglev, make_backends(100));
    std::map<uint32_t, int> by_tuple, by_client;
    for (L4Port port = 40000; port < 40050; ++port) {
        ++by_tuple[worker.pick(*service, flow(1, port))];
    }
    service->affinity_timeout_s = 10'800;
    for (L4Port port = 40000; port < 40050; ++port) {
        ++by_client[worker.pick(*service, flow(1, port))];
    }
    EXPECT_GT(by_tuple.size(), 20u);
    EXPECT_EQ(by_client.size(), 1u);
}

// The removal of a backend leaves the other backends' clients in place, except for the few that maglev.hpp
// derives.
TEST(SourceHash, DisruptionIsMinimal_SCHED004) {
    Worker worker(1);
    std::vector<Backend> backends = make_backends(100);
    const auto before = make_service(5, "web", SchedulerKind::SourceHash, backends);
    backends.erase(backends.begin() + 40);
    const auto after = make_service(5, "web", SchedulerKind::SourceHash, backends);
    uint32_t moved = 0;
    constexpr uint32_t kClients = 20'000;
    for (uint32_t i = 0; i < kClients; ++i) {
        const packet::FlowKey key = {
            IpAddr::v4(Be32::from_host(0xc0000000u + i)), test::ip("203.0.113.1"), 1, 80, Protocol::Tcp, {}};
        moved += before->sets[0].usable[worker.pick(*before, key)] !=
                         after->sets[0].usable[worker.pick(*after, key)]
                     ? 1
                     : 0;
    }
    EXPECT_LE(moved, kClients * 2 / 100);
}

TEST(WeightedRoundRobin, TheTurnInTheDrawing_SCHED002) {
    std::vector<Backend> backends = make_backends(4);
    backends[0].weight = 3;
    backends[1].weight = 2;
    const WeightedOrder order = WeightedOrder::build(backends);
    std::vector<uint32_t> turn;
    for (uint32_t place = 0; place < order.length(); ++place) {
        turn.push_back(order.at(place));
    }
    EXPECT_EQ(turn, (std::vector<uint32_t>{3, 1, 0, 2, 1, 0, 0}));
    for (Backend& backend : backends) {
        backend.weight = static_cast<uint16_t>(backend.weight * 1'000);
    }
    EXPECT_EQ(WeightedOrder::build(backends).length(), 7u) << "what all weights share is divided out";
}

TEST(WeightedRoundRobin, AChangeDoesNotRestartTheRotation_SCHED002) {
    std::vector<Backend> backends = make_backends(10);
    backends[3].weight = 5;
    const auto service = make_service(5, "web", SchedulerKind::WeightedRoundRobin, backends);
    backends.pop_back();
    const auto shrunk = make_service(5, "web", SchedulerKind::WeightedRoundRobin, backends);
    std::map<uint32_t, uint32_t> first_after;
    for (uint32_t lead = 0; lead < 14; ++lead) {
        Worker worker(1);
        worker.state.set_cursor({5}, 0, 0);
        for (uint32_t i = 0; i < lead; ++i) {
            (void)worker.pick(*service);
        }
        ++first_after[worker.pick(*shrunk)];
    }
    EXPECT_GE(first_after.size(), 8u) << "workers that stood apart still do";
}

// The rotation continues after a change to another scheduler and back: the change does not reset a worker's
// state.
TEST(Schedulers, SwitchWithoutRestart_SCHED001) {
    Worker worker(1);
    const auto rr = make_service(5, "web", SchedulerKind::RoundRobin, make_backends(10));
    const auto lc = make_service(5, "web", SchedulerKind::LeastConnection, make_backends(10));
    const uint32_t last = worker.pick(*rr);
    for (int i = 0; i < 3; ++i) {
        (void)worker.pick(*lc);
    }
    EXPECT_EQ(worker.pick(*rr), (last + 1) % 10);
}

TEST(Peek, ForetellsThePickAndChangesNothing) {
    for (const SchedulerKind kind : kSchedulerKinds) {
        Worker worker(7);
        const auto service = make_service(5, "web", kind, make_backends(11));
        for (uint32_t i = 0; i < 50; ++i) {
            const packet::FlowKey key = flow(i, 40000);
            const uint32_t expected = peek(*service, service->sets[0], key, worker.state);
            ASSERT_EQ(peek(*service, service->sets[0], key, worker.state), expected);
            ASSERT_EQ(worker.pick(*service, key), expected) << to_string(kind);
        }
    }
}

}  // namespace scheduler_test
}  // namespace penstock::lb
