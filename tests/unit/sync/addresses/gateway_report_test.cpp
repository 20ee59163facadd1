// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/gateway_report.hpp"

#include <gtest/gtest.h>

namespace penstock::sync {
namespace gateway_report_test {

const GatewayReport kReport{
    .gateway = "edge-2", .seen = 48'213, .beat = 17, .not_served = {{"default", "web"}, {"shop", "cart"}}};

TEST(GatewayReport, IsOneLineWithTheExceptions_PRESENCE001) {
    EXPECT_EQ(report_text(kReport), "1 edge-2 48213 17 default/web shop/cart");
    EXPECT_EQ(parse_report("1 edge-2 48213 17 default/web shop/cart"), kReport);
    EXPECT_EQ(parse_report("1 edge-2 48213 17").value().not_served.size(), 0u);
}

TEST(GatewayReport, CoversServicesUpToItsVersion_PRESENCE001) {
    const kube::ObjectName web{"default", "web"}, other{"default", "other"};
    EXPECT_EQ(kReport.serves(other, 48'213), true);
    EXPECT_EQ(kReport.serves(web, 48'213), false);
    EXPECT_EQ(kReport.serves(other, 48'214), std::nullopt);
    EXPECT_EQ(kReport.serves(web, 48'214), std::nullopt);
}

TEST(GatewayReport, MalformedTextIsRefused_GEN001) {
    for (const char* text :
         {"", "1", "1 edge-2 1", "2 edge-2 1 1", "1  1 1", "1 edge-2 x 1", "1 edge-2 1 -1",
          "1 edge-2 1 1 web", "1 edge-2 1 1 /web", "1 edge-2 1 1 default/", "1 edge-2 1 1 a/b/c",
          "1 edge-2 1 1  a/b", "1 edge-2 99999999999999999999 1", "1 e\x01 1 1"}) {
        const auto parsed = parse_report(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_TRUE(parsed.error().what.starts_with("report of a gateway: ")) << parsed.error().what;
    }
    EXPECT_FALSE(parse_report("1 e 1 1" + std::string(kGatewayReportBytesMax, ' ')));
}

TEST(GatewayReport, HasRoomForSomeHundredExceptions_PRESENCE001) {
    GatewayReport report{.gateway = "edge-2", .seen = 1, .beat = 1, .not_served = {}};
    for (int i = 0; i < 500; ++i) {
        report.not_served.insert({"namespace-of-a-team", "service-" + std::to_string(i)});
    }
    ASSERT_TRUE(report_text(report));
    EXPECT_EQ(parse_report(*report_text(report)), report);
    for (int i = 500; i < 1'000; ++i) {
        report.not_served.insert({"namespace-of-a-team", "service-" + std::to_string(i)});
    }
    EXPECT_EQ(report_text(report), std::nullopt);
}

TEST(GatewayReport, KeysAreValidNamesOfAnnotations_PRESENCE001) {
    EXPECT_EQ(report_key("edge-1.example.org"), "gateway.penstock.io/edge-1.example.org");
    const std::string long_name(200, 'a');
    for (const std::string& name :
         {long_name, long_name + "b", std::string("edge 1"), std::string("edge-"), std::string("-")}) {
        const std::string key = report_key(name);
        EXPECT_LE(key.size(), kReportPrefix.size() + 63) << key;
        EXPECT_EQ(key.find(' '), std::string::npos);
        EXPECT_NE(key.back(), '-');
    }
    EXPECT_NE(report_key(long_name), report_key(long_name + "b"));
}

TEST(GatewayReport, VersionsAreNumbersOrUnusable_PRESENCE001) {
    EXPECT_EQ(version_number("18446744073709551615"), UINT64_MAX);
    for (const char* text : {"", "x1", "1x", "-1", "18446744073709551616"}) {
        EXPECT_EQ(version_number(text), std::nullopt) << text;
    }
}

}  // namespace gateway_report_test
}  // namespace penstock::sync
