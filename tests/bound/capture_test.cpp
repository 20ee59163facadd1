// SPDX-License-Identifier: Apache-2.0
// Captures of real workers over net_ring: what is recorded at each point, and what a slow reader loses.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "dataplane/packet/parse.hpp"
#include "dataplane/worker/capture.hpp"
#include "tests/bound/ring_ports.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/sanitizers.hpp"

namespace penstock::test {
namespace capture_test {

using capture::Point;
using pipeline::TapOptions;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

rte_mempool* pool() {
    static rte_mempool* made =
        rte_pktmbuf_pool_create("capture_test", 16'383, 0, 0, 2048, static_cast<int>(rte_socket_id()));
    return made;
}

rte_mbuf* mbuf_of(const std::vector<uint8_t>& frame) {
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool());
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<uint16_t>(frame.size())), frame.data(), frame.size());
    return mbuf;
}

struct Seen {
    capture::Record record;
    std::vector<uint8_t> frame;
    packet::FlowKey key;
};

std::vector<uint8_t> from_client(L4Port port, const char* flags = "S", const char* vip = "80.11.12.10") {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("10.80.1.2", vip)
        .tcp(port, 80, flags)
        .build();
}
packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    static_cast<void>(packet::parse(frame, parsed));
    return parsed.key;
}
std::vector<uint8_t> reply_to(const packet::FlowKey& inside) {
    return eth()
        .from_mac(backend_mac(inside.destination.bytes()[15]).to_string())
        .to_mac(kClusterMac.to_string())
        .ipv4(inside.destination.to_string(), inside.source.to_string())
        .tcp(inside.destination_port, inside.source_port, "SA")
        .build();
}

// `tcp and src port PORT`, for IPv4 without options.
capture::Program from_port(L4Port port) {
    const std::vector<capture::Instruction> instructions{
        {0x28, 0, 0, 12}, {0x15, 0, 5, 0x800}, {0x30, 0, 0, 23}, {0x15, 0, 3, 6},
        {0x28, 0, 0, 34}, {0x15, 0, 1, port},  {0x06, 0, 0, 1},  {0x06, 0, 0, 0}};
    return capture::Program::make(instructions).value();
}

class Captures : public testing::TestWithParam<uint32_t> {
 protected:
    void SetUp() override {
        if (kUnderThreadSanitizer) {
            GTEST_SKIP() << "as worker_test.cpp";
        }
        ASSERT_TRUE(start_eal());
        static int run = 0;
        const std::string suffix = std::to_string(run++);
        const auto workers = static_cast<uint16_t>(GetParam());
        up_ = std::make_unique<RingPort>("cup" + suffix, workers, pool());
        cluster_ = std::make_unique<RingPort>("ccl" + suffix, workers, pool());
        worker::WorkerSetOptions options;
        options.connections_per_worker = 4'096;
        for (uint32_t w = 0; w < workers; ++w) {
            options.lcores.push_back(w + 1);
            options.cpus.push_back(worker_cpu());
        }
        // One transmit queue on the cluster side: the other workers send through worker 0.
        options.ports = {{kUp, up_->dpdk_port(), workers, workers, false, false, kUpMac},
                         {kCluster, cluster_->dpdk_port(), workers, 1, false, false, kClusterMac}};
        gateway_.publish({web_, idle_});
        auto started = worker::WorkerSet::start(std::move(options),
                                                std::make_unique<config::Snapshot>(gateway_.snapshot()));
        ASSERT_TRUE(started.has_value()) << started.error().what;
        workers_ = std::move(*started);
    }
    void TearDown() override {
        capture_.reset();
        workers_.reset();
    }

