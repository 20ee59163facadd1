// SPDX-License-Identifier: Apache-2.0
#include "control/cli/all_gateways.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "control/cli/exit_code.hpp"
#include "control/cli/options.hpp"
#include "tests/unit/cli/fake_gateway.hpp"

namespace penstock::cli {
namespace all_gateways_test {

class AllGateways : public testing::Test {
 protected:
    // Adds a gateway with one route.
    test::FakeGateway& add(const std::string& name, const std::string& destination) {
        auto gateway = std::make_unique<test::FakeGateway>();
        test::FakeGateway& added = *gateway;
        added.routes_.add_routes()->set_destination(destination);
        added.status_.mutable_identity()->set_gateway_name(name);
        members_.push_back({name, {}, std::move(gateway)});
        return added;
    }
    Report run(const std::vector<std::string>& words) {
        const auto line = read_command_line(words);
        const auto& invocation = std::get<Invocation>(line.value());
        for (Member& member : members_) {
            member.request = invocation.request;
        }
        return report_of_all(*invocation.command, invocation.request, members_);
    }

    std::vector<Member> members_;
};

TEST_F(AllGateways, ATableIsOneTableWithAColumnForTheGateway) {
    add("edge-1", "10.80.2.0/24");
    add("edge-22", "0.0.0.0/0");
    const Report report = run({"get", "routes"});
    EXPECT_EQ(report.text,
              "GATEWAY  DESTINATION   GATEWAY  TWIN  METRIC\n"
              "edge-1   10.80.2.0/24  -        -          0\n"
              "edge-22  0.0.0.0/0     -        -          0\n");
    EXPECT_EQ(report.exit_code, 0);
    EXPECT_TRUE(report.errors.empty());
    EXPECT_EQ(run({"get", "routes", "--no-headers"}).text, report.text.substr(report.text.find('\n') + 1));
}

TEST_F(AllGateways, AGatewayThatFailsHidesNoOther) {
    add("edge-1", "10.80.2.0/24").error = Error{Errc::Unavailable, "gone"};
    add("edge-2", "10.80.3.0/24");
    add("edge-3", "10.80.4.0/24").error = Error{Errc::PermissionDenied, "refused"};
    members_.push_back({"edge-4", {}, fail(Errc::NotFound, "no certificate")});
    const Report report = run({"get", "routes"});
    EXPECT_THAT(report.text, testing::HasSubstr("edge-2   10.80.3.0/24"));
    EXPECT_THAT(report.errors,
                testing::ElementsAre("edge-1: gone", "edge-3: refused", "edge-4: no certificate"));
    EXPECT_EQ(report.exit_code, kExitUnreachable) << "the highest";

    const YAML::Node json = YAML::Load(run({"get", "routes", "-o", "json"}).text);
    ASSERT_EQ(json.size(), 4u);
    EXPECT_EQ(json[0]["gateway"].Scalar(), "edge-1");
    EXPECT_EQ(json[0]["error"].Scalar(), "gone");
    EXPECT_FALSE(json[0]["answer"]);
    EXPECT_EQ(json[1]["answer"][0]["destination"].Scalar(), "10.80.3.0/24");
    const YAML::Node yaml = YAML::Load(run({"get", "routes", "-o", "yaml"}).text);
    EXPECT_EQ(yaml[1]["answer"][0]["destination"].Scalar(), "10.80.3.0/24");
}

TEST_F(AllGateways, OtherTextsFollowUnderTheNameOfTheirGateway) {
    add("edge-1", "");
    add("edge-2", "").status_.add_not_well("drained");
    const Report report = run({"status"});
    EXPECT_THAT(report.text, testing::StartsWith("== edge-1 ==\nGateway:        edge-1"));
    EXPECT_THAT(report.text, testing::HasSubstr("\n\n== edge-2 ==\nGateway:        edge-2"));
    EXPECT_EQ(report.exit_code, kExitRefused) << "edge-2 is not ready";
    EXPECT_THAT(report.errors, testing::ElementsAre("edge-2: the gateway is not ready: drained"));
    EXPECT_EQ(YAML::Load(run({"status", "-o", "json"}).text)[1]["answer"]["not_well"][0].Scalar(), "drained")
        << "its page is there although the exit code reports it";
}

TEST_F(AllGateways, NoAnswerIsNoTable) {
    add("edge-1", "").error = Error{Errc::Unavailable, "gone"};
    EXPECT_EQ(run({"get", "routes"}).text, "");
    EXPECT_EQ(run({"status"}).text, "");
    EXPECT_THAT(run({"get", "routes", "-o", "json"}).text, testing::StartsWith("[{\"gateway\": \"edge-1\""));
}

}  // namespace all_gateways_test
}  // namespace penstock::cli
