// SPDX-License-Identifier: Apache-2.0
// Real ports on a veth: af_packet (and af_xdp) below, the TAP twin above, and Linux on both sides. The loop
// between them is the smallest substitute for the workers: everything received is punted, everything from
// Linux is sent.
//
//   peer namespace: far0 10.5.0.2 --- wire0 [NicPort] -- this test -- [TapTwin] up 10.5.0.1 : this namespace
#include <gtest/gtest.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "drivers/eal/eal.hpp"
#include "drivers/eal/host_facts.hpp"
#include "drivers/eal/mempool.hpp"
#include "drivers/host/tap_twin.hpp"
#include "drivers/host/twin_io.hpp"
#include "drivers/port/nic_port.hpp"
#include "tests/bound/drivers_namespaces.hpp"

// libxdp 1.3 does not free the memory from xsk_umem__create() when the PMD closes its last socket. Suppressed
// by the library's name, which needs no symbolizer.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libxdp.so";
}

namespace penstock::drivers {
namespace drivers_port_test {

using test::output_of;
using test::run;

constexpr NicPortId kPort{0};

// EAL cannot be started twice in a process, so all tests share one. It must be started after the namespace
// has been entered, because its threads stay in the namespace in which they were created.
struct SharedEal {
    std::string why_not;
    std::string log;
    std::atomic<unsigned> sockets_refused = 0;  // attempts of net_af_xdp
    std::unique_ptr<Eal> eal;                   // ends first, because it logs
    SharedEal() {
        if (!test::in_own_namespace(why_not)) {
            return;
        }
        const unsigned cpu = allowed_cpus().front();
        auto started = Eal::start({.worker_cpus = {cpu, cpu},
                                   .main_cpu = cpu,
                                   .memory_mb = 256,
                                   .no_huge = true,
                                   .sink = [this](NoticeLevel, std::string_view line) {
                                       log += std::string(line) + "\n";
                                       sockets_refused +=
                                           line.contains("Failed to create xsk socket") ? 1 : 0;
                                   }});
        if (started) {
            eal = std::move(*started);
        } else {
            why_not = started.error().what;
        }
    }
};

SharedEal& shared_eal() {
    static SharedEal shared;
    return shared;
}

// The workers' side of TwinIo, reduced to the port's own queues.
class PortItself : public TwinIoPorts {
 public:
    explicit PortItself(const NicPort& port) : port_(port) {}
    size_t take_punted(NicPortId, PuntClass punt_class, std::span<rte_mbuf*> out) override {
        if (punt_class != PuntClass::Link) {
            return 0;
        }
        size_t count = 0;
        for (uint16_t queue = 0; queue < port_.facts().rx_queues && count < out.size(); ++queue) {
            count += rte_eth_rx_burst(port_.facts().dpdk_port, queue, out.data() + count,
                                      static_cast<uint16_t>(out.size() - count));
        }
        return count;
    }
    size_t send_from_host(NicPortId, std::span<rte_mbuf*> frames) override {
        return rte_eth_tx_burst(port_.facts().dpdk_port, 0, frames.data(),
                                static_cast<uint16_t>(frames.size()));
    }
    void frames_dropped(NicPortId, DropReason, std::span<rte_mbuf* const> frames) override {
        dropped += frames.size();
    }
    uint64_t dropped = 0;

 private:
    const NicPort& port_;
};

// Queue 0 of an interface, as another process has it.
class OtherXdpSocket {
 public:
    explicit OtherXdpSocket(const char* interface) : fd_(::socket(kAfXdp, SOCK_RAW, 0)) {
        memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        xdp_umem_reg umem{};
        umem.addr = reinterpret_cast<uint64_t>(memory_);
        umem.len = kBytes;
        umem.chunk_size = kChunk;
        sockaddr_xdp address{};
        address.sxdp_family = kAfXdp;
        address.sxdp_flags = XDP_COPY;
        address.sxdp_ifindex = ::if_nametoindex(interface);
        has_queue_ = set(XDP_UMEM_REG, umem) && set(XDP_UMEM_FILL_RING, kEntries) &&
                     set(XDP_UMEM_COMPLETION_RING, kEntries) && set(XDP_RX_RING, kEntries) &&
                     ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }
    ~OtherXdpSocket() {
        ::close(fd_);
        ::munmap(memory_, kBytes);
    }
    OtherXdpSocket(const OtherXdpSocket&) = delete;
    OtherXdpSocket& operator=(const OtherXdpSocket&) = delete;
    [[nodiscard]] bool has_queue() const noexcept { return has_queue_; }

