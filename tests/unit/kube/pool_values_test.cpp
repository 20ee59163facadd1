// SPDX-License-Identifier: Apache-2.0
#include "control/kube/pool_values.hpp"

#include <gtest/gtest.h>

namespace penstock::kube {
namespace pool_values_test {

using ipam::AddressRange;

IpAddr ip(const char* text) {
    return IpAddr::parse(text).value();
}
AddressRange range(const char* first, const char* last) {
    return {ip(first), ip(last)};
}

TEST(PoolValues, ARangeIsACidrOrBothEnds_LB007) {
    struct Case {
        const char* text;
        AddressRange range;
    };
    for (const Case& each : {
             Case{"192.0.2.0/24", range("192.0.2.0", "192.0.2.255")},
             Case{"192.0.2.7/32", range("192.0.2.7", "192.0.2.7")},
             Case{"10.0.0.0/8", range("10.0.0.0", "10.255.255.255")},
             Case{"10.1.2.128/25", range("10.1.2.128", "10.1.2.255")},
             Case{"192.0.2.10-192.0.2.20", range("192.0.2.10", "192.0.2.20")},
             Case{"192.0.2.10 - 192.0.2.20", range("192.0.2.10", "192.0.2.20")},
             Case{"192.0.2.010-192.0.2.010", range("192.0.2.10", "192.0.2.10")},
             Case{"2001:db8::/64", range("2001:db8::", "2001:db8::ffff:ffff:ffff:ffff")},
             Case{"2001:DB8:0::1/128", range("2001:db8::1", "2001:db8::1")},
             Case{"2001:db8::10-2001:db8::1:0", range("2001:db8::10", "2001:db8::1:0")},
             Case{"fd00::/9", range("fd00::", "fd7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff")},
         }) {
        const auto parsed = parse_address_range(each.text);
        ASSERT_TRUE(parsed) << each.text << ": " << parsed.error().what;
        EXPECT_EQ(*parsed, each.range) << each.text;
    }
}

TEST(PoolValues, AMalformedRangeIsRefusedWithItsReason_LB015) {
    struct Case {
        const char* text;
        const char* reason;  // part of the error
    };
    for (const Case& each : {
             Case{"", "must be a CIDR (192.0.2.0/24) or a range"},
             Case{"web", "must be a CIDR"},
             Case{"a\nb/24", "\"a?b\" is not an IP address"},
             Case{"192.0.2.1", "write 192.0.2.1/32"},
             Case{"2001:db8::1", "write 2001:db8::1/128"},
             Case{"192.0.2.0/33", "33"},
             Case{"192.0.2.0/", "its length is not a number"},
             Case{"192.0.2.0/24x", "its length is not a number"},
             Case{"192.0.2.256/32", "192.0.2.256"},
             Case{"192.0.2.10/24", "has bits behind its length; write 192.0.2.0/24, or 192.0.2.10/32"},
             Case{"2001:db8::1/64", "has bits behind its length; write 2001:db8::/64"},
             Case{"192.0.2.9-192.0.2.1", "the last address is below the first one"},
             Case{"192.0.2.1-2001:db8::1", "one end is an IPv4 address, the other one an IPv6 address"},
             Case{"192.0.2.1-", "is not"},
             Case{"-192.0.2.1", "is not"},
             Case{"192.0.2.0/24-192.0.3.0/24", "is not"},
             Case{"192.0.2.1-192.0.2.2-192.0.2.3", "is not"},
             Case{"::ffff:192.0.2.0/120", "::ffff:192.0.2.0"},
             Case{"::2-2001:db8::1", "contains IPv4-mapped addresses"},
             Case{"::-::5", "contains the unspecified address"},
             Case{"0.0.0.0/0", "contains the unspecified address"},
             Case{"100.0.0.0-130.0.0.0", "contains loopback addresses"},
             Case{"169.254.10.0/24", "contains link-local addresses"},
             Case{"223.255.255.255-224.0.0.0", "contains multicast addresses"},
             Case{"255.255.255.254-255.255.255.255", "contains the broadcast address"},
             Case{"fe80::/64", "contains link-local addresses"},
             Case{"ff02::1-ff02::2", "contains multicast addresses"},
         }) {
        const auto parsed = parse_address_range(each.text);
        ASSERT_FALSE(parsed) << each.text;
        EXPECT_TRUE(parsed.error().what.starts_with(shown_value(each.text) + ": ")) << parsed.error().what;
        EXPECT_NE(parsed.error().what.find(each.reason), std::string::npos)
            << each.text << ": " << parsed.error().what;
    }
}

TEST(PoolValues, OverlapNamesBothRanges_LB015) {
    EXPECT_FALSE(overlap_in({}));
    EXPECT_FALSE(overlap_in({range("192.0.2.0", "192.0.2.9"), range("192.0.2.10", "192.0.2.20")}))
        << "adjacent";
    EXPECT_FALSE(overlap_in({range("2001:db8::", "2001:db8::ff"), range("192.0.2.0", "192.0.2.9")}));
    EXPECT_FALSE(overlap_in(
        {range("::2", "::5"), range("192.0.2.0", "192.0.2.9"), range("2001:db8::", "2001:db8::1")}));
    struct Case {
        std::vector<AddressRange> ranges;
        size_t index, with;
    };
    for (const Case& each : {
             Case{{range("192.0.2.0", "192.0.2.9"), range("192.0.2.9", "192.0.2.20")}, 1, 0},
             Case{{range("192.0.2.9", "192.0.2.20"), range("192.0.2.0", "192.0.2.9")}, 1, 0},
             Case{{range("10.0.0.0", "10.0.0.9"), range("192.0.2.5", "192.0.2.5"),
                   range("192.0.2.0", "192.0.2.255")},
                  2,
                  1},
             Case{{range("192.0.2.0", "192.0.2.9"), range("192.0.2.0", "192.0.2.9")}, 1, 0},
         }) {
        const auto overlap = overlap_in(each.ranges);
        ASSERT_TRUE(overlap);
        EXPECT_EQ(overlap->index, each.index);
        EXPECT_EQ(overlap->with, each.with);
    }
}

TEST(PoolValues, RangesAreInOrderOfFamilyAndAddress) {
    std::vector<AddressRange> ranges = {range("2001:db8::", "2001:db8::1"), range("::2", "::5"),
                                        range("192.0.2.0", "192.0.2.9"), range("10.0.0.0", "10.0.0.1")};
    sort_ranges(ranges);
    EXPECT_EQ(ranges,
              (std::vector<AddressRange>{range("10.0.0.0", "10.0.0.1"), range("192.0.2.0", "192.0.2.9"),
                                         range("::2", "::5"), range("2001:db8::", "2001:db8::1")}));
}

TEST(PoolValues, AReservedAddressIsOneThatThePoolCanGive_LB022) {
    const std::vector<AddressRange> ranges = {range("192.0.2.0", "192.0.2.255"),
                                              range("2001:db8::", "2001:db8::ff")};
    EXPECT_EQ(parse_reserved_address("192.0.2.7", ranges, true).value(), ip("192.0.2.7"));
    EXPECT_EQ(parse_reserved_address("192.0.2.0", ranges, false).value(), ip("192.0.2.0"));
    EXPECT_EQ(parse_reserved_address("2001:db8::", ranges, true).value(), ip("2001:db8::"))
        << "IPv6 is unaffected";
    for (const char* text : {"192.0.2.0", "192.0.2.255"}) {
        EXPECT_EQ(parse_reserved_address(text, ranges, true).error().what,
                  shown_value(text) + ": ends in .0 or .255, which avoidBuggyIPs excludes");
    }
    EXPECT_EQ(parse_reserved_address("192.0.3.1", ranges, false).error().what,
              "(\"192.0.3.1\"): is not one of the pool's addresses");
    EXPECT_FALSE(parse_reserved_address("192.0.2.7/32", ranges, false));
    EXPECT_FALSE(parse_reserved_address("", ranges, false));
}

TEST(PoolValues, ShownValuesAreShortAndPrintable) {
    EXPECT_EQ(shown_value("a\n\x1b[1mb"), "(\"a??[1mb\")");
    EXPECT_EQ(shown_value(std::string(81, 'x')), "(\"" + std::string(80, 'x') + "...\")");
}

}  // namespace pool_values_test
}  // namespace penstock::kube
