// SPDX-License-Identifier: Apache-2.0
// Flows whose client and endpoint are of different families (ANN-32; RFC 7915), in both directions: every
// packet through the real stages, from any queue. The output is compared with the same packet as
// packet_builder builds it in the other family, so that no checksum in the expectation was computed
// incrementally. The conversion of single packets and errors has a test of its own (unit_packet).
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/wire.hpp"

#include "tests/protocols/ends.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/prng.hpp"

namespace penstock::test {
namespace other_family_test {

using Frame = std::vector<uint8_t>;
using Frames = std::vector<Frame>;
using stats::Counter;

constexpr size_t kEthernetBytes = 14;
constexpr uint8_t kHost = 11;
constexpr L4Port kClientPort = 40'000, kPort = 80, kServerPort = 9376;

packet::Parsed parsed_of(const Frame& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value()) << to_scapy(frame);
    return parsed;
}
Frame payload_of(size_t bytes, uint64_t start = 1) {
    return Prng(start).bytes(bytes);
}
bool is_v4(const Frame& frame) {
    return packet::ether_type(frame.data()) == packet::kEtherTypeIpv4;
}

// With this number of workers, and clients of that family.
class OtherFamily : public testing::TestWithParam<std::tuple<uint32_t, IpFamily>> {
 protected:
    const uint32_t workers = std::get<0>(GetParam());
    const bool client_is_v4 = std::get<1>(GetParam()) == IpFamily::V4;
    const Ends outside = client_is_v4 ? ends4() : ends6();  // the client and its VIP
    const Ends inside = client_is_v4 ? ends6() : ends4();   // the SNAT address and the endpoint
    VirtualGateway gateway{VirtualGateway::Options{.workers = workers}};
    Prng random;
    uint8_t queue = 0;  // queue of the next packet, chosen arbitrarily

    [[nodiscard]] TestService service(Protocol protocol,
                                      lb::SourceMode source = lb::SourceMode::Translate) const {
        TestService made = service_on_both(protocol, kPort, kServerPort, source);
        made.endpoints_of = inside.family;
        return made;
    }
    [[nodiscard]] WorkerId next_queue() { return {static_cast<uint8_t>(queue++ % workers)}; }
    [[nodiscard]] Outcome up(const Frame& frame) { return gateway.send(frame, kUp, next_queue()); }
    [[nodiscard]] Outcome down(const Frame& frame) { return gateway.send(frame, kCluster, next_queue()); }
    // An unfragmented IPv6 packet gets a new id as IPv4, and has no DF unless it is long (RFC 7915, 5.1).
    static Frame as_converted(PacketBuilder expected, const Frame& actual) {
        if (is_v4(actual)) {
            expected.id(load<Be16>(actual.data() + kEthernetBytes + offsetof(packet::Ipv4Header, id)).host());
            if (actual.size() - kEthernetBytes > 1260) {
                expected.dont_fragment();
            }
        }
        return expected.build();
    }
    void expect_sent(const Outcome& out, NicPortId egress, const PacketBuilder& expected) {
        ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
        EXPECT_EQ(out.egress, egress);
        EXPECT_TRUE(same_frame(out.frame, as_converted(expected, out.frame)));
    }
    void expect_drop(const Outcome& out, DropReason reason) {
        EXPECT_EQ(out.verdict, Verdict::Drop) << to_string(out.verdict);
        EXPECT_EQ(text_of(out.reason).counter, text_of(reason).counter);
    }
    // Opens a flow by a small datagram. Returns the port that the endpoint sees.
    L4Port open_udp(L4Port client_port = kClientPort) {
        const Outcome first = up(outside.from_client().udp(client_port, kPort).payload("?").build());
        EXPECT_EQ(first.verdict, Verdict::Transmit) << text_of(first.reason).counter;
        return parsed_of(first.frame).key.source_port;
    }
    L4Port open_tcp() {
        const Outcome syn = up(outside.from_client().tcp(kClientPort, kPort, "S").seq(7).build());
        EXPECT_EQ(syn.verdict, Verdict::Transmit) << text_of(syn.reason).counter;
        const L4Port port = parsed_of(syn.frame).key.source_port;
        EXPECT_EQ(down(inside.from_backend(kHost).tcp(kServerPort, port, "SA").seq(90).ack(8).build()).egress,
                  kUp);
        return port;
    }
    // The payload length of a datagram with this total length.
    static size_t for_udp(const Ends& ends, size_t ip_bytes) {
        return ip_bytes - (ends.family == IpFamily::V4 ? 20 : 40) - 8;
    }
    static PacketBuilder with_df(const Ends& ends, PacketBuilder packet) {
        return ends.family == IpFamily::V4 ? packet.dont_fragment() : packet;
    }
};
std::string name_of(const testing::TestParamInfo<std::tuple<uint32_t, IpFamily>>& info) {
    return std::string(std::get<1>(info.param) == IpFamily::V4 ? "Nat46" : "Nat64") + "On" +
           std::to_string(std::get<0>(info.param));
}
INSTANTIATE_TEST_SUITE_P(All, OtherFamily,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(IpFamily::V4, IpFamily::V6)),
                         name_of);

