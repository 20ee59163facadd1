// SPDX-License-Identifier: Apache-2.0
// Real workers on real lcores over net_ring: the guarantees of the stages, tested with the loop, the rings
// and the publication around them.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "dataplane/adopt/former.hpp"
#include "dataplane/bfd/frame.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/tx.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "dataplane/worker/worker_set_impl.hpp"
#include "tests/bound/allocation_count.hpp"
#include "tests/bound/ring_ports.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/reply_hashes.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/soft_nic/soft_nic.hpp"
#include "tests/support/vlan_tags.hpp"

namespace penstock::test {
namespace worker_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

rte_mempool* pool() {
    // Every ring of four workers full at once: 8 x 2,048 on the wires, 4 x 2,048 handed over, 1,792 punted,
    // and the packets being processed.
    static rte_mempool* made =
        rte_pktmbuf_pool_create("worker_test", 32'767, 0, 0, 2048, static_cast<int>(rte_socket_id()));
    return made;
}

packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value()) << to_scapy(frame);
    return parsed.key;
}

PacketBuilder from_client(L4Port port, const char* flags = "S") {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("10.80.1.2", "80.11.12.10")
        .tcp(port, 80, flags);
}
std::vector<uint8_t> reply_to(const packet::FlowKey& inside, const char* flags = "SA") {
    return eth()
        .from_mac(backend_mac(inside.destination.bytes()[15]).to_string())
        .to_mac(kClusterMac.to_string())
        .ipv4(inside.destination.to_string(), inside.source.to_string())
        .tcp(inside.destination_port, inside.source_port, flags)
        .build();
}

// Snapshots as built by the stage tests.
std::unique_ptr<config::Snapshot> snapshot_of(VirtualGateway& gateway,
                                              const std::vector<TestService>& services) {
    gateway.publish(services);
    return std::make_unique<config::Snapshot>(gateway.snapshot());
}

// Of each port.
struct Queues {
    uint16_t up = 0, cluster = 0;  // 0: one for each worker
};

class Workers : public testing::TestWithParam<uint32_t> {
 protected:
    void SetUp() override {
        if (kUnderThreadSanitizer) {
            GTEST_SKIP() << "DPDK's lcores and rings synchronise by barriers, inside libraries, that TSan "
                            "cannot see; publish_test has threads "
                            "of its own";
        }
        ASSERT_TRUE(start_eal());
    }

    void start(uint32_t workers, uint16_t tx_queues_of_cluster = 0,
               worker::IdleMode idle = worker::IdleMode::Poll, Queues wanted = {}) {
        const auto granted = [&](uint16_t queues) {
            return queues == 0 ? static_cast<uint16_t>(workers) : queues;
        };
        queues_ = {granted(wanted.up), granted(wanted.cluster)};
        static int run = 0;
        const std::string suffix = std::to_string(run++);
        up_ = std::make_unique<RingPort>("up" + suffix, queues_.up, pool());
        cluster_ = std::make_unique<RingPort>("cl" + suffix, queues_.cluster, pool());
        worker::WorkerSetOptions options;
        options.connections_per_worker = 16'384;
        for (uint32_t w = 0; w < workers; ++w) {
            options.lcores.push_back(w + 1);
            options.cpus.push_back(worker_cpu());
        }
        options.ports = {
            {kUp, up_->dpdk_port(), queues_.up, queues_.up, false, false, kUpMac},
            {kCluster, cluster_->dpdk_port(), queues_.cluster,
             tx_queues_of_cluster == 0 ? queues_.cluster : tx_queues_of_cluster, false, false, kClusterMac}};
        for (worker::PortPlan& port : options.ports) {
            port.reply_hash = hash_;
            port.flow_stays_on_queue = hash_.has_value();
        }
        options.idle = idle;
        options.table_memory = table_memory_;
        options.former = former_;
        options.flow_records = flow_records_;
        options.has_bfd = has_bfd_;
        auto started = worker::WorkerSet::start(std::move(options), snapshot_of(gateway_, {web_}));
        ASSERT_TRUE(started.has_value()) << started.error().what;
        workers_ = std::move(*started);
    }
    void TearDown() override { workers_.reset(); }

    [[nodiscard]] uint64_t sum(stats::Counter counter) const {
        uint64_t total = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            total += workers_->inspect().counter({w}, counter);
        }
        return total;
    }
    // For every worker; false if one of them does not reach the number.
    [[nodiscard]] bool all_have_slept(uint64_t times) const {
        return comes_true([&] {
            uint32_t done = 0;
            for (uint8_t w = 0; w < GetParam(); ++w) {
                done += workers_->inspect().counter({w}, stats::Counter::Sleeps) >= times ? 1 : 0;
            }
            return done == GetParam();
        });
    }

    // Null if no packet comes.
    rte_mbuf* take_punted(NicPortId port) {
        rte_mbuf* punted = nullptr;
        for (const Patience patience; take_punted(port, {&punted, 1}) == 0 && patience.wait();) {
        }
        return punted;
    }
    // Of any class.
    size_t take_punted(NicPortId port, std::span<rte_mbuf*> out) {
        size_t taken = 0;
        for (const PuntClass punt_class : {PuntClass::Link, PuntClass::Routing, PuntClass::Other}) {
            taken += workers_->take_punted(port, punt_class, out.subspan(taken));
        }
        return taken;
    }

    // The queue selected by the NIC of hash_.
    [[nodiscard]] uint16_t rss(const std::vector<uint8_t>& frame) const {
        return hash_->worker_of[plain_rss(hash_->key, key_of(frame)) % hash_->worker_of.size()].value;
    }

    std::optional<nat::ReplyHash> hash_;  // of both ports
    worker::TableMemory table_memory_;    // empty: EAL's
    std::optional<adopt::FormerTables> former_;
    std::optional<pipeline::FlowSelection> flow_records_;
    bool has_bfd_ = false;
    Queues queues_;
    TestService web_{.frontends = {{kVip, 80}}, .backends = {11, 12, 13}};
    VirtualGateway gateway_;
    std::unique_ptr<RingPort> up_, cluster_;
    std::unique_ptr<worker::WorkerSet> workers_;
};
INSTANTIATE_TEST_SUITE_P(Count, Workers, testing::Values(1u, 2u, 4u));

TEST_P(Workers, ForwardBothWaysWhateverTheQueue_NAT001) {
    // one transmit queue on the cluster side: workers without one send through another worker
    start(GetParam(), 1);
    Prng random;
    const auto any_queue = [&] { return static_cast<uint16_t>(random.below(GetParam())); };
    std::set<std::string> inside;
    for (L4Port port = 1000; port < 1200; ++port) {
        up_->put(from_client(port).build(), any_queue());
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty()) << port;
        EXPECT_TRUE(inside.insert(key_of(syn).to_string()).second);
        cluster_->put(reply_to(key_of(syn)), any_queue());
        const std::vector<uint8_t> answer = up_->take_frame();
        ASSERT_FALSE(answer.empty()) << port;
        EXPECT_EQ(key_of(answer), (packet::FlowKey{kVip, kClient, 80, port, Protocol::Tcp, {}}));
        // Established, because a half-open connection may expire while the test is slow.
        up_->put(from_client(port, "A").build(), any_queue());
        EXPECT_EQ(key_of(cluster_->take_frame()), key_of(syn));
    }
    const worker::Inspector inspect = workers_->inspect();
    uint64_t opened = 0, handed_off = 0, handed_in = 0;
    for (uint8_t w = 0; w < GetParam(); ++w) {
        opened += inspect.counter({w}, stats::Counter::NewConnections);
        handed_off += inspect.counter({w}, stats::Counter::HandedOff);
        handed_in += inspect.counter({w}, stats::Counter::HandedIn);
    }
    EXPECT_EQ(opened, 200u);
    EXPECT_EQ(handed_off, handed_in);
    EXPECT_EQ(handed_off > 0, GetParam() > 1);
    uint32_t listed = 0;
    inspect.for_each_connection([&](const worker::ConnectionView& view) {
        EXPECT_EQ(view.forward.destination, kVip);
        EXPECT_EQ(view.state, "established");
        ++listed;
        return true;
    });
    EXPECT_EQ(listed, 200u);
}

// The number of packets counts that the worker runs its counting stages.
TEST_P(Workers, FlowRecordsOfAllWorkersHaveTheTimeOfTheClock_ANN11) {
    flow_records_ = pipeline::FlowSelection{.by_default = true};
    start(GetParam());
    const auto clock_ms = [] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
            .count();
    };
    const int64_t began_ms = clock_ms();
    constexpr size_t kConnections = 100;
    for (L4Port port = 1000; port < 1000 + kConnections; ++port) {
        const auto queue = static_cast<uint16_t>(port % GetParam());
        up_->put(from_client(port).build(), queue);
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty()) << port;
        cluster_->put(reply_to(key_of(syn)), queue);
        ASSERT_FALSE(up_->take_frame().empty()) << port;
    }
    std::vector<pipeline::TimedFlowRecord> records(kConnections + 1);
    size_t taken = 0;
    ASSERT_TRUE(comes_true([&] {
        taken += workers_->take_flow_records(std::span(records).subspan(taken));
        return taken >= kConnections;
    }));
    EXPECT_EQ(taken, kConnections);
    std::set<L4Port> ports;
    std::set<uint8_t> workers;
    for (const pipeline::TimedFlowRecord& timed : std::span(records).first(taken)) {
        EXPECT_EQ(timed.record.event, pipeline::FlowRecord::Event::Begin);
        ports.insert(timed.record.forward.source_port);
        workers.insert(timed.record.worker.value);
        EXPECT_GE(timed.at_ms, began_ms - 50);
        EXPECT_LE(timed.at_ms, clock_ms() + 50);
        EXPECT_EQ(timed.started_ms, timed.at_ms);
    }
    EXPECT_EQ(ports.size(), kConnections);
    EXPECT_EQ(workers.size(), GetParam());
    EXPECT_EQ(workers_->flow_record_counts().written, kConnections);
    EXPECT_EQ(workers_->flow_record_counts().lost, 0U);
    workers_->stop();
    uint64_t replies = 0;
    for (const auto& memory : workers_->impl().memory) {
        for (const pipeline::FlowLog::Flow& flow : memory->flow_log->flows) {
            replies += flow.passed[1].packets;
        }
    }
    EXPECT_EQ(replies, kConnections);
}

TEST_P(Workers, SnatUseFollowsConnections_NAT001) {
    start(GetParam());
    const worker::Inspector inspect = workers_->inspect();
    const auto tcp = [&inspect] {
        const std::vector<nat::SnatUse> uses = inspect.snat_use();
        const auto found = std::ranges::find_if(uses, [](const nat::SnatUse& use) {
            return use.protocol == Protocol::Tcp && use.ports > 0 && use.in_use > 0;
        });
        return found == uses.end() ? nat::SnatUse{} : *found;
    };
    EXPECT_EQ(tcp(), nat::SnatUse{});
    std::map<IpAddr, uint64_t> by_endpoint;
    IpAddr snat;
    for (L4Port port = 1000; port < 1060; ++port) {
        up_->put(from_client(port).build(), static_cast<uint16_t>(port % GetParam()));
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty()) << port;
        ++by_endpoint[key_of(syn).destination];
        snat = key_of(syn).source;
    }
    const uint64_t busiest =
        std::ranges::max_element(by_endpoint, {}, [](const auto& entry) { return entry.second; })->second;
    EXPECT_GT(by_endpoint.size(), 1u);
    EXPECT_EQ(tcp(), (nat::SnatUse{.address = snat,
                                   .protocol = Protocol::Tcp,
                                   .ports = 64'512,
                                   .in_use = 60,
                                   .busiest_endpoint = busiest}));
    EXPECT_EQ(inspect.own_buffers().name, "own_segments");
    EXPECT_EQ(inspect.own_buffers().buffers, limits::kOwnSegmentBuffers);
    EXPECT_EQ(inspect.own_buffers().in_use, 0u);
}

