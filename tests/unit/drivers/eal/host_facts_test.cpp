// SPDX-License-Identifier: Apache-2.0
// What the host reports about its CPUs and ephemeral ports.
#include "drivers/eal/host_facts.hpp"

#include <gtest/gtest.h>

namespace penstock::drivers {
namespace host_facts_test {

TEST(HostFacts, ReadsPortRanges) {
    const auto usual = parse_port_range("32768\t60999");
    ASSERT_TRUE(usual);
    EXPECT_EQ(*usual, (nat::PortRange{32768, 60999}));
    for (const char* text : {"", "32768", "60999 32768", "a b", "1 70000"}) {
        EXPECT_FALSE(parse_port_range(text)) << text;
    }
    EXPECT_TRUE(host_ephemeral_range());
    EXPECT_FALSE(allowed_cpus().empty());
}

}  // namespace host_facts_test
}  // namespace penstock::drivers
