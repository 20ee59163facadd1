// SPDX-License-Identifier: Apache-2.0
// Addresses, closed connections and descriptors of the acceptor. The server behind it is a list of
// descriptors.
#include "control/rpc/tcp_acceptor.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <mutex>
#include <optional>

#include "tests/support/log_capture.hpp"
#include "tests/support/patience.hpp"

namespace penstock::rpc {
namespace tcp_acceptor_test {

class TcpAcceptorTest : public testing::Test {
 protected:
    void listen(const std::vector<std::string>& addresses, ConnectionLimits limits = {}) {
        auto acceptor = TcpAcceptor::listen(addresses, limits);
        ASSERT_TRUE(acceptor) << acceptor.error().what;
        acceptor_ = std::move(*acceptor);
        acceptor_->start([this](int, int connection) {
            const std::lock_guard lock(mutex_);
            taken_.emplace_back(connection);
        });
    }
    // Connects to `address`; not open if nothing listens there.
    Descriptor connect(const char* address) const {
        sockaddr_storage to{};
        socklen_t length = sizeof(sockaddr_in6);
        auto& v6 = reinterpret_cast<sockaddr_in6&>(to);
        auto& v4 = reinterpret_cast<sockaddr_in&>(to);
        if (::inet_pton(AF_INET6, address, &v6.sin6_addr) == 1) {
            v6.sin6_family = AF_INET6;
            v6.sin6_port = htons(acceptor_->port());
        } else {
            ::inet_pton(AF_INET, address, &v4.sin_addr);
            v4.sin_family = AF_INET;
            v4.sin_port = htons(acceptor_->port());
            length = sizeof(sockaddr_in);
        }
        Descriptor fd(::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), length) == 0 ? std::move(fd)
                                                                                        : Descriptor();
    }
    bool are_open(uint64_t count) const {
        return test::comes_true([&] { return acceptor_->counts().open == count; });
    }
    // Closes connections as gRPC does.
    void close_taken() {
        const std::lock_guard lock(mutex_);
        for (const Descriptor& each : taken_) {
            ::shutdown(each.get(), SHUT_RDWR);
        }
        taken_.clear();
    }

    std::mutex mutex_;
    std::vector<Descriptor> taken_;  // guarded by mutex_
    std::unique_ptr<TcpAcceptor> acceptor_;
};

// Limits the number of further descriptors that this process can open.
class DescriptorsLeft {
 public:
    explicit DescriptorsLeft(rlim_t count) {
        ::getrlimit(RLIMIT_NOFILE, &usual_);
        const Descriptor next(::dup(0));  // the lowest free number
        const rlimit few{.rlim_cur = static_cast<rlim_t>(next.get()) + count, .rlim_max = usual_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &few);
    }
    ~DescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &usual_); }
    DescriptorsLeft(const DescriptorsLeft&) = delete;
    DescriptorsLeft& operator=(const DescriptorsLeft&) = delete;

 private:
    rlimit usual_{};
};

bool has_ipv6() {
    return Descriptor(::socket(AF_INET6, SOCK_STREAM, 0)).is_open();
}

TEST_F(TcpAcceptorTest, AnyAddress_MeansBothFamilies) {
    for (const char* any : {"0.0.0.0:0", "[::]:0"}) {
        listen({any});
        const Descriptor v4 = connect("127.0.0.1");
        EXPECT_TRUE(v4.is_open()) << any;
        EXPECT_TRUE(are_open(1));
        if (has_ipv6()) {
            const Descriptor v6 = connect("::1");
            EXPECT_TRUE(v6.is_open()) << any;
            EXPECT_TRUE(are_open(2));
        }
        acceptor_.reset();
    }
}

