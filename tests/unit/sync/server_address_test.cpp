// SPDX-License-Identifier: Apache-2.0
#include "control/sync/server_address.hpp"

#include <gtest/gtest.h>

namespace penstock::sync {
namespace server_address_test {

TEST(ServerAddress, IsTheHostOfTheUrl_XIP006) {
    EXPECT_EQ(host_of("https://192.0.2.1:6443"), "192.0.2.1");
    EXPECT_EQ(host_of("https://[2001:db8::1]:6443/k8s/clusters/c-1"), "2001:db8::1");
    EXPECT_EQ(host_of("https://[2001:db8::1]"), "2001:db8::1");
    EXPECT_EQ(host_of("https://api.example.net/prefix"), "api.example.net");
    EXPECT_EQ(host_of("http://user@api.example.net:80?x"), "api.example.net");
    EXPECT_EQ(host_of("https://[2001:db8::1"), "");
    EXPECT_EQ(host_of(""), "");
}

TEST(ServerAddress, OfALiteralIsItself_XIP006) {
    EXPECT_EQ(addresses_of("192.0.2.1").value(), (std::vector<IpAddr>{IpAddr::v4(192, 0, 2, 1)}));
    EXPECT_EQ(addresses_of("2001:db8::1").value(),
              (std::vector<IpAddr>{IpAddr::parse("2001:db8::1").value()}));
}

TEST(ServerAddress, ANameWithoutAddressIsAnErrorThatNamesIt) {
    const auto none = addresses_of("");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Errc::NotFound);
}

}  // namespace server_address_test
}  // namespace penstock::sync