TEST_P(OtherFamily, TcpFromSynToTheLastAck_ANN32_NAT001) {
    gateway.publish({service(Protocol::Tcp)});
    const Outcome syn =
        up(outside.from_client().tcp(kClientPort, kPort, "S").seq(7).tcp_options({2, 4, 5, 0xa0}).build());
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    const L4Port port = parsed_of(syn.frame).key.source_port;
    expect_sent(syn, kCluster,
                inside.to_backend(kHost).tcp(port, kServerPort, "S").seq(7).tcp_options({2, 4, 5, 0xa0}));
    const auto sent = [&](const char* flags, uint32_t seq, size_t bytes) {
        const auto tcp = [&](PacketBuilder ip, L4Port from, L4Port to) {
            return ip.tcp(from, to, flags).seq(seq).ack(99).payload(payload_of(bytes, seq));
        };
        expect_sent(up(tcp(with_df(outside, outside.from_client()), kClientPort, kPort).build()), kCluster,
                    tcp(inside.to_backend(kHost), port, kServerPort));
    };
    const auto answered = [&](const char* flags, uint32_t seq, size_t bytes) {
        const auto tcp = [&](PacketBuilder ip, L4Port from, L4Port to) {
            return ip.tcp(from, to, flags).seq(seq).ack(99).payload(payload_of(bytes, seq));
        };
        expect_sent(down(tcp(with_df(inside, inside.from_backend(kHost)), kServerPort, port).build()), kUp,
                    tcp(outside.to_client(), kPort, kClientPort));
    };
    answered("SA", 90, 0);
    sent("A", 8, 0);
    for (const size_t bytes : {1u, 6u, 7u, 100u, 1'219u, 1'220u, 1'221u, 1'400u}) {
        sent("PA", 8, bytes);
        answered("PA", 91, bytes);
    }
    EXPECT_EQ(gateway.connections(), 1u) << "one entry, whoever receives its packets";
    sent("FA", 9, 0);
    answered("FA", 92, 0);
    sent("A", 10, 0);
    EXPECT_EQ(gateway.count(Counter::NewConnections), 1u);
    EXPECT_EQ(gateway.count(Counter::ConnectionHits), 1u + 1 + 16 + 3);
    gateway.advance_seconds(130);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST_P(OtherFamily, UdpWithAndWithoutAChecksum_ANN32) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    for (const size_t bytes : {0u, 1u, 4u, 300u}) {
        for (const bool has_sum : {true, false}) {
            // Only IPv4 may omit it; as IPv6 it has one (RFC 7915, 4.5).
            const auto udp = [&](const Ends& ends, PacketBuilder ip, L4Port from, L4Port to, bool is_sent) {
                ip.udp(from, to).payload(payload_of(bytes));
                return is_sent && !has_sum && ends.family == IpFamily::V4 ? ip.l4_checksum(0) : ip;
            };
            expect_sent(up(udp(outside, outside.from_client(), kClientPort, kPort, true).pad_to(60).build()),
                        kCluster, udp(inside, inside.to_backend(kHost), port, kServerPort, false));
            expect_sent(
                down(udp(inside, inside.from_backend(kHost), kServerPort, port, true).pad_to(60).build()),
                kUp, udp(outside, outside.to_client(), kPort, kClientPort, false));
        }
    }
}

TEST_P(OtherFamily, AnAssociationFromInitToAbort_ANN32_SCTP001_SCTP003) {
    gateway.publish({service(Protocol::Sctp)});
    constexpr uint32_t kClientTag = 0xc11e0001, kBackendTag = 0xbac20002;
    constexpr uint8_t kData = 0, kAbort = 6, kCookieEcho = 10, kCookieAck = 11;
    const auto sent = [&](uint32_t tag, auto&& chunks) {
        expect_sent(up(chunks(outside.from_client().sctp(kClientPort, kPort, tag)).build()), kCluster,
                    chunks(inside.to_backend(kHost).sctp(kClientPort, kServerPort, tag)));
    };
    const auto answered = [&](uint32_t tag, auto&& chunks) {
        expect_sent(down(chunks(inside.from_backend(kHost).sctp(kServerPort, kClientPort, tag)).build()), kUp,
                    chunks(outside.to_client().sctp(kPort, kClientPort, tag)));
    };
    sent(0, [](PacketBuilder p) { return p.sctp_init(kClientTag); });
    answered(kClientTag, [](PacketBuilder p) { return p.sctp_init_ack(kBackendTag); });
    sent(kBackendTag, [](PacketBuilder p) { return p.chunk(kCookieEcho, payload_of(200)); });
    answered(kClientTag, [](PacketBuilder p) { return p.chunk(kCookieAck); });
    for (const size_t bytes : {13u, 15u, 1'000u}) {
        sent(kBackendTag, [&](PacketBuilder p) { return p.chunk(kData, payload_of(bytes)); });
        answered(kClientTag, [&](PacketBuilder p) { return p.chunk(kData, payload_of(bytes)); });
    }
    answered(kClientTag, [](PacketBuilder p) { return p.chunk(kAbort, {0, 12, 0, 4}); });
    EXPECT_EQ(gateway.connections(), 1u);
}

TEST_P(OtherFamily, TrafficClassAndHopLimitGoAlong_ANN32_ICMP006) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    const auto hops = [](PacketBuilder packet, bool v4, uint8_t left) {
        return v4 ? packet.ttl(left) : packet.hop_limit(left);
    };
    for (const uint8_t tos : {uint8_t{0}, uint8_t{0xb8}, uint8_t{3}, uint8_t{0xff}}) {
        expect_sent(
            up(hops(outside.from_client(), client_is_v4, 9)
                   .tos(tos)
                   .udp(kClientPort, kPort)
                   .payload("q")
                   .build()),
            kCluster,
            hops(inside.to_backend(kHost), !client_is_v4, 8).tos(tos).udp(port, kServerPort).payload("q"));
        expect_sent(down(hops(inside.from_backend(kHost), !client_is_v4, 2)
                             .tos(tos)
                             .udp(kServerPort, port)
                             .payload("a")
                             .build()),
                    kUp,
                    hops(outside.to_client(), client_is_v4, 1).tos(tos).udp(kPort, kClientPort).payload("a"));
    }
    // If its hop limit ends here, the sender gets an error in its own family that quotes the packet as sent.
    const Frame last =
        hops(outside.from_client(), client_is_v4, 1).udp(kClientPort, kPort).payload("q").build();
    const Outcome told = up(last);
    ASSERT_EQ(told.verdict, Verdict::Transmit);
    EXPECT_EQ(told.egress, kUp);
    const packet::Parsed parsed = parsed_of(told.frame);
    EXPECT_EQ(parsed.key.source, client_is_v4 ? kUpAddress : kUpAddress6);
    EXPECT_EQ(parsed.key.destination, outside.client);
    EXPECT_TRUE(std::equal(last.begin() + kEthernetBytes, last.end(),
                           told.frame.begin() + parsed.l4_offset + 8, told.frame.end()));
}

