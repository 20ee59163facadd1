// SPDX-License-Identifier: Apache-2.0
// Decisions that precede DPDK: steering, buffers, EAL's arguments, locks, hugepages.
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "control/base/file_lock.hpp"
#include "dataplane/base/limits.hpp"
#include "drivers/eal/eal.hpp"
#include "drivers/eal/host_facts.hpp"
#include "drivers/eal/hugepages.hpp"
#include "drivers/eal/mempool.hpp"
#include "drivers/host/ingress_guard.hpp"
#include "drivers/port/interrupts.hpp"
#include "drivers/port/port_lock.hpp"
#include "drivers/steering/steering_plan.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/prng.hpp"

namespace penstock::drivers {
namespace plans_test {

namespace fs = std::filesystem;

// A temporary folder, removed at the end of the test.
struct Folder {
    fs::path path = fs::temp_directory_path() / ("penstock_plans_" + std::to_string(getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
};

// RSS of a good device: a key that spreads, and a table with the queues in turn.
RssReading rss_of(unsigned queues, RssKinds kinds = kAllRssKinds, size_t entries = 128) {
    RssReading reading;
    reading.granted = true;
    reading.kinds = kinds;
    test::Prng prng(40);
    for (size_t i = 0; i < kRssKeyBytesUsual; ++i) {
        reading.key.push_back(static_cast<uint8_t>(prng.next()));
    }
    for (size_t entry = 0; entry < entries; ++entry) {
        reading.table.push_back(static_cast<uint16_t>(entry % queues));
    }
    return reading;
}

RssReading unreadable_key(unsigned queues) {
    RssReading reading = rss_of(queues);
    reading.key.clear();
    reading.key_reason = "the driver does not report its RSS key: Operation not supported";
    return reading;
}

RssReading unreadable_table(unsigned queues) {
    RssReading reading = rss_of(queues);
    reading.table.clear();
    reading.table_reason = "the driver reports no RSS indirection table";
    return reading;
}

// The key of a symmetric hash repeats every 16 bits, so a source port changes the hash as the destination
// port does. But all of its columns are among 16, and a table entry can still be predicted. A key of zeros
// maps every packet to entry 0.
RssReading key_of(unsigned queues, uint8_t even, uint8_t odd) {
    RssReading reading = rss_of(queues);
    for (size_t i = 0; i < reading.key.size(); ++i) {
        reading.key[i] = i % 2 == 0 ? even : odd;
    }
    return reading;
}

RssReading without_queue(unsigned queues, uint16_t missing) {
    RssReading reading = rss_of(queues);
    std::replace(reading.table.begin(), reading.table.end(), missing,
                 static_cast<uint16_t>((missing + 1) % queues));
    return reading;
}

constexpr RssKinds kTcpOnly{.tcp4 = true, .udp4 = false, .tcp6 = true, .udp6 = false};
const FlowKindSupport kRulesValid{.validates = true, .reason = {}};
const FlowKindSupport kRulesRefused{.validates = false, .reason = "no RTE_FLOW_ACTION_TYPE_QUEUE"};

TEST(SteeringPlan, TakesTheBestWayThatIsNotRefusedByName) {
    const struct {
        const char* driver;
        SteeringFacts facts;
        Steering steering;
        bool stays;
        const char* reason;
    } rows[] = {
        {"net_af_packet",
         {.workers = 1, .rx_queues = 1},
         Steering::Handoff,
         true,
         "one worker owns everything"},
        {"net_ixgbe",
         {.workers = 1, .rx_queues = 1, .snat_to_queue = kRulesValid},
         Steering::Handoff,
         true,
         "one worker owns everything"},
        {"net_af_packet",
         {.workers = 2, .rx_queues = 2},
         Steering::Handoff,
         false,
         "the kernel's fanout moves a flow"},
        {"net_af_xdp",
         {.workers = 2, .rx_queues = 1},
         Steering::Handoff,
         false,
         "1 receive queues for 2 workers"},
        {"net_ring", {.workers = 2, .rx_queues = 2}, Steering::Handoff, false, "the writer of the ring"},
        {"net_null",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2)},
         Steering::Handoff,
         false,
         "has no effect"},
        {"net_tap",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2)},
         Steering::Handoff,
         false,
         "last sent a packet of it"},
        {"net_tap",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2), .snat_to_queue = kRulesValid},
         Steering::FlowRules,
         false,
         "a flow rule sends each worker's SNAT ports to its queue; not by RSS: the kernel sends a flow"},
        {"net_virtio_user0",
         {.workers = 4, .rx_queues = 4, .rss = rss_of(4)},
         Steering::Handoff,
         false,
         "vhost side"},
        {"net_virtio",
         {.workers = 4, .rx_queues = 4, .rss = rss_of(4)},
         Steering::PredictableRss,
         true,
         "hash of tcp4,udp4,tcp6,udp6"},
        {"net_virtio", {.workers = 4, .rx_queues = 4}, Steering::Handoff, false, "no RSS"},
        {"net_ixgbe",
         {.workers = 4, .rx_queues = 4, .rss = rss_of(4)},
         Steering::PredictableRss,
         true,
         "the port's own RSS hash"},
        {"net_ixgbe",
         {.workers = 3, .rx_queues = 3, .rss = rss_of(3)},
         Steering::PredictableRss,
         true,
         "the port's own RSS hash"},
        // The hash function cannot be read: if it is in doubt, nothing is predicted.
        {"net_i40e",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2), .other_hash = true},
         Steering::Handoff,
         true,
         "support-multi-driver"},
        {"net_i40e",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2)},
         Steering::PredictableRss,
         true,
         "the port's own RSS hash"},
        // RSS is tried first, and rules only if RSS cannot be used.
        {"net_ixgbe",
         {.workers = 4, .rx_queues = 4, .rss = rss_of(4), .snat_to_queue = kRulesValid},
         Steering::PredictableRss,
         true,
         "RSS"},
        {"net_ixgbe",
         {.workers = 8, .rx_queues = 4, .rss = rss_of(4)},
         Steering::Handoff,
         false,
         "4 receive queues for 8 workers"},
        {"net_ixgbe",
         {.workers = 8, .rx_queues = 4, .rss = rss_of(4), .snat_to_queue = kRulesValid},
         Steering::Handoff,
         false,
         "4 receive queues for 8 workers"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = unreadable_key(2)},
         Steering::Handoff,
         true,
         "does not report its RSS key"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = unreadable_table(2)},
         Steering::Handoff,
         true,
         "no RSS indirection table"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = key_of(2, 0, 0)},
         Steering::Handoff,
         true,
         "its RSS cannot be used: worker"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = key_of(2, 0x6d, 0x5a)},
         Steering::PredictableRss,
         true,
         "the port's own RSS"},
        {"net_ixgbe",
         {.workers = 4, .rx_queues = 4, .rss = without_queue(4, 2)},
         Steering::Handoff,
         true,
         "worker 2 would own 0"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2, kAllRssKinds, 96)},
         Steering::Handoff,
         true,
         "96 entries"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2, RssKinds{})},
         Steering::Handoff,
         false,
         "neither TCP nor UDP"},
        {"net_vmxnet3",
         {.workers = 2, .rx_queues = 2, .rss = rss_of(2, kTcpOnly)},
         Steering::PredictableRss,
         false,
         "hash of tcp4,tcp6; replies of udp4,udp6 are handed over"},
        {"net_ixgbe",
         {.workers = 2,
          .rx_queues = 2,
          .rss = rss_of(2),
          .check_failed = "3 of 64 known packets reached another queue"},
         Steering::Handoff,
         false,
         "3 of 64 known packets"},
        {"net_ixgbe",
         {.workers = 2,
          .rx_queues = 2,
          .rss = rss_of(2),
          .check_failed = "3 of 64 known packets",
          .snat_to_queue = kRulesValid},
         Steering::FlowRules,
         false,
         "not by RSS: 3 of 64"},
        {"net_ixgbe",
         {.workers = 2, .rx_queues = 2, .rss = unreadable_key(2), .snat_to_queue = kRulesRefused},
         Steering::Handoff,
         true,
         "does not report its RSS key: Operation not supported; no flow rules: no RTE_FLOW"},
    };
    for (const auto& row : rows) {
        const SteeringPlan plan = plan_steering(pmd_profile(row.driver), row.facts);
        EXPECT_STREQ(to_string(plan.steering), to_string(row.steering)) << row.driver << ": " << plan.reason;
        EXPECT_EQ(plan.flow_stays_on_queue, row.stays) << row.driver << ": " << plan.reason;
        EXPECT_NE(plan.reason.find(row.reason), std::string::npos) << row.driver << ": " << plan.reason;
        EXPECT_EQ(plan.reply_hash.has_value(), plan.steering == Steering::PredictableRss) << row.driver;
    }
}

