// SPDX-License-Identifier: Apache-2.0
// The room that answers on a link need, and agreement with the reader. Their bytes are compared with scapy's
// in tests/golden.
#include "dataplane/packet/answers/link_answer.hpp"

#include <gtest/gtest.h>

#include "dataplane/packet/parse.hpp"

namespace penstock::packet {
namespace link_answer_test {

using Kind = LinkMessage::Kind;

const MacAddr kMac{{2, 0, 0, 0, 0, 9}}, kHostMac{{2, 0, 0, 0, 1, 2}};

LinkMessage query(Kind kind, const IpAddr& target, const IpAddr& sender) {
    return {.kind = kind, .target = target, .sender = sender, .sender_mac = kHostMac};
}

TEST(LinkAnswer, NeedsRoomForItsFrame_PRESENCE006) {
    const LinkMessage arp = query(Kind::Query, IpAddr::v4(192, 0, 2, 80), IpAddr::v4(192, 0, 2, 10));
    const LinkMessage nd = query(Kind::Query, *IpAddr::parse("fd00::80"), *IpAddr::parse("fd00::10"));
    for (const auto& [message, bytes] :
         {std::pair(arp, kArpFrameBytes), std::pair(nd, kAdvertisementFrameBytes)}) {
        std::vector<uint8_t> buffer(bytes, 0xee);
        EXPECT_EQ(make_link_answer(std::span(buffer).first(bytes - 1U), message, kMac),
                  std::unexpected(DropReason::NoBuffer));
        EXPECT_EQ(buffer, std::vector<uint8_t>(bytes, 0xee)) << "unchanged";
        EXPECT_EQ(make_link_answer(buffer, message, kMac), bytes);
    }
}

TEST(LinkAnswer, IsAClaimToWhoReadsIt_PRESENCE006) {
    for (const char* vip : {"192.0.2.80", "fd00::80"}) {
        const IpAddr target = *IpAddr::parse(vip);
        for (const Kind kind : {Kind::Query, Kind::Probe}) {
            const bool is_v4 = target.is_v4();
            const IpAddr sender = kind == Kind::Probe ? is_v4 ? IpAddr::v4(0, 0, 0, 0) : IpAddr()
                                  : is_v4 ? IpAddr::v4(192, 0, 2, 10)
                                                      : *IpAddr::parse("fd00::10");
            std::vector<uint8_t> frame(kAdvertisementFrameBytes);
            frame.resize(make_link_answer(frame, query(kind, target, sender), kMac).value());
            Parsed parsed;
            ASSERT_TRUE(parse(frame, parsed));
            EXPECT_EQ(read_link_message(frame, parsed), (LinkMessage{Kind::Claim, target, target, kMac}))
                << vip;
        }
        std::vector<uint8_t> frame(kAdvertisementFrameBytes);
        frame.resize(make_link_announcement(frame, target, kMac));
        Parsed parsed;
        ASSERT_TRUE(parse(frame, parsed));
        EXPECT_EQ(read_link_message(frame, parsed), (LinkMessage{Kind::Claim, target, target, kMac})) << vip;
    }
}

TEST(LinkAnswer, AProbeIsOneToWhoReadsIt_PRESENCE006) {
    for (const char* vip : {"192.0.2.80", "fd00::80"}) {
        const IpAddr target = *IpAddr::parse(vip);
        std::vector<uint8_t> frame(kSolicitationFrameBytes);
        frame.resize(make_link_probe(frame, target, kMac));
        Parsed parsed;
        ASSERT_TRUE(parse(frame, parsed));
        const LinkMessage read = read_link_message(frame, parsed);
        EXPECT_EQ(read.kind, Kind::Probe) << vip;
        EXPECT_EQ(read.target, target);
        EXPECT_EQ(read.sender_mac, kMac);
    }
}

}  // namespace link_answer_test
}  // namespace penstock::packet
