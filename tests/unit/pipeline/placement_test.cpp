// SPDX-License-Identifier: Apache-2.0
// Flows on several workers with the worst possible queues: every packet of either direction arrives on a
// worker selected at random, usually the wrong one. Whatever the number of workers, no difference must be
// visible from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "dataplane/pipeline/placement.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace placement_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

PacketBuilder from_client() {
    return eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
}
PacketBuilder from_backend(uint8_t host) {
    return eth().from_mac(backend_mac(host).to_string()).to_mac(kClusterMac.to_string());
}

packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}

// The backend's answer to the flow that it sees as `inside`.
std::vector<uint8_t> reply_to(const packet::FlowKey& inside, const char* flags = "SA") {
    return from_backend(inside.destination.bytes()[15])
        .ipv4(inside.destination.to_string(), inside.source.to_string())
        .tcp(inside.destination_port, inside.source_port, flags)
        .build();
}

class Placement : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, Placement, testing::Values(1u, 2u, 4u, 7u));

struct LiveFlow {
    IpAddr client;
    L4Port client_port;
    L4Port frontend_port;
    packet::FlowKey inside;  // as the backend sees it
};

TEST_P(Placement, EveryPacketOfEveryFlowIsTranslatedAlike_NAT001) {
    const uint32_t workers = GetParam();
    Prng random;
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers, .connections = 8192});
    TestService full{.name = "full", .frontends = {{kVip, 80}}, .backends = {11, 12, 13}};
    TestService kept = full;
    kept.name = "kept";
    kept.frontends = {{kVip, 81}};
    kept.source = lb::SourceMode::Keep;
    kept.backend_port = 9377;
    gateway.publish({full, kept});
    const auto any_worker = [&] { return WorkerId{static_cast<uint8_t>(random.below(workers))}; };

    std::vector<LiveFlow> flows;
    for (uint32_t i = 0; i < 500; ++i) {
        LiveFlow flow{IpAddr::v4(198, 51, 100, static_cast<uint8_t>(random.below(200))),
                      static_cast<L4Port>(10'000 + i),
                      static_cast<L4Port>(random.below(2) == 0 ? 80 : 81),
                      {}};
        const Outcome syn = gateway.send(from_client()
                                             .ipv4(flow.client.to_string(), "80.11.12.10")
                                             .tcp(flow.client_port, flow.frontend_port, "S")
                                             .build(),
                                         kUp, any_worker());
        ASSERT_EQ(syn.verdict, Verdict::Transmit);
        flow.inside = key_of(syn.frame);
        ASSERT_EQ(gateway.send(reply_to(flow.inside), kCluster, any_worker()).verdict, Verdict::Transmit);
        flows.push_back(flow);
    }
    // NAT-002: no two live flows share a reverse tuple.
    std::set<std::string> inside;
    for (const LiveFlow& flow : flows) {
        EXPECT_TRUE(inside.insert(flow.inside.to_string()).second) << flow.inside.to_string();
    }
    for (uint32_t i = 0; i < 20'000; ++i) {
        const LiveFlow& flow = flows[random.below(flows.size())];
        if (random.below(2) == 0) {
            const Outcome out = gateway.send(from_client()
                                                 .ipv4(flow.client.to_string(), "80.11.12.10")
                                                 .tcp(flow.client_port, flow.frontend_port, "A")
                                                 .build(),
                                             kUp, any_worker());
            ASSERT_EQ(out.verdict, Verdict::Transmit);
            ASSERT_EQ(key_of(out.frame), flow.inside);
        } else {
            const Outcome out = gateway.send(reply_to(flow.inside), kCluster, any_worker());
            ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
            ASSERT_EQ(key_of(out.frame),
                      (packet::FlowKey{
                          kVip, flow.client, flow.frontend_port, flow.client_port, Protocol::Tcp, {}}));
        }
    }
    EXPECT_EQ(gateway.connections(), flows.size());
    EXPECT_EQ(gateway.count(stats::Counter::NewConnections), flows.size());
}

