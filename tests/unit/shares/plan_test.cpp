// SPDX-License-Identifier: Apache-2.0
#include "control/shares/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace penstock::shares {
namespace plan_test {

using Names = std::vector<std::string>;

std::vector<Gateway> gateways(size_t count) {
    std::vector<Gateway> out;
    for (size_t i = 1; i <= count; ++i) {
        out.push_back({.name = "edge-" + std::to_string(i)});
    }
    return out;
}

// Gateways of different versions must agree, so this order never changes.
TEST(SharePlan, TheOrderOfGatewaysIsTheSameInEveryVersion) {
    EXPECT_EQ(by_preference(gateways(3), 0), (Names{"edge-3", "edge-1", "edge-2"}));
    EXPECT_EQ(by_preference(gateways(3), 1), (Names{"edge-2", "edge-3", "edge-1"}));
}

TEST(SharePlan, ALostGatewayChangesTheOrderOfNoOthers) {
    const auto all = gateways(5);
    for (size_t share = 0; share < 64; ++share) {
        const auto before = by_preference(all, share);
        for (const Gateway& lost : all) {
            auto others = all;
            std::erase(others, lost);
            auto expected = before;
            std::erase(expected, lost.name);
            EXPECT_EQ(by_preference(others, share), expected) << "without " << lost.name;
        }
    }
}

TEST(SharePlan, SharesInCommonAreThoseInWhichBothHaveARole) {
    const Plan plan{.version = 1,
                    .gateways = gateways(3),
                    .shares = {{.vips = {}, .primary = "edge-1", .heir = "edge-2"},
                               {.vips = {}, .primary = "edge-2", .heir = "edge-3"},
                               {.vips = {}, .primary = "edge-2", .heir = "edge-1"}}};
    EXPECT_EQ(plan.common_shares("edge-1", "edge-2"), 0b101U);
    EXPECT_EQ(plan.common_shares("edge-2", "edge-1"), 0b101U);
    EXPECT_EQ(plan.common_shares("edge-3", "edge-2"), 0b010U);
    EXPECT_EQ(plan.common_shares("edge-3", "edge-1"), 0U);
    EXPECT_EQ(plan.common_shares("edge-1", "edge-1"), 0U) << "a gateway has no copies of its own";
    EXPECT_EQ(plan.common_shares("edge-1", "edge-4"), 0U);
}

TEST(SharePlan, AGatewaysPartFollowsItsWeight) {
    auto weighted = gateways(2);
    weighted[1].weight = 3;
    std::map<std::string, int> first;
    constexpr int kShares = 4'000;
    for (int share = 0; share < kShares; ++share) {
        ++first[by_preference(weighted, static_cast<size_t>(share)).front()];
    }
    EXPECT_NEAR(first["edge-2"], kShares * 3 / 4, 5 * 27.4) << "five standard deviations";
}

TEST(SharePlan, ARoleIsThatOfTheNamedGateway) {
    const Plan plan{
        .version = 1,
        .gateways = gateways(3),
        .shares = {{.vips = {}, .primary = "edge-1", .heir = "edge-2"},
                   {.vips = {Prefix::parse("203.0.113.0/24").value()}, .primary = "edge-3", .heir = ""}}};
    EXPECT_EQ(plan.role(0, "edge-1"), Role::Primary);
    EXPECT_EQ(plan.role(0, "edge-2"), Role::Heir);
    EXPECT_EQ(plan.role(0, "edge-3"), Role::None);
    EXPECT_EQ(plan.role(1, "edge-3"), Role::Primary);
    EXPECT_EQ(plan.map().share_of(IpAddr::v4(203, 0, 113, 9)), 1);
    EXPECT_EQ(plan.gateway("edge-4"), nullptr);
}

}  // namespace plan_test
}  // namespace penstock::shares