TEST_F(TcpAcceptorTest, Ipv4ClientOfASocketForBothFamilies_IsAnIpv4Source) {
    // All reserved for loopback.
    listen({"[::]:0"}, {.all_max = 8, .per_source_max = 2, .loopback_reserve = 8});
    const Descriptor first = connect("127.0.0.1");
    EXPECT_TRUE(are_open(1));
    EXPECT_EQ(acceptor_->counts().refused_all, 0u) << "it is loopback";
}

TEST_F(TcpAcceptorTest, AName_IsListenedOnWithOnePort) {
    listen({"localhost:0"});
    const Descriptor v4 = connect("127.0.0.1");
    const Descriptor v6 = connect("::1");
    EXPECT_TRUE(v4.is_open() || v6.is_open());
    EXPECT_TRUE(are_open((v4.is_open() ? 1 : 0) + (v6.is_open() ? 1 : 0)));
}

TEST_F(TcpAcceptorTest, AConnectionIsCounted_UntilTheServerHasClosedIt) {
    listen({"127.0.0.1:0"});
    Descriptor client = connect("127.0.0.1");
    EXPECT_TRUE(are_open(1));
    ::shutdown(client.get(), SHUT_WR);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(are_open(1)) << "the client has closed its side, and the server has not";
    close_taken();
    EXPECT_TRUE(are_open(0));
}

TEST_F(TcpAcceptorTest, RefusedByRule_IsCountedAndClosed) {
    listen({"127.0.0.1:0"}, {.all_max = 3, .per_source_max = 3, .loopback_reserve = 0});
    std::vector<Descriptor> clients;
    for (int i = 0; i < 5; ++i) {
        clients.push_back(connect("127.0.0.1"));
    }
    EXPECT_TRUE(test::comes_true([&] { return acceptor_->counts().refused_per_source == 2; }));
    char byte = 0;
    EXPECT_LE(::recv(clients.back().get(), &byte, 1, 0), 0);
    EXPECT_TRUE(are_open(3));
    close_taken();
    EXPECT_TRUE(are_open(0));
    acceptor_.reset();
    listen({"127.0.0.1:0"}, {.all_max = 3, .per_source_max = 9, .loopback_reserve = 0});
    for (int i = 0; i < 5; ++i) {
        clients.push_back(connect("127.0.0.1"));
    }
    EXPECT_TRUE(test::comes_true([&] { return acceptor_->counts().refused_all == 2; }));
}

// gRPC closes its descriptor some time after it has shut the connection down. The duplicate has left the poll
// set by then. Otherwise a second end of the same connection would be reported under a number that the next
// connection uses.
TEST_F(TcpAcceptorTest, AnEndThatIsReportedLate_IsNotTheNextConnections) {
    listen({"127.0.0.1:0"});
    // Reserves numbers for the next client and its connection, so that the next duplicate gets the number of
    // the first.
    std::optional<std::array<Descriptor, 2>> numbers{{Descriptor(::dup(0)), Descriptor(::dup(0))}};
    Descriptor first = connect("127.0.0.1");
    ASSERT_TRUE(are_open(1));
    {
        const std::lock_guard lock(mutex_);
        ::shutdown(taken_.front().get(), SHUT_RDWR);
    }
    ASSERT_TRUE(are_open(0));
    numbers.reset();
    const Descriptor second = connect("127.0.0.1");
    ASSERT_TRUE(are_open(1));
    first = Descriptor();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(acceptor_->counts().open, 1u);
}

TEST_F(TcpAcceptorTest, ManyConnectionsInTurn_LeaveNothing) {
    listen({"127.0.0.1:0"}, {.all_max = 50, .per_source_max = 50, .loopback_reserve = 0});
    for (int round = 0; round < 20; ++round) {
        std::vector<Descriptor> clients;
        for (int i = 0; i < 50; ++i) {
            clients.push_back(connect("127.0.0.1"));
        }
        ASSERT_TRUE(are_open(50)) << round;
        close_taken();
        ASSERT_TRUE(are_open(0)) << round;
    }
    EXPECT_EQ(acceptor_->counts().refused_all + acceptor_->counts().refused_per_source, 0u);
}

