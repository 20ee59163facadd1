// SPDX-License-Identifier: Apache-2.0
// Compares a set of prefixes with a linear search for one that contains the address.
#include "dataplane/route/prefix_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"

namespace penstock::route {
namespace prefix_set_test {

std::vector<Prefix> prefixes(std::initializer_list<const char*> texts) {
    std::vector<Prefix> out;
    for (const char* text : texts) {
        out.push_back(*Prefix::parse(text));
    }
    return out;
}

IpAddr address(const char* text) {
    return *IpAddr::parse(text);
}

TEST(PrefixSet, HoldsWhatItsPrefixesHold) {
    const PrefixSet set(prefixes({"192.0.2.0/24", "10.0.0.0/8", "10.1.0.0/16", "255.255.255.255/32",
                                  "2001:db8::/32", "2001:db9::1/128"}));
    for (const char* in :
         {"192.0.2.0", "192.0.2.255", "10.0.0.0", "10.1.2.3", "10.255.255.255", "255.255.255.255",
          "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::1"}) {
        EXPECT_TRUE(set.contains(address(in))) << in;
    }
    for (const char* out : {"192.0.1.255", "192.0.3.0", "9.255.255.255", "11.0.0.0", "255.255.255.254",
                            "0.0.0.0", "::", "2001:db7::", "2001:db9::", "2001:db9::2"}) {
        EXPECT_FALSE(set.contains(address(out))) << out;
    }
    EXPECT_EQ(set.prefixes().size(), 5U) << "10.1.0.0/16 lies in 10.0.0.0/8";
}

TEST(PrefixSet, IsEmptyOrEverything) {
    EXPECT_FALSE(PrefixSet().contains(address("192.0.2.1")));
    EXPECT_FALSE(PrefixSet().contains(address("2001:db8::1")));
    EXPECT_TRUE(PrefixSet(std::vector<Prefix>()).empty());
    const PrefixSet all(prefixes({"0.0.0.0/0", "::/0", "10.0.0.0/8"}));
    EXPECT_TRUE(all.contains(address("255.255.255.255")));
    EXPECT_TRUE(all.contains(address("0.0.0.0")));
    EXPECT_TRUE(all.contains(address("ffff::")));
    EXPECT_EQ(all.prefixes().size(), 2U);
    const PrefixSet only_v4(prefixes({"0.0.0.0/0"}));
    EXPECT_FALSE(only_v4.contains(address("::1")));
}

TEST(PrefixSet, HoldsAPrefixOnlyAsAWhole) {
    const PrefixSet set(prefixes({"10.0.0.0/9", "10.128.0.0/9", "192.0.2.64/26", "2001:db8::/32"}));
    const struct {
        const char* prefix;
        bool in;
    } rows[] = {{"10.0.0.0/9", true},    {"10.5.0.0/16", true},   {"10.0.0.0/8", false},
                {"192.0.2.64/26", true}, {"192.0.2.0/24", false}, {"3000::/16", false},
                {"192.0.2.96/27", true}, {"2001:db8::/48", true}, {"2001:db8::/31", false},
                {"::/0", false},         {"9.0.0.0/8", false}};
    for (const auto& row : rows) {
        EXPECT_EQ(set.contains(*Prefix::parse(row.prefix)), row.in) << row.prefix;
    }
}

// Few values per byte, so that prefixes nest and addresses match.
TEST(PrefixSet, IsTheSimplestModelForAnyList) {
    test::Prng random(test::seed());
    const auto any_address = [&] {
        if (random.below(2) == 0) {
            return IpAddr::v4(static_cast<uint8_t>(random.below(2)), static_cast<uint8_t>(random.below(3)),
                              static_cast<uint8_t>(random.below(256)), static_cast<uint8_t>(random.below(4)));
        }
        std::array<uint8_t, 16> bytes{};
        bytes[0] = 0x20;
        for (const size_t at : {size_t{1}, size_t{7}, size_t{8}, size_t{15}}) {
            bytes[at] = static_cast<uint8_t>(random.below(3));
        }
        return IpAddr::v6(bytes);
    };
    for (int round = 0; round < 60; ++round) {
        std::vector<Prefix> list;
        for (uint64_t i = random.below(200); i > 0; --i) {
            const IpAddr base = any_address();
            list.push_back(*Prefix::make(base, static_cast<unsigned>(random.below(base.bits() + 1U))));
            if (list.back().length() < 4) {
                list.pop_back();  // otherwise nearly every set would contain everything
            }
        }
        const PrefixSet set(list);
        for (int i = 0; i < 400; ++i) {
            const IpAddr asked = any_address();
            ASSERT_EQ(set.contains(asked),
                      std::ranges::any_of(list, [&](const Prefix& p) { return p.contains(asked); }))
                << asked.to_string();
            const Prefix host = Prefix::host(asked);
            ASSERT_EQ(set.contains(host), set.contains(asked)) << asked.to_string();
        }
    }
}

}  // namespace prefix_set_test
}  // namespace penstock::route
