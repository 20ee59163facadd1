// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/port_proposer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/aligned_memory.hpp"
#include "tests/support/reply_hashes.hpp"

namespace penstock::nat {
namespace port_proposer_test {

const PoolKey kKey{IpAddr::v4(192, 0, 2, 1), IpAddr::v4(10, 1, 0, 1), 9376, Protocol::Tcp};

PortProposer make(const test::AlignedMemory& memory, PortRange range = {}, const HashKey& secret = {1, 2}) {
    return std::move(*PortProposer::create(memory.span(), 1'000, range, {0}, 1, secret));
}

// The next ports of a key; each is returned at once.
std::vector<L4Port> some_ports(PortProposer& ports, const PoolKey& key, size_t count) {
    std::vector<L4Port> out;
    const PoolNumber pool = ports.open(key, ports.hash(key));
    for (size_t i = 0; i < count; ++i) {
        out.push_back(*ports.propose(pool, {}));
        ports.bind(pool, out.back());
        ports.give_back(pool, out.back());
    }
    return out;
}

TEST(PortProposer, CreateRefusesWhatCannotBe) {
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, {}, 1));
    const auto create = [&](std::span<std::byte> bytes, uint32_t connections, uint8_t self,
                            uint32_t workers) {
        return PortProposer::create(bytes, connections, {}, {self}, workers, {}).has_value();
    };
    EXPECT_TRUE(create(memory.span(), 1'000, 0, 1));
    EXPECT_FALSE(create(memory.span().first(memory.span().size() - 64), 1'000, 0, 1));
    EXPECT_FALSE(create(memory.span().subspan(8), 900, 0, 1));
    EXPECT_FALSE(create(memory.span(), 0, 0, 1));
    EXPECT_FALSE(create(memory.span(), (1U << 28) + 2, 0, 1));
    EXPECT_FALSE(create(memory.span(), 1'000, 1, 1));
    EXPECT_FALSE(create(memory.span(), 1'000, 0, 0));
    EXPECT_FALSE(create(memory.span(), 1'000, 0, 65));
    EXPECT_EQ(PortProposer::memory_needed(0, {}, 1), 0u);
}

// The walk of an exhausted pool cycles: each usable port occurs once per round, from any start.
TEST(PortProposer, AWalkGoesRoundTheUsablePorts) {
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, {}, 1));
    for (const PortRange range :
         {PortRange{2'000, 2'999}, PortRange{5'000, 5'003}, PortRange{40'010, 40'080}}) {
        PortProposer ports = make(memory);
        const PortRules rules{.range = range};
        const PoolNumber pool = ports.open(kKey, ports.hash(kKey));
        std::set<L4Port> bound;
        while (const auto port = ports.propose(pool, rules)) {
            if (bound.insert(*port).second) {
                ports.bind(pool, *port);
            } else {
                ports.refuse(pool, *port);
            }
        }
        ASSERT_EQ(bound.size(), range.last - range.first + 1U);
        std::vector<PortProposer::WalkPosition> places(bound.size());
        std::vector<L4Port> in_order;
        for (int round = 0; round < 2; ++round) {
            for (size_t at = 0; at < places.size();) {  // in groups of three
                const std::span some = std::span(places).subspan(at, std::min<size_t>(3, places.size() - at));
                ASSERT_EQ(ports.walk(pool, rules, some), some.size());
                for (const PortProposer::WalkPosition& place : some) {
                    in_order.push_back(place.port);
                    ASSERT_EQ(place.port, in_order[at]) << range.first << " round " << round << " at " << at;
                    ++at;
                }
            }
            ASSERT_EQ(std::set(in_order.begin(), in_order.end()), bound);
        }
        const size_t back = in_order.size() / 4;
        ports.go_behind(pool, places[back]);
        PortProposer::WalkPosition next;
        ASSERT_EQ(ports.walk(pool, rules, {&next, 1}), 1u);
        EXPECT_EQ(next.port, in_order[back + 1]);
        EXPECT_FALSE(ports.propose(pool, rules)) << "a walk frees nothing";
    }
}

// Single ports that are freed elsewhere, and allocated again, do not move a walk. After many of them, ports
// were allocated in order again, and the walk starts after the newest.
TEST(PortProposer, AWalkKeepsItsPlaceWhilePoolsStayFull) {
    const test::AlignedMemory memory(PortProposer::memory_needed(70'000, {}, 1));
    PortProposer ports = std::move(*PortProposer::create(memory.span(), 70'000, {}, {0}, 1, {1, 2}));
    const PoolNumber pool = ports.open(kKey, ports.hash(kKey));
    std::vector<L4Port> in_order;
    std::set<L4Port> bound;
    const auto fill = [&] {
        while (const auto port = ports.propose(pool, {})) {
            if (bound.insert(*port).second) {
                in_order.push_back(*port);
                ports.bind(pool, *port);
            } else {
                ports.refuse(pool, *port);
            }
        }
    };
    const auto give_back = [&](L4Port port) {
        bound.erase(port);
        ports.give_back(pool, port);
    };
    const auto walk = [&] {
        PortProposer::WalkPosition place;
        EXPECT_EQ(ports.walk(pool, {}, {&place, 1}), 1u);
        return place.port;
    };
    fill();
    ASSERT_EQ(bound.size(), 64'512u);
    const auto index_in = [](const std::vector<L4Port>& ports_in_order, L4Port port) {
        return static_cast<size_t>(std::ranges::find(ports_in_order, port) - ports_in_order.begin());
    };
    const size_t begin = index_in(in_order, walk());
    EXPECT_LT(begin, 1'008u + kPortsPerBlock)
        << "behind those that had no map yet, and were met again before all seemed taken";
    for (size_t at = 1; at < 100; ++at) {
        ASSERT_EQ(walk(), in_order[begin + at]);
        give_back(in_order[20'000 + at * 300]);
        fill();
    }
    const std::vector<L4Port> former = std::exchange(in_order, {});
    for (size_t at = 0; at < 40'000; ++at) {
        give_back(former[at]);
    }
    fill();
    ASSERT_EQ(in_order.size(), 40'000u);
    const size_t again = index_in(former, walk());
    EXPECT_GE(again, 40'000u);
    EXPECT_LT(again, 40'000u + kPortsPerBlock);
}

TEST(PortProposer, AWalkWithoutUsablePortsFindsNone) {
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, {}, 1));
    PortProposer ports = make(memory);
    PortProposer::WalkPosition none;
    EXPECT_EQ(ports.walk(ports.open(kKey, ports.hash(kKey)), {.range = {1, 0}}, {&none, 1}), 0u);
}

// The memory limits of docs/adr/0008.
TEST(PortProposer, TakesAtMostTwentyBytesAConnection) {
    for (const uint32_t connections : {262'144u, 1'000'000u, 10'000'000u}) {
        for (const uint32_t workers : {1u, 2u, 8u, 64u}) {
            EXPECT_LE(PortProposer::memory_needed(connections, {}, workers), connections * uint64_t{20})
                << connections << " " << workers;
        }
    }
}

// ADR 0020: ports chosen by hash are spread over all blocks, so the map of each worker has as many words as
// that of a single worker. From eight workers on, the map is given earlier.
TEST(PortProposer, TakesAFewBytesMoreAConnectionByHash) {
    const struct {
        uint32_t workers;
        uint64_t bytes;  // maximum per connection
    } cases[] = {{2, 20}, {8, 20}, {16, 29}, {64, 80}};
    for (const auto& c : cases) {
        const ReplyHash hash = test::hash_in_turn(128, c.workers);
        const PortReplyHash of_port{{0}, &hash};
        const ReplyRules rules = std::move(*ReplyRules::create({&of_port, 1}, c.workers));
        for (const uint32_t connections : {262'144u, 1'000'000u, 10'000'000u}) {
            EXPECT_LE(PortProposer::memory_needed(connections, {}, c.workers, &rules), connections * c.bytes)
                << connections << " " << c.workers;
        }
    }
}

TEST(PortProposer, OrdersDifferBySecretAndByKey_RFC6056) {
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, {}, 1));
    PortProposer one = make(memory);
    const std::vector<L4Port> a = some_ports(one, kKey, 256);
    PoolKey other = kKey;
    other.endpoint_port = 9377;
    const std::vector<L4Port> b = some_ports(one, other, 256);
    PortProposer two = make(memory, {}, {1, 3});
    const std::vector<L4Port> c = some_ports(two, kKey, 256);
    const auto common = [](std::vector<L4Port> x, std::vector<L4Port> y) {
        std::sort(x.begin(), x.end());
        std::sort(y.begin(), y.end());
        std::vector<L4Port> both;
        std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
        return both.size();
    };
    // Five blocks each of 1,008: they have almost none in common.
    EXPECT_LE(common(a, b), 128u);
    EXPECT_LE(common(a, c), 128u);
    EXPECT_LE(common(b, c), 128u);
    int steps_of_one = 0;
    for (size_t i = 1; i < a.size(); ++i) {
        steps_of_one += a[i] == a[i - 1] + 1 ? 1 : 0;
    }
    EXPECT_LT(steps_of_one, 32) << "a port does not tell the next";
}

TEST(PortProposer, AKeyKeepsItsPoolAndItsCursor) {
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, {}, 1));
    PortProposer ports = make(memory);
    const PoolNumber pool = ports.open(kKey, ports.hash(kKey));
    ports.prefetch(ports.hash(kKey));
    ports.prefetch_pool(ports.hash(kKey));
    ports.prefetch(pool);
    EXPECT_EQ(ports.open(kKey, ports.hash(kKey)), pool);
    std::set<L4Port> seen;
    for (int i = 0; i < 1'000; ++i) {
        ASSERT_EQ(ports.open(kKey, ports.hash(kKey)), pool);
        ASSERT_TRUE(seen.insert(*ports.propose(pool, {})).second)
            << "proposals are not repeated, even if nothing came of them";
    }
    // Another protocol has another pool.
    PoolKey udp = kKey;
    udp.protocol = Protocol::Udp;
    EXPECT_NE(ports.open(udp, ports.hash(udp)), pool);
    // Two keys with the same hash stay separate.
    EXPECT_NE(ports.open(udp, ports.hash(kKey)), pool);
}

TEST(PortProposer, NewRulesReopenWhatWasFullAndSpareWhatIsLive_NAT002) {
    const PortRange start{2'048, 4'095};
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, start, 1));
    PortProposer ports = make(memory, start);
    const PoolNumber pool = ports.open(kKey, ports.hash(kKey));
    PortRules rules{.range = {2'048, 2'175}, .version = 1};
    std::set<L4Port> taken;
    const auto take_all = [&] {
        while (const auto port = ports.propose(pool, rules)) {
            if (taken.insert(*port).second) {
                ports.bind(pool, *port);
            } else {
                ports.refuse(pool, *port);
            }
        }
        return taken.size();
    };
    EXPECT_EQ(take_all(), 128u);
    EXPECT_EQ(take_all(), 128u);
    rules = {.range = {2'048, 2'303}, .version = 2};
    EXPECT_EQ(take_all(), 256u) << "newly allowed ports are found";
    rules = {.range = {2'048, 2'303}, .excluded = {2'060, 2'070}, .version = 3};
    for (const L4Port port : {L4Port{2'065}, L4Port{2'100}}) {
        taken.erase(port);
        ports.give_back(pool, port);
    }
    EXPECT_EQ(take_all(), 255u) << "2,100 is found, 2,065 is forbidden now";
    EXPECT_FALSE(taken.contains(2'065));
    rules = {.range = {2'048, 2'303}, .version = 4};
    EXPECT_EQ(take_all(), 256u);
    for (const L4Port port : taken) {
        ports.give_back(pool, port);
    }
    EXPECT_EQ(ports.usage(), (PortProposer::Usage{0, 0, 0}));
}

// Ports of a block that were allowed when the cursor entered it are not allocated after they are forbidden.
TEST(PortProposer, NewRulesHoldInTheMiddleOfABlock_NAT002) {
    const PortRange block{2'048, 2'111};
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, block, 1));
    PortProposer ports = make(memory, block);
    const PoolNumber pool = ports.open(kKey, ports.hash(kKey));
    PortRules rules{.range = block, .version = 1};
    ASSERT_TRUE(ports.propose(pool, rules));
    const L4Port known = ports.propose_in_block(pool, 1);
    EXPECT_TRUE(known >= block.first && known <= block.last) << known;
    EXPECT_EQ(ports.propose_in_block(pool, 2), 0) << "nothing is known of other rules";
    rules = {.range = {2'100, 2'111}, .version = 2};
    for (int i = 0; i < 200; ++i) {
        const auto port = ports.propose(pool, rules);
        ASSERT_TRUE(port);
        EXPECT_GE(*port, 2'100);
        ports.bind(pool, *port);
        ports.give_back(pool, *port);
    }
    EXPECT_EQ(ports.propose_in_block(kShared, 0), 0) << "it serves keys of different rules";
    ASSERT_TRUE(ports.propose(kShared, rules));
    EXPECT_EQ(ports.propose_in_block(kShared, 2), 0);
}

// An exhausted pool costs a new connection nothing: it makes no proposal that must be refused.
TEST(PortProposer, ExhaustionIsRememberedUntilAPortIsFree) {
    const PortRange one{4'000, 4'000};
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, one, 1));
    PortProposer ports = make(memory, one);
    const PortRules rules{.range = one};
    const PoolNumber pool = ports.open(kKey, ports.hash(kKey));
    ASSERT_EQ(ports.propose(pool, rules), 4'000);
    ports.bind(pool, 4'000);
    ASSERT_EQ(ports.propose(pool, rules), 4'000) << "a pool this small remembers nothing yet";
    ports.refuse(pool, 4'000);
    for (int i = 0; i < 10; ++i) {
        ASSERT_EQ(ports.propose(pool, rules), std::nullopt);
    }
    ports.give_back(pool, 4'000);
    EXPECT_EQ(ports.propose(pool, rules), 4'000);
}

TEST(PortProposer, TheSharedPoolStartsAnywhereEachTime) {
    const test::AlignedMemory memory(PortProposer::memory_needed(1'000, {}, 1));
    PortProposer ports = make(memory);
    std::set<uint32_t> blocks;
    for (int i = 0; i < 256; ++i) {
        blocks.insert(*ports.propose(kShared, {}) / kPortsPerBlock);
    }
    EXPECT_GT(blocks.size(), 150u) << "256 draws of 1,008 hit 226";
}

// Pools with few live ports and many refusals have maps on loan. These maps go to pools with many live ports,
// and none is lost.
TEST(PortProposer, MapsOnLoanAreWithdrawnForBusyPools) {
    const PortRange range{1'024, 2'047};  // a pool is entitled to a map from 16 live ports on
    constexpr uint32_t kConnections = 160;
    const test::AlignedMemory memory(PortProposer::memory_needed(kConnections, range, 1));
    PortProposer ports = std::move(*PortProposer::create(memory.span(), kConnections, range, {0}, 1, {5, 6}));
    const PortRules rules{.range = range};
    const auto open = [&](uint8_t endpoint) {
        const PoolKey key{kKey.snat, IpAddr::v4(10, 2, 0, endpoint), 80, Protocol::Tcp};
        return ports.open(key, ports.hash(key));
    };
    // The first pool with a map on loan gets enough live ports to keep it: all that it may use.
    const PortRules few{.range = {1'024, 1'039}};
    const PoolNumber busy = open(200);
    std::vector<L4Port> kept;
    while (kept.size() < 16) {
        const L4Port port = *ports.propose(busy, few);
        if (std::find(kept.begin(), kept.end(), port) != kept.end()) {
            ports.refuse(busy, port);
            continue;
        }
        ports.bind(busy, port);
        kept.push_back(port);
        for (uint32_t i = 0; kept.size() == 10 && i < 3 * PortProposer::kRefusalsInRow; ++i) {
            ports.refuse(busy, kept.front());
        }
    }
    EXPECT_EQ(ports.usage(), (PortProposer::Usage{1, 1, 0}));
    // Forty pools for which the table refuses every port: each is exhausted only after all 1,024 ports were
    // refused.
    const auto starve_forty = [&](uint8_t first) {
        for (uint8_t endpoint = first; endpoint < first + 40; ++endpoint) {
            std::set<L4Port> refused;
            while (const auto port = ports.propose(open(endpoint), rules)) {
                refused.insert(*port);
                ports.refuse(open(endpoint), *port);
            }
            ASSERT_EQ(refused.size(), 1'024u);
        }
    };
    starve_forty(100);
    EXPECT_EQ(ports.usage().maps, 10 + 8u) << "all there are";
    EXPECT_EQ(ports.propose(busy, few), std::nullopt) << "its map still knows that all are taken";
    std::vector<std::pair<PoolNumber, L4Port>> bound;
    for (uint8_t endpoint = 0; endpoint < 9; ++endpoint) {
        for (int i = 0; i < 16; ++i) {
            bound.emplace_back(open(endpoint), *ports.propose(open(endpoint), rules));
            ports.bind(bound.back().first, bound.back().second);
        }
    }
    EXPECT_EQ(ports.usage(), (PortProposer::Usage{10, 18, 0}));
    for (const auto& [pool, port] : bound) {
        ports.give_back(pool, port);
    }
    EXPECT_EQ(ports.usage(), (PortProposer::Usage{1, 9, 0}))
        << "eight are still with pools that nothing was bound of";
    // With one live port less its map is on loan again. Without the map, the pool must propose all ports
    // before the free one.
    ports.give_back(busy, kept.back());
    starve_forty(140);
    EXPECT_NE(ports.propose(busy, few), kept.back());
    kept.pop_back();
    for (const L4Port port : kept) {
        ports.give_back(busy, port);
    }
    EXPECT_EQ(ports.usage(), (PortProposer::Usage{0, 18, 0}));
    // Pools that are replaced by other keys return their maps.
    for (uint16_t port = 1'000; port < 21'000; ++port) {
        const PoolKey key{kKey.snat, kKey.endpoint, port, Protocol::Udp};
        ASSERT_NE(ports.open(key, ports.hash(key)), kShared);
    }
    EXPECT_EQ(ports.usage(), (PortProposer::Usage{0, 0, 0}));
}

}  // namespace port_proposer_test
}  // namespace penstock::nat
