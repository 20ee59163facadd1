// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/descriptors.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace penstock::gateway {
namespace descriptors_test {

TEST(Descriptors, TheLimitIsRaisedAndNeverLowered) {
    rlimit usual{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
    rlimit few = usual;
    few.rlim_cur = std::min<rlim_t>(512, usual.rlim_max);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    raise_descriptor_limit();
    rlimit now{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
    EXPECT_EQ(now.rlim_cur, std::min<rlim_t>(kDescriptorsWanted, usual.rlim_max));
    EXPECT_EQ(now.rlim_max, usual.rlim_max);

    rlimit all = usual;
    all.rlim_cur = usual.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &all), 0);
    raise_descriptor_limit();
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
    EXPECT_EQ(now.rlim_cur, usual.rlim_max);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
}

}  // namespace descriptors_test
}  // namespace penstock::gateway
