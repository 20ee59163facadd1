// SPDX-License-Identifier: Apache-2.0
// The file of --blocklist: its syntax, and how changes are followed.
#include "control/gateway/rules/blocklist.hpp"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.hpp"

namespace penstock::gateway {
namespace blocklist_test {

const std::vector<IpAddr> kOwn{IpAddr::v4(192, 0, 2, 1), *IpAddr::parse("2001:db8::1")};

TEST(Blocklist, HoldsPrefixesAndAddressesOfItsLines) {
    const auto list =
        parse_blocklist("# people\n198.51.100.0/24\n\n\t 203.0.113.9 # a host\r\n2001:db8:bad::/48");
    ASSERT_TRUE(list) << list.error().what;
    EXPECT_EQ(*list, (Blocklist{{*Prefix::parse("198.51.100.0/24"), 2},
                                {*Prefix::parse("203.0.113.9/32"), 4},
                                {*Prefix::parse("2001:db8:bad::/48"), 5}}));
    EXPECT_TRUE(parse_blocklist("")->empty());
    EXPECT_TRUE(parse_blocklist("# nothing\n\n")->empty());
}

TEST(Blocklist, AMistakeIsNamedWithItsLineAndRule) {
    const struct {
        const char* text;
        const char* what;
    } rows[] = {
        {"10.0.0.0/8\n10.1.2.3/8\n",
         "line 2: \"10.1.2.3/8\" has bits beyond its prefix length: write 10.0.0.0/8 or 10.1.2.3/32"},
        {"example.org", "line 1: \"example.org\" is neither a prefix nor an address"},
        {"10.0.0.0/33", "line 1: \"10.0.0.0/33\" is neither a prefix nor an address"},
        {"10.0.0.0/8 192.0.2.0/24", "line 1: \"10.0.0.0/8 192.0.2.0/24\" is neither a prefix nor an address"},
        {"::ffff:10.0.0.1", "line 1: \"::ffff:10.0.0.1\" is neither a prefix nor an address"},
        {"\x01\n\nx",
         "line 1: \"?\" is neither a prefix nor an address; line 3: \"x\" is neither a prefix nor an "
         "address"},
    };
    for (const auto& row : rows) {
        const auto list = parse_blocklist(row.text);
        ASSERT_FALSE(list) << row.text;
        EXPECT_EQ(list.error().what, row.what);
    }
    std::string many;
    for (int i = 0; i < 20; ++i) {
        many += "x\n";
    }
    EXPECT_TRUE(parse_blocklist(many).error().what.ends_with("; and 4 more"));
}

TEST(Blocklist, NeverHoldsTheGatewaysOwnAddress) {
    const auto list = parse_blocklist("198.51.100.0/24\n192.0.2.0/24\n::/0\n");
    ASSERT_TRUE(list);
    const auto set = admit_blocklist(*list, kOwn);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().what,
              "line 2: 192.0.2.0/24 contains the gateway's own address 192.0.2.1; line 3: ::/0 contains the "
              "gateway's own address 2001:db8::1");
    EXPECT_TRUE(admit_blocklist(*list, {}));
}

}  // namespace blocklist_test
}  // namespace penstock::gateway
