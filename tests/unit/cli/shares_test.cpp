// SPDX-License-Identifier: Apache-2.0
// penstockctl describe share: exact text, the same content as JSON and YAML, and errors.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "control/cli/options.hpp"
#include "tests/unit/cli/fake_gateway.hpp"

namespace penstock::cli {
namespace shares_test {

constexpr const char* kShares = R"pb(
    plan_version: 7
    gateway_name: "edge-1"
    shares {
      number: 0
      primary: "edge-1"
      heir: "edge-2"
      role: "primary"
      returns: true
      served: 2
      announced: 1
      vips: "203.0.113.0/28"
      vips: "2001:db8::/64"
      snat: "198.51.100.1"
      copies: 34
      channel: "connecting"
      complete_age_ms: 71000
      strays: "edge-2"
    }
    shares {
      number: 1
      primary: "edge-2"
      heir: "edge-1"
      role: "heir"
      served: 0
      copies: 5
      channel: "connecting"
    }
    shares { number: 2 primary: "edge-2" heir: "edge-3" role: "none" served: 3 }
    gateways { name: "edge-1" weight: 1 address: "10.0.0.1:7443" }
    gateways {
      name: "edge-2"
      weight: 2
      address: "10.0.0.2:7443"
      channel: "connecting"
      channel_fault: "connection refused"
      copies: 39
      complete_age_ms: 71000
      records_refused_share: 1
      records_refused_full: 2
      records_refused_taken: 3
      copies_there: 12
    }
    gateways { name: "edge-3" weight: 1 })pb";

constexpr const char* kVips = R"pb(
    vips { address: "198.51.100.1" presence: "route" twin: "up0" metric: 900 snat: true share: 0 }
    vips { address: "203.0.113.1" presence: "route" twin: "up0" metric: 900 share: 0 }
    vips { address: "203.0.113.2" presence: "none" reason: "no endpoint" share: 0 }
    vips { address: "203.0.113.77" presence: "other" share: 2 }
    vips { address: "203.0.113.78" presence: "route" })pb";

class SharesTest : public testing::Test {
 protected:
    SharesTest() {
        EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kShares, &gateway_.shares_));
        EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kVips, &gateway_.vips_));
    }

    Result<std::string> run(const std::vector<std::string>& words) {
        auto read = read_command_line(words);
        if (!read) {
            return std::unexpected(read.error());
        }
        const auto& invocation = std::get<Invocation>(*read);
        return answer_of(*invocation.command, &gateway_, invocation.request);
    }

    test::FakeGateway gateway_;
};

TEST_F(SharesTest, ADescriptionHasRolesChannelCopiesAndTheAddressesOfTheShareAlone) {
    EXPECT_EQ(run({"describe", "share", "0"}).value(),
              R"(Share 0
  Plan:            version 7
  Primary:         edge-1 (this gateway)
  Heir:            edge-2 at 10.0.0.2:7443
  Role here:       primary, which returns: it waits for copies of connections
  VIPs:            203.0.113.0/28,2001:db8::/64
  SNAT addresses:  198.51.100.1
  Served VIPs:     2, announced by this gateway: 1
  Strays go to:    edge-2
  Channel:         connecting, complete for the last time 1m11s ago: connection refused
  Copies here:     34 of this share's connections of edge-2
  Copies there:    12 of this gateway's connections at edge-2, of all shares
  Refused records: 1 without a role, 2 without room, 3 of connections that are here already, of all shares with edge-2
  Addresses:
    ADDRESS       USE   PRESENCE  TWIN  METRIC  REASON
    198.51.100.1  snat  route     up0      900  -
    203.0.113.1   vip   route     up0      900  -
    203.0.113.2   vip   none      -          -  no endpoint
)");
}