// A frame in segments, as delivered by a NIC with buffers smaller than its frames.
rte_mbuf* in_pieces(const std::vector<uint8_t>& frame, const std::vector<size_t>& lengths) {
    rte_mbuf* first = nullptr;
    size_t at = 0;
    for (const size_t length : lengths) {
        rte_mbuf* piece = rte_pktmbuf_alloc(pool());
        PENSTOCK_CHECK(piece != nullptr);
        std::memcpy(rte_pktmbuf_append(piece, static_cast<uint16_t>(length)), frame.data() + at, length);
        at += length;
        if (first == nullptr) {
            first = piece;
        } else {
            PENSTOCK_CHECK(rte_pktmbuf_chain(first, piece) == 0);
        }
    }
    PENSTOCK_CHECK(at == frame.size() && first->pkt_len == frame.size());
    return first;
}

// The stages read one contiguous frame. A frame in several segments is joined if it fits into the first one,
// otherwise it is dropped under its reason. No header is read across the end of a segment, and every buffer
// is freed.
TEST_P(Workers, FramesInPiecesAreJoinedOrDroppedByName_NAT001) {
    start(GetParam());
    Prng random;
    const auto any_queue = [&] { return static_cast<uint16_t>(random.below(GetParam())); };
    up_->put(from_client(1'000).build(), any_queue());
    const std::vector<uint8_t> whole = cluster_->take_frame();
    ASSERT_FALSE(whole.empty());
    const std::vector<uint8_t> again = from_client(1'000).build();
    for (size_t cut = 1; cut < again.size(); ++cut) {
        up_->put(in_pieces(again, {cut, again.size() - cut}), any_queue());
        ASSERT_EQ(cluster_->take_frame(), whole) << "cut at " << cut;
    }
    up_->put(in_pieces(again, std::vector<size_t>(again.size(), 1)), any_queue());
    ASSERT_EQ(cluster_->take_frame(), whole) << "a byte a piece";

    const std::vector<uint8_t> large = from_client(1'000).payload(std::vector<uint8_t>(5'000)).build();
    const auto too_long = [&] {
        uint64_t total = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            total += workers_->inspect().drops({w}, DropReason::FrameTooLong);
        }
        return total;
    };
    constexpr uint32_t kLarge = 100;
    const unsigned free_buffers = rte_mempool_avail_count(pool());
    for (uint32_t n = 0; n < kLarge; ++n) {
        const size_t third = large.size() / 3;
        up_->put(in_pieces(large, {third, third, large.size() - 2 * third}), any_queue());
    }
    for (const Patience patience; too_long() < kLarge && patience.wait();) {
    }
    EXPECT_EQ(too_long(), kLarge);
    EXPECT_EQ(rte_mempool_avail_count(pool()), free_buffers);
    up_->put(again, any_queue());
    EXPECT_EQ(cluster_->take_frame(), whole) << "and the next frame is served";
}

// Each port has the queues granted by its device: an uplink with one and a cluster side with one for each
// worker, and the other way round. A worker without a queue of its own still gets its share of the flows.
TEST_P(Workers, ForwardBetweenPortsOfUnequalQueues_NAT001) {
    for (const Queues wanted : {Queues{.up = 1}, Queues{.cluster = 1}}) {
        start(GetParam(), 0, worker::IdleMode::Poll, wanted);
        Prng random;
        for (L4Port port = 1000; port < 1100; ++port) {
            up_->put(from_client(port).build(), static_cast<uint16_t>(random.below(queues_.up)));
            const std::vector<uint8_t> syn = cluster_->take_frame();
            ASSERT_FALSE(syn.empty()) << port;
            cluster_->put(reply_to(key_of(syn)), static_cast<uint16_t>(random.below(queues_.cluster)));
            const std::vector<uint8_t> answer = up_->take_frame();
            ASSERT_FALSE(answer.empty()) << port;
            EXPECT_EQ(key_of(answer), (packet::FlowKey{kVip, kClient, 80, port, Protocol::Tcp, {}}));
        }
        uint64_t connections = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            const uint64_t own = workers_->inspect().worker({w}).connections;
            EXPECT_GT(own, 0u) << int{w};
            connections += own;
        }
        EXPECT_EQ(connections, 100u);
        workers_.reset();
    }
}

// With predictable RSS no packet crosses a ring. If the NIC does not behave as configured, all packets
// arrive, and the port's counters show it.
TEST_P(Workers, BringRepliesHomeByRssAndCountWhatIsMisplaced_NAT001) {
    const uint32_t workers = GetParam();
    hash_ = hash_in_turn(128, workers);
    start(workers);
    const worker::Inspector inspect = workers_->inspect();
    std::vector<packet::FlowKey> inside;
    for (L4Port port = 1000; port < 1200; ++port) {
        const std::vector<uint8_t> opening = from_client(port).build();
        up_->put(opening, rss(opening));
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty()) << port;
        inside.push_back(key_of(syn));
        const std::vector<uint8_t> reply = reply_to(inside.back());
        cluster_->put(reply, rss(reply));
        ASSERT_FALSE(up_->take_frame().empty()) << port;
    }
    for (const NicPortId port : {kUp, kCluster}) {
        const worker::PortTotals totals = inspect.port(port);
        EXPECT_EQ(totals.received, 200u);
        EXPECT_EQ(totals.handed_off, 0u);
        EXPECT_EQ(totals.replies_misplaced, 0u);
    }
    for (uint32_t i = 0; i < 50; ++i) {
        const std::vector<uint8_t> reply = reply_to(inside[i]);
        cluster_->put(reply, static_cast<uint16_t>((rss(reply) + 1U) % workers));
        ASSERT_FALSE(up_->take_frame().empty()) << i;
    }
    const worker::PortTotals lied = inspect.port(kCluster);
    EXPECT_EQ(lied.received, 250u);
    EXPECT_EQ(lied.handed_off, workers > 1 ? 50u : 0u);
    EXPECT_EQ(lied.replies_misplaced, workers > 1 ? 50u : 0u);
    EXPECT_EQ(lied.handoff_lost, 0u);
    EXPECT_EQ(inspect.port(kUp).handed_off, 0u);

    const auto step_of = [&](const packet::FlowKey& key, NicPortId port, const std::string& stage) {
        const worker::Explanation explanation = inspect.explain({.key = key, .port = port, .receiver = {0}});
        const auto found = std::ranges::find(explanation.steps, stage, &worker::ExplainStep::stage);
        return found == explanation.steps.end() ? std::string() : found->finding;
    };
    const std::string owner = step_of(inside[0].reversed(), kCluster, "owner");
    const std::string snat = step_of({kClient, kVip, 999, 80, Protocol::Tcp, {}}, kUp, "snat");
    if (workers == 1) {
        EXPECT_EQ(owner, "worker 0, the only worker");
        EXPECT_NE(snat.find("of worker 0's share"), std::string::npos) << snat;
    } else {
        const std::string home = std::to_string(rss(reply_to(inside[0])));
        EXPECT_EQ(owner.find("worker " + home + ", by RSS of NicPort 1: hash 0x"), 0u) << owner;
        EXPECT_NE(owner.find(" -> worker " + home), std::string::npos) << owner;
        EXPECT_NE(snat.find("a free port for which RSS of NicPort 1 delivers the reply to worker "),
                  std::string::npos)
            << snat;
    }
}

// Packets of a flow that share a receive queue leave in order, whether they cross a ring or not. This also
// holds if the flow's packets arrive by two queues, although no NIC keeps order between queues.
TEST_P(Workers, KeepTheOrderOfAFlowAcrossRings) {
    constexpr uint32_t kFlows = 8, kSegments = 120;
    const uint32_t workers = GetParam();
    hash_ = hash_in_turn(128, workers);
    start(workers);
    std::vector<packet::FlowKey> inside;
    for (uint32_t f = 0; f < kFlows; ++f) {
        const std::vector<uint8_t> opening = from_client(static_cast<L4Port>(2000 + f)).build();
        up_->put(opening, rss(opening));
        inside.push_back(key_of(cluster_->take_frame()));
        cluster_->put(reply_to(inside[f]), rss(reply_to(inside[f])));
        ASSERT_FALSE(up_->take_frame().empty());
    }
    for (uint32_t n = 0; n < kSegments; ++n) {
        for (uint32_t f = 0; f < kFlows; ++f) {
            const std::vector<uint8_t> segment =
                eth()
                    .from_mac(backend_mac(inside[f].destination.bytes()[15]).to_string())
                    .to_mac(kClusterMac.to_string())
                    .ipv4(inside[f].destination.to_string(), inside[f].source.to_string())
                    .tcp(inside[f].destination_port, inside[f].source_port, "A")
                    .seq(n)
                    .build();
            // packets of the first flow arrive by turns at its owner and at another worker
            const uint32_t orphaned = f == 0 ? n % 2 : f;
            cluster_->put(segment, static_cast<uint16_t>((rss(segment) + orphaned) % workers));
        }
    }
    std::map<std::pair<L4Port, uint32_t>, uint32_t>
        last;  // by client port, and by the queue's turn if there are two queues
    for (uint32_t i = 0; i < kFlows * kSegments; ++i) {
        const std::vector<uint8_t> frame = up_->take_frame();
        ASSERT_FALSE(frame.empty()) << i;
        packet::Parsed parsed;
        ASSERT_TRUE(packet::parse(frame, parsed).has_value());
        const uint32_t seq = load<Be32>(frame.data() + parsed.l4_offset + 4).host();
        const L4Port client = parsed.key.destination_port;
        const auto [at, is_first] = last.try_emplace({client, client == 2000 ? seq % 2 : 0}, seq);
        if (!is_first) {
            ASSERT_LT(at->second, seq) << client;
            at->second = seq;
        }
    }
    EXPECT_EQ(workers_->inspect().port(kCluster).handoff_lost, 0u);
    EXPECT_EQ(workers_->inspect().port(kCluster).handed_off > 0, workers > 1);
}

TEST_P(Workers, PuntAndCarryWhatLinuxSends) {
    start(GetParam());
    const std::vector<uint8_t> arp =
        eth().to_mac("ff:ff:ff:ff:ff:ff").ether_type(0x0806).payload(std::vector<uint8_t>(46, 7)).build();
    up_->put(arp, 0);
    rte_mbuf* punted = take_punted(kUp);
    ASSERT_NE(punted, nullptr);
    EXPECT_EQ(std::vector<uint8_t>(rte_pktmbuf_mtod(punted, uint8_t*),
                                   rte_pktmbuf_mtod(punted, uint8_t*) + punted->data_len),
              arp);
    ASSERT_EQ(workers_->send_from_host(kCluster, {&punted, 1}), 1u);
    EXPECT_EQ(cluster_->take_frame(), arp);
}

