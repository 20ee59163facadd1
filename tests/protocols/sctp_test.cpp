// SPDX-License-Identifier: Apache-2.0
// SCTP associations: opened, translated, tracked and ended, from any queue.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/protocols/one_endpoint.hpp"
#include "tests/support/frame_diff.hpp"

namespace penstock::test {
namespace sctp_test {

constexpr uint8_t kSack = 3, kHeartbeat = 4, kAbort = 6, kShutdown = 7, kShutdownAck = 8, kCookieEcho = 10,
                  kCookieAck = 11, kShutdownComplete = 14, kData = 0;
constexpr uint16_t kClientPort = 2905, kPort = 3868, kBackendPort = 13868;
constexpr uint32_t kClientTag = 0xc11e0001;   // chosen by the client: in packets to it
constexpr uint32_t kBackendTag = 0xbac20002;  // chosen by the backend: in packets to it
constexpr uint8_t kHost = 11;

packet::FlowKey key_of(const Outcome& outcome) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(outcome.frame, parsed).has_value()) << to_scapy(outcome.frame);
    return parsed.key;
}

std::vector<uint8_t> data_of(size_t bytes) {
    return std::vector<uint8_t>(12 + bytes, 0xda);
}

class Sctp : public ThroughOneEndpoint {
 protected:
    TestService service = service_on_both(Protocol::Sctp, kPort, kBackendPort, source);
    uint8_t queue = 0;  // queue of the next packet, chosen arbitrarily

    [[nodiscard]] WorkerId next_queue() { return {static_cast<uint8_t>(queue++ % workers)}; }

    Outcome up(const PacketBuilder& packet) { return gateway.send(packet.build(), kUp, next_queue()); }
    Outcome down(const PacketBuilder& packet) { return gateway.send(packet.build(), kCluster, next_queue()); }

    // The same chunks as they arrive and as they must leave.
    template <typename Chunks>
    void passes_up(uint32_t tag, Chunks&& chunks, const char* what) {
        const Outcome out = up(chunks(ends.from_client().sctp(kClientPort, kPort, tag)));
        ASSERT_EQ(out.verdict, Verdict::Transmit) << what << ": " << text_of(out.reason).counter;
        EXPECT_TRUE(same_frame(out.frame, chunks(to_endpoint().sctp(kClientPort, kBackendPort, tag)).build()))
            << what;
    }
    template <typename Chunks>
    void passes_down(uint32_t tag, Chunks&& chunks, const char* what) {
        const Outcome out = down(chunks(from_endpoint().sctp(kBackendPort, kClientPort, tag)));
        ASSERT_EQ(out.verdict, Verdict::Transmit) << what << ": " << text_of(out.reason).counter;
        EXPECT_TRUE(same_frame(out.frame, chunks(ends.to_client().sctp(kPort, kClientPort, tag)).build()))
            << what;
    }
    static auto one(uint8_t type, std::vector<uint8_t> value = {}, uint8_t flags = 0) {
        return [=](PacketBuilder packet) { return packet.chunk(type, value, flags); };
    }
    static auto init(uint32_t tag) {
        return [=](PacketBuilder packet) { return packet.sctp_init(tag); };
    }
    static auto init_ack(uint32_t tag) {
        return [=](PacketBuilder packet) { return packet.sctp_init_ack(tag); };
    }
    void open() {
        passes_up(0, init(kClientTag), "INIT");
        passes_down(kClientTag, init_ack(kBackendTag), "INIT ACK");
        passes_up(kBackendTag, one(kCookieEcho, std::vector<uint8_t>(200, 0xcc)), "COOKIE ECHO");
        passes_down(kClientTag, one(kCookieAck), "COOKIE ACK");
    }
    [[nodiscard]] DropReason up_dropped(const PacketBuilder& packet) {
        const Outcome out = up(packet);
        EXPECT_EQ(out.verdict, Verdict::Drop) << to_scapy(out.frame);
        return out.reason;
    }
};