 private:
    static constexpr int kAfXdp = 44, kSolXdp = 283;
    static constexpr uint32_t kChunk = 4096, kEntries = 64;
    static constexpr size_t kBytes = size_t{kChunk} * kEntries;
    template <typename Value>
    [[nodiscard]] bool set(int option, const Value& value) const {
        return ::setsockopt(fd_, kSolXdp, option, &value, sizeof(value)) == 0;
    }
    int fd_;
    void* memory_ = nullptr;
    bool has_queue_ = false;
};

// Another process with this socket, until release().
class OtherXdpProcess {
 public:
    explicit OtherXdpProcess(const char* interface) {
        std::array<int, 2> answer{};
        if (::pipe(answer.data()) != 0) {
            return;
        }
        child_ = ::fork();
        if (child_ == 0) {
            const OtherXdpSocket socket(interface);
            const char has_queue = socket.has_queue() ? 1 : 0;
            if (::write(answer[1], &has_queue, 1) == 1) {
                ::pause();
            }
            ::_exit(0);
        }
        ::close(answer[1]);
        char has_queue = 0;
        has_queue_ = ::read(answer[0], &has_queue, 1) == 1 && has_queue == 1;
        ::close(answer[0]);
    }
    ~OtherXdpProcess() {
        release();
        if (child_ > 0) {
            ::waitpid(child_, nullptr, 0);
        }
    }
    OtherXdpProcess(const OtherXdpProcess&) = delete;
    OtherXdpProcess& operator=(const OtherXdpProcess&) = delete;
    [[nodiscard]] bool has_queue() const noexcept { return has_queue_; }
    void release() const noexcept {
        if (child_ > 0) {
            ::kill(child_, SIGKILL);
        }
    }

 private:
    pid_t child_ = -1;
    bool has_queue_ = false;
};

class Ports : public ::testing::Test {
 protected:
    void SetUp() override {
        if (!shared_eal().eal) {
            GTEST_SKIP() << shared_eal().why_not;
        }
        ASSERT_TRUE(peer.is_up());
    }
    void TearDown() override {
        stop();
        if (shared_eal().eal) {  // else this still is the host's own namespace
            run("ip link del wire0");
        }
        std::filesystem::remove_all(locks);
    }

    NicPortOptions options(const std::string& device, uint16_t mtu, unsigned queues) const {
        NicPortOptions asked{.device = device,
                             .twin_name = "up",
                             .addresses = {},
                             .mtu = mtu,
                             .rx_queues = queues,
                             .tx_queues = queues};
        asked.lock_directory = locks;
        return asked;
    }

    // From the veth to a running twin.
    Status start(const std::string& device, uint16_t mtu, unsigned queues) {
        if (!test::wire(peer, "wire0", "far0", "10.5.0.2/24 2001:db8:5::2/64", mtu)) {
            return fail(Errc::Internal, "no veth");
        }
        if (after_wiring) {
            after_wiring();
        }
        auto probed =
            NicPort::probe(kPort, options(device, mtu, queues), [](NoticeLevel, std::string_view) {});
        if (!probed) {
            return std::unexpected(probed.error());
        }
        port = std::move(*probed);
        MempoolDemand demand{.workers = queues};
        port->add_demand(demand);
        pools.emplace();
        Status done = pools->add(port->facts().socket, demand);
        if (done) {
            done = port->configure(pools->on(port->facts().socket), queues);
        }
        if (done) {
            done = port->start();
        }
        if (!done) {
            return done;
        }
        auto opened = TapTwin::open({.name = "up",
                                     .mac = port->facts().mac,
                                     .mtu = mtu,
                                     .addresses = {*InterfaceAddress::parse("10.5.0.1/24"),
                                                   *InterfaceAddress::parse("2001:db8:5::1/64")}});
        if (!opened) {
            return std::unexpected(opened.error());
        }
        twin = std::move(*opened);
        sides = std::make_unique<PortItself>(*port);
        auto io_opened = TwinIo::open({{kPort, twin.get(), mtu}}, *sides, pools->on(port->facts().socket));
        if (!io_opened) {
            return std::unexpected(io_opened.error());
        }
        io = std::move(*io_opened);
        running = true;
        loop = std::thread([this] {
            while (running) {
                io->poll_once(5);
            }
        });
        return {};
    }
    void stop() {
        running = false;
        if (loop.joinable()) {
            loop.join();
        }
        io.reset();
        twin.reset();
        port.reset();
        pools.reset();
    }

