// SPDX-License-Identifier: Apache-2.0
// Proposed SNAT ports, compared with the simplest connection table: a set of taken (key, port).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/nat/port_proposer.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/reply_hashes.hpp"

namespace penstock::nat {
namespace port_proposer_property_test {

// Every third is of UDP; those from 2^24 on are of IPv6.
PoolKey key_of(uint32_t endpoint) {
    const auto byte = [&](uint32_t n) { return static_cast<uint8_t>(endpoint >> 8 * n); };
    if (endpoint >= 1U << 24) {
        return {.snat = IpAddr::v6({0xfd, 0, 0, 0, 0, 0, 0, 1}),
                .endpoint =
                    IpAddr::v6({0xfd, 0, 0, 0, byte(3), byte(2), byte(1), byte(0), 0, 0, 0, 0, 0, 0, 0, 7}),
                .endpoint_port = 9376,
                .protocol = endpoint % 3 == 0 ? Protocol::Udp : Protocol::Tcp};
    }
    return {.snat = IpAddr::v4(192, 0, 2, static_cast<uint8_t>(1 + endpoint % 2)),
            .endpoint = IpAddr::v4(10, static_cast<uint8_t>(endpoint >> 16),
                                   static_cast<uint8_t>(endpoint >> 8), static_cast<uint8_t>(endpoint)),
            .endpoint_port = 9376,
            .protocol = endpoint % 3 == 0 ? Protocol::Udp : Protocol::Tcp};
}

struct Bound {
    uint32_t endpoint;
    L4Port port;
    PoolNumber pool;
};

// A worker with a set as its connection table. Each new connection is handled as in the packet path.
struct Worker {
    static constexpr PortRange kAll{0, 65'535};
    Worker(uint32_t connections, uint8_t self, uint32_t workers, const HashKey& secret,
           PortRange range = kAll, const ReplyRules* hashes = nullptr)
        : memory(PortProposer::memory_needed(connections, range, workers, hashes)),
          ports(std::move(
              *PortProposer::create(memory.span(), connections, range, {self}, workers, secret, hashes))) {}

    std::optional<Bound> take(uint32_t endpoint, PortRules rules) {
        const PoolKey key = key_of(endpoint);
        rules.own = ports.own_ports(key, {});
        const PoolNumber pool = ports.open(key, ports.hash(key));
        refusals = 0;
        while (const auto port = ports.propose(pool, rules)) {
            if (table.emplace(endpoint, *port).second) {
                ports.bind(pool, *port);
                return Bound{endpoint, *port, pool};
            }
            ports.refuse(pool, *port);
            ++refusals;
        }
        return std::nullopt;
    }
    void give_back(const Bound& bound) {
        table.erase({bound.endpoint, bound.port});
        ports.give_back(bound.pool, bound.port);
    }

    test::AlignedMemory memory;
    PortProposer ports;
    std::set<std::pair<uint32_t, L4Port>> table;
    uint32_t refusals = 0;  // during the last take()
};

HashKey drawn(test::Prng& prng) {
    return {prng.next(), prng.next()};
}

// The rules, implemented again in the simplest form.
bool allowed(const PortRules& rules, uint32_t port) {
    const bool is_node_port =
        rules.node_port_bits != nullptr && ((rules.node_port_bits[port / 64] >> (port % 64)) & 1) != 0;
    const bool is_excluded = port >= rules.excluded.first && port <= rules.excluded.last;
    const bool is_in_part = ((rules.in_block >> (port % 64)) & 1) != 0;
    return port != 0 && is_in_part && port >= rules.range.first && port <= rules.range.last && !is_excluded &&
           !is_node_port;
}

// The owner worker of an endpoint's replies to a port: by blocks, or by a hash for the protocols that it
// covers.
struct Owners {
    uint32_t workers = 1;
    std::optional<ReplyHash> hash = {};
    ReplyRules rules = {};
    std::optional<Toeplitz> toeplitz = {};

