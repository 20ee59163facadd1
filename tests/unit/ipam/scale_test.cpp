// SPDX-License-Identifier: Apache-2.0
// Structures that must not depend on the number of addresses.
#include <gtest/gtest.h>

#include "control/ipam/free_ranges.hpp"
#include "tests/unit/ipam/cluster.hpp"

namespace penstock::ipam::testing {
namespace scale_test {

// An allocator that scanned addresses would not end.
TEST(Scale, AnIPv6Pool64_LB007) {
    Cluster cluster({pool("a", {"2001:db8::/64"})});
    for (int i = 0; i < 300; ++i) {
        cluster.add("s" + std::to_string(i)).ip_families = {"IPv6"};
    }
    cluster.add("last").ip_families = {"IPv6"};
    Cluster::annotate(cluster.at("last"), "load-balancer-ips", "2001:db8::ffff:ffff:ffff:ffff");
    EXPECT_EQ(cluster.of("s299").substr(0, 10), "2001:db8::");
    EXPECT_EQ(cluster.of("last"), "2001:db8::ffff:ffff:ffff:ffff(a)");
    EXPECT_EQ(cluster.allocator().usage().front().v6.used, 301U);
}

}  // namespace scale_test
}  // namespace penstock::ipam::testing
