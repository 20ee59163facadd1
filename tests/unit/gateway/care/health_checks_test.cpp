// SPDX-License-Identifier: Apache-2.0
// healthCheckNodePort over real loopback sockets, with a clock that is an argument.
#include "control/gateway/care/health_checks.hpp"

#include <gtest/gtest.h>

#include "desired_builder.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/http_get.hpp"

namespace penstock::gateway {
namespace health_checks_test {

using namespace std::chrono_literals;
using test::http_get;

constexpr const char* kWebBody =
    "{\n\t\"service\": {\n\t\t\"namespace\": \"default\",\n\t\t\"name\": "
    "\"web\"\n\t},\n\t\"localEndpoints\": 2,\n"
    "\t\"serviceProxyHealthy\": true\n}";

class HealthChecksTest : public testing::Test {
 protected:
    void SetUp() override { checks_.set_addresses({ip("127.0.0.1")}); }
    void ask_for(const std::string& name, L4Port port, uint32_t local_endpoints) {
        checks_.set(key(name), model::HealthCheck{port, local_endpoints});
        checks_.work(now_);
    }
    void no_longer(const std::string& name) {
        checks_.set(key(name), std::nullopt);
        checks_.work(now_);
    }
    // An address without a listener.
    static bool is_closed(L4Port port) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const bool refused =
            connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0 && errno == ECONNREFUSED;
        close(fd);
        return refused;
    }
    std::vector<std::string> reasons() const {
        std::vector<std::string> out;
        for (const auto& observed : checks_.notices()) {
            out.push_back(observed.key.name + " " + observed.notice.reason);
        }
        return out;
    }

