// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/service.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/support/prng.hpp"
#include "tests/unit/lb/lb_fixture.hpp"

namespace penstock::lb {
namespace service_test {

using test::ip;

struct FilterCase {
    const char* name;
    bool restricted;
    std::vector<const char*> allowed;
    const char* client;
    bool expected;
    bool deny = false;
};

TEST(SourceFilter, ListsWhoMayOpenFlows_SRC001_SRC002_SRC003_ANN04) {
    const FilterCase cases[] = {
        {"SRC-001: inside", true, {"192.0.2.0/24"}, "192.0.2.255", true},
        {"SRC-001: outside", true, {"192.0.2.0/24"}, "192.0.3.0", false},
        {"SRC-001: second entry", true, {"192.0.2.0/24", "198.51.100.7/32"}, "198.51.100.7", true},
        {"SRC-002: host bits do not matter", true, {"10.1.2.3/8"}, "10.200.0.1", true},
        {"SRC-002: no valid entry is left", true, {}, "192.0.2.1", false},
        {"SRC-003: a family without an entry is closed", true, {"0.0.0.0/0"}, "2001:db8::1", false},
        {"SRC-003: the other way round", true, {"::/0"}, "192.0.2.1", false},
        {"SRC-003: both families listed", true, {"192.0.2.0/24", "2001:db8::/32"}, "2001:db8::1", true},
        {"ANN-04: denied", true, {"192.0.2.0/24"}, "192.0.2.1", false, true},
        {"ANN-04: all others may", true, {"192.0.2.0/24"}, "192.0.3.0", true, true},
        {"ANN-04: nobody of the other family is denied", true, {"192.0.2.0/24"}, "2001:db8::1", true, true},
        {"SRC-004: nothing asked for", false, {}, "192.0.2.1", true},
    };
    for (const FilterCase& c : cases) {
        std::vector<Prefix> allowed;
        for (const char* text : c.allowed) {
            allowed.push_back(Prefix::parse(text).value());
        }
        EXPECT_EQ(SourceFilter(c.restricted, allowed, c.deny).allows(ip(c.client)), c.expected) << c.name;
    }
}

// Prefixes nest and adjoin in every possible way. The model tests each prefix.
TEST(SourceFilter, AgreesWithAskingEveryPrefix_SRC001) {
    penstock::test::Prng random;
    const auto address = [&](bool v4) {
        const auto low = static_cast<uint8_t>(random.below(256));
        const auto high = static_cast<uint8_t>(random.below(4));
        std::array<uint8_t, 16> bytes{0x20, 1, 0x0d, 0xb8, high, low};
        bytes[15] = low;
        return v4 ? IpAddr::v4(10, high, low, static_cast<uint8_t>(random.below(256))) : IpAddr::v6(bytes);
    };
    for (int round = 0; round < 200; ++round) {
        std::vector<Prefix> allowed;
        for (size_t n = random.below(40); n > 0; --n) {
            const bool v4 = random.below(2) == 0;
            const IpAddr base = address(v4);
            allowed.push_back(
                Prefix::make(base, static_cast<unsigned>(random.below(base.bits() + 1))).value());
        }
        const SourceFilter filter(true, allowed);
        for (int i = 0; i < 100; ++i) {
            const IpAddr client = address(random.below(2) == 0);
            EXPECT_EQ(filter.allows(client),
                      std::ranges::any_of(allowed, [&](const Prefix& p) { return p.contains(client); }))
                << client.to_string();
        }
    }
}

TEST(Service, IsShownAsPeopleKnowIt) {
    Service service{.namespace_name = "default", .name = "web"};
    EXPECT_EQ(service.display_name(), "default/web");
    service.port_name = "http";
    EXPECT_EQ(service.display_name(), "default/web:http");
}

}  // namespace service_test
}  // namespace penstock::lb
