// SPDX-License-Identifier: Apache-2.0
// Which connections are adopted, and the reason of each that is not.
#include "dataplane/adopt/adoption.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/other_layout.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/reply_hashes.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace adoption_test {

using adopt::NotAdopted;
using conn::Entry;
using packet::FlowKey;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

TestService web(std::vector<uint8_t> backends = {11}) {
    return {.name = "web", .frontends = {{kVip, 80}}, .backends = std::move(backends)};
}

FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}

std::vector<uint8_t> segment(L4Port client_port, const char* flags, const char* client = "198.51.100.7") {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4(client, kVip.to_string())
        .tcp(client_port, 80, flags)
        .build();
}

// A copy of what a gateway left, which a test may damage.
class Left {
 public:
    Left(const VirtualGateway& former, const VirtualGateway& heir) : tables(former.left_to(heir)) {
        for (std::span<const std::byte>& table : tables.connections) {
            const AlignedMemory& copy = memory_.emplace_back(table.size());
            std::memcpy(copy.span().data(), table.data(), table.size());
            table = copy.span();
        }
    }
    std::byte* bytes(uint32_t worker = 0) { return memory_[worker].span().data(); }
    // The first unit of a table for that number of connections.
    Entry& entry(const VirtualGateway& former) {
        const uint32_t connections = former.options().connections;
        return *reinterpret_cast<Entry*>(bytes() + conn::Table::memory_needed(connections) -
                                         (connections + 1) / 2 * 2 * sizeof(Entry));
    }
    adopt::FormerTables tables;

 private:
    std::vector<AlignedMemory> memory_;
};