    void begin(const TapOptions& options = {}) {
        auto started = worker::Capture::start(*workers_, options);
        ASSERT_TRUE(started.has_value()) << started.error().what;
        capture_ = std::move(*started);
    }
    void read() {
        capture_->read(~0U, [&](const capture::Record& record, std::span<const uint8_t> frame) {
            Seen seen{record, {frame.begin(), frame.end()}, {}};
            seen.key = key_of(seen.frame);
            seen_.push_back(std::move(seen));
        });
    }
    // Records so far, when at least `count` have been made.
    const std::vector<Seen>& seen(size_t count) {
        EXPECT_TRUE(comes_true([&] {
            read();
            return seen_.size() >= count;
        })) << seen_.size()
            << " of " << count << " records";
        return seen_;
    }
    // A connection of the client port, by any queue. Returns the key of its SYN behind the gateway.
    packet::FlowKey open(L4Port port, uint16_t queue = 0) {
        up_->put(from_client(port), queue);
        const auto syn = key_of(cluster_->take_frame());
        cluster_->put(reply_to(syn), queue);
        EXPECT_FALSE(up_->take_frame().empty());
        return syn;
    }
    [[nodiscard]] uint64_t sum(stats::Counter counter) const {
        uint64_t total = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            total += workers_->inspect().counter({w}, counter);
        }
        return total;
    }
    [[nodiscard]] uint64_t drops(DropReason reason) const {
        uint64_t total = 0;
        for (uint8_t w = 0; w < GetParam(); ++w) {
            total += workers_->inspect().drops({w}, reason);
        }
        return total;
    }

    TestService web_{.frontends = {{kVip, 80}}, .backends = {11, 12}};
    TestService idle_{.name = "idle",
                      .frontends = {{IpAddr::v4(80, 11, 12, 11), 80}},
                      .backends = {},
                      .when_empty = lb::EmptyAction::Drop};
    VirtualGateway gateway_;
    std::unique_ptr<RingPort> up_, cluster_;
    std::unique_ptr<worker::WorkerSet> workers_;
    std::unique_ptr<worker::Capture> capture_;
    std::vector<Seen> seen_;
};
INSTANTIATE_TEST_SUITE_P(Count, Captures, testing::Values(1u, 2u));

// Every packet once before and once after translation, whichever worker it arrives at and leaves by.
TEST_P(Captures, RecordPacketsBeforeAndAfterTranslation) {
    begin();
    const uint16_t other = static_cast<uint16_t>(GetParam() - 1);
    for (L4Port port = 2'000; port < 2'020; ++port) {
        seen_.clear();
        const packet::FlowKey inside = open(port, port % 2 == 0 ? uint16_t{0} : other);
        const auto& records = seen(4);
        ASSERT_EQ(records.size(), 4u);
        const auto find = [&](Point point, NicPortId nic) {
            const auto found = std::ranges::find_if(records, [&](const Seen& each) {
                return each.record.point == point && each.record.port == nic;
            });
            EXPECT_NE(found, records.end());
            return *found;
        };
        const packet::FlowKey outside{kClient, kVip, port, 80, Protocol::Tcp, {}};
        const Seen in = find(Point::Rx, kUp), out = find(Point::Tx, kCluster);
        const Seen back = find(Point::Rx, kCluster), home = find(Point::Tx, kUp);
        EXPECT_EQ(in.key, outside);
        EXPECT_EQ(out.key, inside);
        EXPECT_EQ(back.key, inside.reversed());
        EXPECT_EQ(home.key, outside.reversed());
        EXPECT_EQ(in.frame, from_client(port)) << "as it arrived";
        for (const Seen* each : {&in, &out, &back, &home}) {
            const capture::Finding& finding = each->record.finding;
            EXPECT_EQ(finding.verdict, Verdict::Transmit);
            EXPECT_EQ(finding.backend, gateway_.backend_of(web_, inside.destination.bytes()[15]));
            EXPECT_EQ(finding.connection, in.record.finding.connection);
            EXPECT_TRUE(finding.connection.index.is_set());
            EXPECT_EQ(finding.worker, in.record.finding.worker) << "the owner decides about both directions";
            EXPECT_EQ(each->record.lost_before, 0u);
        }
        EXPECT_LE(in.record.ticks, home.record.ticks);
    }
    EXPECT_EQ(capture_->lost(), 0u);
}