TEST_P(Sctp, AnAssociationLivesFromInitToShutdownComplete_SCTP001_SCTP002_SCTP003) {
    gateway.publish({service});
    open();
    for (const size_t bytes : {1u, 2u, 3u, 100u, 1400u}) {
        passes_up(kBackendTag, one(kData, data_of(bytes)), "data");
        passes_down(
            kClientTag,
            [&](PacketBuilder p) { return p.chunk(kSack, data_of(0)).chunk(kData, data_of(bytes)); },
            "SACK and data");
    }
    passes_up(kBackendTag, one(kHeartbeat, {0, 1, 0, 8, 1, 2, 3, 4}), "HEARTBEAT");
    EXPECT_EQ(gateway.connections(), 1u) << "one association is one entry, whoever receives its packets";
    const auto open_flows = [&] {
        return gateway.worker(0).schedulers.open_flows(gateway.backend_of(service, kHost, family));
    };
    EXPECT_EQ(open_flows(), 1);
    passes_up(kBackendTag, one(kShutdown, {0, 0, 0, 1}), "SHUTDOWN");
    passes_down(kClientTag, one(kShutdownAck), "SHUTDOWN ACK");
    passes_up(kBackendTag, one(kShutdownComplete), "SHUTDOWN COMPLETE");
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(open_flows(), 0) << "schedulers count it no longer";
    gateway.advance_seconds(13);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u) << "a closed association goes soon";
}

// From the endpoint's service port: its INIT is not a reply of a removed flow, and Linux routes it.
TEST_P(Sctp, AnEndpointMayBeginOneOfItsOwn_NAT006) {
    gateway.publish({service});
    const auto outward = [&](uint32_t tag) {
        return ends.from_backend_to_client(kHost).sctp(kBackendPort, kClientPort, tag);
    };
    EXPECT_EQ(down(outward(0).sctp_init(kBackendTag)).verdict, Verdict::Punt);
    const Outcome stray = down(outward(kClientTag).chunk(kData, data_of(4)));
    EXPECT_EQ(stray.verdict, translated ? Verdict::Punt : Verdict::Drop);
    if (!translated) {
        EXPECT_EQ(stray.reason, DropReason::StrayReply);
    }
}

TEST_P(Sctp, OnlyAnInitBeginsOne_SCTP002_SCTP003) {
    gateway.publish({service});
    const auto packet = [&] { return ends.from_client().sctp(kClientPort, kPort, kBackendTag); };
    for (const PacketBuilder& begins_none :
         {packet().chunk(kData, data_of(8)), packet().chunk(kHeartbeat, {1, 2, 3, 4}), packet().chunk(kAbort),
          packet().sctp_init_ack(7), packet().chunk(kCookieEcho, data_of(100)),
          packet().chunk(kShutdownAck)}) {
        EXPECT_EQ(up_dropped(begins_none), DropReason::SctpNoAssociation);
    }
    open();
    // SCTP-003: the association's second path is not tracked.
    EXPECT_EQ(up_dropped(Ends::from_uplink()
                             .ipv4("10.80.1.3", "80.11.12.10")
                             .sctp(kClientPort, kPort, kBackendTag)
                             .chunk(kHeartbeat, {1, 2, 3, 4})),
              DropReason::SctpNoAssociation);
    EXPECT_EQ(gateway.connections(), 1u);
}

