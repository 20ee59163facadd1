// SPDX-License-Identifier: Apache-2.0
// Health of the gateway, with a clock that is an argument.
#include "control/gateway/care/proxy_health.hpp"

#include <gtest/gtest.h>

namespace penstock::gateway {
namespace proxy_health_test {

using namespace std::chrono_literals;

const ProxyTimes kNow{std::chrono::steady_clock::time_point(1h),
                      std::chrono::system_clock::time_point(1'700'000'000s)};
constexpr auto kLimit = 60s;
const auto kProgrammedAt = kNow.wall - 3min;

TEST(ProxyHealth, AnIdleGatewayIsWellHoweverLongAgoTheLastChangeWas_HC006) {
    const auto answer = healthz({.programmed_at = kNow.wall - 100h}, kNow, kLimit);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.content_type, "application/json");
    EXPECT_EQ(
        answer.body,
        R"({"lastUpdated": "2023-11-14T22:13:20Z","currentTime": "2023-11-14T22:13:20Z", "nodeEligible": true})");
}

TEST(ProxyHealth, AChangeThatWaitsForMoreThanTwiceTheLimitMakesItUnwell_HC006) {
    ProxyFacts facts{.waiting_since = kNow.now - 120s, .programmed_at = kProgrammedAt};
    EXPECT_EQ(healthz(facts, kNow, kLimit).status, 200);
    EXPECT_TRUE(is_well(facts, kNow.now, kLimit));
    facts.waiting_since = kNow.now - 121s;
    EXPECT_FALSE(is_well(facts, kNow.now, kLimit));
    for (const auto& answer : {healthz(facts, kNow, kLimit), livez(facts, kNow, kLimit)}) {
        EXPECT_EQ(answer.status, 503);
        EXPECT_NE(answer.body.find(
                      R"("lastUpdated": "2023-11-14T22:10:20Z","currentTime": "2023-11-14T22:13:20Z")"),
                  std::string::npos)
            << answer.body;
    }
    EXPECT_TRUE(is_well(facts, kNow.now, 61s)) << "--sync-limit";
}

TEST(ProxyHealth, ANodeThatIsBeingDeletedIsNotEligibleButAlive_HC006) {
    const ProxyFacts facts{.programmed_at = kProgrammedAt, .node_eligible = false};
    const auto answer = healthz(facts, kNow, kLimit);
    EXPECT_EQ(answer.status, 503);
    EXPECT_NE(answer.body.find(R"("nodeEligible": false)"), std::string::npos) << answer.body;
    const auto alive = livez(facts, kNow, kLimit);
    EXPECT_EQ(alive.status, 200);
    EXPECT_EQ(alive.body, R"({"lastUpdated": "2023-11-14T22:13:20Z","currentTime": "2023-11-14T22:13:20Z"})");
}

TEST(ProxyHealth, ADrainedGatewaySendsOthersAway_DRAIN006) {
    const ProxyFacts facts{.programmed_at = kProgrammedAt, .drained = true};
    EXPECT_FALSE(is_well(facts, kNow.now, kLimit));
    EXPECT_EQ(healthz(facts, kNow, kLimit).status, 503);
    EXPECT_NE(healthz(facts, kNow, kLimit).body.find(R"("reasons": ["drained"]})"), std::string::npos);
    EXPECT_EQ(livez(facts, kNow, kLimit).status, 200) << "a restart would not mend it";
}

TEST(ProxyHealth, WithoutAConfigurationOrANeededPortClientsAreSentAwayAndARestartWouldNotHelp_HC006) {
    const ProxyFacts empty{.programmed_at = kProgrammedAt, .has_configuration = false};
    EXPECT_EQ(why_not_well(empty, kNow.now, kLimit),
              std::vector<std::string>{"no configuration is in force"});
    EXPECT_EQ(healthz(empty, kNow, kLimit).status, 503);
    EXPECT_EQ(livez(empty, kNow, kLimit).status, 200);
    const ProxyFacts cut_off{.programmed_at = kProgrammedAt,
                             .port_faults = {"port pen0 is down", "port \"pen1\" is down"}};
    const auto answer = healthz(cut_off, kNow, kLimit);
    EXPECT_EQ(answer.status, 503);
    EXPECT_NE(answer.body.find(R"("reasons": ["port pen0 is down", "port \"pen1\" is down"]})"),
              std::string::npos)
        << answer.body;
    EXPECT_EQ(livez(cut_off, kNow, kLimit).status, 200);
}

TEST(ProxyHealth, ALoopThatHasStoppedIsWhatARestartMends_HC006) {
    const ProxyFacts facts{
        .programmed_at = kProgrammedAt, .drained = true, .stalls = {"worker 0 has made no round"}};
    EXPECT_EQ(why_not_live(facts, kNow.now, kLimit), std::vector<std::string>{"worker 0 has made no round"});
    EXPECT_EQ(why_not_well(facts, kNow.now, kLimit),
              (std::vector<std::string>{"worker 0 has made no round", "drained"}));
    EXPECT_EQ(livez(facts, kNow, kLimit).status, 503);
    EXPECT_NE(livez(facts, kNow, kLimit).body.find(R"("reasons": ["worker 0 has made no round"]})"),
              std::string::npos);
}

// What `systemctl start` waits for.
TEST(ProxyHealth, AStartIsCompleteWithAConfigurationAndTheNeededPorts) {
    const std::pair<ProxyFacts, std::vector<std::string>> kCases[] = {
        {{.programmed_at = kProgrammedAt}, {}},
        {{.programmed_at = kProgrammedAt, .has_configuration = false}, {"no configuration is in force"}},
        {{.programmed_at = kProgrammedAt, .port_faults = {"port pen0 is down"}}, {"port pen0 is down"}},
        {{.programmed_at = kProgrammedAt, .stalls = {"worker 0 has made no round"}},
         {"worker 0 has made no round"}},
        {{.programmed_at = kProgrammedAt, .node_eligible = false, .drained = true}, {}},
        {{.waiting_since = kNow.now - 1h, .programmed_at = kProgrammedAt}, {}},
    };
    for (const auto& [facts, reasons] : kCases) {
        EXPECT_EQ(why_not_started(facts), reasons);
    }
}

}  // namespace proxy_health_test
}  // namespace penstock::gateway