TEST_P(Captures, SelectByFilterServiceClientAndPoint) {
    begin({.filter = from_port(3'001)});
    for (L4Port port = 3'000; port < 3'003; ++port) {
        open(port);
    }
    ASSERT_EQ(seen(2).size(), 2u) << "the packet of the client, in both forms; the reply is to that port";
    EXPECT_EQ(seen_[0].key.source_port, 3'001);

    capture_.reset();
    seen_.clear();
    const packet::FlowKey known = open(3'100);
    begin({.filter = from_port(9'376), .form = TapOptions::Form::Either, .points = {1U << 1}});
    open(3'003);
    ASSERT_EQ(seen(1).size(), 1u) << "the reply as sent; only point tx";
    EXPECT_EQ(seen_[0].record.point, Point::Tx);
    EXPECT_EQ(seen_[0].record.port, kUp);

    capture_.reset();
    seen_.clear();
    begin({.filter = from_port(known.source_port), .form = TapOptions::Form::Translated});
    up_->put(from_client(3'100, "A"), 0);
    ASSERT_FALSE(cluster_->take_frame().empty());
    ASSERT_EQ(seen(2).size(), 2u) << "the SNAT port is in the translated packet only";
    EXPECT_EQ(seen_[0].key.source_port, 3'100);

    capture_.reset();
    seen_.clear();
    begin({.services = {{ServiceId{1'000}}}});
    open(3'004);
    capture_.reset();
    begin({.services = {{gateway_.snapshot().services->find(kVip, 80, Protocol::Tcp)->service->id}},
           .client = kClient});
    open(3'005);
    ASSERT_EQ(seen(4).size(), 4u) << "both packets of the connection, and nothing of the capture before";
    EXPECT_EQ(seen_[0].key.source_port, 3'005);
    capture_.reset();
    seen_.clear();
    begin({.client = IpAddr::v4(10, 80, 1, 3)});
    open(3'006);
    capture_->stop();
    read();
    EXPECT_TRUE(seen_.empty());
}

TEST_P(Captures, RecordDropsWithTheirReason) {
    begin({.points = {1U << 2}});
    auto broken = from_client(4'000);
    broken[24] ^= 0xff;  // header checksum
    up_->put(broken, 0);
    up_->put(from_client(4'001, "S", "80.11.12.11"), 0);  // no endpoint
    up_->put(from_client(4'002, "R"), 0);                 // no connection
    std::map<DropReason, Seen> by_reason;
    for (const Seen& each : seen(3)) {
        EXPECT_EQ(each.record.finding.verdict, Verdict::Drop);
        by_reason.emplace(each.record.finding.reason, each);
    }
    ASSERT_EQ(by_reason.size(), 3u);
    EXPECT_EQ(by_reason[DropReason::BadIpChecksum].frame, broken);
    EXPECT_EQ(by_reason[DropReason::NoEndpoint].record.finding.service,
              gateway_.snapshot().services->find(IpAddr::v4(80, 11, 12, 11), 80, Protocol::Tcp)->service->id);
    for (const auto& [reason, each] : by_reason) {
        EXPECT_GT(drops(reason), 0u) << text_of(reason).counter;
    }
}

// The drops happen behind the stages: the transmit queue is full, or the next hop is never resolved.
TEST_P(Captures, RecordLateDrops) {
    const packet::FlowKey inside = open(5'000);
    const uint64_t sent_before = sum(stats::Counter::TxPackets);
    begin({.points = {1U << 1 | 1U << 2}});
    constexpr uint32_t kPackets = 4'000;  // twice the room of the wire
    for (uint32_t n = 0; n < kPackets; ++n) {
        up_->put(from_client(5'000, "A"), 0);
        read();
    }
    ASSERT_TRUE(comes_true([&] {
        read();
        return sum(stats::Counter::TxPackets) - sent_before + drops(DropReason::TxQueueFull) == kPackets;
    }));
    capture_->stop();
    read();
    const auto count = [&](Point point, DropReason reason) {
        return static_cast<uint64_t>(std::ranges::count_if(seen_, [&](const Seen& each) {
            return each.record.point == point && (point == Point::Tx || each.record.finding.reason == reason);
        }));
    };
    ASSERT_EQ(capture_->lost(), 0u);
    EXPECT_GT(drops(DropReason::TxQueueFull), 0u);
    if (GetParam() == 1) {
        EXPECT_EQ(count(Point::Drop, DropReason::TxQueueFull), drops(DropReason::TxQueueFull));
        EXPECT_EQ(count(Point::Tx, {}), kPackets - drops(DropReason::TxQueueFull));
    }
    for (const Seen& each : seen_) {
        ASSERT_EQ(each.key, inside);
        // Worker 0 sends for worker 1, and may have to drop packets that only that one knows.
        ASSERT_TRUE(each.record.finding.backend.is_set() || GetParam() > 1);
    }
    while (rte_mbuf* mbuf = cluster_->try_take()) {
        rte_pktmbuf_free(mbuf);
    }

    // A packet is held for its next hop, and sent when that is known; another one is dropped.
    capture_.reset();
    begin({.points = {1U << 1 | 1U << 2}});
    gateway_.set_unresolved({11, 12});
    workers_->publish(std::make_unique<config::Snapshot>(gateway_.snapshot()));
    seen_.clear();
    up_->put(from_client(5'000, "A"), 0);
    ASSERT_EQ(seen(1).size(), 1u);
    EXPECT_EQ(seen_[0].record.finding.reason, DropReason::NextHopUnresolved);
    EXPECT_TRUE(seen_[0].record.finding.connection.index.is_set());
    up_->put(from_client(5'000, "A"), 0);
    ASSERT_TRUE(comes_true([&] { return sum(stats::Counter::HeldForNextHop) == 2; }));
    seen_.clear();
    gateway_.set_unresolved({});
    workers_->publish(std::make_unique<config::Snapshot>(gateway_.snapshot()));
    EXPECT_EQ(key_of(cluster_->take_frame()), inside);
    ASSERT_EQ(seen(1).size(), 1u);
    EXPECT_EQ(seen_[0].record.point, Point::Tx);
    EXPECT_EQ(seen_[0].record.finding.verdict, Verdict::Transmit);
    EXPECT_TRUE(seen_[0].record.finding.connection.index.is_set());
}

TEST_P(Captures, RecordPacketsOfLinux) {
    begin({.points = {1U << 3}});
    const auto to_host = eth()
                             .from_mac(kClientMac.to_string())
                             .to_mac(kUpMac.to_string())
                             .ipv4("10.80.1.2", "10.80.1.1")
                             .udp(1'000, 179)
                             .build();
    up_->put(to_host, 0);
    ASSERT_EQ(seen(1).size(), 1u);
    EXPECT_EQ(seen_[0].frame, to_host);
    EXPECT_EQ(seen_[0].record.finding.verdict, Verdict::Punt);
    EXPECT_FALSE(seen_[0].record.finding.from_host);

    const auto of_host = eth()
                             .from_mac(kUpMac.to_string())
                             .to_mac(kClientMac.to_string())
                             .ipv4("10.80.1.1", "10.80.1.2")
                             .udp(179, 1'000)
                             .build();
    rte_mbuf* mbuf = mbuf_of(of_host);
    ASSERT_EQ(workers_->send_from_host(kUp, {&mbuf, 1}), 1u);
    EXPECT_EQ(up_->take_frame(), of_host);
    ASSERT_EQ(seen(2).size(), 2u);
    EXPECT_EQ(seen_[1].frame, of_host);
    EXPECT_TRUE(seen_[1].record.finding.from_host);
    EXPECT_EQ(seen_[1].record.finding.verdict, Verdict::Transmit);
}

// The twin I/O thread drops frames that no worker has; here the test is this thread.
TEST_P(Captures, RecordDropsBetweenLinuxAndTheWorkers) {
    const auto drop = [&](DropReason reason, const std::vector<uint8_t>& frame) {
        rte_mbuf* const buffer = mbuf_of(frame);
        workers_->host_frames_dropped(kCluster, reason, {&buffer, 1});
        rte_pktmbuf_free(buffer);
    };
    drop(DropReason::PuntFailed, from_client(4'000));
    begin();
    drop(DropReason::PuntFailed, from_client(4'001));
    drop(DropReason::FromHostRingFull, from_client(4'002));
    drop(DropReason::HostFrameInvalid, {1, 2, 3});
    const auto& seen = this->seen(3);
    ASSERT_EQ(seen.size(), 3u) << "only while the capture runs";
    for (const Seen& each : seen) {
        EXPECT_EQ(each.record.point, Point::Drop);
        EXPECT_EQ(each.record.port, kCluster);
        EXPECT_EQ(each.record.finding.verdict, Verdict::Drop);
        EXPECT_FALSE(each.record.finding.worker.is_set());
    }
    EXPECT_EQ(seen[0].record.finding.reason, DropReason::PuntFailed);
    EXPECT_FALSE(seen[0].record.finding.from_host);
    EXPECT_EQ(seen[0].key.source_port, 4'001);
    EXPECT_EQ(seen[1].record.finding.reason, DropReason::FromHostRingFull);
    EXPECT_TRUE(seen[1].record.finding.from_host);
    EXPECT_EQ(seen[1].key.source_port, 4'002);
    EXPECT_EQ(seen[2].record.finding.reason, DropReason::HostFrameInvalid);
    EXPECT_EQ(seen[2].frame, (std::vector<uint8_t>{1, 2, 3}));
    EXPECT_EQ(drops(DropReason::PuntFailed), 2u) << "counted without a capture too";

    // The selection of the capture applies.
    const auto recorded = [&](const TapOptions& options) {
        capture_.reset();
        seen_.clear();
        begin(options);
        drop(DropReason::PuntFailed, from_client(4'003));
        drop(DropReason::PuntFailed, from_client(4'004));
        read();
        return seen_.size();
    };
    EXPECT_EQ(recorded({.filter = from_port(4'004)}), 1u);
    EXPECT_EQ(recorded({.filter = {}, .client = IpAddr::v4(10, 80, 1, 2)}), 2u);
    EXPECT_EQ(recorded({.filter = {}, .client = IpAddr::v4(10, 80, 1, 3)}), 0u);
    EXPECT_EQ(recorded({.filter = {}, .services = std::vector<ServiceId>{{0}}}), 0u) << "no connection";
    capture::Points rx;
    rx.add(Point::Rx);
    EXPECT_EQ(recorded({.filter = {}, .points = rx}), 0u);
    capture_->stop();
    drop(DropReason::PuntFailed, from_client(4'005));
    read();
    EXPECT_TRUE(seen_.empty());
}

// Memory for records is bounded. If no record is read, some packets are left out and counted; when reading
// goes on, so does recording.
TEST_P(Captures, ASlowReaderGetsASampleAndACount) {
    open(6'000);
    // Slots of 16 KiB: 1,024 of them for one worker, 512 for each of two.
    begin({.points = {1U << 0}, .snap_bytes = 16'384});
    constexpr uint64_t kPackets = 4'000;
    const auto send = [&](uint64_t packets) {
        for (uint64_t n = 0; n < packets; ++n) {
            up_->put(from_client(6'000, "A"), 0);
            rte_pktmbuf_free(cluster_->take());
        }
    };
    send(kPackets);
    read();
    const uint64_t lost = capture_->lost();
    EXPECT_EQ(seen_.size() + lost, kPackets);
    EXPECT_GT(lost, 0u);
    EXPECT_LE(seen_.size(), worker::Capture::kBytes / 16'384);
    EXPECT_GT(seen_.size(), 300u) << "about three quarters of the slots before the first one is left out";
    uint64_t noted = 0;
    for (const Seen& each : seen_) {
        noted += each.record.lost_before;
        ASSERT_EQ(each.key, key_of(from_client(6'000)));
    }
    EXPECT_LE(noted, lost);
    // The rest of the losses is noted with the next record.
    seen_.clear();
    for (uint64_t sent = 0; seen_.empty() && sent < 4'096; ++sent) {
        send(1);
        read();
    }
    ASSERT_FALSE(seen_.empty());
    EXPECT_EQ(noted + seen_.front().record.lost_before, capture_->lost());
    // Soon every packet is recorded again.
    for (int n = 0; n < 64; ++n) {
        send(1);
        read();
    }
    seen_.clear();
    const uint64_t lost_before = capture_->lost();
    send(10);
    EXPECT_EQ(seen(10).size(), 10u);
    EXPECT_EQ(capture_->lost(), lost_before);
}

TEST_P(Captures, OnlyOneRunsAndEachStartsAndEndsWhileTrafficFlows) {
    begin();
    const auto second = worker::Capture::start(*workers_, {});
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code, Errc::AlreadyExists);
    open(7'000);
    capture_.reset();
    for (int n = 0; n < 200; ++n) {
        begin({.points = {1U << 0}});
        up_->put(from_client(7'000, "A"), 0);
        ASSERT_FALSE(cluster_->take_frame().empty()) << n;
        ASSERT_EQ(seen(1).size(), 1u) << n;
        if (n % 2 == 0) {
            capture_->stop();
            capture_->stop();
        }
        capture_.reset();
        seen_.clear();
    }
    // With no capture, nothing is recorded, and the packets still pass.
    up_->put(from_client(7'000, "A"), 0);
    EXPECT_FALSE(cluster_->take_frame().empty());
    // Workers that end during a capture.
    begin();
    workers_->stop();
    capture_->stop();
    read();
    EXPECT_TRUE(seen_.empty());
}

}  // namespace capture_test
}  // namespace penstock::test
