// SPDX-License-Identifier: Apache-2.0
// ICMP and ICMPv6 errors through the real stages, from any queue, from either side, about flows of all kinds,
// whole and truncated; and echo requests. An expected error quotes the packet as its sender had sent it, one
// hop later, and is built by packet_builder. Each checksum in it is therefore computed from its bytes, and
// not incrementally.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/reverse_path.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace icmp_test {

using Bytes = std::vector<uint8_t>;
using packet::FlowKey;
using stats::Counter;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");
constexpr L4Port kServerPort = 9376;
constexpr uint8_t kHostItself = 1;  // as a backend: the cluster twin's own addresses
constexpr uint8_t kRouterHost = 77;

const IpAddr& vip_of(IpFamily family) {
    return family == IpFamily::V4 ? kVip : kVip6;
}
IpAddr far(IpFamily family, uint8_t host) {
    return family == IpFamily::V4
               ? IpAddr::v4(198, 51, 100, host)
               : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, host});
}

// One hop on the wire.
struct Link {
    MacAddr from, to;
};
const Link kFromClient{kClientMac, kUpMac}, kToClient{kUpMac, kClientMac};
Link from_backend(uint8_t host) {
    return {backend_mac(host), kClusterMac};
}
Link to_backend(uint8_t host) {
    return {kClusterMac, backend_mac(host)};
}

PacketBuilder ip(const Link& link, const IpAddr& source, const IpAddr& destination, uint8_t ttl = 64) {
    PacketBuilder packet = eth().from_mac(link.from.to_string()).to_mac(link.to.to_string());
    source.is_v4() ? packet.ipv4(source.to_string(), destination.to_string()).ttl(ttl)
                   : packet.ipv6(source.to_string(), destination.to_string()).hop_limit(ttl);
    return packet;
}
constexpr size_t kFewBytes = 13, kManyBytes = 1'400;
PacketBuilder packet_of(const Link& link, const FlowKey& key, uint8_t ttl = 64, const char* flags = "S",
                        size_t payload_bytes = kFewBytes) {
    PacketBuilder packet = ip(link, key.source, key.destination, ttl);
    key.protocol == Protocol::Tcp ? packet.tcp(key.source_port, key.destination_port, flags).seq(77).ack(99)
                                  : packet.udp(key.source_port, key.destination_port);
    return packet.payload(Bytes(payload_bytes, 0x5a));
}
// The quote of an error: everything after the Ethernet header, or at most `most` bytes of it.
Bytes quote(const Bytes& frame, size_t most = 10'000) {
    return {frame.begin() + 14,
            frame.begin() + static_cast<std::ptrdiff_t>(std::min(frame.size(), 14 + most))};
}
// The same for a packet after one more hop.
Bytes quote(const PacketBuilder& packet, size_t most = 10'000) {
    return quote(packet.build(), most);
}
FlowKey key_of(const Bytes& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value()) << to_scapy(frame);
    return parsed.key;
}

