// SPDX-License-Identifier: Apache-2.0
#include "dataplane/route/neighbour_use.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::route {
namespace neighbour_use_test {

TEST(NeighbourUse, TellsTheLastSecondOfUse) {
    std::vector<std::atomic<UseSeconds>> memory(NeighbourUse::kStamps);
    NeighbourUse worker(memory);
    const NeighbourId last{NeighbourUse::kStamps - 1};
    EXPECT_EQ(worker.last_used(last), 0u) << "never";
    worker.note(last, 100);
    worker.note(last, 100);
    EXPECT_EQ(worker.last_used(last), 100u);
    worker.note(last, 101);
    EXPECT_EQ(worker.last_used(last), 101u);
    EXPECT_EQ(worker.last_used(NeighbourId{0}), 0u);
    EXPECT_EQ(worker.last_used(NeighbourId{}), 0u) << "an unset id was never used";
}

}  // namespace neighbour_use_test
}  // namespace penstock::route
