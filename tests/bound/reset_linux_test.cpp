// SPDX-License-Identifier: Apache-2.0
// Resets against the stack of most clients and endpoints: Linux on both sides of the real stages, each in a
// separate network namespace behind a TAP. The reaction of the two stacks to probes and RSTs is Linux's own;
// reset_test.cpp has the same tests against models of the RFCs.
//
//   client's sockets -- TAP -- [VirtualGateway] -- TAP -- endpoint's sockets
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "control/base/descriptor.hpp"
#include "tests/bound/drivers_namespaces.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace reset_linux_test {

constexpr L4Port kPort = 9376;

// In the form used by system calls.
class Descriptor : public penstock::Descriptor {
 public:
    using penstock::Descriptor::Descriptor;
    operator int() const { return get(); }
};

// A namespace with only a TAP, whose far end is read and written by the test. Objects created inside belong
// to it permanently.
class Host {
 public:
    Host(const MacAddr& mac, const MacAddr& gateway_mac,
         const std::vector<std::pair<std::string, std::string>>& addresses_and_gateways) {
        enter();
        tap_ = Descriptor(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
        ifreq request{};
        request.ifr_flags = IFF_TAP | IFF_NO_PI;
        std::strncpy(request.ifr_name, "t0", IFNAMSIZ);
        is_up_ = ioctl(tap_, TUNSETIFF, &request) == 0;
        std::string commands =
            "sysctl -w net.ipv6.conf.t0.accept_dad=0 net.ipv6.conf.t0.dad_transmits=0; set -e; ip link set "
            "t0 address " +
            mac.to_string() + " up";
        for (const auto& [address, gateway] : addresses_and_gateways) {
            const std::string v = address.find(':') == std::string::npos ? " -4 " : " -6 ";
            commands += "; ip" + v + "address add " + address + " dev t0" + (v == " -6 " ? " nodad" : "") +
                        "; ip" + v + "neighbour add " + gateway + " dev t0 lladdr " +
                        gateway_mac.to_string() + " nud permanent; ip" + v + "route add default via " +
                        gateway + " dev t0";
        }
        is_up_ = is_up_ && run(commands) == 0;
        leave();
    }
    void enter() {
        outside_ = Descriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        if (inside_ < 0) {
            is_up_ = unshare(CLONE_NEWNET) == 0;
            inside_ = Descriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        } else {
            EXPECT_EQ(setns(inside_, CLONE_NEWNET), 0);
        }
    }
    void leave() { EXPECT_EQ(setns(outside_, CLONE_NEWNET), 0); }
    [[nodiscard]] bool is_up() const { return is_up_; }
    [[nodiscard]] int tap() const { return tap_; }

 private:
    Descriptor inside_, outside_, tap_;
    bool is_up_ = false;
};

// as much as the other side accepts
struct Pair {
    Descriptor client, backend;
    bool client_sends = false, backend_sends = false;  // as much as the other takes
    bool backend_reads = true;
};

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};
Address address_of(const IpAddr& ip, L4Port port) {
    Address address;
    if (ip.is_v4()) {
        sockaddr_in in{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
        inet_pton(AF_INET, ip.to_string().c_str(), &in.sin_addr);
        std::memcpy(&address.storage, &in, address.size = sizeof in);
    } else {
        sockaddr_in6 in{};
        in.sin6_family = AF_INET6;
        in.sin6_port = htons(port);
        inet_pton(AF_INET6, ip.to_string().c_str(), &in.sin6_addr);
        std::memcpy(&address.storage, &in, address.size = sizeof in);
    }
    return address;
}

class ResetLinux : public testing::TestWithParam<IpFamily> {
 protected:
    void SetUp() override {
        std::string why_not;
        if (!in_own_namespace(why_not)) {
            GTEST_SKIP() << why_not;
        }
        if (access("/dev/net/tun", R_OK | W_OK) != 0) {
            GTEST_SKIP() << "no /dev/net/tun";
        }
        client_ =
            std::make_unique<Host>(kClientMac, kUpMac,
                                   std::vector<std::pair<std::string, std::string>>{
                                       {"10.80.1.2/24", "10.80.1.1"}, {"fd00:80:1::2/64", "fd00:80:1::1"}});
        backend_ =
            std::make_unique<Host>(backend_mac(11), kClusterMac,
                                   std::vector<std::pair<std::string, std::string>>{
                                       {"10.80.2.11/24", "10.80.2.1"}, {"fd00:80:2::b/64", "fd00:80:2::1"}});
        ASSERT_TRUE(client_->is_up() && backend_->is_up());
        gateway_.publish({web_});
        listener_ = socket_in(*backend_);
        const Address any = address_of(backend_address(11, GetParam()), kPort);
        ASSERT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&any.storage), any.size), 0)
            << std::strerror(errno);
        ASSERT_EQ(listen(listener_, 64), 0);
    }

    Descriptor socket_in(Host& host) {
        host.enter();
        Descriptor made(socket(GetParam() == IpFamily::V4 ? AF_INET : AF_INET6,
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        host.leave();
        return made;
    }

    // Carries frames between the two hosts, while the gateway's time follows the clock. Programs read and
    // write in between.
    void pump(const std::vector<Pair*>& pairs) {
        pollfd taps[2] = {{client_->tap(), POLLIN, 0}, {backend_->tap(), POLLIN, 0}};
        poll(taps, 2, 1);
        const auto now = std::chrono::steady_clock::now();
        // If the machine was busy elsewhere, the gateway must not count that as idle time of the connections.
        gateway_.advance_milliseconds(
            std::min<uint64_t>(50, static_cast<uint64_t>((now - last_) / std::chrono::milliseconds(1))));
        if (now - last_ >= std::chrono::milliseconds(1)) {
            last_ = now;
        }
        for (const NicPortId port : {kUp, kCluster}) {
            for (int i = 0; i < 32; ++i) {
                std::vector<uint8_t> frame(2'048);
                const ssize_t bytes =
                    read(port == kUp ? client_->tap() : backend_->tap(), frame.data(), frame.size());
                if (bytes <= 0) {
                    break;
                }
                frame.resize(static_cast<size_t>(bytes));
                put(gateway_.send(frame, port, {static_cast<uint8_t>(i % 2)}));
            }
        }
        for (const Outcome& own : gateway_.take_own_segments()) {
            put(own);
        }
        static const std::vector<char> data(16'384, 'x');
        static std::vector<char> sink(65'536);
        for (Pair* pair : pairs) {
            if (pair->client_sends) {
                static_cast<void>(
                    !::send(pair->client, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
            }
            if (pair->backend_sends) {
                static_cast<void>(
                    !::send(pair->backend, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
                static_cast<void>(!recv(pair->client, sink.data(), sink.size(), MSG_DONTWAIT));
            }
            if (pair->client_sends && pair->backend_reads) {
                moved_ += static_cast<uint64_t>(
                    std::max<ssize_t>(0, recv(pair->backend, sink.data(), sink.size(), MSG_DONTWAIT)));
            }
        }
    }
    void put(const Outcome& outcome) {
        if (outcome.verdict == Verdict::Transmit) {
            static_cast<void>(!write(outcome.egress == kUp ? client_->tap() : backend_->tap(),
                                     outcome.frame.data(), outcome.frame.size()));
        }
    }
    // Pumps until a condition is met; returns false after a time limit that suffices for any busy machine.
    template <typename Condition>
    bool pump_until(const std::vector<Pair*>& pairs, Condition&& condition) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
        auto next_sweep = std::chrono::steady_clock::now() + std::chrono::seconds(2);
        while (!condition()) {
            const auto now = std::chrono::steady_clock::now();
            if (now > deadline) {
                return false;
            }
            if (now > next_sweep) {
                gateway_.age();
                next_sweep = now + std::chrono::seconds(2);
            }
            pump(pairs);
        }
        return true;
    }

    Pair connect_pair() {
        Pair pair;
        pair.client = socket_in(*client_);
        const Address vip = address_of(vip_, 80);
        connect(pair.client, reinterpret_cast<const sockaddr*>(&vip.storage), vip.size);
        EXPECT_TRUE(pump_until({}, [&] {
            return (pair.backend = Descriptor(accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK))) >= 0;
        }));
        return pair;
    }
    // The TCP state in the kernel, and the error that a program gets next.
    static int state_of(int socket) {
        tcp_info info{};
        socklen_t size = sizeof info;
        return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_state : -1;
    }
    static int error_of(int socket) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
        return error;
    }
    void order_end() {
        gateway_.order(
            {.backend = gateway_.backend_of(web_, 11, GetParam()), .frontend = {}, .frontend_port = 0});
        gateway_.work_off_orders();
    }
    // After the order: both ends are reset. A program that reads and writes gets the error itself, so
    // SO_ERROR may be clear.
    void expect_reset(Pair& pair, const char* what, std::initializer_list<int> at_client,
                      std::initializer_list<int> at_backend) {
        const auto began = std::chrono::steady_clock::now();
        const bool idle = !pair.client_sends && !pair.backend_sends;
        EXPECT_TRUE(pump_until(
            {&pair},
            [&] { return state_of(pair.client) == TCP_CLOSE && state_of(pair.backend) == TCP_CLOSE; }))
            << what << ": client in state " << state_of(pair.client) << ", backend in "
            << state_of(pair.backend);
        RecordProperty(what, static_cast<int>((std::chrono::steady_clock::now() - began) /
                                              std::chrono::milliseconds(1)));
        if (idle) {
            const int client_error = error_of(pair.client), backend_error = error_of(pair.backend);
            EXPECT_TRUE(std::ranges::find(at_client, client_error) != at_client.end())
                << what << ", client: " << std::strerror(client_error);
            EXPECT_TRUE(std::ranges::find(at_backend, backend_error) != at_backend.end())
                << what << ", backend: " << std::strerror(backend_error);
        }
    }

    IpAddr vip_ = GetParam() == IpFamily::V4
                      ? IpAddr::v4(80, 11, 12, 10)
                      : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10});
    TestService web_{.frontends = {{vip_, 80}}, .backends = {11}, .backend_port = kPort};
    VirtualGateway gateway_{VirtualGateway::Options{.workers = 2}};
    std::unique_ptr<Host> client_, backend_;
    Descriptor listener_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
    uint64_t moved_ = 0;  // bytes that the backend has read
};
INSTANTIATE_TEST_SUITE_P(Families, ResetLinux, testing::Values(IpFamily::V4, IpFamily::V6),
                         [](const auto& info) {
                             return std::string(info.param == IpFamily::V4 ? "v4" : "v6");
                         });

TEST_P(ResetLinux, IdleConnectionsAreResetOnBothSides_DRAIN005) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 20; ++i) {
        pairs.push_back(connect_pair());
    }
    order_end();
    for (Pair& pair : pairs) {
        expect_reset(pair, "idle", {ECONNRESET}, {ECONNRESET});
    }
}

TEST_P(ResetLinux, ConnectionsInFullTransferAreResetOnBothSides_DRAIN005) {
    for (const auto& [name, up, down] :
         {std::tuple{"upload", true, false}, {"download", false, true}, {"both", true, true}}) {
        Pair pair = connect_pair();
        pair.client_sends = up;
        pair.backend_sends = down;
        const uint64_t before = moved_;
        if (up) {
            ASSERT_TRUE(pump_until({&pair}, [&] { return moved_ > before + 1'000'000; }));
        } else {
            for (int i = 0; i < 500; ++i) {
                pump({&pair});
            }
        }
        order_end();
        expect_reset(pair, name, {}, {});
    }
}

// A program that no longer reads: its window is closed, and the other side's data waits.
TEST_P(ResetLinux, AConnectionWithAClosedWindowIsResetOnBothSides_DRAIN005) {
    Pair pair = connect_pair();
    pair.client_sends = true;
    pair.backend_reads = false;
    int waits = 0, before = -1, unchanged = 0;
    ASSERT_TRUE(pump_until({&pair}, [&] {
        ioctl(pair.client, TIOCOUTQ, &waits);
        unchanged = waits > 0 && waits == before ? unchanged + 1 : 0;
        before = waits;
        return unchanged == 200;  // nothing leaves any more
    }));
    pair.client_sends = false;
    order_end();
    expect_reset(pair, "closed window", {ECONNRESET}, {ECONNRESET});
}

// After a FIN one side still sends. On the side that got the FIN, Linux returns EPIPE, because its reader has
// already reached the end.
TEST_P(ResetLinux, HalfClosedConnectionsAreResetOnBothSides_DRAIN005) {
    for (const bool client_closes : {true, false}) {
        Pair pair = connect_pair();
        shutdown(client_closes ? pair.client : pair.backend, SHUT_WR);
        const int other = client_closes ? pair.backend : pair.client;
        ASSERT_TRUE(pump_until({&pair}, [&] { return state_of(other) == TCP_CLOSE_WAIT; }));
        order_end();
        expect_reset(pair, client_closes ? "client closed" : "backend closed",
                     {client_closes ? ECONNRESET : EPIPE}, {client_closes ? EPIPE : ECONNRESET});
    }
}

// A blindly forged FIN or RST in one side's name, followed by minutes without data from the programs: the
// next byte arrives.
TEST_P(ResetLinux, AForgedEndAndSilenceDoNotEndAConnection_NAT006) {
    for (const char* flags : {"R", "FA"}) {
        Pair pair = connect_pair();
        ASSERT_TRUE(pump_until({&pair}, [&] { return state_of(pair.client) == TCP_ESTABLISHED; }));
        sockaddr_storage name{};
        socklen_t size = sizeof name;
        ASSERT_EQ(getsockname(pair.client, reinterpret_cast<sockaddr*>(&name), &size), 0);
        const uint16_t port =
            ntohs(GetParam() == IpFamily::V4 ? reinterpret_cast<sockaddr_in*>(&name)->sin_port
                                             : reinterpret_cast<sockaddr_in6*>(&name)->sin6_port);
        PacketBuilder forged = eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
        GetParam() == IpFamily::V4 ? forged.ipv4("10.80.1.2", vip_.to_string())
                                   : forged.ipv6("fd00:80:1::2", vip_.to_string());
        put(gateway_.send(forged.tcp(port, 80, flags).seq(0x1234'5678).ack(0x8765'4321).build()));
        for (int second = 0; second < 400; ++second) {
            gateway_.advance_seconds(1);
            const uint64_t probes = gateway_.count(stats::Counter::LivenessProbes);
            gateway_.age();
            // Linux answers unacceptable segments once in half a second of its own time
            // (tcp_invalid_ratelimit).
            const bool has_probed = gateway_.count(stats::Counter::LivenessProbes) > probes;
            const auto until =
                std::chrono::steady_clock::now() + std::chrono::milliseconds(has_probed ? 700 : 0);
            do {
                pump({&pair});
            } while (std::chrono::steady_clock::now() < until);
        }
        EXPECT_GT(gateway_.count(stats::Counter::LivenessProbes), 0u);
        ASSERT_EQ(gateway_.connections(), 1u) << flags;
        ASSERT_EQ(::send(pair.client, "x", 1, MSG_NOSIGNAL), 1);
        char byte = 0;
        EXPECT_TRUE(pump_until({&pair}, [&] { return recv(pair.backend, &byte, 1, MSG_DONTWAIT) == 1; }))
            << flags;
        EXPECT_EQ(state_of(pair.client), TCP_ESTABLISHED) << flags;
        EXPECT_EQ(state_of(pair.backend), TCP_ESTABLISHED) << flags;
        order_end();
        expect_reset(pair, flags, {ECONNRESET}, {ECONNRESET});
        gateway_.advance_seconds(30);
        gateway_.age();
    }
}

// no host has the address
TEST_P(ResetLinux, AnUnansweredConnectGoesToALiveEndpoint_DRAIN004) {
    web_.backends = {12};  // no host has the address
    gateway_.publish({web_});
    Pair pair;
    pair.client = socket_in(*client_);
    const Address vip = address_of(vip_, 80);
    connect(pair.client, reinterpret_cast<const sockaddr*>(&vip.storage), vip.size);
    ASSERT_TRUE(pump_until({}, [&] { return gateway_.connections() > 0; }));
    web_.backends = {11};
    gateway_.publish({web_});
    gateway_.order(
        {.backend = gateway_.backend_of(web_, 12, GetParam()), .frontend = {}, .frontend_port = 0});
    gateway_.work_off_orders();
    EXPECT_TRUE(pump_until({}, [&] {
        return (pair.backend = Descriptor(accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK))) >= 0;
    }));
    EXPECT_TRUE(pump_until({}, [&] { return state_of(pair.client) == TCP_ESTABLISHED; }));
}

}  // namespace reset_linux_test
}  // namespace penstock::test
