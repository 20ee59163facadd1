// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/pool_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/ipam/cluster.hpp"

namespace penstock::ipam::testing {
namespace pool_rules_test {

std::string error_of(std::vector<Pool> pools) {
    const std::vector<ProtectedPrefix> own = {{*Prefix::parse("10.244.0.0/16"), "the Pods' addresses"}};
    const auto result = validate(std::move(pools), own);
    return result ? "" : result.error().what;
}

AddressRange range(const char* first, const char* last) {
    return {.first = ip(first), .last = ip(last)};
}

TEST(PoolRules, MistakesNamesEachBadPool_LB015) {
    const std::vector<ProtectedPrefix> own = {{*Prefix::parse("10.244.0.0/16"), "the Pods' addresses"}};
    EXPECT_EQ(
        mistakes_in({pool("a", {"192.0.2.0/28"}), pool("b", {"192.0.2.8"}), pool("c", {"192.0.3.0/28"}),
                     pool("d", {"10.244.1.0/24", "127.0.0.1"})},
                    own),
        (std::vector<std::string>{
            "pool \"b\": addresses: 192.0.2.8 overlaps 192.0.2.0-192.0.2.15 of pool \"a\"",
            "pool \"d\": addresses: 10.244.1.0-10.244.1.255 overlaps 10.244.0.0/16 (the Pods' addresses)"}));
    EXPECT_TRUE(mistakes_in({pool("a", {"192.0.2.0/28"})}, own).empty());
}

TEST(PoolRules, InvalidListsAreRejectedByPoolAndField_LB015) {
    Pool reversed{.name = "a", .ranges = {range("192.0.2.9", "192.0.2.1")}};
    Pool mixed{.name = "a", .ranges = {range("192.0.2.1", "2001:db8::1")}};
    Pool fence = pool("a", {"192.0.2.0/28"});
    fence.enforce = true;
    const auto reserving = [](const std::vector<std::string>& addresses, const char* service) {
        Pool result = pool("a", {"192.0.2.0/28"});
        for (const std::string& address : addresses) {
            result.reservations.push_back(
                {.address = ip(address), .service = {.namespace_name = "default", .name = service}});
        }
        return result;
    };
    Pool buggy = reserving({"192.0.2.0"}, "web");
    buggy.avoid_buggy_ips = true;
    const struct {
        const char* name;
        std::vector<Pool> pools;
        const char* error;  // part of it
    } rows[] = {
        {"no name", {pool("", {"192.0.2.1"})}, "pool \"\": name: "},
        {"bad name", {pool("A_b", {"192.0.2.1"})}, "pool \"A_b\": name: "},
        {"same name", {pool("a", {"192.0.2.1"}), pool("a", {"192.0.2.2"})}, "pool \"a\": name: another"},
        {"no range", {pool("a", {})}, "pool \"a\": addresses: expected"},
        {"reversed", {reversed}, "pool \"a\": addresses: 192.0.2.9-192.0.2.1 ends before"},
        {"mixed", {mixed}, "pool \"a\": addresses: 192.0.2.1-2001:db8::1 has addresses of both"},
        {"all of IPv4", {pool("a", {"0.0.0.0/0"})}, "is all addresses"},
        {"all of IPv6", {pool("a", {"::/0"})}, "is all addresses"},
        {"unspecified", {pool("a", {"0.0.0.0"})}, "overlaps 0.0.0.0/8"},
        {"unspecified v6", {pool("a", {"::"})}, "overlaps ::/8"},
        {"loopback", {pool("a", {"126.0.0.0-128.0.0.0"})}, "loopback"},
        {"loopback v6", {pool("a", {"::1"})}, "overlaps ::/8"},
        {"link-local", {pool("a", {"169.254.1.0/24"})}, "link-local"},
        {"link-local v6", {pool("a", {"fe80::1"})}, "link-local"},
        {"multicast", {pool("a", {"224.0.0.1"})}, "multicast"},
        {"multicast v6", {pool("a", {"ff02::/64"})}, "multicast"},
        {"broadcast", {pool("a", {"255.255.255.255"})}, "reserved"},
        {"protected", {pool("a", {"10.244.3.0/24"})}, "overlaps 10.244.0.0/16 (the Pods' addresses)"},
        {"around protected", {pool("a", {"10.0.0.0/8"})}, "the Pods' addresses"},
        {"identical pools",
         {pool("a", {"192.0.2.0/28"}), pool("b", {"192.0.2.0/28"})},
         "pool \"b\": addresses: 192.0.2.0-192.0.2.15 overlaps 192.0.2.0-192.0.2.15 of pool \"a\""},
        {"inside another", {pool("a", {"192.0.2.0/24"}), pool("b", {"192.0.2.9"})}, "of pool \"a\""},
        {"around another", {pool("a", {"192.0.2.9"}), pool("b", {"192.0.2.0/24"})}, "of pool \"a\""},
        {"overlap in one pool", {pool("a", {"192.0.2.0/28", "192.0.2.15-192.0.2.20"})}, "of pool \"a\""},
        {"fence without namespace", {fence}, "pool \"a\": enforce: "},
        {"reservation outside",
         {reserving({"192.0.2.16"}, "web")},
         "pool \"a\": reservations: 192.0.2.16 is not"},
        {"reserved twice", {reserving({"192.0.2.1", "192.0.2.1"}, "web")}, "192.0.2.1 is reserved twice"},
        {"no Service", {reserving({"192.0.2.1"}, "")}, "names no valid Service"},
        {"reserved but avoided", {buggy}, "avoidBuggyIPs"},
    };
    for (const auto& row : rows) {
        EXPECT_NE(error_of(row.pools).find(row.error), std::string::npos)
            << row.name << ": \"" << error_of(row.pools) << "\"";
        EXPECT_FALSE(error_of(row.pools).empty()) << row.name;
    }
}

TEST(PoolRules, ValidListsAreSorted_LB015) {
    const auto pools = validate({pool("a", {"2001:db8::/64", "192.0.2.16/28", "192.0.2.0/28"}),
                                 pool("b", {"192.0.2.32/28", "10.243.0.0/16", "10.245.0.0/16"})},
                                {});
    ASSERT_TRUE(pools) << pools.error().what;
    EXPECT_TRUE(std::ranges::is_sorted((*pools)[0].ranges));
    EXPECT_TRUE(std::ranges::is_sorted((*pools)[1].ranges));
}

}  // namespace pool_rules_test
}  // namespace penstock::ipam::testing
