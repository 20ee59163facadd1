// SPDX-License-Identifier: Apache-2.0
// Sets of prefixes.
#include "control/semantics/prefix_set.hpp"

#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace prefix_set_test {

TEST(PrefixSet, FindsTheLongestOfItsFamily) {
    const PrefixSet set({cidr("10.0.0.0/8"), cidr("10.1.0.0/16"), cidr("::/0"), cidr("10.1.2.3/32")});
    EXPECT_EQ(set.longest_match(ip("10.1.2.3")), cidr("10.1.2.3/32"));
    EXPECT_EQ(set.longest_match(ip("10.1.2.4")), cidr("10.1.0.0/16"));
    EXPECT_EQ(set.longest_match(ip("10.2.0.0")), cidr("10.0.0.0/8"));
    EXPECT_EQ(set.longest_match(ip("11.0.0.0")), std::nullopt);
    EXPECT_EQ(set.longest_match(ip("2001:db8::1")), cidr("::/0"));
    EXPECT_EQ(PrefixSet({cidr("0.0.0.0/0")}).longest_match(ip("::1")), std::nullopt);
}

}  // namespace prefix_set_test
}  // namespace penstock::semantics::testing
