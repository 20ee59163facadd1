#include "dataplane/nat/snat.hpp"

#include <gtest/gtest.h>

#include <set>

#include "dataplane/nat/masquerade.hpp"
#include "tests/support/aligned_memory.hpp"

namespace penstock::nat {
namespace {

constexpr NicPortId kOutside{0}, kInside{1};
const IpAddr kSnatA = IpAddr::v4(192, 0, 2, 1), kSnatB = IpAddr::v4(192, 0, 2, 2);
const IpAddr kSnat6 = *IpAddr::parse("2001:db8::1");
const IpAddr kEndpoint = IpAddr::v4(10, 1, 0, 1);

class SnatTest : public testing::Test {
 protected:
    [[nodiscard]] BindRequest request(uint64_t client_hash = 0) const { return {kEndpoint, 9376, Protocol::Tcp, kInside, client_hash}; }
    std::expected<Binding, DropReason> bind(const BindRequest& request) { return nat::bind(pool, config, host, request); }

    test::AlignedMemory memory{PortPool::memory_needed(1'000)};
    PortPool pool = std::move(*PortPool::create(memory.span(), 1'000, {0}, 1, HashKey::random()));
    SnatConfig config;
    HostPorts host;
};

TEST_F(SnatTest, AnAddressFitsByFamilyAndEgress_NAT002) {
    const struct {
        const char* name;
        std::vector<SnatAddress> addresses;
        std::expected<IpAddr, DropReason> expected;
    } cases[] = {
        {"none", {}, std::unexpected(DropReason::NoSnatAddress)},
        {"named by the operator", {{.address = kSnatA}}, kSnatA},
        {"the egress twin's own", {{.address = kSnatA, .egress = kInside}}, kSnatA},
        {"another twin's", {{.address = kSnatA, .egress = kOutside}}, std::unexpected(DropReason::NoSnatAddress)},
        {"the right one of two twins", {{.address = kSnatA, .egress = kOutside}, {.address = kSnatB, .egress = kInside}}, kSnatB},
        {"another family", {{.address = kSnat6}}, std::unexpected(DropReason::NoSnatAddress)},
        {"one of each family", {{.address = kSnat6}, {.address = kSnatB}}, kSnatB},
    };
    for (const auto& c : cases) {
        config.addresses = c.addresses;
        const auto got = bind(request());
        ASSERT_EQ(got.has_value(), c.expected.has_value()) << c.name;
        if (got) {
            EXPECT_EQ(got->address, *c.expected) << c.name;
            EXPECT_EQ(config.addresses[got->index].address, got->address) << c.name;
        } else {
            EXPECT_EQ(got.error(), c.expected.error()) << c.name;
        }
    }
}

TEST_F(SnatTest, AClientKeepsItsAddressAndClientsAreShared) {
    config.addresses = {{.address = kSnatA}, {.address = kSnat6}, {.address = kSnatB}};
    for (uint64_t hash = 0; hash < 10; ++hash) {
        const IpAddr expected = hash % 2 == 0 ? kSnatA : kSnatB;
        EXPECT_EQ(bind(request(hash))->address, expected);
        EXPECT_EQ(bind(request(hash))->address, expected);
    }
}

// explain names the address without taking a port: it must be the one that bind() turns to first.
TEST_F(SnatTest, TheFirstChoiceIsWhatIsBound) {
    EXPECT_EQ(first_choice(config, request()), nullptr);
    config.addresses = {{.address = kSnat6}, {.address = kSnatA}, {.address = kSnatB}, {.address = kSnatB, .egress = kOutside}};
    for (uint64_t hash = 0; hash < 10; ++hash) {
        const SnatAddress* choice = first_choice(config, request(hash));
        ASSERT_NE(choice, nullptr);
        EXPECT_EQ(choice, &config.addresses[bind(request(hash))->index]);
    }
    EXPECT_EQ(pool.in_use(), 10u);
}

TEST_F(SnatTest, TheNextAddressServesWhenOneIsExhausted_NAT002) {
    config.addresses = {{.address = kSnatA}, {.address = kSnatB}};
    config.ports = {4'000, 4'001};
    std::set<std::pair<IpAddr, L4Port>> bound;
    for (int i = 0; i < 4; ++i) {
        const auto got = bind(request(0));
        ASSERT_TRUE(got);
        EXPECT_EQ(got->address, i < 2 ? kSnatA : kSnatB);
        EXPECT_TRUE(bound.emplace(got->address, got->port).second);
    }
    EXPECT_EQ(bind(request(0)).error(), DropReason::SnatPortsExhausted);

    release(pool, {.source = kEndpoint, .destination = kSnatB, .source_port = 9376, .destination_port = 4'001, .protocol = Protocol::Tcp});
    const auto again = bind(request(0));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->address, kSnatB);
    EXPECT_EQ(again->port, 4'001);
}

// A connection outlives the configuration that it was opened under; its port goes back all the same.
TEST_F(SnatTest, ReleaseNeedsNoConfiguration) {
    config.addresses = {{.address = kSnatA}, {.address = kSnatB}};
    const auto bound = bind(request(1));
    ASSERT_TRUE(bound);
    config.addresses.clear();
    release(pool, {.source = kEndpoint, .destination = bound->address, .source_port = 9376, .destination_port = bound->port});
    EXPECT_EQ(pool.in_use(), 0u);
}

TEST_F(SnatTest, OnlyASharedAddressLeavesOutWhatTheHostUses) {
    std::vector<uint64_t> node_ports(kPortBlocks);
    node_ports[30'080 / 64] = 1;  // NodePort 30080
    host = {.node_port_bits = node_ports.data(), .version = 3};
    config.ports = {30'079, 32'769};
    const PortRules shared = rules_for(config, {.address = kSnatA, .shared_with_host = true}, host);
    const PortRules own = rules_for(config, {.address = kSnatA}, host);
    const auto allows = [](const PortRules& rules, uint32_t port) { return (rules.usable(port / 64) >> (port % 64) & 1) != 0; };
    for (const uint32_t port : {30'080u, 32'768u, 32'769u}) {
        EXPECT_FALSE(allows(shared, port)) << port;
        EXPECT_TRUE(allows(own, port)) << port;
    }
    for (const uint32_t port : {30'079u, 30'081u, 32'767u}) {
        EXPECT_TRUE(allows(shared, port)) << port;
    }
    for (const uint32_t port : {30'078u, 32'770u}) {
        EXPECT_FALSE(allows(own, port)) << port;
    }
}

TEST(Masquerade, OnlyAKeptSourceThatIsNotTheEndpointStays_NAT003_NAT005) {
    const IpAddr client = IpAddr::v4(198, 51, 100, 7);
    EXPECT_TRUE(must_translate(false, client, kEndpoint));
    EXPECT_FALSE(must_translate(true, client, kEndpoint));
    EXPECT_TRUE(must_translate(true, kEndpoint, kEndpoint));
}

}  // namespace
}  // namespace penstock::nat