struct Kind {
    uint8_t type, code;
    uint32_t rest = 0;
};
// Fragmentation needed and packet too big report an MTU that no link here has.
std::vector<Kind> kinds_of(IpFamily family) {
    return family == IpFamily::V4
               ? std::vector<Kind>{{3, 0},  {3, 1},  {3, 3},  {3, 4, 1'396},
                                   {3, 13}, {11, 0}, {11, 1}, {12, 0, 0x14000000}}
               : std::vector<Kind>{{1, 0}, {1, 4}, {2, 0, 1'396}, {3, 0}, {3, 1}, {4, 1, 40}};
}
// For an error about a packet that exceeds such a link's MTU.
size_t payload_for(const Kind& kind) {
    return (kind.type == 3 && kind.code == 4) || kind.type == 2 ? kManyBytes : kFewBytes;
}
Kind too_big(IpFamily family, uint32_t mtu) {
    return family == IpFamily::V4 ? Kind{3, 4, mtu} : Kind{2, 0, mtu};
}
// The length that routers quote of a packet.
constexpr size_t kQuotedBytes = 500;
Kind unreachable(IpFamily family) {
    return family == IpFamily::V4 ? Kind{3, 3} : Kind{1, 4};
}
Bytes error(const Link& link, const IpAddr& source, const IpAddr& destination, Kind kind, Bytes quoted,
            uint8_t ttl = 64) {
    return ip(link, source, destination, ttl)
        .icmp(kind.type, kind.code, kind.rest)
        .payload(std::move(quoted))
        .build();
}

TestService served_by(std::vector<uint8_t> backends, Protocol protocol,
                      lb::SourceMode source = lb::SourceMode::Translate) {
    return {.name = protocol == Protocol::Tcp ? "web" : "dns",
            .protocol = protocol,
            .frontends = {{kVip, 80}, {kVip6, 80}},
            .backends = std::move(backends),
            .backend_port = kServerPort,
            .source = source};
}

// A flow through the gateway: with the client's addresses, and with the endpoint's.
struct Opened {
    FlowKey outside;
    FlowKey inside;
    [[nodiscard]] uint8_t host() const { return inside.destination.bytes()[15]; }
    // The client's packet as the gateway sends it, and as an error about it quotes it after translation; the
    // same for the answer.
    [[nodiscard]] PacketBuilder request(size_t bytes = kFewBytes) const {
        return packet_of(to_backend(host()), inside, 63, "S", bytes);
    }
    [[nodiscard]] PacketBuilder request_as_sent(size_t bytes = kFewBytes) const {
        return packet_of(kFromClient, outside, 63, "S", bytes);
    }
    [[nodiscard]] PacketBuilder answer(size_t bytes = kFewBytes) const {
        return packet_of(kToClient, outside.reversed(), 63, "SA", bytes);
    }
    [[nodiscard]] PacketBuilder answer_as_sent(size_t bytes = kFewBytes) const {
        return packet_of(from_backend(host()), inside.reversed(), 63, "SA", bytes);
    }
};

using Variant = std::tuple<uint32_t, IpFamily, Protocol, lb::SourceMode, bool>;
class IcmpErrors : public testing::TestWithParam<Variant> {
 protected:
    uint32_t workers = std::get<0>(GetParam());
    IpFamily family = std::get<1>(GetParam());
    Protocol protocol = std::get<2>(GetParam());
    lb::SourceMode source = std::get<3>(GetParam());
    VirtualGateway gateway{
        VirtualGateway::Options{.workers = workers, .flow_stays_on_queue = std::get<4>(GetParam())}};
    Prng random{seed()};

    WorkerId any_worker() { return {static_cast<uint8_t>(random.below(workers))}; }
    Opened open(uint8_t client = 7, L4Port port = 40'000) {
        const FlowKey outside{far(family, client), vip_of(family), port, 80, protocol, {}};
        const Outcome sent = gateway.send(packet_of(kFromClient, outside).build(), kUp, any_worker());
        EXPECT_EQ(sent.verdict, Verdict::Transmit) << text_of(sent.reason).counter;
        return {outside, key_of(sent.frame)};
    }
    void expect(const Outcome& outcome, NicPortId egress, const Bytes& frame) {
        ASSERT_EQ(outcome.verdict, Verdict::Transmit) << text_of(outcome.reason).counter;
        EXPECT_EQ(outcome.egress, egress);
        EXPECT_TRUE(same_frame(outcome.frame, frame));
    }
    void expect_drop(const Outcome& outcome, DropReason reason) {
        EXPECT_EQ(outcome.verdict, Verdict::Drop);
        EXPECT_EQ(outcome.reason, reason) << text_of(outcome.reason).counter;
    }
    enum class Side { Endpoint, Client };
    // Errors of each kind about several flows, by the end on that side and by a router on the way to it.
    void expect_errors_of(Side side) {
        const bool of_endpoint = side == Side::Endpoint;
        const NicPortId port = of_endpoint ? kCluster : kUp, egress = of_endpoint ? kUp : kCluster;
        const IpAddr router = far(family, 200);
        gateway.publish({served_by({11, 12, 13}, protocol, source)});
        uint64_t translated = 0;
        for (uint8_t client = 2; client < 12; ++client) {
            const Opened flow = open(client);
            // The flow's packets as they arrive from that side, and as they leave.
            const FlowKey comes = of_endpoint ? flow.inside.reversed() : flow.outside;
            const FlowKey leaves = of_endpoint ? flow.outside.reversed() : flow.inside;
            const Link from_end = of_endpoint ? from_backend(flow.host()) : kFromClient;
            const Link from_router = of_endpoint ? from_backend(kRouterHost) : kFromClient;
            const Link to = of_endpoint ? kToClient : to_backend(flow.host());
            for (const Kind kind : kinds_of(family)) {
                const size_t bytes = payload_for(kind);
                const Bytes told =
                    quote(of_endpoint ? flow.request(bytes) : flow.answer(bytes), kQuotedBytes);
                const Bytes expected = quote(
                    of_endpoint ? flow.request_as_sent(bytes) : flow.answer_as_sent(bytes), kQuotedBytes);
                expect(gateway.send(error(from_end, comes.source, comes.destination, kind, told), port,
                                    any_worker()),
                       egress, error(to, leaves.source, leaves.destination, kind, expected, 63));
                expect(gateway.send(error(from_router, router, comes.destination, kind, told), port,
                                    any_worker()),
                       egress, error(to, router, leaves.destination, kind, expected, 63));
                translated += 2;
            }
        }
        EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), translated);
    }
};
std::string name_of(const testing::TestParamInfo<Variant>& info) {
    const auto& [workers, family, protocol, source, stays] = info.param;
    return std::to_string(workers) + (family == IpFamily::V4 ? "V4" : "V6") + penstock::to_string(protocol) +
           (source == lb::SourceMode::Keep ? "Kept" : "Translated") + (stays ? "OnQueue" : "");
}
INSTANTIATE_TEST_SUITE_P(All, IcmpErrors,
                         testing::Combine(testing::Values(1u, 2u, 5u),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(Protocol::Tcp, Protocol::Udp),
                                          testing::Values(lb::SourceMode::Translate, lb::SourceMode::Keep),
                                          testing::Bool()),
                         name_of);

TEST_P(IcmpErrors, FromTheEndpointsSideQuoteWhatTheClientHadSent_ICMP001_ICMP003) {
    expect_errors_of(Side::Endpoint);
}
TEST_P(IcmpErrors, FromTheClientsSideQuoteWhatTheEndpointHadSent_ICMP002_ICMP003) {
    expect_errors_of(Side::Client);
}

// Any length that includes the ports is enough (RFC 792 has eight bytes, RFC 1812 as much as fits). Each
// checksum inside the quoted part is correct.
TEST_P(IcmpErrors, MayQuoteAnyPartFromThePortsOn_ICMP001_ICMP002) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    const size_t ip_header = family == IpFamily::V4 ? 20 : 40;
    const Kind kind = unreachable(family);
    const size_t whole = quote(flow.request()).size();
    const size_t half_a_sum =
        ip_header + (protocol == Protocol::Tcp ? 17 : 7);  // half of a checksum has no defined value
    for (size_t length = ip_header + 4; length <= whole; ++length) {
        if (length == half_a_sum) {
            continue;
        }
        expect(gateway.send(error(from_backend(11), flow.inside.destination, flow.inside.source, kind,
                                  quote(flow.request(), length)),
                            kCluster, any_worker()),
               kUp,
               error(kToClient, flow.outside.destination, flow.outside.source, kind,
                     quote(flow.request_as_sent(), length), 63));
    }
    for (size_t length = 0; length < ip_header + 4; ++length) {
        expect_drop(gateway.send(error(kFromClient, flow.outside.source, flow.outside.destination, kind,
                                       quote(flow.answer(), length)),
                                 kUp, any_worker()),
                    DropReason::BadIcmp);
    }
}

TEST_P(IcmpErrors, MayQuoteOptionsExtensionsAndFirstFragments_ICMP001_ICMP002) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    const Kind kind = unreachable(family);
    std::vector<std::function<PacketBuilder(PacketBuilder)>> shapes;
    if (family == IpFamily::V4) {
        shapes = {[](PacketBuilder p) { return p.options({1, 1, 1, 1, 1, 1, 1, 1}); },
                  [](PacketBuilder p) { return p.more_fragments(); },
                  [](PacketBuilder p) { return p.dont_fragment().tos(0xb8).id(0xbeef); }};
    } else {
        shapes = {[](PacketBuilder p) { return p.hop_by_hop().destination_options(2); },
                  [](PacketBuilder p) { return p.fragment(0, true); },
                  [](PacketBuilder p) { return p.routing(4, 0).flow_label(0xabcde).tos(0xb8); }};
    }
    for (const auto& shape : shapes) {
        expect(gateway.send(error(from_backend(11), flow.inside.destination, flow.inside.source, kind,
                                  quote(shape(flow.request()))),
                            kCluster, any_worker()),
               kUp,
               error(kToClient, flow.outside.destination, flow.outside.source, kind,
                     quote(shape(flow.request_as_sent())), 63));
        expect(gateway.send(error(kFromClient, flow.outside.source, flow.outside.destination, kind,
                                  quote(shape(flow.answer()))),
                            kUp, any_worker()),
               kCluster,
               error(to_backend(11), flow.inside.source, flow.inside.destination, kind,
                     quote(shape(flow.answer_as_sent())), 63));
    }
}

// The error's own header may have options or extension headers; padding after it is removed.
TEST_P(IcmpErrors, MayComeWithOptionsAndPadding_ICMP001) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    const Kind kind = unreachable(family);
    const auto shaped = [&](PacketBuilder packet, const PacketBuilder& quoted, size_t frame_bytes) {
        family == IpFamily::V4 ? packet.options({1, 1, 1, 1}) : packet.destination_options(1);
        return packet.icmp(kind.type, kind.code)
            .payload(quote(quoted, family == IpFamily::V4 ? 28 : 48))
            .pad_to(frame_bytes)
            .build();
    };
    expect(
        gateway.send(
            shaped(ip(from_backend(11), flow.inside.destination, flow.inside.source), flow.request(), 150),
            kCluster, any_worker()),
        kUp,
        shaped(ip(kToClient, flow.outside.destination, flow.outside.source, 63), flow.request_as_sent(), 0));
}