    test::Peer peer;
    std::function<void()> after_wiring;
    std::string locks =
        std::filesystem::temp_directory_path() / ("penstock_locks_" + std::to_string(getpid()));
    std::unique_ptr<NicPort> port;
    std::optional<Mempools> pools;
    std::unique_ptr<TapTwin> twin;
    std::unique_ptr<PortItself> sides;
    std::unique_ptr<TwinIo> io;
    std::atomic<bool> running = false;
    std::thread loop;
};

TEST_F(Ports, LinuxTalksThroughAnAfPacketPort) {
    const Status started = start("net_af_packet0,iface=wire0", 1500, 2);
    ASSERT_TRUE(started) << started.error().what << "\n" << shared_eal().log;
    EXPECT_EQ(port->facts().driver, "net_af_packet");
    EXPECT_EQ(port->facts().rx_queues, 2);
    EXPECT_EQ(port->facts().tx_queues, 2);
    EXPECT_FALSE(port->facts().steering.flow_stays_on_queue);
    // Linux checks new links once a second at most (net/core/link_watch.c).
    for (int tries = 0; tries < 6'000 && !port->link_up(); ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(port->link_up());
    EXPECT_NE(output_of("ip link show wire0").find(port->facts().mac.to_string()), std::string::npos);

    EXPECT_EQ(run(peer.inside("ping -c 20 -i 0.01 -W 1 10.5.0.1")), 0);
    EXPECT_EQ(run(peer.inside("ping -6 -c 5 -i 0.01 -W 1 2001:db8:5::1")), 0);
    EXPECT_EQ(run("ping -c 5 -i 0.01 -W 1 10.5.0.2"), 0);
    // One answer each, without a second one from the kernel beside the port.
    EXPECT_EQ(output_of(peer.inside("ping -c 3 -i 0.01 -W 1 10.5.0.1")).find("DUP!"), std::string::npos);

    const NicPortCounters counted = port->counters();
    EXPECT_GE(counted.rx_packets, 33u);
    EXPECT_GE(counted.tx_packets, 33u);
    const TwinCounters moved = io->counters(kPort);
    EXPECT_GE(moved.punted, 33u);
    EXPECT_GE(moved.from_host, 33u);
    EXPECT_EQ(moved.punt_failed + moved.host_frame_invalid + moved.no_buffer + sides->dropped, 0u);
}

// An endless supply of packets for Linux, and a ring towards the workers that accepts nothing.
class Flooded : public TwinIoPorts {
 public:
    explicit Flooded(rte_mempool* pool) : pool_(pool) {}
    size_t take_punted(NicPortId, PuntClass punt_class, std::span<rte_mbuf*> out) override {
        order += punt_class == PuntClass::Link ? "L" : punt_class == PuntClass::Routing ? "R" : "o";
        const size_t wanted = punt_class == PuntClass::Link ? std::min(out.size(), link_frames) : out.size();
        size_t count = 0;
        for (; count < wanted; ++count) {
            rte_mbuf* const frame = rte_pktmbuf_alloc(pool_);
            if (frame == nullptr) {
                break;
            }
            const std::vector<uint8_t> bytes = punt_class == PuntClass::Link ? arp_request(++asked) : junk;
            std::ranges::copy(bytes, reinterpret_cast<uint8_t*>(
                                         rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size()))));
            out[count] = frame;
        }
        link_frames -= punt_class == PuntClass::Link ? count : 0;
        taken[static_cast<size_t>(punt_class)] += count;
        return count;
    }
    size_t send_from_host(NicPortId, std::span<rte_mbuf*> frames) override {
        for (const rte_mbuf* frame : frames) {
            const auto* bytes = rte_pktmbuf_mtod(frame, const uint8_t*);
            answers +=
                frame->data_len >= 42 && bytes[12] == 0x08 && bytes[13] == 0x06 && bytes[21] == 2 ? 1 : 0;
        }
        offered += frames.size();
        return 0;
    }
    void frames_dropped(NicPortId, DropReason reason, std::span<rte_mbuf* const> frames) override {
        dropped[reason] += frames.size();
    }

