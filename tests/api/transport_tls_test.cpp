// SPDX-License-Identifier: Apache-2.0
// Authentication of both sides: TLS with valid, invalid and changing certificates.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>

#include "control/kube/client/curl_transport.hpp"
#include "tests/support/fake_api_server.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/recorded_answer.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::kube {
namespace transport_tls_test {

using namespace std::chrono_literals;
using test::CertificateAuthority;
using test::Connection;
using test::FakeApiServer;
using test::LogCapture;
using test::poll_until;
using test::RecordedAnswer;
using test::RecordedRequest;
using test::ScratchFolder;
using test::ServerTls;

void answer_ok(const RecordedRequest&, Connection& connection) {
    connection.respond(200, "{}");
}

class TransportTls : public testing::Test {
 protected:
    ClientConfig config_for(const FakeApiServer& server) const {
        ClientConfig config;
        config.origin = "test";
        config.server = server.url();
        config.ca.data = Secret(authority_.pem());
        return config;
    }
    static RecordedAnswer fetch(CurlTransport& transport) {
        RecordedAnswer answer;
        transport.start({.target = "/x", .timeout = 60s}, answer);
        EXPECT_TRUE(poll_until(transport, [&] { return answer.has_ended; }));
        return answer;
    }
    static RecordedAnswer fetch(const ClientConfig& config, const TransportOptions& options = {}) {
        auto transport = CurlTransport::create(config, options);
        EXPECT_TRUE(transport) << transport.error().what;
        return fetch(**transport);
    }
    static void expect_refused(const RecordedAnswer& answer, const std::string& words) {
        ASSERT_TRUE(answer.error) << words;
        EXPECT_EQ(answer.kind(), static_cast<int>(TransportError::Kind::Tls)) << answer.what();
        EXPECT_NE(answer.what().find(words), std::string::npos) << answer.what();
        EXPECT_FALSE(answer.head);
    }

