// SPDX-License-Identifier: Apache-2.0
// The prefixes that the gateway reports for its routes.
#include "control/gateway/compile/routed_prefixes.hpp"

#include <gtest/gtest.h>

#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace routed_prefixes_test {

using Texts = std::vector<std::string>;

route::Route through(const char* destination, uint8_t port, uint32_t metric = 0) {
    return {
        .destination = Prefix::parse(destination).value(), .egress = {port}, .gateway = {}, .metric = metric};
}
route::Route elsewhere(const char* destination, uint32_t metric = 0) {
    return {.destination = Prefix::parse(destination).value(), .egress = {}, .gateway = {}, .metric = metric};
}

Texts routed(std::vector<route::Route> routes) {
    Texts texts;
    for (const Prefix& prefix : routed_prefixes(std::move(routes))) {
        texts.push_back(prefix.to_string());
    }
    return texts;
}

TEST(RoutedPrefixes, AreThoseThroughATwinWithoutDefaultRoutes_NODEPORT009) {
    EXPECT_EQ(routed({through("0.0.0.0/0", 0), through("::/0", 0), through("10.244.2.0/24", 1),
                      elsewhere("10.245.0.0/16"), through("10.244.1.0/24", 0), through("fd00:244::/48", 0)}),
              (Texts{"10.244.1.0/24", "10.244.2.0/24", "fd00:244::/48"}));
    EXPECT_EQ(routed({}), Texts{});
}

TEST(RoutedPrefixes, OneInsideAnotherIsNotSaid) {
    EXPECT_EQ(routed({through("10.244.3.0/24", 1), through("10.244.0.0/16", 0), through("10.244.0.0/24", 0),
                      through("10.245.0.0/24", 0)}),
              (Texts{"10.244.0.0/16", "10.245.0.0/24"}));
}

TEST(RoutedPrefixes, OfEqualRoutesTheLowerMetricLeads) {
    EXPECT_EQ(routed({through("10.244.0.0/16", 0, 100), elsewhere("10.244.0.0/16", 50)}), Texts{});
    EXPECT_EQ(routed({through("10.244.0.0/16", 0, 50), elsewhere("10.244.0.0/16", 100)}),
              Texts{"10.244.0.0/16"});
}

// A node's own bridge, or the management network: its traffic never leaves through a twin.
TEST(RoutedPrefixes, ARouteElsewhereCutsAHole_NODEPORT009) {
    EXPECT_EQ(routed({through("10.0.0.0/8", 0), elsewhere("10.128.0.0/9")}), Texts{"10.0.0.0/9"});
    EXPECT_EQ(routed({through("10.0.0.0/14", 0), elsewhere("10.1.0.0/16"), through("10.1.7.0/24", 1)}),
              (Texts{"10.0.0.0/16", "10.1.7.0/24", "10.2.0.0/15"}));
    EXPECT_EQ(
        routed({through("fd00::/62", 0), elsewhere("fd00:0:0:3::/64"), elsewhere("fd00:0:0:3:8000::/65")}),
        (Texts{"fd00::/63", "fd00:0:0:2::/64"}));
    EXPECT_EQ(routed({elsewhere("10.0.0.0/8"), through("10.1.0.0/16", 0)}), Texts{"10.1.0.0/16"});
}

TEST(RoutedPrefixes, TheWidestAreKeptWhereThereAreTooMany) {
    std::vector<route::Route> routes = {through("192.168.0.0/16", 0)};
    for (size_t i = 0; i < model::kRoutedPrefixesMax; ++i) {
        routes.push_back(
            through(("10." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ".0/25").c_str(), 0));
    }
    const auto kept = routed_prefixes(routes);
    EXPECT_EQ(kept.size(), model::kRoutedPrefixesMax);
    EXPECT_TRUE(std::ranges::is_sorted(kept));
    EXPECT_EQ(kept.back().to_string(), "192.168.0.0/16");
}

}  // namespace routed_prefixes_test
}  // namespace penstock::gateway
