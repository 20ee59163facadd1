// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/link_shares.hpp"

#include <gtest/gtest.h>

#include "control/gateway/care/vip_responder.hpp"

namespace penstock::gateway {
namespace link_shares_test {

const IpAddr kFirst = IpAddr::v4(192, 0, 2, 1), kSecond = IpAddr::v4(192, 0, 2, 2),
             kSnat = IpAddr::v4(192, 0, 2, 9);
constexpr NicPortId kPort{1}, kOtherPort{2};

std::shared_ptr<const GatewayShares> planned() {
    return std::make_shared<const GatewayShares>(
        shares::Plan{
            .version = 1,
            .gateways = {{.name = "a"}, {.name = "b"}},
            .shares = {{.vips = {Prefix::host(kFirst)}, .primary = "a", .heir = "b", .snat = {kSnat}},
                       {.vips = {Prefix::host(kSecond)}, .primary = "b", .heir = "a"}}},
        "a");
}

TEST(LinkShares, WithoutAPlanThereAreNone_PRESENCE006) {
    EXPECT_EQ(shares_on_links(nullptr, {}), LinkShares());
    EXPECT_FALSE(is_snat_of(nullptr, kSnat));
    EXPECT_FALSE(HeldShares{}.has(kFirst));
}

TEST(LinkShares, AShareWithAnAddressOnALostLinkIsNotWhole_PRESENCE006) {
    const std::vector<PlannedVip> vips{{.address = kFirst, .port = kPort, .reason = ""},
                                       {.address = kSecond, .port = {}, .reason = kLinkDown}};
    const LinkShares found = shares_on_links(planned(), vips);
    EXPECT_EQ(found.able & 0b11, 0b11u);
    EXPECT_EQ(found.whole & 0b11, 0b01u);
    EXPECT_EQ(found.targets, (std::vector<LinkTarget>{{0, {kFirst, kPort}}}));
    const std::vector<PlannedVip> elsewhere{
        {.address = kSecond, .port = {}, .reason = "outside the subnets"}};
    EXPECT_EQ(shares_on_links(planned(), elsewhere).whole & 0b11, 0b11u) << "not on a link";
}

TEST(LinkShares, EachLinkHasATargetASnatAddressBeforeVips_PRESENCE006) {
    const std::vector<PlannedVip> vips{{.address = kFirst, .port = kPort, .reason = ""},
                                       {.address = kSnat, .port = kPort, .reason = ""},
                                       {.address = kFirst, .port = kOtherPort, .reason = ""}};
    const std::vector<LinkTarget> expected{{0, {kSnat, kPort, true}}, {0, {kFirst, kOtherPort}}};
    EXPECT_EQ(shares_on_links(planned(), vips).targets, expected);
    const std::vector<PlannedVip> reversed{vips[1], vips[0], vips[2]};
    EXPECT_EQ(shares_on_links(planned(), reversed).targets, expected);
}

TEST(LinkShares, AnAddressIsHeldWithItsShare_PRESENCE006) {
    const HeldShares held{planned(), 0b01};
    EXPECT_TRUE(held.has(kFirst));
    EXPECT_TRUE(held.has(kSnat));
    EXPECT_FALSE(held.has(kSecond));
}

}  // namespace link_shares_test
}  // namespace penstock::gateway