TEST_P(Sctp, WhoDoesNotKnowTheTagsMovesNothing_SCTP002) {
    gateway.publish({service});
    open();
    for (const uint8_t type : {kData, kAbort, kShutdown, kShutdownAck, kShutdownComplete}) {
        EXPECT_EQ(up_dropped(ends.from_client().sctp(kClientPort, kPort, 0x666).chunk(type, {0, 0, 0, 1})),
                  DropReason::SctpWrongTag);
    }
    const Outcome from_backend = down(from_endpoint().sctp(kBackendPort, kClientPort, 0x666).chunk(kAbort));
    EXPECT_EQ(from_backend.reason, DropReason::SctpWrongTag);
    passes_up(kBackendTag, one(kData, data_of(8)), "data");
    gateway.advance_seconds(3'500);
    gateway.age();
    passes_down(kClientTag, one(kData, data_of(8)), "data after nearly an hour");
    gateway.advance_seconds(3'605);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST_P(Sctp, AnAbortEndsItAndItsTupleMayBeginAgain_SCTP002) {
    gateway.publish({service});
    open();
    passes_down(kClientTag, one(kAbort, {0, 12, 0, 4}), "ABORT");
    passes_up(0, init(0x7777), "INIT on the old tuple");
    passes_down(0x7777, init_ack(0x8888), "INIT ACK");
    passes_up(0x8888, one(kCookieEcho, data_of(50)), "COOKIE ECHO");
    passes_down(0x7777, one(kCookieAck), "COOKIE ACK");
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(up_dropped(ends.from_client().sctp(kClientPort, kPort, kBackendTag).chunk(kData, data_of(8))),
              DropReason::SctpWrongTag);
    // The backend has lost the association; its ABORT has the gateway's tag (RFC 9260, 8.4).
    passes_up(0x8888, one(kData, data_of(8)), "data");
    passes_down(0x8888, one(kAbort, {}, 1), "reflecting ABORT");
    gateway.advance_seconds(13);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

// An off-path sender that knows a peer's address and its fixed port.
TEST_P(Sctp, ForgedHandshakesKeepNobodyOut_SCTP002) {
    gateway.publish({service});
    constexpr uint32_t kForged = 0x666;
    const auto forge = [&] {
        passes_up(0, init(kForged), "forged INIT");
        passes_up(kForged + 1, one(kCookieEcho, data_of(50)), "forged COOKIE ECHO");
    };
    forge();
    passes_up(0, init(kClientTag), "INIT");
    forge();
    passes_down(kClientTag, init_ack(kBackendTag), "INIT ACK");
    passes_down(kForged, init_ack(0x777), "INIT ACK to the forged INIT");
    passes_up(kBackendTag, one(kCookieEcho, data_of(50)), "COOKIE ECHO");
    forge();
    passes_down(kClientTag, one(kCookieAck), "COOKIE ACK");
    passes_up(kBackendTag, one(kData, data_of(8)), "data");
    passes_down(kClientTag, one(kData, data_of(8)), "data");
    EXPECT_EQ(gateway.connections(), 1u);
    gateway.advance_seconds(3'500);
    gateway.age();
    passes_down(kClientTag, one(kData, data_of(8)), "data after nearly an hour");
    gateway.advance_seconds(3'500);
    gateway.age();
    passes_up(kBackendTag, one(kData, data_of(8)), "data after another");
    EXPECT_EQ(gateway.connections(), 1u);
}

TEST_P(Sctp, WhatAnybodyCanSendKeepsNoEntry_SCTP002_NAT008) {
    gateway.publish({service});
    for (uint32_t minute_third = 0; minute_third < 3; ++minute_third) {
        passes_up(0, init(0x666), "forged INIT");
        gateway.advance_seconds(20);
        gateway.age();
    }
    gateway.advance_seconds(3);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u) << "opening";
    open();
    passes_up(0x666, one(kCookieEcho, data_of(50)), "forged COOKIE ECHO");
    for (uint32_t half_hour = 0; half_hour < 2; ++half_hour) {
        passes_up(0, init(0x666), "forged INIT");
        passes_up(0x666, one(kData, data_of(8)), "forged data, for the endpoint to judge");
        gateway.advance_seconds(1'800);
        gateway.age();
    }
    gateway.advance_seconds(5);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u) << "open";
}

TEST_P(Sctp, AForgedCookieHidesNoEnd_SCTP002) {
    gateway.publish({service});
    open();
    passes_up(0x666, one(kCookieEcho, data_of(50)), "forged COOKIE ECHO");
    for (uint32_t half_hour = 0; half_hour < 4; ++half_hour) {
        passes_up(kBackendTag, one(kData, data_of(8)), "data");
        passes_down(kClientTag, one(kSack, data_of(0)), "SACK");
        gateway.advance_seconds(1'800);
        gateway.age();
    }
    EXPECT_EQ(gateway.connections(), 1u) << "what lives stays";
    passes_down(kClientTag, one(kAbort, {0, 12, 0, 4}), "ABORT");
    gateway.advance_seconds(13);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST_P(Sctp, APeerThatDiedInTheMiddleOfTheEndComesBack_SCTP002) {
    gateway.publish({service});
    open();
    passes_up(kBackendTag, one(kShutdown, {0, 0, 0, 1}), "SHUTDOWN");
    passes_down(kClientTag, one(kShutdownAck), "SHUTDOWN ACK");
    passes_up(0, init(0x7777), "INIT");
    passes_down(0x7777, init_ack(0x8888), "INIT ACK");
    passes_up(0x8888, one(kCookieEcho, data_of(50)), "COOKIE ECHO");
    passes_down(0x7777, one(kCookieAck), "COOKIE ACK");
    passes_up(0x8888, one(kData, data_of(8)), "data");
    EXPECT_EQ(up_dropped(ends.from_client().sctp(kClientPort, kPort, kBackendTag).chunk(kAbort)),
              DropReason::SctpWrongTag);
    passes_up(0x8888, one(kAbort), "ABORT");
    const Outcome anew = down(from_endpoint().sctp(kBackendPort, kClientPort, 0).sctp_init(0x9999));
    EXPECT_EQ(anew.verdict, Verdict::Drop);
    EXPECT_EQ(anew.reason, DropReason::SctpNoAssociation) << "an endpoint opens nothing towards a client";
}

TEST_P(Sctp, AWrongChecksumLeavesWrongAndNoneLeavesAsNone_SCTP001) {
    gateway.publish({service});
    open();
    const auto frame_with = [&](PacketBuilder link, uint16_t from, uint16_t to, uint32_t wrong) {
        const PacketBuilder right = link.sctp(from, to, kBackendTag).chunk(kData, data_of(777));
        const std::vector<uint8_t> frame = right.build();
        const size_t sum_at = frame.size() - 4 - 792 - 4;  // before the chunk's header and its padded value
        return PacketBuilder(right).sctp_checksum(load<uint32_t>(frame.data() + sum_at) ^ wrong);
    };
    for (const uint32_t wrong : {1U, 0x8000'0000U}) {
        const Outcome out = up(frame_with(ends.from_client(), kClientPort, kPort, wrong));
        ASSERT_EQ(out.verdict, Verdict::Transmit);
        EXPECT_TRUE(
            same_frame(out.frame, frame_with(to_endpoint(), kClientPort, kBackendPort, wrong).build()));
    }
    passes_up(
        kBackendTag, [&](PacketBuilder p) { return p.chunk(kData, data_of(777)).sctp_checksum(0); },
        "RFC 9653");
}

// Path MTU discovery and refusals: the quoted ports, and the quoted checksum if the quote has it, are those
// of the packet as sent.
TEST_P(Sctp, ErrorsAboutItReachItsEnds_ICMP001_ICMP002_SCTP005) {
    gateway.publish({service});
    open();
    const bool is_v4 = ends.family == IpFamily::V4;
    const IpAddr router = *IpAddr::parse(is_v4 ? "198.51.100.77" : "2001:db8:99::77");
    const IpAddr backend = backend_address(kHost, ends.family);
    const IpAddr& inside = translated ? ends.snat : ends.client;
    const size_t to_tag = (is_v4 ? 20u : 40u) + 8;
    for (const size_t most : {size_t{10'000}, to_tag + 4, to_tag}) {
        const auto quote = [&](const PacketBuilder& packet) {
            const std::vector<uint8_t> frame = packet.build();
            return std::vector<uint8_t>(
                frame.begin() + 14,
                frame.begin() + static_cast<std::ptrdiff_t>(std::min(frame.size(), 14 + most)));
        };
        const auto answer = [](PacketBuilder ip, L4Port from) {
            return ip.sctp(from, kClientPort, kClientTag).chunk(kData, data_of(1'350));
        };
        const Outcome too_big = up(ends.ip(Ends::from_uplink(), router, ends.vip, 64)
                                       .icmp(is_v4 ? 3 : 2, is_v4 ? 4 : 0, 1396)
                                       .payload(quote(answer(ends.to_client(), kPort))));
        ASSERT_EQ(too_big.verdict, Verdict::Transmit) << text_of(too_big.reason).counter;
        EXPECT_TRUE(same_frame(
            too_big.frame,
            ends.ip(Ends::to_cluster(kHost), router, backend, 63)
                .icmp(is_v4 ? 3 : 2, is_v4 ? 4 : 0, 1396)
                .payload(quote(answer(ends.ip(Ends::from_cluster(kHost), backend, inside, 63), kBackendPort)))
                .build()));
        const auto request = [](PacketBuilder ip, L4Port to) {
            return ip.sctp(kClientPort, to, kBackendTag).chunk(kData, data_of(99));
        };
        const Outcome refused = down(ends.ip(Ends::from_cluster(kHost), backend, inside, 64)
                                         .icmp(is_v4 ? 3 : 1, is_v4 ? 2 : 4)
                                         .payload(quote(request(to_endpoint(), kBackendPort))));
        ASSERT_EQ(refused.verdict, Verdict::Transmit) << text_of(refused.reason).counter;
        EXPECT_TRUE(same_frame(
            refused.frame,
            ends.ip(Ends::to_uplink(), ends.vip, ends.client, 63)
                .icmp(is_v4 ? 3 : 1, is_v4 ? 2 : 4)
                .payload(quote(request(ends.ip(Ends::from_uplink(), ends.client, ends.vip, 63), kPort)))
                .build()));
    }
    EXPECT_EQ(gateway.connections(), 1u);
}

TEST_P(Sctp, TtlRunsOut_ICMP006) {
    gateway.publish({service});
    open();
    PacketBuilder last = ends.from_client().sctp(kClientPort, kPort, kBackendTag).chunk(kData, data_of(8));
    ends.family == IpFamily::V4 ? last.ttl(1) : last.hop_limit(1);
    const Outcome told = up(last);
    ASSERT_EQ(told.verdict, Verdict::Transmit) << text_of(told.reason).counter;
    EXPECT_EQ(told.egress, kUp);
    const bool is_v4 = ends.family == IpFamily::V4;
    EXPECT_EQ(told.frame[is_v4 ? 34 : 54], is_v4 ? 11 : 3) << "time exceeded";
}

TEST_P(Sctp, HalfOpenOnesGoAfterAMinute_NAT008) {
    gateway.publish({service});
    passes_up(0, init(kClientTag), "INIT");
    gateway.advance_seconds(59);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 1u);
    gateway.advance_seconds(3);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST_P(Sctp, AServicesIdleTimeIsThatOfEstablishedOnes_NAT008_SCTP005) {
    gateway.publish({service});
    gateway.set_idle_limit(service, 100);
    open();
    gateway.advance_seconds(99);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 1u);
    gateway.advance_seconds(3);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

// DRAIN-004: both ends get an ABORT with their own tag, and another one if they continue.
TEST_P(Sctp, AnEndpointThatIsGoneEndsItOnBothSides_DRAIN004_SCTP005) {
    gateway.publish({service});
    open();
    const BackendId backend = gateway.backend_of(service, kHost, ends.family);
    const auto open_now = [&] {
        uint32_t sum = 0;
        for (uint32_t w = 0; w < workers; ++w) {
            sum += gateway.worker(w).counters.backends[backend.value].open.read();
        }
        return sum;
    };
    EXPECT_EQ(open_now(), 1u);
    gateway.order({.backend = backend});
    gateway.work_off_orders();
    EXPECT_EQ(open_now(), 0u);
    const auto own = [](PacketBuilder packet) { return packet; };
    const auto check = [&](const char* what) {
        std::vector<Outcome> sent = gateway.take_own_segments();
        ASSERT_EQ(sent.size(), 2u) << what;
        const bool first_up = sent[0].egress == kUp;
        const PacketBuilder to_client =
            ends.ip(Ends::to_uplink(), ends.vip, ends.client, 64).sctp(kPort, kClientPort, kClientTag);
        const PacketBuilder to_backend =
            ends.ip(Ends::to_cluster(kHost), translated ? ends.snat : ends.client,
                    backend_address(kHost, ends.family), 64)
                .sctp(kClientPort, kBackendPort, kBackendTag);
        const auto bare = [&](PacketBuilder packet) {
            return (ends.family == IpFamily::V4 ? own(packet).id(0).dont_fragment() : own(packet))
                .chunk(kAbort)
                .build();
        };
        EXPECT_TRUE(same_frame(sent[first_up ? 0 : 1].frame, bare(to_client))) << what;
        EXPECT_TRUE(same_frame(sent[first_up ? 1 : 0].frame, bare(to_backend))) << what;
    };
    check("the order");
    const Outcome answer =
        up(ends.from_client().sctp(kClientPort, kPort, kBackendTag).chunk(kData, data_of(8)));
    ASSERT_EQ(answer.verdict, Verdict::Transmit);
    PacketBuilder reflected = ends.ip(Ends::to_uplink(), ends.vip, ends.client, 64);
    if (ends.family == IpFamily::V4) {
        reflected.id(0).dont_fragment();
    }
    EXPECT_TRUE(same_frame(answer.frame,
                           reflected.sctp(kPort, kClientPort, kBackendTag).chunk(kAbort, {}, 1).build()));
    gateway.advance_seconds(5);
    gateway.age();
    check("the sweep");
    gateway.advance_seconds(13);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST_P(Sctp, WhatNobodyHasAnsweredIsForgottenWithItsEndpoint_DRAIN004) {
    gateway.publish({service});
    passes_up(0, init(kClientTag), "INIT");
    gateway.order({.backend = gateway.backend_of(service, kHost, ends.family)});
    gateway.work_off_orders();
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_TRUE(gateway.take_own_segments().empty());
}

TEST_P(Sctp, RefusalsAreIcmpUnlessAbortsAreAskedFor_REJ002_REJ003_REJ004) {
    service.backends.clear();
    gateway.publish({service});
    const PacketBuilder refused = ends.from_client().sctp(kClientPort, kPort, 0).sctp_init(kClientTag);
    const std::vector<uint8_t> frame = refused.build();
    PacketBuilder answer = ends.ip(Ends::to_uplink(), ends.vip, ends.client, 64);
    if (ends.family == IpFamily::V4) {
        answer.id(0).dont_fragment();
    }
    const std::vector<uint8_t> quote(frame.begin() + 14, frame.end());
    const bool is_v4 = ends.family == IpFamily::V4;
    const Outcome icmp = up(refused);
    ASSERT_EQ(icmp.verdict, Verdict::Transmit) << text_of(icmp.reason).counter;
    EXPECT_TRUE(same_frame(
        icmp.frame,
        PacketBuilder(answer).tos(0xc0).icmp(is_v4 ? 3 : 1, is_v4 ? 3 : 4).payload(quote).build()));
    gateway.set_packets({.aborts_sctp = true});
    const Outcome abort = up(refused);
    ASSERT_EQ(abort.verdict, Verdict::Transmit) << text_of(abort.reason).counter;
    EXPECT_TRUE(same_frame(abort.frame,
                           PacketBuilder(answer).sctp(kPort, kClientPort, kClientTag).chunk(kAbort).build()));
    // A packet other than INIT is not answered, and neither are packets above the limit.
    EXPECT_EQ(up_dropped(ends.from_client().sctp(kClientPort, kPort, 7).chunk(kData, data_of(8))),
              DropReason::SctpNoAssociation);
    uint32_t limited = 0;
    for (uint32_t i = 0; i < workers * (limits::kRejectsBurst + 10); ++i) {
        limited += up(refused).reason == DropReason::RejectLimited ? 1 : 0;
    }
    EXPECT_GE(limited, 10u);
}

TEST_P(Sctp, AClosedPortIsSilentUnlessTheOperatorSaysSo_LB021_SVC008) {
    TestService tcp = service_on_both(Protocol::Tcp, kPort, 80, source);
    gateway.publish({tcp});
    const PacketBuilder init_packet = ends.from_client().sctp(kClientPort, kPort, 0).sctp_init(kClientTag);
    EXPECT_EQ(up_dropped(init_packet), DropReason::VipPortClosed);
    gateway.set_rejects_closed_vip_ports(true);
    EXPECT_EQ(up(init_packet).verdict, Verdict::Transmit);
    EXPECT_EQ(up_dropped(ends.from_client().sctp(kClientPort, kPort, 7).chunk(kHeartbeat)),
              DropReason::VipPortClosed);
}

TEST_P(Sctp, TheSamePortOfTcpUdpAndSctpAreThree_SVC008_SCTP005) {
    TestService tcp = service_on_both(Protocol::Tcp, kPort, 80, source),
                udp = service_on_both(Protocol::Udp, kPort, 90, source);
    tcp.backends = {21};
    udp.backends = {22};
    gateway.publish({tcp, udp, service});
    EXPECT_EQ(key_of(up(ends.from_client().tcp(kClientPort, kPort, "S"))).destination,
              backend_address(21, ends.family));
    EXPECT_EQ(key_of(up(ends.from_client().udp(kClientPort, kPort))).destination,
              backend_address(22, ends.family));
    open();
    EXPECT_EQ(gateway.connections(), 3u);
}

TEST_P(Sctp, NodePortsServeIt_SCTP001_NODEPORT001) {
    service.frontends.clear();
    service.node_ports = {30868};
    gateway.publish({service});
    const IpAddr& own = ends.family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    const Outcome init_out = up(
        ends.ip(Ends::from_uplink(), ends.client, own, 64).sctp(kClientPort, 30868, 0).sctp_init(kClientTag));
    ASSERT_EQ(init_out.verdict, Verdict::Transmit) << text_of(init_out.reason).counter;
    EXPECT_TRUE(same_frame(init_out.frame,
                           to_endpoint().sctp(kClientPort, kBackendPort, 0).sctp_init(kClientTag).build()));
    const Outcome ack =
        down(from_endpoint().sctp(kBackendPort, kClientPort, kClientTag).sctp_init_ack(kBackendTag));
    ASSERT_EQ(ack.verdict, Verdict::Transmit) << text_of(ack.reason).counter;
    EXPECT_TRUE(same_frame(ack.frame, ends.ip(Ends::to_uplink(), own, ends.client, 63)
                                          .sctp(30868, kClientPort, kClientTag)
                                          .sctp_init_ack(kBackendTag)
                                          .build()));
}

TEST_P(Sctp, LeastConnectionCountsAssociations_SCHED003_SCTP005) {
    service.backends = {11, 12};
    service.scheduler = lb::SchedulerKind::LeastConnection;
    gateway.publish({service});
    std::map<IpAddr, int> given;
    for (uint16_t port = 1111; port < 1131; ++port) {
        ++given[key_of(up(ends.from_client().sctp(port, kPort, 0).sctp_init(1))).destination];
    }
    ASSERT_EQ(given.size(), 2u);
    EXPECT_EQ(given.begin()->second, 10);
}

TEST_P(Sctp, AffinityHoldsForAssociations_AFF009_SCTP005) {
    service.backends = {11, 12};
    service.affinity_timeout_s = 60;
    gateway.publish({service});
    const IpAddr first = key_of(up(ends.from_client().sctp(1111, kPort, 0).sctp_init(1))).destination;
    for (uint16_t port = 1112; port < 1130; ++port) {
        EXPECT_EQ(key_of(up(ends.from_client().sctp(port, kPort, 0).sctp_init(1))).destination, first);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Sctp,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(lb::SourceMode::Translate, lb::SourceMode::Keep)));

// SCTP-003: the client's own port is kept if it is free towards that endpoint.
class SctpPorts : public testing::TestWithParam<std::tuple<uint32_t, IpFamily>> {};

TEST_P(SctpPorts, SnatKeepsTheSourcePortUnlessItIsTaken_SCTP003) {
    const auto [workers, family] = GetParam();
    const Ends ends = family == IpFamily::V4 ? ends4() : ends6();
    VirtualGateway gateway{VirtualGateway::Options{.workers = workers}};
    gateway.publish({service_on_both(Protocol::Sctp, kPort, kBackendPort)});
    const auto init_from = [&](const IpAddr& client, uint16_t port, uint8_t queue) {
        return gateway.send(ends.ip(Ends::from_uplink(), client, ends.vip, 64)
                                .sctp(port, kPort, 0)
                                .sctp_init(kClientTag)
                                .build(),
                            kUp, {static_cast<uint8_t>(queue % workers)});
    };
    for (uint32_t port = 1024; port < 65'536; port += 997) {
        const Outcome kept = init_from(ends.client, static_cast<uint16_t>(port), static_cast<uint8_t>(port));
        ASSERT_EQ(kept.verdict, Verdict::Transmit);
        EXPECT_EQ(key_of(kept).source_port, port);
    }
    // Another client with the same port: the endpoint could not distinguish the two.
    const IpAddr other = *IpAddr::parse(family == IpFamily::V4 ? "198.51.100.9" : "2001:db8:99::9");
    const Outcome second = init_from(other, 1024, 1);
    ASSERT_EQ(second.verdict, Verdict::Transmit);
    const uint16_t port = key_of(second).source_port;
    EXPECT_NE(port, 1024);
    for (uint8_t queue = 0; queue < workers; ++queue) {
        const Outcome ack = gateway.send(
            ends.from_backend(kHost).sctp(kBackendPort, port, kClientTag).sctp_init_ack(kBackendTag).build(),
            kCluster, {queue});
        ASSERT_EQ(ack.verdict, Verdict::Transmit) << "from queue " << int{queue};
        EXPECT_EQ(key_of(ack).destination, other);
        EXPECT_EQ(key_of(ack).destination_port, 1024);
    }
    // Below the range of SNAT ports.
    const Outcome low = init_from(ends.client, 700, 0);
    ASSERT_EQ(low.verdict, Verdict::Transmit);
    EXPECT_GE(key_of(low).source_port, 1024);
}

INSTANTIATE_TEST_SUITE_P(All, SctpPorts,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(IpFamily::V4, IpFamily::V6)));

// An endpoint on the gateway host receives the client's packets and answers through the twin, on any worker.
TEST(SctpOnTheHost, IsServedThroughTheTwin_SCTP001_EP007) {
    for (const Ends& ends : {ends4(), ends6()}) {
        for (const uint32_t workers : {1u, 2u, 4u}) {
            VirtualGateway gateway{VirtualGateway::Options{.workers = workers}};
            TestService service = service_on_both(Protocol::Sctp, kPort, kBackendPort);
            service.backends = {1};  // the cluster twin's own address
            gateway.publish({service});
            for (uint16_t n = 0; n < 20; ++n) {
                const auto client_port = static_cast<uint16_t>(kClientPort + 100 * n);
                const Outcome in =
                    gateway.send(ends.from_client().sctp(client_port, kPort, 0).sctp_init(kClientTag).build(),
                                 kUp, {static_cast<uint8_t>(n % workers)});
                ASSERT_EQ(in.verdict, Verdict::Punt) << text_of(in.reason).counter;
                const packet::FlowKey inside = key_of(in);
                EXPECT_EQ(inside.source, ends.client)
                    << "Linux takes no packet from outside with an address of its own";
                EXPECT_EQ(inside.destination, ends.snat);
                EXPECT_EQ(inside.destination_port, kBackendPort);
                const Outcome out =
                    gateway.send_from_host(ends.ip(Ends::to_uplink(), ends.snat, ends.client, 64)
                                               .sctp(kBackendPort, inside.source_port, kClientTag)
                                               .sctp_init_ack(kBackendTag)
                                               .build(),
                                           kUp, {static_cast<uint8_t>((n + 1) % workers)});
                ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
                EXPECT_TRUE(same_frame(out.frame, ends.to_client()
                                                      .sctp(kPort, client_port, kClientTag)
                                                      .sctp_init_ack(kBackendTag)
                                                      .build()));
            }
            EXPECT_EQ(gateway.connections(), 20u);
        }
    }
}

// Linux's own associations are not changed.
TEST(SctpOnTheHost, WhatNoServiceDeclaresIsLinuxs_XIP003) {
    for (const Ends& ends : {ends4(), ends6()}) {
        VirtualGateway gateway;
        gateway.publish({service_on_both(Protocol::Sctp, kPort, kBackendPort)});
        const Outcome out = gateway.send(ends.ip(Ends::from_uplink(), ends.client,
                                                 ends.family == IpFamily::V4 ? kUpAddress : kUpAddress6, 64)
                                             .sctp(1, 2, 0)
                                             .sctp_init(9)
                                             .build());
        EXPECT_EQ(out.verdict, Verdict::Punt);
    }
}

}  // namespace sctp_test
}  // namespace penstock::test