TEST_P(OtherFamily, OptionsAndExtensionHeadersAreLeftOut_ANN32) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    const auto expected = [&](size_t bytes) {
        return inside.to_backend(kHost).udp(port, kServerPort).payload(payload_of(bytes));
    };
    for (const size_t bytes : {1u, 10u, 200u}) {
        if (client_is_v4) {
            // 20 bytes of options make the header as long as IPv6's.
            for (const size_t options : {4u, 8u, 20u, 40u}) {
                Frame frame = outside.from_client()
                                  .options(Frame(options, 1))
                                  .udp(kClientPort, kPort)
                                  .payload(payload_of(bytes))
                                  .pad_to(70)
                                  .build();
                expect_sent(up(frame), kCluster, expected(bytes));
            }
        } else {
            PacketBuilder packet = outside.from_client().hop_by_hop().destination_options(2);
            expect_sent(up(packet.udp(kClientPort, kPort).payload(payload_of(bytes)).pad_to(200).build()),
                        kCluster, expected(bytes));
        }
    }
}

// In every order, each fragment on a queue of any worker.
TEST_P(OtherFamily, FragmentsOfUdpInAnyOrder_ANN32_NAT007) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    const auto pass = [&](Frames frames, NicPortId from) {
        Frames left;
        const auto take = [&](const Outcome& out) {
            if (out.verdict == Verdict::Transmit) {
                left.push_back(out.frame);
            } else {
                EXPECT_EQ(out.verdict, Verdict::Await)
                    << to_string(out.verdict) << " " << text_of(out.reason).counter;
            }
        };
        for (const Frame& frame : frames) {
            take(gateway.send(frame, from, next_queue()));
            std::ranges::for_each(gateway.take_released(), take);
        }
        return left;
    };
    const auto expect_same = [](Frames actual, Frames expected) {
        const auto without_id = [](const Frame& frame) { return with_id(frame, 0); };
        std::ranges::sort(actual, {}, without_id);
        std::ranges::sort(expected, {}, without_id);
        ASSERT_EQ(actual.size(), expected.size());
        const uint32_t id = id_of(actual[0]);  // chosen by the gateway
        for (size_t i = 0; i < actual.size(); ++i) {
            EXPECT_TRUE(same_frame(actual[i], with_id(expected[i], id))) << i;
        }
    };
    std::array<size_t, 4> order{};
    std::iota(order.begin(), order.end(), 0);
    uint16_t id = 0xfff0;
    do {
        const Frame query = payload_of(400, ++id);
        const auto in_order = [&](const Frames& whole) {
            Frames turned;
            std::ranges::transform(order, std::back_inserter(turned), [&](size_t at) { return whole[at]; });
            return turned;
        };
        const uint32_t wide = id | 0x7777'0000U;
        expect_same(pass(in_order(cut(outside.from_client().udp(kClientPort, kPort).payload(query).build(),
                                      client_is_v4 ? id : wide, 104)),
                         kUp),
                    cut(inside.to_backend(kHost).udp(port, kServerPort).payload(query).build(), id, 104));
        ++id;
        expect_same(
            pass(in_order(cut(inside.from_backend(kHost).udp(kServerPort, port).payload(query).build(),
                              client_is_v4 ? wide + 1 : id, 104)),
                 kCluster),
            cut(outside.to_client().udp(kPort, kClientPort).payload(query).build(), id, 104));
    } while (std::ranges::next_permutation(order).found);
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(gateway.fragments_waiting(), 0u);
}

// A later IPv6 fragment may name any protocol. One without an IPv4 equivalent is dropped; neither kind is
// assigned to another flow.
TEST_P(OtherFamily, ALaterFragmentIsOfItsFlowsProtocol_ANN32_NAT007) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    const Frame query = payload_of(400);
    const bool is_down = client_is_v4;  // from the IPv6 side
    const PacketBuilder from = is_down ? inside.from_backend(kHost).udp(kServerPort, port)
                                       : outside.from_client().udp(kClientPort, kPort);
    const PacketBuilder to = is_down ? outside.to_client().udp(kPort, kClientPort)
                                     : inside.to_backend(kHost).udp(port, kServerPort);
    Frames came = cut(PacketBuilder(from).payload(query).build(), 9, 104);
    const Frames expected = cut(PacketBuilder(to).payload(query).build(), 9, 104);
    const auto pass = [&](const Frame& frame) { return is_down ? down(frame) : up(frame); };
    const Frame first = pass(came[0]).frame;
    EXPECT_TRUE(same_frame(first, with_id(expected[0], id_of(first))));
    constexpr size_t kProtocolAt = kEthernetBytes + 40;
    came[1][kProtocolAt] = 6;
    EXPECT_TRUE(same_frame(pass(came[1]).frame, with_id(expected[1], id_of(first))));
    const uint64_t forwarded = gateway.count(Counter::FragmentsForwarded);
    came[2][kProtocolAt] = 60;
    expect_drop(pass(came[2]), DropReason::BadExtensionHeader);
    EXPECT_EQ(gateway.count(Counter::FragmentsForwarded), forwarded) << "it was none of the flow's";
}

// A datagram without a checksum cannot get one from its first fragment.
TEST_P(OtherFamily, FragmentsOfUdpWithoutAChecksumAreNotConverted_ANN32) {
    if (!client_is_v4) {
        return;
    }
    gateway.publish({service(Protocol::Udp)});
    open_udp();
    const Frames pieces = cut(
        outside.from_client().udp(kClientPort, kPort).payload(payload_of(100)).l4_checksum(0).build(), 3, 48);
    expect_drop(up(pieces[0]), DropReason::NoUdpChecksum);
    expect_drop(up(pieces[1]), DropReason::Fragment);
    expect_drop(up(pieces[2]), DropReason::Fragment);
}

