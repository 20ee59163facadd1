// SPDX-License-Identifier: Apache-2.0
// Addresses that an interface can carry.
#include "drivers/host/interface_address.hpp"

#include <gtest/gtest.h>

namespace penstock::drivers {
namespace interface_address_test {

TEST(InterfaceAddress, ReadsWhatAnInterfaceCanCarry) {
    const auto v4 = InterfaceAddress::parse("192.0.2.1/24");
    ASSERT_TRUE(v4);
    EXPECT_EQ(v4->address, IpAddr::v4(192, 0, 2, 1));
    EXPECT_EQ(v4->prefix_length, 24);
    EXPECT_EQ(v4->to_string(), "192.0.2.1/24");
    const auto v6 = InterfaceAddress::parse("2001:db8::1/64");
    ASSERT_TRUE(v6);
    EXPECT_EQ(v6->to_string(), "2001:db8::1/64");
    for (const char* text :
         {"192.0.2.1", "192.0.2.1/33", "192.0.2.1/", "192.0.2.1/x", "192.0.2.1/24/1", "2001:db8::1/129",
          "224.0.0.1/4", "127.0.0.1/8", "0.0.0.0/0", "::/0", "host/24", ""}) {
        EXPECT_FALSE(InterfaceAddress::parse(text)) << text;
    }
}

}  // namespace interface_address_test
}  // namespace penstock::drivers
