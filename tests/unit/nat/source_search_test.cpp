// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/source_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/support/aligned_memory.hpp"
#include "tests/support/reply_hashes.hpp"

namespace penstock::nat {
namespace source_search_test {

constexpr NicPortId kOutside{0}, kInside{1};
const IpAddr kSnatA = IpAddr::v4(192, 0, 2, 1), kSnatB = IpAddr::v4(192, 0, 2, 2),
             kSnatC = IpAddr::v4(192, 0, 2, 3);
const IpAddr kSnat6 = *IpAddr::parse("2001:db8::1");
const IpAddr kEndpoint = IpAddr::v4(10, 1, 0, 1);

class SourceSearchTest : public testing::Test {
 protected:
    [[nodiscard]] BindRequest request(uint64_t client_hash = 0) const {
        return {kEndpoint, 9376, Protocol::Tcp, kInside, client_hash, group};
    }
    // One flow from its search to its entry in a table, here a set.
    std::optional<Source> bind(uint64_t client_hash, DropReason* why = nullptr) {
        SourceSearch search(ports, config, host, request(client_hash));
        search.prefetch_pool(ports);
        for (const Source* source = search.first(ports); source != nullptr;
             source = search.after_refusal(ports)) {
            if (table.emplace(source->address, source->port).second) {
                search.confirm(ports);
                return *source;
            }
        }
        if (why != nullptr) {
            *why = search.failure();
        }
        return std::nullopt;
    }

