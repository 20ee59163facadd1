// SPDX-License-Identifier: Apache-2.0
// ARP and neighbour discovery: which messages ask for an address, which claim one, and which are refused.
#include "dataplane/packet/link_message.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "dataplane/packet/parse.hpp"
#include "tests/support/link_frames.hpp"

namespace penstock::packet {
namespace link_message_test {

using Kind = LinkMessage::Kind;
using test::ArpFrame;
using test::NeighbourFrame;
using Frame = std::vector<uint8_t>;

const IpAddr kVip = IpAddr::v4(192, 0, 2, 80), kHost = IpAddr::v4(192, 0, 2, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8::80");
const MacAddr kHostMac{{2, 0, 0, 0, 1, 2}};
const MacAddr kOtherMac{{2, 0, 0, 0, 1, 3}};
constexpr const char* kGroup = "ff02::1:ff00:80";

// In a buffer of exactly the frame, so that a sanitizer detects a read beyond it.
LinkMessage read(const Frame& frame) {
    const auto copy = std::make_unique<uint8_t[]>(frame.size());
    std::ranges::copy(frame, copy.get());
    const ByteView exact(copy.get(), frame.size());
    Parsed parsed;
    EXPECT_TRUE(parse(exact, parsed).has_value()) << test::to_scapy(frame);
    return read_link_message(exact, parsed);
}

ArpFrame request() {
    return {.sender = kHost, .target = kVip};
}
NeighbourFrame solicitation() {
    return {.source = "2001:db8::10", .destination = kGroup, .target = kVip6, .option = kHostMac};
}

TEST(LinkMessage, AnArpRequestAsksAndAProbeAsksWithoutAnAddress_PRESENCE006) {
    EXPECT_EQ(read(request().build()), (LinkMessage{Kind::Query, kVip, kHost, kHostMac}));
    ArpFrame probe = request();
    probe.sender = IpAddr::v4(0, 0, 0, 0);
    EXPECT_EQ(read(probe.build()), (LinkMessage{Kind::Probe, kVip, probe.sender, kHostMac}));
    ArpFrame unicast = request();  // verifies an entry
    unicast.to = {{2, 0, 0, 0, 0, 9}};
    EXPECT_EQ(read(unicast.build()).kind, Kind::Query);
}

TEST(LinkMessage, AnArpAnnouncementAndAReplyClaimTheSendersAddress_PRESENCE006) {
    ArpFrame announcement = request();
    announcement.sender = kVip;
    EXPECT_EQ(read(announcement.build()), (LinkMessage{Kind::Claim, kVip, kVip, kHostMac}));
    ArpFrame reply{.operation = 2, .sender = kVip, .target = kHost};
    EXPECT_EQ(read(reply.build()), (LinkMessage{Kind::Claim, kVip, kVip, kHostMac}));
}

TEST(LinkMessage, OtherArpIsNotRead_PRESENCE006) {
    const std::vector<std::function<void(ArpFrame&)>> changes{
        [](ArpFrame& arp) { arp.hardware = 6; },       [](ArpFrame& arp) { arp.protocol = 0x86dd; },
        [](ArpFrame& arp) { arp.hardware_bytes = 8; }, [](ArpFrame& arp) { arp.protocol_bytes = 16; },
        [](ArpFrame& arp) { arp.operation = 3; },      [](ArpFrame& arp) { arp.operation = 0; }};
    for (size_t i = 0; i < changes.size(); ++i) {
        ArpFrame arp = request();
        changes[i](arp);
        EXPECT_EQ(read(arp.build()).kind, Kind::None) << i;
    }
    Frame cut = request().build();
    for (size_t bytes = 14; bytes < 42; ++bytes) {
        EXPECT_EQ(read(Frame(cut.begin(), cut.begin() + static_cast<ptrdiff_t>(bytes))).kind, Kind::None)
            << bytes;
    }
    cut.resize(42);
    EXPECT_EQ(read(cut).kind, Kind::Query) << "without padding";
    cut[12] = 0x88;  // another Ethernet type
    EXPECT_EQ(read(cut).kind, Kind::None);
}

TEST(LinkMessage, ArpFromAnAddressThatNoHostHasIsInvalid_PRESENCE006) {
    const std::vector<std::function<void(ArpFrame&)>> changes{
        [](ArpFrame& arp) { arp.sender_mac = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}; },
        [](ArpFrame& arp) { arp.sender_mac = {{1, 0, 0x5e, 0, 0, 1}}; },
        [](ArpFrame& arp) { arp.sender_mac = {}; },
        [](ArpFrame& arp) { arp.sender = IpAddr::v4(255, 255, 255, 255); },
        [](ArpFrame& arp) { arp.sender = IpAddr::v4(224, 0, 0, 1); },
        [](ArpFrame& arp) { arp.sender = IpAddr::v4(127, 0, 0, 1); }};
    for (size_t i = 0; i < changes.size(); ++i) {
        ArpFrame arp = request();
        changes[i](arp);
        EXPECT_EQ(read(arp.build()), (LinkMessage{.kind = Kind::Invalid, .target = kVip})) << i;
    }
}

TEST(LinkMessage, ASolicitationAsks_PRESENCE006) {
    const IpAddr host = *IpAddr::parse("2001:db8::10");
    EXPECT_EQ(read(solicitation().build()), (LinkMessage{Kind::Query, kVip6, host, kHostMac}));
    NeighbourFrame proxied = solicitation();
    proxied.option = kOtherMac;
    EXPECT_EQ(read(proxied.build()).sender_mac, kOtherMac) << "the option wins (RFC 4861, 7.2.3)";
    NeighbourFrame unicast = solicitation();
    unicast.destination = "2001:db8::80";
    unicast.option.reset();
    EXPECT_EQ(read(unicast.build()), (LinkMessage{Kind::Query, kVip6, host, kHostMac}));
    NeighbourFrame local = solicitation();
    local.source = "fe80::10";
    EXPECT_EQ(read(local.build()).sender, *IpAddr::parse("fe80::10"));
    NeighbourFrame with_nonce = solicitation();  // RFC 3971, 5.3.2
    with_nonce.more = {14, 1, 1, 2, 3, 4, 5, 6};
    EXPECT_EQ(read(with_nonce.build()).kind, Kind::Query);
}

TEST(LinkMessage, DuplicateAddressDetectionProbes_PRESENCE006) {
    NeighbourFrame probe = solicitation();
    probe.source = "::";
    probe.option.reset();
    EXPECT_EQ(read(probe.build()), (LinkMessage{Kind::Probe, kVip6, IpAddr(), kHostMac}));
    NeighbourFrame with_option = probe;
    with_option.option = kHostMac;
    EXPECT_EQ(read(with_option.build()).kind, Kind::Invalid) << "RFC 4861, 7.1.1";
    NeighbourFrame to_all = probe;
    to_all.destination = "ff02::1";
    EXPECT_EQ(read(to_all.build()).kind, Kind::Invalid) << "not the solicited-node group";
}

TEST(LinkMessage, AnAdvertisementClaimsItsTarget_PRESENCE006) {
    NeighbourFrame claim{.type = 136, .source = "2001:db8::80", .destination = "ff02::1", .target = kVip6};
    EXPECT_EQ(read(claim.build()), (LinkMessage{Kind::Claim, kVip6, kVip6, kHostMac}));
    claim.option = kOtherMac;
    EXPECT_EQ(read(claim.build()).sender_mac, kOtherMac);
    NeighbourFrame own = solicitation();
    own.source = "2001:db8::80";
    EXPECT_EQ(read(own.build()).kind, Kind::Claim) << "a host that sends from the VIP";
}

TEST(LinkMessage, AnInvalidOneNamesItsTarget_PRESENCE006) {
    const std::vector<std::function<void(NeighbourFrame&)>> changes{
        [](NeighbourFrame& frame) { frame.hop_limit = 254; },
        [](NeighbourFrame& frame) { frame.code = 1; },
        [](NeighbourFrame& frame) { frame.destination = "ff02::1"; },
        [](NeighbourFrame& frame) { frame.destination = "ff02::1:ff00:81"; },
        [](NeighbourFrame& frame) { frame.destination = "2001:db8::81"; },
        [](NeighbourFrame& frame) { frame.option = MacAddr{{0x33, 0x33, 0, 0, 0, 1}}; },
        [](NeighbourFrame& frame) { frame.option = MacAddr{}; },
        [](NeighbourFrame& frame) { frame.more = {1, 0, 0, 0, 0, 0, 0, 0}; },  // an option of length zero
        [](NeighbourFrame& frame) { frame.more = {1, 2, 0, 0, 0, 0, 0, 0}; },  // longer than the message
        [](NeighbourFrame& frame) { frame.more = {1, 1, 0, 0}; }};             // a part of an option
    for (size_t i = 0; i < changes.size(); ++i) {
        NeighbourFrame frame = solicitation();
        changes[i](frame);
        EXPECT_EQ(read(frame.build()), (LinkMessage{.kind = Kind::Invalid, .target = kVip6})) << i;
    }
    EXPECT_EQ(read(solicitation().packet().l4_checksum(0x1234).build()).kind, Kind::Invalid);
    NeighbourFrame group = solicitation();
    group.target = *IpAddr::parse("ff02::80");
    EXPECT_EQ(read(group.build()).kind, Kind::Invalid);
}

// The length of the IP packet counts, not that of the frame: behind the packet lie bytes that would complete
// the message.
TEST(LinkMessage, AShortOneIsNotReadBeyondItsEnd_PRESENCE006) {
    const Frame whole = solicitation().build();
    constexpr size_t kIcmpAt = 14 + 40;
    for (size_t icmp_bytes = 0; icmp_bytes < 24; ++icmp_bytes) {
        Frame frame = whole;
        frame[19] = static_cast<uint8_t>(icmp_bytes);  // the payload length
        if (icmp_bytes >= 4) {                         // right for what is left
            Frame cut(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(kIcmpAt + icmp_bytes));
            const uint16_t sum = test::reference_l4_checksum(cut);
            frame[kIcmpAt + 2] = static_cast<uint8_t>(sum >> 8);
            frame[kIcmpAt + 3] = static_cast<uint8_t>(sum);
        }
        const LinkMessage message = read(frame);
        EXPECT_NE(message.target, kVip6) << icmp_bytes;
        EXPECT_EQ(message.kind, icmp_bytes == 0 ? Kind::None : Kind::Invalid) << icmp_bytes;
    }
}

// The last option is cut in the same way: its address lies behind the packet.
TEST(LinkMessage, ACutOptionIsNotReadBeyondItsEnd_PRESENCE006) {
    const Frame whole = solicitation().build();
    for (uint8_t icmp_bytes = 25; icmp_bytes < 32; ++icmp_bytes) {
        Frame frame = whole;
        frame[19] = icmp_bytes;
        Frame cut(frame.begin(), frame.begin() + 14 + 40 + icmp_bytes);
        const uint16_t sum = test::reference_l4_checksum(cut);
        frame[56] = static_cast<uint8_t>(sum >> 8);
        frame[57] = static_cast<uint8_t>(sum);
        EXPECT_EQ(read(frame).kind, Kind::Invalid) << unsigned{icmp_bytes};
    }
}

// In a set of addresses, ::ffff:192.0.2.80 is the IPv4 address.
TEST(LinkMessage, AMappedTargetIsNoIpv4Address_PRESENCE006) {
    NeighbourFrame mapped = solicitation();
    mapped.target = kVip;  // its bytes are the mapped form
    mapped.destination = "ff02::1:ff00:250";
    EXPECT_EQ(read(mapped.build()).kind, Kind::None);
}

TEST(LinkMessage, OtherPacketsAreNotRead_PRESENCE006) {
    EXPECT_EQ(read(test::eth().ipv4("192.0.2.10", "192.0.2.80").icmp(8, 0).build()).kind, Kind::None);
    EXPECT_EQ(read(test::eth().ipv6("2001:db8::10", "2001:db8::80").icmp(128, 0).build()).kind, Kind::None);
    EXPECT_EQ(read(test::eth().ipv6("2001:db8::10", "2001:db8::80").tcp(1, 2, "S").build()).kind, Kind::None);
    NeighbourFrame router = solicitation();
    router.type = 133;
    EXPECT_EQ(read(router.build()).kind, Kind::None) << "a router solicitation";
}

TEST(LinkMessage, TheGroupOfAnAddressHasItsLastThreeBytes) {
    EXPECT_EQ(solicited_node_group(*IpAddr::parse("2001:db8::12:3456")), *IpAddr::parse("ff02::1:ff12:3456"));
}

}  // namespace link_message_test
}  // namespace penstock::packet
