// SPDX-License-Identifier: Apache-2.0
// Which packets take a copy over, which copies are refused, and that new flows leave their tuples alone.
#include "dataplane/pipeline/opening/take_over.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "dataplane/pipeline/opening/foreign.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace take_over_test {

using packet::FlowKey;
using stats::Counter;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");
const IpAddr kPeer = IpAddr::v4(198, 51, 100, 7);
const IpAddr kPeer6 = *IpAddr::parse("2001:db8:1::7");

TestService web(Protocol protocol = Protocol::Tcp) {
    return {.name = "web",
            .protocol = protocol,
            .frontends = {{kVip, 80}, {kVip6, 80}},
            .backends = {11, 12, 13}};
}

FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}

FlowKey client_key(Protocol protocol = Protocol::Tcp, IpFamily family = IpFamily::V4, L4Port port = 40'000) {
    return family == IpFamily::V4 ? FlowKey{kPeer, kVip, port, 80, protocol, {}}
                                  : FlowKey{kPeer6, kVip6, port, 80, protocol, {}};
}

// A packet with this key, as it arrives. `flags`: of TCP. SCTP packets are data, or an INIT for "S".
std::vector<uint8_t> frame_of(const FlowKey& key, const char* flags) {
    const bool is_clients = key.destination == kVip || key.destination == kVip6;
    PacketBuilder builder = eth();
    builder.from_mac((is_clients ? kClientMac : backend_mac(key.source.bytes()[15])).to_string())
        .to_mac((is_clients ? kUpMac : kClusterMac).to_string());
    PacketBuilder ip = key.source.is_v4() ? builder.ipv4(key.source.to_string(), key.destination.to_string())
                                          : builder.ipv6(key.source.to_string(), key.destination.to_string());
    switch (key.protocol) {
        case Protocol::Tcp:
            return ip.tcp(key.source_port, key.destination_port, flags).seq(1'000).ack(2'000).build();
        case Protocol::Udp:
            return ip.udp(key.source_port, key.destination_port).payload("data").build();
        case Protocol::Sctp:
            return std::string(flags) == "S"
                       ? ip.sctp(key.source_port, key.destination_port, 0).sctp_init(7).build()
                       : ip.sctp(key.source_port, key.destination_port, is_clients ? 9 : 7)
                             .chunk(11, {1, 2, 3, 4})
                             .build();
    }
    return {};
}

NicPortId port_of(const FlowKey& key) {
    return key.destination == kVip || key.destination == kVip6 ? kUp : kCluster;
}

class TakeOver : public testing::Test {
 protected:
    // Opens a flow of this key at the first gateway. Returns its connection.
    conn::Connection open(const FlowKey& key, bool establishes = true) {
        return open(first, key, establishes);
    }
    static conn::Connection open(VirtualGateway& gateway, const FlowKey& key, bool establishes = true) {
        const Outcome opened = gateway.send(frame_of(key, "S"), port_of(key));
        EXPECT_EQ(opened.verdict, Verdict::Transmit);
        if (establishes) {
            gateway.establish_all();
        }
        const conn::Table& connections = gateway.worker(0).connections;
        const conn::Found found = connections.find(key, connections.hash(key));
        EXPECT_TRUE(found.is_hit());
        return connections.connection(found.index);
    }
    copies::Store& store_of(VirtualGateway& gateway) {
        store = *copies::Store::create(1'000, HashKey::random());
        for (uint32_t w = 0; w < gateway.options().workers; ++w) {
            gateway.worker(w).copies = store.get();
        }
        return *store;
    }
    // Dropped, or answered by a RST.
    static void expect_rejected(const Outcome& outcome, const FlowKey& key) {
        EXPECT_TRUE(outcome.verdict != Verdict::Transmit || key_of(outcome.frame) == key.reversed());
    }
    // Both gateways send the same for a packet of this key.
    static void expect_same(VirtualGateway& one, VirtualGateway& other, const FlowKey& key,
                            WorkerId receiver = {0}) {
        const std::vector<uint8_t> frame = frame_of(key, "A");
        const Outcome expected = one.send(frame, port_of(key));
        const Outcome outcome = other.send(frame, port_of(key), receiver);
        ASSERT_EQ(expected.verdict, Verdict::Transmit) << key.to_string();
        ASSERT_EQ(outcome.verdict, expected.verdict)
            << key.to_string() << ": " << text_of(outcome.reason).counter;
        ASSERT_EQ(key_of(outcome.frame), key_of(expected.frame));
        if (key.source.family() == key_of(expected.frame).source.family()) {
            ASSERT_EQ(outcome.frame, expected.frame);
        }
        ASSERT_EQ(outcome.egress, expected.egress);
    }
    static void expect_counts(const VirtualGateway& gateway, uint64_t taken, uint64_t refused) {
        EXPECT_EQ(gateway.count(Counter::ConnectionsTakenOver), taken);
        EXPECT_EQ(gateway.count(Counter::CopiesRefused), refused);
        EXPECT_EQ(gateway.count(Counter::NewConnections), 0U);
        EXPECT_EQ(gateway.connections(), taken);
    }
    // The second gateway refuses the copy of a flow of the first, after `change`.
    template <typename Change>
    void expect_refused(const Change& change) {
        first.publish({web()});
        VirtualGateway second;
        second.publish({web()});
        conn::Connection copy = open(client_key());
        change(second, copy);
        const copies::Store::Slot slot = store_of(second).put(copy);
        expect_rejected(second.send(frame_of(copy.forward, "A"), kUp), copy.forward);
        EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 0U);
        EXPECT_EQ(second.count(Counter::CopiesRefused), 1U);
        EXPECT_FALSE(store->is_taken(slot));
    }