    CertificateAuthority authority_;
};

TEST_F(TransportTls, ChainAndNameAreVerified_AUTH006) {
    FakeApiServer server(answer_ok, ServerTls{.certificate = authority_.issue_loopback()});
    const ClientConfig config = config_for(server);
    EXPECT_TRUE(fetch(config).is_well());

    ClientConfig stranger = config;
    stranger.ca.data = Secret(CertificateAuthority("another-ca").pem());
    expect_refused(fetch(stranger), "certificate");
    ClientConfig system = config;
    system.ca = {};  // the system's authorities have not signed a test's certificate
    expect_refused(fetch(system), "certificate");
    EXPECT_EQ(server.request_count(), 1U);

    server.set_tls({.certificate = authority_.issue(
                        {.dns_names = {"localhost"}, .addresses = {"127.0.0.1"}, .is_expired = true})});
    expect_refused(fetch(config), "expired");
    server.set_tls(
        {.certificate = authority_.issue({.dns_names = {"localhost"}, .addresses = {"127.0.0.2"}})});
    expect_refused(fetch(config), "127.0.0.1");
    EXPECT_EQ(server.request_count(), 1U);
}

TEST_F(TransportTls, DnsNamesAreVerified_AUTH006) {
    FakeApiServer server(answer_ok, ServerTls{.certificate = authority_.issue({.dns_names = {"localhost"}})});
    ClientConfig config = config_for(server);
    config.server = "https://localhost:" + std::to_string(server.port());
    EXPECT_TRUE(fetch(config).is_well());
    EXPECT_EQ(server.last_server_name(), "localhost");
    server.set_tls({.certificate = authority_.issue({.common_name = "localhost", .dns_names = {"other"}})});
    expect_refused(fetch(config), "localhost");
}

TEST_F(TransportTls, TlsServerNameIsAskedForAndVerified_AUTH006) {
    FakeApiServer server(answer_ok,
                         ServerTls{.certificate = authority_.issue({.dns_names = {"inner.example"}})});
    ClientConfig config = config_for(server);
    expect_refused(fetch(config), "127.0.0.1");
    config.tls_server_name = "inner.example";
    const RecordedAnswer answer = fetch(config);
    EXPECT_TRUE(answer.is_well()) << answer.what();
    EXPECT_EQ(server.last_server_name(), "inner.example");
    EXPECT_EQ(server.requests().back().header("host"), "127.0.0.1:" + std::to_string(server.port()));
    config.tls_server_name = "outer.example";
    expect_refused(fetch(config), "outer.example");
}

TEST_F(TransportTls, OldVersionsAreRefused_AUTH006) {
    FakeApiServer server(
        answer_ok, ServerTls{.certificate = authority_.issue_loopback(), .version_max = TLS1_2_VERSION});
    EXPECT_TRUE(fetch(config_for(server)).is_well());
    server.set_tls({.certificate = authority_.issue_loopback(), .version_max = TLS1_1_VERSION});
    expect_refused(fetch(config_for(server)), "");
    EXPECT_EQ(server.request_count(), 1U);
}

TEST_F(TransportTls, InsecureNeedsTheSwitchAndWarnsAgainAndAgain_AUTH006) {
    FakeApiServer server(answer_ok, ServerTls{.certificate = CertificateAuthority("unknown").issue(
                                                  {.dns_names = {"x"}, .is_expired = true})});
    ClientConfig config = config_for(server);
    config.ca = {};
    config.insecure_skip_tls_verify = true;
    EXPECT_FALSE(CurlTransport::create(config));
    const LogCapture log("kube");
    const auto transport =
        CurlTransport::create(config, {.allow_insecure = true, .insecure_warning_period = 100ms});
    ASSERT_TRUE(transport);
    EXPECT_TRUE(fetch(**transport).is_well());
    EXPECT_TRUE(
        poll_until(**transport, [&] { return log.count("the server's identity is not verified") >= 3; }));
    const auto hourly = CurlTransport::create(config, {.allow_insecure = true});
    const size_t before = log.count("the server's identity is not verified");
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(fetch(**hourly).is_well());
    }
    EXPECT_EQ(log.count("the server's identity is not verified"), before + 1);
}

TEST_F(TransportTls, ClientCertificateIsShown_AUTH002) {
    FakeApiServer server(
        answer_ok, ServerTls{.certificate = authority_.issue_loopback(), .client_ca = authority_.pem()});
    ClientConfig config = config_for(server);
    expect_refused(fetch(config), "certificate");
    for (const bool is_rsa : {false, true}) {
        const auto issued = authority_.issue({.common_name = is_rsa ? "rsa" : "ec", .is_rsa = is_rsa});
        config.client_certificate.data = Secret(issued.certificate);
        config.client_key.data = Secret(issued.key);
        config.token = Secret("beside-it");  // both may be configured
        const RecordedAnswer answer = fetch(config);
        EXPECT_TRUE(answer.is_well()) << answer.what();
        EXPECT_EQ(server.requests().back().client_name, is_rsa ? "rsa" : "ec");
        EXPECT_EQ(server.requests().back().header("authorization"), "Bearer beside-it");
    }
    const auto stranger = CertificateAuthority("another-ca").issue({});
    config.client_certificate.data = Secret(stranger.certificate);
    config.client_key.data = Secret(stranger.key);
    expect_refused(fetch(config), "");
}

