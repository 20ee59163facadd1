// SPDX-License-Identifier: Apache-2.0
#include "control/sync/flood_guard.hpp"

#include <gtest/gtest.h>

namespace penstock::sync {
namespace flood_guard_test {

using namespace std::chrono_literals;

TEST(FloodGuard, AFloodIsCutAndCounted_GEN001) {
    FloodGuard guard;
    const kube::RateLimit::Time start{1h};
    for (uint32_t line = 0; line < FloodGuard::kBurst; ++line) {
        ASSERT_EQ(guard.admit(start), 0u);
    }
    for (int line = 0; line < 100'000; ++line) {
        ASSERT_FALSE(guard.admit(start));
    }
    EXPECT_EQ(guard.admit(start + FloodGuard::kInterval), 100'000u) << "the next line says how many";
    EXPECT_EQ(guard.admit(start + 1h), 0u) << "once";
}

}  // namespace flood_guard_test
}  // namespace penstock::sync
