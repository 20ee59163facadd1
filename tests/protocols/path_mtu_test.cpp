// SPDX-License-Identifier: Apache-2.0
// A packet that exceeds the MTU of its egress port: its sender gets an ICMP error, or it leaves in fragments.
// Also the segment size in a SYN, which prevents such TCP packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/protocols/one_endpoint.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/support/frame_diff.hpp"

namespace penstock::test {
namespace path_mtu_test {

constexpr uint16_t kNarrow = 1400;
constexpr size_t kEthernetBytes = 14;

uint16_t source_port_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value()) << to_scapy(frame);
    return parsed.key.source_port;
}

// The number of bytes that an error quotes of the IP packet in `frame`.
std::vector<uint8_t> quote_of(const std::vector<uint8_t>& frame, IpFamily family) {
    const size_t most = family == IpFamily::V4 ? 576 - 28 : 1280 - 48;
    return {frame.begin() + kEthernetBytes,
            frame.begin() + static_cast<std::ptrdiff_t>(std::min(frame.size(), kEthernetBytes + most))};
}

std::vector<uint8_t> payload_for(const Ends& ends, Protocol protocol, size_t ip_bytes) {
    const size_t headers = (ends.family == IpFamily::V4 ? 20 : 40) + (protocol == Protocol::Tcp ? 20 : 8);
    std::vector<uint8_t> payload(ip_bytes - headers);
    for (size_t i = 0; i < payload.size(); ++i) {
        payload[i] = static_cast<uint8_t>(i);
    }
    return payload;
}

class PathMtu : public ThroughOneEndpoint {
 protected:
    [[nodiscard]] PacketBuilder from_endpoint() const { return with_df(ThroughOneEndpoint::from_endpoint()); }
    [[nodiscard]] PacketBuilder from_client() const { return with_df(ends.from_client()); }
    [[nodiscard]] PacketBuilder with_df(PacketBuilder builder) const {
        return ends.family == IpFamily::V4 ? builder.dont_fragment() : builder;
    }
    // Fields that the gateway itself chooses.
    [[nodiscard]] PacketBuilder error(PacketBuilder link, const IpAddr& from, const IpAddr& to) const {
        return ends.family == IpFamily::V4
                   ? link.ipv4(from.to_string(), to.to_string())
                         .id(0)
                         .dont_fragment()
                         .ttl(64)
                         .tos(0xc0)
                         .icmp(3, 4, kNarrow)
                   : link.ipv6(from.to_string(), to.to_string()).hop_limit(64).tos(0xc0).icmp(2, 0, kNarrow);
    }
    // A completed handshake between client port 40000 and the endpoint.
    void open(VirtualGateway& through) const {
        const Outcome syn = through.send(from_client().tcp(40000, 80, "S").build());
        ASSERT_EQ(syn.verdict, Verdict::Transmit);
        const auto answer = from_endpoint().tcp(9376, source_port_of(syn.frame), "SA").build();
        ASSERT_EQ(through.send(answer, kCluster).egress, kUp);
    }
    void serve(Protocol protocol) { gateway.publish({service_on_both(protocol, 80, 9376, source)}); }
};

TEST_P(PathMtu, AClientIsToldByTheVipWhatFitsTowardsTheEndpoint_ICMP003_ICMP004) {
    serve(Protocol::Tcp);
    gateway.set_mtu(kCluster, kNarrow);
    open(gateway);
    for (uint8_t queue = 0; queue < workers; ++queue) {
        const auto segment = [&](size_t ip_bytes) {
            return from_client()
                .tcp(40000, 80, "A")
                .seq(8)
                .ack(91)
                .payload(payload_for(ends, Protocol::Tcp, ip_bytes))
                .build();
        };
        EXPECT_EQ(gateway.send(segment(kNarrow), kUp, {queue}).egress, kCluster) << "fits exactly";
        const Outcome told = gateway.send(segment(kNarrow + 1), kUp, {queue});
        ASSERT_EQ(told.verdict, Verdict::Transmit);
        EXPECT_EQ(told.egress, kUp);
        EXPECT_TRUE(same_frame(told.frame, error(Ends::to_uplink(), ends.vip, ends.client)
                                               .payload(quote_of(segment(kNarrow + 1), ends.family))
                                               .build()));
    }
    EXPECT_EQ(gateway.count(stats::Counter::IcmpErrorsSent), workers);
}

