// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/state/unheld_asks.hpp"

#include <gtest/gtest.h>

namespace penstock::pipeline {
namespace unheld_asks_test {

using Kind = UnheldAsks::Kind;

constexpr TscRate kRate{1'000'000'000};
constexpr NicPortId kPort{1};

TscTime at_ms(uint64_t ms) {
    return TscTime{1'000'000'000'000} + kRate.milliseconds(ms);
}
IpAddr host(uint32_t n) {
    return IpAddr::v4(Be32::from_host(0x0a000000U + n));
}

TEST(UnheldAsks, OnceForEachAddressUntilItMayBeRepeated) {
    UnheldAsks asks(kRate);
    EXPECT_TRUE(asks.ask(Kind::Configured, kPort, host(1), 1, at_ms(0)));
    EXPECT_FALSE(asks.ask(Kind::Configured, kPort, host(1), 1, at_ms(route::kAskAgainMs - 1)));
    EXPECT_TRUE(asks.ask(Kind::Configured, NicPortId{2}, host(1), 2, at_ms(0))) << "another link's host";
    EXPECT_TRUE(asks.ask(Kind::Configured, kPort, host(2), 3, at_ms(0)));
    EXPECT_TRUE(asks.ask(Kind::Configured, kPort, host(1), 1, at_ms(route::kAskAgainMs)));
}

// Each packet of the flood is for another address of a link, and none of the addresses has a host.
TEST(UnheldAsks, AFloodOfHostsLeavesEndpointsTheirTurn) {
    UnheldAsks asks(kRate);
    uint32_t of_flood = 0, of_endpoint = 0;
    for (uint32_t n = 0; n < 5'000; ++n) {
        of_flood += asks.ask(Kind::Host, kPort, host(100 + n), 100 + n, at_ms(n / 5)) ? 1 : 0;
        of_endpoint += asks.ask(Kind::Configured, kPort, host(1), 100 + n % 7, at_ms(n / 5)) ? 1 : 0;
    }
    EXPECT_GE(of_flood, limits::kUnheldAsksPerSecondOfHosts);
    EXPECT_LE(of_flood, 2 * limits::kUnheldAsksPerSecondOfHosts) << "what it had at once, and a second's";
    EXPECT_GE(of_endpoint, 5u);
}

}  // namespace unheld_asks_test
}  // namespace penstock::pipeline