    std::unique_ptr<copies::Store> store;
    VirtualGateway first;
};

TEST_F(TakeOver, ContinuesTheFlowFromEitherSide) {
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            for (const std::optional<IpFamily> endpoints :
                 {std::optional<IpFamily>(), std::optional(IpFamily::V4), std::optional(IpFamily::V6)}) {
                for (const lb::SourceMode source : {lb::SourceMode::Translate, lb::SourceMode::Keep}) {
                    for (const bool client_first : {true, false}) {
                        if (source == lb::SourceMode::Keep && endpoints) {
                            continue;
                        }
                        TestService service = web(protocol);
                        service.endpoints_of = endpoints;
                        service.source = source;
                        VirtualGateway one;
                        one.publish({service});
                        VirtualGateway second;
                        second.publish(
                            {{.name = "other", .frontends = {{kVip, 81}}, .backends = {14}}, service});
                        const conn::Connection copy = open(one, client_key(protocol, family));
                        const copies::Store::Slot slot = store_of(second).put(copy);
                        expect_same(one, second, client_first ? copy.forward : copy.reverse);
                        EXPECT_TRUE(store->is_taken(slot));
                        expect_same(one, second, client_first ? copy.reverse : copy.forward);
                        expect_counts(second, 1, 0);
                        ASSERT_EQ(second.connections(), 1U);
                        const conn::Connection taken = second.worker(0).connections.connection({0});
                        EXPECT_EQ(taken.opened_at, copy.opened_at);
                        EXPECT_EQ(taken.l4_delta, copy.l4_delta);
                        EXPECT_EQ(taken.ip_delta, copy.ip_delta);
                        EXPECT_EQ(taken.service, ServiceId{1});
                    }
                }
            }
        }
    }
}

TEST_F(TakeOver, ContinuesAnAssociation) {
    first.publish({web(Protocol::Sctp)});
    VirtualGateway second;
    second.publish({web(Protocol::Sctp)});
    conn::Connection copy = open(client_key(Protocol::Sctp));
    copy.state = static_cast<uint8_t>(conn::SctpState::Established);
    copy.tags = {9, 7};  // as in frame_of()
    store_of(second).put(copy);
    const Outcome data = second.send(frame_of(copy.forward, "A"), kUp);
    EXPECT_EQ(data.verdict, Verdict::Transmit) << text_of(data.reason).counter;
    EXPECT_EQ(key_of(data.frame), copy.reverse.reversed());
    const Outcome answer = second.send(frame_of(copy.reverse, "A"), kCluster);
    EXPECT_EQ(answer.verdict, Verdict::Transmit);
    EXPECT_EQ(key_of(answer.frame), copy.forward.reversed());
    expect_counts(second, 1, 0);
}

