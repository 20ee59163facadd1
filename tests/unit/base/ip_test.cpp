// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/ip.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace ip_test {

struct ParseCase {
    const char* name;
    const char* text;
    const char* canonical;  // null: rejected
};

// GEN-005: parsed once to binary; leading zeros are decimal; IPv4-mapped is invalid.
TEST(IpAddr, ParsesAsKubernetesMeansIt_GEN005) {
    const ParseCase cases[] = {
        {"plain", "80.11.12.10", "80.11.12.10"},
        {"leading zeros are decimal", "010.0.0.1", "10.0.0.1"},
        {"all parts padded", "192.168.001.010", "192.168.1.10"},
        {"upper case, uncompressed", "2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
        {"odd compression", "2001:DB8:0::1", "2001:db8::1"},
        {"unspecified", "0.0.0.0", "0.0.0.0"},
        {"mapped", "::ffff:10.0.0.1", nullptr},
        {"mapped in hex", "::ffff:a00:1", nullptr},
        {"zone", "fe80::1%eth0", nullptr},
        {"three parts", "10.0.1", nullptr},
        {"five parts", "10.0.0.0.1", nullptr},
        {"part too large", "10.0.0.256", nullptr},
        {"hex part", "10.0.0.0x1", nullptr},
        {"empty part", "10..0.1", nullptr},
        {"empty", "", nullptr},
        {"sign", "+10.0.0.1", nullptr},
        {"trailing blank", "10.0.0.1 ", nullptr},
        {"port", "10.0.0.1:80", nullptr},
        {"name", "localhost", nullptr},
    };
    for (const ParseCase& c : cases) {
        const Result<IpAddr> parsed = IpAddr::parse(c.text);
        if (c.canonical == nullptr) {
            EXPECT_FALSE(parsed.has_value()) << c.name;
        } else {
            ASSERT_TRUE(parsed.has_value()) << c.name << ": " << parsed.error().what;
            EXPECT_EQ(parsed->to_string(), c.canonical) << c.name;
        }
    }
}

TEST(IpAddr, KnowsItsSpecialRanges) {
    const auto address = [](const char* text) { return IpAddr::parse(text).value(); };
    EXPECT_TRUE(address("127.255.0.1").is_loopback());
    EXPECT_TRUE(address("::1").is_loopback());
    EXPECT_FALSE(address("128.0.0.1").is_loopback());
    EXPECT_TRUE(address("169.254.1.1").is_link_local());
    EXPECT_TRUE(address("febf::1").is_link_local());
    EXPECT_FALSE(address("fec0::1").is_link_local());
    EXPECT_TRUE(address("239.1.2.3").is_multicast());
    EXPECT_TRUE(address("ff02::1").is_multicast());
    EXPECT_TRUE(address("255.255.255.255").is_reserved_v4());
    EXPECT_FALSE(address("239.255.255.255").is_reserved_v4());
    EXPECT_TRUE(address("::").is_unspecified());
    EXPECT_TRUE(address("0.0.0.0").is_unspecified());
}

// SRC-002: an entry is masked to its prefix.
TEST(Prefix, MasksHostBitsAndContains_SRC002) {
    const Prefix ten = Prefix::parse("10.1.2.3/8").value();
    EXPECT_EQ(ten.to_string(), "10.0.0.0/8");
    EXPECT_TRUE(ten.contains(IpAddr::v4(10, 255, 0, 1)));
    EXPECT_FALSE(ten.contains(IpAddr::v4(11, 0, 0, 1)));
    EXPECT_FALSE(ten.contains(IpAddr::parse("2001:db8::1").value()));
    const Prefix odd = Prefix::parse("192.0.2.129/25").value();
    EXPECT_TRUE(odd.contains(IpAddr::v4(192, 0, 2, 255)));
    EXPECT_FALSE(odd.contains(IpAddr::v4(192, 0, 2, 127)));
    EXPECT_TRUE(Prefix::parse("0.0.0.0/0").value().contains(IpAddr::v4(1, 2, 3, 4)));
    EXPECT_FALSE(Prefix::parse("0.0.0.0/0").value().contains(IpAddr::parse("::1").value()));
    EXPECT_EQ(Prefix::parse("2001:db8:ffff::1/33").value().to_string(), "2001:db8:8000::/33");
    for (const char* bad :
         {"10.0.0.1", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "2001:db8::/129", "/8"}) {
        EXPECT_FALSE(Prefix::parse(bad).has_value()) << bad;
    }
}

TEST(MacAddr, RoundTrips) {
    EXPECT_EQ(MacAddr::parse("02:AB:00:00:00:ff").value().to_string(), "02:ab:00:00:00:ff");
    for (const char* bad :
         {"", "02:ab:00:00:00", "02-ab-00-00-00-ff", "02:ab:00:00:00:fg", "02:ab:00:00:00:ff0"}) {
        EXPECT_FALSE(MacAddr::parse(bad).has_value()) << bad;
    }
}

}  // namespace ip_test
}  // namespace penstock