TEST_F(TcpAcceptorTest, WithoutADescriptor_AClientWaits) {
    const test::LogCapture log("rpc");
    listen({"127.0.0.1:0"});
    Descriptor client;
    {
        const DescriptorsLeft left(1);  // for the client
        client = connect("127.0.0.1");
        ASSERT_TRUE(client.is_open());
        // Twice: the listener is tried again although no connection has ended.
        ASSERT_TRUE(test::comes_true(
            [&] { return log.count("cannot accept a connection: Too many open files") >= 2; }));
        EXPECT_EQ(acceptor_->counts().open, 0u);
    }
    EXPECT_TRUE(are_open(1)) << "served as soon as there is a descriptor";
    const Descriptor next = connect("127.0.0.1");
    EXPECT_TRUE(are_open(2));
    acceptor_.reset();
}

TEST_F(TcpAcceptorTest, WithoutADescriptorForTheDuplicate_AConnectionTakesNoPlace) {
    const test::LogCapture log("rpc");
    listen({"127.0.0.1:0"}, {.all_max = 1, .per_source_max = 1, .loopback_reserve = 0});
    {
        const DescriptorsLeft left(2);  // for the client and the connection
        const Descriptor client = connect("127.0.0.1");
        ASSERT_TRUE(client.is_open());
        ASSERT_TRUE(test::comes_true([&] {
            return log.count("cannot accept a connection from 127.0.0.1: Too many open files") == 1;
        }));
        char byte = 0;
        EXPECT_LE(::recv(client.get(), &byte, 1, 0), 0) << "it is closed";
    }
    const Descriptor next = connect("127.0.0.1");
    EXPECT_TRUE(are_open(1));
    EXPECT_EQ(acceptor_->counts().refused_per_source, 0u);
    acceptor_.reset();
}

TEST_F(TcpAcceptorTest, AnAddressThatIsTaken_IsRefusedByName) {
    listen({"127.0.0.1:0"});
    const std::string address = "127.0.0.1:" + std::to_string(acceptor_->port());
    for (const std::string& again : {address, "0.0.0.0:" + std::to_string(acceptor_->port())}) {
        const auto refused = TcpAcceptor::listen(std::vector<std::string>{again});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().what, "cannot listen on " + again +
                                            ": Address already in use: ss -ltnp 'sport = :" +
                                            std::to_string(acceptor_->port()) + "' names the program");
    }
    const auto unknown = TcpAcceptor::listen(std::vector<std::string>{"no-such-host.invalid:1"});
    ASSERT_FALSE(unknown);
    EXPECT_TRUE(unknown.error().what.starts_with("cannot listen on no-such-host.invalid:1: "))
        << unknown.error().what;
}

// If a server is to listen on both families, a foreign listener on one of them is an error.
TEST_F(TcpAcceptorTest, AnyAddressThatIsTakenInIpv6Only_IsRefused) {
    const Descriptor other(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!other.is_open()) {
        GTEST_SKIP() << "no IPv6 here";
    }
    const int on = 1;
    ASSERT_EQ(::setsockopt(other.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)), 0);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    socklen_t length = sizeof(any);
    ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&any), length), 0);
    ASSERT_EQ(::listen(other.get(), 1), 0);
    ASSERT_EQ(::getsockname(other.get(), reinterpret_cast<sockaddr*>(&any), &length), 0);
    const std::string port = std::to_string(ntohs(any.sin6_port));
    for (const std::string& address : {"[::]:" + port, "0.0.0.0:" + port}) {
        const auto refused = TcpAcceptor::listen(std::vector<std::string>{address});
        ASSERT_FALSE(refused) << address;
        EXPECT_EQ(refused.error().what, "cannot listen on " + address +
                                            ": Address already in use: ss -ltnp 'sport = :" + port +
                                            "' names the program");
    }
}

}  // namespace tcp_acceptor_test
}  // namespace penstock::rpc
