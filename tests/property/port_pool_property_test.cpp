// The SNAT port pool against std::set: what is live per key, under rules that change on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dataplane/nat/port_pool.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/prng.hpp"

namespace penstock::nat {
namespace {

struct Worker {
    Worker(uint32_t connections, uint8_t self, uint32_t workers, test::Prng& prng)
        : memory(PortPool::memory_needed(connections)),
          pool(std::move(*PortPool::create(memory.span(), connections, {self}, workers, {prng.next(), prng.next()}))) {}
    test::AlignedMemory memory;
    PortPool pool;
};

PoolKey key_of(uint32_t endpoint) {
    return {.snat = IpAddr::v4(192, 0, 2, static_cast<uint8_t>(1 + endpoint % 2)),
            .endpoint = IpAddr::v4(10, 1, static_cast<uint8_t>(endpoint >> 8), static_cast<uint8_t>(endpoint)),
            .endpoint_port = 9376,
            .protocol = endpoint % 3 == 0 ? Protocol::Udp : Protocol::Tcp};
}

// The rules, said once more in the plainest way.
bool allowed(const PortRules& rules, uint32_t port) {
    const bool is_node_port = rules.node_port_bits != nullptr && ((rules.node_port_bits[port / 64] >> (port % 64)) & 1) != 0;
    const bool is_excluded = port >= rules.excluded.first && port <= rules.excluded.last;
    return port != 0 && port >= rules.range.first && port <= rules.range.last && !is_excluded && !is_node_port;
}

std::set<L4Port> share_of(const PortRules& rules, const ReplyOwner& owner, uint8_t worker) {
    std::set<L4Port> ports;
    for (uint32_t port = 0; port < 65'536; ++port) {
        if (allowed(rules, port) && owner.of_snat_port(static_cast<L4Port>(port)).value == worker) {
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
    bits[30'080 / 64] = ~0ULL;  // a block of nothing but NodePorts
    return bits;
}

// Every usable port of one endpoint can be had, once, whatever the number of workers; together they have exactly what the rules allow.
TEST(PortPoolProperty, WorkersShareEveryUsablePortExactly_NAT002) {
    test::Prng prng;
    const std::vector<uint64_t> node_ports = random_node_ports(prng);
    const struct {
        const char* name;
        PortRules rules;
        size_t ports;  // 0: not counted by hand
    } cases[] = {
        {"the default", {}, 64'512},
        {"shared with the host", {.excluded = {32'768, 60'999}}, 36'280},
        {"shared, with NodePorts", {.excluded = {32'768, 60'999}, .node_port_bits = node_ports.data()}, 0},
        {"bounds inside blocks", {.range = {1'030, 1'300}, .excluded = {1'100, 1'233}}, 137},
        {"one block", {.range = {2'048, 2'111}}, 64},
        {"one port", {.range = {4'000, 4'000}}, 1},
        {"everything excluded", {.excluded = {1, 65'535}}, 0},
        {"from zero", {.range = {0, 65'535}}, 65'535},
    };
    for (const auto& c : cases) {
        for (const uint32_t workers : {1u, 2u, 3u, 4u, 64u}) {
            SCOPED_TRACE(std::string(c.name) + ", workers " + std::to_string(workers));
            const ReplyOwner owner{.workers = workers};
            size_t total = 0;
            for (uint8_t self = 0; self < workers; ++self) {
                Worker worker(65'536, self, workers, prng);
                std::set<L4Port> taken;
                while (const auto port = worker.pool.take(key_of(1), c.rules)) {
                    ASSERT_TRUE(taken.insert(*port).second) << *port << " was given out twice";
                }
                ASSERT_EQ(taken, share_of(c.rules, owner, self));
                total += taken.size();
                for (const L4Port port : taken) {
                    worker.pool.give_back(key_of(1), port);
                }
                EXPECT_EQ(worker.pool.usage(), (PortPool::Usage{0, 0, 0}));
            }
            if (c.ports != 0) {
                EXPECT_EQ(total, c.ports);
            }
        }
    }
}

// Random takes and returns over many endpoints, under rules that change, until the pool's memory is full and empty again.
TEST(PortPoolProperty, AgreesWithSetsInAnyOrder_NAT002) {
    test::Prng prng;
    constexpr uint32_t kConnections = 3'000;
    const std::vector<uint64_t> node_ports = random_node_ports(prng);
    Worker worker(kConnections, 1, 2, prng);
    PortPool& pool = worker.pool;
    const ReplyOwner owner{.workers = 2};
    std::map<uint32_t, std::set<L4Port>> live;
    std::map<uint32_t, L4Port> last_freed;
    std::vector<std::pair<uint32_t, L4Port>> all;
    PortRules rules{.range = {1'024, 2'400}};
    std::set<L4Port> share = share_of(rules, owner, 1);
    constexpr int kSteps = 200'000;
    int exhausted = 0;
    for (int i = 0; i < kSteps; ++i) {
        if (prng.one_in(20'000)) {
            // Ranges of a thousand ports or so, half of them this worker's, so that the busy endpoints run out.
            const uint64_t first = prng.one_in(2) ? prng.between(1'024, 3'000) : prng.between(29'500, 31'000);
            rules = {.range = {static_cast<L4Port>(first), static_cast<L4Port>(first + prng.between(200, 1'500))},
                     .excluded = {static_cast<L4Port>(prng.between(1'024, 3'000)), static_cast<L4Port>(prng.between(2'000, 4'000))},
                     .node_port_bits = prng.one_in(2) ? node_ports.data() : nullptr,
                     .version = rules.version + 1};
            share = share_of(rules, owner, 1);
        }
        const bool takes = prng.below(100) < ((i / (kSteps / 8)) % 2 == 0 ? 75u : 25u);
        if (takes || all.empty()) {
            // Mostly three busy endpoints, so that they run out, among hundreds of idle ones.
            const auto endpoint = static_cast<uint32_t>(prng.one_in(4) ? prng.below(600) : prng.below(3));
            const auto port = pool.take(key_of(endpoint), rules);
            std::set<L4Port>& used = live[endpoint];
            if (!port) {
                if (all.size() < kConnections) {
                    ++exhausted;
                    for (const L4Port candidate : share) {
                        ASSERT_TRUE(used.contains(candidate)) << candidate << " was free and not given";
                    }
                }
                continue;
            }
            ASSERT_LT(all.size(), kConnections);
            ASSERT_TRUE(share.contains(*port)) << *port;
            ASSERT_TRUE(used.insert(*port).second) << *port << " is in use already";
            // Rest: the port given back last comes again only when it is the only one left.
            if (last_freed.contains(endpoint) && last_freed[endpoint] == *port) {
                const size_t others =
                    static_cast<size_t>(std::count_if(share.begin(), share.end(), [&](L4Port p) { return !used.contains(p); }));
                // A pool that lost its node to another key has forgotten; with 3,001 nodes and 600 keys none does.
                ASSERT_EQ(others, 0u) << *port << " came back at once while others were free";
            }
            all.emplace_back(endpoint, *port);
        } else {
            std::swap(all[prng.below(all.size())], all.back());
            const auto [endpoint, port] = all.back();
            all.pop_back();
            pool.give_back(key_of(endpoint), port);
            live[endpoint].erase(port);
            last_freed[endpoint] = port;
        }
        ASSERT_EQ(pool.in_use(), all.size());
        if (i % 5'000 == 0) {
            PortPool::Usage expected{};
            for (const auto& [endpoint, ports] : live) {
                std::set<uint32_t> blocks;
                for (const L4Port port : ports) {
                    blocks.insert(port / kPortsPerBlock);
                }
                expected.open_blocks += static_cast<uint32_t>(blocks.size());
                expected.pools_live += ports.empty() ? 0 : 1;
                expected.full_maps += ports.size() >= 64 ? 1 : 0;
            }
            ASSERT_EQ(pool.usage(), expected);
        }
    }
    for (const auto& [endpoint, port] : all) {
        pool.give_back(key_of(endpoint), port);
    }
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_EQ(pool.usage(), (PortPool::Usage{0, 0, 0}));
    EXPECT_GT(exhausted, 1'000) << "the test was meant to reach the end of the ports often";
}

// More keys than nodes: cursors of idle pools give way, live ports never do.
TEST(PortPoolProperty, KeysMayOutnumberNodes) {
    test::Prng prng;
    Worker worker(16, 0, 1, prng);
    const PortRules rules{.range = {1'024, 1'151}};
    std::map<std::pair<uint32_t, L4Port>, bool> live;
    for (int i = 0; i < 50'000; ++i) {
        if (prng.one_in(2) || live.empty()) {
            const auto endpoint = static_cast<uint32_t>(prng.below(500));
            const auto port = worker.pool.take(key_of(endpoint), rules);
            ASSERT_EQ(port.has_value(), live.size() < 16);
            if (port) {
                const bool is_new = live.emplace(std::pair{endpoint, *port}, true).second;
                ASSERT_TRUE(is_new);
            }
        } else {
            auto at = live.lower_bound({static_cast<uint32_t>(prng.below(500)), 0});
            at = at == live.end() ? live.begin() : at;
            worker.pool.give_back(key_of(at->first.first), at->first.second);
            live.erase(at);
        }
    }
}

}  // namespace
}  // namespace penstock::nat
