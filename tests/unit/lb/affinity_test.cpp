// SPDX-License-Identifier: Apache-2.0
// The affinity table alone: which entries it keeps and evicts, and that workers which share it agree.
#include "dataplane/lb/affinity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "dataplane/base/limits.hpp"
#include "lb_fixture.hpp"
#include "tests/support/aligned_memory.hpp"

namespace penstock::lb {
namespace affinity_test {

using penstock::test::AlignedMemory;
constexpr uint32_t kNone = AffinityTable::Answer::kNone;
constexpr int32_t kLimit = 1'600;  // coarse units

struct Fixture {
    explicit Fixture(uint32_t entries) : memory(AffinityTable::memory_needed(entries)) {
        table = AffinityTable::create(memory.span(), entries, HashKey::random()).value();
    }
    AlignedMemory memory;
    AffinityTable table;
};

BackendSet set_of(std::vector<Backend> backends) {
    BackendSet set;
    set.usable = std::move(backends);
    set.index_for_affinity(AffinityScope::Port);
    return set;
}
IpAddr client(uint32_t number) {
    return IpAddr::v4(Be32::from_host(0x0b000000 + number));
}
AffinityTable::Question ask(const BackendSet& set, uint32_t number, uint32_t now, uint32_t epoch = 1) {
    return {.key = {{3}, epoch, client(number)}, .set = set, .now = {now}, .limit = kLimit};
}
uint32_t pin(AffinityTable& table, const AffinityTable::Question& question, uint32_t wanted) {
    const auto answer = table.agree(question, wanted);
    AffinityTable::open(answer.pin, question.now);
    return answer.position;
}

TEST(AffinityTable, MemoryThatDoesNotFitIsRefused) {
    AlignedMemory memory(AffinityTable::memory_needed(70));
    EXPECT_TRUE(AffinityTable::create(memory.span(), 70, {}));
    EXPECT_EQ(AffinityTable::create(memory.span(), 71, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(AffinityTable::create(memory.span().subspan(8), 1, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(AffinityTable::create({}, 0, {}).error().code, Errc::InvalidArgument);
}

TEST(AffinityTable, WithoutMemoryItRemembersNothing) {
    AffinityTable table;
    const BackendSet set = set_of(test::make_backends(2));
    EXPECT_EQ(table.find(ask(set, 1, 100)).position, kNone);
    EXPECT_EQ(pin(table, ask(set, 1, 100), 1), 1u);
    EXPECT_EQ(table.find(ask(set, 1, 100)).position, kNone);
}

TEST(AffinityTable, IdsOfTheFullRangeAreKept) {
    Fixture fixture(70);
    std::vector<Backend> backends = test::make_backends(2);
    backends[1].id = {limits::kBackendsMax - 1};
    backends[1].stay = Backend::kStays - 1;
    const BackendSet set = set_of(backends);
    // Also a time of all ones: the value that marks an ended entry must not result.
    EXPECT_EQ(pin(fixture.table, ask(set, 1, 0xffff'ffff), 1), 1u);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 0xffff'ffff)).position, 1u);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 10)).position, 1u) << "the coarse clock goes round";
}

TEST(AffinityTable, AnEpochForgetsTheOneBefore_AFF007) {
    Fixture fixture(70);
    const BackendSet set = set_of(test::make_backends(2));
    pin(fixture.table, ask(set, 1, 100), 1);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 100)).position, 1u);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 100, 2)).position, kNone);
}

TEST(AffinityTable, APositionFollowsItsBackend_AFF011) {
    Fixture fixture(70);
    const BackendSet before = set_of(test::make_backends(2, 10));
    pin(fixture.table, ask(before, 1, 100), 0);
    const BackendSet after = set_of(test::make_backends(12));
    EXPECT_EQ(after.usable[fixture.table.find(ask(after, 1, 100)).position].id, BackendId{10});
}

TEST(AffinityTable, AnEntryOfAnEarlierStayIsNoClaim_AFF005) {
    Fixture fixture(70);
    std::vector<Backend> backends = test::make_backends(2);
    pin(fixture.table, ask(set_of(backends), 1, 100), 1);
    backends[1].stay = 1;
    const BackendSet back = set_of(backends);
    EXPECT_EQ(fixture.table.find(ask(back, 1, 100)).position, kNone);
    EXPECT_EQ(pin(fixture.table, ask(back, 1, 100), 0), 0u);
    EXPECT_EQ(fixture.table.size(), 1u) << "overwritten";
}

