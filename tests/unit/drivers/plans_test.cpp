// What is decided before DPDK is asked for anything: steering, buffers, EAL's arguments, locks, hugepages.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "dataplane/base/limits.hpp"
#include "drivers/eal.hpp"
#include "drivers/host_facts.hpp"
#include "drivers/hugepages.hpp"
#include "drivers/ingress_guard.hpp"
#include "drivers/mempool.hpp"
#include "drivers/port_lock.hpp"
#include "drivers/steering_plan.hpp"

namespace penstock::drivers {
namespace {

namespace fs = std::filesystem;

// A folder of the test's own, gone with it.
struct Folder {
    fs::path path = fs::temp_directory_path() / ("penstock_plans_" + std::to_string(getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
};

TEST(SteeringPlan, PromisesAQueueOnlyWhereHardwareKeepsIt) {
    const struct {
        const char* driver;
        SteeringFacts facts;
        bool stays;
        const char* reason;
    } rows[] = {
        {"net_af_packet", {.workers = 1, .rx_queues = 1}, true, "one worker owns everything"},
        {"net_af_packet", {.workers = 2, .rx_queues = 2}, false, "the kernel's fanout moves a flow"},
        {"net_af_xdp", {.workers = 2, .rx_queues = 1}, false, "1 receive queues for 2 workers"},
        {"net_ring", {.workers = 2, .rx_queues = 2}, false, "whoever fills the ring"},
        {"net_null", {.workers = 2, .rx_queues = 2, .rss_granted = true}, false, "does nothing"},
        {"net_tap", {.workers = 2, .rx_queues = 2, .rss_granted = true}, false, "last came from"},
        {"net_virtio", {.workers = 4, .rx_queues = 4, .rss_granted = true}, true, "RSS keeps a flow"},
        {"net_virtio", {.workers = 4, .rx_queues = 4}, false, "no RSS"},
        {"net_virtio_user0", {.workers = 4, .rx_queues = 4, .rss_granted = true}, false, "vhost side"},
        {"net_ixgbe", {.workers = 4, .rx_queues = 4, .rss_granted = true}, true, "RSS keeps a flow"},
        {"net_ixgbe", {.workers = 8, .rx_queues = 4, .rss_granted = true}, false, "4 receive queues for 8 workers"},
    };
    for (const auto& row : rows) {
        const SteeringPlan plan = plan_steering(pmd_profile(row.driver), row.facts);
        EXPECT_EQ(plan.flow_stays_on_queue, row.stays) << row.driver << ": " << plan.reason;
        EXPECT_NE(plan.reason.find(row.reason), std::string::npos) << row.driver << ": " << plan.reason;
        EXPECT_STREQ(to_string(plan.steering), "handoff");
    }
}

TEST(MempoolShape, HoldsEveryPlaceAPacketCanBe) {
    const MempoolDemand demand{.rx_descriptors = 4096, .tx_descriptors = 4096, .workers = 2, .ports = 2, .frame_bytes_max = 2016};
    const auto shape = mempool_shape(demand);
    ASSERT_TRUE(shape);
    // Both workers' caches full, everything handed off, held and punted, all descriptors taken.
    const uint32_t worst = 8192 + 2 * (384 + limits::kHandoffRing + limits::kPendingMax) + 2 * 2 * limits::kPuntRing;
    EXPECT_GE(shape->count, worst);
    EXPECT_LT(shape->count, 2 * worst);
    EXPECT_EQ(shape->data_room, 2048 + 128);
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
    // A page must hold an AF_XDP buffer with its headers, and here another port's MTU spoils that.
    const auto crowded = mempool_shape({.workers = 1, .ports = 2, .frame_bytes_max = 9022, .object_bytes_max = 4096});
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
              "penstockd --lcores 0@0,1@0,2@1,3@1 --main-lcore 0 -m 256 --no-telemetry --log-level=warning --in-memory --file-prefix=t "
              "--no-pci ");
    EXPECT_EQ(joined(eal_arguments(options, false)),
              "penstockd --lcores 0@0,1@0,2@1,3@1 --main-lcore 0 -m 256 --no-telemetry --log-level=warning --no-huge --no-shconf "
              "--file-prefix=t --no-pci ");
}

TEST(EalArguments, PciIsLookedAtOnlyWhenAskedFor) {
    const EalOptions options{
        .worker_cpus = {1}, .pci_allow = {"0000:03:00.0", "0000:03:00.1"}, .file_prefix = "t", .extra_args = {"--iova-mode=va"}};
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

// A pool as the kernel shows it; what is written to nr_hugepages appears as free pages, up to `gatherable` more: a test may fake it
// between two calls only, so these tests look at what is asked for.
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
    // Pages that somebody was promised do not count, and 1 GB pages do.
    write_pool(small, 300, 280, 100);
    write_pool(folder.path / "hugepages-1048576kB", 1, 1, 0);
    EXPECT_EQ(reserve_hugepages(512, folder.path).value_or(99), 0u);
}

// Two starts at once must not count the same pages.
TEST(Hugepages, OneProcessAtATimeHasItsTurn) {
    const Folder folder;
    write_pool(folder.path / "hugepages-2048kB", 0, 0, 0);
    std::atomic<bool> second_began{false};
    std::atomic<bool> second_has_it{false};
    std::thread second;
    {
        const HugepageTurn first(folder.path);
        second = std::thread([&] {
            second_began = true;
            const HugepageTurn turn(folder.path);
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
    const HugepageTurn without_a_pool(folder.path / "nowhere");  // waits for nobody
}

TEST(Hugepages, AsksOnlyForWhatIsMissingAndGivesItBack) {
    const Folder folder;
    const fs::path pool = folder.path / "hugepages-2048kB";
    write_pool(pool, 100, 60, 0);
    // The folder does not answer like a kernel: no page appears, so the request must fail and be taken back.
    const auto refused = reserve_hugepages(512, folder.path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::Exhausted);
    EXPECT_NE(refused.error().what.find("60 of 256 pages are free"), std::string::npos) << refused.error().what;
    EXPECT_EQ(pool_total(pool), 100u);
    release_hugepages(40, folder.path);
    EXPECT_EQ(pool_total(pool), 60u);
    release_hugepages(1'000, folder.path);
    EXPECT_EQ(pool_total(pool), 0u);
    EXPECT_EQ(reserve_hugepages(512, folder.path / "nowhere").error().code, Errc::Unsupported);
}

TEST(PortLock, ASecondStartFailsByName) {
    const Folder folder;
    const std::string path = port_lock_path(folder.path, 4026531840, "veth0");
    EXPECT_TRUE(path.ends_with("/port-4026531840-veth0.lock")) << path;
    auto first = PortLock::acquire(path, "port veth0");
    ASSERT_TRUE(first) << first.error().what;
    const auto second = PortLock::acquire(path, "port veth0");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::AlreadyExists);
    EXPECT_EQ(second.error().what, "port veth0 is in use by process " + std::to_string(getpid()));
    *first = PortLock();
    EXPECT_TRUE(PortLock::acquire(path, "port veth0"));
}

TEST(PortLock, DiesWithItsProcess) {
    const Folder folder;
    const std::string path = folder.path / "port-pci-x.lock";
    const pid_t child = fork();
    if (child == 0) {
        auto lock = PortLock::acquire(path, "port x");
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(fs::exists(path));
    EXPECT_TRUE(PortLock::acquire(path, "port x"));
}

TEST(PortLock, PciDevicesAreTheMachines) {
    EXPECT_EQ(port_lock_path("/run/penstock", 1, "0000:03:00.0"), "/run/penstock/port-pci-0000_03_00.0.lock");
    EXPECT_EQ(guard_table_name("eth0.7", 12), "penstock_12_eth0_7");
}

}  // namespace
}  // namespace penstock::drivers