// The sender of a packet that is too long gets an error that quotes the packet as sent, with the maximum
// length in the sender's own family.
TEST_P(OtherFamily, ASenderIsToldWhatFitsTowardsTheOtherFamily_ANN32_ICMP004) {
    gateway.publish({service(Protocol::Udp)});
    gateway.set_mtu(1400);
    const L4Port port = open_udp();
    struct Way {
        const Ends& sender;
        PacketBuilder packet;  // from the sender, without payload
        NicPortId arrival;
        IpAddr from, to;  // of the error
    };
    const Way ways[] = {
        {outside, outside.from_client().udp(kClientPort, kPort), kUp, outside.vip, outside.client},
        {inside, inside.from_backend(kHost).udp(kServerPort, port), kCluster, inside.snat,
         backend_address(kHost, inside.family)}};
    for (const Way& way : ways) {
        const bool is_v4 = way.sender.family == IpFamily::V4;
        const uint16_t fits = is_v4 ? 1380 : 1420;
        for (uint32_t n = 0; n < workers; ++n) {
            const auto of_bytes = [&](size_t bytes) {
                return with_df(way.sender, way.packet)
                    .payload(payload_of(for_udp(way.sender, bytes)))
                    .build();
            };
            const NicPortId other = way.arrival == kUp ? kCluster : kUp;
            const Outcome passed = gateway.send(of_bytes(fits), way.arrival, next_queue());
            EXPECT_EQ(passed.verdict, Verdict::Transmit);
            EXPECT_EQ(passed.egress, other);
            EXPECT_EQ(passed.frame.size(), kEthernetBytes + 1400);
            const Frame longer = of_bytes(fits + 1);
            const Outcome told = gateway.send(longer, way.arrival, next_queue());
            ASSERT_EQ(told.verdict, Verdict::Transmit) << text_of(told.reason).counter;
            EXPECT_EQ(told.egress, way.arrival);
            const size_t quoted =
                std::min<size_t>(longer.size() - kEthernetBytes, is_v4 ? 576 - 28 : 1280 - 48);
            PacketBuilder link = way.arrival == kUp ? Ends::to_uplink() : Ends::to_cluster(kHost);
            PacketBuilder error = is_v4 ? link.ipv4(way.from.to_string(), way.to.to_string())
                                              .id(0)
                                              .dont_fragment()
                                              .ttl(64)
                                              .tos(0xc0)
                                              .icmp(3, 4, fits)
                                        : link.ipv6(way.from.to_string(), way.to.to_string())
                                              .hop_limit(64)
                                              .tos(0xc0)
                                              .icmp(2, 0, fits);
            EXPECT_TRUE(same_frame(told.frame, error
                                                   .payload(Frame(longer.begin() + kEthernetBytes,
                                                                  longer.begin() + kEthernetBytes +
                                                                      static_cast<std::ptrdiff_t>(quoted)))
                                                   .build()));
        }
    }
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsSent), 2u * workers);
}