// If the source is translated, the endpoint's peer is the gateway. If the source is kept, the peer is the
// client. The gateway must not send in the client's name: it is a router on the path, and uses its own
// address.
TEST_P(PathMtu, AnEndpointIsToldWhatFitsTowardsTheClient_ICMP003_ICMP004) {
    serve(Protocol::Udp);
    gateway.set_mtu(kUp, kNarrow);
    const Outcome first = gateway.send(from_client().udp(5000, 80).payload("query").build());
    ASSERT_EQ(first.verdict, Verdict::Transmit);
    const uint16_t port = source_port_of(first.frame);
    for (uint8_t queue = 0; queue < workers; ++queue) {
        const auto answer =
            from_endpoint().udp(9376, port).payload(payload_for(ends, Protocol::Udp, 1500)).build();
        const Outcome told = gateway.send(answer, kCluster, {queue});
        ASSERT_EQ(told.verdict, Verdict::Transmit);
        EXPECT_EQ(told.egress, kCluster);
        EXPECT_TRUE(
            same_frame(told.frame, error(Ends::to_cluster(11), ends.snat, backend_address(11, ends.family))
                                       .payload(quote_of(answer, ends.family))
                                       .build()));
    }
}

// UDP over IPv6 and TCP with DF are covered above. A first datagram opens the flow nevertheless, so that the
// smaller one that follows goes to the same endpoint.
TEST_P(PathMtu, TheFirstPacketOfAFlowIsAnsweredToo_ICMP004) {
    serve(Protocol::Udp);
    gateway.set_mtu(kCluster, kNarrow);
    const auto first = from_client().udp(5000, 80).payload(payload_for(ends, Protocol::Udp, 1500)).build();
    const Outcome told = gateway.send(first);
    EXPECT_TRUE(same_frame(
        told.frame,
        error(Ends::to_uplink(), ends.vip, ends.client).payload(quote_of(first, ends.family)).build()));
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(gateway.send(from_client().udp(5000, 80).payload("less").build()).egress, kCluster);
    EXPECT_EQ(gateway.connections(), 1u);
}

TEST_P(PathMtu, WithoutDfAnIpv4PacketLeavesInFragments_ICMP004) {
    if (ends.family == IpFamily::V6) {
        return;  // routers do not fragment IPv6 packets (RFC 8200, 5)
    }
    serve(Protocol::Udp);
    gateway.set_mtu(kCluster, kNarrow);
    gateway.set_mtu(kUp, 1000);
    const std::vector<uint8_t> payload = payload_for(ends, Protocol::Udp, 1500);
    const Outcome out = gateway.send(ends.from_client().id(77).udp(5000, 80).payload(payload).build());
    ASSERT_EQ(out.verdict, Verdict::Split);
    EXPECT_EQ(out.egress, kCluster);
    ASSERT_EQ(out.fragments.size(), 2u);
    const uint16_t port = source_port_of(out.frame);
    const auto towards = to_endpoint();
    // Built whole, so that the UDP checksum covers all of it, and fragmented by hand: 1,376 of 1,480 bytes
    // fit.
    const auto whole = PacketBuilder(towards).id(77).udp(port, 9376).payload(payload).build();
    const auto piece = [&](size_t from, size_t to) {
        const auto l4 = whole.begin() + kEthernetBytes + 20;
        return std::vector<uint8_t>(l4 + static_cast<std::ptrdiff_t>(from),
                                    l4 + static_cast<std::ptrdiff_t>(to));
    };
    const auto id = static_cast<uint16_t>(id_of(out.fragments[0]));
    EXPECT_TRUE(same_frame(
        out.fragments[0],
        PacketBuilder(towards).id(id).more_fragments().ip_protocol(17).payload(piece(0, 1376)).build()));
    EXPECT_TRUE(same_frame(out.fragments[1], PacketBuilder(towards)
                                                 .id(id)
                                                 .fragment_offset(172)
                                                 .ip_protocol(17)
                                                 .payload(piece(1376, 1480))
                                                 .build()));
    // Another client's packet with the same id is another datagram, also at the endpoint (RFC 6864, 5.3.1).
    const IpAddr other = IpAddr::v4(10, 80, 1, 66);
    const Outcome others = gateway.send(
        ends.ip(Ends::from_uplink(), other, ends.vip, 64).id(77).udp(5000, 80).payload(payload).build());
    ASSERT_EQ(others.verdict, Verdict::Split);
    if (translated) {
        EXPECT_NE(id_of(others.fragments[0]), id);
    } else {
        EXPECT_EQ(id, 77);
        EXPECT_EQ(id_of(others.fragments[0]), 77u);
    }

    const auto back = ThroughOneEndpoint::from_endpoint().udp(9376, port).payload(payload).build();
    const Outcome home = gateway.send(back, kCluster, {static_cast<uint8_t>(workers - 1)});
    ASSERT_EQ(home.verdict, Verdict::Split);
    EXPECT_EQ(home.egress, kUp);
    EXPECT_EQ(home.fragments.size(), 2u);
    EXPECT_EQ(gateway.count(stats::Counter::IcmpErrorsSent), 0u);
}