    // Each from a different host, because Linux answers one requester at a time.
    static std::vector<uint8_t> arp_request(uint8_t host) {
        return {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,  0,
                0,    0,    9,    host, 0x08, 0x06, 0,  1,
                0x08, 0,    6,    4,    0,    1,    2,  0,
                0,    0,    9,    host, 10,   5,    0,  static_cast<uint8_t>(100 + host),
                0,    0,    0,    0,    0,    0,    10, 5,
                0,    1};
    }

    std::string order;
    std::array<size_t, kPuntClasses> taken{};
    size_t link_frames = 30;
    uint8_t asked = 0;
    size_t answers = 0, offered = 0;
    std::map<DropReason, uint64_t> dropped;
    std::vector<uint8_t> junk = std::vector<uint8_t>(60, 0);  // of no protocol: Linux discards it

 private:
    rte_mempool* pool_;
};

// Each pass serves control frames first, and takes at most a burst of the other frames, so that no flood
// delays control frames.
TEST_F(Ports, ControlFramesDoNotWaitForAFlood) {
    const MempoolDemand demand{.workers = 1, .ports = 1, .frame_bytes_max = 1518};
    pools.emplace();
    ASSERT_TRUE(pools->add(0, demand));
    auto opened = TapTwin::open({.name = "up",
                                 .mac = {{2, 0, 0, 0, 0, 0x0a}},
                                 .mtu = 1500,
                                 .addresses = {*InterfaceAddress::parse("10.5.0.1/24")}});
    ASSERT_TRUE(opened) << opened.error().what;
    twin = std::move(*opened);
    Flooded flooded(pools->on(0));
    auto io_opened = TwinIo::open({{kPort, twin.get(), 1500}}, flooded, pools->on(0));
    ASSERT_TRUE(io_opened) << io_opened.error().what;
    io = std::move(*io_opened);
    io->poll_once(0);
    EXPECT_EQ(flooded.taken[static_cast<size_t>(PuntClass::Link)], 30u) << "all in the first pass";
    EXPECT_EQ(flooded.order, "LRo");
    EXPECT_EQ(flooded.taken[static_cast<size_t>(PuntClass::Routing)], limits::kBurstMax);
    EXPECT_EQ(flooded.taken[static_cast<size_t>(PuntClass::Other)], limits::kBurstMax);
    // Linux has answered within write(); one pass reads only part of the answers.
    for (int passes = 0; passes < 100 && flooded.answers < 30; ++passes) {
        io->poll_once(0);
    }
    EXPECT_EQ(flooded.answers, 30u);
    // Frames not accepted by the workers' ring are counted under their reason, and each frame sent by Linux
    // is counted once.
    const TwinCounters moved = io->counters(kPort);
    EXPECT_EQ(moved.from_host, 0u);
    EXPECT_EQ(moved.from_host_dropped, flooded.offered);
    EXPECT_EQ(flooded.dropped[DropReason::FromHostRingFull], flooded.offered);
    EXPECT_EQ(flooded.dropped[DropReason::PuntFailed], 0u);
    io.reset();
}

TEST_F(Ports, ASecondPortOnTheSameInterfaceFailsByName) {
    ASSERT_TRUE(start("net_af_packet0,iface=wire0", 1500, 1));
    const auto second = NicPort::probe(NicPortId{1}, options("net_af_packet1,iface=wire0", 1500, 1), {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::AlreadyExists);
    EXPECT_EQ(second.error().what,
              "port net_af_packet1: wire0 is in use by process " + std::to_string(getpid()));
    EXPECT_EQ(run(peer.inside("ping -c 1 -W 1 10.5.0.1")), 0) << "the first port was disturbed";
}

// ARP is resolved
TEST_F(Ports, WhatTheKernelsRingDroppedIsCounted) {
    const Status started = start("net_af_packet0,iface=wire0,framecnt=64", 1500, 1);
    ASSERT_TRUE(started) << started.error().what << "\n" << shared_eal().log;
    ASSERT_EQ(run(peer.inside("ping -c 1 -W 5 10.5.0.1")), 0);  // ARP is known
    running = false;
    loop.join();
    const auto drain = [&] {
        std::array<rte_mbuf*, 64> frames;
        for (size_t count = 1; count > 0;) {
            count = sides->take_punted(kPort, PuntClass::Link, frames);
            rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(count));
        }
    };
    const auto on_the_wire = [] {
        return std::stoull(output_of("awk '/wire0:/ {print $3}' /proc/self/net/dev"));
    };
    drain();
    const uint64_t before = on_the_wire();
    const NicPortCounters idle = port->counters();
    EXPECT_EQ(idle.rx_missed, 0u);
    run(peer.inside("ping -q -c 500 -l 500 -W 1 10.5.0.1"));
    EXPECT_GE(on_the_wire() - before, 500u);
    drain();
    const NicPortCounters after = port->counters();
    EXPECT_GE(after.rx_missed, 500u - 2 * 64u);
    // A frame may have arrived between the readings.
    EXPECT_NEAR(static_cast<double>(after.rx_packets - idle.rx_packets + after.rx_missed),
                static_cast<double>(on_the_wire() - before), 5);
    port->stop();
    EXPECT_GE(port->counters().rx_missed, after.rx_missed) << "the count outlives the device's sockets";
}

TEST_F(Ports, JumboFramesPassWhole) {
    const Status started = start("net_af_packet0,iface=wire0", 9000, 1);
    ASSERT_TRUE(started) << started.error().what << "\n" << shared_eal().log;
    EXPECT_EQ(run(peer.inside("ping -c 3 -i 0.01 -W 1 -M do -s 8972 10.5.0.1")), 0);
    EXPECT_EQ(io->counters(kPort).host_frame_invalid, 0u);
}

TEST_F(Ports, AnEndedPortLeavesTheInterfaceAsItWas) {
    ASSERT_TRUE(start("net_af_packet0,iface=wire0", 1500, 1));
    EXPECT_NE(output_of("nft list tables").find("wire0"), std::string::npos);
    stop();
    EXPECT_EQ(output_of("nft list tables").find("wire0"), std::string::npos);
    EXPECT_EQ(output_of("sysctl -n net.ipv6.conf.wire0.disable_ipv6"), "0\n");
    EXPECT_NE(run("ip link show dev up"), 0);
    // The port can be started again.
    run("ip link del wire0");
    const Status again = start("net_af_packet0,iface=wire0", 1500, 1);
    EXPECT_TRUE(again) << again.error().what;
    EXPECT_EQ(run(peer.inside("ping -c 2 -i 0.01 -W 1 10.5.0.1")), 0);
}

TEST_F(Ports, LinuxTalksThroughAnAfXdpPort) {
    const Status started = start("net_af_xdp0,iface=wire0", 1500, 2);
    if (!started && started.error().code == Errc::Unavailable) {
        GTEST_SKIP() << "no AF_XDP here: " << started.error().what;
    }
    ASSERT_TRUE(started) << started.error().what << "\n" << shared_eal().log;
    EXPECT_EQ(port->facts().rx_queues, 1);
    EXPECT_EQ(port->facts().tx_queues, 1) << "two workers must share what veth has";
    EXPECT_FALSE(port->facts().steering.flow_stays_on_queue);
    EXPECT_EQ(run(peer.inside("ping -c 20 -i 0.01 -W 1 10.5.0.1")), 0);
    EXPECT_EQ(run("ping -c 5 -i 0.01 -W 1 10.5.0.2"), 0);
}

// The kernel releases a queue late. What a refused attempt leaves in the PMD's fill ring would be given to
// the kernel as buffers: all frames of a burst in one and the same buffer. Its device stays, so its name is
// not that of other tests.
TEST_F(Ports, AnAfXdpPortWaitsForTheQueueOfAnotherProcess) {
    std::optional<OtherXdpProcess> other;
    std::thread releases;
    bool had = false;
    after_wiring = [&] {
        other.emplace("wire0");
        had = other->has_queue();
        const unsigned refused_before = shared_eal().sockets_refused;
        releases = std::thread([&, refused_before] {
            while (had && shared_eal().sockets_refused < refused_before + 2) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            other->release();
        });
    };
    const Status started = start("net_af_xdp7,iface=wire0", 1500, 1);
    const bool was_refused = !started;
    if (was_refused && releases.joinable()) {
        shared_eal().sockets_refused += 2;
    }
    if (releases.joinable()) {
        releases.join();
    }
    if (!had) {
        GTEST_SKIP() << "no AF_XDP here";
    }
    ASSERT_TRUE(started) << started.error().what << "\n" << shared_eal().log;
    EXPECT_EQ(run(peer.inside("ping -c 1 -W 5 10.5.0.1")), 0);
    const std::string pings = output_of(peer.inside("ping -c 320 -l 32 -f -W 5 10.5.0.1"));
    EXPECT_NE(pings.find(" 320 received"), std::string::npos) << pings;
    const auto in_use = [&] { return rte_mempool_in_use_count(pools->on(port->facts().socket)); };
    const unsigned of_one_port = 2U * 2048U + 1024U;  // fill and completion ring, and bursts
    EXPECT_LE(in_use(), of_one_port) << "buffers of refused attempts";
}

TEST_F(Ports, AnAfXdpPortRefusesWhatAPageCannotHold) {
    const Status refused = start("net_af_xdp0,iface=wire0", 9000, 1);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("9000"), std::string::npos) << refused.error().what;
}