TEST(SteeringPlan, SaysTheHashInTheWorkersTerms) {
    RssReading reading = rss_of(4, kTcpOnly, 8);
    reading.table = {3, 2, 1, 0, 0, 1, 2, 3};
    // Two workers for four queues: a worker polls every second queue.
    const SteeringPlan plan =
        plan_steering(pmd_profile("net_ixgbe"), {.workers = 2, .rx_queues = 4, .rss = reading});
    ASSERT_TRUE(plan.reply_hash) << plan.reason;
    EXPECT_EQ(plan.reply_hash->key, reading.key);
    EXPECT_EQ(plan.reply_hash->worker_of, (std::vector<WorkerId>{{1}, {0}, {1}, {0}, {0}, {1}, {0}, {1}}));
    EXPECT_TRUE(plan.reply_hash->tcp4 && plan.reply_hash->tcp6);
    EXPECT_FALSE(plan.reply_hash->udp4 || plan.reply_hash->udp6);
}

TEST(Rss, DrawnKeysSpreadOverEveryTable) {
    EXPECT_NE(random_rss_key(), random_rss_key());
    for (int draw = 0; draw < 200; ++draw) {
        RssReading reading = rss_of(2);
        reading.key = random_rss_key();
        for (const unsigned workers : {2u, 3u, 7u, 64u}) {
            for (const size_t entries : {64u, 128u, 512u, 2048u}) {
                RssReading shared = rss_of(workers, kAllRssKinds, entries);
                shared.key = reading.key;
                // 64 entries are one for each of 64 workers. 128 entries give no even share of every class to
                // 7 workers; none may be left out.
                EXPECT_EQ(obstacle_of(shared, workers), "")
                    << workers << " workers, " << entries << " entries";
            }
        }
    }
}