TEST_F(SharesTest, AShareByTheHashWithoutAddressesNamesThePrimarysChannel) {
    gateway_.shares_.mutable_gateways(1)->clear_channel_fault();
    gateway_.shares_.mutable_gateways(1)->set_channel("complete");
    gateway_.shares_.mutable_gateways(1)->set_complete_age_ms(250);
    gateway_.shares_.mutable_gateways(1)->clear_records_refused_share();
    gateway_.shares_.mutable_gateways(1)->clear_records_refused_full();
    gateway_.shares_.mutable_gateways(1)->clear_records_refused_taken();
    gateway_.shares_.set_fault("the file is refused: line 3");
    EXPECT_EQ(run({"describe", "shares", "1"}).value(),
              R"(Share 1
  Plan:            version 7; the file is refused: line 3
  Primary:         edge-2 at 10.0.0.2:7443
  Heir:            edge-1 (this gateway)
  Role here:       heir
  VIPs:            by the hash of the address
  SNAT addresses:  those of each gateway
  Served VIPs:     0, announced by this gateway: 0
  Channel:         complete, for the last time 0.25s ago
  Copies here:     5 of this share's connections of edge-2
  Copies there:    12 of this gateway's connections at edge-2, of all shares
  Addresses:       none
)");
}

TEST_F(SharesTest, AShareOfOthersHasNoCopiesHere) {
    EXPECT_EQ(run({"describe", "share", "2"}).value(),
              R"(Share 2
  Plan:            version 7
  Primary:         edge-2 at 10.0.0.2:7443
  Heir:            edge-3
  Role here:       none: other gateways serve the share
  VIPs:            by the hash of the address
  SNAT addresses:  those of each gateway
  Served VIPs:     3, announced by this gateway: 0
  Addresses:
    ADDRESS       USE  PRESENCE  TWIN  METRIC  REASON
    203.0.113.77  vip  other     -          -  -
)");
}

TEST_F(SharesTest, APrimaryThatAwaitsFailBackIsNamed) {
    gateway_.shares_.mutable_shares(0)->set_held(true);
    const std::string text = run({"describe", "share", "0"}).value();
    EXPECT_NE(
        text.find("  Role here:       primary, which has the copies and awaits penstockctl fail-back\n"),
        std::string::npos)
        << text;
}

TEST_F(SharesTest, TheHolderOfAShareIsNamed_PRESENCE006) {
    gateway_.shares_.mutable_shares(1)->set_holds(true);
    const std::string text = run({"describe", "share", "1"}).value();
    EXPECT_NE(text.find("  Role here:       heir; its workers answer ARP and ND for the share\n"),
              std::string::npos)
        << text;
    const std::string list = run({"get", "shares"}).value();
    EXPECT_NE(list.find("heir, holds"), std::string::npos) << list;
}

TEST_F(SharesTest, APlanOfOneGatewayHasNoHeir) {
    gateway_.shares_.mutable_shares(0)->clear_heir();
    gateway_.shares_.mutable_shares(0)->clear_returns();
    const std::string text = run({"describe", "share", "0"}).value();
    EXPECT_NE(text.find("  Heir:            none: the plan has one gateway\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("Channel"), std::string::npos) << text;
}

TEST_F(SharesTest, JsonAndYamlHaveTheShareItsGatewaysAndItsAddresses) {
    for (const char* format : {"json", "yaml"}) {
        const YAML::Node share = YAML::Load(run({"describe", "share", "0", "-o", format}).value());
        EXPECT_EQ(share["plan_version"].as<int>(), 7);
        EXPECT_EQ(share["gateway_name"].as<std::string>(), "edge-1");
        EXPECT_EQ(share["share"]["role"].as<std::string>(), "primary");
        EXPECT_EQ(share["primary"]["name"].as<std::string>(), "edge-1");
        EXPECT_EQ(share["heir"]["channel_fault"].as<std::string>(), "connection refused");
        EXPECT_EQ(share["vips"].size(), 3U);
        EXPECT_EQ(share["vips"][1]["address"].as<std::string>(), "203.0.113.1");
    }
}

TEST_F(SharesTest, UnknownSharesAndAGatewayWithoutAPlanAreNamed) {
    const auto unknown = run({"describe", "share", "3"});
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error().code, Errc::NotFound);
    EXPECT_EQ(unknown.error().what, "there is no share 3: the plan has the shares 0 to 2");
    for (const char* text : {"x", "1x", "", "4294967296"}) {
        const auto refused = run({"describe", "share", text});
        ASSERT_FALSE(refused.has_value()) << text;
        EXPECT_EQ(refused.error().code, Errc::InvalidArgument) << text;
        EXPECT_EQ(refused.error().what,
                  "share '" + std::string(text) + "' must be a number, as in get shares");
    }
    gateway_.shares_.Clear();
    EXPECT_EQ(run({"describe", "share", "0"}).error().what, "the gateway has no plan of shares (--shares)");
}

}  // namespace shares_test
}  // namespace penstock::cli