TEST_F(Ports, NamesWhatIsMissing) {
    const auto no_interface = NicPort::probe(kPort, options("net_af_packet0,iface=nowhere", 1500, 1), {});
    ASSERT_FALSE(no_interface);
    EXPECT_EQ(no_interface.error().code, Errc::NotFound);
    EXPECT_NE(no_interface.error().what.find("interface nowhere"), std::string::npos)
        << no_interface.error().what;
    const auto no_device = NicPort::probe(kPort, options("0000:7f:1f.7", 1500, 1), {});
    ASSERT_FALSE(no_device);
    EXPECT_NE(no_device.error().what.find("0000:7f:1f.7"), std::string::npos) << no_device.error().what;
}

// A ring device has no MAC, no link partner and no interface: the port must still be complete.
TEST_F(Ports, APortWithoutInterfaceIsWhole) {
    auto probed = NicPort::probe(kPort, options("net_null0", 1500, 2), {});
    ASSERT_TRUE(probed) << probed.error().what;
    MempoolDemand demand{.workers = 2};
    (*probed)->add_demand(demand);
    Mempools own;
    ASSERT_TRUE(own.add((*probed)->facts().socket, demand));
    {
        const std::vector<Mempools::Use> unused = own.use();
        ASSERT_EQ(unused.size(), 1u);
        EXPECT_TRUE(unused[0].name.starts_with("penstock_mbufs_")) << unused[0].name;
        EXPECT_EQ(unused[0].buffers, mempool_shape(demand)->count);
        EXPECT_EQ(unused[0].in_use, 0u);
        std::array<rte_mbuf*, 7> taken{};
        ASSERT_EQ(rte_pktmbuf_alloc_bulk(own.on((*probed)->facts().socket), taken.data(), taken.size()), 0);
        EXPECT_EQ(own.use()[0].in_use, 7u);
        rte_pktmbuf_free_bulk(taken.data(), taken.size());
        EXPECT_EQ(own.use()[0].in_use, 0u);
    }
    const Status configured = (*probed)->configure(own.on((*probed)->facts().socket), 2);
    ASSERT_TRUE(configured) << configured.error().what;
    ASSERT_TRUE((*probed)->start());
    EXPECT_FALSE((*probed)->facts().mac.is_zero());
    EXPECT_FALSE((*probed)->facts().mac.is_multicast());
    EXPECT_EQ((*probed)->facts().rx_queues, 2);
    EXPECT_FALSE((*probed)->facts().steering.flow_stays_on_queue) << "net_null's RSS does nothing";
    probed->reset();
}

TEST_F(Ports, EalSaysWhichMemoryItHas) {
    EXPECT_EQ(shared_eal().eal->memory_description(), "no hugepages, 256 MB: as requested");
    EXPECT_EQ(shared_eal().eal->worker_lcores(), (std::vector<unsigned>{1, 2}));
    const auto twice =
        Eal::start({.worker_cpus = {allowed_cpus().front()}, .main_cpu = allowed_cpus().front()});
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code, Errc::AlreadyExists);
}

}  // namespace drivers_port_test
}  // namespace penstock::drivers