// A reply's port alone reaches each entry of the largest table, so the ports towards one endpoint are shared
// as evenly as the table. One key in nine fails this and is redrawn. The hash is computed bit by bit here.
TEST(Rss, DrawnKeysLeadPortsToEveryEntry) {
    constexpr uint32_t kEntries = nat::kReplyHashEntriesMax;
    packet::FlowKey replies[] = {
        {IpAddr::v4(10, 1, 2, 3), IpAddr::v4(192, 0, 2, 1), 9376, 0, Protocol::Tcp, {}},
        {IpAddr::v6({0xfd, 1}), IpAddr::v6({0xfd, 9}), 9376, 0, Protocol::Tcp, {}}};
    for (int draw = 0; draw < 200; ++draw) {
        const std::vector<uint8_t> key = random_rss_key();
        for (packet::FlowKey& reply : replies) {
            std::array<uint32_t, 16> column;
            reply.destination_port = 0;
            const uint32_t base = test::plain_rss(key, reply);
            for (unsigned bit = 0; bit < column.size(); ++bit) {
                reply.destination_port = static_cast<L4Port>(1U << bit);
                column[bit] = (test::plain_rss(key, reply) ^ base) % kEntries;
            }
            std::vector<bool> reached(kEntries);
            uint32_t entry = base % kEntries;
            for (uint32_t port = 1; port <= 65'536;
                 ++port) {  // in Gray code order: one bit changes at a time
                reached[entry] = true;
                entry ^= column[std::min(std::countr_zero(port), 15)];
            }
            ASSERT_EQ(std::ranges::count(reached, true), kEntries) << "draw " << draw;
        }
    }
}

