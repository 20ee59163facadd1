// SPDX-License-Identifier: Apache-2.0
// ARP and neighbour discovery at the workers: answers for VIPs of the link, and everything else for Linux.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/support/link_frames.hpp"
#include "tests/support/virtual_gateway.hpp"
#include "tests/support/vlan_tags.hpp"

namespace penstock::test {
namespace link_answers_test {

using stats::Counter;

const IpAddr kVip = IpAddr::v4(10, 80, 1, 80);
const IpAddr kVip6 = v6_on_link(1, 0x80);
const MacAddr kStranger{{2, 0, 0, 0, 1, 9}};

std::vector<TestService> web() {
    return {{.frontends = {{kVip, 80}, {kVip6, 80}}, .backends = {11}}};
}
ArpFrame arp() {
    return {.sender_mac = kClientMac, .sender = kClient, .target = kVip};
}
NeighbourFrame solicitation() {
    return {.mac = kClientMac,
            .source = kClient6.to_string(),
            .destination = "ff02::1:ff00:80",
            .target = kVip6,
            .option = kClientMac};
}
MacAddr mac_at(const std::vector<uint8_t>& frame, size_t at) {
    MacAddr mac;
    std::copy_n(frame.begin() + static_cast<ptrdiff_t>(at), mac.bytes.size(), mac.bytes.begin());
    return mac;
}

class LinkAnswers : public testing::Test {
 protected:
    LinkAnswers() {
        gateway.publish(web());
        gateway.set_link_vips({kVip, kVip6});
    }
    void expect_arp_reply(const Outcome& outcome, const char* what) {
        ASSERT_EQ(outcome.verdict, Verdict::Transmit) << what;
        EXPECT_EQ(outcome.egress, kUp);
        ASSERT_EQ(outcome.frame.size(), 42U);
        EXPECT_EQ(outcome.frame[21], 2) << "a reply";
        EXPECT_EQ(mac_at(outcome.frame, 0), kClientMac);
        EXPECT_EQ(mac_at(outcome.frame, 6), kUpMac);
        EXPECT_EQ(mac_at(outcome.frame, 22), kUpMac) << "the address asked for";
    }
    VirtualGateway gateway{{.workers = 2}};
};

TEST_F(LinkAnswers, AnyWorkerAnswersOnTheLinkOfTheQuery_PRESENCE006) {
    for (const WorkerId receiver : {WorkerId{0}, WorkerId{1}}) {
        expect_arp_reply(gateway.send(arp().build(), kUp, receiver), "request");
        const Outcome advertised = gateway.send(solicitation().build(), kUp, receiver);
        EXPECT_EQ(advertised.verdict, Verdict::Transmit);
        EXPECT_EQ(advertised.egress, kUp);
        EXPECT_EQ(advertised.frame.size(), 86U);
        EXPECT_EQ(advertised.handoffs, 0U);
    }
    EXPECT_EQ(gateway.count(Counter::ArpReplies), 2U);
    EXPECT_EQ(gateway.count(Counter::NeighbourAdvertisements), 2U);
    ArpFrame probe = arp();
    probe.sender = IpAddr::v4(0, 0, 0, 0);
    expect_arp_reply(gateway.send(probe.build()), "a probe (RFC 5227): the address is in use");
    ArpFrame unicast = arp();
    unicast.to = kUpMac;
    expect_arp_reply(gateway.send(unicast.build()), "verification of an entry");
    expect_arp_reply(gateway.send(vlan::tagged(arp().build(), {vlan::kPriority})), "behind a priority tag");
}

// A neighbour solicitation is shorter than its answer.
TEST_F(LinkAnswers, AnUnicastSolicitationIsAnsweredAndNotAClosedPort_PRESENCE006) {
    NeighbourFrame unicast = solicitation();
    unicast.destination = kVip6.to_string();
    unicast.to = kUpMac;
    unicast.option.reset();
    const Outcome outcome = gateway.send(unicast.build());
    EXPECT_EQ(outcome.verdict, Verdict::Transmit);
    EXPECT_EQ(outcome.frame.size(), 86U);
    gateway.set_link_vips({});
    EXPECT_EQ(gateway.send(unicast.build()).reason, DropReason::VipPortClosed);
}

TEST_F(LinkAnswers, AProbeOverIpv6IsAnsweredToAllHosts_PRESENCE006) {
    NeighbourFrame probe = solicitation();
    probe.source = "::";
    probe.option.reset();
    const Outcome outcome = gateway.send(probe.build());
    ASSERT_EQ(outcome.verdict, Verdict::Transmit);
    EXPECT_EQ(mac_at(outcome.frame, 0), (MacAddr{{0x33, 0x33, 0, 0, 0, 1}}));
    EXPECT_EQ(outcome.frame[58], 0x20) << "override, not solicited";
}

TEST_F(LinkAnswers, OnlyAnAnnouncedVipOfThisLinkIsAnswered_PRESENCE006) {
    const auto is_linuxs = [&](const char* what, NicPortId port = kUp) {
        EXPECT_EQ(gateway.send(arp().build(), port).verdict, Verdict::Punt) << what;
        EXPECT_EQ(gateway.send(solicitation().build(), port).verdict, Verdict::Punt) << what << ", IPv6";
    };
    is_linuxs("another port's link", kCluster);
    gateway.set_link_vips({});
    is_linuxs("not announced: a drain, a stand-by, the mode");
    gateway.set_link_vips({kVip, kVip6});
    gateway.publish({});
    is_linuxs("its last Service is gone, the control plane has not withdrawn it yet");
    gateway.publish(web());
    expect_arp_reply(gateway.send(arp().build()), "served again");
    EXPECT_EQ(gateway.count(Counter::ArpReplies), 1U);
}

TEST_F(LinkAnswers, ASnatAddressOfAShareNeedsNoService_PRESENCE006) {
    gateway.publish({});
    gateway.set_link_vips({}, {kVip, kVip6});
    expect_arp_reply(gateway.send(arp().build()), "no Service has the address");
    EXPECT_EQ(gateway.send(solicitation().build()).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.send(arp().build(), kCluster).verdict, Verdict::Punt) << "another port's link";
}

TEST_F(LinkAnswers, LinuxResolvesAsBefore_PRESENCE006) {
    ArpFrame own = arp();
    own.target = kUpAddress;
    EXPECT_EQ(gateway.send(own.build()).verdict, Verdict::Punt) << "a request for the twin's own address";
    ArpFrame reply{.operation = 2,
                   .sender_mac = kClientMac,
                   .sender = kClient,
                   .target = kUpAddress,
                   .target_mac = kUpMac,
                   .to = kUpMac};
    EXPECT_EQ(gateway.send(reply.build()).verdict, Verdict::Punt) << "a reply to Linux";
    NeighbourFrame advertisement{.type = 136,
                                 .mac = kClientMac,
                                 .source = kClient6.to_string(),
                                 .destination = kUpAddress6.to_string(),
                                 .target = kClient6,
                                 .to = kUpMac};
    EXPECT_EQ(gateway.send(advertisement.build()).verdict, Verdict::Punt);
    NeighbourFrame router = solicitation();
    router.type = 133;
    router.destination = "ff02::2";
    EXPECT_EQ(gateway.send(router.build()).verdict, Verdict::Punt);
    ArpFrame announcement{.sender_mac = kUpMac, .sender = kVip, .target = kVip};
    const Outcome sent = gateway.send_from_host(announcement.build(), kUp);
    EXPECT_EQ(sent.verdict, Verdict::Transmit) << "the control plane's announcement leaves";
    EXPECT_EQ(sent.frame, announcement.build());
    gateway.publish({{.frontends = {{kUpAddress, 80}}, .backends = {11}}});
    gateway.set_link_vips({kVip, kVip6, kUpAddress});
    EXPECT_EQ(gateway.send(own.build()).verdict, Verdict::Punt) << "the host's own address, whatever is set";
    EXPECT_EQ(gateway.count(Counter::ArpReplies), 0U);
}

TEST_F(LinkAnswers, AnInvalidQueryIsDroppedByName_PRESENCE006) {
    ArpFrame spoofed = arp();
    spoofed.sender = IpAddr::v4(255, 255, 255, 255);
    EXPECT_EQ(gateway.send(spoofed.build()).reason, DropReason::BadLinkMessage);
    NeighbourFrame routed = solicitation();
    routed.hop_limit = 254;
    EXPECT_EQ(gateway.send(routed.build()).reason, DropReason::BadLinkMessage);
    NeighbourFrame cut = solicitation();
    cut.destination = kVip6.to_string();
    cut.to = kUpMac;
    EXPECT_EQ(gateway.send(cut.packet().payload(std::vector<uint8_t>{}).build()).reason,
              DropReason::BadLinkMessage)
        << "no target";
    EXPECT_EQ(gateway.count(Counter::NeighbourAdvertisements), 0U);
}

TEST_F(LinkAnswers, AnotherHostWithTheAddressIsCountedAndNotAnswered_PRESENCE006) {
    ArpFrame announcement{.sender_mac = kStranger, .sender = kVip, .target = kVip};
    EXPECT_EQ(gateway.send(announcement.build()).verdict, Verdict::Punt);
    NeighbourFrame advertisement{.type = 136,
                                 .mac = kStranger,
                                 .source = kVip6.to_string(),
                                 .destination = "ff02::1",
                                 .target = kVip6,
                                 .option = kStranger};
    EXPECT_EQ(gateway.send(advertisement.build()).verdict, Verdict::Punt);
    EXPECT_EQ(gateway.count(Counter::VipConflicts), 2U);
    announcement.sender = announcement.target = kClient;
    EXPECT_EQ(gateway.send(announcement.build()).verdict, Verdict::Punt) << "not a VIP";
    EXPECT_EQ(gateway.count(Counter::VipConflicts), 2U);
}

TEST_F(LinkAnswers, ABlockedSourceGetsNoAdvertisement_PRESENCE006) {
    gateway.set_blocked_sources(route::PrefixSet({*Prefix::make(kClient6, 128)}));
    EXPECT_EQ(gateway.send(solicitation().build()).reason, DropReason::SourceBlocked);
    gateway.set_blocked_sources({});
    EXPECT_EQ(gateway.send(solicitation().build()).verdict, Verdict::Transmit);
}

// The frontends of the VIP serve as ever beside its queries in one burst.
TEST_F(LinkAnswers, FlowsOfTheBurstAreServed_PRESENCE006) {
    const auto syn = eth()
                         .from_mac(kClientMac.to_string())
                         .to_mac(kUpMac.to_string())
                         .ipv4(kClient.to_string(), kVip.to_string())
                         .tcp(40'000, 80, "S")
                         .build();
    const auto outcomes = gateway.send_burst({arp().build(), syn, solicitation().build()});
    for (const Outcome& outcome : outcomes) {
        EXPECT_EQ(outcome.verdict, Verdict::Transmit);
    }
    EXPECT_EQ(gateway.connections(), 1U);
}

}  // namespace link_answers_test
}  // namespace penstock::test
