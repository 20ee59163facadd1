// The server over real sockets, on a port that it chose itself.
#include "control/http/server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/free_port.hpp"
#include "tests/support/http_get.hpp"

namespace penstock::http {
namespace {

using test::http_exchange;
using test::http_get;

class HttpServer : public testing::Test {
 protected:
    void SetUp() override {
        auto started = Server::start("127.0.0.1:0", {{"/good", [] { return Response{.body = "all is well\n"}; }},
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
    EXPECT_TRUE(http_get(server_->port(), "/good?verbose=1").starts_with("HTTP/1.1 200 ")) << "probes may have a query";
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

TEST_F(HttpServer, ARequestThatIsTooLongOrBrokenGetsNoPage) {
    const std::string too_long = http_get(server_->port(), "/good?" + std::string(20'000, 'x'));
    EXPECT_EQ(too_long.find("all is well"), std::string::npos);
    EXPECT_EQ(http_exchange(server_->port(), "\x01\x02\x03 nonsense\r\n\r\n").find("all is well"), std::string::npos);
    EXPECT_TRUE(http_get(server_->port(), "/good").starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServer, SilentClientsKeepNobodyOutForLong) {
    std::vector<int> silent(kThreads);
    for (int& fd : silent) {
        fd = test::connect_to(server_->port());
    }
    EXPECT_TRUE(http_get(server_->port(), "/good").starts_with("HTTP/1.1 200 "));
    for (const int fd : silent) {
        close(fd);
    }
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
    const auto server = Server::start({"127.0.0.1" + suffix, "127.0.0.2" + suffix},
                                      {{kAnyPath, [] { return Response{.body = "{}", .content_type = "a/b", .headers = {{"X-A", "1"}}}; }},
                                       {"/own", [] { return Response{.status = 503}; }}},
                                      1);
    ASSERT_TRUE(server) << server.error().what;
    for (const char* path : {"/", "/x/y?z"}) {
        const std::string answer = http_get(port, path);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n")) << answer;
        EXPECT_NE(answer.find("\r\nX-A: 1\r\n"), std::string::npos) << answer;
    }
    EXPECT_TRUE(http_get(port, "/own").starts_with("HTTP/1.1 503 "));
    EXPECT_FALSE(Server::start("127.0.0.2" + suffix, {})) << "the second address is listened on, too";
    EXPECT_FALSE(Server::start({"127.0.0.3" + suffix, "127.0.0.1" + suffix}, {})) << "all or none";
    EXPECT_TRUE(Server::start("127.0.0.3" + suffix, {}));
}

TEST(HttpAddress, IsAnAddressAndAPort) {
    for (const char* good : {"127.0.0.1:9107", "0.0.0.0:0", "[::1]:9107", "[::]:65535"}) {
        EXPECT_TRUE(check_address(good)) << good;
    }
    for (const char* bad : {"", "9107", ":9107", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:80s", "::1:80",
                            "[127.0.0.1]:80", "127.0.0.1:80,127.0.0.1:81", "127.0.0.1:-1"}) {
        const Status checked = check_address(bad);
        ASSERT_FALSE(checked) << bad;
        EXPECT_EQ(checked.error().code, Errc::InvalidArgument);
    }
}

TEST(HttpServers, AnIpv6AddressIsServedOrRefusedByName) {
    const auto server = Server::start("[::1]:0", {{"/", [] { return Response{}; }}});
    EXPECT_EQ(server.has_value(), serves_ipv6());
    if (!server) {
        EXPECT_NE(server.error().what.find("[::1]:0: this system's civetweb was built without IPv6"), std::string::npos)
            << server.error().what;
    }
}

}  // namespace
}  // namespace penstock::http
