// SPDX-License-Identifier: Apache-2.0
// Cluster events observed on the wire: states pass through the real reconciler into the workers of the
// virtual gateway, and packets show the effect on flows. Drains use a clock that the test advances.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/apply/reconciler.hpp"
#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace events_test {

using packet::FlowKey;
using packet::TcpFlags;
using std::chrono::steady_clock;

constexpr const char* kVip = "80.11.12.10";

FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}
bool is_reset(const Outcome& outcome) {
    packet::Parsed parsed;
    return outcome.verdict == Verdict::Transmit && packet::parse(outcome.frame, parsed) &&
           parsed.tcp_flags.has(TcpFlags::kRst);
}

model::Frontend external(L4Port port) {
    return {lb::FrontendClass::ExternalIp, *IpAddr::parse(kVip), IpFamily::V4, port, 0, false};
}
model::Service service(const std::string& name, Protocol protocol, std::vector<model::Frontend> frontends,
                       const std::vector<uint8_t>& hosts) {
    model::Service out{.key = {"default", name, "", protocol}, .uid = "u1"};
    model::BackendSet& set = out.sets.emplace_back();
    for (const uint8_t host : hosts) {
        set.endpoints.push_back({backend_address(host), 8080, 1, "", ""});
    }
    out.frontends = std::move(frontends);
    return out;
}

class Events : public testing::TestWithParam<uint32_t> {
 protected:
    void SetUp() override {
        reconciler.begin(std::nullopt, std::make_shared<const drivers::MirroredState>());
        reconciler.start(
            [this](std::unique_ptr<config::Snapshot> next) {
                const std::lock_guard lock(mutex);
                published = std::move(next);
            },
            {.orders_done = [this] { return orders_done.load(); }, .flows_of = {}});
    }
    void TearDown() override { reconciler.stop(); }

    // Sends the whole state. On return it is in every worker, and its orders are done.
    void apply(std::vector<model::Service> services) {
        auto answered = std::make_shared<std::promise<bool>>();
        reconciler.submit({.version = {"sync", ++version},
                           .base = {},
                           .services = std::move(services),
                           .received = steady_clock::now(),
                           .done = [answered](Result<rpc::UpdateResult> answer) {
                               answered->set_value(answer.has_value());
                           }});
        ASSERT_TRUE(answered->get_future().get());
        const std::lock_guard lock(mutex);
        gateway.take_over(*published);
        gateway.work_off_orders();
        orders_done = gateway.orders_done();
    }
    // Advances the clock, and sends a message without changes, so that the thread reads the clock.
    void pass(int64_t seconds, const std::vector<model::Service>& in_force) {
        clock_s += seconds;
        apply(in_force);
    }

    Outcome send(Protocol protocol, L4Port client_port, L4Port port, const char* flags = "S") {
        auto packet =
            eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string()).ipv4(kClient.to_string(), kVip);
        protocol == Protocol::Tcp ? (void)packet.tcp(client_port, port, flags)
                                  : (void)packet.udp(client_port, port);
        return gateway.send(packet.build(), kUp, {static_cast<uint8_t>(client_port % GetParam())});
    }
    Outcome udp(L4Port client_port, L4Port port = 53) { return send(Protocol::Udp, client_port, port); }
    // An established connection. Returns its backend.
    IpAddr open_tcp(L4Port client_port, L4Port port = 80) {
        const FlowKey inside = key_of(send(Protocol::Tcp, client_port, port).frame);
        const auto answer = eth()
                                .from_mac(backend_mac(inside.destination.bytes()[15]).to_string())
                                .to_mac(kClusterMac.to_string())
                                .ipv4(inside.destination.to_string(), inside.source.to_string())
                                .tcp(inside.destination_port, inside.source_port, "SA")
                                .build();
        EXPECT_EQ(gateway.send(answer, kCluster).verdict, Verdict::Transmit);
        EXPECT_EQ(send(Protocol::Tcp, client_port, port, "A").verdict, Verdict::Transmit);
        return inside.destination;
    }
    // The backend that a mid-stream segment is forwarded to; nullopt: answered by RST.
    std::optional<IpAddr> goes_to(L4Port client_port, L4Port port = 80) {
        const Outcome outcome = send(Protocol::Tcp, client_port, port, "A");
        return is_reset(outcome) ? std::nullopt : std::optional(key_of(outcome.frame).destination);
    }

    std::atomic<int64_t> clock_s = 1'000;
    std::atomic<uint64_t> orders_done = 0;
    uint64_t version = 0;
    std::mutex mutex;
    std::unique_ptr<config::Snapshot> published;
    VirtualGateway gateway{VirtualGateway::Options{.workers = GetParam()}};
    gateway::Reconciler reconciler{
        {.identity = {},
         .snapshots = {.twins = {}, .snat_addresses = {}, .snat_ports = {}, .host_ephemeral = {}},
         .state_file = {},
         .now = [this] { return steady_clock::time_point(std::chrono::seconds(clock_s)); }}};
};
INSTANTIATE_TEST_SUITE_P(Workers, Events, testing::Values(1u, 3u));