TEST_F(TakeOver, OfASynOrAnInitIsLeftToANewConnection) {
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Sctp}) {
        VirtualGateway one;
        one.publish({web(protocol)});
        VirtualGateway second;
        second.publish({web(protocol)});
        const conn::Connection copy = open(one, client_key(protocol));
        const copies::Store::Slot slot = store_of(second).put(copy);
        EXPECT_EQ(second.send(frame_of(copy.forward, "S"), kUp).verdict, Verdict::Transmit);
        EXPECT_EQ(second.count(Counter::NewConnections), 1U);
        EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 0U);
        EXPECT_EQ(second.count(Counter::CopiesRefused), 0U);
        EXPECT_FALSE(store->is_taken(slot));
    }
}

TEST_F(TakeOver, OfASynAckContinuesTheHandshake) {
    first.publish({web()});
    VirtualGateway second;
    second.publish({web()});
    const conn::Connection copy = open(client_key(), false);
    ASSERT_EQ(copy.tcp_state(), conn::TcpState::SynSent);
    store_of(second).put(copy);
    const std::vector<uint8_t> answer = frame_of(copy.reverse, "SA");
    const Outcome expected = first.send(answer, kCluster);
    ASSERT_EQ(expected.verdict, Verdict::Transmit);
    EXPECT_EQ(second.send(answer, kCluster).frame, expected.frame);
    expect_counts(second, 1, 0);
    EXPECT_EQ(second.worker(0).connections.connection({0}).tcp_state(), conn::TcpState::SynReceived);
}

TEST_F(TakeOver, KeepsTheSourceOfAReopenedTuple) {
    TestService service = web();
    service.source = lb::SourceMode::Keep;
    service.backends = {11};
    first.publish({service});
    VirtualGateway second;
    second.publish({service});
    const conn::Connection copy = open(client_key());
    store_of(second).put(copy);
    const Outcome opened = second.send(frame_of(copy.forward, "S"), kUp);
    ASSERT_EQ(opened.verdict, Verdict::Transmit);
    EXPECT_EQ(key_of(opened.frame).source, kPeer);
}