// Two service ports of one Service: different ids and positions, the same endpoint.
TEST(AffinityTable, AnEntryOfAllPortsNamesTheEndpointAtEachPort_AFF002) {
    Fixture fixture(70);
    std::vector<Backend> http = test::make_backends(3), dns = test::make_backends(6);
    dns.erase(dns.begin(), dns.begin() + 3);
    for (uint32_t i = 0; i < 3; ++i) {
        http[i].endpoint = {7 + i};
        dns[2 - i].endpoint = {7 + i};
    }
    BackendSet http_set, dns_set;
    http_set.usable = http;
    dns_set.usable = dns;
    http_set.index_for_affinity(AffinityScope::Service);
    dns_set.index_for_affinity(AffinityScope::Service);
    EXPECT_EQ(pin(fixture.table, ask(http_set, 1, 100), 2), 2u);
    EXPECT_EQ(fixture.table.find(ask(dns_set, 1, 100)).position, 0u);
    EXPECT_EQ(fixture.table.size(), 1u);
}

TEST(AffinityTable, SeveralBackendsWithOneAddressAreOneEndpoint_AFF002) {
    Fixture fixture(70);
    BackendSet set;
    set.usable = test::make_backends(3, 4);
    set.usable[0].endpoint = {1};
    set.usable[1].endpoint = set.usable[2].endpoint = {0};
    set.index_for_affinity(AffinityScope::Service);
    EXPECT_EQ(pin(fixture.table, ask(set, 1, 100), 2), 2u) << "the first flow goes where the scheduler says";
    EXPECT_EQ(fixture.table.find(ask(set, 1, 100)).position, 1u)
        << "later ones to the first with that address";
    EXPECT_EQ(set.pinned_position({6}), 1u);
    fixture.table.establish(ask(set, 1, 150), set.pinned_position({6}));
    const auto confirmed = fixture.table.find(ask(set, 1, 150));
    EXPECT_EQ(AffinityTable::refreshed(confirmed.pin), CoarseTime{150})
        << "established by the other one's flow";
    EXPECT_EQ(set.pinned_position({4}), 0u);
    EXPECT_EQ(set.pinned_position({7}), kNone);
}

