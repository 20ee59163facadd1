// SPDX-License-Identifier: Apache-2.0
// Which packets go to the gateway of their share, unchanged but for the hop, and which are served here.
#include "dataplane/pipeline/opening/strays.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/wire.hpp"
#include "tests/protocols/ends.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/support/frame_diff.hpp"

namespace penstock::test {
namespace strays_test {

using packet::FlowKey;
using shares::Strays;
using stats::Counter;
using Frame = std::vector<uint8_t>;

constexpr uint8_t kOther = 200;  // the other gateway is where this endpoint would be
constexpr Strays::GatewayNumber kSelf = 0, kPeer = 1;
const IpAddr kSnat = IpAddr::v4(203, 0, 113, 1);

Strays::Parts parts(Strays::Gateways gateways = {.primary = kPeer, .heir = kSelf}) {
    return {.map = shares::ShareMap(1, {}),
            .shares = {gateways},
            .gateways = {{"edge-1", kUpAddress, true}, {"edge-2", backend_address(kOther), true}},
            .self = kSelf,
            .snat = {{kSnat, 0}}};
}

std::vector<TestService> services() {
    return {service_on_both(Protocol::Tcp, 80, 9376), service_on_both(Protocol::Udp, 53, 5353),
            service_on_both(Protocol::Sctp, 3868, 3868)};
}

// A frame as it leaves as a stray: the same packet, one hop further.
Frame one_hop_further(Frame frame) {
    std::ranges::copy(backend_mac(kOther).bytes, frame.begin());
    std::ranges::copy(kClusterMac.bytes, frame.begin() + 6);
    if (packet::ether_type(frame.data()) == packet::kEtherTypeIpv6) {
        --frame[14 + 7];
        return frame;
    }
    --frame[14 + 8];
    frame[14 + 10] = frame[14 + 11] = 0;
    uint32_t sum = 0;
    for (size_t at = 14; at < 34; at += 2) {
        sum += static_cast<uint32_t>(frame[at]) << 8 | frame[at + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    frame[24] = static_cast<uint8_t>(sum >> 8);
    frame[25] = static_cast<uint8_t>(sum);
    return frame;
}

// Packets of clients arrive from the other gateway, by another port than the one to the clients.
void accept_clients_by_the_link(VirtualGateway& gateway) {
    config::PacketPolicy packets = gateway.snapshot().packets;
    packets.reverse_path[kCluster.value] = config::ReversePath::Loose;
    gateway.set_packets(packets);
}

class ForwardsStrays : public testing::TestWithParam<uint32_t> {
 protected:
    ForwardsStrays() {
        gateway.publish(services());
        use(parts());
    }
    void use(Strays::Parts next) { gateway.set_strays(std::make_shared<const Strays>(std::move(next))); }
    Outcome send(const Frame& frame, NicPortId port = kUp) {
        return gateway.send(frame, port, WorkerId{static_cast<uint8_t>(sent++ % GetParam())});
    }
    void expect_forwarded(const Frame& frame, NicPortId port = kUp) {
        const uint64_t before = gateway.count(Counter::StraysForwarded);
        const Outcome outcome = send(frame, port);
        ASSERT_EQ(outcome.verdict, Verdict::Transmit) << text_of(outcome.reason).counter << to_scapy(frame);
        EXPECT_TRUE(same_frame(outcome.frame, one_hop_further(frame)));
        EXPECT_EQ(outcome.egress, kCluster);
        EXPECT_EQ(gateway.count(Counter::StraysForwarded), before + 1);
        EXPECT_EQ(gateway.connections(), 0U);
    }
    // Next hops that Linux shall resolve.
    std::vector<IpAddr> take_requests() {
        std::vector<IpAddr> addresses;
        for (uint32_t w = 0; w < GetParam(); ++w) {
            while (const auto request = gateway.worker(w).resolve->pop()) {
                addresses.push_back(request->address);
            }
        }
        return addresses;
    }
    void expect_served(const Frame& frame) {
        const size_t before = gateway.connections();
        EXPECT_EQ(send(frame).verdict, Verdict::Transmit);
        EXPECT_EQ(gateway.connections(), before + 1) << "a new connection of this gateway";
        EXPECT_EQ(gateway.count(Counter::StraysForwarded), 0U);
    }
    Frame syn(uint16_t port = 40'000) const { return ends4().from_client().tcp(port, 80, "S").build(); }

    uint32_t sent = 0;
    VirtualGateway gateway{VirtualGateway::Options{
        .workers = GetParam(),
        .more_snat = {{.address = kSnat, .egress = {}, .group = 1, .part = nat::PortPart::Heir}}}};
};
INSTANTIATE_TEST_SUITE_P(Workers, ForwardsStrays, testing::Values(1U, 3U));

TEST_P(ForwardsStrays, OfEachProtocolAndFamily) {
    for (const Ends& ends : {ends4(), ends6()}) {
        for (const char* flags : {"S", "A", "PA", "FA", "R", "SA"}) {
            expect_forwarded(ends.from_client().tcp(40'000, 80, flags).payload("data").build());
        }
        expect_forwarded(ends.from_client().udp(40'000, 53).payload("query").build());
        expect_forwarded(ends.from_client().sctp(40'000, 3868, 0).sctp_init(7).build());
        expect_forwarded(ends.from_client().sctp(40'000, 3868, 9).chunk(11, {1, 2, 3, 4}).build());
        expect_forwarded(ends.from_client().tcp(40'000, 81, "S").build());  // the other one rejects it
    }
}

// The gateway that gets them cannot examine the port on which they have arrived.
TEST_P(ForwardsStrays, ButNotFromASourceThatBelongsBehindAnotherPort) {
    const Ends ends = ends4();
    const Outcome outcome =
        send(ends.ip(Ends::from_uplink(), backend_address(10), ends.vip, 64).tcp(40'000, 80, "S").build());
    EXPECT_EQ(outcome.verdict, Verdict::Drop);
    EXPECT_EQ(outcome.reason, DropReason::ReversePath);
    EXPECT_EQ(gateway.count(Counter::StraysForwarded), 0U);
}

TEST_P(ForwardsStrays, ButNotPacketsOfItsConnections) {
    gateway.set_strays(nullptr);
    expect_served(syn());
    use(parts());
    EXPECT_EQ(send(syn()).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.connections(), 1U);
    EXPECT_EQ(gateway.count(Counter::ConnectionHits), 1U);
    EXPECT_EQ(gateway.count(Counter::StraysForwarded), 0U);
}

TEST_P(ForwardsStrays, InPlaceOfAConnectionThatHasFinished) {
    gateway.set_strays(nullptr);
    expect_served(syn());
    for (uint32_t w = 0; w < GetParam(); ++w) {
        pipeline::WorkerContext& worker = gateway.worker(w);
        for (uint32_t unit = 0; unit < worker.connections.high_water(); ++unit) {
            worker.connections.set_state({unit}, conn::TcpState::TimeWait, gateway.now_coarse());
        }
    }
    use(parts());
    expect_forwarded(syn());
}

TEST_P(ForwardsStrays, ThatAreNotItsOwn) {
    use(parts({.primary = kSelf, .heir = kPeer}));
    expect_served(syn());
}

TEST_P(ForwardsStrays, OfSharesWithoutARoleToThePrimary) {
    Strays::Parts three = parts({.primary = kPeer, .heir = 2});
    three.gateways.push_back({"edge-3", backend_address(kOther + 1), true});
    use(three);
    expect_forwarded(syn());
    three.gateways[kPeer].takes_strays = false;
    use(three);
    const Outcome outcome = send(syn());
    EXPECT_EQ(outcome.verdict, Verdict::Transmit);
    EXPECT_TRUE(std::ranges::equal(backend_mac(kOther + 1).bytes, std::span(outcome.frame).first(6)))
        << "to the heir";
    three.gateways[2].takes_strays = false;
    use(three);
    EXPECT_EQ(send(syn()).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.connections(), 1U) << "both are lost, so it is served here";
}

TEST_P(ForwardsStrays, WhileTheOtherGatewayTakesThem) {
    Strays::Parts lost = parts();
    lost.gateways[kPeer].takes_strays = false;
    use(std::move(lost));
    expect_served(syn());
}

TEST_P(ForwardsStrays, WhileTheOtherGatewayAnswersOnTheLink) {
    gateway.set_unresolved({kOther});
    EXPECT_EQ(send(syn()).verdict, Verdict::Hold) << "until its address is resolved";
    EXPECT_EQ(gateway.connections(), 0U);
    gateway.set_unresolved({kOther}, route::NeighbourState::Failed);
    const uint64_t before = gateway.count(Counter::StraysForwarded);
    EXPECT_EQ(send(syn()).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.connections(), 1U);
    EXPECT_EQ(take_requests(), std::vector{backend_address(kOther)}) << "it may answer again";
    EXPECT_EQ(send(syn(40'001)).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.count(Counter::StraysForwarded), before);
}

TEST_P(ForwardsStrays, OnlyOnALink) {
    Strays::Parts behind_router = parts();
    behind_router.gateways[kPeer].link = IpAddr::v4(192, 0, 2, 1);
    use(std::move(behind_router));
    expect_served(syn());
}

TEST_P(ForwardsStrays, UntilTheirTtlRunsOut) {
    for (const Ends& ends : {ends4(), ends6()}) {
        expect_forwarded(ends.ip(Ends::from_uplink(), ends.client, ends.vip, 2).tcp(40'000, 80, "A").build());
        const Outcome outcome =
            send(ends.ip(Ends::from_uplink(), ends.client, ends.vip, 1).tcp(40'000, 80, "A").build());
        EXPECT_EQ(outcome.verdict, Verdict::Drop);
        EXPECT_EQ(outcome.reason, DropReason::StrayTtl);
    }
}

TEST_P(ForwardsStrays, ButNotBackToTheirSender) {
    accept_clients_by_the_link(gateway);
    const Frame frame =
        ends4().ip(Ends::from_cluster(kOther), kClient, ends4().vip, 63).tcp(40'000, 80, "S").build();
    EXPECT_EQ(send(frame, kCluster).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.connections(), 1U);
    EXPECT_EQ(gateway.count(Counter::StraysReturned), 1U);
    EXPECT_EQ(gateway.count(Counter::StraysForwarded), 0U);
}

TEST_P(ForwardsStrays, RepliesByThePartOfTheirPort) {
    const auto reply = [](uint16_t port) {
        return ends4()
            .ip(Ends::from_cluster(11), backend_address(11), kSnat, 64)
            .tcp(9376, port, "A")
            .build();
    };
    expect_forwarded(reply(20'000), kCluster);
    // The heir's port: no other gateway has opened a flow with it.
    EXPECT_NE(send(reply(20'007), kCluster).verdict, Verdict::Transmit);
    use(parts({.primary = kSelf, .heir = kPeer}));
    EXPECT_NE(send(reply(20'000), kCluster).verdict, Verdict::Transmit);
    expect_forwarded(reply(20'007), kCluster);
}

TEST_P(ForwardsStrays, IcmpErrors) {
    // The first bytes of a packet to the client, and of one to the endpoint.
    const auto error_about = [](const IpAddr& source, const IpAddr& destination, uint16_t from, uint16_t to,
                                PacketBuilder link, const IpAddr& router) {
        Frame quoted = ends4().ip(eth(), source, destination, 60).tcp(from, to, "A").build();
        quoted.erase(quoted.begin(), quoted.begin() + 14);
        return link.ipv4(router.to_string(), source.to_string()).icmp(3, 1).payload(quoted).build();
    };
    const Frame from_client_side =
        error_about(ends4().vip, kClient, 80, 40'000, Ends::from_uplink(), IpAddr::v4(192, 0, 2, 77));
    const auto from_endpoint = [&](uint16_t port) {
        return error_about(kSnat, backend_address(11), port, 9376, Ends::from_cluster(11),
                           backend_address(11));
    };
    expect_forwarded(from_client_side);
    expect_forwarded(from_endpoint(20'000), kCluster);
    EXPECT_EQ(send(from_endpoint(20'007), kCluster).reason, DropReason::IcmpUnknownFlow);
    use(parts({.primary = kSelf, .heir = kPeer}));
    EXPECT_EQ(send(from_client_side).reason, DropReason::IcmpUnknownFlow);
}

TEST_P(ForwardsStrays, FragmentsWithTheFirstOne) {
    for (const Ends& ends : {ends4(), ends6()}) {
        const Frame whole = ends.from_client().udp(40'000, 53).payload(std::string(3'000, 'x')).build();
        const std::vector<Frame> pieces = cut(whole, 77, 1'000);
        ASSERT_EQ(pieces.size(), 4U);
        for (const Frame& piece : pieces) {
            expect_forwarded(piece);
        }
        // The last ones wait for the first one.
        const std::vector<Frame> others = cut(whole, 78, 1'000);
        for (size_t at = 1; at < others.size(); ++at) {
            EXPECT_EQ(send(others[at]).verdict, Verdict::Await);
        }
        const uint64_t before = gateway.count(Counter::StraysForwarded);
        EXPECT_TRUE(same_frame(send(others[0]).frame, one_hop_further(others[0])));
        const std::vector<Outcome> released = gateway.take_released();
        ASSERT_EQ(released.size(), 3U);
        EXPECT_EQ(gateway.count(Counter::StraysForwarded), before + 4);
        for (const Outcome& outcome : released) {
            EXPECT_EQ(outcome.verdict, Verdict::Transmit);
            EXPECT_TRUE(same_frame(outcome.frame, one_hop_further(outcome.came)));
        }
    }
}

TEST_P(ForwardsStrays, WithoutChangingFragmentsOfItsOwn) {
    gateway.set_mtu(kCluster, 600);
    const Outcome split =
        send(ends4().from_client().id(4'711).udp(40'000, 53).payload(std::string(1'000, 'x')).build());
    ASSERT_EQ(split.verdict, Verdict::Split);
    ASSERT_EQ(split.fragments.size(), 2U);
    EXPECT_EQ(id_of(split.fragments[0]), 4'711U) << "the sender's";
    const Outcome answer = send(
        ends4().from_client().dont_fragment().tcp(40'000, 80, "A").payload(std::string(1'000, 'x')).build());
    EXPECT_EQ(answer.verdict, Verdict::Transmit);
    EXPECT_EQ(answer.egress, kUp) << "an ICMP error to the client";
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsSent), 1U);
}

TEST_P(ForwardsStrays, ButNothingOfTheHost) {
    EXPECT_EQ(
        gateway
            .send_from_host(
                ends4().ip(Ends::to_uplink(), kUpAddress, ends4().vip, 64).tcp(40'000, 80, "S").build(), kUp)
            .verdict,
        Verdict::Transmit);
    EXPECT_EQ(gateway.connections(), 1U);
    const Outcome spoofed =
        send(ends4().ip(Ends::from_uplink(), kClusterAddress, ends4().vip, 64).tcp(40'000, 80, "S").build());
    EXPECT_EQ(spoofed.reason, DropReason::MartianSource);
    EXPECT_EQ(
        send(ends4().ip(Ends::from_uplink(), kClient, kUpAddress, 64).tcp(40'000, 80, "S").build()).verdict,
        Verdict::Punt);
    EXPECT_EQ(gateway.count(Counter::StraysForwarded), 0U);
}

TEST_P(ForwardsStrays, OfASpreadVipByTheirClient) {
    Strays::Parts spread{.map = shares::ShareMap(2, {}, {.vips = {Prefix::host(ends4().vip)}, .key = 7}),
                         .shares = {{.primary = kSelf, .heir = kPeer}, {.primary = kPeer, .heir = kSelf}},
                         .gateways = parts().gateways,
                         .self = kSelf,
                         .snat = {}};
    const shares::ShareMap map = spread.map;
    use(std::move(spread));
    uint32_t forwarded = 0;
    for (uint8_t host = 1; host < 65; ++host) {
        const IpAddr client = IpAddr::v4(192, 0, 2, host);
        const Frame frame =
            ends4().ip(Ends::from_uplink(), client, ends4().vip, 64).tcp(40'000, 80, "S").build();
        const bool is_others = map.share_of(ends4().vip, client) == 1;
        forwarded += is_others ? 1 : 0;
        EXPECT_EQ(send(frame).verdict, Verdict::Transmit);
        EXPECT_EQ(gateway.count(Counter::StraysForwarded), forwarded);
    }
    EXPECT_GT(forwarded, 16U);
    EXPECT_EQ(gateway.connections(), 64U - forwarded);
}

// The same packets reach one connection by whichever gateway they arrive.
TEST(TwoGateways, ServeAFlowThatArrivesAtBoth) {
    VirtualGateway owner, other;
    for (VirtualGateway* gateway : {&owner, &other}) {
        gateway->publish(services());
    }
    accept_clients_by_the_link(owner);
    owner.set_strays(std::make_shared<const Strays>(parts({.primary = kSelf, .heir = kPeer})));
    other.set_strays(std::make_shared<const Strays>(parts()));
    for (const char* flags : {"S", "A", "PA", "PA", "FA"}) {
        const Frame frame = ends4().from_client().tcp(40'000, 80, flags).build();
        Outcome stray = other.send(frame);
        ASSERT_EQ(stray.verdict, Verdict::Transmit);
        std::ranges::copy(kClusterMac.bytes, stray.frame.begin());  // the owner has the same one
        std::ranges::copy(backend_mac(kOther).bytes, stray.frame.begin() + 6);
        EXPECT_EQ(owner.send(stray.frame, kCluster).verdict, Verdict::Transmit);
        owner.establish_all();
    }
    EXPECT_EQ(owner.connections(), 1U);
    EXPECT_EQ(owner.count(Counter::NewConnections), 1U);
    EXPECT_EQ(other.connections(), 0U);
}

}  // namespace strays_test
}  // namespace penstock::test
