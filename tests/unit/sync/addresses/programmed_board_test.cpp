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

TEST(ProgrammedBoard, ConditionNamesGateways_PRESENCE001) {
    EXPECT_EQ(programmed_condition({"edge-1", "edge-2"}),
              (kube::Condition{.type = "penstock.io/Programmed",
                               .status = "True",
                               .reason = "Served",
                               .message = "served by edge-1, edge-2"}));
    EXPECT_EQ(programmed_condition({}),
              (kube::Condition{.type = "penstock.io/Programmed",
                               .status = "False",
                               .reason = "NotServed",
                               .message = "no gateway of the penstock-sync that leads serves the Service; "
                                          "gateways of other penstock-sync are not counted"}));
    const kube::Condition many = programmed_condition(std::vector<std::string>(18, "edge"));
    EXPECT_NE(many.message.find(" and 2 more"), std::string::npos) << many.message;
}

}  // namespace programmed_board_test
}  // namespace penstock::sync
