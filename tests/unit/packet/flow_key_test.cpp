// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/flow_key.hpp"

#include <gtest/gtest.h>

namespace penstock::packet {
namespace flow_key_test {

TEST(FlowKey, ReadsLikeAConnection) {
    const FlowKey key{IpAddr::v4(192, 0, 2, 1), IpAddr::v4(80, 11, 12, 10), 40000, 80, Protocol::Tcp, {}};
    EXPECT_EQ(key.to_string(), "TCP 192.0.2.1:40000 -> 80.11.12.10:80");
    EXPECT_EQ(key.reversed().to_string(), "TCP 80.11.12.10:80 -> 192.0.2.1:40000");
}

TEST(FlowKey, BracketsIpv6) {
    const FlowKey key{IpAddr::parse("2001:db8::1").value(),
                      IpAddr::parse("2001:db8::2").value(),
                      53,
                      5353,
                      Protocol::Udp,
                      {}};
    EXPECT_EQ(key.to_string(), "UDP [2001:db8::1]:53 -> [2001:db8::2]:5353");
}

TEST(FlowKey, ReversedTwiceIsItself) {
    const FlowKey key{IpAddr::v4(1, 2, 3, 4), IpAddr::v4(5, 6, 7, 8), 9, 10, Protocol::Udp, {}};
    EXPECT_NE(key.reversed(), key);
    EXPECT_EQ(key.reversed().reversed(), key);
}

}  // namespace flow_key_test
}  // namespace penstock::packet
