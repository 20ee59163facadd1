// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/connection_limit.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::rpc {
namespace connection_limit_test {

using Rule = ConnectionLimit::Rule;
constexpr ConnectionLimits kLimits{.all_max = 20, .per_source_max = 4, .loopback_reserve = 6};

IpAddr client(uint8_t number) {
    return IpAddr::v4(192, 0, 2, number);
}

TEST(ConnectionLimit, OneSourceGetsItsShareAndOthersTheRest) {
    ConnectionLimit limit(kLimits);
    for (uint32_t i = 0; i < kLimits.per_source_max; ++i) {
        EXPECT_EQ(limit.admit(client(1)), std::nullopt);
    }
    EXPECT_EQ(limit.admit(client(1)), Rule::PerSource);
    EXPECT_EQ(limit.size(), 4u) << "a refused connection is not counted";
    EXPECT_EQ(limit.admit(client(2)), std::nullopt);
    limit.release(client(1));
    EXPECT_EQ(limit.admit(client(1)), std::nullopt);
    EXPECT_EQ(limit.admit(client(1)), Rule::PerSource);
}

TEST(ConnectionLimit, OneIpv6SourceIsASlash64) {
    ConnectionLimit limit(kLimits);
    for (const char* address :
         {"2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1:ffff::", "2001:db8:0:1::1"}) {
        EXPECT_EQ(limit.admit(*IpAddr::parse(address)), std::nullopt);
    }
    EXPECT_EQ(limit.admit(*IpAddr::parse("2001:db8:0:1::9")), Rule::PerSource);
    EXPECT_EQ(limit.admit(*IpAddr::parse("2001:db8:0:2::9")), std::nullopt);
    limit.release(*IpAddr::parse("2001:db8:0:1::7"));
    EXPECT_EQ(limit.admit(*IpAddr::parse("2001:db8:0:1::9")), std::nullopt);
}

TEST(ConnectionLimit, ManySourcesLeaveTheReserveToLoopback) {
    ConnectionLimit limit(kLimits);
    uint32_t remote = 0;
    for (uint8_t number = 0; number < 100; ++number) {
        remote += limit.admit(client(number)) ? 0 : 1;
    }
    EXPECT_EQ(remote, 14u);
    EXPECT_EQ(limit.admit(client(200)), Rule::All);
    const IpAddr ipv6 = *IpAddr::parse("::1");
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(limit.admit(ipv6), std::nullopt);
        EXPECT_EQ(limit.admit(IpAddr::v4(127, 0, 0, 1)), std::nullopt);
    }
    EXPECT_EQ(limit.admit(ipv6), Rule::All);
    EXPECT_EQ(limit.size(), 20u);
    limit.release(client(0));
    EXPECT_EQ(limit.admit(client(200)), std::nullopt);
    EXPECT_EQ(limit.admit(client(201)), Rule::All);
    limit.release(ipv6);
    EXPECT_EQ(limit.admit(client(201)), Rule::All) << "what loopback gives back is not for others";
    EXPECT_EQ(limit.admit(ipv6), std::nullopt);
}

TEST(ConnectionLimit, LoopbackMayUseMoreThanTheReserveButNotAll) {
    ConnectionLimit limit({.all_max = 20, .per_source_max = 4, .loopback_reserve = 6, .loopback_max = 15});
    uint32_t local = 0;
    for (uint8_t number = 1; number < 100; ++number) {
        local += limit.admit(IpAddr::v4(127, 0, 0, number)) ? 0 : 1;
    }
    EXPECT_EQ(local, 15u);
    EXPECT_EQ(limit.admit(IpAddr::v4(127, 0, 0, 200)), Rule::PerSource);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(limit.admit(client(1)), std::nullopt);
    }
    EXPECT_EQ(limit.admit(client(2)), std::nullopt);
    EXPECT_EQ(limit.admit(client(2)), Rule::All);
}

}  // namespace connection_limit_test
}  // namespace penstock::rpc