// A flow keeps the policy of its creation. Errors about it find it after a change of the policy.
TEST_P(IcmpErrors, FindFlowsThatAreOlderThanThePolicy_ICMP001_ICMP002) {
    gateway.publish({served_by({11}, protocol, source)});
    std::vector<Opened> flows;
    for (uint8_t client = 2; client < 22; ++client) {
        flows.push_back(open(client));
    }
    gateway.publish({served_by(
        {11}, protocol, source == lb::SourceMode::Keep ? lb::SourceMode::Translate : lb::SourceMode::Keep)});
    const Kind kind = unreachable(family);
    for (const Opened& flow : flows) {
        expect(gateway.send(error(from_backend(11), flow.inside.destination, flow.inside.source, kind,
                                  quote(flow.request())),
                            kCluster, any_worker()),
               kUp,
               error(kToClient, flow.outside.destination, flow.outside.source, kind,
                     quote(flow.request_as_sent()), 63));
        expect(gateway.send(error(kFromClient, flow.outside.source, flow.outside.destination, kind,
                                  quote(flow.answer())),
                            kUp, any_worker()),
               kCluster,
               error(to_backend(11), flow.inside.source, flow.inside.destination, kind,
                     quote(flow.answer_as_sent()), 63));
    }
}

// A Pod that is a client of its own Service: both ends of the flow are one host.
TEST_P(IcmpErrors, OfHairpinFlowsGoBackToTheSender_ICMP001_NAT005) {
    gateway.publish({served_by({11}, protocol, source)});
    const IpAddr pod = backend_address(11, family);
    const FlowKey outside{pod, vip_of(family), 40'000, 80, protocol, {}};
    const Outcome sent = gateway.send(packet_of(from_backend(11), outside).build(), kCluster, any_worker());
    ASSERT_EQ(sent.verdict, Verdict::Transmit);
    const Opened flow{outside, key_of(sent.frame)};
    const Kind kind = unreachable(family);
    expect(gateway.send(error(from_backend(11), pod, flow.inside.source, kind, quote(flow.request())),
                        kCluster, any_worker()),
           kCluster,
           error(to_backend(11), outside.destination, pod, kind, quote(flow.request_as_sent()), 63));
    expect(gateway.send(error(from_backend(11), pod, outside.destination, kind, quote(flow.answer())),
                        kCluster, any_worker()),
           kCluster, error(to_backend(11), flow.inside.source, pod, kind, quote(flow.answer_as_sent()), 63));
}

// Linux is the endpoint, and reports a port without listener; or a router beyond the client sends an error.
TEST_P(IcmpErrors, OfAnEndpointOnTheHostComeThroughTheTwin_ICMP001_ICMP002_EP007) {
    gateway.publish({served_by({kHostItself}, protocol, source)});
    for (uint8_t client = 2; client < 22; ++client) {
        const FlowKey outside{far(family, client), vip_of(family), 40'000, 80, protocol, {}};
        const Outcome in = gateway.send(packet_of(kFromClient, outside).build(), kUp, any_worker());
        ASSERT_EQ(in.verdict, Verdict::Punt);
        const Opened flow{outside, key_of(in.frame)};
        const Kind kind = unreachable(family);
        expect(
            gateway.send_from_host(
                error(kToClient, flow.inside.destination, flow.inside.source, kind, quote(flow.request())),
                kUp, any_worker()),
            kUp,
            error(kToClient, outside.destination, outside.source, kind, quote(flow.request_as_sent()), 63));

        const IpAddr router = far(family, 200);
        const Outcome told = gateway.send(
            error(kFromClient, router, outside.destination, kind, quote(flow.answer())), kUp, any_worker());
        ASSERT_EQ(told.verdict, Verdict::Punt) << text_of(told.reason).counter;
        EXPECT_TRUE(same_frame(told.frame, error(kFromClient, router, flow.inside.destination, kind,
                                                 quote(flow.answer_as_sent()), 63)));
    }
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), 40u);
}

// The host as a client: errors to the host about its requests, and from the host about their answers.
TEST_P(IcmpErrors, OfAFlowOfTheHostGoToTheHost_ICMP001_ICMP002_ETP006) {
    TestService service = served_by({11}, protocol, source);
    service.inside = TestService::Inside{lb::SourceMode::Translate, {11}};
    gateway.publish({service});
    const IpAddr host = family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    for (L4Port port = 40'000; port < 40'020; ++port) {
        const FlowKey outside{host, vip_of(family), port, 80, protocol, {}};
        const Outcome sent = gateway.send_from_host(packet_of(kToClient, outside).build(), kUp, any_worker());
        ASSERT_EQ(sent.verdict, Verdict::Transmit) << text_of(sent.reason).counter;
        const Opened flow{outside, key_of(sent.frame)};
        const Kind kind = unreachable(family);
        const Outcome told = gateway.send(
            error(from_backend(11), flow.inside.destination, flow.inside.source, kind, quote(flow.request())),
            kCluster, any_worker());
        ASSERT_EQ(told.verdict, Verdict::Punt) << text_of(told.reason).counter;
        EXPECT_EQ(quote(told.frame), quote(error(kFromClient, outside.destination, host, kind,
                                                 quote(flow.request_as_sent()), 63)));
        expect(gateway.send_from_host(error(kToClient, host, outside.destination, kind, quote(flow.answer())),
                                      kUp, any_worker()),
               kCluster,
               error(to_backend(11), flow.inside.source, flow.inside.destination, kind,
                     quote(flow.answer_as_sent()), 63));
    }
}