TEST_F(TransportTls, ReplacedClientCertificateServesNewConnections_AUTH005) {
    const ScratchFolder folder;
    FakeApiServer server(
        answer_ok, ServerTls{.certificate = authority_.issue_loopback(), .client_ca = authority_.pem()});
    const auto one = authority_.issue({.common_name = "one"});
    const auto two = authority_.issue({.common_name = "two"});
    ClientConfig config = config_for(server);
    config.client_certificate.file = folder.write("me.crt", one.certificate);
    config.client_key.file = folder.write("me.key", one.key);
    const auto transport = CurlTransport::create(config);
    ASSERT_TRUE(transport) << transport.error().what;
    EXPECT_TRUE(fetch(**transport).is_well());
    EXPECT_TRUE(fetch(**transport).is_well());
    EXPECT_EQ(server.connection_count(), 1);
    folder.write("me.crt", two.certificate);
    folder.write("me.key", two.key);
    EXPECT_TRUE(fetch(**transport).is_well());
    EXPECT_EQ(server.requests().back().client_name, "two");
    EXPECT_EQ(server.connection_count(), 2);
}

TEST_F(TransportTls, ReplacedCaServesNewConnections_AUTH005) {
    const ScratchFolder folder;
    const CertificateAuthority next("next-ca");
    FakeApiServer server(answer_ok, ServerTls{.certificate = authority_.issue_loopback()});
    ClientConfig config = config_for(server);
    config.ca = {.file = folder.write("ca.crt", authority_.pem())};
    const auto transport = CurlTransport::create(config);
    ASSERT_TRUE(transport) << transport.error().what;
    EXPECT_TRUE(fetch(**transport).is_well());
    server.set_tls({.certificate = next.issue_loopback()});
    server.cut_connections();
    expect_refused(fetch(**transport), "certificate");
    folder.write("ca.crt", authority_.pem() + next.pem());
    EXPECT_TRUE(fetch(**transport).is_well());
}

TEST_F(TransportTls, WatchOverTlsIsFoundHalfOpen_APISYNC015) {
    FakeApiServer server(
        [](const RecordedRequest&, Connection& connection) {
            connection.start_chunks(200);
            connection.chunk("{}");
            connection.wait_for_close();
        },
        ServerTls{.certificate = authority_.issue_loopback()});
    const auto transport = CurlTransport::create(config_for(server), {.liveness = {.silence_max = 2s}});
    ASSERT_TRUE(transport);
    RecordedAnswer watch;
    (*transport)->start({.target = "/w", .watch = true}, watch);
    ASSERT_TRUE(poll_until(**transport, [&] { return watch.has_ended; }));
    EXPECT_EQ(watch.body, "{}");
    EXPECT_NE(watch.what().find("half-open: nothing received for 2 s"), std::string::npos) << watch.what();
}

// Without HTTP/2 each watch has its own connection, and none waits for another to end.
TEST_F(TransportTls, WatchesRunSideBySideOverHttp1_APISYNC019) {
    for (const bool has_alpn : {true, false}) {
        FakeApiServer server(
            [](const RecordedRequest&, Connection& connection) {
                connection.start_chunks(200);
                connection.chunk("{}");
                connection.wait_for_close();
            },
            ServerTls{.certificate = authority_.issue_loopback(), .has_alpn = has_alpn});
        const auto transport = CurlTransport::create(config_for(server));
        ASSERT_TRUE(transport);
        RecordedAnswer watches[3];
        for (RecordedAnswer& watch : watches) {
            (*transport)->start({.target = "/w", .watch = true}, watch);
        }
        EXPECT_TRUE(poll_until(**transport, [&] {
            return std::ranges::all_of(watches, [](const auto& watch) { return watch.body == "{}"; });
        })) << has_alpn;
        EXPECT_EQ(server.connection_count(), 3);
    }
}

// A plain server waits for the rest of a request, the client for the rest of a handshake: only the timeout
// ends it.
TEST_F(TransportTls, HandshakeThatHangsEnds_AUTH006) {
    FakeApiServer plain(answer_ok);
    ClientConfig config = config_for(plain);
    config.server = "https" + plain.url().substr(4);
    const RecordedAnswer answer = fetch(config, {.connect_timeout = 300ms});
    EXPECT_EQ(answer.kind(), static_cast<int>(TransportError::Kind::Connect)) << answer.what();
}

}  // namespace transport_tls_test
}  // namespace penstock::kube