// No thread takes packets for Linux, as when the twin I/O thread is late.
TEST_P(Workers, KeepControlFramesApartFromAFloodForTheHost) {
    start(GetParam());
    constexpr uint32_t kExcess = 300;
    constexpr uint32_t kControl = 30;
    const uint32_t junk = limits::kPuntRing + kExcess;
    const std::vector<uint8_t> datagram = eth()
                                              .from_mac(kClientMac.to_string())
                                              .to_mac(kUpMac.to_string())
                                              .ipv4("10.80.1.2", kUpAddress.to_string())
                                              .udp(5000, 9)
                                              .build();
    const std::vector<uint8_t> arp =
        eth().to_mac("ff:ff:ff:ff:ff:ff").ether_type(0x0806).payload(std::vector<uint8_t>(46, 7)).build();
    const std::vector<uint8_t> bgp = eth()
                                         .from_mac(kClientMac.to_string())
                                         .to_mac(kUpMac.to_string())
                                         .ipv4("10.80.1.2", kUpAddress.to_string())
                                         .tcp(40'000, 179, "A")
                                         .build();
    for (uint32_t i = 0; i < junk; ++i) {
        up_->put(datagram, static_cast<uint16_t>(i % GetParam()));
    }
    for (uint32_t i = 0; i < kControl; ++i) {
        up_->put(arp, static_cast<uint16_t>(i % GetParam()));
        up_->put(bgp, static_cast<uint16_t>(i % GetParam()));
    }
    for (const Patience patience; sum(stats::Counter::RxPackets) < junk + 2 * kControl && patience.wait();) {
    }
    const auto drops = [&](DropReason reason) {
        uint64_t total = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            total += workers_->inspect().drops({w}, reason);
        }
        return total;
    };
    for (const Patience patience;
         sum(stats::Counter::Punted) + drops(DropReason::PuntRingFull) < junk + 2 * kControl &&
         patience.wait();) {
    }
    EXPECT_EQ(drops(DropReason::PuntRingFull), kExcess) << "a ring holds exactly what limits.hpp says";
    EXPECT_EQ(drops(DropReason::PuntControlFull), 0u);
    std::vector<rte_mbuf*> room(2 * limits::kPuntRing);
    const auto take_all = [&](PuntClass punt_class) {
        const size_t taken = workers_->take_punted(kUp, punt_class, room);
        for (size_t i = 0; i < taken; ++i) {
            rte_pktmbuf_free(room[i]);
        }
        return taken;
    };
    EXPECT_EQ(take_all(PuntClass::Link), kControl);
    EXPECT_EQ(take_all(PuntClass::Routing), kControl);
    EXPECT_EQ(take_all(PuntClass::Other), limits::kPuntRing);

    // The excess of a flood of control packets is dropped under a reason of its own.
    for (uint32_t i = 0; i < limits::kPuntLinkRing + 1; ++i) {
        up_->put(arp, static_cast<uint16_t>(i % GetParam()));
    }
    for (const Patience patience; drops(DropReason::PuntControlFull) == 0 && patience.wait();) {
    }
    EXPECT_EQ(drops(DropReason::PuntControlFull), 1u);
    EXPECT_EQ(take_all(PuntClass::Link), limits::kPuntLinkRing);
}

// Frames sent by Linux that no worker got are part of from_host, so that from_host, transmitted and dropped
// frames add up.
TEST_P(Workers, CountWhatLinuxSentAndNoWorkerTook) {
    start(GetParam());
    workers_->count_host_drop(DropReason::FromHostRingFull, 5);
    workers_->count_host_drop(DropReason::HostFrameInvalid, 2);
    workers_->count_host_drop(DropReason::PuntFailed, 3);
    EXPECT_EQ(sum(stats::Counter::FromHost), 7u);
    EXPECT_EQ(workers_->inspect().drops({0}, DropReason::FromHostRingFull), 5u);
    EXPECT_EQ(workers_->inspect().drops({0}, DropReason::HostFrameInvalid), 2u);
    EXPECT_EQ(workers_->inspect().drops({0}, DropReason::PuntFailed), 3u);
}

TEST_P(Workers, DeliverToTheHostAndTranslateItsAnswers_EP007) {
    web_.backends = {kClusterAddress.bytes()[15]};
    start(GetParam());
    Prng random;
    // Below the ports that a worker gives to a flow: one of these may be the port that another flow kept
    // (docs/adr/0019, Cost).
    for (L4Port port = 900; port < 950; ++port) {
        up_->put(from_client(port).build(), static_cast<uint16_t>(random.below(GetParam())));
        rte_mbuf* frame = take_punted(kUp);
        ASSERT_NE(frame, nullptr) << port;
        const packet::FlowKey inside = key_of(std::vector<uint8_t>(
            rte_pktmbuf_mtod(frame, uint8_t*), rte_pktmbuf_mtod(frame, uint8_t*) + frame->data_len));
        EXPECT_EQ(inside.source, kClient);
        EXPECT_EQ(inside.destination, kClusterAddress);
        const std::vector<uint8_t> answer =
            eth()
                .from_mac(kUpMac.to_string())
                .to_mac(kClientMac.to_string())
                .ipv4(inside.destination.to_string(), inside.source.to_string())
                .tcp(inside.destination_port, inside.source_port, "SA")
                .build();
        rte_pktmbuf_reset(frame);
        std::copy(
            answer.begin(), answer.end(),
            reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, static_cast<uint16_t>(answer.size()))));
        ASSERT_EQ(workers_->send_from_host(kUp, {&frame, 1}), 1u);
        const std::vector<uint8_t> outside = up_->take_frame();
        ASSERT_FALSE(outside.empty()) << port;
        EXPECT_EQ(key_of(outside), (packet::FlowKey{kVip, kClient, 80, port, Protocol::Tcp, {}}));
    }
}

TEST_P(Workers, HoldPacketsUntilLinuxKnowsTheNextHop) {
    start(GetParam());
    TestService one = web_;
    one.backends = {200};
    gateway_.set_unresolved({200});
    workers_->publish(snapshot_of(gateway_, {one}));
    up_->put(from_client(1000).build(), 0);
    std::optional<worker::NeighbourRequest> request;
    for (const Patience patience; !request && patience.wait();) {
        request = workers_->take_neighbour_request();
    }
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->address, backend_address(200));
    EXPECT_EQ(request->egress, kCluster);
    EXPECT_EQ(cluster_->try_take(), nullptr);
    gateway_.set_unresolved({});
    workers_->publish(std::make_unique<config::Snapshot>(gateway_.snapshot()));
    const std::vector<uint8_t> syn = cluster_->take_frame();
    ASSERT_FALSE(syn.empty());
    EXPECT_EQ(load<MacAddr>(syn.data()), backend_mac(200));
}