    std::atomic<bool> well_{true};
    HealthChecks checks_{[this] { return well_.load(); }};
    HealthChecks::Time now_{1h};
    const L4Port port_ = test::free_port();
};

TEST_F(HealthChecksTest, AnyPathAnswersByGetAndHead_HC002_HC003) {
    ask_for("web", port_, 2);
    for (const char* path : {"/", "/healthz", "/x?y", "/a/b/c"}) {
        const std::string answer = http_get(port_, path);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
        EXPECT_NE(answer.find("\r\nContent-Type: application/json\r\n"), std::string::npos) << answer;
        EXPECT_NE(answer.find("\r\nX-Content-Type-Options: nosniff\r\n"), std::string::npos) << answer;
        EXPECT_NE(answer.find("\r\nX-Load-Balancing-Endpoint-Weight: 2\r\n"), std::string::npos) << answer;
        EXPECT_TRUE(answer.ends_with(std::string("\r\n\r\n") + kWebBody)) << answer;
    }
    const std::string head = http_get(port_, "/", "HEAD");
    EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n")) << head;
    EXPECT_TRUE(http_get(port_, "/", "POST").starts_with("HTTP/1.1 405 "));
}

TEST_F(HealthChecksTest, WithoutLocalEndpointsOrWithAnUnwellGatewayTheSameBodySays503_HC002_HC003) {
    ask_for("web", port_, 2);
    well_ = false;
    std::string answer = http_get(port_, "/");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << answer;
    EXPECT_NE(answer.find("\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": false\n}"), std::string::npos)
        << answer;
    well_ = true;
    ask_for("web", port_, 0);
    answer = http_get(port_, "/");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
    EXPECT_NE(answer.find("\r\nX-Load-Balancing-Endpoint-Weight: 0\r\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find("\"localEndpoints\": 0,\n\t\"serviceProxyHealthy\": true\n}"), std::string::npos)
        << answer;
    ask_for("web", port_, 1);
    EXPECT_TRUE(http_get(port_, "/").starts_with("HTTP/1.1 200 ")) << "the first endpoint";
}

// Ports of a Service arrive separately, so the old name is removed before the new one is added.
TEST_F(HealthChecksTest, TheCountIsTheServicesAfterItsPortWasRenamed_HC002) {
    ask_for("web", port_, 2);
    EXPECT_TRUE(http_get(port_, "/").starts_with("HTTP/1.1 200 "));
    checks_.set(key("web"), std::nullopt);
    model::ServiceKey renamed = key("web");
    renamed.port_name = "http";
    checks_.set(renamed, model::HealthCheck{port_, 1});
    checks_.work(now_);
    EXPECT_NE(http_get(port_, "/").find("\r\nX-Load-Balancing-Endpoint-Weight: 1\r\n"), std::string::npos);
    checks_.set(renamed, model::HealthCheck{port_, 0});
    checks_.work(now_);
    EXPECT_TRUE(http_get(port_, "/").starts_with("HTTP/1.1 503 ")) << "the last local endpoint is gone";
    checks_.set(renamed, std::nullopt);
    checks_.work(now_);
    EXPECT_TRUE(is_closed(port_));
}

TEST_F(HealthChecksTest, PortsOpenAndCloseWithTheService_HC005) {
    EXPECT_TRUE(is_closed(port_));
    ask_for("web", port_, 1);
    EXPECT_FALSE(is_closed(port_));
    const L4Port other = test::free_port();
    ask_for("web", other, 1);
    EXPECT_TRUE(is_closed(port_)) << "it has moved";
    EXPECT_EQ(checks_.open_ports(), std::vector<L4Port>{other});
    no_longer("web");
    EXPECT_TRUE(is_closed(other));
    EXPECT_TRUE(checks_.open_ports().empty());
}

// The health check is carried by the Service's first port. Another port may become the first one.
TEST_F(HealthChecksTest, AServiceMayChangeThePortThatCarriesIt_HC005) {
    model::ServiceKey second = key("web");
    second.port_name = "https";
    checks_.set(second, model::HealthCheck{port_, 3});
    checks_.work(now_);
    checks_.set(key("web"), model::HealthCheck{port_, 4});
    checks_.set(second, std::nullopt);
    checks_.work(now_);
    EXPECT_NE(http_get(port_, "/").find("\"localEndpoints\": 4"), std::string::npos);
    EXPECT_TRUE(reasons().empty());
}

TEST_F(HealthChecksTest, APortThatIsTakenIsToldAndTriedAgainEvery30s_HC005) {
    auto stranger = http::Server::start("127.0.0.1:0", {});
    ASSERT_TRUE(stranger);
    const L4Port taken = (*stranger)->port();
    ask_for("web", taken, 1);
    EXPECT_EQ(reasons(), std::vector<std::string>{"web FailedToStartServiceHealthcheck"});
    EXPECT_NE(checks_.notices()[0].notice.message.find(std::to_string(taken)), std::string::npos);
    EXPECT_EQ(checks_.due(), now_ + 30s);
    stranger->reset();
    now_ += 29s;
    checks_.work(now_);
    EXPECT_TRUE(checks_.open_ports().empty()) << "not yet";
    now_ += 1s;
    checks_.work(now_);
    EXPECT_EQ(checks_.open_ports(), std::vector<L4Port>{taken});
    EXPECT_TRUE(reasons().empty());
    EXPECT_FALSE(checks_.due());
}

TEST_F(HealthChecksTest, OfTwoServicesWithOnePortTheFirstHasItAndTheOtherInheritsIt_HC005_SVC018) {
    ask_for("web", port_, 2);
    ask_for("api", port_, 7);
    EXPECT_EQ(reasons(), std::vector<std::string>{"api FailedToStartServiceHealthcheck"});
    EXPECT_NE(http_get(port_, "/").find("\"name\": \"web\""), std::string::npos);
    no_longer("web");
    EXPECT_NE(http_get(port_, "/").find("\"name\": \"api\""), std::string::npos);
    EXPECT_TRUE(reasons().empty());
}

TEST_F(HealthChecksTest, ListensOnAllNodePortAddressesAndFollowsThem_HC001) {
    ask_for("web", port_, 1);
    checks_.set_addresses({ip("127.0.0.2"), ip("127.0.0.3")});
    checks_.work(now_);
    EXPECT_TRUE(is_closed(port_)) << "127.0.0.1 has gone";
    for (const char* address : {"127.0.0.2", "127.0.0.3"}) {
        EXPECT_FALSE(http::Server::start(std::string(address) + ":" + std::to_string(port_), {}))
            << address << " is not listened on";
    }
    checks_.set_addresses({});
    checks_.work(now_);
    EXPECT_TRUE(checks_.open_ports().empty());
    EXPECT_TRUE(reasons().empty()) << "no address is no failure";
}

TEST(HealthCheckAnswer, NamesAreNoSyntax_HC003) {
    const auto answer = health_check_answer("a\"b", "c\\d\n", 1, true);
    EXPECT_NE(answer.body.find(R"("namespace": "a\"b")"), std::string::npos) << answer.body;
    EXPECT_NE(answer.body.find(R"("name": "c\\d?")"), std::string::npos) << answer.body;
}

}  // namespace health_checks_test
}  // namespace penstock::gateway
