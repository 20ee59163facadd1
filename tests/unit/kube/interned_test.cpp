// SPDX-License-Identifier: Apache-2.0
#include "control/base/interned.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "control/kube/endpoint_address.hpp"

namespace penstock::kube {
namespace interned_test {

TEST(Interned, EqualValuesAreOneCopy) {
    const InternedText one = std::string("node-of-a-long-name-1");
    const InternedText same = "node-of-a-long-name-1";
    const InternedText other = "node-of-a-long-name-2";
    EXPECT_EQ(&one.value(), &same.value());
    EXPECT_EQ(one, same);
    EXPECT_NE(one, other);
    EXPECT_EQ(one, "node-of-a-long-name-1");
    EXPECT_NE(one, std::string("node-of-a-long-name"));
}

TEST(Interned, TheEmptyValueIsTheDefault) {
    EXPECT_EQ(InternedText(""), InternedText());
    EXPECT_TRUE(InternedText(std::string()).empty());
    EXPECT_EQ(InternedText().value(), "");
    EXPECT_EQ(InternedTexts(std::vector<std::string>()), InternedTexts());
    EXPECT_NE(InternedTexts({""}), InternedTexts());
}

TEST(Interned, ListsAreSharedWhole) {
    const InternedTexts zones = {"a", "b"};
    EXPECT_EQ(zones, InternedTexts(std::vector<std::string>{"a", "b"}));
    EXPECT_NE(zones, InternedTexts({"b", "a"}));
    EXPECT_NE(zones, InternedTexts({"ab"}));
    EXPECT_EQ(zones.value(), (std::vector<std::string>{"a", "b"}));
}

TEST(Interned, CopiesOutliveWhereTheyCameFrom) {
    InternedText copy;
    {
        const InternedText origin = "somewhere";
        copy = origin;
        InternedText moved = std::move(copy);
        copy = moved;
    }
    EXPECT_EQ(copy, "somewhere");
    EXPECT_EQ(copy, InternedText("somewhere"));
}

// Threads create, copy and destroy the same few values, so that last uses end while others begin.
TEST(Interned, ThreadsMayShareAndDropThem) {
    const auto churn = [] {
        for (int round = 0; round < 20'000; ++round) {
            const std::string name = "zone-" + std::to_string(round % 3);
            const InternedText mine = name;
            const InternedText copy = mine;
            ASSERT_EQ(copy.value(), name);
        }
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back(churn);
    }
}

TEST(EndpointAddress, IsReadOnceAndBadTextIsKept_GEN005_EP005) {
    EXPECT_EQ(EndpointAddress("010.0.0.1"), EndpointAddress("10.0.0.1"));
    EXPECT_EQ(EndpointAddress("FD00:0::1").ip(), IpAddr::parse("fd00::1").value());
    EXPECT_TRUE(EndpointAddress().is_absent());
    for (const char* bad : {"nonsense", "::ffff:10.0.0.1", "10.0.0.256"}) {
        EXPECT_FALSE(EndpointAddress(bad).ip().has_value());
        EXPECT_EQ(EndpointAddress(bad).bad_text(), bad);
        EXPECT_FALSE(EndpointAddress(bad).is_absent());
    }
}

}  // namespace interned_test
}  // namespace penstock::kube