TEST_P(IcmpErrors, AboutNoFlowAreDroppedUnlessTheyMayBeTheHosts_ICMP005) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    const Kind kind = unreachable(family);
    const IpAddr router = far(family, 200);
    const IpAddr host = family == IpFamily::V4 ? kClusterAddress : kClusterAddress6;
    const auto about = [&](const Link& link, const FlowKey& sent) {
        return error(link, router, sent.source, kind, quote(packet_of(link, sent)));
    };
    const FlowKey own{flow.outside.destination, flow.outside.source, 80, 40'000, protocol, {}};
    FlowKey other_port = own, other_client = own, other_protocol = own;
    other_port.destination_port = 40'001;
    other_client.destination = far(family, 201);
    other_protocol.protocol = protocol == Protocol::Tcp ? Protocol::Udp : Protocol::Tcp;
    for (const FlowKey& sent :
         {other_port, other_client, other_protocol, FlowKey{own.source, router, 81, 5, protocol, {}}}) {
        expect_drop(gateway.send(about(kFromClient, sent), kUp, any_worker()), DropReason::IcmpUnknownFlow);
    }
    // Addressed to a host other than the quoted packet's sender.
    expect_drop(gateway.send(error(kFromClient, router, far(family, 9), kind, quote(flow.answer())), kUp,
                             any_worker()),
                DropReason::IcmpUnknownFlow);
    // About a possible answer of the gateway itself: a RST or an error of its own.
    const Bytes icmp =
        ip(kToClient, own.source, router).icmp(kind.type, kind.code).payload(Bytes(40)).build();
    expect_drop(gateway.send(error(kFromClient, router, own.source, kind, quote(icmp)), kUp, any_worker()),
                DropReason::IcmpUnknownFlow);

    // The host's own address: Linux may have sent the request.
    const Outcome hosts = gateway.send(
        about(from_backend(kRouterHost), {host, router, 999, 53, protocol, {}}), kCluster, any_worker());
    EXPECT_EQ(hosts.verdict, Verdict::Punt);
    // Forwarded traffic outside the Services is Linux's to forward. Errors about an endpoint's packets
    // without a flow are dropped.
    const FlowKey foreign{far(family, 30), far(family, 31), 1'000, 2'000, protocol, {}};
    EXPECT_EQ(gateway.send(about(kFromClient, foreign), kUp, any_worker()).verdict, Verdict::Punt);
    if (source == lb::SourceMode::Keep) {
        const FlowKey stray{far(family, 40), backend_address(11, family), 1'000, kServerPort, protocol, {}};
        expect_drop(gateway.send(about(from_backend(11), stray), kCluster, any_worker()),
                    DropReason::IcmpUnknownFlow);
    }
    // Errors of Linux about its own traffic leave unchanged.
    const Bytes from_linux =
        error(kToClient, host, far(family, 50), kind,
              quote(packet_of(kFromClient, {far(family, 50), host, 5, 6, protocol, {}})));
    expect(gateway.send_from_host(from_linux, kUp, any_worker()), kUp, from_linux);
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), 0u);
}

TEST_P(IcmpErrors, BrokenOnesEndHere_ICMP001) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    const Kind kind = unreachable(family);
    const auto about = [&](uint8_t ttl = 64) {
        return ip(from_backend(11), flow.inside.destination, flow.inside.source, ttl)
            .icmp(kind.type, kind.code)
            .payload(quote(flow.request()));
    };
    expect_drop(gateway.send(about().l4_checksum(0x1234).build(), kCluster, any_worker()),
                DropReason::BadIcmp);
    expect_drop(gateway.send(about(1).build(), kCluster, any_worker()), DropReason::TtlExpired);
    expect_drop(gateway.send(about(0).build(), kCluster, any_worker()), DropReason::TtlExpired);
    const uint8_t protocol_number = family == IpFamily::V4 ? 1 : 58;
    expect_drop(gateway.send(ip(kFromClient, flow.outside.source, flow.outside.destination)
                                 .ip_protocol(protocol_number)
                                 .payload(Bytes{3, 0, 0, 0, 0, 0, 0})
                                 .build(),
                             kUp, any_worker()),
                DropReason::BadIcmp);
    const IpAddr host = family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    expect_drop(gateway.send(error(from_backend(11), host, flow.inside.source, kind, quote(flow.request())),
                             kCluster, any_worker()),
                DropReason::MartianSource);
    // An error in a multicast or broadcast frame is never translated (RFC 1122, 3.3.6).
    EXPECT_EQ(gateway.send(about().to_mac("ff:ff:ff:ff:ff:ff").build(), kCluster, any_worker()).verdict,
              Verdict::Punt);
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), 0u);
}