class Adoption : public testing::Test {
 protected:
    Adoption() { former.publish({web()}); }
    void open(uint32_t flows = 1) {
        for (uint32_t n = 0; n < flows; ++n) {
            ASSERT_EQ(former.send(segment(static_cast<L4Port>(40'000 + n), "S")).verdict, Verdict::Transmit);
        }
    }
    // `reason` alone, for that many connections.
    static void expect_lost(const adopt::Report& report, NotAdopted reason, uint64_t connections = 1) {
        for (size_t other = 0; other < adopt::kNotAdopted; ++other) {
            EXPECT_EQ(report.lost[other], other == static_cast<size_t>(reason) ? connections : 0)
                << to_string(static_cast<NotAdopted>(other));
        }
    }
    // The heir has `services` and adopts after `change`.
    adopt::Report adopted_by(
        VirtualGateway& heir, const std::vector<TestService>& services,
        const std::function<void(Left&)>& change = [](Left&) {}) {
        heir.publish(services);
        Left left(former, heir);
        change(left);
        return heir.adopt(left.tables, former);
    }

    VirtualGateway former;
};

TEST_F(Adoption, TakesAConnectionWithAllItsFields) {
    open();
    former.establish_all();
    former.advance_seconds(5);
    VirtualGateway heir;
    const adopt::Report report =
        adopted_by(heir, {{.name = "other", .frontends = {{kVip, 81}}, .backends = {12}}, web()});
    EXPECT_EQ(report.adopted, std::vector<uint64_t>{1});
    EXPECT_EQ(report.all_adopted(), 1u);
    EXPECT_EQ(report.all_lost(), 0u);
    EXPECT_EQ(heir.count(stats::Counter::AdoptedConnections), 1u);
    const conn::Connection before = former.worker(0).connections.connection({0});
    const conn::Connection after = heir.worker(0).connections.connection({0});
    EXPECT_EQ(after.forward, before.forward);
    EXPECT_EQ(after.reverse, before.reverse);
    EXPECT_EQ(after.last_seen, before.last_seen);
    EXPECT_EQ(after.opened_at, before.opened_at);
    EXPECT_EQ(after.state, before.state);
    EXPECT_EQ(after.tags, before.tags);
    EXPECT_EQ(after.l4_delta, before.l4_delta);
    EXPECT_EQ(after.ip_delta, before.ip_delta);
    EXPECT_EQ(before.service, ServiceId{0});
    EXPECT_EQ(after.service, ServiceId{1});
    EXPECT_NE(after.backend, before.backend);
}

// Neither the checksum differences nor the index of the SNAT address are copied.
TEST_F(Adoption, DerivesWhatFollowsFromTheKeys) {
    open();
    const Outcome expected = former.send(segment(40'000, "S"));
    VirtualGateway heir;
    const adopt::Report report = adopted_by(heir, {web()}, [&](Left& left) {
        Entry& entry = left.entry(former);
        entry.l4_delta = entry.ip_delta = {};
        entry.snat_index = 63;
        entry.snat_pool = 0xffff'ffff;
        entry.backend = {0xffff'ffff};
    });
    ASSERT_EQ(report.all_adopted(), 1u);
    EXPECT_EQ(heir.send(segment(40'000, "S")).frame, expected.frame);
    EXPECT_EQ(heir.worker(0).snat_ports.in_use(), 1u);
    heir.advance_seconds(100);
    heir.age();
    EXPECT_EQ(heir.worker(0).snat_ports.in_use(), 0u);
    EXPECT_EQ(heir.connections(), 0u);
}

TEST_F(Adoption, NeedsATable) {
    open();
    VirtualGateway heir;
    const adopt::Report report =
        adopted_by(heir, {web()}, [](Left& left) { left.bytes()[0] ^= std::byte{1}; });
    expect_lost(report, NotAdopted::TableDamaged);
    EXPECT_EQ(report.all_lost(), 0u) << "nobody knows how many connections it had";
    EXPECT_EQ(report.all_adopted(), 0u);
}

TEST_F(Adoption, RefusesWhatNoGatewayHasOpened) {
    open();
    const CoarseTime now = former.now_coarse();
    const struct {
        const char* name;
        std::function<void(Entry&)> damage;
    } cases[] = {
        {"state", [](Entry& entry) { entry.state = 99; }},
        {"client 0.0.0.0", [](Entry& entry) { entry.v4_addresses[0] &= ~uint64_t{0xffff'ffff}; }},
        {"client 224.0.0.1",
         [](Entry& entry) {
             entry.v4_addresses[0] =
                 (entry.v4_addresses[0] & ~uint64_t{0xffff'ffff}) | IpAddr::v4(224, 0, 0, 1).v4_wire().raw();
         }},
        {"source kept, but not the client's", [](Entry& entry) { entry.source_kept = 1; }},
        {"seen in the future", [&](Entry& entry) { entry.last_seen = {now.value + 2'001}; }},
        {"opened in the future", [&](Entry& entry) { entry.opened_at = {now.value + 2'001}; }},
        {"opened after it was seen", [&](Entry& entry) { entry.last_seen = {now.value - 2'001}; }},
    };
    for (const auto& [name, damage] : cases) {
        SCOPED_TRACE(name);
        VirtualGateway heir;
        expect_lost(adopted_by(heir, {web()}, [&](Left& left) { damage(left.entry(former)); }),
                    NotAdopted::Damaged);
    }
}

// A newer build has left a TCP state that this one does not know: that connection alone is lost.
TEST_F(Adoption, ConvertsATableOfAnotherLayout) {
    open(3);
    Prng random;
    VirtualGateway heir;
    std::vector<AlignedMemory> memory;
    conn::TableDescription layout;
    const adopt::Report report = adopted_by(heir, {web()}, [&](Left& left) {
        left.entry(former).state = conn::kTcpStates;
        const conn::TableDescription own = conn::describe_tables(former.options().connections);
        layout = random_layout(random, own);
        memory.push_back(in_layout(left.tables.connections.front(), own, layout, random));
        left.tables.connections.front() = memory.back().span();
        left.tables.layout = layout;
    });
    EXPECT_EQ(report.converted_from, layout.version);
    EXPECT_EQ(report.all_adopted(), 2u);
    expect_lost(report, NotAdopted::UnknownValue);
    for (const L4Port port : {L4Port{40'001}, L4Port{40'002}}) {
        EXPECT_EQ(heir.send(segment(port, "S")).frame, former.send(segment(port, "S")).frame);
    }
}

// The description is no part of the tables: it may belong to others.
TEST_F(Adoption, NeedsATableOfTheDescribedLayout) {
    open();
    VirtualGateway other_version, too_long;
    const auto described = [&](const std::function<void(conn::TableDescription&)>& change) {
        return [&, change](Left& left) {
            left.tables.layout = conn::describe_tables(former.options().connections);
            change(*left.tables.layout);
        };
    };
    expect_lost(adopted_by(other_version, {web()}, described([](auto& layout) { ++layout.version; })),
                NotAdopted::TableDamaged);
    expect_lost(adopted_by(too_long, {web()}, described([](auto& layout) { layout.units += 2; })),
                NotAdopted::TableDamaged);
}

// Counters of two cores differ a little.
TEST_F(Adoption, CorrectsATimeThatIsSlightlyAhead) {
    open();
    VirtualGateway heir;
    const adopt::Report report = adopted_by(heir, {web()}, [&](Left& left) {
        left.entry(former).last_seen.value += 2'000;
        left.entry(former).opened_at.value += 2'000;
    });
    ASSERT_EQ(report.all_adopted(), 1u);
    EXPECT_EQ(heir.worker(0).connections.at({0}).last_seen, former.now_coarse());
    EXPECT_EQ(heir.worker(0).connections.at({0}).opened_at, former.now_coarse());
}

TEST_F(Adoption, CountsTheTimeAwayAsIdle) {
    open();
    former.advance_seconds(59);
    VirtualGateway in_time, late;
    EXPECT_EQ(adopted_by(in_time, {web()}).all_adopted(), 1u);
    former.advance_seconds(3);
    expect_lost(adopted_by(late, {web()}), NotAdopted::Expired);
}

TEST_F(Adoption, NeedsTheFrontendOfTheSameService) {
    open();
    const auto named = [](const char* name) {
        TestService service = web();
        service.name = name;
        return service;
    };
    TestService elsewhere = web();
    elsewhere.frontends = {{kVip, 81}};
    VirtualGateway without, renamed, damaged, unnamed;
    expect_lost(adopted_by(without, {elsewhere}), NotAdopted::NoFrontend);
    expect_lost(adopted_by(renamed, {named("web2")}), NotAdopted::NoFrontend);
    expect_lost(adopted_by(damaged, {web()}, [&](Left& left) { left.entry(former).service = {9}; }),
                NotAdopted::NoFrontend);
    EXPECT_EQ(
        adopted_by(unnamed, {named("web2")}, [](Left& left) { left.tables.services.reset(); }).all_adopted(),
        1u)
        << "without names the addresses decide";
}

TEST_F(Adoption, NeedsTheEndpoint) {
    open();
    VirtualGateway without, kept;
    expect_lost(adopted_by(without, {web({12})}), NotAdopted::NoEndpoint);
    const adopt::Report report = adopted_by(kept, {web({12})}, [](Left& left) {
        left.tables.kept_endpoints.push_back({ServiceId{0}, BackendId{7}, backend_address(11), 9376});
    });
    EXPECT_EQ(report.all_adopted(), 1u);
    EXPECT_EQ(kept.worker(0).connections.at({0}).backend, BackendId{7});
    EXPECT_EQ(kept.worker(0).counters.backends[7].open.read(), 1u);
}

// The endpoint, the frontend, or both are gone from the Service, and the control plane keeps one of two
// backends.
TEST_F(Adoption, KeepsFlowsOfAServiceThatLostTheirEndpointOrFrontend_DRAIN004_DRAIN007) {
    former.publish({web({11, 12})});
    open(64);
    TestService elsewhere = web({11, 12});
    elsewhere.frontends = {{kVip, 81}};
    TestService both = elsewhere;
    both.backends = {13};
    for (const auto& [now, why] :
         {std::pair{web({13}), NotAdopted::NoEndpoint}, std::pair{elsewhere, NotAdopted::NoFrontend},
          std::pair{both, NotAdopted::NoFrontend}}) {
        std::vector<adopt::LeavingFlows> asked;
        VirtualGateway heir({.workers = 2});
        const adopt::Report report = adopted_by(heir, {now}, [&](Left& left) {
            left.tables.keep_leaving = [&](const adopt::LeavingFlows& flows) {
                asked.push_back(flows);
                return flows.endpoint.address == backend_address(11) ? BackendId{70} : BackendId{};
            };
        });
        ASSERT_EQ(asked.size(), 2u) << "once for each endpoint";
        EXPECT_EQ(asked[0].service, ServiceId{0});
        EXPECT_EQ(asked[0].frontend, (SocketAddress{kVip, 80}));
        EXPECT_EQ(asked[0].endpoint, (SocketAddress{backend_address(11), 9376}));
        EXPECT_GT(report.all_adopted(), 0u);
        EXPECT_GT(report.of(why), 0u);
        EXPECT_EQ(report.all_adopted() + report.of(why), 64u);
        EXPECT_EQ(report.all_lost(), report.of(why));
        EXPECT_EQ(heir.connections(), report.all_adopted());
        EXPECT_EQ(heir.count(stats::Counter::AdoptedConnections), report.all_adopted());
        EXPECT_EQ(heir.worker(0).counters.backends[70].open.read() +
                      heir.worker(1).counters.backends[70].open.read(),
                  report.all_adopted());
        uint32_t continued = 0;
        for (uint32_t n = 0; n < 64; ++n) {
            const auto again = segment(static_cast<L4Port>(40'000 + n), "S");
            const Outcome expected = former.send(again), outcome = heir.send(again);
            if (key_of(expected.frame).destination == backend_address(11)) {
                ++continued;
                EXPECT_EQ(outcome.frame, expected.frame);
            } else if (outcome.verdict == Verdict::Transmit) {
                EXPECT_EQ(key_of(outcome.frame).destination, backend_address(13)) << "a new flow";
            }
        }
        EXPECT_EQ(continued, report.all_adopted());
        // An order ends them, as after the removal of an endpoint.
        heir.order({.backend = BackendId{70}, .frontend = {}});
        heir.work_off_orders();
        EXPECT_EQ(heir.count(stats::Counter::EndedConnections), report.all_adopted());
    }
}

TEST_F(Adoption, KeepsNoFlowOfAServiceThatIsGoneOrNotKnown) {
    open();
    VirtualGateway gone, unnamed;
    TestService other = web({12});
    other.name = "other";
    const auto keep_all = [](Left& left) {
        left.tables.keep_leaving = [](const adopt::LeavingFlows&) { return BackendId{70}; };
    };
    expect_lost(adopted_by(gone, {other}, keep_all), NotAdopted::NoFrontend);
    expect_lost(adopted_by(unnamed, {web({12})},
                           [&](Left& left) {
                               keep_all(left);
                               left.tables.services.reset();
                           }),
                NotAdopted::NoEndpoint);
}

TEST_F(Adoption, NeedsASnatPortOfItsOwn) {
    open();
    const L4Port used = former.worker(0).connections.connection({0}).reverse.destination_port;
    const bool is_low = used < 30'000;
    VirtualGateway other_range({.snat_ports = {static_cast<L4Port>(is_low ? 30'000 : 1'024),
                                               static_cast<L4Port>(is_low ? 65'535 : 29'999)}});
    expect_lost(adopted_by(other_range, {web()}), NotAdopted::NoSnatPort);
    VirtualGateway same;
    expect_lost(adopted_by(same, {web()},
                           [&](Left& left) {
                               Entry& entry = left.entry(former);
                               entry.v4_addresses[1] ^= uint64_t{1} << 56;  // of the SNAT address
                           }),
                NotAdopted::NoSnatPort);
}

// The role in the share has changed, or another gateway opened the flow.
TEST_F(Adoption, TakesSnatPortsOfBothPartsOfAShare) {
    const IpAddr shared = IpAddr::v4(198, 51, 200, 3);
    const auto of_part = [&](nat::PortPart part) {
        return VirtualGateway::Options{
            .more_snat = {{.address = shared, .egress = {}, .group = 4, .part = part}}};
    };
    TestService in_share = web();
    in_share.snat_group = 4;
    for (const nat::PortPart before : {nat::PortPart::Primary, nat::PortPart::Heir}) {
        VirtualGateway opener(of_part(before));
        opener.publish({in_share});
        for (uint16_t port = 40'000; port < 40'040; ++port) {
            ASSERT_EQ(opener.send(segment(port, "S")).verdict, Verdict::Transmit);
        }
        for (const nat::PortPart after : {nat::PortPart::Primary, nat::PortPart::Heir, nat::PortPart::None}) {
            VirtualGateway heir(of_part(after));
            heir.publish({after == nat::PortPart::None ? web() : in_share});
            const Left left(opener, heir);
            const adopt::Report report = heir.adopt(left.tables, opener);
            expect_lost(report, NotAdopted::NoSnatPort, 0);
            ASSERT_EQ(heir.connections(), 40U);
            const packet::FlowKey reverse = heir.worker(0).connections.connection({0}).reverse;
            EXPECT_EQ(reverse.destination, shared);
            EXPECT_EQ(reverse.destination_port % 8 == 7, before == nat::PortPart::Heir);
            // A new flow has a port of the new part.
            const Outcome opened = heir.send(segment(50'000, "S"));
            ASSERT_EQ(opened.verdict, Verdict::Transmit);
            EXPECT_EQ(key_of(opened.frame).source, after == nat::PortPart::None ? kClusterAddress : shared);
            if (after != nat::PortPart::None) {
                EXPECT_EQ(key_of(opened.frame).source_port % 8 == 7, after == nat::PortPart::Heir);
            }
        }
    }
}

TEST_F(Adoption, TakesATupleOnce) {
    open();
    VirtualGateway heir;
    const adopt::Report report = adopted_by(heir, {web()}, [](Left& left) {
        left.tables.connections.push_back(left.tables.connections.front());
    });
    EXPECT_EQ(report.all_adopted(), 1u);
    expect_lost(report, NotAdopted::Duplicate);
    EXPECT_EQ(heir.worker(0).snat_ports.in_use(), 1u);
}

TEST_F(Adoption, EndsWhenTheTableIsFull) {
    open(10);
    VirtualGateway heir({.connections = 4});
    const adopt::Report report = adopted_by(heir, {web()});
    EXPECT_EQ(report.all_adopted(), 4u);
    expect_lost(report, NotAdopted::TableFull, 6);
    EXPECT_EQ(heir.worker(0).snat_ports.in_use(), 4u);
    EXPECT_EQ(heir.worker(0).counters.services[0].connections.read(), 4u);
}

// A moved flow that has ended is opened by the worker on which placement puts it, like any new flow.
TEST_F(Adoption, OpensAnEndedFlowWhereItBelongs) {
    open(64);
    VirtualGateway heir({.workers = 4});
    const adopt::Report report = adopted_by(heir, {web()});
    ASSERT_EQ(report.all_adopted(), 64u);
    EXPECT_GT(report.moved, 0u);
    for (uint32_t n = 0; n < 64; ++n) {
        EXPECT_EQ(heir.send(segment(static_cast<L4Port>(40'000 + n), "S")).verdict, Verdict::Transmit);
    }
    EXPECT_EQ(heir.count(stats::Counter::NewConnections), 0u);
    heir.advance_seconds(100);
    heir.age();
    ASSERT_EQ(heir.connections(), 0u);
    VirtualGateway fresh({.workers = 4, .owner_key = heir.owner_key()});
    fresh.publish({web()});
    for (uint32_t n = 0; n < 64; ++n) {
        const auto syn = segment(static_cast<L4Port>(40'000 + n), "S");
        const WorkerId receiver{static_cast<uint8_t>(n % 4)};
        const Outcome outcome = heir.send(syn, kUp, receiver);
        EXPECT_EQ(outcome.verdict, Verdict::Transmit);
        EXPECT_EQ(outcome.worker, fresh.send(syn, kUp, receiver).worker);
    }
    EXPECT_EQ(heir.count(stats::Counter::NewConnections), 64u);
}

std::vector<uint8_t> segment_of(const FlowKey& key, const MacAddr& from, const MacAddr& to,
                                const char* flags) {
    return eth()
        .from_mac(from.to_string())
        .to_mac(to.to_string())
        .ipv4(key.source.to_string(), key.destination.to_string())
        .tcp(key.source_port, key.destination_port, flags)
        .build();
}

// Flows to an endpoint on the gateway's host keep the client's address, and perhaps get a port that leads the
// host's answers to their owner. Flows of the host itself come through a twin.
class AdoptionOfTheHosts : public testing::TestWithParam<std::tuple<uint32_t, uint32_t, lb::SourceMode>> {};
INSTANTIATE_TEST_SUITE_P(All, AdoptionOfTheHosts,
                         testing::Combine(testing::Values(1u, 2u, 5u), testing::Values(1u, 3u, 5u),
                                          testing::Values(lb::SourceMode::Translate, lb::SourceMode::Keep)));

TEST_P(AdoptionOfTheHosts, ContinuesOnAnyWorker_EP007) {
    const auto& [former_workers, heir_workers, source] = GetParam();
    // The NIC of the heir is predictable: packets of the host have no queue that its rule describes.
    const nat::ReplyHash hash = hash_in_turn(128, heir_workers);
    const auto by_hash = [&](const FlowKey& key) {
        return hash.worker_of[plain_rss(hash.key, key) % hash.worker_of.size()];
    };
    VirtualGateway former({.workers = former_workers});
    VirtualGateway heir(
        {.workers = heir_workers, .flow_stays_on_queue = true, .up_hash = hash, .cluster_hash = hash});
    constexpr uint8_t kHostItself = 1;
    TestService to_host = web({kHostItself});
    to_host.source = source;
    const TestService from_host{.name = "far", .frontends = {{kVip, 81}}, .backends = {11, 12}};
    former.publish({to_host, from_host});
    heir.publish({from_host, to_host});
    auto any = [n = 0U](uint32_t workers) mutable {
        return WorkerId{static_cast<uint8_t>(n++ * 7 % workers)};
    };
    std::vector<std::pair<FlowKey, FlowKey>> flows;  // as sent by the client, as it leaves
    for (uint8_t n = 0; n < 40; ++n) {
        const auto port = static_cast<L4Port>(40'000 + n);
        const FlowKey to{IpAddr::v4(198, 51, 100, n), kVip, port, 80, Protocol::Tcp, {}};
        const Outcome in = former.send(segment_of(to, kClientMac, kUpMac, "S"), kUp, any(former_workers));
        ASSERT_EQ(in.verdict, Verdict::Punt);
        flows.emplace_back(to, key_of(in.frame));
        const FlowKey of{kUpAddress, kVip, port, 81, Protocol::Tcp, {}};
        const Outcome out =
            former.send_from_host(segment_of(of, kUpMac, kClientMac, "S"), kUp, any(former_workers));
        ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
        flows.emplace_back(of, key_of(out.frame));
    }
    const adopt::Report report = heir.adopt(former.left_to(heir), former);
    ASSERT_EQ(report.all_adopted(), flows.size());
    for (VirtualGateway* gateway : {&former, &heir}) {
        const uint32_t workers = gateway->options().workers;
        const auto receiver = [&](const FlowKey& key) {
            return gateway == &former ? any(workers) : by_hash(key);
        };
        for (const auto& [sent, leaves] : flows) {
            const bool to_the_host = sent.destination_port == 80;
            const FlowKey answer = leaves.reversed();
            const MacAddr endpoint = backend_mac(answer.source.bytes()[15]);
            const Outcome back =
                to_the_host
                    ? gateway->send_from_host(segment_of(answer, kUpMac, kClientMac, "SA"), kUp, any(workers))
                    : gateway->send(segment_of(answer, endpoint, kClusterMac, "SA"), kCluster,
                                    receiver(answer));
            ASSERT_EQ(back.verdict, to_the_host ? Verdict::Transmit : Verdict::Punt) << sent.to_string();
            EXPECT_EQ(key_of(back.frame), sent.reversed());
            const Outcome again =
                to_the_host
                    ? gateway->send(segment_of(sent, kClientMac, kUpMac, "A"), kUp, receiver(sent))
                    : gateway->send_from_host(segment_of(sent, kUpMac, kClientMac, "A"), kUp, any(workers));
            ASSERT_EQ(again.verdict, to_the_host ? Verdict::Punt : Verdict::Transmit) << sent.to_string();
            EXPECT_EQ(key_of(again.frame), leaves);
        }
        EXPECT_EQ(gateway->connections(), flows.size());
    }
}

TEST_F(Adoption, KeepsClientsAtTheirEndpoints_AFF001) {
    TestService service = web({11, 12, 13, 14, 15, 16});
    service.affinity_timeout_s = 600;
    service.affinity_epoch = 3;
    former.publish({service});
    std::vector<IpAddr> endpoints;
    const auto client = [](int n) { return "198.51.100." + std::to_string(n + 1); };
    for (int n = 0; n < 40; ++n) {
        const Outcome opened = former.send(segment(40'000, "S", client(n).c_str()));
        endpoints.push_back(key_of(opened.frame).destination);
    }
    TestService renumbered = service;
    renumbered.affinity_epoch = 8;
    std::ranges::reverse(renumbered.backends);
    VirtualGateway heir, late, changed;
    const adopt::Report report = adopted_by(heir, {renumbered});
    EXPECT_EQ(report.affinity_adopted, 40u);
    EXPECT_EQ(report.affinity_lost, 0u);
    for (int n = 0; n < 40; ++n) {
        const Outcome opened = heir.send(segment(50'000, "S", client(n).c_str()));
        EXPECT_EQ(key_of(opened.frame).destination, endpoints[static_cast<size_t>(n)]);
    }
    EXPECT_EQ(heir.count(stats::Counter::AffinityHits), 40u);

    const auto gone = static_cast<uint64_t>(std::ranges::count(endpoints, backend_address(11)));
    TestService smaller = service;
    smaller.backends = {12, 13, 14, 15, 16};
    const adopt::Report without_one = adopted_by(changed, {smaller});
    EXPECT_EQ(without_one.affinity_adopted, 40u - gone);
    EXPECT_EQ(without_one.affinity_lost, gone);
    former.advance_seconds(601);
    EXPECT_EQ(adopted_by(late, {service}).affinity_lost, 40u);
}

TEST(NotAdoptedName, IsUniqueForEachReason) {
    std::set<std::string_view> names;
    for (size_t reason = 0; reason < adopt::kNotAdopted; ++reason) {
        names.insert(to_string(static_cast<NotAdopted>(reason)));
    }
    EXPECT_EQ(names.size(), adopt::kNotAdopted);
    EXPECT_EQ(to_string(NotAdopted::NoSnatPort), "no_snat_port");
}

}  // namespace adoption_test
}  // namespace penstock::test