TEST(AffinityTable, ATimerEndsAtItsLimitAndNotAtAFind_AFF004) {
    Fixture fixture(70);
    const BackendSet set = set_of(test::make_backends(2));
    pin(fixture.table, ask(set, 1, 1'000), 1);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 1'000 + kLimit - 1)).position, 1u);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 1'000 + kLimit)).position, kNone) << "finding refreshed nothing";
    const auto found = fixture.table.find(ask(set, 1, 1'500));
    AffinityTable::open(found.pin, {1'500});
    EXPECT_EQ(fixture.table.find(ask(set, 1, 1'500 + kLimit - 1)).position, 1u);
    AffinityTable::open(found.pin, {1'400});
    EXPECT_EQ(fixture.table.find(ask(set, 1, 1'500 + kLimit - 1)).position, 1u)
        << "another core's clock is a little behind";
    EXPECT_EQ(fixture.table.find(ask(set, 1, 1'490)).position, 1u);
}

TEST(AffinityTable, TheSecondOfTwoWorkersHasTheFirstsBackend_AFF009) {
    Fixture fixture(70);
    const BackendSet set = set_of(test::make_backends(4));
    const auto question = ask(set, 1, 100);
    EXPECT_EQ(fixture.table.find(question).position, kNone);
    EXPECT_EQ(fixture.table.find(question).position, kNone) << "both have looked";
    const auto first = fixture.table.agree(question, 2);
    const auto second = fixture.table.agree(question, 3);
    EXPECT_EQ(first.position, 2u);
    EXPECT_EQ(second.position, 2u);
    EXPECT_EQ(fixture.table.size(), 1u);
}

TEST(AffinityTable, WithdrawnEntriesAreAsBefore) {
    Fixture fixture(7);
    const BackendSet set = set_of(test::make_backends(4));
    const auto made = fixture.table.agree(ask(set, 1, 100), 2);
    AffinityTable::withdraw(made.pin);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 100)).position, kNone);
    // An entry that a second flow uses is not withdrawn by the first, in either order of the results.
    for (const bool joined_first : {true, false}) {
        const uint32_t number = joined_first ? 2 : 3;
        const auto owner = fixture.table.agree(ask(set, number, 100), 2);
        const auto joined = fixture.table.find(ask(set, number, 100));
        EXPECT_EQ(joined.position, 2u);
        if (joined_first) {
            AffinityTable::open(joined.pin, {100});
            AffinityTable::withdraw(owner.pin);
        } else {
            AffinityTable::withdraw(owner.pin);
            AffinityTable::open(joined.pin, {100});
        }
        EXPECT_EQ(fixture.table.find(ask(set, number, 100)).position, 2u) << joined_first;
        AffinityTable::withdraw(joined.pin);
        EXPECT_EQ(fixture.table.find(ask(set, number, 100)).position, 2u)
            << "it was not that flow's to withdraw";
    }
}

TEST(AffinityTable, AMoveThatIsWithdrawnBringsTheFormerBackendBack) {
    Fixture fixture(7);
    const std::vector<Backend> backends = test::make_backends(4);
    const BackendSet all = set_of(backends);
    const BackendSet local = set_of({backends[3]});
    pin(fixture.table, ask(all, 1, 100), 1);
    const auto moved = fixture.table.agree(ask(local, 1, 100), 0);
    EXPECT_EQ(fixture.table.find(ask(all, 1, 100)).position, 3u);
    AffinityTable::withdraw(moved.pin);
    EXPECT_EQ(fixture.table.find(ask(all, 1, 100)).position, 1u);
}

TEST(AffinityTable, AFullBucketGivesUpItsOldest_AFF010) {
    Fixture fixture(7);
    const BackendSet set = set_of(test::make_backends(4));
    for (uint32_t i = 0; i < 7; ++i) {
        EXPECT_FALSE(fixture.table.agree(ask(set, i, 100 + (i + 3) % 7), 0).evicted);
    }
    EXPECT_TRUE(fixture.table.agree(ask(set, 7, 200), 1).evicted);
    for (uint32_t i = 0; i < 7; ++i) {
        EXPECT_EQ(fixture.table.find(ask(set, i, 200)).position == kNone, i == 4) << i;
    }
    // Of the same Service and expired: no eviction.
    EXPECT_FALSE(fixture.table.agree(ask(set, 8, 200 + kLimit), 1).evicted);
    EXPECT_EQ(fixture.table.size(), 7u);
}

// A lookup for a Service given by number.
AffinityTable::Question ask_of(uint32_t service, const BackendSet& set, uint32_t number, uint32_t now) {
    return {.key = {{service}, 1, client(number)}, .set = set, .now = {now}, .limit = kLimit};
}

// A flow can be opened with a spoofed client address, but not established.
TEST(AffinityTable, TentativeEntriesGiveWayAndEstablishedOnesStay_AFF010) {
    Fixture fixture(7);
    const BackendSet set = set_of(test::make_backends(4));
    for (uint32_t i = 0; i < 3; ++i) {
        pin(fixture.table, ask_of(3, set, i, 100), i);
        EXPECT_FALSE(fixture.table.establish(ask_of(3, set, i, 101), i).evicted);
    }
    for (uint32_t n = 0; n < 100; ++n) {
        const bool is_full = n >= 4;
        const auto answer = fixture.table.agree(ask_of(4, set, 1'000 + n, 200 + n), 1);
        AffinityTable::open(answer.pin, {200 + n});
        EXPECT_EQ(answer.evicted, is_full) << n;
        EXPECT_EQ(fixture.table.find(ask_of(4, set, 1'000 + n, 300)).position, 1u)
            << "flows opened at once agree";
    }
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(fixture.table.find(ask_of(3, set, i, 300)).position, i) << i;
    }
}

TEST(AffinityTable, AServiceTakesFromTheLargestHolderUpToItsShare_AFF010) {
    Fixture fixture(7);
    const BackendSet set = set_of(test::make_backends(4));
    const auto held_by = [&](uint32_t service) {
        uint32_t count = 0;
        fixture.table.for_each([&](const AffinityEntry& entry) {
            return count += entry.key.owner == AffinityOwner{service} ? 1 : 0, true;
        });
        return count;
    };
    const auto establish = [&](uint32_t service, uint32_t number, uint32_t now) {
        pin(fixture.table, ask_of(service, set, number, now), 1);
        fixture.table.establish(ask_of(service, set, number, now), 1);
    };
    establish(3, 1, 100);
    for (uint32_t n = 0; n < 50; ++n) {
        establish(4, 100 + n, 200 + n);
    }
    EXPECT_EQ(held_by(3), 1u) << "the oldest of all, and its Service's only one";
    EXPECT_EQ(held_by(4), 6u);
    for (uint32_t n = 0; n < 50; ++n) {
        establish(3, 200 + n, 300 + n);
        establish(4, 300 + n, 300 + n);
    }
    EXPECT_GE(held_by(3), 3u);
    EXPECT_GE(held_by(4), 3u);
    // A tentative entry takes one of the largest holder's seven and no more. If all Services have one, it
    // gets none.
    Fixture others(7);
    for (uint32_t service = 1; service <= 7; ++service) {
        others.table.establish(ask_of(service, set, service, 100 + service), 2);
    }
    const auto refused = others.table.agree(ask_of(9, set, 9, 200), 3);
    EXPECT_EQ(refused.position, 3u);
    EXPECT_EQ(refused.pin.value, nullptr);
    EXPECT_FALSE(refused.evicted);
    EXPECT_TRUE(others.table.establish(ask_of(9, set, 9, 200), 3).evicted) << "a client that is there";
    EXPECT_EQ(others.table.find(ask_of(9, set, 9, 200)).position, 3u);
    EXPECT_EQ(others.table.find(ask_of(1, set, 1, 200)).position, kNone) << "the oldest";
}

TEST(AffinityTable, AnEntryThatWasGivenUpIsBackWhenItsFlowIsEstablished_AFF001) {
    Fixture fixture(7);
    const BackendSet set = set_of(test::make_backends(4));
    pin(fixture.table, ask(set, 1, 100), 2);
    for (uint32_t n = 0; n < 20; ++n) {
        pin(fixture.table, ask(set, 100 + n, 101 + n), 0);
    }
    ASSERT_EQ(fixture.table.find(ask(set, 1, 130)).position, kNone);
    fixture.table.establish(ask(set, 1, 130), 2);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 130)).position, 2u);
    fixture.table.establish(ask(set, 1, 140), 3);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 140)).position, 2u)
        << "an earlier flow to another backend does not move it";
}

TEST(AffinityTable, OnlyAnEstablishedFlowRestartsAnEstablishedTimer_AFF004) {
    Fixture fixture(70);
    const BackendSet set = set_of(test::make_backends(2));
    pin(fixture.table, ask(set, 1, 1'000), 1);
    fixture.table.establish(ask(set, 1, 1'010), 1);
    AffinityTable::open(fixture.table.find(ask(set, 1, 1'500)).pin, {1'500});
    EXPECT_EQ(fixture.table.find(ask(set, 1, 1'010 + kLimit)).position, kNone) << "a SYN in its name";
    fixture.table.establish(ask(set, 1, 1'520), 1);
    EXPECT_EQ(fixture.table.find(ask(set, 1, 1'520 + kLimit - 1)).position, 1u);
}

TEST(AffinityTable, EntriesAreListedAndRemoved) {
    Fixture fixture(700);
    const BackendSet set = set_of(test::make_backends(4));
    for (uint32_t i = 0; i < 20; ++i) {
        pin(fixture.table, ask(set, i, 100 + i), i % 4);
    }
    std::vector<AffinityEntry> all;
    fixture.table.for_each([&](const AffinityEntry& entry) {
        all.push_back(entry);
        return true;
    });
    ASSERT_EQ(all.size(), 20u);
    for (const AffinityEntry& entry : all) {
        const uint32_t number = entry.key.client.v4_wire().host() - 0x0b000000;
        EXPECT_EQ(entry.key, (AffinityKey{{3}, 1, client(number)}));
        EXPECT_EQ(entry.endpoint, set.usable[number % 4].endpoint);
        EXPECT_EQ(entry.refreshed, CoarseTime{100 + number});
    }
    uint32_t visits = 0;
    fixture.table.for_each([&](const AffinityEntry&) { return ++visits < 5; });
    EXPECT_EQ(visits, 5u);
    const auto removed = fixture.table.remove_if(0, fixture.table.buckets(), [](const AffinityEntry& entry) {
        return entry.is_past({112}, 10);  // entries of 100 to 102
    });
    EXPECT_EQ(removed, 3u);
    EXPECT_EQ(fixture.table.size(), 17u);
    EXPECT_EQ(fixture.table.find(ask(set, 2, 112)).position, kNone);
    EXPECT_EQ(fixture.table.find(ask(set, 3, 112)).position, 3u);
}

// Four workers open flows of a few clients in one small table at the same time, while a fifth thread lists
// and removes entries of unrelated clients. While a client's backend is usable, each flow gets it on any
// worker: the first answer for a client in an epoch holds for all. TSan checks the protocol described in the
// header.
TEST(AffinityTableThreads, AClientHasOneBackendOnAllWorkers_AFF009) {
    constexpr uint32_t kWorkers = 4, kClients = 8, kRounds = 200;
    Fixture fixture(70);  // ten buckets: the eight clients share some of them and never fill one
    const BackendSet set = set_of(test::make_backends(kWorkers));
    // The backend of the first flow of (round, client).
    std::vector<std::atomic<uint32_t>> decided(kRounds * kClients);
    for (auto& each : decided) {
        each = kNone;
    }
    std::atomic<uint32_t> disagreements{0}, without{0};
    std::atomic<uint32_t> arrived{0};
    std::atomic<bool> done{false};
    const auto work = [&](uint32_t self) {
        for (uint32_t round = 0; round < kRounds; ++round) {
            arrived.fetch_add(1);
            while (arrived.load() < (round + 1) * kWorkers) {
                std::this_thread::yield();
            }
            for (uint32_t number = 0; number < kClients; ++number) {
                const auto question = ask(set, number, 100 + round, round + 1);
                auto answer = fixture.table.find(question);
                if (answer.position == kNone) {
                    answer = fixture.table.agree(question, self);
                }
                if (answer.pin.value == nullptr) {
                    without.fetch_add(1);
                    continue;
                }
                uint32_t first = kNone;
                if (!decided[round * kClients + number].compare_exchange_strong(first, answer.position) &&
                    first != answer.position) {
                    disagreements.fetch_add(1);
                }
                AffinityTable::open(answer.pin, question.now);
            }
            // Removes entries of old rounds to leave room for the next: an eviction would break the
            // invariant.
            if (self == 0 && round % 2 == 0) {
                fixture.table.remove_if(0, fixture.table.buckets(),
                                        [&](const AffinityEntry& entry) { return entry.key.epoch < round; });
            }
        }
    };
    std::thread lister([&] {
        while (!done.load()) {
            fixture.table.for_each([&](const AffinityEntry& entry) {
                EXPECT_LT(entry.endpoint.value, kWorkers);
                EXPECT_EQ(entry.key.owner, AffinityOwner{3});
                EXPECT_LT(entry.key.client.v4_wire().host() - 0x0b000000, kClients);
                return true;
            });
            std::this_thread::yield();
        }
    });
    std::vector<std::thread> workers;
    for (uint32_t self = 0; self < kWorkers; ++self) {
        workers.emplace_back(work, self);
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    done = true;
    lister.join();
    EXPECT_EQ(disagreements.load(), 0u);
    EXPECT_EQ(without.load(), 0u);
}

// One bucket and more clients than slots, so that slots change hands continuously. Entries are consistent (a
// backend belongs to its client, by number), no key is present twice, and every lookup returns an answer.
TEST(AffinityTableThreads, SlotsThatChangeHandsAreNeverSeenInHalves_AFF010) {
    constexpr uint32_t kWorkers = 4, kClients = 64, kFlows = 4'000;
    Fixture fixture(7);
    const BackendSet set = set_of(test::make_backends(kClients));
    std::atomic<uint32_t> wrong{0};
    std::atomic<uint32_t> at_work{kWorkers};
    const auto work = [&](uint32_t self) {
        uint64_t random = 0x9e3779b97f4a7c15 * (self + 1);
        for (uint32_t flow = 0; flow < kFlows; ++flow) {
            random = random * 6364136223846793005 + 1442695040888963407;
            const auto number = static_cast<uint32_t>(random >> 33) % kClients;
            const auto question = ask(set, number, 100 + flow / 16);
            auto answer = fixture.table.find(question);
            if (answer.position == kNone) {
                answer = fixture.table.agree(question, number);
            }
            wrong.fetch_add(answer.position == number ? 0 : 1);
            flow % 3 == 0 ? AffinityTable::withdraw(answer.pin)
                          : AffinityTable::open(answer.pin, question.now);
        }
        at_work.fetch_sub(1);
    };
    std::vector<std::thread> workers;
    for (uint32_t self = 0; self < kWorkers; ++self) {
        workers.emplace_back(work, self);
    }
    while (at_work.load() != 0) {
        std::vector<uint32_t> seen;
        fixture.table.for_each([&](const AffinityEntry& entry) {
            const uint32_t number = entry.key.client.v4_wire().host() - 0x0b000000;
            wrong.fetch_add(entry.endpoint.value == number ? 0 : 1);
            seen.push_back(number);
            return true;
        });
        std::ranges::sort(seen);
        wrong.fetch_add(std::ranges::adjacent_find(seen) == seen.end() ? 0 : 1);
        std::this_thread::yield();
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    EXPECT_EQ(wrong.load(), 0u);
    EXPECT_LE(fixture.table.size(), 7u);
}

}  // namespace affinity_test
}  // namespace penstock::lb
