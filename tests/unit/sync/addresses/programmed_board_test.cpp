// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/programmed_board.hpp"

#include <gtest/gtest.h>

namespace penstock::sync {
namespace programmed_board_test {

const kube::ObjectName kWeb{"default", "web"};

TEST(ProgrammedBoard, ListsTheGatewaysThatServeAService_PRESENCE001) {
    int wakes = 0;
    ProgrammedBoard board([&] { ++wakes; });
    EXPECT_FALSE(board.gateways_of(kWeb)) << "no report yet";
    board.report("edge-2", kWeb, true);
    board.report("edge-1", kWeb, true);
    board.report("edge-1", kWeb, true);
    EXPECT_EQ(wakes, 2);
    EXPECT_EQ(board.gateways_of(kWeb), (std::vector<std::string>{"edge-1", "edge-2"}));
    EXPECT_EQ(board.take_changed(), std::vector{kWeb});
    EXPECT_TRUE(board.take_changed().empty());
    board.report("edge-1", kWeb, false);
    board.report("edge-2", kWeb, false);
    EXPECT_EQ(board.gateways_of(kWeb), std::vector<std::string>()) << "reported as not served";
    board.forget(kWeb);
    EXPECT_FALSE(board.gateways_of(kWeb));
    EXPECT_TRUE(board.take_changed().empty());
}

TEST(ProgrammedBoard, AGatewayThatIsGoneDoesNotCountUntilItIsBack_PRESENCE001) {
    int wakes = 0;
    ProgrammedBoard board([&] { ++wakes; });
    board.report("edge-1", kWeb, true);
    board.report("edge-2", kWeb, true);
    static_cast<void>(board.take_changed());
    wakes = 0;
    board.set_reachable("edge-1", true);
    EXPECT_EQ(wakes, 0) << "a gateway that reports is reachable";
    board.set_reachable("edge-1", false);
    EXPECT_EQ(wakes, 1);
    EXPECT_EQ(board.take_changed(), std::vector{kWeb});
    EXPECT_EQ(board.gateways_of(kWeb), std::vector<std::string>{"edge-2"});
    EXPECT_EQ(board.own_gateways(), std::vector<std::string>{"edge-2"});
    board.set_reachable("edge-1", true);
    EXPECT_EQ(board.gateways_of(kWeb), (std::vector<std::string>{"edge-1", "edge-2"}));
}

TEST(ProgrammedBoard, GatewaysOfOtherProcessesCountAsWell_PRESENCE001) {
    ProgrammedBoard board([] {});
    const kube::ObjectName other{"default", "other"};
    board.set_others({"edge-2", "edge-3"});
    EXPECT_FALSE(board.is_complete(kWeb));
    board.report_other("edge-2", kWeb, true);
    EXPECT_FALSE(board.is_complete(kWeb)) << "edge-3 has not reported";
    board.report_other("edge-3", kWeb, false);
    EXPECT_TRUE(board.is_complete(kWeb));
    board.report("edge-1", kWeb, true);
    EXPECT_EQ(board.gateways_of(kWeb), (std::vector<std::string>{"edge-1", "edge-2"}));
    EXPECT_EQ(board.take_changed(), std::vector{kWeb});
    // The own gateway of the same name takes precedence, until it is gone.
    board.report("edge-2", kWeb, false);
    EXPECT_EQ(board.gateways_of(kWeb), std::vector<std::string>{"edge-1"});
    board.set_reachable("edge-2", false);
    EXPECT_EQ(board.gateways_of(kWeb), (std::vector<std::string>{"edge-1", "edge-2"}));
    // edge-2 and its process are gone, and come back without a report.
    board.set_others({"edge-3"});
    EXPECT_EQ(board.gateways_of(kWeb), std::vector<std::string>{"edge-1"});
    board.set_others({"edge-2", "edge-3"});
    EXPECT_EQ(board.gateways_of(kWeb), std::vector<std::string>{"edge-1"});
    EXPECT_FALSE(board.is_complete(kWeb));
    EXPECT_FALSE(board.is_complete(other));
    board.set_others({});
    EXPECT_TRUE(board.is_complete(other));
}

TEST(ProgrammedBoard, ListsTheServicesThatAGatewayLacks_PRESENCE001) {
    ProgrammedBoard board([] {});
    const kube::ObjectName other{"default", "other"}, third{"default", "third"};
    const uint64_t before = board.own_version();
    board.report("edge-1", kWeb, true);
    board.report("edge-1", other, false);
    EXPECT_GT(board.own_version(), before);
    EXPECT_EQ(board.not_served_by("edge-1", {kWeb, other, third}), (std::vector{other, third}));
    EXPECT_EQ(board.not_served_by("edge-2", {kWeb}), std::vector{kWeb});
    const uint64_t now = board.own_version();
    board.set_others({"edge-2"});
    board.report_other("edge-2", kWeb, true);
    EXPECT_EQ(board.own_version(), now) << "what others report is not reported again";
    EXPECT_EQ(board.not_served_by("edge-2", {kWeb}), std::vector{kWeb});
}

TEST(ProgrammedBoard, ConditionNamesGateways_PRESENCE001) {
    EXPECT_EQ(programmed_condition({"edge-1", "edge-2"}),
              (kube::Condition{.type = "penstock.io/Programmed",
                               .status = "True",
                               .reason = "Served",
                               .message = "served by edge-1, edge-2"}));
    EXPECT_EQ(programmed_condition({}), (kube::Condition{.type = "penstock.io/Programmed",
                                                         .status = "False",
                                                         .reason = "NotServed",
                                                         .message = "no gateway serves the Service"}));
    const kube::Condition many = programmed_condition(std::vector<std::string>(18, "edge"));
    EXPECT_NE(many.message.find(" and 2 more"), std::string::npos) << many.message;
}

}  // namespace programmed_board_test
}  // namespace penstock::sync