// The fragment header of a fragment takes room, too.
TEST_P(OtherFamily, ASenderOfFragmentsIsToldWhatFitsWithTheirHeader_ANN32_ICMP004) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    const PacketBuilder from = client_is_v4 ? outside.from_client().udp(kClientPort, kPort)
                                            : inside.from_backend(kHost).udp(kServerPort, port);
    Frame first = cut(PacketBuilder(from).payload(payload_of(3'000)).build(), 9, 1'480).front();
    first[kEthernetBytes + offsetof(packet::Ipv4Header, flags_and_offset)] |= 0x40;  // DF
    uint8_t* const sum_at = first.data() + kEthernetBytes + offsetof(packet::Ipv4Header, checksum);
    store(sum_at, Be16::from_host(0));
    store(sum_at, packet::ChecksumSum()
                      .add(ByteView(first).subspan(kEthernetBytes, sizeof(packet::Ipv4Header)))
                      .checksum());
    const Outcome told = client_is_v4 ? up(first) : down(first);
    ASSERT_EQ(told.verdict, Verdict::Transmit) << text_of(told.reason).counter;
    EXPECT_EQ(told.egress, client_is_v4 ? kUp : kCluster);
    const uint8_t* const icmp = told.frame.data() + kEthernetBytes + 20;
    EXPECT_EQ(icmp[0], 3);
    EXPECT_EQ(icmp[1], 4);
    EXPECT_EQ(load<Be16>(icmp + 6).host(), 1'500 - 20 - 8);
}

// A SYN may carry data (RFC 7413). The error quotes the SYN as sent, without a port's limit of the MSS.
TEST_P(OtherFamily, ASynThatDoesNotFitIsQuotedAsItWasSent_ANN32_ICMP004) {
    config::PacketPolicy policy;
    policy.lowers_mss = true;
    policy.mss_max[kCluster.value] = 1'200;
    gateway.set_packets(policy);
    gateway.set_mtu(kCluster, 1'400);
    gateway.publish({service(Protocol::Tcp)});
    const Frame mss{2, 4, 5, 0xb4};
    const auto syn = [&](size_t ip_bytes) {
        const size_t headers = (client_is_v4 ? 20 : 40) + 20 + mss.size();
        return with_df(outside, outside.from_client().tcp(kClientPort, kPort, "S").seq(7).tcp_options(mss))
            .payload(payload_of(ip_bytes - headers))
            .build();
    };
    const size_t fits = client_is_v4 ? 1'380 : 1'420;
    const size_t option_at = kEthernetBytes + (client_is_v4 ? 20u : 40u) + 20;
    const size_t error_bytes = (client_is_v4 ? 20u : 40u) + 8;
    const Outcome told = up(syn(fits + 1));
    ASSERT_EQ(told.egress, kUp);
    EXPECT_EQ(Frame(told.frame.begin() + static_cast<ptrdiff_t>(option_at + error_bytes),
                    told.frame.begin() + static_cast<ptrdiff_t>(option_at + error_bytes + 4)),
              mss);
    const Outcome passed = up(syn(fits));
    ASSERT_EQ(passed.egress, kCluster);
    const size_t option_behind = kEthernetBytes + (client_is_v4 ? 40u : 20u) + 20;
    EXPECT_EQ(load<Be16>(passed.frame.data() + option_behind + 2).host(), 1'200);
}

// A sender of IPv6 is never asked for less than 1,280 bytes, so IPv6 packets up to this length are fragmented
// as IPv4. IPv4 without DF is fragmented as IPv6, for any link (RFC 7915, 4). A gateway fragments no other
// IPv6 packets.
TEST_P(OtherFamily, WhatMayBeCutLeavesInFragments_ANN32_ICMP004) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    const Frame payload = payload_of(1'500 - 28);
    const auto cut_into_v6 = [&](const Outcome& out, NicPortId egress, const PacketBuilder& whole) {
        ASSERT_EQ(out.verdict, Verdict::Split);
        EXPECT_EQ(out.egress, egress);
        ASSERT_FALSE(out.fragments.empty());
        const Frames expected = cut(whole.build(), id_of(out.fragments[0]), 1'232);
        ASSERT_EQ(out.fragments.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
            EXPECT_TRUE(same_frame(out.fragments[i], expected[i])) << i;
        }
    };
    if (client_is_v4) {
        cut_into_v6(up(outside.from_client().id(77).udp(kClientPort, kPort).payload(payload).build()),
                    kCluster, inside.to_backend(kHost).udp(port, kServerPort).payload(payload));
    } else {
        cut_into_v6(down(inside.from_backend(kHost).id(77).udp(kServerPort, port).payload(payload).build()),
                    kUp, outside.to_client().udp(kPort, kClientPort).payload(payload));
    }
    const Frame least_for_any_link = payload_of(1'280 - 48);
    const Outcome whole =
        client_is_v4
            ? up(outside.from_client().id(78).udp(kClientPort, kPort).payload(least_for_any_link).build())
            : down(inside.from_backend(kHost)
                       .id(78)
                       .udp(kServerPort, port)
                       .payload(least_for_any_link)
                       .build());
    EXPECT_EQ(whole.verdict, Verdict::Transmit);
    EXPECT_EQ(whole.frame.size(), kEthernetBytes + 1'280) << "no fragment header";
    gateway.set_mtu(client_is_v4 ? kUp : kCluster, 800);
    const auto cut_into_v4 = [&](const Outcome& out, NicPortId egress, const PacketBuilder& whole) {
        ASSERT_EQ(out.verdict, Verdict::Split) << to_string(out.verdict);
        EXPECT_EQ(out.egress, egress);
        const uint16_t id = load<Be16>(out.frame.data() + kEthernetBytes + 4).host();
        const Frames expected = cut(whole.build(), id, 776);
        ASSERT_EQ(out.fragments.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
            EXPECT_TRUE(same_frame(out.fragments[i], expected[i])) << i;
        }
    };
    const Frame least = payload_of(1'280 - 48);
    const Frame more = payload_of(1'281 - 48);
    if (client_is_v4) {
        const auto packet = inside.from_backend(kHost).udp(kServerPort, port);
        cut_into_v4(down(PacketBuilder(packet).payload(least).build()), kUp,
                    outside.to_client().udp(kPort, kClientPort).payload(least));
        EXPECT_EQ(down(PacketBuilder(packet).payload(more).build()).egress, kCluster) << "told";
    } else {
        const auto packet = outside.from_client().udp(kClientPort, kPort);
        cut_into_v4(up(PacketBuilder(packet).payload(least).build()), kCluster,
                    inside.to_backend(kHost).udp(port, kServerPort).payload(least));
        const Outcome told = up(PacketBuilder(packet).payload(more).build());
        EXPECT_EQ(told.egress, kUp);
        EXPECT_EQ(load<Be32>(told.frame.data() + kEthernetBytes + 40 + 4).host(), 1280u)
            << "never less (RFC 8200, 5)";
    }
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsSent), 1u);
}

// An IPv6 packet has no id, and as IPv4 it may be fragmented. It therefore gets an id that is not reused
// towards that destination for a long time, by any worker.
TEST_P(OtherFamily, EachPacketHasAnIdOfItsOwn_ANN32) {
    gateway.publish({service(Protocol::Udp)});
    constexpr uint32_t kFlows = 20, kPackets = 15;
    std::set<uint16_t> ids;
    for (L4Port client_port = 1'000; client_port < 1'000 + kFlows; ++client_port) {
        const L4Port port = open_udp(client_port);
        for (uint32_t n = 0; n < kPackets; ++n) {
            const Outcome out =
                client_is_v4 ? down(inside.from_backend(kHost).udp(kServerPort, port).payload("!").build())
                             : up(outside.from_client().udp(client_port, kPort).payload("?").build());
            ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
            const uint16_t id =
                load<Be16>(out.frame.data() + kEthernetBytes + offsetof(packet::Ipv4Header, id)).host();
            EXPECT_TRUE(ids.insert(id).second)
                << "packet " << n << " from port " << client_port << " has the id " << id;
        }
    }
}

// No IPv6 link is that narrow (RFC 8200, 5). If one is nevertheless, packets that may be fragmented are
// fragmented for it.
TEST_P(OtherFamily, WhatMayBeCutFitsEvenALinkTooNarrowForIpv6_ANN32) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    gateway.set_mtu(client_is_v4 ? kCluster : kUp, 576);
    const Frame payload = payload_of(577 - 48);
    const Outcome out =
        client_is_v4
            ? up(outside.from_client().id(77).udp(kClientPort, kPort).payload(payload).build())
            : down(inside.from_backend(kHost).id(77).udp(kServerPort, port).payload(payload).build());
    ASSERT_EQ(out.verdict, Verdict::Split);
    const PacketBuilder whole = client_is_v4 ? inside.to_backend(kHost).udp(port, kServerPort)
                                             : outside.to_client().udp(kPort, kClientPort);
    ASSERT_FALSE(out.fragments.empty());
    const Frames expected = cut(PacketBuilder(whole).payload(payload).build(), id_of(out.fragments[0]), 528);
    ASSERT_EQ(out.fragments.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(same_frame(out.fragments[i], expected[i])) << i;
    }
}

// An error about a flow as its receiver gets it: in the receiver's own family, about the receiver's own
// packet.
class OtherFamilyErrors : public OtherFamily {
 protected:
    struct Kind {
        uint8_t type, code;
        uint32_t rest = 0;
    };
    static Kind unreachable(IpFamily family) { return family == IpFamily::V4 ? Kind{3, 3} : Kind{1, 4}; }
    static Kind expired(IpFamily family) { return family == IpFamily::V4 ? Kind{11, 0} : Kind{3, 0}; }
    static Kind too_big(IpFamily family, uint32_t mtu) {
        return family == IpFamily::V4 ? Kind{3, 4, mtu} : Kind{2, 0, mtu};
    }
    static IpAddr far(IpFamily family) {
        return family == IpFamily::V4 ? IpAddr::v4(198, 51, 100, 200) : *IpAddr::parse("2001:db8:99::c8");
    }
    static Frame error(const Ends& ends, const PacketBuilder& link, const IpAddr& from, const IpAddr& to,
                       Kind kind, const Frame& about) {
        const size_t quoted = std::min<size_t>(about.size(), kEthernetBytes + 500);
        return ends.ip(link, from, to, 64)
            .icmp(kind.type, kind.code, kind.rest)
            .payload(
                Frame(about.begin() + kEthernetBytes, about.begin() + static_cast<std::ptrdiff_t>(quoted)))
            .build();
    }
    void expect_error(const Outcome& out, NicPortId egress, const IpAddr& from, Kind kind,
                      const Frame& sent) {
        ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
        EXPECT_EQ(out.egress, egress);
        const packet::Parsed parsed = parsed_of(out.frame);
        const packet::FlowKey about = parsed_of(sent).key;
        EXPECT_EQ(parsed.key.source, from) << parsed.key.source.to_string();
        EXPECT_EQ(parsed.key.destination, about.source);
        EXPECT_EQ(parsed.ttl, 63);
        ASSERT_EQ(packet::icmp_role(out.frame, parsed), packet::IcmpRole::Error);
        EXPECT_TRUE(packet::has_valid_icmp_checksum(out.frame, parsed));
        EXPECT_EQ(out.frame[parsed.l4_offset], kind.type);
        EXPECT_EQ(out.frame[parsed.l4_offset + 1u], kind.code);
        EXPECT_EQ(load<Be32>(out.frame.data() + parsed.l4_offset + 4).host(), kind.rest);
        const auto quote = packet::quoted_packet(out.frame, parsed);
        ASSERT_TRUE(quote.has_value());
        EXPECT_EQ(quote->key, about) << quote->key.to_string();
        const size_t l4_at = parsed_of(sent).l4_offset;
        const auto quoted = out.frame.begin() + quote->l4_offset;
        EXPECT_TRUE(std::equal(quoted, out.frame.end(), sent.begin() + static_cast<std::ptrdiff_t>(l4_at)))
            << "checksum and payload as sent";
    }
};
INSTANTIATE_TEST_SUITE_P(All, OtherFamilyErrors,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(IpFamily::V4, IpFamily::V6)),
                         name_of);

TEST_P(OtherFamilyErrors, AreConvertedEitherWay_ANN32_ICMP001_ICMP002_ICMP003) {
    uint64_t converted = 0;
    for (const Protocol protocol : {Protocol::Udp, Protocol::Tcp}) {
        gateway.publish({service(protocol)});
        const L4Port port = protocol == Protocol::Udp ? open_udp() : open_tcp();
        const auto l4 = [&](PacketBuilder ip, L4Port from, L4Port to) {
            return (protocol == Protocol::Udp ? ip.udp(from, to) : ip.tcp(from, to, "A").seq(8).ack(91))
                .payload(payload_of(1'400))
                .build();
        };
        const IpAddr endpoint = backend_address(kHost, inside.family);
        const Frame request = l4(outside.from_client(), kClientPort, kPort),
                    answer = l4(inside.from_backend(kHost), kServerPort, port);
        const Frame request_at_endpoint = l4(inside.to_backend(kHost), port, kServerPort);
        const Frame answer_at_client = l4(outside.to_client(), kPort, kClientPort);
        const uint32_t narrow = 1'390;
        const auto widened = [&](const Ends& to) {
            return to.family == IpFamily::V4 ? narrow - 20 : narrow + 20;
        };
        const std::pair<Kind, Kind> kinds_up[] = {
            {unreachable(inside.family), unreachable(outside.family)},
            {expired(inside.family), expired(outside.family)},
            {too_big(inside.family, narrow), too_big(outside.family, widened(outside))}};
        for (const auto& [told, heard] : kinds_up) {
            expect_error(down(error(inside, Ends::from_cluster(kHost), endpoint, inside.snat, told,
                                    request_at_endpoint)),
                         kUp, outside.vip, heard, request);
            expect_error(down(error(inside, Ends::from_cluster(77), far(inside.family), inside.snat, told,
                                    request_at_endpoint)),
                         kUp, client_is_v4 ? kUpAddress : kUpAddress6, heard, request);
            converted += 2;
        }
        const std::pair<Kind, Kind> kinds_down[] = {
            {unreachable(outside.family), unreachable(inside.family)},
            {expired(outside.family), expired(inside.family)},
            {too_big(outside.family, narrow), too_big(inside.family, widened(inside))}};
        for (const auto& [told, heard] : kinds_down) {
            expect_error(
                up(error(outside, Ends::from_uplink(), outside.client, outside.vip, told, answer_at_client)),
                kCluster, inside.snat, heard, answer);
            expect_error(up(error(outside, Ends::from_uplink(), far(outside.family), outside.vip, told,
                                  answer_at_client)),
                         kCluster, client_is_v4 ? kClusterAddress6 : kClusterAddress, heard, answer);
            converted += 2;
        }
    }
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), converted);
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsSent), 0u);
}

TEST_P(OtherFamilyErrors, WithoutWordsInTheOtherFamilyEndHere_ANN32) {
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    const Frame request = inside.to_backend(kHost).udp(port, kServerPort).payload("q").build();
    // Precedence violation; an unknown option.
    const Kind wordless = inside.family == IpFamily::V4 ? Kind{3, 14} : Kind{4, 2, 40};
    const IpAddr endpoint = backend_address(kHost, inside.family);
    expect_drop(down(error(inside, Ends::from_cluster(kHost), endpoint, inside.snat, wordless, request)),
                DropReason::IcmpNotTranslated);
    Frame damaged =
        error(inside, Ends::from_cluster(kHost), endpoint, inside.snat, unreachable(inside.family), request);
    damaged.back() ^= 1;
    expect_drop(down(damaged), DropReason::BadIcmp);
    // An MTU that no link has, or that the packet did not exceed.
    for (const uint32_t mtu : {inside.family == IpFamily::V4 ? 67u : 1'279u, 9'000u}) {
        expect_drop(down(error(inside, Ends::from_cluster(kHost), endpoint, inside.snat,
                               too_big(inside.family, mtu), request)),
                    DropReason::BadIcmp);
    }
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), 0u);
}

// An old router reports no MTU (RFC 1191, 5); over IPv6 the MTU is never less than 1,280 bytes.
TEST_P(OtherFamilyErrors, WithoutAnMtuGetOne_ANN32_ICMP003) {
    if (client_is_v4) {
        GTEST_SKIP() << "this endpoint's routers have IPv6, whose errors always tell an MTU";
    }
    gateway.publish({service(Protocol::Udp)});
    const L4Port port = open_udp();
    const Frame payload = payload_of(1'400);
    const Frame at_endpoint = inside.to_backend(kHost).udp(port, kServerPort).payload(payload).build();
    const Outcome told = down(error(inside, Ends::from_cluster(77), far(inside.family), inside.snat,
                                    too_big(inside.family, 0), at_endpoint));
    ASSERT_EQ(told.verdict, Verdict::Transmit) << text_of(told.reason).counter;
    const uint32_t mtu = load<Be32>(told.frame.data() + kEthernetBytes + 40 + 4).host();
    EXPECT_GE(mtu, 1'280u);
    EXPECT_LT(mtu, 1'448u);
}

TEST_P(OtherFamily, OneServiceServesBothFamiliesByTheSameEndpoints_ANN32) {
    gateway.publish({service(Protocol::Tcp)});
    expect_sent(
        up(outside.from_client().tcp(kClientPort, kPort, "S").build()), kCluster,
        inside.to_backend(kHost).tcp(
            parsed_of(up(outside.from_client().tcp(kClientPort, kPort, "S").build()).frame).key.source_port,
            kServerPort, "S"));
    const Outcome same = up(inside.from_client().tcp(kClientPort, kPort, "S").build());
    ASSERT_EQ(same.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(
        same.frame,
        inside.to_backend(kHost).tcp(parsed_of(same.frame).key.source_port, kServerPort, "S").build()));
    EXPECT_EQ(gateway.connections(), 2u);
}

// A client's address of the other family cannot be kept, so it is translated. A client of the endpoint's
// family keeps its own.
TEST_P(OtherFamily, ASourceOfTheOtherFamilyIsNeverKept_ANN32_NAT003) {
    gateway.publish({service(Protocol::Tcp, lb::SourceMode::Keep)});
    const Outcome other = up(outside.from_client().tcp(kClientPort, kPort, "S").build());
    ASSERT_EQ(other.verdict, Verdict::Transmit) << text_of(other.reason).counter;
    const L4Port port = parsed_of(other.frame).key.source_port;
    expect_sent(other, kCluster, inside.to_backend(kHost).tcp(port, kServerPort, "S"));
    expect_sent(down(inside.from_backend(kHost).tcp(kServerPort, port, "SA").build()), kUp,
                outside.to_client().tcp(kPort, kClientPort, "SA"));
    const Outcome same = up(inside.from_client().tcp(kClientPort, kPort, "S").build());
    EXPECT_TRUE(same_frame(same.frame,
                           inside.to_backend_from_client(kHost).tcp(kClientPort, kServerPort, "S").build()));
}

// It would be delivered with the client's own address, which is impossible in the other family.
TEST_P(OtherFamily, AnEndpointOnTheHostIsOutOfReach_ANN32) {
    TestService service_here = service(Protocol::Tcp);
    service_here.backends = {1};  // the cluster twin's own addresses
    gateway.publish({service_here});
    expect_drop(up(outside.from_client().tcp(kClientPort, kPort, "S").build()), DropReason::NoRoute);
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST_P(OtherFamily, TheHostAsClient_ANN32) {
    gateway.publish({service(Protocol::Udp)});
    const IpAddr host = client_is_v4 ? kUpAddress : kUpAddress6;
    const auto by_twin = eth().from_mac(kUpMac.to_string()).to_mac(kClientMac.to_string());
    const Outcome out = gateway.send_from_host(
        outside.ip(by_twin, host, outside.vip, 64).udp(kClientPort, kPort).payload("q").build(), kUp);
    ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
    const L4Port port = parsed_of(out.frame).key.source_port;
    expect_sent(out, kCluster, inside.to_backend(kHost).udp(port, kServerPort).payload("q"));
    const Outcome home = down(inside.from_backend(kHost).udp(kServerPort, port).payload("a").build());
    ASSERT_EQ(home.verdict, Verdict::Punt) << text_of(home.reason).counter;
    const packet::FlowKey key = parsed_of(home.frame).key;
    EXPECT_EQ(key.source, outside.vip);
    EXPECT_EQ(key.destination, host);
    EXPECT_EQ(key.destination_port, kClientPort);
}

// It waits in its converted form.
TEST_P(OtherFamily, APacketWaitsForItsNextHop_ANN32) {
    gateway.publish({service(Protocol::Udp)});
    gateway.set_unresolved({kHost});
    const Outcome out = up(outside.from_client().udp(kClientPort, kPort).payload("q").build());
    EXPECT_EQ(out.verdict, Verdict::Hold);
    EXPECT_EQ(is_v4(out.frame), !client_is_v4);
    gateway.set_mtu(1280);
    const Outcome split = gateway.send(ends4()
                                           .ip(client_is_v4 ? Ends::from_uplink() : Ends::from_cluster(kHost),
                                               client_is_v4 ? kClient : backend_address(kHost),
                                               client_is_v4 ? ends4().vip : kClusterAddress, 64)
                                           .udp(client_is_v4 ? kClientPort : kServerPort,
                                                client_is_v4 ? kPort : parsed_of(out.frame).key.source_port)
                                           .payload(payload_of(1'400))
                                           .build(),
                                       client_is_v4 ? kUp : kCluster);
    ASSERT_EQ(split.verdict, Verdict::Split);
    EXPECT_EQ(split.waits, client_is_v4) << "the endpoint's address is not resolved, the client's is";
}

TEST_P(OtherFamily, RejectsAreOfTheClientsFamily_ANN32_REJ001) {
    TestService empty = service(Protocol::Tcp);
    empty.backends = {};
    gateway.publish({empty});
    const Outcome out = up(outside.from_client().tcp(kClientPort, kPort, "S").seq(7).build());
    ASSERT_EQ(out.verdict, Verdict::Transmit);
    EXPECT_EQ(parsed_of(out.frame).key,
              (packet::FlowKey{outside.vip, outside.client, kPort, kClientPort, Protocol::Tcp, {}}));
    EXPECT_TRUE(parsed_of(out.frame).tcp_flags.has(packet::TcpFlags::kRst));
}

// Each side gets the RST in its own family.
TEST_P(OtherFamily, AnOrderResetsBothSides_ANN32_DRAIN004) {
    gateway.publish({service(Protocol::Tcp)});
    const L4Port port = open_tcp();
    gateway.order({.backend = gateway.backend_of(service(Protocol::Tcp), kHost, inside.family),
                   .frontend = {},
                   .frontend_port = 0});
    gateway.work_off_orders();
    std::vector<Outcome> probes = gateway.take_own_segments();
    ASSERT_EQ(probes.size(), 2u);
    for (const Outcome& probe : probes) {
        const packet::FlowKey key = parsed_of(probe.frame).key;
        EXPECT_EQ(key,
                  probe.egress == kUp
                      ? (packet::FlowKey{outside.vip, outside.client, kPort, kClientPort, Protocol::Tcp, {}})
                      : (packet::FlowKey{inside.snat,
                                         backend_address(kHost, inside.family),
                                         port,
                                         kServerPort,
                                         Protocol::Tcp,
                                         {}}));
        EXPECT_EQ(reference_l4_checksum(probe.frame),
                  load<Be16>(probe.frame.data() + parsed_of(probe.frame).l4_offset + 16).host());
    }
    EXPECT_NE(probes[0].egress, probes[1].egress);
    const Outcome answer = up(outside.from_client().tcp(kClientPort, kPort, "A").seq(8).ack(91).build());
    ASSERT_EQ(answer.verdict, Verdict::Transmit);
    EXPECT_EQ(answer.egress, kUp);
    EXPECT_TRUE(parsed_of(answer.frame).tcp_flags.has(packet::TcpFlags::kRst));
    EXPECT_EQ(parsed_of(answer.frame).key.destination, outside.client);
    const std::vector<Outcome> onward = gateway.take_own_segments();
    ASSERT_EQ(onward.size(), 1u);
    EXPECT_TRUE(parsed_of(onward[0].frame).tcp_flags.has(packet::TcpFlags::kRst));
    EXPECT_EQ(parsed_of(onward[0].frame).key.destination, backend_address(kHost, inside.family));
}

// A connection takes two units. In a full table half-open connections are evicted for it; if a pair contains
// two IPv4 connections, both.
TEST(OtherFamilyTable, FullGivesUpWhatIsHalfOpen_ANN32) {
    for (const bool client_is_v4 : {true, false}) {
        VirtualGateway gateway(VirtualGateway::Options{.connections = 2});
        const Ends outside = client_is_v4 ? ends4() : ends6();
        TestService mixed = service_on_both(Protocol::Tcp, kPort, kServerPort);
        mixed.name = "mixed";
        mixed.endpoints_of = client_is_v4 ? IpFamily::V6 : IpFamily::V4;
        TestService plain = service_on_both(Protocol::Tcp, 81, kServerPort);
        gateway.publish({mixed, plain});
        for (const L4Port port : {L4Port{1}, L4Port{2}}) {
            ASSERT_EQ(gateway.send(ends4().from_client().tcp(port, 81, "S").build()).verdict,
                      Verdict::Transmit);
        }
        EXPECT_EQ(gateway.connections(), 2u);
        const Outcome first = gateway.send(outside.from_client().tcp(3, kPort, "S").build());
        ASSERT_EQ(first.verdict, Verdict::Transmit) << text_of(first.reason).counter;
        EXPECT_EQ(gateway.connections(), 1u);
        EXPECT_EQ(gateway.count(Counter::EvictedConnections), 2u);
        ASSERT_EQ(gateway.send(outside.from_client().tcp(4, kPort, "S").build()).verdict, Verdict::Transmit);
        EXPECT_EQ(gateway.connections(), 1u);
        EXPECT_EQ(gateway.count(Counter::EvictedConnections), 3u);
        ASSERT_EQ(gateway.send(ends4().from_client().tcp(5, 81, "S").build()).verdict, Verdict::Transmit)
            << "and goes for one of IPv4";
        EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 1u);
    }
}

}  // namespace other_family_test
}  // namespace penstock::test
