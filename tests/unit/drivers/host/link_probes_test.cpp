// SPDX-License-Identifier: Apache-2.0
// The frames that probe a link for an address, and the claims that answer them. tests/bound sends them
// through twins.
#include "drivers/host/link_probes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "dataplane/packet/answers/link_answer.hpp"
#include "dataplane/packet/checksum.hpp"
#include "drivers/host/vip_announcement.hpp"

namespace penstock::drivers {
namespace link_probes_test {

const MacAddr kMac{{2, 0, 0, 0, 0, 9}}, kOther{{2, 0, 0, 0, 1, 2}};
const IpAddr kVip = IpAddr::v4(192, 0, 2, 80), kVip6 = *IpAddr::parse("2001:db8::1:2:80");
using Bytes = std::vector<uint8_t>;

TEST(LinkProbes, OverIpv4ItIsAnArpRequestWithoutASender_PRESENCE006) {
    Bytes expected{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,   0, 0, 0, 0, 9, 8, 6,  // Ethernet, to all
                   0,    1,    8,    0,    6,    4,    0,   1,                    // request
                   2,    0,    0,    0,    0,    9,    0,   0, 0, 0,              // sender
                   0,    0,    0,    0,    0,    0,    192, 0, 2, 80};            // target
    expected.resize(60);
    EXPECT_EQ(probe_of(kVip, kMac), expected);
}

TEST(LinkProbes, OverIpv6ItIsASolicitationFromNoAddress_PRESENCE006) {
    const Bytes frame = probe_of(kVip6, kMac);
    ASSERT_EQ(frame.size(), 14U + 40 + 24);
    const Bytes ethernet{0x33, 0x33, 0xff, 2,    0, 0x80, 2, 0, 0,  0,  0,
                         9,    0x86, 0xdd, 0x60, 0, 0,    0, 0, 24, 58, 255};
    EXPECT_TRUE(std::ranges::equal(Bytes(frame.begin(), frame.begin() + 22), ethernet));
    EXPECT_EQ(Bytes(frame.begin() + 22, frame.begin() + 38), Bytes(16, 0)) << "source";
    const IpAddr group = *IpAddr::parse("ff02::1:ff02:80");
    EXPECT_TRUE(std::equal(group.bytes().begin(), group.bytes().end(), frame.begin() + 38)) << "destination";
    EXPECT_EQ(frame[54], 135);
    EXPECT_TRUE(std::equal(kVip6.bytes().begin(), kVip6.bytes().end(), frame.begin() + 62)) << "target";
    packet::ChecksumSum sum;
    sum.add(ByteView(frame.data() + 54, 24)).add_pseudo_header(IpAddr(), group, 58, 24);
    EXPECT_TRUE(sum.is_valid());
}

TEST(LinkProbes, AnAnswerAndAnAnnouncementAreClaims_PRESENCE006) {
    for (const IpAddr& vip : {kVip, kVip6}) {
        packet::LinkMessage probe{.kind = packet::LinkMessage::Kind::Probe, .target = vip};
        probe.sender_mac = kMac;
        Bytes answer(packet::kAdvertisementFrameBytes);
        answer.resize(packet::make_link_answer(answer, probe, kOther).value());
        for (const Bytes& frame : {answer, announcement_of(vip, kOther)}) {
            const auto claim = claim_in(frame);
            ASSERT_TRUE(claim);
            EXPECT_EQ(claim->address, vip);
            EXPECT_EQ(claim->mac, kOther);
        }
        EXPECT_FALSE(claim_in(probe_of(vip, kOther))) << "a probe claims nothing";
        for (size_t bytes = 0; bytes < 42; ++bytes) {
            EXPECT_FALSE(claim_in(ByteView(answer.data(), bytes))) << "cut to " << bytes;
        }
    }
}

}  // namespace link_probes_test
}  // namespace penstock::drivers
