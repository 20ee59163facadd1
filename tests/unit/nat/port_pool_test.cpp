#include "dataplane/nat/port_pool.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/aligned_memory.hpp"

namespace penstock::nat {
namespace {

const PoolKey kKey{IpAddr::v4(192, 0, 2, 1), IpAddr::v4(10, 1, 0, 1), 9376, Protocol::Tcp};

struct Fixture {
    explicit Fixture(uint32_t connections = 1'000, uint8_t self = 0, uint32_t workers = 1, HashKey secret = HashKey::random())
        : memory(PortPool::memory_needed(connections)),
          pool(std::move(*PortPool::create(memory.span(), connections, {self}, workers, secret))) {}
    test::AlignedMemory memory;
    PortPool pool;
};

TEST(PortPool, APortIsBusyOnlyTowardsItsEndpoint_NAT002) {
    Fixture f;
    const PortRules one_port{.range = {4'000, 4'000}};
    PoolKey keys[] = {kKey, kKey, kKey, kKey, kKey};
    keys[1].snat = IpAddr::v4(192, 0, 2, 2);
    keys[2].endpoint = IpAddr::v4(10, 1, 0, 2);
    keys[3].endpoint_port = 9377;
    keys[4].protocol = Protocol::Udp;
    for (const PoolKey& key : keys) {
        EXPECT_EQ(f.pool.take(key, one_port), 4'000);
        EXPECT_EQ(f.pool.take(key, one_port), std::nullopt);
    }
    f.pool.give_back(keys[2], 4'000);
    EXPECT_EQ(f.pool.take(keys[1], one_port), std::nullopt);
    EXPECT_EQ(f.pool.take(keys[2], one_port), 4'000);
}

TEST(PortPool, AFreedPortRestsWhileOthersAreFree) {
    Fixture f;
    // One connection at a time, as a health checker makes them: a lap over the two ports' worth of space.
    const PortRules two_ports{.range = {4'000, 4'001}};
    L4Port before = 0;
    for (int i = 0; i < 100; ++i) {
        const auto port = f.pool.take(kKey, two_ports);
        ASSERT_TRUE(port);
        ASSERT_NE(*port, before);
        before = *port;
        f.pool.give_back(kKey, *port);
    }
}

// One lap hands out every port before any comes again, though each is given back at once.
TEST(PortPool, PortsComeAgainOnlyAfterALap) {
    Fixture f;
    const PortRules rules{.range = {2'048, 4'095}};
    std::set<L4Port> seen;
    for (int i = 0; i < 2'048; ++i) {
        const auto port = f.pool.take(kKey, rules);
        ASSERT_TRUE(port);
        ASSERT_TRUE(seen.insert(*port).second) << "after " << i << " takes";
        f.pool.give_back(kKey, *port);
    }
    EXPECT_EQ(seen.size(), 2'048u);
}

// RFC 6056: where a pool starts, and how it goes on, follows from the secret.
TEST(PortPool, TheOrderIsTheSecrets) {
    const auto first_ports = [](HashKey secret) {
        Fixture f(1'000, 0, 1, secret);
        std::vector<L4Port> ports;
        for (int i = 0; i < 32; ++i) {
            ports.push_back(*f.pool.take(kKey, {}));
        }
        return ports;
    };
    EXPECT_EQ(first_ports({1, 2}), first_ports({1, 2}));
    std::set<L4Port> starts;
    for (uint64_t k = 0; k < 200; ++k) {
        starts.insert(first_ports({k, 7}).front());
    }
    EXPECT_GE(starts.size(), 190u) << "200 draws from 64,512 ports";
    const std::vector<L4Port> ports = first_ports({1, 2});
    EXPECT_FALSE(std::is_sorted(ports.begin(), ports.end()));
}

// The usable halves on both sides of the host's range are starts alike, and no port behind the gap is favoured.
TEST(PortPool, StartsAreEvenlySpreadAroundExcludedPorts) {
    Fixture f(10'000);
    const PortRules rules{.excluded = {32'768, 60'999}};
    int in_first_block_behind = 0;
    int below = 0;
    for (uint32_t i = 0; i < 2'000; ++i) {
        PoolKey key = kKey;
        key.endpoint = IpAddr::v4(Be32::from_host(0x0a000000 + i));
        const uint32_t port = *f.pool.take(key, rules);
        in_first_block_behind += port / kPortsPerBlock == 61'000 / kPortsPerBlock ? 1 : 0;
        below += port < 32'768 ? 1 : 0;
    }
    EXPECT_LT(in_first_block_behind, 30);  // 3.5 expected
    EXPECT_NEAR(below, 2'000 * 31'744 / 36'280, 150);
}

TEST(PortPool, RulesThatGrowNarrowerAreObeyedAtOnce) {
    Fixture f;
    PortRules rules{.range = {2'048, 2'111}};
    ASSERT_TRUE(f.pool.take(kKey, rules));
    std::vector<uint64_t> node_ports(kPortBlocks);
    node_ports[2'048 / 64] = ~uint64_t{1};  // only 2048 is left
    rules.node_port_bits = node_ports.data();
    rules.version = 1;
    std::optional<L4Port> port = f.pool.take(kKey, rules);
    if (port) {
        EXPECT_EQ(*port, 2'048);
    }
    EXPECT_EQ(f.pool.take(kKey, rules), std::nullopt);
}

// Blocks marked as full under old rules are looked at again under new ones.
TEST(PortPool, RulesThatGrowWiderAreObeyedAtOnce) {
    Fixture f;
    std::vector<uint64_t> node_ports(kPortBlocks);
    node_ports[2'176 / 64] = 0xff;
    PortRules rules{.range = {2'048, 2'239}, .node_port_bits = node_ports.data()};
    uint32_t taken = 0;
    while (f.pool.take(kKey, rules)) {
        ++taken;
    }
    EXPECT_EQ(taken, 3 * 64u - 8);
    rules.node_port_bits = nullptr;
    rules.version = 1;
    while (f.pool.take(kKey, rules)) {
        ++taken;
    }
    EXPECT_EQ(taken, 3 * 64u);
}

TEST(PortPool, RefusesWhatCannotBeBuilt) {
    const test::AlignedMemory memory(PortPool::memory_needed(100) + kCacheLine);
    EXPECT_EQ(PortPool::create(memory.span().first(PortPool::memory_needed(100) - 1), 100, {0}, 1, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(PortPool::create(memory.span().subspan(4), 100, {0}, 1, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(PortPool::create(memory.span(), 0, {0}, 1, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(PortPool::create(memory.span(), 100, {1}, 1, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(PortPool::create(memory.span(), 100, {0}, 0, {}).error().code, Errc::InvalidArgument);
}

}  // namespace
}  // namespace penstock::nat