TEST_P(Events, AUdpClientThatNeverPausesHasALiveEndpointWithItsNextDatagram_UDP001_UDP002_UDP003) {
    const auto dns = [](const std::vector<uint8_t>& hosts) {
        return service("dns", Protocol::Udp, {external(53)}, hosts);
    };
    apply({dns({11, 12})});
    for (L4Port client = 1'000; client < 1'040; ++client) {
        ASSERT_EQ(udp(client).verdict, Verdict::Transmit);
    }
    apply({dns({12})});
    for (L4Port client = 1'000; client < 1'040; ++client) {
        EXPECT_EQ(key_of(udp(client).frame).destination, backend_address(12)) << client;
    }
    apply({dns({})});
    EXPECT_EQ(gateway.connections(), 0U);
    const Outcome rejected = udp(1'000);
    ASSERT_EQ(rejected.verdict, Verdict::Transmit);
    EXPECT_EQ(rejected.egress, kUp) << "an ICMP error to the client";
    EXPECT_EQ(gateway.connections(), 0U);
    apply({dns({11})});
    EXPECT_EQ(key_of(udp(1'000).frame).destination, backend_address(11));
}

TEST_P(Events, UdpFlowsStayWithWhoeverServes_UDP004_DRAIN002) {
    auto dns = service("dns", Protocol::Udp, {external(53)}, {11});
    apply({dns});
    udp(1'000);
    auto left_out = service("dns", Protocol::Udp, {external(53)}, {12});
    left_out.sets[0].excluded = {{backend_address(11), 8080, model::Exclusion::Terminating, true}};
    apply({left_out});
    EXPECT_EQ(key_of(udp(1'000).frame).destination, backend_address(11));
    EXPECT_EQ(key_of(udp(1'001).frame).destination, backend_address(12));
    left_out.sets[0].excluded[0].serving = false;
    apply({left_out});
    EXPECT_EQ(key_of(udp(1'000).frame).destination, backend_address(12)) << "it serves no longer";
}

TEST_P(Events, TcpFlowsOfAGoneEndpointGoThreeWays_DRAIN003_DRAIN004) {
    struct Case {
        std::optional<uint32_t> timeout;
        bool after_299_s, after_300_s;
    };
    for (const Case& expected :
         {Case{std::nullopt, true, true}, Case{300, true, false}, Case{0, false, false}}) {
        const auto web = [&](const std::vector<uint8_t>& hosts) {
            auto out = service("web", Protocol::Tcp, {external(80)}, hosts);
            out.uid = "u" + std::to_string(expected.timeout.value_or(1'000));
            out.drain_timeout_s = expected.timeout;
            return out;
        };
        const auto client = static_cast<L4Port>(2'000 + expected.timeout.value_or(1'000));
        apply({web({11})});
        ASSERT_EQ(open_tcp(client), backend_address(11));
        auto not_ready = web({12});
        not_ready.sets[0].excluded = {{backend_address(11), 8080, model::Exclusion::NotReady, false}};
        apply({not_ready});
        EXPECT_EQ(goes_to(client), backend_address(11)) << "not ready is not gone";
        apply({web({12})});
        EXPECT_EQ(key_of(send(Protocol::Tcp, static_cast<L4Port>(client + 1), 80).frame).destination,
                  backend_address(12))
            << "new flows";
        pass(299, {web({12})});
        EXPECT_EQ(goes_to(client).has_value(), expected.after_299_s);
        pass(1, {web({12})});
        EXPECT_EQ(goes_to(client).has_value(), expected.after_300_s);
        gateway.take_own_segments();
    }
}

TEST_P(Events, AnEndpointThatReturnsDuringTheDrainKeepsItsFlows_DRAIN004) {
    const auto web = [&](const std::vector<uint8_t>& hosts) {
        auto out = service("web", Protocol::Tcp, {external(80)}, hosts);
        out.drain_timeout_s = 60;
        return out;
    };
    apply({web({11})});
    open_tcp(2'000);
    apply({web({12})});
    pass(59, {web({12})});
    apply({web({11, 12})});
    pass(100, {web({11, 12})});
    EXPECT_EQ(goes_to(2'000), backend_address(11));
}

TEST_P(Events, AServiceThatIsGoneLeavesNoUdpFlowAndItsTcpFlows_DRAIN007_UDP002) {
    auto web = service("web", Protocol::Tcp, {external(80)}, {11});
    const auto dns = service("dns", Protocol::Udp, {external(53)}, {11});
    apply({web, dns});
    open_tcp(2'000);
    udp(1'000);
    apply({});
    EXPECT_EQ(goes_to(2'000), backend_address(11));
    EXPECT_NE(udp(1'000).verdict, Verdict::Transmit);
    EXPECT_NE(send(Protocol::Tcp, 2'001, 80).verdict, Verdict::Transmit);
}

// Delete and create merged into one change: the drain of the old object ends its flows, those of the new
// object stay.
TEST_P(Events, AnotherServiceOfTheSameNameHasItsOwnFlows_GEN010) {
    auto web = service("web", Protocol::Tcp, {external(80)}, {11});
    auto dns = service("dns", Protocol::Udp, {external(53)}, {11});
    web.drain_timeout_s = 30;
    apply({web, dns});
    open_tcp(2'000);
    udp(1'000);
    const uint64_t before = gateway.connections();
    web.uid = dns.uid = "u2";
    apply({web, dns});
    EXPECT_EQ(gateway.connections(), before - 1) << "UDP";
    open_tcp(2'001);
    pass(30, {web, dns});
    EXPECT_EQ(goes_to(2'000), std::nullopt);
    EXPECT_EQ(goes_to(2'001), backend_address(11));
}

TEST_P(Events, WhoeverTakesATupleOverHasItsNewFlowsOnly_DRAIN007_SVC018) {
    auto former = service("former", Protocol::Tcp, {external(80)}, {11});
    auto former_udp = service("former", Protocol::Udp, {external(80)}, {11});
    apply({former, former_udp});
    open_tcp(2'000);
    send(Protocol::Udp, 1'000, 80);
    former.frontends = {external(81)};
    former_udp.frontends = {external(81)};
    const auto next = service("next", Protocol::Tcp, {external(80)}, {12});
    const auto next_udp = service("next", Protocol::Udp, {external(80)}, {12});
    apply({former, former_udp, next, next_udp});
    EXPECT_EQ(goes_to(2'000), backend_address(11)) << "the old flow has its endpoint";
    EXPECT_EQ(key_of(send(Protocol::Tcp, 2'001, 80).frame).destination, backend_address(12))
        << "a new SYN goes to the new owner";
    EXPECT_EQ(key_of(send(Protocol::Udp, 1'000, 80).frame).destination, backend_address(12));
}

TEST_P(Events, TwoPortsThatSwapNumbersAreNeverMixed_SVC016_GEN007) {
    const auto at = [](const std::string& name, L4Port port, uint8_t host) {
        auto out = service("web", Protocol::Tcp, {external(port)}, {host});
        out.key.port_name = name;
        out.drain_timeout_s = 0;
        return out;
    };
    apply({at("a", 80, 11), at("b", 81, 12)});
    open_tcp(2'000, 80);
    open_tcp(2'001, 81);
    apply({at("a", 81, 11), at("b", 80, 12)});
    EXPECT_EQ(goes_to(2'000, 80), std::nullopt) << "its endpoint is no longer behind this frontend";
    EXPECT_EQ(goes_to(2'001, 81), std::nullopt);
    EXPECT_EQ(open_tcp(2'002, 80), backend_address(12));
    EXPECT_EQ(open_tcp(2'003, 81), backend_address(11));
}

TEST_P(Events, ARenamedPortsFlowsStayAndGoWithTheirEndpoint_SVC017) {
    const auto named = [](const std::string& name, const std::vector<uint8_t>& hosts) {
        auto out = service("dns", Protocol::Udp, {external(53)}, hosts);
        out.key.port_name = name;
        return out;
    };
    apply({named("a", {11})});
    udp(1'000);
    apply({named("b", {11, 12})});
    EXPECT_EQ(gateway.connections(), 1U);
    EXPECT_EQ(key_of(udp(1'000).frame).destination, backend_address(11));
    EXPECT_EQ(gateway.connections(), 1U) << "the very flow";
    apply({named("b", {12})});
    EXPECT_EQ(key_of(udp(1'000).frame).destination, backend_address(12));
}

TEST_P(Events, TheSameStateAgainEndsNothing_UDP005) {
    const auto dns = service("dns", Protocol::Udp, {external(53)}, {11, 12});
    apply({dns});
    const IpAddr before = key_of(udp(1'000).frame).destination;
    apply({dns});
    EXPECT_EQ(gateway.connections(), 1U);
    EXPECT_EQ(key_of(udp(1'000).frame).destination, before);
    EXPECT_EQ(gateway.connections(), 1U);
}

}  // namespace events_test
}  // namespace penstock::test