// One worker's disposal without its loop, rings and queues: packets that leave a burst in other ways.
class Disposal : public testing::Test {
 protected:
    void SetUp() override { ASSERT_TRUE(start_eal()); }
    // Returns the packet's place in burst_.
    uint32_t add(const std::vector<uint8_t>& frame) {
        rte_mbuf* mbuf = rte_pktmbuf_alloc(pool());
        PENSTOCK_CHECK(mbuf != nullptr);
        std::memcpy(rte_pktmbuf_append(mbuf, static_cast<uint16_t>(frame.size())), frame.data(),
                    frame.size());
        return burst_.add(mbuf, rte_pktmbuf_mtod(mbuf, uint8_t*), static_cast<uint16_t>(frame.size()),
                          static_cast<uint16_t>(frame.size()), {kUp, {}, 0});
    }
    // Packet 0 of an otherwise empty burst.
    pipeline::Burst& burst_with(const std::vector<uint8_t>& frame) {
        burst_ = {};
        add(frame);
        return burst_;
    }
    // Adds a packet that leaves by `egress`. `number` is in its frame.
    void add_sent(NicPortId egress, uint32_t number) {
        const uint32_t i = add(numbered(number));
        burst_.handle[i]->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
        burst_.verdict[i] = Verdict::Transmit;
        burst_.egress[i] = egress;
    }
    static std::vector<uint8_t> numbered(uint32_t number) {
        return eth().ipv4("10.80.1.2", "10.80.1.3").udp(1, 2).payload(std::to_string(1'000 + number)).build();
    }
    void open_ports() {
        static int run = 0;
        const std::string suffix = std::to_string(run++);
        up_.emplace("disposal_up" + suffix, uint16_t{1}, pool());
        cluster_.emplace("disposal_cl" + suffix, uint16_t{1}, pool());
        io_.ports = 2;
        for (const auto& [id, port] : {std::pair{kUp, &*up_}, std::pair{kCluster, &*cluster_}}) {
            io_.port[id.value].id = id;
            io_.port[id.value].used = true;
            io_.port[id.value].dpdk_port = port->dpdk_port();
        }
        context_.begin_round(&gateway_.snapshot(), {1'000'000'000'000});
    }
    [[nodiscard]] uint64_t count(stats::Counter counter) { return context_.count()[counter].read(); }
    void hold(const std::vector<uint8_t>& frame, NicPortId egress, const IpAddr& next_hop) {
        pipeline::Burst& burst = burst_with(frame);
        burst.verdict[0] = Verdict::Hold;
        burst.egress[0] = egress;
        burst.next_hop[0] = next_hop;
        pipeline::dispose(context_, io_, burst);
    }
    std::set<IpAddr> asked() {
        std::set<IpAddr> addresses;
        while (const auto request = context_.resolve->pop()) {
            addresses.insert(request->address);
        }
        return addresses;
    }
    void TearDown() override {
        context_.pending.clear([](rte_mbuf* mbuf) { rte_pktmbuf_free(mbuf); });
    }

    VirtualGateway gateway_;
    pipeline::WorkerContext& context_ = gateway_.worker(0);
    pipeline::WorkerIo io_;
    pipeline::Burst burst_;
    std::optional<RingPort> up_, cluster_;
};

// If the limit of held packets is reached, a next hop that has not been requested yet is still requested.
TEST_F(Disposal, AFullWaitingRoomStillAsksForANewNextHop) {
    gateway_.publish({TestService{.frontends = {{kVip, 80}}, .backends = {200}}});
    context_.begin_round(&gateway_.snapshot(), {1'000'000'000'000});
    const auto to = [](const IpAddr& source, const IpAddr& destination) {
        return eth().ipv4(source.to_string(), destination.to_string()).udp(1, 2).payload("x").build();
    };
    const auto host = [](uint32_t n) {
        return IpAddr::v4(10, 80, static_cast<uint8_t>(100 + n / 256), static_cast<uint8_t>(n));
    };
    for (uint32_t n = 0; n < limits::kPendingMax; ++n) {
        hold(to(kVip, host(n)), kUp, host(n));
    }
    EXPECT_EQ(context_.pending.size(), limits::kPendingMax);
    EXPECT_GT(asked().size(), 0u);
    uint64_t dropped = 0;
    const auto is_dropped = [&] {
        return std::exchange(dropped, context_.count()[DropReason::PendingFull].read()) + 1 == dropped;
    };
    // Spoofed clients on a link, each with another address; then an endpoint, and a router.
    for (uint32_t n = limits::kPendingMax; n < 1'000; ++n) {
        hold(to(kVip, host(n)), kUp, host(n));
        ASSERT_TRUE(is_dropped());
    }
    // The filter of endpoints has a few false positives.
    const size_t of_flood = asked().size();
    EXPECT_GE(of_flood, limits::kUnheldAsksPerSecondOfHosts);
    EXPECT_LT(of_flood, 2 * limits::kUnheldAsksPerSecondOfHosts);
    hold(to(kClusterAddress, backend_address(200)), kCluster, backend_address(200));
    EXPECT_TRUE(is_dropped());
    const IpAddr router = IpAddr::v4(10, 80, 1, 254);
    hold(to(kVip, IpAddr::v4(203, 0, 113, 9)), kUp, router);
    EXPECT_TRUE(is_dropped());
    EXPECT_EQ(asked(), (std::set<IpAddr>{backend_address(200), router}));
    hold(to(kClusterAddress, backend_address(200)), kCluster, backend_address(200));
    EXPECT_TRUE(asked().empty()) << "not with each packet";
    hold(to(kVip, host(0)), kUp, host(0));
    EXPECT_TRUE(asked().empty()) << "for this one packets wait, and they ask";
}

// Bursts that leave by one port, and bursts that do not, by turns.
TEST_F(Disposal, PacketsLeaveInOrderWholeBurstOrNot) {
    open_ports();
    const size_t frame_bytes = numbered(0).size();
    std::array<std::vector<uint32_t>, 2> numbers;
    uint32_t number = 0, sent = 0;
    const auto add_next = [&](NicPortId egress) {
        numbers[egress.value].push_back(number);
        add_sent(egress, number++);
        ++sent;
    };
    for (uint32_t round = 0; round < 64; ++round) {
        const uint32_t packets = 1 + round;
        for (uint32_t i = 0; i < packets; ++i) {
            // By one port; one packet by the other one; one packet without an egress.
            const bool is_odd = i == round / 2;
            if (is_odd && round % 4 == 3) {
                burst_.drop(add(numbered(number)), DropReason::NoRoute);
                continue;
            }
            add_next(is_odd && round % 4 == 1 ? kUp : kCluster);
        }
        pipeline::dispose(context_, io_, burst_);
        ASSERT_EQ(burst_.count, 0u);
        for (const auto& [id, port] : {std::pair{kUp, &*up_}, std::pair{kCluster, &*cluster_}}) {
            for (const uint32_t expected : numbers[id.value]) {
                rte_mbuf* mbuf = port->try_take();
                ASSERT_NE(mbuf, nullptr) << round;
                EXPECT_EQ(mbuf->ol_flags, 0u);
                const auto* first = rte_pktmbuf_mtod(mbuf, const uint8_t*);
                EXPECT_EQ(std::vector<uint8_t>(first, first + mbuf->data_len), numbered(expected)) << round;
                rte_pktmbuf_free(mbuf);
            }
            EXPECT_EQ(port->try_take(), nullptr) << round;
            numbers[id.value].clear();
        }
    }
    EXPECT_EQ(count(stats::Counter::TxPackets), sent);
    EXPECT_EQ(count(stats::Counter::TxBytes), sent * frame_bytes);
}

TEST_F(Disposal, AWholeBurstLeavesWithTheLengthsThatTheStagesSet) {
    open_ports();
    for (uint32_t i = 0; i < 5; ++i) {
        add_sent(kCluster, i);
        burst_.length[i] = static_cast<uint16_t>(burst_.length[i] - i);
    }
    const uint32_t bytes = static_cast<uint32_t>(numbered(0).size());
    pipeline::dispose(context_, io_, burst_);
    for (uint32_t i = 0; i < 5; ++i) {
        rte_mbuf* mbuf = cluster_->try_take();
        ASSERT_NE(mbuf, nullptr);
        EXPECT_EQ(mbuf->data_len, bytes - i);
        EXPECT_EQ(mbuf->pkt_len, bytes - i);
        rte_pktmbuf_free(mbuf);
    }
    EXPECT_EQ(count(stats::Counter::TxBytes), 5 * bytes - 10);
}

TEST_F(Disposal, WhatTheQueueDoesNotTakeOfAWholeBurstIsDroppedByName) {
    open_ports();
    const unsigned buffers = rte_mempool_avail_count(pool());
    constexpr uint32_t kSlots = 2'047;  // of the port's ring
    constexpr uint32_t kBursts = kSlots / limits::kBurstMax + 1;
    for (uint32_t n = 0; n < kBursts; ++n) {
        for (uint32_t i = 0; i < limits::kBurstMax; ++i) {
            add_sent(kCluster, n * limits::kBurstMax + i);
        }
        pipeline::dispose(context_, io_, burst_);
    }
    EXPECT_EQ(count(stats::Counter::TxPackets), kSlots);
    EXPECT_EQ(count(stats::Counter::TxBytes), kSlots * numbered(0).size());
    EXPECT_EQ(context_.count()[DropReason::TxQueueFull].read(), kBursts * limits::kBurstMax - kSlots);
    for (uint32_t n = 0; n < kSlots; ++n) {
        EXPECT_EQ(cluster_->take_frame(), numbered(n));
    }
    EXPECT_EQ(rte_mempool_avail_count(pool()), buffers);
}

TEST_F(Disposal, APacketWithoutAVerdictIsDroppedByName) {
    const unsigned buffers = rte_mempool_avail_count(pool());
    context_.begin_round(&gateway_.snapshot(), {1'000'000'000'000});
    pipeline::dispose(context_, io_, burst_with(from_client(1'000).build()));
    EXPECT_EQ(context_.count()[DropReason::NoVerdict].read(), 1u);
    EXPECT_EQ(rte_mempool_avail_count(pool()), buffers);
}

// Every packet that arrives, or is originated here, ends in one counter: readers have only the counters.
TEST_P(Workers, BooksCloseFromCountersAlone) {
    gateway_.set_mtu(kCluster, 600);
    start(GetParam());
    Prng random;
    TestService dns{.name = "dns",
                    .protocol = Protocol::Udp,
                    .frontends = {{kVip, 53}},
                    .backends = {11, 12},
                    .backend_port = 5353};
    TestService lost{.name = "lost",
                     .protocol = Protocol::Udp,
                     .frontends = {{kVip, 54}},
                     .backends = {200},
                     .backend_port = 5353};
    TestService empty{.name = "empty", .frontends = {{kVip, 81}}};
    gateway_.set_unresolved({200});
    workers_->publish(snapshot_of(gateway_, {web_, dns, lost, empty}));
    const auto any_client = [&](uint8_t ttl = 64) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4("10.80.1." + std::to_string(random.between(2, 250)), "80.11.12.10")
            .ttl(ttl);
    };
    const auto any_port = [&] { return static_cast<uint16_t>(random.between(1'000, 1'100)); };
    const auto any_payload = [&] { return random.bytes(random.between(1, 1'400)); };
    const auto add_any = [&](std::vector<std::vector<uint8_t>>& frames) {
        switch (random.below(10)) {
            case 0:
                return frames.push_back(any_client().tcp(any_port(), 80, "S").build());
            case 1:
                return frames.push_back(any_client()
                                            .tcp(any_port(), 80, random.one_in(2) ? "A" : "R")
                                            .payload(any_payload())
                                            .build());
            case 2:
                return frames.push_back(any_client().tcp(any_port(), 81, "S").build());
            case 3:
                return frames.push_back(
                    any_client().dont_fragment().udp(any_port(), 53).payload(any_payload()).build());
            case 4:
                return frames.push_back(any_client(static_cast<uint8_t>(random.between(1, 2)))
                                            .udp(any_port(), 53)
                                            .payload("?")
                                            .build());
            case 5:
                return frames.push_back(any_client().udp(any_port(), 54).payload(any_payload()).build());
            case 6:
                return frames.push_back(random.bytes(random.between(1, 200)));
            case 7:
                return frames.push_back(eth()
                                            .to_mac("ff:ff:ff:ff:ff:ff")
                                            .ether_type(0x0806)
                                            .payload(std::vector<uint8_t>(46, 7))
                                            .build());
            default: {  // in any order, and not always complete
                std::vector<std::vector<uint8_t>> pieces =
                    cut(any_client().udp(any_port(), 53).payload(random.bytes(1'400)).build(),
                        static_cast<uint32_t>(random.next()), 304);
                for (size_t i = pieces.size(); i > 1; --i) {
                    std::swap(pieces[i - 1], pieces[random.below(i)]);
                }
                pieces.resize(random.one_in(4) ? pieces.size() - 1 : pieces.size());
                frames.insert(frames.end(), pieces.begin(), pieces.end());
            }
        }
    };
    uint64_t put = 0, sent_from_host = 0, left = 0, at_linux = 0;
    // Takes the packets that have left so far; endpoints accept connections. Returns false if nothing had
    // left.
    const auto drain = [&] {
        std::array<rte_mbuf*, 32> punted;
        const uint64_t before = left + at_linux;
        for (RingPort* port : {up_.get(), cluster_.get()}) {
            while (rte_mbuf* mbuf = port->try_take()) {
                ++left;
                const uint8_t* const data = rte_pktmbuf_mtod(mbuf, const uint8_t*);
                const std::vector<uint8_t> frame(data, data + mbuf->data_len);
                rte_pktmbuf_free(mbuf);
                packet::Parsed parsed;
                if (port == cluster_.get() && packet::parse(frame, parsed) &&
                    parsed.kind == packet::PacketKind::Flow && parsed.key.protocol == Protocol::Tcp &&
                    parsed.tcp_flags.bits == packet::TcpFlags::kSyn) {
                    cluster_->put(reply_to(parsed.key), static_cast<uint16_t>(random.below(GetParam())));
                    ++put;
                }
            }
        }
        for (const NicPortId port : {kUp, kCluster}) {
            for (size_t taken; (taken = take_punted(port, punted)) > 0;) {
                at_linux += taken;
                // Linux sends some of them back.
                const auto given =
                    static_cast<size_t>(workers_->send_from_host(port, {punted.data(), taken / 2}));
                sent_from_host += given;
                for (size_t i = given; i < taken; ++i) {
                    rte_pktmbuf_free(punted[i]);
                }
            }
        }
        return left + at_linux > before;
    };
    const auto total_drops = [&] {
        uint64_t total = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            for (size_t reason = 0; reason < kDropReasons; ++reason) {
                total += workers_->inspect().drops({w}, static_cast<DropReason>(reason));
            }
        }
        return total;
    };
    using stats::Counter;
    const auto came = [&] {
        return sum(Counter::RxPackets) + sum(Counter::FromHost) + sum(Counter::FragmentsMade) +
               sum(Counter::SegmentsMade);
    };
    const auto went = [&] {
        return sum(Counter::TxPackets) + sum(Counter::Punted) + sum(Counter::FragmentedPackets) +
               total_drops();
    };
    const auto settles = [&] {  // held packets wait for up to a second
        for (int tries = 0; tries < 200'000; ++tries) {
            const bool are_closed = sum(Counter::RxPackets) == put &&
                                    sum(Counter::FromHost) == sent_from_host && came() == went();
            if (!drain() && are_closed) {
                return true;
            }
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        return false;
    };
    for (int phase = 0; phase < 3; ++phase) {
        for (int round = 0; round < 40; ++round) {
            std::vector<std::vector<uint8_t>> frames;
            while (frames.size() < 50) {
                add_any(frames);
            }
            for (const std::vector<uint8_t>& frame : frames) {
                up_->put(frame, static_cast<uint16_t>(random.below(GetParam())));
                ++put;
            }
            drain();
        }
        if (phase == 1) {  // flows end, so workers originate segments
            gateway_.order({.backend = gateway_.backend_of(web_, 11)});
            workers_->publish(std::make_unique<config::Snapshot>(gateway_.snapshot()));
        }
        ASSERT_TRUE(settles()) << "in " << came() << ", out " << went() << ", put " << put << ", from Linux "
                               << sent_from_host;
        EXPECT_EQ(sum(Counter::HandedOff), sum(Counter::HandedIn));
        EXPECT_EQ(sum(Counter::TxPackets), left);
        EXPECT_EQ(sum(Counter::Punted), at_linux);
    }
    EXPECT_GT(sum(Counter::FragmentsMade), sum(Counter::FragmentedPackets));
    EXPECT_GT(sum(Counter::SegmentsMade), 0u);
    EXPECT_GT(sum(Counter::HeldForNextHop), 0u);
    EXPECT_GT(sum(Counter::FragmentsHeld), 0u);
}

// In real buffers: sent at once, and held for a next hop that is still unresolved. No buffer is lost or kept.
TEST_P(Workers, CutWhatExceedsTheMtuOfItsPort_ICMP004) {
    const unsigned buffers = rte_mempool_avail_count(pool());
    gateway_.set_mtu(kCluster, 600);
    web_.backends = {200};
    start(GetParam());
    std::vector<uint8_t> payload(1'400);
    for (size_t i = 0; i < payload.size(); ++i) {
        payload[i] = static_cast<uint8_t>(i * 3);
    }
    const auto expect_fragments = [&] {
        std::vector<uint8_t> together;
        for (uint16_t number = 0; number < 3; ++number) {
            const std::vector<uint8_t> frame = cluster_->take_frame();
            ASSERT_GE(frame.size(), 34u) << number;
            EXPECT_LE(frame.size(), 14u + 600u);
            EXPECT_EQ(load<MacAddr>(frame.data()), backend_mac(200));
            EXPECT_EQ(load<Be16>(frame.data() + 20).host(), (number < 2 ? 0x2000 : 0) | number * 576 / 8);
            EXPECT_EQ(load<Be16>(frame.data() + 16).host(), frame.size() - 14);
            EXPECT_EQ(reference_checksum(ByteView(frame).subspan(14, 20)), 0);
            together.insert(together.end(), frame.begin() + 34, frame.end());
        }
        ASSERT_EQ(together.size(), 20 + payload.size());
        EXPECT_EQ(std::vector<uint8_t>(together.begin() + 20, together.end()), payload);
    };
    up_->put(from_client(1000).payload(payload).build(), 0);
    expect_fragments();
    gateway_.set_unresolved({200});
    workers_->publish(std::make_unique<config::Snapshot>(gateway_.snapshot()));
    up_->put(from_client(1001).payload(payload).build(), static_cast<uint16_t>(GetParam() - 1));
    std::optional<worker::NeighbourRequest> request;
    for (const Patience patience; !request && patience.wait();) {
        request = workers_->take_neighbour_request();
    }
    ASSERT_TRUE(request.has_value());
    gateway_.set_unresolved({});
    workers_->publish(std::make_unique<config::Snapshot>(gateway_.snapshot()));
    expect_fragments();
    EXPECT_EQ(sum(stats::Counter::FragmentedPackets), 2u);
    workers_.reset();
    EXPECT_EQ(rte_mempool_avail_count(pool()), buffers);
}

// In real buffers, whose frames begin at another offset afterwards, also if the removed and the added bytes
// have the same length. No buffer is lost or kept.
TEST_P(Workers, ConvertToTheOtherFamily_ANN32) {
    const unsigned buffers = rte_mempool_avail_count(pool());
    web_.backends = {200};
    web_.endpoints_of = IpFamily::V6;
    start(GetParam());
    const IpAddr endpoint = backend_address(200, IpFamily::V6);
    const auto to_endpoint = [&] {
        return eth()
            .from_mac(kClusterMac.to_string())
            .to_mac(backend_mac(200).to_string())
            .ipv6(kClusterAddress6.to_string(), endpoint.to_string())
            .hop_limit(63);
    };
    Prng random;
    L4Port client = 1000;
    for (const bool has_tag : {false, true}) {
        for (const size_t padding : {0u, 6u, 16u, 20u, 24u, 60u}) {
            const std::vector<uint8_t> payload = random.bytes(100);
            std::vector<uint8_t> frame = from_client(++client).payload(payload).pad_to(154 + padding).build();
            up_->put(has_tag ? vlan::tagged(frame, {vlan::kPriority}) : frame,
                     static_cast<uint16_t>(random.below(GetParam())));
            const std::vector<uint8_t> syn = cluster_->take_frame();
            ASSERT_FALSE(syn.empty()) << padding;
            const L4Port port = key_of(syn).source_port;
            EXPECT_TRUE(same_frame(syn, to_endpoint().tcp(port, 9376, "S").payload(payload).build()));
            frame = eth()
                        .from_mac(backend_mac(200).to_string())
                        .to_mac(kClusterMac.to_string())
                        .ipv6(endpoint.to_string(), kClusterAddress6.to_string())
                        .tcp(9376, port, "SA")
                        .payload(payload)
                        .pad_to(174 + padding)
                        .build();
            cluster_->put(has_tag ? vlan::tagged(frame, {vlan::kPriority}) : frame,
                          static_cast<uint16_t>(random.below(GetParam())));
            const std::vector<uint8_t> answer = up_->take_frame();
            ASSERT_FALSE(answer.empty()) << padding;
            EXPECT_TRUE(same_frame(answer, eth()
                                               .from_mac(kUpMac.to_string())
                                               .to_mac(kClientMac.to_string())
                                               .ipv4("80.11.12.10", "10.80.1.2")
                                               .ttl(63)
                                               .id(load<Be16>(answer.data() + 18).host())
                                               .tcp(80, client, "SA")
                                               .payload(payload)
                                               .build()));
        }
    }
    gateway_.set_mtu(kCluster, 1280);
    workers_->publish(std::make_unique<config::Snapshot>(gateway_.snapshot()));
    const std::vector<uint8_t> payload = random.bytes(1'400);
    up_->put(from_client(999).id(77).payload(payload).build(), 0);
    const std::vector<uint8_t> first = cluster_->take_frame();
    ASSERT_GT(first.size(), 64u);
    const std::vector<std::vector<uint8_t>> pieces =
        cut(to_endpoint().tcp(load<Be16>(first.data() + 62).host(), 9376, "S").payload(payload).build(),
            id_of(first), 1232);
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_TRUE(same_frame(first, pieces[0]));
    EXPECT_TRUE(same_frame(cluster_->take_frame(), pieces[1]));
    EXPECT_EQ(sum(stats::Counter::FragmentedPackets), 1u);

    worker::ExplainQuery query;
    for (const L4Port port : {L4Port{999}, L4Port{998}}) {  // known, and not known
        query.key = {kClient, kVip, port, 80, Protocol::Tcp, {}};
        const worker::Explanation told = workers_->inspect().explain(query);
        EXPECT_EQ(told.verdict, "transmit");
        ASSERT_TRUE(told.leaves_as.has_value());
        EXPECT_EQ(told.leaves_as->source, kClusterAddress6);
        EXPECT_EQ(told.leaves_as->destination, endpoint);
        EXPECT_EQ(std::ranges::count(told.steps, "the packet is converted to IPv6 (RFC 7915)",
                                     &worker::ExplainStep::finding),
                  1);
    }
    uint32_t listed = 0;
    workers_->inspect().for_each_connection([&](const worker::ConnectionView& view) {
        EXPECT_EQ(view.forward.destination, kVip);
        EXPECT_EQ(view.reverse.source, endpoint);
        ++listed;
        return true;
    });
    EXPECT_EQ(listed, 13u);
    workers_.reset();
    EXPECT_EQ(rte_mempool_avail_count(pool()), buffers);
}

// An order for more flows than a round's slice is completed in the following rounds, without another
// publication.
TEST_P(Workers, WorkOffAnOrderOverManyRounds_DRAIN004) {
    constexpr L4Port kFlows = 20 * limits::kFlowOrderSlice;
    web_.backends = {11};
    start(GetParam());
    for (L4Port port = 1'000; port < 1'000 + kFlows; ++port) {
        up_->put(from_client(port).build(), static_cast<uint16_t>(port % GetParam()));
        ASSERT_FALSE(cluster_->take_frame().empty()) << port;
    }
    gateway_.order({.backend = gateway_.backend_of(web_, 11), .frontend = {}, .frontend_port = 0});
    workers_->publish(std::make_unique<config::Snapshot>(gateway_.snapshot()));
    // Waits for rounds of every worker, a hundred times as many as needed.
    const auto rounds = [&] {
        uint64_t fewest = ~uint64_t{0};
        for (uint8_t w = 0; w < GetParam(); ++w) {
            fewest = std::min(fewest, workers_->inspect().counter({w}, stats::Counter::Polls));
        }
        return fewest;
    };
    for (const uint64_t end = rounds() + 100 * kFlows;
         sum(stats::Counter::EndedConnections) < kFlows && rounds() < end;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(sum(stats::Counter::EndedConnections), kFlows);
}

// GEN-007: packets that pass during a half-finished publication meet the old or the new state, never a
// mixture. Here the ids of the ports change together with the endpoints.
TEST_P(Workers, ServeTheOldOrTheNewStateThroughTheSeam_GEN007) {
    start(GetParam());
    TestService before = web_;
    before.backend_port = 1111;
    before.backends = {11};
    TestService after = web_;
    after.backend_port = 2222;
    after.backends = {22};
    workers_->publish(snapshot_of(gateway_, {before}));
    L4Port port = 1000;
    const auto probe = [&](const char* when) {
        for (int i = 0; i < 20; ++i) {
            up_->put(from_client(port++).build(), static_cast<uint16_t>(i % static_cast<int>(GetParam())));
            const std::vector<uint8_t> syn = cluster_->take_frame();
            ASSERT_FALSE(syn.empty()) << when;
            const packet::FlowKey key = key_of(syn);
            const bool old_state = key.destination == backend_address(11) && key.destination_port == 1111;
            const bool new_state = key.destination == backend_address(22) && key.destination_port == 2222;
            EXPECT_TRUE(old_state || new_state) << when << ": " << key.to_string();
        }
    };
    workers_->impl().publisher->set_latch([&](config::Publisher::Step step) {
        switch (step) {
            case config::Publisher::Step::BeforeExchange:
                probe("before the exchange");
                break;
            case config::Publisher::Step::AfterExchange:
                probe("after the exchange, before the grace period");
                break;
            case config::Publisher::Step::BeforeFree:
                probe("before the old state is freed");
                break;
        }
    });
    for (int round = 0; round < 10; ++round) {
        workers_->publish(snapshot_of(gateway_, {round % 2 == 0 ? after : before}));
    }
}

// Nothing in the packet path allocates memory: new flows, established ones, rejects, punts and handoffs, over
// a million packets.
TEST_P(Workers, AllocateNothingOverAMillionPackets) {
    if (!kAllocationsCounted) {
        GTEST_SKIP() << "a sanitizer owns the allocator in this build";
    }
    start(GetParam());
    TestService empty{.name = "empty", .frontends = {{kVip, 81}}};
    workers_->publish(snapshot_of(gateway_, {web_, empty}));
    constexpr uint32_t kPackets = 1'000'000;
    std::vector<std::vector<uint8_t>> frames;
    for (L4Port port = 2000; port < 2512; ++port) {
        frames.push_back(from_client(port, "S").build());
        frames.push_back(eth()
                             .from_mac(kClientMac.to_string())
                             .to_mac(kUpMac.to_string())
                             .ipv4("10.80.1.2", "80.11.12.10")
                             .tcp(port, 81, "S")
                             .build());
        frames.push_back(eth()
                             .to_mac("ff:ff:ff:ff:ff:ff")
                             .ether_type(0x0806)
                             .payload(std::vector<uint8_t>(46, 7))
                             .build());
    }
    start_counting_worker_allocations();
    uint32_t put = 0;
    std::array<rte_mbuf*, 32> punted;
    while (put < kPackets) {
        for (uint32_t i = 0; i < 64 && put < kPackets; ++i, ++put) {
            up_->put(frames[put % frames.size()], static_cast<uint16_t>(put % GetParam()));
        }
        for (RingPort* port : {up_.get(), cluster_.get()}) {
            while (rte_mbuf* mbuf = port->try_take()) {
                rte_pktmbuf_free(mbuf);
            }
        }
        const size_t taken = take_punted(kUp, punted);
        for (size_t i = 0; i < taken; ++i) {
            rte_pktmbuf_free(punted[i]);
        }
    }
    const worker::Inspector inspect = workers_->inspect();
    const auto received = [&] {
        uint64_t packets = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            packets += inspect.counter({w}, stats::Counter::RxPackets);
        }
        return packets;
    };
    for (const Patience patience; received() < kPackets && patience.wait();) {
    }
    EXPECT_EQ(stop_counting_worker_allocations(), 0u);
    EXPECT_EQ(received(), kPackets);
    uint64_t connections = 0;
    for (uint8_t w = 0; w < GetParam(); ++w) {
        connections += inspect.worker({w}).connections;
    }
    EXPECT_EQ(connections, 512u);
}

TEST_P(Workers, ExplainWhatWouldHappenAndTakeNothing) {
    start(GetParam());
    worker::ExplainQuery query;
    query.key = {kClient, kVip, 5000, 80, Protocol::Tcp, {}};
    query.receiver = {static_cast<uint8_t>(GetParam() - 1)};
    const worker::Explanation before = workers_->inspect().explain(query);
    EXPECT_EQ(before.verdict, "transmit");
    ASSERT_TRUE(before.leaves_as.has_value());
    EXPECT_EQ(before.leaves_as->source, kClusterAddress);
    EXPECT_EQ(workers_->inspect().worker({0}).connections, 0u);
    up_->put(from_client(5000).build(), static_cast<uint16_t>(GetParam() - 1));
    const packet::FlowKey out = key_of(cluster_->take_frame());
    EXPECT_EQ(out.destination, before.leaves_as->destination) << "rr gives the flow what explain foretold";
    const worker::Explanation after = workers_->inspect().explain(query);
    ASSERT_TRUE(after.leaves_as.has_value());
    EXPECT_EQ(*after.leaves_as, out);

    query.key.destination_port = 81;
    EXPECT_EQ(workers_->inspect().explain(query).reason, DropReason::VipPortClosed);
    query.key.destination = kUpAddress;
    EXPECT_EQ(workers_->inspect().explain(query).verdict, "punt");
}

// explain counts the ports towards the endpoint as the owner of the flow would: its share of 256, over the
// one SNAT address.
TEST_P(Workers, ExplainWhatComesOfPortsThatAreAllTaken_NAT002) {
    web_.backends = {11};
    start(GetParam());
    auto narrow = snapshot_of(gateway_, {web_});
    auto snat = std::make_shared<nat::SnatConfig>(*narrow->snat);
    snat->ports = {2'048, 2'303};
    narrow->snat = std::move(snat);
    workers_->publish(std::move(narrow));
    const uint32_t share = 256 / GetParam();
    worker::ExplainQuery query;
    query.key = {kClient, kVip, 5'000, 80, Protocol::Tcp, {}};
    const auto expect_told = [&](const char* verdict, const std::string& finding) {
        const worker::Explanation told = workers_->inspect().explain(query);
        EXPECT_EQ(told.verdict, verdict);
        EXPECT_EQ(told.reason, verdict == std::string("drop") ? std::optional(DropReason::SnatPortsExhausted)
                                                              : std::nullopt);
        const auto snat_step = std::ranges::find(told.steps, "snat", &worker::ExplainStep::stage);
        ASSERT_NE(snat_step, told.steps.end());
        EXPECT_NE(snat_step->finding.find(finding), std::string::npos) << snat_step->finding;
    };
    expect_told("transmit", "with a free port of worker ");

    // Twice as many as there are ports, so that each worker has allocated all of its own.
    for (uint32_t n = 0; n < 512; ++n) {
        up_->put(from_client(static_cast<L4Port>(10'000 + n)).build(), 0);
        ASSERT_FALSE(cluster_->take_frame().empty());
    }
    const uint64_t reclaimed = sum(stats::Counter::ReclaimedSnatPorts);
    EXPECT_EQ(reclaimed, 512u - 256u);
    const std::string taken = std::to_string(share);
    expect_told("transmit",
                "all " + taken + " are taken, and " + taken + " are of connections that may be evicted");
    EXPECT_EQ(sum(stats::Counter::ReclaimedSnatPorts), reclaimed) << "explain takes nothing";

    std::vector<worker::ConnectionView> flows;
    workers_->inspect().for_each_connection([&](const worker::ConnectionView& view) {
        flows.push_back(view);
        return true;
    });
    ASSERT_EQ(flows.size(), 256u);
    for (const worker::ConnectionView& flow : flows) {
        cluster_->put(reply_to(flow.reverse.reversed()), 0);
        ASSERT_FALSE(up_->take_frame().empty());
        up_->put(from_client(flow.forward.source_port, "A").build(), 0);
        ASSERT_FALSE(cluster_->take_frame().empty());
    }
    expect_told("drop", "all " + taken + " SNAT ports of worker ");
    ASSERT_FALSE(HasFailure()) << "the SYN below is dropped, or the test waits without end";
    up_->put(from_client(5'000).build(), 0);
    const auto dropped = [&] {
        uint64_t drops = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            drops += workers_->inspect().drops({w}, DropReason::SnatPortsExhausted);
        }
        return drops;
    };
    while (dropped() == 0) {
        std::this_thread::yield();
    }

    const std::vector<worker::ExplainStep> steps = workers_->inspect().explain(query).steps;
    const auto owner = std::ranges::find(steps, "owner", &worker::ExplainStep::stage);
    ASSERT_NE(owner, steps.end());
    const auto over = std::ranges::find_if(flows, [&](const worker::ConnectionView& flow) {
        return owner->finding.starts_with("worker " + std::to_string(flow.worker.value) + ",");
    });
    ASSERT_NE(over, flows.end());
    up_->put(from_client(over->forward.source_port, "R").build(), 0);
    ASSERT_FALSE(cluster_->take_frame().empty());
    expect_told("transmit", "all " + taken + " are taken, and 1 are of connections that may be evicted");
    ASSERT_FALSE(HasFailure()) << "the port below is reclaimed, or the test waits without end";
    // 64 ports are examined each time, and this may take four tries
    while (sum(stats::Counter::ReclaimedSnatPorts) == reclaimed) {
        const uint64_t before = dropped();
        up_->put(from_client(5'000).build(), 0);
        while (dropped() == before && sum(stats::Counter::ReclaimedSnatPorts) == reclaimed) {
            std::this_thread::yield();
        }
    }
    EXPECT_EQ(key_of(cluster_->take_frame()).reversed(), over->reverse)
        << "with the port of the connection that was over";
}

// The verdict is the same as that of the real packet.
TEST_P(Workers, ExplainSourcesThatNoHostHas) {
    start(GetParam());
    const auto martians = [&] {
        uint64_t counted = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            counted += workers_->inspect().drops({w}, DropReason::MartianSource);
        }
        return counted;
    };
    uint64_t dropped = 0;
    for (const char* source : {"127.0.0.1", "0.0.0.0", "0.1.2.3", "240.0.0.1", "255.255.255.255", "224.0.0.5",
                               "80.11.12.10", "10.80.1.255"}) {
        const worker::Explanation told =
            workers_->inspect().explain({.key = {*IpAddr::parse(source), kVip, 5000, 80, Protocol::Tcp, {}},
                                         .port = kUp,
                                         .receiver = {0}});
        EXPECT_EQ(told.verdict, "drop") << source;
        EXPECT_EQ(told.reason, DropReason::MartianSource) << source;
        up_->put(eth()
                     .from_mac(kClientMac.to_string())
                     .to_mac(kUpMac.to_string())
                     .ipv4(source, "80.11.12.10")
                     .tcp(5000, 80, "S")
                     .build(),
                 0);
        ++dropped;
        for (int tries = 0; tries < 20'000 && martians() < dropped; ++tries) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        EXPECT_EQ(martians(), dropped) << source;
    }
    for (const char* destination : {"224.0.0.5", "255.255.255.255", "127.0.0.1"}) {
        EXPECT_EQ(workers_->inspect()
                      .explain({.key = {kClient, *IpAddr::parse(destination), 5000, 80, Protocol::Udp, {}}})
                      .verdict,
                  "punt")
            << destination;
    }
}

TEST_P(Workers, ExplainASegmentInMidStream_REJ005) {
    worker::ExplainQuery query;
    query.key = {kClient, kVip, 5000, 80, Protocol::Tcp, {}};
    query.tcp_not_syn = true;
    const struct {
        bool picks_up;
        lb::SchedulerKind scheduler;
        const char* verdict;
        const char* admitted;
    } cases[] = {
        {false, lb::SchedulerKind::Maglev, "reject", "mid-stream TCP segment without a connection"},
        {true, lb::SchedulerKind::RoundRobin, "reject", "--midstream-pickup applies only to Services"},
        {true, lb::SchedulerKind::Maglev, "transmit", "(--midstream-pickup)"}};
    web_.source = lb::SourceMode::Keep;
    for (const auto& c : cases) {
        gateway_.set_packets({.picks_up_midstream = c.picks_up});
        web_.scheduler = c.scheduler;
        start(GetParam());
        const worker::Explanation told = workers_->inspect().explain(query);
        EXPECT_EQ(told.verdict, c.verdict);
        const auto admit = std::ranges::find(told.steps, "admit", &worker::ExplainStep::stage);
        ASSERT_NE(admit, told.steps.end());
        EXPECT_NE(admit->finding.find(c.admitted), std::string::npos) << admit->finding;
        EXPECT_EQ(told.leaves_as.has_value(), std::string(c.verdict) == "transmit");
        EXPECT_EQ(workers_->inspect().worker({0}).connections, 0u);
        workers_.reset();
    }
}

TEST_P(Workers, ExplainByWhichPortASourceMayArrive) {
    start(GetParam());
    EXPECT_EQ(workers_->inspect().arrival_port(kClient), kUp);
    EXPECT_EQ(workers_->inspect().arrival_port(backend_address(13)), kCluster);
    const auto told = [&](const IpAddr& source, NicPortId port) {
        const worker::Explanation explanation = workers_->inspect().explain(
            {.key = {source, kVip, 5000, 80, Protocol::Tcp, {}}, .port = port, .receiver = {0}});
        const auto admit = std::ranges::find(explanation.steps, "admit", &worker::ExplainStep::stage);
        EXPECT_EQ(explanation.verdict == "drop", explanation.reason == DropReason::ReversePath);
        return admit == explanation.steps.end() ? std::string() : admit->finding;
    };
    EXPECT_EQ(told(backend_address(13), kUp),
              "dropped: the source 10.80.2.13 is in a subnet directly connected to NicPort 1, not NicPort 0 "
              "where the packet arrives "
              "(--reverse-path feasible)");
    EXPECT_EQ(told(backend_address(13), kCluster), "any client may open a flow");
    config::PacketPolicy strict;
    strict.reverse_path.fill(config::ReversePath::Strict);
    workers_.reset();
    gateway_.set_packets(strict);
    start(GetParam());
    EXPECT_EQ(told(IpAddr::v4(198, 51, 100, 7), kCluster),
              "dropped: the route to the source 198.51.100.7 leads through NicPort 0, not NicPort 1 where "
              "the packet arrives "
              "(--reverse-path strict)");
}

TEST_P(Workers, ExplainThatTheHostGetsIt_EP007) {
    web_.backends = {kClusterAddress.bytes()[15]};
    start(GetParam());
    worker::ExplainQuery query;
    query.key = {kClient, kVip, 5000, 80, Protocol::Tcp, {}};
    query.port = kUp;
    for (const bool is_known : {false, true}) {
        const worker::Explanation told = workers_->inspect().explain(query);
        EXPECT_EQ(told.verdict, "punt");
        EXPECT_NE(told.steps.back().finding.find("delivered to the host through the twin of NicPort 0"),
                  std::string::npos)
            << told.steps.back().finding;
        ASSERT_TRUE(told.leaves_as.has_value());
        EXPECT_EQ(told.leaves_as->source, kClient);
        EXPECT_EQ(told.leaves_as->destination, kClusterAddress);
        if (!is_known) {
            up_->put(from_client(5000).build(), 0);
            rte_mbuf* frame = take_punted(kUp);
            ASSERT_NE(frame, nullptr);
            rte_pktmbuf_free(frame);
        }
    }
}

// Packets in queues, in rings from other workers, and in the host's ring all reach a sleeping worker, after
// its longest sleep at most.
TEST_P(Workers, ServeEverythingThoughTheySleep) {
    start(GetParam(), 1, worker::IdleMode::Adaptive);
    Prng random;
    for (L4Port port = 1000; port < 1040; ++port) {
        ASSERT_TRUE(all_have_slept(sum(stats::Counter::Sleeps) / GetParam() + 2));
        up_->put(from_client(port).build(), static_cast<uint16_t>(random.below(GetParam())));
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty()) << port;
        cluster_->put(reply_to(key_of(syn)), static_cast<uint16_t>(random.below(GetParam())));
        ASSERT_FALSE(up_->take_frame().empty()) << port;
    }
    const std::vector<uint8_t> arp =
        eth().to_mac("ff:ff:ff:ff:ff:ff").ether_type(0x0806).payload(std::vector<uint8_t>(46, 7)).build();
    up_->put(arp, 0);
    rte_mbuf* punted = take_punted(kUp);
    ASSERT_NE(punted, nullptr);
    ASSERT_TRUE(all_have_slept(sum(stats::Counter::Sleeps) / GetParam() + 2));
    ASSERT_EQ(workers_->send_from_host(kCluster, {&punted, 1}), 1u);
    EXPECT_EQ(cluster_->take_frame(), arp);
    for (uint8_t w = 0; w < GetParam(); ++w) {
        const worker::WorkerView view = workers_->inspect().worker({w});
        EXPECT_EQ(view.idle, "sleep") << "rings cannot interrupt";
        EXPECT_GT(view.sleep_ratio, 0.0);
        EXPECT_LE(view.sleep_ratio + view.busy_ratio, 1.0) << "time slept is not time worked";
    }
}

// A publication waits for no sleeping worker, and a worker that wakes up has the newest state.
TEST_P(Workers, TakeANewStateThoughTheySleep_GEN007) {
    start(GetParam(), 0, worker::IdleMode::Adaptive);
    for (L4Port round = 1; round <= 50; ++round) {
        ASSERT_TRUE(all_have_slept(sum(stats::Counter::Sleeps) / GetParam() + 1));
        TestService now = web_;
        now.backend_port = static_cast<L4Port>(9000 + round);
        workers_->publish(snapshot_of(gateway_, {now}));
        up_->put(from_client(static_cast<L4Port>(1000 + round)).build(),
                 static_cast<uint16_t>(round % GetParam()));
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty());
        EXPECT_EQ(key_of(syn).destination_port, 9000 + round);
    }
}

TEST_P(Workers, SleepNeverWherePollingIsAskedFor) {
    start(GetParam(), 0, worker::IdleMode::Poll);
    up_->put(from_client(1000).build(), 0);
    ASSERT_FALSE(cluster_->take_frame().empty());
    const uint64_t polls = sum(stats::Counter::Polls);
    for (const Patience patience; sum(stats::Counter::Polls) < polls + 10'000 && patience.wait();) {
    }
    EXPECT_GE(sum(stats::Counter::Polls), polls + 10'000);
    EXPECT_EQ(sum(stats::Counter::Sleeps), 0u);
    EXPECT_EQ(workers_->inspect().worker({0}).idle, "poll");
}

// A BFD control packet of a peer on the uplink, in a whole frame.
std::vector<uint8_t> bfd_frame(const IpAddr& peer, uint32_t discriminator, uint8_t ttl = 255) {
    const bfd::Terms of_peer{
        .discriminator = discriminator, .local = peer, .peer = kUpAddress, .egress = kUp};
    std::vector<uint8_t> frame(bfd::kFrameBytesMax);
    frame.resize(bfd::build_frame(frame, of_peer,
                                  {.state = bfd::State::Down,
                                   .detect_multiplier = 255,
                                   .my_discriminator = discriminator,
                                   .desired_min_tx_us = 1'000'000,
                                   .required_min_rx_us = 1'000'000}));
    packet::set_ethernet(frame, kClientMac, kUpMac);
    uint8_t* const ip_at = frame.data() + sizeof(packet::EthernetHeader);
    auto ip = load<packet::Ipv4Header>(ip_at);
    ip.ttl = ttl;
    ip.checksum = {};
    store(ip_at, ip);
    ip.checksum = packet::ChecksumSum().add(ByteView(ip_at, sizeof ip)).checksum();
    store(ip_at, ip);
    return frame;
}

// Worker 0 runs the sessions, and every worker may receive their packets.
TEST_P(Workers, BfdPacketsReachTheirSessionWhateverTheQueue_RFC5881) {
    has_bfd_ = true;
    start(GetParam());
    bfd::Engine& engine = *workers_->bfd();
    // It sends nothing before it has received.
    ASSERT_TRUE(engine.order(
        {.kind = bfd::Order::Kind::Put,
         .terms =
             {.discriminator = 7, .local = kUpAddress, .peer = kClient, .egress = kUp, .is_passive = true},
         .former = {}}));
    ASSERT_TRUE(comes_true([&] { return engine.counts(7) != nullptr; }));
    for (uint16_t queue = 0; queue < GetParam(); ++queue) {
        up_->put(bfd_frame(kClient, 99), queue);
        EXPECT_TRUE(comes_true([&] { return engine.counts(7)->received.read() == queue + 1U; })) << queue;
    }
    EXPECT_EQ(sum(stats::Counter::BfdReceived), GetParam());
    EXPECT_EQ(sum(stats::Counter::Punted), 0U);

    const std::vector<uint8_t> sent = up_->take_frame();
    ASSERT_FALSE(sent.empty());
    packet::Parsed parsed;
    ASSERT_TRUE(packet::parse(sent, parsed));
    const auto read = bfd::read_frame(sent, parsed, kUp);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->packet.state, bfd::State::Init);
    EXPECT_EQ(read->packet.your_discriminator, 99U);
    EXPECT_EQ(read->origin.destination, kClient);
    EXPECT_EQ(load<MacAddr>(sent.data()), kClientMac);
    EXPECT_EQ(load<MacAddr>(sent.data() + sizeof(MacAddr)), kUpMac);

    // Packets of no session are for Linux.
    for (uint16_t queue = 0; queue < GetParam(); ++queue) {
        up_->put(bfd_frame(IpAddr::v4(10, 80, 1, 77), 5), queue);
        rte_mbuf* const punted = take_punted(kUp);
        ASSERT_NE(punted, nullptr) << queue;
        rte_pktmbuf_free(punted);
    }
    // Packets that a router has forwarded are placed as those to any port beside.
    const auto handoffs_of = [&](const std::vector<uint8_t>& frame) {
        const uint64_t before = sum(stats::Counter::HandedOff);
        for (uint16_t queue = 0; queue < GetParam(); ++queue) {
            up_->put(frame, queue);
            rte_mbuf* const punted = take_punted(kUp);
            EXPECT_NE(punted, nullptr) << queue;
            rte_pktmbuf_free(punted);
        }
        return sum(stats::Counter::HandedOff) - before;
    };
    const std::vector<uint8_t> forwarded = bfd_frame(kClient, 99, 254);
    std::vector<uint8_t> other = forwarded;
    const size_t port_at =
        sizeof(packet::EthernetHeader) + sizeof(packet::Ipv4Header) + sizeof(Be16);  // of the destination
    store(other.data() + port_at, Be16::from_host(bfd::kSingleHopPort + 1));
    EXPECT_EQ(handoffs_of(forwarded), handoffs_of(other));
    EXPECT_EQ(engine.counts(7)->received.read(), GetParam());
}

// A started port of a NIC that raises receive interrupts. It spreads packets at random, so that each worker
// is woken.
class InterruptingPort {
 public:
    InterruptingPort(const MacAddr& mac, uint16_t queues) {
        static int number = 0;
        name_ = "net_soft" + std::to_string(number++);
        EXPECT_EQ(rte_vdev_init(name_.c_str(), ("rss=none,spread=random,mac=" + mac.to_string()).c_str()), 0);
        nic_ = SoftNic::find(name_);
        rte_eth_conf conf{};
        conf.intr_conf.rxq = 1;
        EXPECT_EQ(rte_eth_dev_configure(dpdk_port(), queues, queues, &conf), 0);
        for (uint16_t queue = 0; queue < queues; ++queue) {
            EXPECT_EQ(rte_eth_rx_queue_setup(dpdk_port(), queue, 256, 0, nullptr, pool()), 0);
            EXPECT_EQ(rte_eth_tx_queue_setup(dpdk_port(), queue, 256, 0, nullptr), 0);
        }
        EXPECT_EQ(rte_eth_dev_start(dpdk_port()), 0);
    }
    ~InterruptingPort() {
        rte_eth_dev_stop(dpdk_port());
        rte_vdev_uninit(name_.c_str());
    }
    InterruptingPort(const InterruptingPort&) = delete;
    InterruptingPort& operator=(const InterruptingPort&) = delete;
    [[nodiscard]] uint16_t dpdk_port() const { return nic_->dpdk_port(); }
    [[nodiscard]] uint64_t interrupts() const { return nic_->interrupts(); }
    [[nodiscard]] SoftWire wire() { return SoftWire(*nic_); }

 private:
    std::string name_;
    SoftNic* nic_ = nullptr;
};

class WorkersWithInterrupts : public Workers {};
INSTANTIATE_TEST_SUITE_P(Count, WorkersWithInterrupts, testing::Values(1u, 2u, 4u));

TEST_P(WorkersWithInterrupts, SleepUntilAPacketCalls) {
    const auto queues = static_cast<uint16_t>(GetParam());
    InterruptingPort up(kUpMac, queues), cluster(kClusterMac, queues);
    worker::WorkerSetOptions options;
    options.connections_per_worker = 1024;
    for (uint32_t w = 0; w < GetParam(); ++w) {
        options.lcores.push_back(w + 1);
        options.cpus.push_back(worker_cpu());
    }
    options.idle = worker::IdleMode::Adaptive;
    for (const auto& [id, port, mac] :
         {std::tuple{kUp, &up, kUpMac}, std::tuple{kCluster, &cluster, kClusterMac}}) {
        options.ports.push_back({.id = id,
                                 .dpdk_port = port->dpdk_port(),
                                 .rx_queues = queues,
                                 .tx_queues = queues,
                                 .mac = mac,
                                 .rx_interrupts = true});
    }
    auto started = worker::WorkerSet::start(std::move(options), snapshot_of(gateway_, {web_}));
    ASSERT_TRUE(started.has_value()) << started.error().what;
    workers_ = std::move(*started);
    for (L4Port port = 1000; port < 1040; ++port) {
        ASSERT_TRUE(all_have_slept(sum(stats::Counter::Sleeps) / GetParam() + 2));
        ASSERT_EQ(up.wire().put(from_client(port).build()).fate, Received::Fate::Queued);
        const std::vector<uint8_t> syn = cluster.wire().take();
        ASSERT_FALSE(syn.empty()) << port;
        ASSERT_TRUE(all_have_slept(sum(stats::Counter::Sleeps) / GetParam() + 2));
        ASSERT_EQ(cluster.wire().put(reply_to(key_of(syn))).fate, Received::Fate::Queued);
        const std::vector<uint8_t> answer = up.wire().take();
        ASSERT_FALSE(answer.empty()) << port;
        EXPECT_EQ(key_of(answer), (packet::FlowKey{kVip, kClient, 80, port, Protocol::Tcp, {}}));
    }
    for (uint8_t w = 0; w < GetParam(); ++w) {
        const worker::WorkerView view = workers_->inspect().worker({w});
        EXPECT_EQ(view.idle, "interrupt");
        EXPECT_GT(view.sleep_ratio, 0.0);
    }
    // Each was armed by a worker that sleeps on the descriptors of all its queues.
    EXPECT_GT(up.interrupts(), 0u);
    EXPECT_GT(cluster.interrupts(), 0u);
    workers_.reset();  // before its ports
}

// A successor in an upgrade prepares workers for ports that another process has, by their queues and hashes.
TEST_P(Workers, ArePreparedBeforeTheirPortsExist) {
    const auto workers = static_cast<uint16_t>(GetParam());
    worker::WorkerSetOptions options;
    options.connections_per_worker = 16'384;
    for (uint32_t w = 0; w < workers; ++w) {
        options.lcores.push_back(w + 1);
        options.cpus.push_back(worker_cpu());
    }
    const nat::ReplyHash hash = hash_in_turn(128, workers);
    options.ports = {{.id = kUp, .rx_queues = workers, .tx_queues = workers, .mac = {}, .reply_hash = hash},
                     {.id = kCluster, .rx_queues = workers, .tx_queues = workers, .mac = {}}};
    auto prepared = worker::WorkerSet::prepare(std::move(options), snapshot_of(gateway_, {web_}));
    ASSERT_TRUE(prepared.has_value()) << prepared.error().what;
    workers_ = std::move(*prepared);

    up_ = std::make_unique<RingPort>("up_later" + std::to_string(workers), workers, pool());
    cluster_ = std::make_unique<RingPort>("cl_later" + std::to_string(workers), workers, pool());
    std::vector<worker::PortPlan> ports = {{.id = kUp,
                                            .dpdk_port = up_->dpdk_port(),
                                            .rx_queues = workers,
                                            .tx_queues = workers,
                                            .mac = kUpMac,
                                            .reply_hash = hash},
                                           {.id = kCluster,
                                            .dpdk_port = cluster_->dpdk_port(),
                                            .rx_queues = workers,
                                            .tx_queues = workers,
                                            .mac = kClusterMac}};
    const auto fits_with = [&](auto&& change) {
        std::vector<worker::PortPlan> others = ports;
        change(others);
        return workers_->fits(others);
    };
    EXPECT_FALSE(fits_with([](auto& others) { others.pop_back(); }));
    EXPECT_FALSE(fits_with([](auto& others) { others[0].rx_queues += 1; }));
    EXPECT_FALSE(fits_with([](auto& others) { others[1].tx_queues += 1; }));
    EXPECT_FALSE(fits_with([](auto& others) { others[0].reply_hash.reset(); }));
    EXPECT_FALSE(fits_with([](auto& others) { others[0].reply_hash->key[5] ^= 1; }));
    EXPECT_FALSE(fits_with([](auto& others) { others[0].reply_hash->worker_of.resize(64); }));
    ports[0].tx_queues += 1;
    EXPECT_FALSE(workers_->set_ports(ports));
    ports[0].tx_queues -= 1;
    EXPECT_TRUE(workers_->fits(ports));
    ASSERT_TRUE(workers_->set_ports(ports));
    ASSERT_TRUE(workers_->launch(std::nullopt, nullptr));
    for (L4Port port = 1000; port < 1040; ++port) {
        up_->put(from_client(port).build(), static_cast<uint16_t>(port % workers));
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty()) << port;
        cluster_->put(reply_to(key_of(syn)), 0);
        const std::vector<uint8_t> answer = up_->take_frame();
        ASSERT_FALSE(answer.empty()) << port;
        EXPECT_EQ(key_of(answer), (packet::FlowKey{kVip, kClient, 80, port, Protocol::Tcp, {}}));
    }
}

// The memory of the tables is the caller's: it outlives a WorkerSet that has ended, and the next one, with
// another number of workers, adopts the connections and forwards their packets.
TEST_P(Workers, AdoptTheConnectionsOfFormerOnes) {
    std::map<std::string, AlignedMemory> former, current;
    const auto into = [](std::map<std::string, AlignedMemory>& tables) {
        return [&tables](const std::string& name, size_t bytes, int) -> Result<std::span<std::byte>> {
            const AlignedMemory& memory = tables.emplace(name, bytes).first->second;
            std::memset(memory.span().data(), 0xee, bytes);
            return memory.span();
        };
    };
    table_memory_ = into(former);
    start(GetParam());
    std::map<L4Port, packet::FlowKey> inside;
    for (L4Port port = 1000; port < 1100; ++port) {
        up_->put(from_client(port).build(), 0);
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty()) << port;
        inside[port] = key_of(syn);
    }
    workers_.reset();
    ASSERT_EQ(former.size(), GetParam() + 1) << "and the affinity table";

    adopt::FormerTables left;
    for (uint32_t w = 0; w < GetParam(); ++w) {
        left.connections.emplace_back(former.at("connections-" + std::to_string(w)).span());
    }
    left.services = {{ServiceId{0}}};
    left.affinity = former.at("affinity").span();
    table_memory_ = into(current);
    former_ = std::move(left);
    const uint32_t workers = 5 - GetParam();
    start(workers);
    const adopt::Report& report = workers_->adopted();
    EXPECT_EQ(report.adopted.size(), workers);
    EXPECT_EQ(report.all_adopted(), inside.size());
    EXPECT_EQ(report.all_lost(), 0u);
    for (const auto& [port, key] : inside) {
        up_->put(from_client(port).build(), 0);
        const std::vector<uint8_t> syn = cluster_->take_frame();
        ASSERT_FALSE(syn.empty()) << port;
        EXPECT_EQ(key_of(syn), key);
        cluster_->put(reply_to(key), 0);
        const std::vector<uint8_t> answer = up_->take_frame();
        ASSERT_FALSE(answer.empty()) << port;
        EXPECT_EQ(key_of(answer), (packet::FlowKey{kVip, kClient, 80, port, Protocol::Tcp, {}}));
        const worker::Explanation told =
            workers_->inspect().explain({.key = {kClient, kVip, port, 80, Protocol::Tcp, {}}});
        ASSERT_TRUE(told.leaves_as.has_value());
        EXPECT_EQ(*told.leaves_as, key);
    }
    workers_.reset();  // before its memory
}

// Once all workers have passed a detach(), none touches the port's device: it may be closed, and the other
// port continues.
class WorkersLoseAPort : public Workers {
 protected:
    [[nodiscard]] uint64_t dropped(DropReason reason) const {
        uint64_t total = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            total += workers_->inspect().drops({w}, reason);
        }
        return total;
    }
    void lose_the_cluster_port_under_load(worker::IdleMode idle, uint16_t tx_queues_of_cluster) {
        start(GetParam(), tx_queues_of_cluster, idle);
        // Flows that keep arriving while the port is removed.
        std::atomic<bool> enough{false};
        std::atomic<uint32_t> put{0};
        std::thread clients([&] {
            for (L4Port port = 1000; !enough.load();
                 port = port == 60'000 ? 1000 : static_cast<L4Port>(port + 1)) {
                up_->put(from_client(port).build(), static_cast<uint16_t>(port % GetParam()));
                put.fetch_add(1);
                while (rte_mbuf* out = cluster_->try_take()) {
                    rte_pktmbuf_free(out);
                }
            }
        });
        const auto wait_for_more = [&](uint32_t packets) {
            const uint32_t goal = put.load() + packets;
            for (const Patience patience; put.load() < goal && patience.wait();) {
            }
        };
        wait_for_more(500);
        EXPECT_EQ(dropped(DropReason::PortRemoved), 0u);
        const config::Publisher::Moment detached = workers_->detach(kCluster);
        while (!workers_->has_passed(detached)) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        const uint16_t gone = cluster_->dpdk_port();
        EXPECT_EQ(rte_eth_dev_stop(gone), 0);
        rte_eth_stats at_the_end{};
        EXPECT_EQ(rte_eth_stats_get(gone, &at_the_end), 0);
        for (const Patience patience; dropped(DropReason::PortRemoved) < 50 && patience.wait();) {
        }
        rte_eth_stats later{};
        EXPECT_EQ(rte_eth_stats_get(gone, &later), 0);
        EXPECT_EQ(later.opackets + later.oerrors, at_the_end.opackets + at_the_end.oerrors)
            << "a worker sent on a closed port";
        enough = true;
        clients.join();
        EXPECT_GE(dropped(DropReason::PortRemoved), 50u);

        worker::ExplainQuery query;
        query.key = {kClient, kVip, 61'000, 80, Protocol::Tcp, {}};
        const worker::Explanation told = workers_->inspect().explain(query);
        EXPECT_EQ(told.reason, DropReason::PortRemoved) << told.verdict;

        // The other port and its twin continue to work.
        const std::vector<uint8_t> arp =
            eth().to_mac("ff:ff:ff:ff:ff:ff").ether_type(0x0806).payload(std::vector<uint8_t>(46, 7)).build();
        up_->put(arp, 0);
        rte_mbuf* punted = take_punted(kUp);
        ASSERT_NE(punted, nullptr);
        ASSERT_EQ(workers_->send_from_host(kUp, {&punted, 1}), 1u);
        EXPECT_EQ(up_->take_frame(), arp);
    }
};
INSTANTIATE_TEST_SUITE_P(Count, WorkersLoseAPort, testing::Values(1u, 2u, 4u));

TEST_P(WorkersLoseAPort, WhilePolling) {
    lose_the_cluster_port_under_load(worker::IdleMode::Poll, 0);
}
TEST_P(WorkersLoseAPort, WhileSleepingBetweenPackets) {
    lose_the_cluster_port_under_load(worker::IdleMode::Adaptive, 0);
}
TEST_P(WorkersLoseAPort, ThatOneWorkerServesForAll) {
    lose_the_cluster_port_under_load(worker::IdleMode::Poll, 1);
}

}  // namespace worker_test
}  // namespace penstock::test