// For a fragmented datagram only the first fragment causes an error (RFC 1122, 3.2.2; RFC 4443, 2.4).
TEST_P(PathMtu, ADatagramInFragmentsIsToldByItsFirst_ICMP004_NAT007) {
    serve(Protocol::Udp);
    const auto pieces = [&](uint32_t id) {
        auto frames =
            cut(ends.from_client().udp(5000, 80).payload(payload_for(ends, Protocol::Udp, 4000)).build(), id,
                1448);
        for (auto& frame : frames) {
            if (ends.family == IpFamily::V4) {  // Linux sends these over a socket with path MTU discovery
                frame[20] |= 0x40;
                frame[24] = frame[25] = 0;
                const uint16_t sum = reference_checksum(ByteView(frame).subspan(kEthernetBytes, 20));
                frame[24] = static_cast<uint8_t>(sum >> 8);
                frame[25] = static_cast<uint8_t>(sum);
            }
        }
        return frames;
    };
    const auto passes = pieces(1), is_told = pieces(2);
    EXPECT_EQ(gateway.send(passes[0]).egress, kCluster);
    gateway.set_mtu(kCluster, kNarrow);
    const Outcome later = gateway.send(passes[1]);
    EXPECT_EQ(later.verdict, Verdict::Drop);
    EXPECT_EQ(text_of(later.reason).counter, "packet_too_big");
    const Outcome told = gateway.send(is_told[0]);
    ASSERT_EQ(told.verdict, Verdict::Transmit) << text_of(told.reason).counter;
    EXPECT_EQ(told.egress, kUp);
    EXPECT_TRUE(same_frame(
        told.frame,
        error(Ends::to_uplink(), ends.vip, ends.client).payload(quote_of(is_told[0], ends.family)).build()));
    const Outcome rest = gateway.send(is_told[1]);
    EXPECT_EQ(rest.verdict, Verdict::Drop);
    EXPECT_EQ(text_of(rest.reason).counter, "fragment");
}

TEST_P(PathMtu, AnswersAreFewAndNeverToGroups_ICMP004_REJ003) {
    VirtualGateway limited(
        VirtualGateway::Options{.workers = workers, .errors_per_second = 10, .errors_burst = 5});
    limited.publish({service_on_both(Protocol::Tcp, 80, 9376, source)});
    limited.set_mtu(kCluster, 1280);
    const auto segment = from_client().tcp(40000, 80, "A").payload(payload_for(ends, Protocol::Tcp, 1281));
    open(limited);
    const Outcome group = limited.send(PacketBuilder(segment).from_mac("03:00:00:00:00:01").build());
    EXPECT_EQ(group.verdict, Verdict::Drop);
    EXPECT_EQ(group.reason, DropReason::PacketTooBig);
    unsigned told = 0;
    for (unsigned n = 0; n < 50; ++n) {
        const Outcome outcome = limited.send(segment.build());
        told += outcome.verdict == Verdict::Transmit ? 1 : 0;
        if (outcome.verdict == Verdict::Drop) {
            EXPECT_EQ(outcome.reason, DropReason::RejectLimited);
        }
    }
    EXPECT_EQ(told, 5u) << "one flow, so one worker";
    limited.advance_seconds(1);
    EXPECT_EQ(limited.send(segment.build()).verdict, Verdict::Transmit);
    const Outcome damaged = limited.send(PacketBuilder(segment).l4_checksum(0x4242).build());
    EXPECT_EQ(damaged.verdict, Verdict::Drop);
    EXPECT_EQ(damaged.reason, DropReason::BadL4Checksum);
}