// RFC 5927, 7.2: an attacker that forges errors, or any single client, must not reduce the packet size of all
// clients. An endpoint stores a path MTU per SNAT address, so for all clients. Below --min-path-mtu the error
// is therefore not forwarded.
TEST_P(IcmpErrors, TellNoMtuThatCannotBeTrue_ICMP003) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    const IpAddr router = far(family, 200);
    const auto to_client = [&](const PacketBuilder& request, Kind kind) {
        return gateway.send(
            error(from_backend(kRouterHost), router, flow.inside.source, kind, quote(request, kQuotedBytes)),
            kCluster, any_worker());
    };
    const auto to_endpoint = [&](const PacketBuilder& answer, Kind kind) {
        return gateway.send(
            error(kFromClient, router, flow.outside.destination, kind, quote(answer, kQuotedBytes)), kUp,
            any_worker());
    };
    const auto expect_refused = [&](size_t payload_bytes, uint32_t mtu) {
        expect_drop(to_client(flow.request(payload_bytes), too_big(family, mtu)), DropReason::BadIcmp);
        expect_drop(to_endpoint(flow.answer(payload_bytes), too_big(family, mtu)), DropReason::BadIcmp);
    };
    const auto expect_told = [&](uint32_t mtu, uint32_t mtu_of_endpoint) {
        expect(to_client(flow.request(kManyBytes), too_big(family, mtu)), kUp,
               error(kToClient, router, flow.outside.source, too_big(family, mtu),
                     quote(flow.request_as_sent(kManyBytes), kQuotedBytes), 63));
        expect(to_endpoint(flow.answer(kManyBytes), too_big(family, mtu)), kCluster,
               error(to_backend(11), router, flow.inside.destination, too_big(family, mtu_of_endpoint),
                     quote(flow.answer_as_sent(kManyBytes), kQuotedBytes), 63));
    };
    const auto whole = static_cast<uint32_t>(quote(flow.request(kManyBytes)).size());
    expect_told(whole - 1, whole - 1);
    for (const uint32_t mtu : {whole, whole + 1, uint32_t{9'000}, uint32_t{65'535}}) {
        expect_refused(kManyBytes, mtu);
    }
    const bool is_v4 = family == IpFamily::V4;
    const uint32_t least = is_v4 ? 68 : 1'280;
    for (const uint32_t mtu : {uint32_t{0}, least - 1}) {
        expect_refused(kManyBytes, mtu);
    }
    const bool is_shared = source == lb::SourceMode::Translate;
    for (const uint32_t shared_min : {uint32_t{1'280}, uint32_t{1'300}, uint32_t{552}}) {
        config::PacketPolicy policy;
        EXPECT_EQ(policy.min_path_mtu, 1'280);
        policy.min_path_mtu = static_cast<uint16_t>(shared_min);
        gateway.set_packets(policy);
        for (const uint32_t mtu : {least, shared_min - 1, shared_min, shared_min + 1}) {
            if (mtu >= least) {
                expect_told(mtu, is_shared ? std::max(mtu, shared_min) : mtu);
            }
        }
    }
    if (!is_v4) {
        expect_refused(kManyBytes, 0xffffffff);
        return;
    }
    // The MTU after translation for the endpoint must not be below the packet's length either.
    constexpr size_t kSomeBytes = 450;
    const Outcome small = to_endpoint(flow.answer(kSomeBytes), too_big(family, 400));
    if (is_shared) {
        expect_drop(small, DropReason::BadIcmp);
    } else {
        EXPECT_EQ(small.verdict, Verdict::Transmit);
    }
    EXPECT_EQ(to_client(flow.request(kSomeBytes), too_big(family, 400)).verdict, Verdict::Transmit);
    // The upper half of the word is unused (RFC 1191, 4), and another code of the type has no MTU.
    EXPECT_EQ(to_client(flow.request(kManyBytes), {3, 4, 0xffff0000 + 1'396}).verdict, Verdict::Transmit);
    EXPECT_EQ(to_client(flow.request(kManyBytes), {3, 1, 67}).verdict, Verdict::Transmit);
    // A kernel that sends more than 64 KiB at once quotes a packet without a total length.
    EXPECT_EQ(to_client(flow.request(kManyBytes).ip_total_length(0), too_big(family, 1'396)).verdict,
              Verdict::Transmit);
}

// The receiver trusts the source address of an error; some source addresses are impossible.
TEST_P(IcmpErrors, FromWhomTheyCannotComeEndHere_ICMP005) {
    TestService other = served_by({12}, protocol, source);
    const IpAddr other_vip =
        family == IpFamily::V4 ? IpAddr::v4(80, 11, 12, 11) : *IpAddr::parse("2001:db8:80::11");
    other.name = "other";
    other.frontends = {{other_vip, 80}};
    gateway.publish({served_by({11}, protocol, source), other});
    const Opened flow = open();
    const Kind kind = unreachable(family);
    const auto to_client = [&](const IpAddr& from) {
        return gateway.send(error(from_backend(11), from, flow.inside.source, kind, quote(flow.request())),
                            kCluster, any_worker());
    };
    const auto to_endpoint = [&](const IpAddr& from) {
        return gateway.send(error(kFromClient, from, flow.outside.destination, kind, quote(flow.answer())),
                            kUp, any_worker());
    };
    const IpAddr snat = family == IpFamily::V4 ? kClusterAddress : kClusterAddress6;
    for (const IpAddr& own : {other_vip, snat}) {
        expect_drop(to_client(own), DropReason::MartianSource);
        expect_drop(to_endpoint(own), DropReason::MartianSource);
    }
    // The source is the receiver's own address.
    expect_drop(to_client(flow.outside.source), DropReason::MartianSource);
    expect_drop(to_endpoint(flow.inside.destination), DropReason::MartianSource);
    // Addresses of no single host: link-local ones, and the broadcast addresses of the gateway's links.
    for (const char* nobody :
         family == IpFamily::V6 ? std::vector{"fe80::1"} : std::vector{"10.80.1.255", "10.80.2.255"}) {
        expect_drop(to_client(*IpAddr::parse(nobody)), DropReason::MartianSource);
        expect_drop(to_endpoint(*IpAddr::parse(nobody)), DropReason::MartianSource);
    }
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), 0u);
    // An error without a route is not counted as forwarded.
    gateway.remove_routes();
    expect_drop(to_client(far(family, 200)), DropReason::NoRoute);
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), 0u);
}

// Errors about later fragments, and quotes that end before the ports. An endpoint that sees its client's own
// address may have received such an error, so the error must not reach that client untranslated.
TEST_P(IcmpErrors, ThatShowNoPortsEndHere_ICMP005_NAT006) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    const Kind kind = unreachable(family);
    const size_t ip_header = family == IpFamily::V4 ? 20 : 40;
    const IpAddr endpoint = backend_address(11, family);
    const auto of = [&](const IpAddr& from, const IpAddr& to, uint8_t protocol_number, bool is_fragment) {
        PacketBuilder packet = ip(kToClient, from, to).payload("sixteen bytes...");
        if (is_fragment) {
            family == IpFamily::V4 ? packet.fragment_offset(8) : packet.fragment(8, false);
        }
        return quote(packet.ip_protocol(protocol_number), is_fragment ? 10'000 : ip_header + 3);
    };
    const auto number = static_cast<uint8_t>(protocol);
    for (const bool is_fragment : {false, true}) {
        const IpAddr &client = flow.outside.source, &vip = flow.outside.destination;
        expect_drop(gateway.send(error(from_backend(11), endpoint, client, kind,
                                       of(client, endpoint, number, is_fragment)),
                                 kCluster, any_worker()),
                    DropReason::BadIcmp);
        expect_drop(gateway.send(error(kFromClient, client, vip, kind, of(vip, client, number, is_fragment)),
                                 kUp, any_worker()),
                    DropReason::BadIcmp);
        // The host's own address: Linux may have sent the request.
        const IpAddr host = family == IpFamily::V4 ? kUpAddress : kUpAddress6;
        EXPECT_EQ(gateway
                      .send(error(kFromClient, client, host, kind, of(host, client, number, is_fragment)),
                            kUp, any_worker())
                      .verdict,
                  Verdict::Punt);
    }
    // A protocol without ports belongs to no Service, so Linux forwards the error.
    constexpr uint8_t kGre = 47;
    EXPECT_EQ(gateway
                  .send(error(from_backend(11), endpoint, far(family, 9), kind,
                              of(far(family, 9), endpoint, kGre, false)),
                        kCluster, any_worker())
                  .verdict,
              Verdict::Punt);
}

// A redirect applies to its own link only, and source quench is obsolete; for ICMPv6 only the four types of
// RFC 4443 are supported.
TEST_P(IcmpErrors, OtherKindsAreNotPassedOn_ICMP001) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    const std::vector<Kind> others = family == IpFamily::V4 ? std::vector<Kind>{{4, 0}, {5, 1}, {13, 0}}
                                                            : std::vector<Kind>{{5, 0}, {100, 0}, {127, 0}};
    for (const Kind kind : others) {
        expect_drop(gateway.send(error(kFromClient, flow.outside.source, flow.outside.destination, kind,
                                       quote(flow.answer())),
                                 kUp, any_worker()),
                    DropReason::VipPortClosed);
    }
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), 0u);
}

// Source ranges determine which clients may open flows. A router on the path to an allowed client is not a
// client.
TEST_P(IcmpErrors, AreNoConcernOfSourceRanges_SRC006_ICMP003) {
    TestService service = served_by({11}, protocol, source);
    service.source_ranges = std::vector<Prefix>{
        *Prefix::parse(family == IpFamily::V4 ? "198.51.100.7/32" : "2001:db8:99::7/128")};
    gateway.publish({service});
    const Opened flow = open(7);
    const IpAddr router = far(family, 200);
    const Kind kind = too_big(family, 1'280);
    const Bytes told = quote(flow.answer(kManyBytes), kQuotedBytes);
    expect(gateway.send(error(kFromClient, router, flow.outside.destination, kind, told), kUp, any_worker()),
           kCluster,
           error(to_backend(11), router, flow.inside.destination, kind,
                 quote(flow.answer_as_sent(kManyBytes), kQuotedBytes), 63));
}

TEST_P(IcmpErrors, FromABlockedSourceAreNotTranslated) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    gateway.set_blocked_sources(route::PrefixSet(
        {*Prefix::parse(family == IpFamily::V4 ? "198.51.100.200/32" : "2001:db8:99::c8/128")}));
    expect_drop(gateway.send(error(kFromClient, far(family, 200), flow.outside.destination,
                                   unreachable(family), quote(flow.answer())),
                             kUp, any_worker()),
                DropReason::SourceBlocked);
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsTranslated), 0u);
}

