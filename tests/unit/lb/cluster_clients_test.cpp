// SPDX-License-Identifier: Apache-2.0
// Which clients are inside the cluster now, and which may have been inside or outside before.
#include "dataplane/lb/cluster_clients.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/prng.hpp"

namespace penstock::lb {
namespace cluster_clients_test {

std::vector<Prefix> nets(const std::vector<std::string>& texts) {
    std::vector<Prefix> out;
    for (const auto& text : texts) {
        out.push_back(*Prefix::parse(text));
    }
    return out;
}
IpAddr ip(const std::string& text) {
    return *IpAddr::parse(text);
}

TEST(ClusterClients, NobodyIsInsideWhereThePodCidrsAreUnknown_ETP006_NAT004) {
    const ClusterClients clients;
    EXPECT_FALSE(clients.are_inside(ip("10.244.0.1")));
    EXPECT_FALSE(clients.are_inside(ip("fd00::1")));
    EXPECT_TRUE(clients.were_outside(ip("10.244.0.1")));
    EXPECT_FALSE(clients.were_inside(ip("10.244.0.1")));
}

TEST(ClusterClients, AClientHasBeenWhatItIs_ETP006) {
    const ClusterClients clients(nets({"10.244.0.0/16", "fd00:10::/56"}));
    for (const char* inside : {"10.244.255.255", "fd00:10::1"}) {
        EXPECT_TRUE(clients.are_inside(ip(inside)) && clients.were_inside(ip(inside)) &&
                    !clients.were_outside(ip(inside)))
            << inside;
    }
    for (const char* outside : {"10.245.0.0", "fd00:11::1"}) {
        EXPECT_FALSE(clients.are_inside(ip(outside)) || clients.were_inside(ip(outside)) ||
                     !clients.were_outside(ip(outside)))
            << outside;
    }
}

// Any history of nested, repeated and disjoint prefixes, against a list of the states of each address.
TEST(ClusterClients, RemembersEverySideThatAClientWasOn_ETP007) {
    test::Prng random;
    for (int round = 0; round < 200; ++round) {
        const auto some = [&] {
            std::vector<Prefix> out;
            for (uint64_t n = random.below(6); n > 0; --n) {
                const auto byte = static_cast<uint8_t>(random.below(4));
                out.push_back(
                    random.one_in(3)
                        ? *Prefix::make(IpAddr::v6({0xfd, byte}), static_cast<unsigned>(random.below(17)))
                        : *Prefix::make(IpAddr::v4(10, byte, static_cast<uint8_t>(random.below(4)), 0),
                                        14 + static_cast<unsigned>(random.below(11))));
            }
            return out;
        };
        const auto contains = [](const std::vector<Prefix>& prefixes, const IpAddr& address) {
            return std::ranges::any_of(prefixes,
                                       [&](const Prefix& prefix) { return prefix.contains(address); });
        };
        std::vector<std::vector<Prefix>> history{some()};
        ClusterClients clients(history.back());
        for (uint64_t changes = random.below(5); changes > 0; --changes) {
            history.push_back(some());
            clients = clients.changed_to(history.back());
        }
        for (int probe = 0; probe < 60; ++probe) {
            const auto a = static_cast<uint8_t>(random.below(5)), b = static_cast<uint8_t>(random.below(5));
            const IpAddr address = random.one_in(3) ? IpAddr::v6({0xfd, a, b}) : IpAddr::v4(10, a, b, 9);
            bool inside = false, outside = false;
            for (const auto& prefixes : history) {
                (contains(prefixes, address) ? inside : outside) = true;
            }
            ASSERT_EQ(clients.are_inside(address), contains(history.back(), address)) << address.to_string();
            ASSERT_EQ(clients.were_inside(address), inside) << address.to_string();
            ASSERT_EQ(clients.were_outside(address), outside) << address.to_string();
        }
    }
}

TEST(ClusterClients, WhatIsTooMuchToRememberMayHaveBeenAnything) {
    ClusterClients clients;
    for (uint32_t n = 0; n <= ClusterClients::kRememberedMax; n += 4'096) {
        std::vector<Prefix> many;
        for (uint32_t i = n; i < n + 4'096; ++i) {
            many.push_back(*Prefix::make(IpAddr::v4(Be32::from_host(0x0a000000 + (i << 9))), 24));
        }
        clients = clients.changed_to(std::move(many));
    }
    EXPECT_TRUE(clients.were_inside(ip("203.0.113.1")) && clients.were_inside(ip("2001:db8::1")));
    EXPECT_FALSE(clients.are_inside(ip("203.0.113.1")));
    EXPECT_TRUE(clients.were_outside(ip("10.0.0.1")));
}

}  // namespace cluster_clients_test
}  // namespace penstock::lb
