// SPDX-License-Identifier: Apache-2.0
// Channels to a gateway.
#include "control/client/channel.hpp"

#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include "control/client/target.hpp"

namespace penstock::client {
namespace channel_test {

// A shutdown may take ten seconds, at the end of each stream and of the program.
TEST(Channel, TheLastOneToCloseLeavesGrpcInitialized) {
    {
        const auto channel = open_channel(Target{"unix:/nowhere"}, {});
        ASSERT_TRUE(channel);
    }
    EXPECT_TRUE(grpc_is_initialized());
}

}  // namespace channel_test
}  // namespace penstock::client
