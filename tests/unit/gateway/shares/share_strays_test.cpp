// SPDX-License-Identifier: Apache-2.0
// What the plan of shares means for the strays at one of three gateways.
#include "control/gateway/shares/share_strays.hpp"

#include <gtest/gtest.h>

#include <string>

#include "control/gateway/shares/share_snat.hpp"
#include "control/shares/plan_text.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::gateway {
namespace share_strays_test {

using shares::Strays;

GatewayShares at(const std::string& gateway, const std::string& strays = "strays forward\n") {
    const std::string text =
        "version 1\ngateway edge-1 link=10.0.0.1\ngateway edge-2 link=10.0.0.2\n"
        "gateway edge-3 link=2001:db8::3\nshares 2\n"
        "share 0 vips=203.0.113.0/28 primary=edge-1 heir=edge-2 snat=198.51.100.1\n"
        "share 1 vips=192.0.2.0/24 primary=edge-2 heir=edge-3\n" +
        strays + "end\n";
    return {shares::parse_plan(text).value(), gateway};
}

const IpAddr kVip0 = IpAddr::v4(203, 0, 113, 1), kVip1 = IpAddr::v4(192, 0, 2, 1);
const IpAddr kSpread = IpAddr::v4(203, 0, 113, 200);
const IpAddr kClient = IpAddr::v4(10, 9, 8, 7);

bool all(const std::string&) {
    return true;
}

TEST(ShareStrays, GoToTheGatewaysOfThePlan) {
    const GatewayShares own = at("edge-2");
    const auto strays = strays_of(&own, [](const std::string& gateway) { return gateway != "edge-3"; });
    ASSERT_NE(strays, nullptr);
    EXPECT_EQ(strays->of_vip(kVip0, kClient), (Strays::Candidates{0, {0, 1}}));
    EXPECT_EQ(strays->of_vip(kVip1, kClient), (Strays::Candidates{1, {1, 2}}));
    EXPECT_TRUE(strays->is_self(1));
    EXPECT_EQ(*strays->gateway(0), (Strays::Gateway{"edge-1", IpAddr::v4(10, 0, 0, 1), true}));
    EXPECT_FALSE(strays->gateway(1)->takes_strays) << "this gateway";
    EXPECT_FALSE(strays->gateway(2)->takes_strays);
    EXPECT_EQ(strays->gateway(2)->link, IpAddr::parse("2001:db8::3").value());
    const IpAddr snat = IpAddr::v4(198, 51, 100, 1);
    EXPECT_EQ(strays->of_snat(snat, 1'024), (Strays::Candidates{0, {0, 1}}));
    EXPECT_EQ(strays->of_snat(snat, 1'031), (Strays::Candidates{0, {1, 0}}));
}

TEST(ShareStrays, AreForwardedOnlyIfThePlanHasTheLine) {
    EXPECT_EQ(strays_of(nullptr, all), nullptr);
    const GatewayShares silent = at("edge-1", "");
    EXPECT_EQ(strays_of(&silent, all), nullptr);
    const GatewayShares stranger = at("edge-9");
    EXPECT_EQ(strays_of(&stranger, all), nullptr);
}

TEST(ShareStrays, FlowsOfASpreadVipUseTheAddressesOfTheirShare) {
    const GatewayShares own = at("edge-1", "strays forward\nspread 203.0.113.200 key=7\n");
    EXPECT_EQ(snat_group_of(&own, kVip0), 1);
    EXPECT_EQ(snat_group_of(&own, kSpread), nat::kGroupOfClient);
    const auto strays = strays_of(&own, all);
    bool has_seen[2] = {false, false};
    for (uint8_t host = 0; host < 64; ++host) {
        const IpAddr client = IpAddr::v4(10, 9, 8, host);
        const uint8_t share = own.share_of(kSpread, client);
        EXPECT_EQ(strays->of_vip(kSpread, client).share, share);
        // Share 1 has no SNAT addresses, and this gateway no role in it.
        EXPECT_EQ(strays->snat_group(kSpread, client), share == 0 ? 1 : 0);
        has_seen[share] = true;
    }
    EXPECT_TRUE(has_seen[0] && has_seen[1]);
}

}  // namespace share_strays_test
}  // namespace penstock::gateway
