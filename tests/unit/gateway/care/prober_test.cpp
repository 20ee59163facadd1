// SPDX-License-Identifier: Apache-2.0
// Probes over real loopback sockets.
#include "control/gateway/care/prober.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <thread>

#include "control/http/server.hpp"
#include "desired_builder.hpp"
#include "tests/support/free_port.hpp"

namespace penstock::gateway {
namespace prober_test {

using namespace std::chrono_literals;

class ProberTest : public testing::Test {
 protected:
    void SetUp() override {
        auto started = Prober::start([this](ProbeSchedule::Results results) {
            {
                const std::lock_guard lock(mutex_);
                for (auto& [key, health] : results) {
                    known_[key.name] = health;
                }
            }
            news_.notify_all();
            std::this_thread::sleep_for(report_takes_.load());
        });
        ASSERT_TRUE(started) << started.error().what;
        prober_ = std::move(*started);
        auto server =
            http::Server::start("127.0.0.1:0", {{"/well", [] { return http::Response{}; }},
                                                {"/ill", [] { return http::Response{.status = 503}; }}});
        ASSERT_TRUE(server) << server.error().what;
        server_ = std::move(*server);
    }
    void probe(const std::string& name, const std::string& address, model::Probe probe) {
        auto one = service(name, {}, {address});
        probe.interval_s = 1;
        probe.unhealthy = 1;
        one.probe = std::move(probe);
        prober_->set({{one.key, std::make_shared<const model::Service>(one)}});
    }
    // Waits for the verdict about the only endpoint.
    Health verdict_of(const std::string& name) {
        std::unique_lock lock(mutex_);
        if (!news_.wait_for(lock, 30s, [&] { return known_[name] != nullptr; })) {
            return Health::Unprobed;
        }
        return known_[name]->verdicts.begin()->second;
    }

    std::atomic<std::chrono::milliseconds> report_takes_{0ms};
    std::mutex mutex_;
    std::condition_variable news_;
    std::map<std::string, SharedHealth> known_;
    std::unique_ptr<http::Server> server_;
    std::unique_ptr<Prober> prober_;  // last: its thread ends before the objects that it writes to
};

TEST_F(ProberTest, TcpIsWellWhereSomebodyListens_HC009_HC010) {
    probe("there", "127.0.0.1", {.port = server_->port()});
    probe("nobody", "127.0.0.1", {.port = test::free_port()});
    EXPECT_EQ(verdict_of("there"), Health::Up);
    EXPECT_EQ(verdict_of("nobody"), Health::Down);
}

TEST_F(ProberTest, HttpIsWellWith200Only_HC007) {
    using enum model::Probe::Kind;
    probe("well", "127.0.0.1", {.kind = Http, .port = server_->port(), .path = "/well"});
    probe("ill", "127.0.0.1", {.kind = Http, .port = server_->port(), .path = "/ill"});
    probe("missing", "127.0.0.1", {.kind = Http, .port = server_->port(), .path = "/"});
    EXPECT_EQ(verdict_of("well"), Health::Up);
    EXPECT_EQ(verdict_of("ill"), Health::Down);
    EXPECT_EQ(verdict_of("missing"), Health::Down);
}

// A socket that accepts connections and sends nothing.
TEST_F(ProberTest, SilenceIsAFailureAfterTheTimeout_HC008) {
    const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t length = sizeof(at);
    ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&at), length), 0);
    ASSERT_EQ(::listen(silent, 10), 0);
    ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&at), &length), 0);
    const auto began = std::chrono::steady_clock::now();
    probe("silent", "127.0.0.1",
          {.kind = model::Probe::Kind::Http, .port = ntohs(at.sin_port), .timeout_s = 1});
    EXPECT_EQ(verdict_of("silent"), Health::Down);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 1s);
    ::close(silent);
}

TEST_F(ProberTest, WhatIsNotWantedAnyMoreIsForgottenAndTold_HC009) {
    probe("there", "127.0.0.1", {.port = server_->port()});
    EXPECT_EQ(verdict_of("there"), Health::Up);
    prober_->set({{key("there"), nullptr}});
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(news_.wait_for(lock, 30s, [&] { return known_["there"] == nullptr; }));
}

// 256 responses are pending when the thread continues, late by more than their timeout.
TEST_F(ProberTest, WhoAnsweredInTimeIsUpThoughTheProberWasLate_HC008) {
    std::vector<int> listeners;
    auto many = service("many", {}, {});
    for (int i = 0; i < 4; ++i) {
        listeners.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_ANY)}, .sin_zero = {}};
        socklen_t length = sizeof(at);
        ASSERT_EQ(::bind(listeners.back(), reinterpret_cast<sockaddr*>(&at), length), 0);
        ASSERT_EQ(::listen(listeners.back(), 128), 0);
        ASSERT_EQ(::getsockname(listeners.back(), reinterpret_cast<sockaddr*>(&at), &length), 0);
        for (uint8_t host = 1; host <= 64; ++host) {
            many.sets.front().endpoints.push_back(
                {IpAddr::v4(127, 0, 0, host), ntohs(at.sin_port), 1, "", ""});
        }
    }
    many.probe = model::Probe{.interval_s = 60, .timeout_s = 1, .unhealthy = 1};
    report_takes_ = 1'500ms;
    prober_->set({{many.key, std::make_shared<const model::Service>(many)}});
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(news_.wait_for(
        lock, 30s, [&] { return known_["many"] != nullptr && known_["many"]->verdicts.size() == 256; }));
    EXPECT_EQ(prober_->counters().failed, 0U);
    lock.unlock();
    for (const int listener : listeners) {
        ::close(listener);
    }
}

TEST_F(ProberTest, ThatNoDescriptorIsLeftIsNotTheEndpointsFault_HC007) {
    rlimit usual{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
    rlimit none = usual;
    none.rlim_cur = 3;  // below the number of open descriptors
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    probe("there", "127.0.0.1", {.port = server_->port()});
    {
        std::unique_lock lock(mutex_);
        news_.wait_for(lock, 500ms, [&] { return known_["there"] != nullptr; });
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
    EXPECT_EQ(verdict_of("there"), Health::Up) << "the first that is reported";
}

TEST(HttpAnswer, TheStatusLineDecides_HC007) {
    EXPECT_FALSE(http_answer(""));
    EXPECT_FALSE(http_answer("HTT"));
    EXPECT_FALSE(http_answer("HTTP/1.1 20"));
    EXPECT_TRUE(http_answer("HTTP/1.1 200")->succeeded);
    EXPECT_TRUE(http_answer("HTTP/1.0 200 OK\r\n")->succeeded);
    EXPECT_FALSE(http_answer("HTTP/1.1 204 No Content\r\n")->succeeded);
    EXPECT_EQ(http_answer("HTTP/1.1 503 Service Unavailable\r\n")->why, "HTTP status 503");
    EXPECT_FALSE(http_answer("SSH-2.0-OpenSSH")->succeeded);
    EXPECT_EQ(http_answer("HTTP/1.1\n200")->why, "the response is not HTTP")
        << "what stands in a log is ours";
    EXPECT_EQ(http_answer("HTTP/1.1 5\n3")->why, "the response is not HTTP");
}

}  // namespace prober_test
}  // namespace penstock::gateway