TEST(Rss, KindsAreThoseWithPorts) {
    EXPECT_EQ(
        to_string(rss_kinds(RTE_ETH_RSS_IP | RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP)),
        "tcp4,tcp6");
    EXPECT_EQ(to_string(RssKinds{}), "none");
    EXPECT_EQ(without(kAllRssKinds, kTcpOnly),
              (RssKinds{.tcp4 = false, .udp4 = true, .tcp6 = false, .udp6 = true}));
}

TEST(Interrupts, AreAskedForWhereTheyCome) {
    const DeclaredInterrupts both{.link = true, .removal = true};
    const InterruptWish all = wish_interrupts("net_ice", true, both);
    EXPECT_TRUE(all.rx_queues && all.link && all.removal);
    EXPECT_EQ(all.why_no_rx_queues + all.why_no_link, "");
    const InterruptWish silent = wish_interrupts("net_vmxnet3", true, {.link = true, .silent_link = true});
    EXPECT_TRUE(silent.rx_queues);
    EXPECT_FALSE(silent.link || silent.removal);
    EXPECT_EQ(silent.why_no_link, "it is known not to be raised");
    const InterruptWish none = wish_interrupts("net_ring", true, {});
    EXPECT_FALSE(none.rx_queues || none.link || none.removal);
    EXPECT_EQ(none.why_no_link, "the device has none");
    EXPECT_TRUE(none.why_no_rx_queues.starts_with("net_ring has none")) << none.why_no_rx_queues;
    const InterruptWish polling = wish_interrupts("net_ice", false, both);
    EXPECT_FALSE(polling.rx_queues);
    EXPECT_EQ(polling.why_no_rx_queues, "") << "nobody asked";
    EXPECT_TRUE(polling.link);
}

TEST(PortSettings, TheLastAnswerToANameCounts) {
    std::vector<PortSetting> settings;
    note_setting(settings, {.name = "rss-key", .asked = "random", .granted = {}, .reason = "refused"});
    note_setting(settings, {.name = "rss-table", .asked = "128", .granted = "128", .reason = {}});
    note_setting(settings,
                 {.name = "rss-key", .asked = "as it is", .granted = "the device's own", .reason = {}});
    ASSERT_EQ(settings.size(), 2u);
    EXPECT_EQ(settings[0].granted, "the device's own");
}

TEST(MempoolShape, HoldsEveryPlaceAPacketCanBe) {
    MempoolDemand demand{
        .rx_descriptors = 4096, .tx_descriptors = 4096, .workers = 2, .ports = 2, .frame_bytes_max = 2016};
    const auto shape = mempool_shape(demand);
    ASSERT_TRUE(shape);
    // Full caches of both workers and the twin I/O thread, full handoff rings, full holds and punt rings of
    // each class, all descriptors in use.
    const uint32_t worst = 8192 + 3 * 384 +
                           2 * (limits::kHandoffRing + limits::kPendingMax + limits::kFragmentsWaitingMax) +
                           2 * (2 * limits::kPuntRing + limits::kPuntRoutingRing + limits::kPuntLinkRing);
    EXPECT_GE(shape->count, worst);
    EXPECT_LT(shape->count, 2 * worst);
    EXPECT_EQ(shape->data_room, 2048 + 128);
    // Both ports have one transmit queue: the ring in front of each of them is full as well.
    for (const uint32_t rings : {2U, 16U, 64U}) {
        demand.tx_through = rings;
        EXPECT_GE(mempool_shape(demand)->count, worst + rings * limits::kHandoffRing) << rings;
    }
}

