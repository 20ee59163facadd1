// SPDX-License-Identifier: Apache-2.0
// Ranges of free addresses.
#include "control/ipam/free_ranges.hpp"

#include <gtest/gtest.h>

#include "tests/unit/ipam/cluster.hpp"

namespace penstock::ipam::testing {
namespace free_ranges_test {

TEST(FreeRanges, TakesAndMerges) {
    FreeRanges free(IpFamily::V4, false);
    const Number first = to_number(ip("192.0.2.0"));
    free.add(first, first + 3);
    for (const Number offset : {1, 0, 3, 2}) {
        free.take(first + offset);
        free.take(first + offset);  // no effect
    }
    EXPECT_EQ(free.lowest(), std::nullopt);
    for (const Number offset : {3, 1, 2}) {
        free.put(first + offset);
        EXPECT_EQ(free.lowest(), to_address(first + (offset == 3 ? 3 : 1), IpFamily::V4));
    }
}

TEST(FreeRanges, TheLastAddressHasNoSuccessor) {
    FreeRanges free(IpFamily::V6, false);
    const Number last = ~Number{0};
    free.add(last - 1, last);
    free.take(last - 1);
    EXPECT_EQ(free.lowest(), to_address(last, IpFamily::V6));
    free.put(last - 1);
    free.take(last - 1);
    free.take(last);
    EXPECT_EQ(free.lowest(), std::nullopt);
}

}  // namespace free_ranges_test
}  // namespace penstock::ipam::testing