// Otherwise a sender of forged errors could keep entries indefinitely.
TEST_P(IcmpErrors, KeepNoConnectionAlive_ICMP001_NAT008) {
    gateway.publish({served_by({11}, protocol, source)});
    const Opened flow = open();
    EXPECT_EQ(gateway.connections(), 1u);
    const uint64_t limit_s = protocol == Protocol::Tcp ? 60 : 30;
    for (uint64_t s = 0; s < limit_s + 3; ++s) {
        gateway.advance_seconds(1);
        gateway.send(error(from_backend(11), flow.inside.destination, flow.inside.source, unreachable(family),
                           quote(flow.request())),
                     kCluster, any_worker());
    }
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

// The datagram had no checksum, and its quote gets none.
TEST(IcmpQuotes, AnAbsentUdpChecksumStaysAbsent_ICMP001_NAT001) {
    VirtualGateway gateway;
    gateway.publish({served_by({11}, Protocol::Udp)});
    const FlowKey outside{far(IpFamily::V4, 7), kVip, 40'000, 80, Protocol::Udp, {}};
    const Outcome sent = gateway.send(packet_of(kFromClient, outside).l4_checksum(0).build());
    ASSERT_EQ(sent.verdict, Verdict::Transmit);
    const FlowKey inside = key_of(sent.frame);
    const Outcome told = gateway.send(
        error(from_backend(11), inside.destination, inside.source, {3, 3}, quote(sent.frame)), kCluster);
    ASSERT_EQ(told.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(told.frame, error(kToClient, kVip, outside.source, {3, 3},
                                             quote(packet_of(kFromClient, outside, 63).l4_checksum(0)), 63)));
}

// Checksums inside a quote are not verified, because some hosts quote packets that they have modified. A
// wrong checksum stays wrong by the same difference.
TEST(IcmpQuotes, WrongSumsInsideStayWrong_ICMP001) {
    VirtualGateway gateway;
    gateway.publish({served_by({11}, Protocol::Udp)});
    const FlowKey outside{far(IpFamily::V4, 7), kVip, 40'000, 80, Protocol::Udp, {}};
    const FlowKey inside = key_of(gateway.send(packet_of(kFromClient, outside).build()).frame);
    const auto told = [&](PacketBuilder sent) {
        const Outcome outcome = gateway.send(
            error(from_backend(11), inside.destination, inside.source, {3, 3}, quote(sent)), kCluster);
        EXPECT_EQ(outcome.verdict, Verdict::Transmit);
        return outcome.frame;
    };
    const Bytes right = told(packet_of(to_backend(11), inside, 63));
    const Bytes wrong_ip = told(packet_of(to_backend(11), inside, 63).ip_checksum(0x1111));
    const Bytes wrong_l4 = told(packet_of(to_backend(11), inside, 63).l4_checksum(0x1111));
    constexpr size_t kQuoteAt = 14 + 20 + 8;
    for (const Bytes& frame : {right, wrong_ip, wrong_l4}) {
        EXPECT_EQ(reference_checksum(ByteView(frame).subspan(34)), 0) << "the message's own sum";
    }
    EXPECT_EQ(reference_checksum(ByteView(right).subspan(kQuoteAt, 20)), 0);
    EXPECT_NE(reference_checksum(ByteView(wrong_ip).subspan(kQuoteAt, 20)), 0);
    const auto l4_sum = [&](const Bytes& frame) {
        return load<Be16>(frame.data() + kQuoteAt + 20 + 6).host();
    };
    EXPECT_NE(l4_sum(wrong_l4), l4_sum(right));
    EXPECT_EQ(Bytes(wrong_l4.begin() + kQuoteAt, wrong_l4.begin() + kQuoteAt + 26),
              Bytes(right.begin() + kQuoteAt, right.begin() + kQuoteAt + 26));
}

// If receive queues determine a flow's owner and an error's hash is unrelated, all workers are asked, but
// with a limit for forged errors.
TEST(IcmpSearch, AsksAllWorkersABoundedNumberOfTimes_ICMP002) {
    constexpr uint32_t kWorkers = 8;
    VirtualGateway gateway(VirtualGateway::Options{.workers = kWorkers, .flow_stays_on_queue = true});
    TestService service = served_by({11}, Protocol::Udp);
    for (uint8_t n = 1; n <= 20; ++n) {
        service.frontends.push_back({IpAddr::v4(80, 11, 13, n), 80});
    }
    gateway.publish({service});
    const auto about = [](const FlowKey& outside) {
        return error(kFromClient, outside.source, outside.destination, {3, 3},
                     quote(packet_of(kToClient, outside.reversed(), 63)));
    };
    for (uint8_t owner = 0; owner < kWorkers; ++owner) {
        const FlowKey outside{far(IpFamily::V4, owner), kVip, 40'000, 80, Protocol::Udp, {}};
        ASSERT_EQ(gateway.send(packet_of(kFromClient, outside).build(), kUp, {owner}).verdict,
                  Verdict::Transmit);
        for (uint8_t receiver = 0; receiver < kWorkers; ++receiver) {
            const Outcome told = gateway.send(about(outside), kUp, {receiver});
            EXPECT_EQ(told.verdict, Verdict::Transmit);
            EXPECT_EQ(told.worker, WorkerId{owner});
            EXPECT_LT(told.handoffs, kWorkers);
        }
    }
    const FlowKey unknown{far(IpFamily::V4, 99), kVip, 40'000, 80, Protocol::Udp, {}};
    uint32_t asked_all = 0;
    for (uint32_t n = 0; n < 2 * pipeline::kErrorSearchesPerSecond; ++n) {
        const Outcome told = gateway.send(about(unknown), kUp, {3});
        EXPECT_EQ(text_of(told.reason).counter,
                  told.handoffs > 0 ? "icmp_unknown_flow" : "icmp_search_limited");
        asked_all += told.handoffs == kWorkers - 1 ? 1 : 0;
        EXPECT_TRUE(told.handoffs == 0 || told.handoffs == kWorkers - 1);
    }
    EXPECT_LE(asked_all, pipeline::kErrorSearchesPerSecond);
    EXPECT_GE(asked_all, pipeline::kErrorSearchesPerSecond - kWorkers * kWorkers);
    EXPECT_EQ(gateway.send(about(unknown), kUp, {3}).handoffs, 0u);
    // Errors to other Services' addresses have limits of their own, in 64 classes by address. Some addresses
    // share a class by chance.
    uint32_t others = 0;
    for (uint8_t n = 1; n <= 20; ++n) {
        const FlowKey other{far(IpFamily::V4, 99), IpAddr::v4(80, 11, 13, n), 40'000, 80, Protocol::Udp, {}};
        others += gateway.send(about(other), kUp, {3}).handoffs > 0 ? 1 : 0;
    }
    EXPECT_GE(others, 10u);
}

// Malformed errors are free for their sender, so they must not use up the limit of valid ones.
TEST(IcmpSearch, IsNotForBrokenErrors_ICMP002) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = 4, .flow_stays_on_queue = true});
    gateway.publish({served_by({11}, Protocol::Udp)});
    const FlowKey outside{far(IpFamily::V4, 7), kVip, 40'000, 80, Protocol::Udp, {}};
    ASSERT_EQ(gateway.send(packet_of(kFromClient, outside).build(), kUp, {1}).verdict, Verdict::Transmit);
    const auto about = [&] {
        return ip(kFromClient, outside.source, kVip)
            .icmp(3, 3)
            .payload(quote(packet_of(kToClient, outside.reversed(), 63)));
    };
    const Bytes broken = about().l4_checksum(0x1234).build();
    for (uint32_t n = 0; n < 2 * pipeline::kErrorSearchesPerSecond; ++n) {
        const Outcome told = gateway.send(broken, kUp, {3});
        EXPECT_EQ(told.reason, DropReason::BadIcmp);
        EXPECT_EQ(told.handoffs, 0u);
    }
    EXPECT_EQ(gateway.send(about().build(), kUp, {3}).verdict, Verdict::Transmit);
}

// The owner of an association never depends on a queue.
TEST(IcmpSearch, IsNotForSctp_ICMP002_SCTP001) {
    constexpr uint32_t kWorkers = 8;
    VirtualGateway gateway(VirtualGateway::Options{.workers = kWorkers, .flow_stays_on_queue = true});
    gateway.publish({served_by({11}, Protocol::Sctp)});
    for (uint8_t host = 1; host < 50; ++host) {
        const IpAddr client = far(IpFamily::V4, host);
        const Bytes quoted = quote(ip(kToClient, kVip, client).sctp(80, 40'000, 5).chunk(0, Bytes(16)));
        const Outcome told = gateway.send(error(kFromClient, client, kVip, {3, 3}, quoted), kUp, {3});
        EXPECT_EQ(told.reason, DropReason::IcmpUnknownFlow);
        EXPECT_LE(told.handoffs, 1u);
    }
}

// The owner of a flow is the worker of its own port's queue, independent of the steering of the port on which
// the error arrives.
TEST(IcmpSearch, FindsFlowsOfPortsThatPromiseMore_ICMP002) {
    constexpr uint32_t kWorkers = 8;
    VirtualGateway gateway(VirtualGateway::Options{.workers = kWorkers, .flow_stays_on_queue = true});
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
        gateway.worker(worker).ports[kCluster.value].promises = {};
    }
    gateway.publish({served_by({11}, Protocol::Udp)});
    for (uint8_t owner = 0; owner < kWorkers; ++owner) {
        const FlowKey outside{far(IpFamily::V4, owner), kVip, 40'000, 80, Protocol::Udp, {}};
        ASSERT_EQ(gateway.send(packet_of(kFromClient, outside).build(), kUp, {owner}).verdict,
                  Verdict::Transmit);
        const Outcome told = gateway.send(error(from_backend(kRouterHost), far(IpFamily::V4, 200), kVip,
                                                {3, 1}, quote(packet_of(kToClient, outside.reversed(), 63))),
                                          kCluster, {3});
        EXPECT_EQ(told.verdict, Verdict::Transmit) << text_of(told.reason).counter;
        EXPECT_EQ(told.worker, WorkerId{owner});
    }
}

class Echo : public testing::TestWithParam<std::tuple<uint32_t, IpFamily>> {
 protected:
    uint32_t workers = std::get<0>(GetParam());
    IpFamily family = std::get<1>(GetParam());
    VirtualGateway gateway{VirtualGateway::Options{.workers = workers}};
    Prng random{seed()};
    uint8_t request_type = family == IpFamily::V4 ? 8 : 128, reply_type = family == IpFamily::V4 ? 0 : 129;
    IpAddr client = far(family, 7), vip = vip_of(family);

    WorkerId any_worker() { return {static_cast<uint8_t>(random.below(workers))}; }
    PacketBuilder request() {
        return ip(kFromClient, client, vip, 1)
            .icmp(request_type, 0, 0xbeef0001)
            .payload("an odd number of bytes.");
    }
    Bytes reply(const Link& link = kToClient) {
        PacketBuilder packet = ip(link, vip, client, 64);
        family == IpFamily::V4 ? packet.id(0).dont_fragment() : packet;
        return packet.icmp(reply_type, 0, 0xbeef0001).payload("an odd number of bytes.").build();
    }
    Outcome send(const PacketBuilder& packet) { return gateway.send(packet.build(), kUp, any_worker()); }
};
INSTANTIATE_TEST_SUITE_P(All, Echo,
                         testing::Combine(testing::Values(1u, 2u),
                                          testing::Values(IpFamily::V4, IpFamily::V6)));

TEST_P(Echo, IsAnsweredByTheGatewayForAVip_ICMP007_LB018) {
    gateway.publish({served_by({11}, Protocol::Tcp)});
    const Outcome plain = send(request());
    ASSERT_EQ(plain.verdict, Verdict::Transmit) << text_of(plain.reason).counter;
    EXPECT_EQ(plain.egress, kUp);
    EXPECT_EQ(plain.handoffs, 0u) << "any worker can";
    EXPECT_TRUE(same_frame(plain.frame, reply()));
    PacketBuilder with_more = request();
    family == IpFamily::V4 ? with_more.options({1, 1, 1, 1}) : with_more.hop_by_hop().destination_options(1);
    EXPECT_TRUE(same_frame(send(with_more.pad_to(200)).frame, reply()))
        << "options and padding do not come back";
    EXPECT_EQ(gateway.count(Counter::EchoReplies), 2u);
    EXPECT_EQ(gateway.connections(), 0u);

    // Not the gateway's: the host's own address, and an address without a Service.
    vip = family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    EXPECT_EQ(send(request()).verdict, Verdict::Punt);
    vip = far(family, 99);
    EXPECT_EQ(send(request()).verdict, Verdict::Punt);
}

// The only message whose checksum has two representations of zero: a reply that consists of zeros, whose
// checksum field must not be zero.
TEST_P(Echo, OfNothingButZerosHasAChecksum_ICMP007) {
    gateway.publish({served_by({11}, Protocol::Tcp)});
    const Outcome plain = send(ip(kFromClient, client, vip, 1).icmp(request_type, 0, 0));
    ASSERT_EQ(plain.verdict, Verdict::Transmit) << text_of(plain.reason).counter;
    PacketBuilder expected = ip(kToClient, vip, client, 64);
    family == IpFamily::V4 ? expected.id(0).dont_fragment() : expected;
    EXPECT_TRUE(same_frame(plain.frame, expected.icmp(reply_type, 0, 0).build()));
}

TEST_P(Echo, NobodyIsAnsweredWhoMustNotBe_ICMP007_REJ003) {
    gateway.publish({served_by({11}, Protocol::Tcp)});
    const auto expect_drop = [&](const Outcome& outcome, DropReason reason) {
        EXPECT_EQ(outcome.verdict, Verdict::Drop);
        EXPECT_EQ(outcome.reason, reason) << text_of(outcome.reason).counter;
    };
    expect_drop(send(request().l4_checksum(0x1234)), DropReason::BadIcmp);
    expect_drop(send(request().to_mac("01:00:5e:00:00:01")), DropReason::VipPortClosed);
    PacketBuilder fragment = request();
    family == IpFamily::V4 ? fragment.more_fragments() : fragment.fragment(0, true);
    EXPECT_EQ(send(fragment).verdict, Verdict::Drop);
    // An unsolicited reply, and other kinds of requests.
    expect_drop(send(ip(kFromClient, client, vip).icmp(reply_type, 0)), DropReason::VipPortClosed);
    expect_drop(send(ip(kFromClient, client, vip).icmp(family == IpFamily::V4 ? 13 : 139, 0)),
                DropReason::VipPortClosed);
    client = family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    expect_drop(send(request()), DropReason::MartianSource);
    if (family == IpFamily::V6) {
        client = *IpAddr::parse("fe80::1");  // link-local: the link is ambiguous
        expect_drop(send(request()), DropReason::MartianSource);
    }
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    client = far(family, 7);
    expect_drop(send(request()), DropReason::NoRoute);
    EXPECT_EQ(gateway.count(Counter::EchoReplies), 0u) << "nothing was sent";
}

TEST_P(Echo, IsDroppedWhereTheOperatorSaysSo_ICMP007) {
    gateway.publish({served_by({11}, Protocol::Tcp)});
    gateway.set_packets({.answers_vip_echo = false});
    EXPECT_EQ(send(request()).reason, DropReason::VipEcho);
    gateway.set_present_vips({kVip, kVip6});
    EXPECT_EQ(send(request()).reason, DropReason::VipEcho) << "Linux is not asked either";
    gateway.set_packets({});
    EXPECT_EQ(send(request()).verdict, Verdict::Punt) << "on a twin the VIP is Linux's to answer for";
}

// Source ranges belong to Services, and a VIP may have several Services. A client that is allowed for one of
// them may ping the VIP.
TEST_P(Echo, ObeysTheSourceRangesOfTheVip_SRC006_ICMP007) {
    const auto ranges = [&](const char* v4, const char* v6) {
        return std::vector<Prefix>{*Prefix::parse(family == IpFamily::V4 ? v4 : v6)};
    };
    TestService one = served_by({11}, Protocol::Tcp);
    one.source_ranges = ranges("198.51.100.7/32", "2001:db8:99::7/128");
    TestService other = served_by({11}, Protocol::Udp);
    other.source_ranges = ranges("198.51.100.16/28", "2001:db8:99::10/124");
    gateway.publish({one, other});
    const auto from = [&](uint8_t host) {
        client = far(family, host);
        return send(request());
    };
    EXPECT_EQ(from(7).verdict, Verdict::Transmit);
    EXPECT_EQ(from(17).verdict, Verdict::Transmit);
    EXPECT_EQ(from(8).reason, DropReason::SourceNotAllowed);
    gateway.set_present_vips({kVip, kVip6});
    EXPECT_EQ(from(8).reason, DropReason::SourceNotAllowed) << "Linux does not know the ranges";
    EXPECT_EQ(from(7).verdict, Verdict::Punt);
    other.source_ranges.reset();
    gateway.publish({one, other});
    EXPECT_EQ(from(8).verdict, Verdict::Punt);
}

// If all its endpoints are on other nodes, their gateways answer for the VIP.
TEST_P(Echo, IsNotAnsweredForAVipThatIsWithdrawn_LB018_ICMP007) {
    TestService local = served_by({}, Protocol::Tcp);
    local.when_empty = lb::EmptyAction::DropNoLocal;
    gateway.publish({local});
    EXPECT_EQ(send(request()).reason, DropReason::NoLocalEndpoint);
    gateway.publish({local, served_by({11}, Protocol::Udp)});
    EXPECT_EQ(send(request()).verdict, Verdict::Transmit) << "another Service has an endpoint here";
    local.when_empty = lb::EmptyAction::Reject;
    gateway.publish({local});
    EXPECT_EQ(send(request()).verdict, Verdict::Transmit)
        << "clients are to get the reject, so the VIP stays";
}

// The host's own pings to a VIP never leave the gateway.
TEST_P(Echo, OfTheHostIsAnsweredThroughTheTwin_ICMP007) {
    gateway.publish({served_by({11}, Protocol::Tcp)});
    client = family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    const Outcome answered = gateway.send_from_host(ip(kToClient, client, vip)
                                                        .icmp(request_type, 0, 0xbeef0001)
                                                        .payload("an odd number of bytes.")
                                                        .build(),
                                                    kUp, any_worker());
    ASSERT_EQ(answered.verdict, Verdict::Punt) << text_of(answered.reason).counter;
    EXPECT_EQ(quote(answered.frame), quote(reply()));
    client = far(family, 8);  // Linux forwards this for another host: no answer
    const Bytes forwarded = ip(kToClient, client, vip).icmp(request_type, 0, 0xbeef0001).build();
    const Outcome relayed = gateway.send_from_host(forwarded, kUp, any_worker());
    EXPECT_EQ(relayed.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(relayed.frame, forwarded));
}

TEST(EchoLimit, RepliesAreLimitedLikeAllAnswers_ICMP007_REJ003) {
    VirtualGateway gateway(VirtualGateway::Options{.rejects_per_second = 2, .rejects_burst = 2});
    gateway.publish({served_by({11}, Protocol::Tcp)});
    const Bytes request = ip(kFromClient, kClient, kVip).icmp(8, 0).build();
    EXPECT_EQ(gateway.send(request).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.send(request).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.send(request).reason, DropReason::RejectLimited);
    const FlowKey midstream{kClient, kVip, 40'000, 80, Protocol::Tcp, {}};
    const Outcome refused = gateway.send(packet_of(kFromClient, midstream, 64, "A").build());
    EXPECT_EQ(refused.verdict, Verdict::Transmit) << "pings keep nobody from learning that he is refused";
    gateway.advance_seconds(1);
    EXPECT_EQ(gateway.send(request).verdict, Verdict::Transmit);
}

TEST(OwnErrors, AreCountedWhenTheyAreSent_ICMP006) {
    VirtualGateway gateway;
    gateway.publish({served_by({11}, Protocol::Tcp)});
    const Bytes expired = packet_of(kFromClient, {kClient, kVip, 40'000, 80, Protocol::Tcp, {}}, 1).build();
    EXPECT_EQ(gateway.send(expired).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsSent), 1u);
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    EXPECT_EQ(gateway.send(expired).reason, DropReason::NoRoute);
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsSent), 1u);
}

}  // namespace icmp_test
}  // namespace penstock::test