    static Owners by_hash(ReplyHash hash, uint32_t workers) {
        Owners owners{.workers = workers, .hash = std::move(hash)};
        const PortReplyHash of_port{{0}, &*owners.hash};
        owners.rules = std::move(*ReplyRules::create({&of_port, 1}, workers));
        owners.toeplitz = Toeplitz(owners.hash->key);
        return owners;
    }
    [[nodiscard]] uint8_t of(uint32_t endpoint, L4Port port) const {
        const PoolKey key = key_of(endpoint);
        if (!hash || !hash->covers(key.snat.family(), key.protocol)) {
            return ReplyOwner{.workers = workers}.of_snat_port(port).value;
        }
        const packet::FlowKey reply{key.endpoint, key.snat, key.endpoint_port, port, key.protocol};
        return hash->worker_of[toeplitz->of(reply) % hash->worker_of.size()].value;
    }
    [[nodiscard]] const ReplyRules* hashes() const { return hash ? &rules : nullptr; }
};

// A hash that covers TCP only, so that UDP uses the blocks beside it. Drawn again until it has no obstacle.
ReplyHash random_hash(test::Prng& prng, uint32_t workers) {
    ReplyHash hash{.tcp4 = true, .tcp6 = true};
    do {
        hash.key = prng.bytes(prng.one_in(2) ? 40 : 52);
        hash.worker_of.resize(std::max<uint64_t>(std::bit_ceil(2 * workers), 64ULL << prng.below(5)));
        for (size_t entry = 0; entry < hash.worker_of.size(); ++entry) {
            hash.worker_of[entry] = {static_cast<uint8_t>(entry % workers)};
        }
        for (size_t entry = hash.worker_of.size(); entry > 1; --entry) {
            std::swap(hash.worker_of[entry - 1], hash.worker_of[prng.below(entry)]);
        }
    } while (!obstacle_of(hash, workers).empty());
    return hash;
}

std::set<L4Port> share_of(const PortRules& rules, const Owners& owners, uint32_t endpoint, uint8_t worker) {
    std::set<L4Port> ports;
    for (uint32_t port = 0; port < 65'536; ++port) {
        if (allowed(rules, port) && owners.of(endpoint, static_cast<L4Port>(port)) == worker) {
            ports.insert(static_cast<L4Port>(port));
        }
    }
    return ports;
}

std::vector<uint64_t> random_node_ports(test::Prng& prng) {
    std::vector<uint64_t> bits(kPortBlocks);
    for (uint32_t port = 30'000; port <= 32'767; ++port) {
        bits[port / 64] |= uint64_t{prng.one_in(3)} << (port % 64);
    }
    bits[30'080 / 64] = ~0ULL;  // a block of NodePorts only
    return bits;
}

// Every usable port of one endpoint can be used exactly once, for any number of workers; together the workers
// have exactly the ports that the rules allow.
TEST(PortProposerProperty, WorkersShareEveryUsablePortExactly_NAT002) {
    test::Prng prng;
    const std::vector<uint64_t> node_ports = random_node_ports(prng);
    std::vector<uint64_t> all_but_one(kPortBlocks, ~0ULL);
    all_but_one[40'000 / 64] &= ~(1ULL << (40'000 % 64));
    const struct {
        const char* name;
        PortRange range;  // at start
        PortRules rules;
        size_t ports;  // 0: not computed by hand
    } cases[] = {
        {"the default", {}, {}, 64'512},
        {"shared with the host", {}, {.excluded = {32'768, 60'999}}, 36'280},
        {"shared, with NodePorts",
         {},
         {.excluded = {32'768, 60'999}, .node_port_bits = node_ports.data()},
         0},
        {"bounds inside blocks", {1'030, 1'300}, {.range = {1'030, 1'300}, .excluded = {1'100, 1'233}}, 137},
        {"narrower than at start", {}, {.range = {1'030, 1'300}}, 271},
        {"one block", {2'048, 2'111}, {.range = {2'048, 2'111}}, 64},
        {"one port", {4'000, 4'000}, {.range = {4'000, 4'000}}, 1},
        {"one port of all", {}, {.node_port_bits = all_but_one.data()}, 1},
        {"everything excluded", {}, {.excluded = {1, 65'535}}, 0},
        {"nothing but zero", {0, 0}, {.range = {0, 0}}, 0},
        {"from zero", {0, 65'535}, {.range = {0, 65'535}}, 65'535},
        {"the primary's part", {}, {.in_block = ports_in_block(PortPart::Primary)}, 56'448},
        {"the heir's part", {}, {.in_block = ports_in_block(PortPart::Heir)}, 8'064},
        {"the heir's part, shared with the host, with NodePorts",
         {},
         {.excluded = {32'768, 60'999},
          .node_port_bits = node_ports.data(),
          .in_block = ports_in_block(PortPart::Heir)},
         0},
        {"an address of others", {}, {.in_block = ports_in_block(PortPart::None)}, 0},
    };
    const auto check = [&](const auto& c, const Owners& owners, uint32_t endpoint) {
        const uint32_t workers = owners.workers;
        SCOPED_TRACE(std::string(c.name) + ", workers " + std::to_string(workers) + ", endpoint " +
                     std::to_string(endpoint) +
                     (owners.hash
                          ? ", by hash with " + std::to_string(owners.hash->worker_of.size()) + " entries"
                          : ""));
        size_t total = 0;
        for (uint8_t self = 0; self < workers; ++self) {
            Worker worker(65'536, self, workers, drawn(prng), c.range, owners.hashes());
            std::set<L4Port> taken;
            std::vector<Bound> all;
            while (const auto bound = worker.take(endpoint, c.rules)) {
                taken.insert(bound->port);
                all.push_back(*bound);
            }
            ASSERT_EQ(taken, share_of(c.rules, owners, endpoint, self));
            // Exhausted again, but not for long: a single released port is found.
            ASSERT_FALSE(worker.take(endpoint, c.rules));
            if (!all.empty()) {
                worker.give_back(all[all.size() / 2]);
                const auto found = worker.take(endpoint, c.rules);
                ASSERT_TRUE(found && found->port == all[all.size() / 2].port);
            }
            total += taken.size();
            for (const Bound& bound : all) {
                worker.give_back(bound);
            }
            EXPECT_EQ(worker.ports.usage(), (PortProposer::Usage{0, 0, 0}));
        }
        if (c.ports != 0) {
            EXPECT_EQ(total, c.ports);
        }
    };
    for (const auto& c : cases) {
        for (const uint32_t workers : {1u, 2u, 3u, 64u}) {
            check(c, {.workers = workers}, 1);
        }
        for (const uint32_t workers : {2u, 3u, 4u, 7u, 16u}) {
            const Owners owners = Owners::by_hash(random_hash(prng, workers), workers);
            const auto any = static_cast<uint32_t>(prng.below(1U << 22));
            check(c, owners, any * 3 + 1);               // TCP over IPv4
            check(c, owners, any * 3 + 1 + (3U << 24));  // and over IPv6
        }
        check(c, Owners::by_hash(random_hash(prng, 3), 3), 6);  // UDP, which the hash does not cover: blocks
        check(c, Owners::by_hash(random_hash(prng, 64), 64), 1);
    }
}

// The primary and the heir of a share may have different numbers of workers, and each its own NICs.
TEST(PortProposerProperty, TheGatewaysOfAShareUseNoPortTwice_NAT002) {
    test::Prng prng;
    const std::vector<uint64_t> node_ports = random_node_ports(prng);
    for (int round = 0; round < 6; ++round) {
        const PortRules rules{.node_port_bits = prng.one_in(2) ? node_ports.data() : nullptr};
        const auto endpoint = static_cast<uint32_t>(prng.below(1U << 22)) * 3 + 1;  // TCP over IPv4
        std::set<L4Port> all;
        for (const PortPart part : {PortPart::Primary, PortPart::Heir}) {
            PortRules of_part = rules;
            of_part.in_block = ports_in_block(part);
            const auto workers = static_cast<uint32_t>(prng.between(1, 8));
            const Owners owners = workers > 1 && prng.one_in(2)
                                      ? Owners::by_hash(random_hash(prng, workers), workers)
                                      : Owners{.workers = workers};
            for (uint8_t self = 0; self < workers; ++self) {
                Worker worker(65'536, self, workers, drawn(prng), PortRange{}, owners.hashes());
                while (const auto bound = worker.take(endpoint, of_part)) {
                    ASSERT_TRUE(all.insert(bound->port).second) << bound->port;
                }
            }
        }
        ASSERT_EQ(all, share_of(rules, {}, endpoint, 0)) << "and together all of them";
    }
}

// Random connections to many endpoints, under rules that change, until the ports are exhausted and all free
// again.
void agrees_with_sets(test::Prng& prng, const Owners& owners) {
    constexpr uint32_t kConnections = 3'000;
    const std::vector<uint64_t> node_ports = random_node_ports(prng);
    Worker worker(kConnections, 1, 2, drawn(prng), Worker::kAll, owners.hashes());
    std::map<uint32_t, uint32_t> live;
    std::vector<Bound> all;
    PortRules rules{.range = {1'024, 2'400}};
    constexpr int kSteps = 200'000;
    int exhausted = 0;
    uint32_t maps_most = 0;
    for (int i = 0; i < kSteps; ++i) {
        if (prng.one_in(20'000)) {
            // Ranges of about a thousand ports, half of them this worker's, so that the busy endpoints
            // exhaust them.
            const uint64_t first = prng.one_in(2) ? prng.between(1'024, 3'000) : prng.between(29'500, 31'000);
            rules = {
                .range = {static_cast<L4Port>(first), static_cast<L4Port>(first + prng.between(200, 1'500))},
                .excluded = {static_cast<L4Port>(prng.between(1'024, 3'000)),
                             static_cast<L4Port>(prng.between(2'000, 4'000))},
                .node_port_bits = prng.one_in(2) ? node_ports.data() : nullptr,
                .in_block = ports_in_block(!prng.one_in(3)  ? PortPart::All
                                           : prng.one_in(2) ? PortPart::Primary
                                                            : PortPart::Heir),
                .version = rules.version + 1};
        }
        const bool takes = prng.below(100) < ((i / (kSteps / 8)) % 2 == 0 ? 75u : 25u);
        if ((takes || all.empty()) && all.size() < kConnections) {
            // Mostly three busy endpoints, so that they exhaust their ports, among hundreds of others.
            const auto endpoint = static_cast<uint32_t>(prng.one_in(4) ? prng.below(600) : prng.below(3));
            const auto bound = worker.take(endpoint, rules);
            if (!bound) {
                ++exhausted;
                for (uint32_t candidate = rules.range.first; candidate <= rules.range.last; ++candidate) {
                    if (!allowed(rules, candidate) ||
                        owners.of(endpoint, static_cast<L4Port>(candidate)) != 1) {
                        continue;
                    }
                    ASSERT_TRUE(worker.table.contains({endpoint, static_cast<L4Port>(candidate)}))
                        << candidate << " was free and not proposed";
                }
                continue;
            }
            ASSERT_TRUE(allowed(rules, bound->port) && owners.of(endpoint, bound->port) == 1) << bound->port;
            ASSERT_NE(bound->pool, kShared) << "600 keys, 4,096 pools";
            all.push_back(*bound);
            ++live[endpoint];
        } else if (!all.empty()) {
            std::swap(all[prng.below(all.size())], all.back());
            worker.give_back(all.back());
            --live[all.back().endpoint];
            all.pop_back();
        }
        ASSERT_EQ(worker.ports.in_use(), all.size());
        maps_most = std::max(maps_most, worker.ports.usage().maps);
        if (i % 5'000 == 0) {
            const auto pools_live =
                std::count_if(live.begin(), live.end(), [](const auto& entry) { return entry.second > 0; });
            ASSERT_EQ(worker.ports.usage().pools_live, pools_live);
        }
    }
    for (const Bound& bound : all) {
        worker.give_back(bound);
    }
    EXPECT_EQ(worker.ports.in_use(), 0u);
    EXPECT_EQ(worker.ports.usage(), (PortProposer::Usage{0, 0, 0}));
    EXPECT_GT(exhausted, 1'000) << "the test was meant to reach the end of the ports often";
    EXPECT_GE(maps_most, 3u) << "the test was meant to have maps";
}
TEST(PortProposerProperty, AgreesWithSetsInAnyOrder_NAT002) {
    test::Prng prng;
    agrees_with_sets(prng, {.workers = 2});
}
TEST(PortProposerProperty, AgreesWithSetsInAnyOrderByHash_NAT002) {
    test::Prng prng;
    agrees_with_sets(prng, Owners::by_hash(random_hash(prng, 2), 2));
}

// With further free ports, a released one is proposed again after all others have been, and from then on in
// the same order.
void a_freed_port_rests(const Owners& owners, PortRange range) {
    const PortRules rules{.range = range};
    const size_t ports = share_of(rules, owners, 1, 0).size();
    for (const uint32_t taken : {0u, 60u, 1'500u}) {  // none live; 12 live and no map; 300 live and a map
        SCOPED_TRACE(taken);
        Worker worker(65'536, 0, owners.workers, {7, 11}, range, owners.hashes());
        std::vector<Bound> all;
        for (uint32_t i = 0; i < taken; ++i) {
            all.push_back(*worker.take(1, rules));
        }
        size_t stay = 0;
        for (size_t i = 0; i < all.size(); ++i) {
            if (i % 5 != 0) {
                worker.give_back(all[i]);
            } else {
                ++stay;
            }
        }
        EXPECT_EQ(worker.ports.usage().maps, taken == 1'500 ? 1u : 0u);
        std::vector<L4Port> rounds[2];
        for (std::vector<L4Port>& round : rounds) {
            for (size_t i = 0; i < ports - stay; ++i) {
                const auto bound = worker.take(1, rules);
                ASSERT_TRUE(bound);
                round.push_back(bound->port);
                worker.give_back(*bound);
            }
            ASSERT_EQ(std::set<L4Port>(round.begin(), round.end()).size(), round.size())
                << "one came twice in a round";
        }
        EXPECT_EQ(rounds[0], rounds[1]);
        EXPECT_EQ(worker.ports.usage().maps, taken == 1'500 ? 1u : 0u)
            << "a few refusals a round are no reason for a map";
    }
}
TEST(PortProposerProperty, AFreedPortRestsUntilTheCursorHasGoneRound_NAT002) {
    a_freed_port_rests({}, {1'024, 5'119});
}
TEST(PortProposerProperty, AFreedPortRestsUntilTheCursorHasGoneRoundByHash_NAT002) {
    test::Prng prng;
    a_freed_port_rests(Owners::by_hash(random_hash(prng, 3), 3), {1'024, 15'999});
}

// Connections that were opened consecutively and stay open all block the cursor when it returns. It skips
// them, without hundreds of refusals.
void ports_taken_in_a_row_are_jumped(const Owners& owners) {
    Worker worker(65'536, 0, owners.workers, {3, 5}, PortRange{}, owners.hashes());
    std::vector<Bound> stay;
    for (int i = 0; i < 1'000; ++i) {
        stay.push_back(*worker.take(1, {}));
    }
    ASSERT_EQ(worker.ports.usage().maps, 0u);
    uint32_t most = 0;
    for (int i = 0; i < 3 * 65'536; ++i) {
        const auto bound = worker.take(1, {});
        ASSERT_TRUE(bound);
        most = std::max(most, worker.refusals);
        worker.give_back(*bound);
    }
    EXPECT_GE(most, PortProposer::kRefusalsInRow) << "the cursor was meant to meet them";
    EXPECT_LT(most, 2 * PortProposer::kRefusalsInRow);
}
TEST(PortProposerProperty, PortsTakenInARowAreJumped) {
    ports_taken_in_a_row_are_jumped({});
}
TEST(PortProposerProperty, PortsTakenInARowAreJumpedByHash) {
    ports_taken_in_a_row_are_jumped(Owners::by_hash(test::hash_in_turn(128, 4), 4));
}

// More keys than pools, few of them live at a time: cursors are given up, live ports never are.
TEST(PortProposerProperty, KeysMayOutnumberPools) {
    test::Prng prng;
    Worker worker(64, 0, 1, drawn(prng));
    const PortRules rules{.range = {1'024, 1'087}};
    std::vector<Bound> all;
    for (int i = 0; i < 100'000; ++i) {
        if (all.size() < 64 && (prng.one_in(2) || all.empty())) {
            const auto bound = worker.take(static_cast<uint32_t>(prng.below(20'000)), rules);
            ASSERT_TRUE(bound);
            all.push_back(*bound);
        } else {
            std::swap(all[prng.below(all.size())], all.back());
            worker.give_back(all.back());
            all.pop_back();
        }
    }
    for (const Bound& bound : all) {
        worker.give_back(bound);
    }
    EXPECT_EQ(worker.ports.usage(), (PortProposer::Usage{0, 0, 0}));
}

// More live keys than pools: the other keys use the shared pool, also without duplicates. Its released ports
// are found again.
TEST(PortProposerProperty, TheSharedPoolServesKeysWithoutAPool_NAT002) {
    test::Prng prng;
    const PortRange range{2'048, 2'247};  // 200 ports
    const PortRules rules{.range = range};
    Worker worker(65'536, 0, 1, drawn(prng), range);
    constexpr uint32_t kPools = 65'536 / 8;
    std::vector<Bound> owned;
    std::vector<Bound> shared;
    uint32_t endpoint = 100;
    while (worker.ports.usage().pools_live < kPools) {
        const auto bound = worker.take(endpoint++, rules);
        ASSERT_TRUE(bound);
        (bound->pool == kShared ? shared : owned).push_back(*bound);
    }
    EXPECT_EQ(owned.size(), kPools);

    // Every pool is live, so this key has none. It still gets all 200 ports, and no more.
    std::vector<Bound> last;
    while (const auto bound = worker.take(1, rules)) {
        ASSERT_EQ(bound->pool, kShared);
        last.push_back(*bound);
    }
    EXPECT_EQ(last.size(), 200u);
    EXPECT_EQ(worker.ports.usage().shared_live, shared.size() + last.size());

    // Then it gets a pool of its own, which finds out by refusals that no port is free...
    for (const Bound& bound : owned) {
        worker.give_back(bound);
    }
    ASSERT_FALSE(worker.take(1, rules));
    // ...and discards this information one block at a time, otherwise it would never find released ports.
    for (const Bound& bound : last) {
        worker.give_back(bound);
    }
    std::vector<Bound> regained;
    for (int attempts = 0; attempts < 1'000 && regained.size() < 200; ++attempts) {
        if (const auto bound = worker.take(1, rules)) {
            ASSERT_NE(bound->pool, kShared);
            regained.push_back(*bound);
        }
        ASSERT_LE(worker.refusals, kPortsPerBlock);
    }
    EXPECT_EQ(regained.size(), 200u);
    for (const std::vector<Bound>* bounds : {&shared, &regained}) {
        for (const Bound& bound : *bounds) {
            worker.give_back(bound);
        }
    }
    EXPECT_EQ(worker.ports.usage(), (PortProposer::Usage{0, 0, 0}));
    EXPECT_EQ(worker.ports.in_use(), 0u);
}

}  // namespace port_proposer_property_test
}  // namespace penstock::nat