// ETP-007: a change of policy changes the placement of new flows. Earlier flows keep their endpoint and NAT
// form, and so do those of withdrawn frontends.
TEST_P(Placement, FlowsSurviveASwitchOfPolicyAndAWithdrawal_ETP007_DRAIN001) {
    const uint32_t workers = GetParam();
    Prng random;
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    const auto any_worker = [&] { return WorkerId{static_cast<uint8_t>(random.below(workers))}; };
    TestService service{.frontends = {{kVip, 80}}, .backends = {11, 12, 13}};
    std::vector<LiveFlow> flows;
    const auto open = [&](uint32_t count) {
        for (uint32_t i = 0; i < count; ++i) {
            LiveFlow flow{IpAddr::v4(198, 51, 100, static_cast<uint8_t>(random.below(200))),
                          static_cast<L4Port>(10'000 + flows.size()),
                          80,
                          {}};
            const Outcome syn = gateway.send(from_client()
                                                 .ipv4(flow.client.to_string(), "80.11.12.10")
                                                 .tcp(flow.client_port, 80, "S")
                                                 .build(),
                                             kUp, any_worker());
            ASSERT_EQ(syn.verdict, Verdict::Transmit);
            flow.inside = key_of(syn.frame);
            ASSERT_EQ(gateway.send(reply_to(flow.inside), kCluster, any_worker()).verdict, Verdict::Transmit);
            flows.push_back(flow);
        }
    };
    const auto all_alive = [&](const char* when) {
        for (const LiveFlow& flow : flows) {
            const Outcome out = gateway.send(from_client()
                                                 .ipv4(flow.client.to_string(), "80.11.12.10")
                                                 .tcp(flow.client_port, 80, "A")
                                                 .build(),
                                             kUp, any_worker());
            ASSERT_EQ(out.verdict, Verdict::Transmit) << when;
            ASSERT_EQ(key_of(out.frame), flow.inside) << when;
            const Outcome back = gateway.send(reply_to(flow.inside), kCluster, any_worker());
            ASSERT_EQ(back.verdict, Verdict::Transmit) << when;
            ASSERT_EQ(key_of(back.frame).source, kVip) << when;
        }
    };
    gateway.publish({service});
    open(60);
    all_alive("before any change");
    service.source = lb::SourceMode::Keep;
    gateway.publish({service});
    all_alive("Cluster to Local");
    open(60);
    service.source = lb::SourceMode::Translate;
    service.backends = {21};
    gateway.publish({service});
    all_alive("back to Cluster, with other backends");
    gateway.publish({});
    all_alive("withdrawn");
    EXPECT_EQ(gateway.connections(), flows.size());
}

// The short computation of the owner against the complete one, with frontends of all histories.
TEST_P(Placement, TheUsualOwnerIsTheOnlyCandidate_NAT001) {
    Prng random;
    VirtualGateway gateway(VirtualGateway::Options{.workers = GetParam(), .snat_shared_with_host = true});
    TestService changing{.name = "changing", .frontends = {{kVip, 80}}, .backends = {11}};
    const TestService lasting{.name = "lasting",
                              .protocol = Protocol::Udp,
                              .frontends = {{kVip, 53}, {kVip, 5'353}},
                              .node_ports = {30'053},
                              .backends = {12}};
    TestService inside{.name = "inside", .frontends = {{kVip, 81}}, .backends = {13}};
    inside.inside = TestService::Inside{.backends = {13}};
    gateway.set_pod_cidrs({*Prefix::parse("10.80.2.0/24")});
    const L4Port ports[] = {53, 80, 81, 5'353, 9'376, 30'053, 40'000};
    const IpAddr addresses[] = {kVip, kUpAddress, kClusterAddress, kClient, backend_address(11)};
    uint32_t frontends = 0, replies = 0, others = 0;
    const auto try_all = [&] {
        const nat::ReplyOwner& owner = gateway.worker(0).owner;
        for (uint32_t n = 0; n < 2'000; ++n) {
            packet::FlowKey key{.source = addresses[random.below(std::size(addresses))],
                                .destination = addresses[random.below(std::size(addresses))],
                                .source_port = ports[random.below(std::size(ports))],
                                .destination_port = random.one_in(2)
                                                        ? ports[random.below(std::size(ports))]
                                                        : static_cast<L4Port>(random.between(1, 65'535)),
                                .protocol = random.one_in(8)   ? Protocol::Sctp
                                            : random.one_in(2) ? Protocol::Tcp
                                                               : Protocol::Udp};
            const WorkerId receiver{static_cast<uint8_t>(random.below(GetParam()))};
            const pipeline::PortPromises promises{random.one_in(2), random.one_in(4)};
            const WorkerId usual = pipeline::usual_owner(key, gateway.snapshot(), owner, receiver, promises);
            if (!usual.is_set()) {
                ++others;
                continue;
            }
            (key.destination == kVip ? frontends : replies) += 1;
            for (const pipeline::Ask ask : {pipeline::Ask::ReceiverFirst, pipeline::Ask::EachWorker}) {
                const pipeline::Candidates all =
                    place(key, gateway.snapshot(), owner,
                          {.receiver = receiver, .port = kUp, .promises = promises}, ask);
                ASSERT_EQ(all.count, 1) << key.to_string();
                ASSERT_EQ(all.workers[0], usual) << key.to_string();
                ASSERT_FALSE(all.is_foretold || all.is_first_guess) << key.to_string();
            }
        }
    };
    for (const lb::SourceMode mode :
         {lb::SourceMode::Translate, lb::SourceMode::Keep, lb::SourceMode::Translate}) {
        changing.source = mode;
        gateway.publish({changing, lasting, inside});
        ASSERT_NO_FATAL_FAILURE(try_all());
    }
    gateway.publish({changing});
    ASSERT_NO_FATAL_FAILURE(try_all());
    EXPECT_GT(frontends, 20U);
    EXPECT_GT(replies, 20U);
    EXPECT_GT(others, 100U);
}

// Full NAT on ports that keep a flow on one queue: the receiver owns the flow, and no packet is handed over
// in the forward direction.
TEST(PlacementWithRss, TheReceiverOwnsWhatItReceives) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = 4, .flow_stays_on_queue = true});
    gateway.publish({{.frontends = {{kVip, 80}}, .backends = {11}}});
    for (uint8_t w = 0; w < 4; ++w) {
        const Outcome syn = gateway.send(from_client()
                                             .ipv4("10.80.1.2", "80.11.12.10")
                                             .tcp(static_cast<uint16_t>(1000 + w), 80, "S")
                                             .build(),
                                         kUp, {w});
        EXPECT_EQ(syn.worker, WorkerId{w});
        EXPECT_EQ(syn.handoffs, 0u);
        // The reply may arrive on any worker; it is handed to the owner of its SNAT port.
        const Outcome back = gateway.send(reply_to(key_of(syn.frame)), kCluster, {0});
        EXPECT_EQ(back.worker, WorkerId{w});
        EXPECT_EQ(back.verdict, Verdict::Transmit);
    }
}

// The SYN reaches the worker that has the finished connection, which may not be the one that opens its
// successor.
TEST_P(Placement, AFinishedTupleIsOpenedWhereTheRulesOfNowSay_ETP007) {
    for (const bool stays : {false, true}) {
        const uint32_t workers = GetParam();
        Prng random;
        VirtualGateway gateway(VirtualGateway::Options{.workers = workers, .flow_stays_on_queue = stays});
        TestService service{.frontends = {{kVip, 80}}, .backends = {11, 12, 13}};
        for (const lb::SourceMode mode :
             {lb::SourceMode::Translate, lb::SourceMode::Keep, lb::SourceMode::Translate}) {
            service.source = mode;
            gateway.publish({service});
            for (L4Port port = 1000; port < 1060; ++port) {
                const WorkerId receiver{static_cast<uint8_t>(port % workers)};
                const auto client = [&](const char* flags) {
                    return gateway.send(
                        from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(port, 80, flags).build(), kUp,
                        receiver);
                };
                const Outcome syn = client("S");
                ASSERT_EQ(syn.verdict, Verdict::Transmit);
                const packet::FlowKey inside = key_of(syn.frame);
                ASSERT_EQ(inside.source == kClient, mode == lb::SourceMode::Keep) << port;
                const WorkerId any{static_cast<uint8_t>(random.below(workers))};
                const Outcome back = gateway.send(reply_to(inside), kCluster, any);
                ASSERT_EQ(back.verdict, Verdict::Transmit) << port;
                EXPECT_EQ(key_of(back.frame), (packet::FlowKey{kVip, kClient, 80, port, Protocol::Tcp, {}}));
                ASSERT_EQ(client("R").verdict, Verdict::Transmit);
                ASSERT_EQ(gateway.send(reply_to(inside, "R"), kCluster, any).verdict, Verdict::Transmit);
            }
        }
        EXPECT_EQ(gateway.connections(), 60u) << "each tuple once";
    }
}

// A rule that steers SNAT ports to their owners' queues also steers NodePorts of the address, and may be
// added while flows exist.
TEST(PlacementWithFlowRules, ANodePortIsNotOneWorkers_NODEPORT001) {
    VirtualGateway gateway(
        VirtualGateway::Options{.workers = 4, .flow_stays_on_queue = true, .snat_blocks_on_queue = true});
    gateway.publish({{.frontends = {{kVip, 80}, {kUpAddress, 30'080}}, .backends = {11}}});
    std::set<uint8_t> owners;
    for (uint16_t client = 1000; client < 1064; ++client) {
        const auto packet = [&](const char* flags) {
            return from_client().ipv4("10.80.1.2", kUpAddress.to_string()).tcp(client, 30'080, flags).build();
        };
        const Outcome syn = gateway.send(packet("S"), kUp, {1});
        ASSERT_EQ(syn.verdict, Verdict::Transmit);
        owners.insert(syn.worker.value);
        EXPECT_EQ(gateway.send(packet("A"), kUp, {2}).worker, syn.worker) << "the queue has changed";
    }
    EXPECT_EQ(owners.size(), 4U);
    // An address that is not a SNAT address has no such rule.
    EXPECT_EQ(
        gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(1000, 80, "S").build(), kUp, {3})
            .worker,
        WorkerId{3});
}

// A released NodePort may be used for SNAT again, and its former use must not affect the placement of
// replies. Otherwise a user who may create and delete Services could make the NodePort range unusable for all
// flows, port by port.
TEST_P(Placement, ANodePortGivenBackServesAsSnatPort_NAT002) {
    const uint32_t workers = GetParam();
    Prng random;
    VirtualGateway gateway(VirtualGateway::Options{
        .workers = workers, .snat_ports = {2'048, 3'071}, .snat_shared_with_host = true});
    const auto any_worker = [&] { return WorkerId{static_cast<uint8_t>(random.below(workers))}; };
    const TestService web{.frontends = {{kVip, 80}}, .backends = {11}};
    TestService passing{.name = "passing", .backends = {12}};
    for (L4Port port = 2'048; port <= 3'071; ++port) {
        passing.node_ports.push_back(port);
    }
    gateway.publish({web, passing});
    const auto open = [&](L4Port port) {
        return gateway.send(from_client().ipv4("198.51.100.7", "80.11.12.10").tcp(port, 80, "S").build(), kUp,
                            any_worker());
    };
    ASSERT_EQ(open(999).reason, DropReason::SnatPortsExhausted);
    gateway.publish({web});
    for (L4Port port = 1'000; port < 1'200; ++port) {
        const Outcome syn = open(port);
        ASSERT_EQ(syn.verdict, Verdict::Transmit);
        const Outcome reply = gateway.send(reply_to(key_of(syn.frame)), kCluster, any_worker());
        ASSERT_EQ(reply.verdict, Verdict::Transmit) << port;
        ASSERT_EQ(key_of(reply.frame).destination_port, port);
    }
}

// ETP-006, NAT-004: clients inside the Pod CIDRs have a separate backend set with a separate source mode.
// Flows of either kind are found on whatever worker owns them, also after a change of the CIDRs, the policy,
// or both.
TEST_P(Placement, ClientsInsideTheClusterHaveASetOfTheirOwn_ETP006_NAT004_ETP007) {
    const uint32_t workers = GetParam();
    Prng random;
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    const auto any_worker = [&] { return WorkerId{static_cast<uint8_t>(random.below(workers))}; };
    TestService service{.frontends = {{kVip, 80}}, .backends = {11, 12}};
    std::vector<Prefix> pod_cidrs{*Prefix::parse("198.51.100.0/25")};
    std::vector<LiveFlow> flows;
    const auto open_and_check_all = [&](const char* when) {
        for (uint32_t i = 0; i < 60; ++i) {
            LiveFlow flow{IpAddr::v4(198, 51, 100, static_cast<uint8_t>(random.below(250))),
                          static_cast<L4Port>(10'000 + flows.size()),
                          80,
                          {}};
            const Outcome syn = gateway.send(from_client()
                                                 .ipv4(flow.client.to_string(), "80.11.12.10")
                                                 .tcp(flow.client_port, 80, "S")
                                                 .build(),
                                             kUp, any_worker());
            ASSERT_EQ(syn.verdict, Verdict::Transmit) << when;
            flow.inside = key_of(syn.frame);
            const bool is_inside = std::ranges::any_of(
                pod_cidrs, [&](const Prefix& cidr) { return cidr.contains(flow.client); });
            const bool has_own_set = service.inside && is_inside;
            const auto& backends = has_own_set ? service.inside->backends : service.backends;
            const lb::SourceMode source = has_own_set ? service.inside->source : service.source;
            ASSERT_NE(std::ranges::find(backends, flow.inside.destination.bytes()[15]), backends.end())
                << when;
            ASSERT_EQ(flow.inside.source == flow.client, source == lb::SourceMode::Keep) << when;
            flows.push_back(flow);
        }
        for (const LiveFlow& flow : flows) {
            const Outcome back = gateway.send(reply_to(flow.inside), kCluster, any_worker());
            ASSERT_EQ(back.verdict, Verdict::Transmit) << when;
            ASSERT_EQ(key_of(back.frame),
                      (packet::FlowKey{kVip, flow.client, 80, flow.client_port, Protocol::Tcp, {}}))
                << when;
            const Outcome out = gateway.send(from_client()
                                                 .ipv4(flow.client.to_string(), "80.11.12.10")
                                                 .tcp(flow.client_port, 80, "A")
                                                 .build(),
                                             kUp, any_worker());
            ASSERT_EQ(out.verdict, Verdict::Transmit) << when;
            ASSERT_EQ(key_of(out.frame), flow.inside) << when;
        }
    };
    gateway.set_pod_cidrs(pod_cidrs);
    gateway.publish({service});
    open_and_check_all("one set for all");
    service.inside = {.source = lb::SourceMode::Keep, .backends = {13}};
    gateway.publish({service});
    open_and_check_all("Pods keep their source");
    pod_cidrs = {*Prefix::parse("198.51.100.64/26"), *Prefix::parse("198.51.100.128/26")};
    gateway.set_pod_cidrs(pod_cidrs);
    open_and_check_all("other Pod CIDRs");
    service.source = lb::SourceMode::Keep;
    service.inside = {.source = lb::SourceMode::Translate, .backends = {13, 14}};
    gateway.publish({service});
    open_and_check_all("the other way round");
    pod_cidrs = {};
    gateway.set_pod_cidrs({});
    open_and_check_all("Pod CIDRs unknown");
    service.inside.reset();
    gateway.publish({service});
    open_and_check_all("one set again");
    EXPECT_EQ(gateway.connections(), flows.size());
}

}  // namespace placement_test
}  // namespace penstock::test