    test::AlignedMemory memory{PortProposer::memory_needed(1'000, {}, 1)};
    PortProposer ports = std::move(*PortProposer::create(memory.span(), 1'000, {}, {0}, 1, {1, 2}));
    SnatConfig config;
    HostPorts host;
    uint8_t group = 0;
    std::set<std::pair<IpAddr, L4Port>> table;
};

TEST_F(SourceSearchTest, AnAddressFitsByFamilyAndEgress_NAT002) {
    const struct {
        const char* name;
        std::vector<SnatAddress> addresses;
        std::optional<IpAddr> expected;
    } cases[] = {
        {"none", {}, {}},
        {"named by the operator", {{.address = kSnatA}}, kSnatA},
        {"the egress twin's own", {{.address = kSnatA, .egress = kInside}}, kSnatA},
        {"another twin's", {{.address = kSnatA, .egress = kOutside}}, {}},
        {"the right one of two twins",
         {{.address = kSnatA, .egress = kOutside}, {.address = kSnatB, .egress = kInside}},
         kSnatB},
        {"another family", {{.address = kSnat6}}, {}},
        {"one of each family", {{.address = kSnat6}, {.address = kSnatB}}, kSnatB},
    };
    for (const auto& c : cases) {
        config.addresses = c.addresses;
        DropReason why{};
        const auto got = bind(0, &why);
        ASSERT_EQ(got.has_value(), c.expected.has_value()) << c.name;
        if (got) {
            EXPECT_EQ(got->address, *c.expected) << c.name;
            EXPECT_EQ(config.addresses[got->index].address, got->address) << c.name;
        } else {
            EXPECT_EQ(why, DropReason::NoSnatAddress) << c.name;
        }
    }
}

TEST_F(SourceSearchTest, AFlowOfAShareHasAnAddressOfTheShare_NAT002) {
    const SnatAddress own{.address = kSnatA}, of_0{.address = kSnatB, .group = 1},
        of_1{.address = kSnatC, .group = 2}, of_1_v6{.address = kSnat6, .group = 2};
    const struct {
        const char* name;
        std::vector<SnatAddress> addresses;
        uint8_t group;
        std::optional<IpAddr> expected;
    } cases[] = {
        {"no share", {of_0, own, of_1}, 0, kSnatA},
        {"share 0", {own, of_0, of_1}, 1, kSnatB},
        {"share 1", {own, of_0, of_1}, 2, kSnatC},
        {"a share without an address", {own, of_0, of_1}, 3, kSnatA},
        {"a share without an address of the family", {own, of_0, of_1_v6}, 2, kSnatA},
        {"no share, and none of the gateway", {of_0, of_1}, 0, {}},
        {"the last share", {own, {.address = kSnatC, .group = 64}}, 64, kSnatC},
    };
    for (const auto& c : cases) {
        config.addresses = c.addresses;
        group = c.group;
        for (const uint64_t client : {0U, 1U, 2U}) {
            const auto got = bind(client);
            ASSERT_EQ(got.has_value(), c.expected.has_value()) << c.name;
            EXPECT_EQ(got ? got->address : *IpAddr::parse("::"), c.expected.value_or(*IpAddr::parse("::")))
                << c.name;
        }
    }
}

// Another gateway may use the other ports of an exhausted part, so no flow gets one of these, nor an address
// of the gateway.
TEST_F(SourceSearchTest, AnExhaustedPartIsExhausted_NAT002) {
    config.addresses = {{.address = kSnatA}, {.address = kSnatB, .group = 1, .part = PortPart::Heir}};
    config.ports = {2'000, 2'047};
    group = 1;
    std::set<L4Port> got;
    while (const auto source = bind(got.size())) {
        EXPECT_EQ(source->address, kSnatB);
        got.insert(source->port);
    }
    EXPECT_EQ(got, (std::set<L4Port>{2'007, 2'015, 2'023, 2'031, 2'039, 2'047}));
    DropReason why{};
    EXPECT_FALSE(bind(0, &why));
    EXPECT_EQ(why, DropReason::SnatPortsExhausted);
    config.addresses = {{.address = kSnatA}, {.address = kSnatB, .group = 1, .part = PortPart::Primary}};
    host.version = 1;
    size_t more = 0;
    while (const auto source = bind(more)) {
        EXPECT_NE(source->port % 8, 7);
        ++more;
    }
    EXPECT_EQ(more, 42U);
    config.addresses = {{.address = kSnatA}, {.address = kSnatB, .group = 1, .part = PortPart::None}};
    host.version = 2;
    EXPECT_EQ(bind(0)->address, kSnatA) << "the other one belongs to other gateways";
    config.addresses = {{.address = kSnatB, .group = 1, .part = PortPart::None}};
    EXPECT_FALSE(bind(0, &why));
    EXPECT_EQ(why, DropReason::NoSnatAddress);
    EXPECT_FALSE(config.addresses.contains(kSnatB)) << "a client may have it";
    EXPECT_NE(config.addresses.find(kSnatB), nullptr) << "replies of flows from before find their owner";
}

TEST_F(SourceSearchTest, AClientKeepsItsAddressWhileThatHasPorts_RFC4787_REQ2) {
    config.addresses = {{.address = kSnatA}, {.address = kSnat6}, {.address = kSnatB}, {.address = kSnatC}};
    config.ports = {2'000, 2'009};
    const IpAddr in_order[] = {kSnatB, kSnatC, kSnatA};
    std::vector<Source> bound;
    for (int i = 0; i < 30; ++i) {
        const auto source = bind(7);  // 7 % 3: the second fitting address
        ASSERT_TRUE(source);
        EXPECT_EQ(source->address, in_order[i / 10]) << i;
        bound.push_back(*source);
    }
    DropReason why{};
    EXPECT_FALSE(bind(7, &why));
    EXPECT_EQ(why, DropReason::SnatPortsExhausted);
    EXPECT_FALSE(bind(8)) << "nor is there another for other clients";
    // A port that the first address gets back is proposed first.
    table.erase({bound[4].address, bound[4].port});
    ports.give_back(bound[4].pool, bound[4].port);
    const auto again = bind(8);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->address, bound[4].address);
    EXPECT_EQ(again->port, bound[4].port);
}

TEST_F(SourceSearchTest, OnlyAnAddressSharedWithTheHostLeavesOutItsPorts_NAT002) {
    config.addresses = {{.address = kSnatA, .shared_with_host = true}};
    config.ports = {32'000, 33'000};
    std::vector<uint64_t> node_ports(kPortBlocks);
    node_ports[32'000 / 64] = ~0ULL;
    host = {node_ports.data(), 1};
    std::set<L4Port> got;
    while (const auto source = bind(0)) {
        got.insert(source->port);
    }
    EXPECT_EQ(got.size(), 704u) << "32,000 to 32,767 less a block";
    EXPECT_EQ(*got.begin(), 32'064);
    EXPECT_EQ(*got.rbegin(), 32'767);
}

// All flows of a burst get their first proposal before any of them is in the table.
TEST_F(SourceSearchTest, ABurstProposesFirstAndConfirmsThen) {
    config.addresses = {{.address = kSnatA}, {.address = kSnatB}};
    config.ports = {2'000, 2'009};
    std::vector<SourceSearch> searches;
    for (uint64_t i = 0; i < 32; ++i) {
        searches.emplace_back(ports, config, host, request(i));
    }
    std::vector<const Source*> sources;
    for (SourceSearch& search : searches) {
        search.prefetch_pool(ports);
        sources.push_back(search.first(ports));
    }
    int bound = 0;
    for (size_t i = 0; i < searches.size(); ++i) {
        const Source* source = sources[i];
        while (source != nullptr && !table.emplace(source->address, source->port).second) {
            source = searches[i].after_refusal(ports);
        }
        if (source != nullptr) {
            searches[i].confirm(ports);
            ++bound;
        } else {
            EXPECT_EQ(searches[i].failure(), DropReason::SnatPortsExhausted);
        }
    }
    EXPECT_EQ(bound, 20) << "ten ports of two addresses, for 32 flows";
    EXPECT_EQ(table.size(), 20u);
    EXPECT_EQ(ports.in_use(), 20u);
}

// With predictable RSS, the egress NIC delivers the reply of every proposal to this worker. The same holds
// for a former source; otherwise it is not preferred.
TEST_F(SourceSearchTest, ProposesOnlyPortsWhoseRepliesComeHome) {
    const ReplyHash inside = test::hash_in_turn(128, 3);
    ReplyHash outside = inside;
    std::ranges::reverse(outside.key);
    const PortReplyHash hashes[] = {{kOutside, &outside}, {kInside, &inside}};
    const ReplyRules rules = std::move(*ReplyRules::create(hashes, 3));
    const test::AlignedMemory by_hash_memory(PortProposer::memory_needed(1'000, {}, 3, &rules));
    const WorkerId self{2};
    ports = std::move(*PortProposer::create(by_hash_memory.span(), 1'000, {}, self, 3, {1, 2}, &rules));
    const struct {
        const char* name;
        std::vector<SnatAddress> addresses;
        const ReplyHash& hash;
    } cases[] = {
        {"the egress's own address", {{.address = kSnatA, .egress = kInside}}, inside},
        {"an address of any egress has the first NicPort's", {{.address = kSnatB}}, outside},
        {"a reply shows no more than the address",
         {{.address = kSnatC, .egress = kOutside}, {.address = kSnatC, .egress = kInside}},
         outside},
    };
    for (const auto& c : cases) {
        config.addresses = c.addresses;
        const auto owner_of = [&](const IpAddr& snat, L4Port port) {
            return worker_of(c.hash, {kEndpoint, snat, 9376, port, Protocol::Tcp, {}});
        };
        for (uint32_t i = 0; i < 200; ++i) {
            const auto source = bind(i);
            ASSERT_TRUE(source) << c.name;
            ASSERT_EQ(owner_of(source->address, source->port), self) << c.name << " " << source->port;
        }
        const IpAddr snat = c.addresses.front().address;
        uint32_t preferred = 0;
        for (L4Port port = 20'000; port < 20'100; ++port) {
            SourceSearch search(ports, config, host, request());
            const bool is_taken_up = search.prefer(ports, snat, port) != nullptr;
            ASSERT_EQ(is_taken_up, owner_of(snat, port) == self) << c.name << " " << port;
            preferred += is_taken_up ? 1 : 0;
        }
        EXPECT_GT(preferred, 10u) << c.name;
    }
}

}  // namespace source_search_test
}  // namespace penstock::nat
