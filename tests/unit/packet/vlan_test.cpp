// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/vlan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/vlan_tags.hpp"

namespace penstock::packet {
namespace vlan_test {

using Bytes = std::vector<uint8_t>;
using namespace test::vlan;
using test::eth;
using test::same_frame;

const Bytes kFrame4 = eth().ipv4("192.0.2.1", "80.11.12.10").udp(5'000, 53).payload("query").build();
const Bytes kFrame6 = eth().ipv6("2001:db8::1", "2001:db8:80::10").tcp(40'000, 80, "S").build();

TEST(Vlan, OnlyTagsInFrontThatNameNoVlanAreTakenOut) {
    const struct {
        const char* name;
        std::vector<Tag> tags, left;
    } cases[] = {
        {"none", {}, {}},
        {"a priority", {kPriority}, {}},
        {"a provider's priority", {kProviderPriority}, {}},
        {"both", {kProviderPriority, kPriority}, {}},
        {"a VLAN", {kVlan5}, {kVlan5}},
        {"a VLAN behind a priority", {kPriority, kVlan5}, {kVlan5}},
        {"a priority behind a VLAN", {kVlan5, kPriority}, {kVlan5, kPriority}},
        {"QinQ", {kProvider7, kVlan5}, {kProvider7, kVlan5}},
        {"QinQ behind two priorities", {kPriority, kPriority, kProvider7, kVlan5}, {kProvider7, kVlan5}},
    };
    for (const auto& c : cases) {
        for (const Bytes& frame : {kFrame4, kFrame6}) {
            Bytes bytes = tagged(frame, c.tags);
            EXPECT_EQ(is_tagged(bytes), !c.tags.empty()) << c.name;
            const auto length = without_priority_tags(bytes);
            ASSERT_TRUE(length) << c.name;
            bytes.resize(*length);
            EXPECT_TRUE(same_frame(bytes, tagged(frame, c.left))) << c.name;
        }
    }
}

TEST(Vlan, ThreePriorityTagsAreTooManyAndACutOneIsTooShort) {
    Bytes three = tagged(kFrame4, {kPriority, kPriority, kPriority});
    EXPECT_EQ(without_priority_tags(three).error(), DropReason::TooManyTags);
    const Bytes whole = tagged(kFrame4, {kPriority});
    for (size_t length = 0; length < 18; ++length) {
        Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(is_tagged(cut), length >= 14);
        const auto result = without_priority_tags(cut);
        if (length < 14) {
            EXPECT_EQ(result, length) << "no header, so no tag";
        } else {
            EXPECT_EQ(result.error(), DropReason::FrameTooShort) << length;
        }
    }
}

TEST(Vlan, BehindTwoTagsStandsTheSource) {
    const std::vector<std::vector<Tag>> ways{
        {}, {kVlan5}, {kPriority}, {kProvider7, kVlan5}, {kVlan5, kPriority}};
    for (const auto& tags : ways) {
        EXPECT_EQ(look_behind_tags(tagged(kFrame4, tags)).source, IpAddr::v4(192, 0, 2, 1));
        EXPECT_EQ(look_behind_tags(tagged(kFrame6, tags)).source, *IpAddr::parse("2001:db8::1"));
        EXPECT_FALSE(look_behind_tags(tagged(kFrame4, tags)).are_too_many);
        EXPECT_FALSE(
            look_behind_tags(tagged(eth().ether_type(0x0806).payload(Bytes(46)).build(), tags)).source)
            << "ARP";
    }
    EXPECT_TRUE(look_behind_tags(tagged(kFrame4, {kVlan5, kVlan5, kVlan5})).are_too_many);
}

// In a buffer of exactly its size, so that a sanitizer detects a read beyond the end.
TEST(Vlan, WhatIsCutOffHasNoSource) {
    for (const Bytes& frame : {kFrame4, kFrame6}) {
        const Bytes whole = tagged(frame, {kProvider7, kVlan5});
        const size_t header_end = 22 + (frame == kFrame4 ? 20 : 40);
        for (size_t length = 0; length < whole.size(); ++length) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
            EXPECT_EQ(look_behind_tags(cut).source.has_value(), length >= header_end) << length;
        }
    }
}

}  // namespace vlan_test
}  // namespace penstock::packet