// In one burst: the first packet takes the connection over, the others find it; a SYN among them too.
TEST_F(TakeOver, ServesTheOtherPacketsOfTheBurst) {
    first.publish({web()});
    VirtualGateway second;
    second.publish({web()});
    const conn::Connection copy = open(client_key());
    store_of(second).put(copy);
    const std::vector<Outcome> outcomes = second.send_burst(
        {frame_of(copy.forward, "S"), frame_of(copy.forward, "A"), frame_of(copy.forward, "A"),
         frame_of(client_key(Protocol::Tcp, IpFamily::V4, 40'001), "S")});
    for (const Outcome& outcome : {outcomes[1], outcomes[2]}) {
        EXPECT_EQ(outcome.verdict, Verdict::Transmit);
        EXPECT_EQ(key_of(outcome.frame), copy.reverse.reversed());
    }
    EXPECT_EQ(outcomes[0].verdict, Verdict::Transmit);
    EXPECT_EQ(outcomes[3].verdict, Verdict::Transmit);
    EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 1U);
    EXPECT_EQ(second.count(Counter::NewConnections), 1U);
}

TEST_F(TakeOver, LeadsBothDirectionsToTheOwner) {
    first.publish(
        {web(), {.name = "dns", .protocol = Protocol::Udp, .frontends = {{kVip, 80}}, .backends = {11}}});
    VirtualGateway second({.workers = 4, .flow_stays_on_queue = true});
    second.publish(
        {web(), {.name = "dns", .protocol = Protocol::Udp, .frontends = {{kVip, 80}}, .backends = {11}}});
    store_of(second);
    uint64_t handed = 0;
    for (L4Port port = 40'000; port < 40'040; ++port) {
        const Protocol protocol = port % 2 == 0 ? Protocol::Tcp : Protocol::Udp;
        const conn::Connection copy = open(client_key(protocol, IpFamily::V4, port));
        ASSERT_TRUE(store->put(copy).is_set());
        const WorkerId receiver{static_cast<uint8_t>(port % 4)};
        for (const FlowKey& key : {copy.forward, copy.reverse, copy.forward}) {
            const Outcome outcome = second.send(frame_of(key, "A"), port_of(key), receiver);
            ASSERT_EQ(outcome.verdict, Verdict::Transmit);
            EXPECT_EQ(key_of(outcome.frame), (key == copy.forward ? copy.reverse : copy.forward).reversed());
            EXPECT_EQ(outcome.worker,
                      pipeline::owner_of_foreign(copy, second.snapshot(), second.worker(0).owner));
            handed += outcome.handoffs;
        }
    }
    expect_counts(second, 40, 0);
    EXPECT_GT(handed, 0U);
}

// A flow of the same tuple was adopted by another worker, and has ended.
TEST_F(TakeOver, PrecedesAMovedFlow) {
    first.publish({web()});
    VirtualGateway second({.workers = 4, .flow_stays_on_queue = true});
    second.publish({web()});
    store_of(second);
    for (L4Port port = 40'000; port < 40'020; ++port) {
        const conn::Connection copy = open(client_key(Protocol::Tcp, IpFamily::V4, port));
        ASSERT_TRUE(store->put(copy).is_set());
        const WorkerId owner = pipeline::owner_of_foreign(copy, second.snapshot(), second.worker(0).owner);
        pipeline::MovedFlows moved(HashKey::random());
        moved.reserve(1);
        moved.add(moved.word_of(copy.forward, {static_cast<uint8_t>((owner.value + 1) % 4)}));
        for (uint32_t w = 0; w < 4; ++w) {
            second.worker(w).moved = &moved;
        }
        const Outcome outcome =
            second.send(frame_of(copy.forward, "A"), kUp, {static_cast<uint8_t>(port % 4)});
        for (uint32_t w = 0; w < 4; ++w) {
            second.worker(w).moved = nullptr;
        }
        ASSERT_EQ(outcome.verdict, Verdict::Transmit);
        EXPECT_EQ(key_of(outcome.frame), copy.reverse.reversed());
        EXPECT_EQ(outcome.worker, owner);
    }
    expect_counts(second, 20, 0);
}

// Both gateways have the SNAT address of a share, with different ports of it.
TEST_F(TakeOver, TakesPortsOfTheOtherPart) {
    const IpAddr shared = IpAddr::v4(198, 51, 200, 3);
    using nat::PortPart;
    for (const auto& [opens, takes] :
         {std::pair(PortPart::Primary, PortPart::Heir), std::pair(PortPart::Heir, PortPart::Primary)}) {
        VirtualGateway one({.more_snat = {{.address = shared, .egress = {}, .group = 1, .part = opens}}});
        VirtualGateway other({.more_snat = {{.address = shared, .egress = {}, .group = 1, .part = takes}}});
        TestService in_share = web();
        in_share.snat_group = 1;
        one.publish({in_share});
        other.publish({in_share});
        store_of(other);
        const conn::Connection copy = open(one, client_key());
        ASSERT_EQ(copy.reverse.destination, shared);
        ASSERT_EQ(copy.reverse.destination_port % 8 == 7, opens == PortPart::Heir);
        ASSERT_TRUE(store->put(copy).is_set());
        expect_same(one, other, copy.forward);
        expect_same(one, other, copy.reverse);
        expect_counts(other, 1, 0);
    }
}

// A plan has moved the VIP to another share since the flow was opened, and this gateway has no role in the
// share of the SNAT address.
TEST_F(TakeOver, TakesAnAddressWithWhichItOpensNoFlow) {
    const IpAddr former = IpAddr::v4(198, 51, 200, 3);
    const auto in_share = [&](nat::PortPart part) {
        return VirtualGateway::Options{
            .more_snat = {{.address = former, .egress = {}, .group = 1, .part = part}}};
    };
    VirtualGateway one(in_share(nat::PortPart::Primary));
    VirtualGateway other(in_share(nat::PortPart::None));
    TestService service = web();
    service.snat_group = 1;
    one.publish({service});
    other.publish({web()});
    store_of(other);
    const conn::Connection copy = open(one, client_key());
    ASSERT_EQ(copy.reverse.destination, former);
    ASSERT_TRUE(store->put(copy).is_set());
    expect_same(one, other, copy.forward);
    expect_same(one, other, copy.reverse);
    expect_counts(other, 1, 0);
    const conn::Connection next = open(other, client_key(Protocol::Tcp, IpFamily::V4, 41'000));
    EXPECT_NE(next.reverse.destination, former);
}

// The owner refuses the copy, and hands the packet back to the worker that may open a flow for it.
TEST_F(TakeOver, HandsBackWhatTheOwnerRefuses) {
    const TestService before = {
        .name = "dns", .protocol = Protocol::Udp, .frontends = {{kVip, 80}}, .backends = {11}};
    TestService after = before;
    after.backends = {12};
    first.publish({before});
    VirtualGateway second({.workers = 4, .flow_stays_on_queue = true});
    second.publish({after});
    store_of(second);
    for (L4Port port = 40'000; port < 40'020; ++port) {
        const conn::Connection copy = open(client_key(Protocol::Udp, IpFamily::V4, port));
        ASSERT_TRUE(store->put(copy).is_set());
        const WorkerId receiver{static_cast<uint8_t>(port % 4)};
        for (int times = 0; times < 2; ++times) {
            const Outcome outcome = second.send(frame_of(copy.forward, "A"), kUp, receiver);
            ASSERT_EQ(outcome.verdict, Verdict::Transmit);
            EXPECT_EQ(key_of(outcome.frame).destination, backend_address(12));
            EXPECT_EQ(outcome.worker, receiver);
        }
    }
    EXPECT_EQ(second.count(Counter::CopiesRefused), 20U);
    EXPECT_EQ(second.count(Counter::NewConnections), 20U);
    EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 0U);
}

// The endpoint gets no new flows here, and has had none since this gateway started.
TEST_F(TakeOver, ContinuesTheFlowsOfAnEndpointThatOnlyKeepsThem) {
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        for (const lb::SourceMode source : {lb::SourceMode::Translate, lb::SourceMode::Keep}) {
            TestService before = web();
            before.source = source;
            before.backends = {11};
            TestService after = before;
            after.backends = {12};
            after.kept_backends = {11, 13};
            VirtualGateway one;
            one.publish({before});
            VirtualGateway second({.workers = 2, .flow_stays_on_queue = true});
            second.publish({{.name = "other", .frontends = {{kVip, 81}}, .backends = {14}}, after});
            store_of(second);
            for (const bool client_first : {true, false}) {
                const conn::Connection copy =
                    open(one, client_key(Protocol::Tcp, family, client_first ? 40'000 : 40'001));
                ASSERT_TRUE(store->put(copy).is_set());
                expect_same(one, second, client_first ? copy.forward : copy.reverse);
                expect_same(one, second, client_first ? copy.reverse : copy.forward);
                EXPECT_TRUE(store->find(copy.forward)->is_taken);
            }
            expect_counts(second, 2, 0);
            const FlowKey later = client_key(Protocol::Tcp, family, 40'002);
            const Outcome opened = second.send(frame_of(later, "S"), port_of(later));
            EXPECT_EQ(key_of(opened.frame).destination, backend_address(12, family));
        }
    }
}

TEST_F(TakeOver, IsRefusedWithoutTheFrontend) {
    expect_refused([](VirtualGateway& second, conn::Connection&) { second.publish({}); });
}
TEST_F(TakeOver, IsRefusedWithoutTheEndpoint) {
    expect_refused([](VirtualGateway& second, conn::Connection& copy) {
        TestService service = web();
        std::erase(service.backends, copy.reverse.source.bytes()[15]);
        second.publish({service});
    });
}
TEST_F(TakeOver, IsRefusedWithAnotherSnatAddress) {
    expect_refused([](VirtualGateway&, conn::Connection& copy) {
        copy.reverse.destination = IpAddr::v4(10, 80, 2, 77);
    });
}
TEST_F(TakeOver, IsRefusedWithAPortOutsideTheRange) {
    expect_refused([](VirtualGateway&, conn::Connection& copy) { copy.reverse.destination_port = 1'000; });
}
TEST_F(TakeOver, IsRefusedPastItsIdleLimit) {
    expect_refused([](VirtualGateway& second, conn::Connection& copy) {
        copy.last_seen = copy.opened_at = {second.now_coarse().value - (1U << 30)};
    });
}
TEST_F(TakeOver, IsRefusedIfItsReplyTupleIsTaken) {
    expect_refused([](VirtualGateway& second, conn::Connection& copy) {
        const FlowKey other = client_key(Protocol::Tcp, IpFamily::V4, 41'000);
        copy.reverse = key_of(second.send(frame_of(other, "S"), kUp).frame).reversed();
    });
}

// A gateway with a full table of half-open connections, of another endpoint than those of web().
class TakeOverIntoAFullTable : public TakeOver {
 protected:
    TakeOverIntoAFullTable() : second({.connections = 8}) {
        first.publish({web()});
        second.publish({web(), {.name = "other", .frontends = {{kVip, 81}}, .backends = {14}}});
        for (L4Port port = 50'000; port < 50'008; ++port) {
            const std::vector<uint8_t> syn = eth()
                                                 .from_mac(kClientMac.to_string())
                                                 .to_mac(kUpMac.to_string())
                                                 .ipv4(kPeer.to_string(), kVip.to_string())
                                                 .tcp(port, 81, "S")
                                                 .build();
            EXPECT_EQ(second.send(syn, kUp).verdict, Verdict::Transmit);
        }
    }
    VirtualGateway second;
};

TEST_F(TakeOverIntoAFullTable, RefusesACopy) {
    second.establish_all();
    const conn::Connection copy = open(client_key());
    store_of(second).put(copy);
    expect_rejected(second.send(frame_of(copy.forward, "A"), kUp), copy.forward);
    EXPECT_EQ(second.count(Counter::CopiesRefused), 1U);
    EXPECT_EQ(second.connections(), 8U);
}

// As for a new flow.
TEST_F(TakeOverIntoAFullTable, EvictsAHalfOpenConnectionForACopy) {
    const conn::Connection copy = open(client_key());
    store_of(second).put(copy);
    expect_same(first, second, copy.forward);
    EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 1U);
    EXPECT_EQ(second.count(Counter::EvictedConnections), 1U);
    EXPECT_EQ(second.connections(), 8U);
}

TEST_F(TakeOver, HappensOnceForAConnectionThatHasEnded) {
    first.publish({web()});
    VirtualGateway second;
    second.publish({web()});
    const conn::Connection copy = open(client_key());
    store_of(second).put(copy);
    expect_same(first, second, copy.forward);
    for (int times = 0; times < 4; ++times) {
        second.advance_seconds(100'000);
        second.age();
        second.take_own_segments();
    }
    EXPECT_EQ(second.connections(), 0U);
    expect_rejected(second.send(frame_of(copy.forward, "A"), kUp), copy.forward);
    EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 1U);
    EXPECT_EQ(second.count(Counter::CopiesRefused), 0U);
    EXPECT_EQ(second.connections(), 0U);
}

// New flows get none of the tuples of copies, although no connection has them here.
TEST_F(TakeOver, LeavesTheReplyTuplesOfCopiesToThem) {
    TestService service = web();
    service.backends = {11};
    const VirtualGateway::Options few{.snat_ports = {2'048, 2'111}};
    VirtualGateway one(few), second(few);
    one.publish({service});
    second.publish({service});
    store_of(second);
    std::vector<conn::Connection> copies;
    for (L4Port port = 40'000; port < 40'040; ++port) {
        ASSERT_EQ(one.send(frame_of(client_key(Protocol::Tcp, IpFamily::V4, port), "S"), kUp).verdict,
                  Verdict::Transmit);
    }
    one.establish_all();
    for (uint32_t unit = 0; unit < 40; ++unit) {
        copies.push_back(one.worker(0).connections.connection({unit}));
        ASSERT_TRUE(store->put(copies.back()).is_set());
    }
    uint32_t opened = 0;
    for (L4Port port = 50'000; port < 50'060; ++port) {
        const Outcome outcome =
            second.send(frame_of(client_key(Protocol::Tcp, IpFamily::V4, port), "S"), kUp);
        if (outcome.verdict == Verdict::Transmit) {
            ++opened;
            EXPECT_FALSE(store->find(key_of(outcome.frame).reversed()));
        } else {
            EXPECT_EQ(outcome.reason, DropReason::SnatPortsExhausted);
        }
        second.establish_all();
    }
    EXPECT_EQ(opened, 24U);
    for (const conn::Connection& copy : copies) {
        expect_same(one, second, copy.reverse);
    }
    EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 40U);
}

TEST_F(TakeOver, FollowsAnIcmpError) {
    first.publish({web()});
    VirtualGateway second;
    second.publish({web()});
    const conn::Connection copy = open(client_key());
    store_of(second).put(copy);
    const std::vector<uint8_t> sent = first.send(frame_of(copy.forward, "A"), kUp).frame;
    const std::vector<uint8_t> error =
        eth()
            .from_mac(backend_mac(200).to_string())
            .to_mac(kClusterMac.to_string())
            .ipv4(backend_address(200).to_string(), copy.reverse.destination.to_string())
            .icmp(3, 1)
            .payload(std::vector<uint8_t>(sent.begin() + 14, sent.end()))
            .build();
    const Outcome expected = first.send(error, kCluster);
    const Outcome outcome = second.send(error, kCluster);
    ASSERT_EQ(expected.verdict, Verdict::Transmit);
    EXPECT_EQ(outcome.verdict, Verdict::Transmit);
    EXPECT_EQ(outcome.frame, expected.frame);
    EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 1U);
}

TEST_F(TakeOver, DoesNotFollowAnIcmpErrorWithAnInvalidChecksum) {
    first.publish({web()});
    const conn::Connection copy = open(client_key());
    const std::vector<uint8_t> sent = first.send(frame_of(copy.forward, "A"), kUp).frame;
    std::vector<uint8_t> error =
        eth()
            .from_mac(backend_mac(200).to_string())
            .to_mac(kClusterMac.to_string())
            .ipv4(backend_address(200).to_string(), copy.reverse.destination.to_string())
            .icmp(3, 1)
            .payload(std::vector<uint8_t>(sent.begin() + 14, sent.end()))
            .build();
    error[14 + 20 + 2] ^= 1;
    for (const uint32_t workers : {1U, 4U}) {
        VirtualGateway second({.workers = workers, .flow_stays_on_queue = true});
        second.publish({web()});
        const copies::Store::Slot slot = store_of(second).put(copy);
        EXPECT_NE(second.send(error, kCluster).verdict, Verdict::Transmit);
        EXPECT_FALSE(store->is_taken(slot));
        EXPECT_EQ(second.connections(), 0U);
    }
}

// The owner refuses the copy once, and each packet of it is served where it arrives from then on. Another
// configuration, a record of the connection, and a sweep of the store give it another chance.
TEST_F(TakeOver, ARefusedCopyCostsNoHandoffs) {
    first.publish({web()});
    VirtualGateway second({.workers = 4, .flow_stays_on_queue = true});
    TestService without = web();
    store_of(second);
    uint64_t handed = 0, refused = 0;
    for (L4Port port = 40'000; port < 40'020; ++port) {
        conn::Connection copy = open(client_key(Protocol::Tcp, IpFamily::V4, port));
        without.backends = {11, 12, 13};
        std::erase(without.backends, copy.reverse.source.bytes()[15]);
        second.publish({without});
        const copies::Store::Slot slot = store->put(copy);
        const auto send = [&] {
            const Outcome outcome =
                second.send(frame_of(copy.forward, "A"), kUp, {static_cast<uint8_t>(port % 4)});
            expect_rejected(outcome, copy.forward);
            return outcome.handoffs;
        };
        handed += send();
        EXPECT_EQ(second.count(Counter::CopiesRefused), ++refused);
        EXPECT_EQ(send(), 0U);
        EXPECT_EQ(second.count(Counter::CopiesRefused), refused);
        store->forget_refusal(slot);
        send();
        EXPECT_EQ(second.count(Counter::CopiesRefused), ++refused);
        copy.last_seen = {copy.last_seen.value + 1};
        ASSERT_TRUE(store->refresh(slot, copy));
        send();
        EXPECT_EQ(second.count(Counter::CopiesRefused), ++refused);
        EXPECT_EQ(send(), 0U);
        second.publish({web()});
        expect_same(first, second, copy.forward, {static_cast<uint8_t>(port % 4)});
        EXPECT_TRUE(store->is_taken(slot));
    }
    EXPECT_GT(handed, 0U);
    EXPECT_EQ(second.count(Counter::ConnectionsTakenOver), 20U);
}

}  // namespace take_over_test
}  // namespace penstock::test
