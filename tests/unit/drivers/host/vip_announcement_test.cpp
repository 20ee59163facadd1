// SPDX-License-Identifier: Apache-2.0
// The frames that announce a VIP on a link, byte for byte in the fields that a neighbour evaluates.
#include "drivers/host/vip_announcement.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "dataplane/packet/checksum.hpp"

namespace penstock::drivers {
namespace vip_announcement_test {

const MacAddr kMac{{2, 0, 0, 0, 0, 9}};
using Bytes = std::vector<uint8_t>;

TEST(VipAnnouncement, OverIpv4ItIsAnArpRequestForItself_LB018) {
    Bytes expected{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,   0, 0, 0,  0, 9, 8, 6,  // Ethernet, to all
                   0,    1,    8,    0,    6,    4,    0,   1,                     // request
                   2,    0,    0,    0,    0,    9,    192, 0, 2, 80,              // sender
                   0,    0,    0,    0,    0,    0,    192, 0, 2, 80};             // target
    expected.resize(60);
    EXPECT_EQ(announcement_of(IpAddr::v4(192, 0, 2, 80), kMac), expected);
}

TEST(VipAnnouncement, OverIpv6ItIsAnUnsolicitedAdvertisementThatOverrides_LB018) {
    const IpAddr vip = *IpAddr::parse("2001:db8::80");
    const IpAddr all = *IpAddr::parse("ff02::1");
    const Bytes frame = announcement_of(vip, kMac);
    ASSERT_EQ(frame.size(), 14U + 40 + 32);
    const Bytes ethernet{0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255};
    EXPECT_TRUE(std::ranges::equal(Bytes(frame.begin(), frame.begin() + 22), ethernet));
    EXPECT_TRUE(std::equal(vip.bytes().begin(), vip.bytes().end(), frame.begin() + 22)) << "source";
    EXPECT_TRUE(std::equal(all.bytes().begin(), all.bytes().end(), frame.begin() + 38)) << "destination";
    EXPECT_EQ(frame[54], 136);
    EXPECT_EQ(frame[55], 0);
    EXPECT_EQ(frame[58], 0x20) << "override, and neither a router's nor solicited";
    EXPECT_TRUE(std::equal(vip.bytes().begin(), vip.bytes().end(), frame.begin() + 62)) << "target";
    EXPECT_EQ(Bytes(frame.begin() + 78, frame.end()), (Bytes{2, 1, 2, 0, 0, 0, 0, 9}))
        << "its link-layer address";
    packet::ChecksumSum sum;
    sum.add(ByteView(frame.data() + 54, 32)).add_pseudo_header(vip, all, 58, 32);
    EXPECT_TRUE(sum.is_valid());
}

}  // namespace vip_announcement_test
}  // namespace penstock::drivers
