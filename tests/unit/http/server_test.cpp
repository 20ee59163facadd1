// SPDX-License-Identifier: Apache-2.0
// The server over real sockets, on a free port.
#include "control/http/server.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/free_port.hpp"
#include "tests/support/http_get.hpp"

namespace penstock::http {
namespace server_test {

using test::http_exchange;
using test::http_get;

class HttpServer : public testing::Test {
 protected:
    void SetUp() override {
        auto started = Server::start(
            "127.0.0.1:0", {{"/good", [] { return Response{.body = "all is well\n"}; }},
                            {"/bad", [] { return Response{.status = 503, .body = "stuck\n"}; }},
                            {"/large", [] { return Response{.body = std::string(3'000'000, 'x')}; }},
                            {"/counted", [this] { return Response{.body = std::to_string(++calls_)}; }}});
        ASSERT_TRUE(started) << started.error().what;
        server_ = std::move(*started);
        ASSERT_NE(server_->port(), 0);
    }

    std::atomic<int> calls_{0};
    std::unique_ptr<Server> server_;
};

TEST_F(HttpServer, APathGetsItsPageWithStatusTypeAndLength) {
    const std::string good = http_get(server_->port(), "/good");
    EXPECT_TRUE(good.starts_with("HTTP/1.1 200 OK\r\n")) << good;
    EXPECT_NE(good.find("Content-Type: text/plain; charset=utf-8\r\n"), std::string::npos) << good;
    EXPECT_NE(good.find("Content-Length: 12\r\n"), std::string::npos) << good;
    EXPECT_TRUE(good.ends_with("\r\n\r\nall is well\n")) << good;
    EXPECT_TRUE(http_get(server_->port(), "/bad").starts_with("HTTP/1.1 503 "));
    EXPECT_TRUE(http_get(server_->port(), "/good?verbose=1").starts_with("HTTP/1.1 200 "))
        << "probes may have a query";
}

TEST_F(HttpServer, APageIsMadeEachTimeItIsAskedFor) {
    EXPECT_TRUE(http_get(server_->port(), "/counted").ends_with("\r\n\r\n1"));
    EXPECT_TRUE(http_get(server_->port(), "/counted").ends_with("\r\n\r\n2"));
}

TEST_F(HttpServer, HeadHasNoBody) {
    const std::string head = http_get(server_->port(), "/good", "HEAD");
    EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
    EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST_F(HttpServer, WhatIsNotThereIs404AndNamesWhatIs) {
    for (const char* path : {"/", "/goo", "/good/", "/good/../../etc/passwd", "/etc/passwd"}) {
        const std::string answer = http_get(server_->port(), path);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 ")) << path << "\n" << answer;
        EXPECT_NE(answer.find("\n/good\n"), std::string::npos) << answer;
    }
}

TEST_F(HttpServer, OtherMethodsAreRefused) {
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
        EXPECT_TRUE(http_get(server_->port(), "/good", method).starts_with("HTTP/1.1 405 ")) << method;
    }
}

TEST_F(HttpServer, ARequestThatIsTooLongOrBrokenIsRefusedByStatus) {
    EXPECT_TRUE(http_get(server_->port(), "/good?" + std::string(20'000, 'x')).starts_with("HTTP/1.1 431 "));
    EXPECT_TRUE(http_exchange(server_->port(), "GET /good HTTP/1.1\r\nX: " + std::string(9'000, 'x'))
                    .starts_with("HTTP/1.1 431 "));
    for (const char* broken :
         {"\x01\x02\x03 nonsense\r\n\r\n", "GET /good\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
          "GET /good HTTP/1.1\r\nbroken header\r\n\r\n", "GET /good HTTP/1.1\r\nContent-Length: x\r\n\r\n"}) {
        EXPECT_TRUE(http_exchange(server_->port(), broken).starts_with("HTTP/1.1 400 ")) << broken;
    }
    EXPECT_TRUE(http_get(server_->port(), "/good").starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServer, FormsOfARequestThatAreRareButValid) {
    for (const char* request :
         {"GET /good HTTP/1.0\r\n\r\n", "GET http://192.0.2.1/good HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET /good HTTP/1.1\r\n\r\n", "GET /good HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"}) {
        EXPECT_TRUE(http_exchange(server_->port(), request).starts_with("HTTP/1.1 200 ")) << request;
    }
    EXPECT_TRUE(http_exchange(server_->port(), "OPTIONS * HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    EXPECT_TRUE(http_exchange(server_->port(), "GET http://x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "))
        << "the path is /";
}

TEST_F(HttpServer, OfPipelinedRequestsTheFirstIsAnsweredAndTheConnectionClosed) {
    const std::string two =
        http_exchange(server_->port(), "GET /counted HTTP/1.1\r\n\r\nGET /counted HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(two.starts_with("HTTP/1.1 200 ") && two.ends_with("\r\nConnection: close\r\n\r\n1")) << two;
    EXPECT_EQ(calls_, 1);
}

TEST_F(HttpServer, ARequestMayComeInPiecesFromAClientThatClosesItsSideFirst) {
    const int fd = test::connect_to(server_->port());
    for (const char* piece : {"GE", "T /good HT", "TP/1.1\r\n", "Host: x\r\n", "\r\n"}) {
        ASSERT_GT(send(fd, piece, strlen(piece), MSG_NOSIGNAL), 0);
    }
    ASSERT_EQ(shutdown(fd, SHUT_WR), 0);
    EXPECT_TRUE(test::read_all(fd).ends_with("all is well\n"));
}

TEST_F(HttpServer, AClientThatClosesBeforeItsRequestIsWholeGetsNothing) {
    const int fd = test::connect_to(server_->port());
    ASSERT_GT(send(fd, "GET /good", 9, MSG_NOSIGNAL), 0);
    ASSERT_EQ(shutdown(fd, SHUT_WR), 0);
    EXPECT_EQ(test::read_all(fd), "");
}

// All silent connections are open while the probe is answered. No time limit has ended one: their number
// alone exceeds the limit of connections, and the server closes the last of them.
TEST_F(HttpServer, AThousandSilentConnectionsDoNotKeepAProbeWaiting) {
    std::vector<int> silent(1'000);
    for (size_t i = 0; i < silent.size(); ++i) {
        silent[i] = test::connect_to(server_->port());
        if (i % 2 == 1) {
            ASSERT_GT(send(silent[i], "GET /good HTTP/1.1\r\n", 20, MSG_NOSIGNAL),
                      0);  // the empty line is missing
        }
        if (i % 100 == 99) {
            EXPECT_TRUE(http_get(server_->port(), "/good").starts_with("HTTP/1.1 200 "))
                << i + 1 << " are silent";
        }
    }
    EXPECT_EQ(test::read_all(silent.front()), "") << "evicted: the oldest silent one";
    for (size_t i = 1; i < silent.size(); ++i) {
        close(silent[i]);
    }
}

TEST_F(HttpServer, ARequestThatTakesTooLongEndsItsConnection) {
    const int fd = test::connect_to(server_->port());
    ASSERT_GT(send(fd, "GET /good HTTP/1.1\r\n", 20, MSG_NOSIGNAL), 0);
    EXPECT_EQ(test::read_all(fd), "") << "this test would wait for ever";
}

TEST_F(HttpServer, ClosingWaitsForNoClient) {
    std::vector<int> clients;
    for (const char* request : {"", "GET /good HTTP/1.1\r\n", "GET /large HTTP/1.1\r\n\r\n"}) {
        clients.push_back(test::connect_to(server_->port()));
        ASSERT_EQ(send(clients.back(), request, strlen(request), MSG_NOSIGNAL),
                  static_cast<ssize_t>(strlen(request)));
    }
    EXPECT_TRUE(http_get(server_->port(), "/good").starts_with("HTTP/1.1 200 ")) << "all have been accepted";
    const uint16_t port = server_->port();
    const auto before = std::chrono::steady_clock::now();
    server_.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - before, kRequestTimeout)
        << "sooner than the first of them would have ended";
    EXPECT_TRUE(Server::start("127.0.0.1:" + std::to_string(port), {})) << "the port is free";
    for (const int fd : clients) {
        close(fd);
    }
}

TEST_F(HttpServer, AHeavyPageIsMadeForAllThatWaitForItAndKeepsNoOtherWaiting) {
    std::mutex mutex;
    std::condition_variable change;
    int made = 0;
    int allowed = 0;
    auto started =
        Server::start("127.0.0.1:0", {{"/heavy", heavy([&] {
                                           std::unique_lock lock(mutex);
                                           ++made;
                                           change.notify_all();
                                           change.wait(lock, [&] { return allowed >= made; });
                                           return Response{.body = "number " + std::to_string(made) +
                                                                   std::string(5'000, ' ')};
                                       })},
                                      {"/light", [] { return Response{}; }}});
    ASSERT_TRUE(started) << started.error().what;
    const uint16_t port = (*started)->port();
    const auto ask = [&](const char* extra) {
        const int fd = test::connect_to(port);
        const std::string request = "GET /heavy HTTP/1.1\r\n" + std::string(extra) + "\r\n";
        EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(request.size()));
        return fd;
    };
    const int first = ask("");
    {
        std::unique_lock lock(mutex);
        change.wait(lock, [&] { return made == 1; });
    }
    const std::array later{ask(""), ask("Accept-Encoding: gzip\r\n"), ask("")};
    EXPECT_TRUE(http_get(port, "/light").starts_with("HTTP/1.1 200 "))
        << "and the three requests before it have been read";
    {
        const std::lock_guard lock(mutex);
        allowed = 2;
    }
    change.notify_all();
    EXPECT_NE(test::read_all(first).find("\r\n\r\nnumber 1"), std::string::npos);
    EXPECT_NE(test::read_all(later[0]).find("\r\n\r\nnumber 2"), std::string::npos)
        << "made after the request had come";
    const std::string packed = test::read_all(later[1]);
    EXPECT_NE(packed.find("\r\nContent-Encoding: gzip\r\n"), std::string::npos);
    EXPECT_LT(packed.size(), 1'000U);
    EXPECT_NE(test::read_all(later[2]).find("\r\n\r\nnumber 2"), std::string::npos);
    EXPECT_EQ(made, 2) << "one for the three";
}

TEST_F(HttpServer, ALargePageArrivesWhole) {
    const std::string answer = http_get(server_->port(), "/large");
    EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, 3'000'000u);
}

TEST_F(HttpServer, ManyAtOnceAreAllAnswered) {
    std::atomic<int> answered{0};
    {
        std::vector<std::jthread> clients;
        for (int i = 0; i < 16; ++i) {
            clients.emplace_back([&] {
                if (http_get(server_->port(), "/counted").starts_with("HTTP/1.1 200 ")) {
                    ++answered;
                }
            });
        }
    }
    EXPECT_EQ(answered, 16);
    EXPECT_EQ(calls_, 16);
}

TEST_F(HttpServer, ASecondOneOnThePortIsRefusedByName) {
    const std::string address = "127.0.0.1:" + std::to_string(server_->port());
    const auto second = Server::start(address, {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::Unavailable);
    EXPECT_NE(second.error().what.find(address), std::string::npos) << second.error().what;
}

TEST(HttpServers, AnyPathAndFurtherHeadersOnSeveralAddresses_HC002_HC003) {
    const uint16_t port = test::free_port();
    const std::string suffix = ":" + std::to_string(port);
    const auto server = Server::start(
        {.addresses = {"127.0.0.1" + suffix, "127.0.0.2" + suffix},
         .routes = {{kAnyPath,
                     [] { return Response{.body = "{}", .content_type = "a/b", .headers = {{"X-A", "1"}}}; }},
                    {"/own", [] { return Response{.status = 503}; }}}});
    ASSERT_TRUE(server) << server.error().what;
    for (const char* path : {"/", "/x/y?z"}) {
        const std::string answer = http_get(port, path);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n")) << answer;
        EXPECT_NE(answer.find("\r\nX-A: 1\r\n"), std::string::npos) << answer;
    }
    EXPECT_TRUE(http_get(port, "/own").starts_with("HTTP/1.1 503 "));
    EXPECT_FALSE(Server::start("127.0.0.2" + suffix, {})) << "the second address is listened on, too";
    EXPECT_FALSE(Server::start({.addresses = {"127.0.0.3" + suffix, "127.0.0.1" + suffix}, .routes = {}}))
        << "all or none";
    EXPECT_TRUE(Server::start("127.0.0.3" + suffix, {}));
}

TEST(HttpAddress, IsAnAddressAndAPort) {
    for (const char* good : {"127.0.0.1:9107", "0.0.0.0:0", "[::1]:9107", "[::]:65535"}) {
        EXPECT_TRUE(check_address(good)) << good;
    }
    for (const char* bad :
         {"", "9107", ":9107", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:80s",
          "::1:80", "[127.0.0.1]:80", "127.0.0.1:80,127.0.0.1:81", "127.0.0.1:-1"}) {
        const Status checked = check_address(bad);
        ASSERT_FALSE(checked) << bad;
        EXPECT_EQ(checked.error().code, Errc::InvalidArgument);
    }
}

TEST(HttpServers, ServeIpv6BesideIpv4OnOnePort) {
    const auto v6 = Server::start("[::]:0", {{"/", [] { return Response{.body = "six"}; }}});
    ASSERT_TRUE(v6) << v6.error().what;
    const std::string port = std::to_string((*v6)->port());
    const auto v4 = Server::start("0.0.0.0:" + port, {{"/", [] { return Response{.body = "four"}; }}});
    ASSERT_TRUE(v4) << v4.error().what;
    EXPECT_TRUE(http_get((*v4)->port(), "/").ends_with("\r\n\r\nfour"));
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons((*v6)->port());
    to.sin6_addr = IN6ADDR_LOOPBACK_INIT;
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    ASSERT_GT(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
    EXPECT_TRUE(test::read_all(fd).ends_with("\r\n\r\nsix"));
}

TEST(HttpServers, ListenOnAnAddressThatIsYetToComeWhereToldTo) {
    EXPECT_FALSE(Server::start("192.0.2.77:0", {}));
    for (const char* address : {"192.0.2.77:0", "[2001:db8::77]:0"}) {
        EXPECT_TRUE(Server::start({.addresses = {address}, .routes = {}, .addresses_may_be_absent = true}))
            << address;
    }
}

TEST(HttpServers, ShareALoopAndItsLimits) {
    const auto loop =
        std::make_shared<Loop>(AdmissionLimits{.remote_max = 1, .local_max = 2, .per_source_max = 9});
    const auto start = [&](const char* body) {
        auto server = Server::start(
            {.addresses = {"127.0.0.1:0"}, .routes = {{"/", [body] { return Response{.body = body}; }}}},
            loop);
        EXPECT_TRUE(server);
        return std::move(*server);
    };
    auto one = start("one");
    const auto two = start("two");
    const int silent_one = test::connect_to(one->port());
    const int silent_two = test::connect_to(two->port());
    EXPECT_TRUE(http_get(two->port(), "/").ends_with("two"));
    EXPECT_EQ(test::read_all(silent_one), "") << "evicted by a client of the other server";
    const uint16_t gone = one->port();
    one.reset();
    EXPECT_TRUE(http_get(two->port(), "/").ends_with("two")) << "it goes on without the first server";
    EXPECT_TRUE(Server::start("127.0.0.1:" + std::to_string(gone), {}));
    close(silent_two);
}

}  // namespace server_test
}  // namespace penstock::http