TEST(MempoolShape, RoomFollowsTheLargestFrame) {
    const struct {
        uint32_t frame;
        uint32_t room;
    } rows[] = {{64, 2048}, {2048, 2048}, {2049, 3072}, {9022, 9216}, {16'352, 16'384}};
    for (const auto& row : rows) {
        const auto shape = mempool_shape({.workers = 1, .ports = 1, .frame_bytes_max = row.frame});
        ASSERT_TRUE(shape);
        EXPECT_EQ(shape->data_room, row.room + 128) << row.frame;
    }
    EXPECT_FALSE(mempool_shape({.workers = 1, .ports = 1, .frame_bytes_max = 65'600}));
    // An AF_XDP buffer with its headers must fit in a page. Here another port's MTU prevents that.
    const auto crowded =
        mempool_shape({.workers = 1, .ports = 2, .frame_bytes_max = 9022, .object_bytes_max = 4096});
    ASSERT_FALSE(crowded);
    EXPECT_EQ(crowded.error().code, Errc::InvalidArgument);
    EXPECT_TRUE(mempool_shape({.workers = 1, .ports = 2, .frame_bytes_max = 1522, .object_bytes_max = 4096}));
}

std::string joined(const std::vector<std::string>& args) {
    std::string text;
    for (const std::string& arg : args) {
        text += arg + " ";
    }
    return text;
}

TEST(EalArguments, SeveralWorkersMayShareACpu) {
    const EalOptions options{.worker_cpus = {0, 1, 1}, .main_cpu = 0, .memory_mb = 256, .file_prefix = "t"};
    EXPECT_EQ(joined(eal_arguments(options, true)),
              "penstockd --lcores 0@0,1@0,2@1,3@1 --main-lcore 0 -m 256 --no-telemetry --log-level=warning "
              "--in-memory --file-prefix=t "
              "--no-pci ");
    EXPECT_EQ(joined(eal_arguments(options, false)),
              "penstockd --lcores 0@0,1@0,2@1,3@1 --main-lcore 0 -m 256 --no-telemetry --log-level=warning "
              "--no-huge --no-shconf "
              "--file-prefix=t --no-pci ");
}

TEST(EalArguments, PciIsLookedAtOnlyWhenAskedFor) {
    const EalOptions options{.worker_cpus = {1},
                             .pci_allow = {"0000:03:00.0", "0000:03:00.1"},
                             .file_prefix = "t",
                             .extra_args = {"--iova-mode=va"}};
    const std::string text = joined(eal_arguments(options, true));
    EXPECT_NE(text.find("-a 0000:03:00.0 -a 0000:03:00.1 --iova-mode=va "), std::string::npos) << text;
    EXPECT_EQ(text.find("--no-pci"), std::string::npos) << text;
}

TEST(Eal, RefusesCpusThatAreNotOurs) {
    const auto eal = Eal::start({.worker_cpus = {1'000}, .main_cpu = allowed_cpus().front()});
    ASSERT_FALSE(eal);
    EXPECT_EQ(eal.error().code, Errc::InvalidArgument);
    EXPECT_NE(eal.error().what.find("worker CPU 1000"), std::string::npos) << eal.error().what;
    EXPECT_FALSE(Eal::start({.worker_cpus = {}, .main_cpu = allowed_cpus().front()}));
}

TEST(HostFacts, ReadsPortRanges) {
    const auto usual = parse_port_range("32768\t60999");
    ASSERT_TRUE(usual);
    EXPECT_EQ(*usual, (nat::PortRange{32768, 60999}));
    for (const char* text : {"", "32768", "60999 32768", "a b", "1 70000"}) {
        EXPECT_FALSE(parse_port_range(text)) << text;
    }
    EXPECT_TRUE(host_ephemeral_range());
    EXPECT_FALSE(allowed_cpus().empty());
}

// A hugepage pool as the kernel shows it. The files do not react to writes, and a test can change them
// between two calls only, so these tests check the requested values.
void write_pool(const fs::path& folder, uint64_t total, uint64_t free, uint64_t promised) {
    fs::create_directories(folder);
    std::ofstream(folder / "nr_hugepages") << total;
    std::ofstream(folder / "free_hugepages") << free;
    std::ofstream(folder / "resv_hugepages") << promised;
}

uint64_t pool_total(const fs::path& folder) {
    uint64_t total = 0;
    std::ifstream(folder / "nr_hugepages") >> total;
    return total;
}

TEST(Hugepages, TakesWhatIsThereFirst) {
    const Folder folder;
    const fs::path small = folder.path / "hugepages-2048kB";
    write_pool(small, 300, 280, 20);
    const auto enough = reserve_hugepages(512, folder.path);
    ASSERT_TRUE(enough) << enough.error().what;
    EXPECT_EQ(*enough, 0u);
    EXPECT_EQ(pool_total(small), 300u);
    // Reserved pages do not count, 1 GB pages do.
    write_pool(small, 300, 280, 100);
    write_pool(folder.path / "hugepages-1048576kB", 1, 1, 0);
    EXPECT_EQ(reserve_hugepages(512, folder.path).value_or(99), 0u);
}

// Two concurrent starts must not count the same pages.
TEST(Hugepages, OneProcessAtATimeHasItsTurn) {
    const Folder folder;
    write_pool(folder.path / "hugepages-2048kB", 0, 0, 0);
    const std::string file = folder.path / "hugepages-2048kB/nr_hugepages";
    std::atomic<bool> second_began{false};
    std::atomic<bool> second_has_it{false};
    std::thread second;
    {
        const HugepageTurn first(file);
        second = std::thread([&] {
            second_began = true;
            const HugepageTurn turn(file);
            second_has_it = true;
        });
        while (!second_began) {
            std::this_thread::yield();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(second_has_it);
    }
    second.join();
    EXPECT_TRUE(second_has_it);
    const HugepageTurn without_a_pool(folder.path / "nowhere");  // does not block
}

TEST(Hugepages, AsksOnlyForWhatIsMissingAndGivesItBack) {
    const Folder folder;
    const fs::path pool = folder.path / "hugepages-2048kB";
    write_pool(pool, 100, 60, 0);
    // The folder does not react like a kernel: no page appears, so the request must fail and be undone.
    const auto refused = reserve_hugepages(512, folder.path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::Exhausted);
    EXPECT_NE(refused.error().what.find("60 of 256 pages are free"), std::string::npos)
        << refused.error().what;
    EXPECT_EQ(pool_total(pool), 100u);
    release_hugepages(40, folder.path);
    EXPECT_EQ(pool_total(pool), 60u);
    release_hugepages(1'000, folder.path);
    EXPECT_EQ(pool_total(pool), 0u);
    EXPECT_EQ(reserve_hugepages(512, folder.path / "nowhere").error().code, Errc::Unsupported);
}

TEST(FileLock, ASecondStartFailsByName) {
    const Folder folder;
    const std::string path = port_lock_path(folder.path, 4026531840, "veth0");
    EXPECT_TRUE(path.ends_with("/port-4026531840-veth0.lock")) << path;
    auto first = FileLock::acquire(path, "port veth0");
    ASSERT_TRUE(first) << first.error().what;
    const auto second = FileLock::acquire(path, "port veth0");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::AlreadyExists);
    EXPECT_EQ(second.error().what, "port veth0 is in use by process " + std::to_string(getpid()));
    *first = FileLock();
    EXPECT_TRUE(FileLock::acquire(path, "port veth0"));
}

TEST(FileLock, DiesWithItsProcess) {
    const Folder folder;
    const std::string path = folder.path / "port-pci-x.lock";
    const pid_t child = fork();
    if (child == 0) {
        auto lock = FileLock::acquire(path, "port x");
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(fs::exists(path));
    EXPECT_TRUE(FileLock::acquire(path, "port x"));
}

TEST(PortLock, PciDevicesAreTheMachines) {
    EXPECT_EQ(port_lock_path("/run/penstock", 1, "0000:03:00.0"), "/run/penstock/port-pci-0000_03_00.0.lock");
    EXPECT_EQ(guard_table_name("eth0.7", 12), "penstock_12_eth0_7");
}

}  // namespace plans_test
}  // namespace penstock::drivers
