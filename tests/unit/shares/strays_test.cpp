// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shares/strays.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace penstock::shares {
namespace strays_test {

const IpAddr kVip = IpAddr::v4(203, 0, 113, 10);
const IpAddr kSnat = IpAddr::v4(198, 51, 100, 1);

Strays strays(ShareMap map) {
    std::vector<Strays::Gateways> shares(map.shares(), {.primary = 0, .heir = 1});
    shares.back() = {.primary = 2, .heir = Strays::kNone};
    return Strays({.map = std::move(map),
                   .shares = std::move(shares),
                   .gateways = {{"a", {}, true}, {"b", {}, true}, {"c", {}, true}},
                   .self = 1,
                   .snat = {{kSnat, 0}}});
}

TEST(Strays, LeadFromAVipToItsGateways) {
    const Strays some = strays(ShareMap(4, {{Prefix::host(kVip), 3}}));
    const IpAddr client = IpAddr::v4(192, 0, 2, 1);
    EXPECT_EQ(some.of_vip(kVip, client), (Strays::Candidates{3, {2, Strays::kNone}}));
    EXPECT_TRUE(some.is_self(1));
    EXPECT_FALSE(some.is_self(Strays::kNone));
    EXPECT_EQ(some.gateway(2)->name, "c");
    EXPECT_EQ(some.gateway(3), nullptr);
    EXPECT_EQ(some.gateway(Strays::kNone), nullptr);
}

TEST(Strays, LeadFromASnatPortToTheGatewayThatUsesIt) {
    const Strays some = strays(ShareMap(4, {}));
    EXPECT_EQ(some.of_snat(kVip, 1'024), std::nullopt);
    for (uint32_t port = 1'024; port < 65'536; ++port) {
        const auto candidates = some.of_snat(kSnat, static_cast<L4Port>(port));
        const Strays::Candidates expected =
            port % 8 == 7 ? Strays::Candidates{0, {1, 0}} : Strays::Candidates{0, {0, 1}};
        ASSERT_EQ(candidates, expected) << port;
    }
}

// By value, because gateways of different releases must agree.
TEST(SpreadHash, IsFixed) {
    EXPECT_EQ(spread_hash(0, kVip, IpAddr::v4(192, 0, 2, 1)), 0x523538e0081380bfULL);
    EXPECT_EQ(spread_hash(7, kVip, IpAddr::v4(192, 0, 2, 1)), 0x063a88784b18269aULL);
    EXPECT_EQ(spread_hash(7, *IpAddr::parse("2001:db8::1"), *IpAddr::parse("2001:db8:1::2")),
              0xd5930cefc896d642ULL);
}

TEST(ShareMap, SpreadsTheClientsOfAVip) {
    const ShareMap map(16, {{Prefix::host(kVip), 3}}, {.vips = {*Prefix::parse("203.0.113.8/29")}, .key = 7});
    EXPECT_TRUE(map.is_spread(kVip));
    EXPECT_FALSE(map.is_spread(IpAddr::v4(203, 0, 113, 16)));
    std::set<uint8_t> shares;
    for (uint32_t client = 0; client < 1'000; ++client) {
        const IpAddr address =
            IpAddr::v4(192, 0, static_cast<uint8_t>(client >> 8), static_cast<uint8_t>(client));
        shares.insert(map.share_of(kVip, address));
        EXPECT_EQ(map.share_of(kVip, address), spread_hash(7, kVip, address) % 16);
        EXPECT_EQ(map.share_of(IpAddr::v4(203, 0, 113, 16), address),
                  map.share_of(IpAddr::v4(203, 0, 113, 16)));
    }
    EXPECT_EQ(shares.size(), 16U);
}

}  // namespace strays_test
}  // namespace penstock::shares