// The host as client: a reply must not have one of the host's own addresses as its source, or Linux drops it.
TEST_P(PathMtu, TheHostIsToldThroughItsTwin_ICMP004) {
    if (!translated) {
        return;  // the host's source is always translated
    }
    serve(Protocol::Udp);
    gateway.set_mtu(kCluster, kNarrow);
    const IpAddr host = ends.family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    const auto sent = with_df(ends.ip(eth().from_mac(kUpMac.to_string()).to_mac(kClientMac.to_string()), host,
                                      ends.vip, 64))
                          .udp(5000, 80)
                          .payload(payload_for(ends, Protocol::Udp, 1500))
                          .build();
    const Outcome told = gateway.send_from_host(sent, kUp);
    ASSERT_EQ(told.verdict, Verdict::Punt);
    packet::Parsed parsed;
    ASSERT_TRUE(packet::parse(told.frame, parsed).has_value());
    EXPECT_EQ(parsed.key.source, ends.vip);
    EXPECT_EQ(parsed.key.destination, host);
    const auto icmp_at = told.frame.begin() + parsed.l4_offset;
    EXPECT_EQ(std::vector<uint8_t>(icmp_at + 8, told.frame.end()), quote_of(sent, ends.family));
}

TEST_P(PathMtu, ASynOffersNoMoreThanItsPortsTake) {
    config::PacketPolicy policy;
    policy.lowers_mss = true;
    policy.mss_max[kCluster.value] = 1300;
    gateway.set_packets(policy);
    serve(Protocol::Tcp);
    const auto mss = [](uint16_t bytes) {
        return std::vector<uint8_t>{2, 4, static_cast<uint8_t>(bytes >> 8), static_cast<uint8_t>(bytes), 4, 2,
                                    1, 1};
    };
    const auto last = static_cast<uint8_t>(workers - 1);
    const Outcome syn =
        gateway.send(from_client().tcp(40000, 80, "S").seq(7).tcp_options(mss(1460)).build(), kUp, {last});
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    const uint16_t port = source_port_of(syn.frame);
    const auto at_endpoint = with_df(to_endpoint());
    EXPECT_TRUE(same_frame(
        syn.frame, PacketBuilder(at_endpoint).tcp(port, 9376, "S").seq(7).tcp_options(mss(1300)).build()));
    const Outcome again =
        gateway.send(from_client().tcp(40000, 80, "S").seq(7).tcp_options(mss(1460)).build());
    EXPECT_TRUE(same_frame(again.frame, syn.frame)) << "the same SYN once more, now a packet of a known flow";
    // The endpoint's SYN+ACK arrived by the port with the limit, and the client's segments leave by it.
    const Outcome answer =
        gateway.send(from_endpoint().tcp(9376, port, "SA").seq(90).ack(8).tcp_options(mss(8960)).build(),
                     kCluster, {last});
    EXPECT_TRUE(same_frame(
        answer.frame,
        with_df(ends.to_client()).tcp(80, 40000, "SA").seq(90).ack(8).tcp_options(mss(1300)).build()));
    // Not a SYN: the option is ignored.
    const Outcome data =
        gateway.send(from_client().tcp(40000, 80, "A").seq(8).ack(91).tcp_options(mss(1460)).build());
    EXPECT_TRUE(same_frame(
        data.frame,
        PacketBuilder(at_endpoint).tcp(port, 9376, "A").seq(8).ack(91).tcp_options(mss(1460)).build()));
}

// A SYN may carry data (RFC 7413). The error to its sender quotes the SYN as sent, without the reduction of
// the segment size.
TEST_P(PathMtu, ASynThatDoesNotFitIsQuotedAsItWasSent_ICMP004) {
    config::PacketPolicy policy;
    policy.lowers_mss = true;
    policy.mss_max[kCluster.value] = 1300;
    gateway.set_packets(policy);
    gateway.set_mtu(kCluster, kNarrow);
    serve(Protocol::Tcp);
    const auto syn = [&](PacketBuilder from) {
        return from.tcp(40000, 80, "S")
            .seq(7)
            .tcp_options({2, 4, 5, 0xb4})
            .payload(payload_for(ends, Protocol::Tcp, 1500))
            .build();
    };
    for (int time = 0; time < 2; ++time) {  // of a new flow, then of a known one
        const Outcome told = gateway.send(syn(from_client()));
        EXPECT_TRUE(same_frame(told.frame, error(Ends::to_uplink(), ends.vip, ends.client)
                                               .payload(quote_of(syn(from_client()), ends.family))
                                               .build()));
    }
    if (ends.family == IpFamily::V4) {
        const Outcome cut = gateway.send(syn(ends.from_client()));
        ASSERT_EQ(cut.verdict, Verdict::Split);
        EXPECT_EQ(std::vector<uint8_t>(cut.frame.begin() + 54, cut.frame.begin() + 58),
                  (std::vector<uint8_t>{2, 4, 5, 0x14}));
    }
}

INSTANTIATE_TEST_SUITE_P(All, PathMtu,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(lb::SourceMode::Translate, lb::SourceMode::Keep)));

}  // namespace path_mtu_test
}  // namespace penstock::test
