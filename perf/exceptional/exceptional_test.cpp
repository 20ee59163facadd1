// SPDX-License-Identifier: Apache-2.0
// The bench's packets without its clock: each takes the path of its name, and the bench detects one that does
// not.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "perf/exceptional/paths.hpp"

namespace penstock::perf {
namespace {

std::string drive(const Journey& journey, const Path& path, uint64_t& packets) {
    return journey.road->drive(path, [&](auto&& work, uint64_t of_burst) {
        packets += of_burst;
        work();
    });
}

class Exceptional : public testing::TestWithParam<IpFamily> {
 protected:
    const std::vector<Journey> journeys =
        exceptional_journeys(GetParam() == IpFamily::V4 ? test::ends4() : test::ends6());
};

// Twice, because the state after a round must not change the next one.
TEST_P(Exceptional, PacketsTakeTheWayThatTheirFigureIsNamedFor) {
    std::set<std::string> names;
    for (const Journey& journey : journeys) {
        EXPECT_TRUE(names.insert(journey.path.name).second) << journey.path.name << " is there twice";
        for (int round = 0; round < 2; ++round) {
            uint64_t packets = 0;
            EXPECT_EQ(drive(journey, journey.path, packets), "");
            EXPECT_EQ(packets, journey.path.packets()) << journey.path.name;
        }
    }
    EXPECT_EQ(journeys.front().path.name, "established");
}

TEST_P(Exceptional, AnotherFateIsTold) {
    const Journey& yardstick = journeys.front();
    uint64_t packets = 0;
    Path other_verdict = yardstick.path;
    other_verdict.steps.front().verdict = Verdict::Punt;
    EXPECT_NE(drive(yardstick, other_verdict, packets), "");
    Path other_count = yardstick.path;
    ++other_count.counts.front().second;
    EXPECT_NE(drive(yardstick, other_count, packets), "");
    Path other_state = yardstick.path;
    other_state.steps.front().state = static_cast<uint8_t>(conn::TcpState::RstForward);
    EXPECT_NE(drive(yardstick, other_state, packets), "");
    const auto dropped = std::ranges::find(journeys, "error_unknown",
                                           [](const Journey& journey) { return journey.path.name; });
    ASSERT_NE(dropped, journeys.end());
    Path other_reason = dropped->path;
    other_reason.steps.front().reason = DropReason::BadIcmp;
    EXPECT_NE(drive(*dropped, other_reason, packets), "");
    EXPECT_EQ(drive(yardstick, yardstick.path, packets), "");
}

INSTANTIATE_TEST_SUITE_P(Families, Exceptional, testing::Values(IpFamily::V4, IpFamily::V6),
                         [](const auto& given) { return given.param == IpFamily::V4 ? "ipv4" : "ipv6"; });

}  // namespace
}  // namespace penstock::perf
