// SPDX-License-Identifier: Apache-2.0
// The transport against a scripted HTTP/1.1 server: requests as sent, answers split anywhere, and every kind
// of failure.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <thread>

#include "control/kube/client/curl_transport.hpp"
#include "tests/support/fake_api_server.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/recorded_answer.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::kube {
namespace transport_test {

using namespace std::chrono_literals;
using test::Connection;
using test::FakeApiServer;
using test::LogCapture;
using test::poll_until;
using test::RecordedAnswer;
using test::RecordedRequest;
using test::ScratchFolder;

const std::string kToken = "hunter2-is-a-secret";

int kind(TransportError::Kind kind) {
    return static_cast<int>(kind);
}

ClientConfig config_for(const FakeApiServer& server) {
    ClientConfig config;
    config.origin = "test";
    config.server = server.url();
    return config;
}

std::unique_ptr<CurlTransport> transport_to(const ClientConfig& config,
                                            const TransportOptions& options = {}) {
    auto transport = CurlTransport::create(config, options);
    if (!transport) {
        ADD_FAILURE() << transport.error().what;
        std::abort();
    }
    return std::move(*transport);
}

void fetch(CurlTransport& transport, Request request, RecordedAnswer& answer) {
    transport.start(std::move(request), answer);
    ASSERT_TRUE(poll_until(transport, [&] { return answer.has_ended; }));
    EXPECT_EQ(answer.call_backs_after_end, 0);
}

std::string gzip(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
    std::string compressed(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
    stream.avail_out = static_cast<uInt>(compressed.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    compressed.resize(stream.total_out);
    deflateEnd(&stream);
    return compressed;
}

TEST(Transport, RequestIsSentAsItWasGiven_AUTH002_AUTH008_APISYNC017) {
    FakeApiServer server([](const RecordedRequest&, Connection& c) { c.respond(201, "{}"); });
    ClientConfig config = config_for(server);
    config.server += "/clusters/a";
    config.token = Secret(kToken);
    config.impersonate = {.user = "jane", .uid = "7", .groups = {"dev", "ops"}, .extra = {{"a b", {"x"}}}};
    const auto transport = transport_to(config, {.user_agent = "penstock-sync/test"});
    RecordedAnswer answer;
    fetch(*transport,
          {.method = "POST",
           .target = "/api/v1/events?a=b%20c",
           .body = "{\"a\":1}",
           .content_type = "application/json"},
          answer);
    EXPECT_TRUE(answer.is_well()) << answer.what();
    EXPECT_EQ(answer.status(), 201);
    EXPECT_EQ(answer.head->content_type, "application/json");
    EXPECT_EQ(answer.body, "{}");
    const RecordedRequest request = server.requests().at(0);
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/clusters/a/api/v1/events?a=b%20c");
    EXPECT_EQ(request.body, "{\"a\":1}");
    EXPECT_EQ(request.header("content-type"), "application/json");
    EXPECT_EQ(request.header("accept"), "application/json");
    EXPECT_EQ(request.header("authorization"), "Bearer " + kToken);
    EXPECT_EQ(request.header("user-agent"), "penstock-sync/test");
    EXPECT_EQ(request.header("impersonate-user"), "jane");
    EXPECT_EQ(request.header("impersonate-uid"), "7");
    EXPECT_EQ(request.header("impersonate-group"), "dev,ops");
    EXPECT_EQ(request.header("impersonate-extra-a%20b"), "x");
    EXPECT_FALSE(request.headers.contains("expect"));
}

TEST(Transport, EveryMethodCarriesItsBody) {
    FakeApiServer server([](const RecordedRequest&, Connection& c) { c.respond(200, "{}"); });
    const auto transport = transport_to(config_for(server));
    for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
        RecordedAnswer answer;
        const std::string body = std::string(method) == "GET" ? "" : "{}";
        fetch(
            *transport,
            {.method = method, .target = "/x", .body = body, .content_type = "application/merge-patch+json"},
            answer);
        EXPECT_TRUE(answer.is_well()) << answer.what();
        EXPECT_EQ(server.requests().back().method, method);
        EXPECT_EQ(server.requests().back().body, body);
    }
    EXPECT_EQ(server.connection_count(), 1);  // kept alive
}

// An answer has the same result however it is split (APISYNC-008).
TEST(Transport, AnswersMayBeCutAnywhere_APISYNC008) {
    const std::string text =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
        "chunked\r\n\r\n5\r\n{\"a\":\r\n1\r\n1\r\n1\r\n}\r\n0\r\n\r\n";
    FakeApiServer server([&](const RecordedRequest& request, Connection& c) {
        c.send_slowly(text, std::stoul(request.query("piece")), 0ms);
    });
    const auto transport = transport_to(config_for(server));
    for (size_t piece = 1; piece < 12; ++piece) {
        RecordedAnswer answer;
        fetch(*transport, {.target = "/x?piece=" + std::to_string(piece)}, answer);
        EXPECT_TRUE(answer.is_well()) << answer.what();
        EXPECT_EQ(answer.body, "{\"a\":1}");
    }
}

TEST(Transport, WatchIsHandedOnAsItComes_APISYNC008) {
    std::atomic<int> seen = 0;
    FakeApiServer server([&](const RecordedRequest&, Connection& c) {
        c.start_chunks(200);
        for (int event = 1; event <= 3 && c.chunk("{}\n"); ++event) {
            // The next event is sent after this one was delivered, so no event may be delayed.
            while (seen < event && c.wait(1ms)) {
            }
        }
        c.end_chunks();
    });
    const auto transport = transport_to(config_for(server));
    RecordedAnswer watch;
    transport->start({.target = "/w?watch=1", .watch = true}, watch);
    ASSERT_TRUE(poll_until(*transport, [&] {
        seen = static_cast<int>(watch.body.size() / 3);
        return watch.has_ended;
    }));
    EXPECT_TRUE(watch.is_well()) << watch.what();
    EXPECT_EQ(watch.body, "{}\n{}\n{}\n");
}

TEST(Transport, ListsAskForGzipAndWatchesForIdentity_APISYNC019) {
    const std::string list(100'000, 'x');
    FakeApiServer server([&](const RecordedRequest& request, Connection& c) {
        if (request.header("accept-encoding") == "gzip") {
            c.respond(200, gzip(list), {"Content-Encoding: gzip"});
        } else {
            c.respond(200, list);
        }
    });
    ClientConfig config = config_for(server);
    const auto transport = transport_to(config);
    RecordedAnswer answers[3];
    fetch(*transport, {.target = "/list", .accept_gzip = true}, answers[0]);
    fetch(*transport, {.target = "/watch", .accept_gzip = true, .watch = true}, answers[1]);
    config.disable_compression = true;
    const auto plain = transport_to(config);
    fetch(*plain, {.target = "/list", .accept_gzip = true}, answers[2]);
    for (const RecordedAnswer& answer : answers) {
        EXPECT_TRUE(answer.is_well()) << answer.what();
        EXPECT_EQ(answer.body, list);
    }
    EXPECT_EQ(server.requests()[0].header("accept-encoding"), "gzip");
    EXPECT_EQ(server.requests()[1].header("accept-encoding"), "identity");
    EXPECT_EQ(server.requests()[2].header("accept-encoding"), "identity");
}

TEST(Transport, DecompressedListsHaveABound_APISYNC019) {
    const std::string bomb = gzip(std::string(20 << 20, ' '));
    ASSERT_LT(bomb.size(), 100'000U);
    FakeApiServer server(
        [&](const RecordedRequest&, Connection& c) { c.respond(200, bomb, {"Content-Encoding: gzip"}); });
    const auto transport = transport_to(config_for(server), {.body_bytes_max = 1 << 20});
    RecordedAnswer answer;
    fetch(*transport, {.target = "/list?limit=500", .accept_gzip = true}, answer);
    EXPECT_EQ(answer.kind(), kind(TransportError::Kind::TooLarge));
    EXPECT_EQ(answer.what(), server.url() + ": GET /list: the response has more than 1048576 bytes");
    EXPECT_LE(answer.body.size(), 1U << 20);
}

TEST(Transport, BrokenGzipIsAnError_APISYNC019) {
    FakeApiServer server([&](const RecordedRequest&, Connection& c) {
        std::string body = gzip("{\"a\":1}");
        body[12] = static_cast<char>(~body[12]);
        c.respond(200, body, {"Content-Encoding: gzip"});
    });
    const auto transport = transport_to(config_for(server));
    RecordedAnswer answer;
    fetch(*transport, {.target = "/list", .accept_gzip = true}, answer);
    EXPECT_EQ(answer.kind(), kind(TransportError::Kind::Broken));
}

TEST(Transport, RetryAfterComesInSecondsOrAsADate_APISYNC012) {
    std::vector<std::string> header;
    FakeApiServer server([&](const RecordedRequest& request, Connection& c) {
        const std::string form = request.query("form");
        std::array<char, 64> date{};
        const time_t then = ::time(nullptr) + 100;
        tm parts{};
        ::strftime(date.data(), date.size(), "%a, %d %b %Y %H:%M:%S GMT", ::gmtime_r(&then, &parts));
        c.respond(form == "none" ? 503 : 429, "{}",
                  form == "seconds" ? std::vector<std::string>{"Retry-After: 7"}
                  : form == "date"  ? std::vector<std::string>{std::string("Retry-After: ") + date.data()}
                                    : std::vector<std::string>{});
    });
    const auto transport = transport_to(config_for(server));
    RecordedAnswer in_seconds, as_date, none;
    fetch(*transport, {.target = "/x?form=seconds"}, in_seconds);
    fetch(*transport, {.target = "/x?form=date"}, as_date);
    fetch(*transport, {.target = "/x?form=none"}, none);
    EXPECT_TRUE(in_seconds.is_well());  // an answer, whatever its status
    EXPECT_EQ(in_seconds.status(), 429);
    EXPECT_EQ(in_seconds.head->retry_after, 7s);
    ASSERT_TRUE(as_date.head->retry_after);
    EXPECT_GT(*as_date.head->retry_after, 30s);
    EXPECT_LE(*as_date.head->retry_after, 100s);
    EXPECT_EQ(none.status(), 503);
    EXPECT_EQ(none.head->retry_after, std::nullopt);
}

struct Failure {
    const char* name;
    FakeApiServer::Handler script;
    TransportError::Kind expected;
};

TEST(Transport, EveryWayToFailEndsOnceAndIsNamed_APISYNC007_APISYNC012) {
    const Failure failures[] = {
        {"garbage",
         [](const RecordedRequest&, Connection& c) {
             c.send("\x00\xff\x13garbage\r\n\r\n");
             c.cut();
         },
         TransportError::Kind::Broken},
        {"closed before the answer", [](const RecordedRequest&, Connection& c) { c.cut(); },
         TransportError::Kind::Broken},
        {"closed in the head",
         [](const RecordedRequest&, Connection& c) {
             c.send("HTTP/1.1 200 OK\r\nContent-Ty");
             c.cut();
         },
         TransportError::Kind::Broken},
        {"closed in the body",
         [](const RecordedRequest&, Connection& c) {
             c.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\"");
             c.cut();
         },
         TransportError::Kind::Broken},
        {"closed between chunks",
         [](const RecordedRequest&, Connection& c) {
             c.start_chunks(200);
             c.chunk("{}");
             c.cut();
         },
         TransportError::Kind::Broken},
        {"chunk size is none",
         [](const RecordedRequest&, Connection& c) {
             c.start_chunks(200);
             c.send("zz\r\n{}\r\n");
             c.cut();
         },
         TransportError::Kind::Broken},
        {"silence", [](const RecordedRequest&, Connection& c) { c.wait_for_close(); },
         TransportError::Kind::Timeout},
        {"silence in the body",
         [](const RecordedRequest&, Connection& c) {
             c.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
             c.wait_for_close();
         },
         TransportError::Kind::Timeout},
    };
    for (const Failure& failure : failures) {
        FakeApiServer server(failure.script);
        const auto transport = transport_to(config_for(server));
        RecordedAnswer answer;
        const bool is_silent = failure.expected == TransportError::Kind::Timeout;
        fetch(*transport, {.target = "/api/v1/nodes?limit=500", .timeout = is_silent ? 300ms : 60s}, answer);
        EXPECT_EQ(answer.kind(), kind(failure.expected)) << failure.name << ": " << answer.what();
        EXPECT_TRUE(answer.what().starts_with(server.url() + ": GET /api/v1/nodes: ")) << answer.what();
    }
}

TEST(Transport, ServerThatIsAwayIsAConnectErrorAndMayComeBack_APISYNC014) {
    FakeApiServer server([](const RecordedRequest&, Connection& c) { c.respond(200, "{}"); });
    const auto transport = transport_to(config_for(server));
    RecordedAnswer before, away, after;
    fetch(*transport, {.target = "/x"}, before);
    server.go_away();
    fetch(*transport, {.target = "/x"}, away);
    EXPECT_EQ(away.kind(), kind(TransportError::Kind::Connect)) << away.what();
    server.come_back();
    fetch(*transport, {.target = "/x"}, after);
    EXPECT_TRUE(before.is_well());
    EXPECT_TRUE(after.is_well()) << after.what();

    ClientConfig nameless = config_for(server);
    nameless.server = "http://no-such-host.invalid:1";
    RecordedAnswer unknown;
    fetch(*transport_to(nameless), {.target = "/x"}, unknown);
    EXPECT_EQ(unknown.kind(), kind(TransportError::Kind::Connect)) << unknown.what();
}

TEST(Transport, WatchThatIsSilentIsHalfOpen_APISYNC015) {
    FakeApiServer server([](const RecordedRequest& request, Connection& c) {
        if (request.query("quiet") == "head") {
            c.wait_for_close();  // not even a response head
        }
        c.start_chunks(200);
        for (int i = 0; request.query("quiet") == "no" && i < 8; ++i) {
            c.chunk("{}\n");
            c.wait(100ms);
        }
        if (request.query("quiet") == "no") {
            c.end_chunks();
        }
        c.wait_for_close();
    });
    const auto transport = transport_to(config_for(server), {.liveness = {.silence_max = 400ms}});
    RecordedAnswer lively, silent, headless;
    transport->start({.target = "/w?quiet=no", .watch = true}, lively);
    transport->start({.target = "/w?quiet=yes", .watch = true}, silent);
    transport->start({.target = "/w?quiet=head", .watch = true}, headless);
    ASSERT_TRUE(poll_until(*transport, [&] { return silent.has_ended && headless.has_ended; }));
    EXPECT_EQ(silent.kind(), kind(TransportError::Kind::Broken));
    EXPECT_EQ(silent.what(), server.url() + ": GET /w: half-open: nothing received for 0.4 s");
    EXPECT_EQ(headless.kind(), kind(TransportError::Kind::Broken));
    EXPECT_GE(transport->half_open_connections(), 2U);
}

TEST(Transport, IdleWatchesCostNoProcessorTime_APISYNC015) {
    FakeApiServer server([](const RecordedRequest&, Connection& c) {
        c.start_chunks(200);
        c.chunk("{}");
        c.wait_for_close();
    });
    const auto transport = transport_to(config_for(server));
    RecordedAnswer watches[3];
    for (RecordedAnswer& watch : watches) {
        transport->start({.target = "/w", .watch = true}, watch);
    }
    ASSERT_TRUE(poll_until(*transport, [&] {
        return std::ranges::all_of(watches, [](const auto& watch) { return watch.body == "{}"; });
    }));
    const auto before = test::thread_cpu_time();
    transport->poll(1s);
    EXPECT_LT(test::thread_cpu_time() - before, 100ms);
}

TEST(Transport, WarningsAreLoggedOncePerText_APISYNC019_AUTH009) {
    FakeApiServer server([](const RecordedRequest& request, Connection& c) {
        const std::string number = request.query("number");
        c.respond(200, "{}",
                  {R"(Warning: 299 - "v1beta1 is \"deprecated\"")",
                   "Warning: 299 - \"you sent " + kToken + "\"", "Warning: number " + number});
    });
    ClientConfig config = config_for(server);
    config.token = Secret(kToken);
    const auto transport = transport_to(config);
    const LogCapture log("kube");
    for (int i = 0; i < 300; ++i) {
        RecordedAnswer answer;
        fetch(*transport, {.target = "/x?number=" + std::to_string(i)}, answer);
    }
    EXPECT_EQ(log.count("warning from the server: v1beta1 is \"deprecated\""), 1U);
    EXPECT_EQ(log.count("warning from the server: you sent ***"), 1U);
    EXPECT_EQ(log.count("warning from the server: number "), 254U);
    EXPECT_EQ(log.count("further ones are not logged"), 1U);
    EXPECT_EQ(log.count(kToken), 0U);
}

TEST(Transport, RedirectsStayOnTheHost_APISYNC019) {
    FakeApiServer other([](const RecordedRequest&, Connection& c) { c.respond(200, "stolen"); });
    std::string server_url;
    FakeApiServer server([&](const RecordedRequest& request, Connection& c) {
        const std::string path = request.path();
        if (path == "/relative") {
            c.respond(301, "body of the redirect", {"Location: /there?x=1"});
        } else if (path == "/absolute") {
            c.respond(307, "", {"Location: " + server_url + "/there"});
        } else if (path == "/circle") {
            c.respond(302, "", {"Location: circle"});
        } else if (path == "/elsewhere") {
            c.respond(302, "", {"Location: " + other.url() + "/there"});
        } else if (path == "/other-scheme") {
            c.respond(302, "", {"Location: https" + server_url.substr(4)});
        } else if (path == "/protocol-relative") {
            c.respond(302, "", {"Location: //" + other.url().substr(7) + "/there"});
        } else {
            c.respond(200, request.method + " " + request.target + " " + request.body);
        }
    });
    server_url = server.url();
    ClientConfig config = config_for(server);
    config.token = Secret(kToken);
    const auto transport = transport_to(config);
    const auto get = [&](const std::string& target, const std::string& method = "GET") {
        RecordedAnswer answer;
        fetch(*transport, {.method = method, .target = target, .body = method == "GET" ? "" : "b"}, answer);
        return answer;
    };
    EXPECT_EQ(get("/relative").body, "GET /there?x=1 ");
    EXPECT_EQ(get("/absolute").body, "GET /there ");
    EXPECT_EQ(get("/absolute", "POST").body, "POST /there b");
    EXPECT_EQ(get("/circle").what(), server_url + ": GET /circle: redirect 302: more than 3 redirects");
    EXPECT_EQ(get("/elsewhere").what(),
              server_url + ": GET /elsewhere: redirect 302 to another host, " + other.url());
    EXPECT_EQ(get("/relative", "POST").what(),
              server_url + ": POST /relative: redirect 301 is not followed for a request other than GET");
    for (const char* target : {"/circle", "/elsewhere", "/other-scheme", "/protocol-relative"}) {
        EXPECT_EQ(get(target).kind(), kind(TransportError::Kind::Redirect)) << target;
        EXPECT_FALSE(get(target).head) << target;
    }
    EXPECT_EQ(other.connection_count(), 0);
}

// A handler that starts and cancels requests while it is called.
struct Meddler : RecordedAnswer {
    std::function<void()> in_head, in_body, in_end;
    void on_head(const ResponseHead& got) override {
        RecordedAnswer::on_head(got);
        if (in_head) {
            in_head();
        }
    }
    void on_body(std::string_view bytes) override {
        RecordedAnswer::on_body(bytes);
        if (in_body) {
            in_body();
        }
    }
    void on_end(const std::optional<TransportError>& got) override {
        RecordedAnswer::on_end(got);
        if (in_end) {
            in_end();
        }
    }
};

TEST(Transport, CallBacksMayStartAndCancelRequests) {
    FakeApiServer server([](const RecordedRequest& request, Connection& c) {
        c.start_chunks(200);
        c.chunk("{}");
        if (request.path() == "/forever") {
            c.wait_for_close();
        }
        c.end_chunks();
    });
    const auto transport = transport_to(config_for(server));
    Meddler forever, killer, suicide, chained;
    RecordedAnswer next;
    const auto forever_id = transport->start({.target = "/forever", .watch = true}, forever);
    ASSERT_TRUE(poll_until(*transport, [&] { return forever.body == "{}"; }));
    killer.in_body = [&] { transport->cancel(forever_id); };
    suicide.in_head = [&] { transport->cancel(transport->start({.target = "/never"}, suicide)); };
    Transport::RequestId suicide_id;
    suicide.in_body = [&] { transport->cancel(suicide_id); };
    chained.in_end = [&] { transport->start({.target = "/next"}, next); };
    transport->start({.target = "/killer"}, killer);
    suicide_id = transport->start({.target = "/suicide", .watch = true}, suicide);
    transport->start({.target = "/chained"}, chained);
    ASSERT_TRUE(poll_until(*transport,
                           [&] { return killer.has_ended && next.has_ended && suicide.call_backs >= 2; }));
    const int before = forever.call_backs + suicide.call_backs;
    for (int i = 0; i < 10; ++i) {
        transport->poll(5ms);
    }
    EXPECT_EQ(forever.call_backs + suicide.call_backs, before);
    EXPECT_FALSE(forever.has_ended);
    EXPECT_FALSE(suicide.has_ended);
    EXPECT_TRUE(next.is_well());
    transport->cancel(forever_id);  // unknown by now
    transport->cancel(Transport::RequestId{999});
}

TEST(Transport, CancelBeforeAnythingHappened) {
    FakeApiServer server([](const RecordedRequest&, Connection& c) { c.respond(200, "{}"); });
    const auto transport = transport_to(config_for(server));
    RecordedAnswer cancelled, other;
    transport->cancel(transport->start({.target = "/cancelled"}, cancelled));
    fetch(*transport, {.target = "/other"}, other);
    EXPECT_EQ(cancelled.call_backs, 0);
    EXPECT_EQ(server.request_count(), 1U);
}

TEST(Transport, WakeEndsAPollOfAnotherThread) {
    FakeApiServer server([](const RecordedRequest&, Connection& c) { c.respond(200, "{}"); });
    const auto transport = transport_to(config_for(server));
    const auto began = std::chrono::steady_clock::now();
    transport->wake();
    transport->poll(60s);  // the earlier wake() ends it
    std::thread waker([&] {
        ::usleep(50'000);
        transport->wake();
    });
    transport->poll(60s);
    waker.join();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 60s)
        << "a poll that nobody wakes lasts as long as it was told";
}

TEST(Transport, TokenOfAFileFollowsItsRotation_AUTH004_APISYNC013) {
    const ScratchFolder folder;
    FakeApiServer server([](const RecordedRequest& request, Connection& c) {
        c.respond(request.header("authorization") == "Bearer second-token" ? 200 : 401, "{}");
    });
    ClientConfig config = config_for(server);
    config.token_file = folder.write("token", "first-token\n");
    const auto transport = transport_to(config);
    RecordedAnswer first, second;
    fetch(*transport, {.target = "/x"}, first);
    EXPECT_EQ(first.status(), 401);
    folder.write("token", "second-token\n");
    transport->credentials_rejected();
    fetch(*transport, {.target = "/x"}, second);
    EXPECT_EQ(second.status(), 200);
}

TEST(Transport, RotationCutsNoWatch_AUTH004) {
    const ScratchFolder folder;
    std::atomic<bool> has_rotated = false;
    FakeApiServer server([&](const RecordedRequest&, Connection& c) {
        c.start_chunks(200);
        c.chunk("{}");
        while (!has_rotated && c.wait(1ms)) {
        }
        c.chunk("{}");
        c.end_chunks();
    });
    ClientConfig config = config_for(server);
    config.token_file = folder.write("token", "first-token");
    const auto transport = transport_to(config);
    RecordedAnswer watch, other;
    transport->start({.target = "/w", .watch = true}, watch);
    ASSERT_TRUE(poll_until(*transport, [&] { return watch.body == "{}"; }));
    folder.write("token", "second-token");
    has_rotated = true;
    fetch(*transport, {.target = "/x"}, other);
    ASSERT_TRUE(poll_until(*transport, [&] { return watch.has_ended; }));
    EXPECT_TRUE(watch.is_well()) << watch.what();
    EXPECT_EQ(server.requests().back().header("authorization"), "Bearer second-token");
}

TEST(Transport, RequestsWaitForTheExecPlugin_AUTH007) {
    const ScratchFolder folder;
    FakeApiServer server([](const RecordedRequest&, Connection& c) { c.respond(200, "{}"); });
    ClientConfig config = config_for(server);
    const auto plugin = folder.write(
        "login",
        "#!/bin/sh\nwhile [ ! -e " + (folder.path() / "go").string() + " ]; do sleep 0.01; done\n" +
            R"(echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":")" +
            kToken + "\"}}'\n");
    std::filesystem::permissions(plugin, std::filesystem::perms::owner_all);
    config.exec = ExecConfig{.api_version = "client.authentication.k8s.io/v1", .command = plugin.string()};
    const auto transport = transport_to(config);
    RecordedAnswer answers[2];
    transport->start({.target = "/a"}, answers[0]);
    transport->start({.target = "/b"}, answers[1]);
    transport->poll(50ms);
    EXPECT_EQ(server.request_count(), 0U);
    folder.write("go", "");
    ASSERT_TRUE(poll_until(*transport, [&] { return answers[0].has_ended && answers[1].has_ended; }));
    EXPECT_TRUE(answers[0].is_well());
    EXPECT_EQ(server.requests().at(0).header("authorization"), "Bearer " + kToken);
}

TEST(Transport, ExecPluginThatFailsFailsTheRequests_AUTH007) {
    const ScratchFolder folder;
    FakeApiServer server([](const RecordedRequest&, Connection& c) { c.respond(200, "{}"); });
    ClientConfig config = config_for(server);
    const auto plugin = folder.write("login", "#!/bin/sh\nexit 1\n");
    std::filesystem::permissions(plugin, std::filesystem::perms::owner_all);
    config.exec = ExecConfig{.api_version = "client.authentication.k8s.io/v1", .command = plugin.string()};
    const auto transport = transport_to(config);
    RecordedAnswer answers[2];
    transport->start({.target = "/a"}, answers[0]);
    transport->start({.target = "/b"}, answers[1]);
    ASSERT_TRUE(poll_until(*transport, [&] { return answers[0].has_ended && answers[1].has_ended; }));
    EXPECT_EQ(answers[1].kind(), kind(TransportError::Kind::Credentials));
    EXPECT_EQ(answers[1].what(),
              server.url() + ": GET /b: exec plugin " + plugin.string() + ": exited with 1");
    EXPECT_EQ(server.request_count(), 0U);
}

TEST(Transport, ProxyIsUsed_AUTH008) {
    // To a proxy, a plain http request has the whole URL.
    FakeApiServer proxy(
        [](const RecordedRequest& request, Connection& c) { c.respond(200, request.target); });
    ClientConfig config = config_for(proxy);
    config.server = "http://api.example.invalid:6443";
    config.proxy_url = Secret("http://user:" + kToken + "@127.0.0.1:" + std::to_string(proxy.port()));
    const auto transport = transport_to(config);
    RecordedAnswer answer;
    fetch(*transport, {.target = "/x"}, answer);
    EXPECT_EQ(answer.body, "http://api.example.invalid:6443/x") << answer.what();
    EXPECT_TRUE(proxy.requests().at(0).header("proxy-authorization").starts_with("Basic "));
    config.proxy_url = Secret("http://user:" + kToken + "@127.0.0.1:1");
    RecordedAnswer refused;
    fetch(*transport_to(config), {.target = "/x"}, refused);
    EXPECT_EQ(refused.kind(), kind(TransportError::Kind::Connect));
    EXPECT_EQ(refused.what().find(kToken), std::string::npos);
}

TEST(Transport, NoErrorAndNoLogLineHoldsASecret_AUTH009) {
    const LogCapture log("kube");
    const ScratchFolder folder;
    std::vector<std::string> texts;
    for (const Failure& failure : {
             Failure{"echo",
                     [](const RecordedRequest& r, Connection& c) {
                         c.send(r.header("authorization") + "\r\n\r\n");
                         c.cut();
                     },
                     TransportError::Kind::Broken},
             Failure{"location",
                     [](const RecordedRequest&, Connection& c) {
                         c.respond(302, "", {"Location: http://" + kToken + "/"});
                     },
                     TransportError::Kind::Redirect},
             Failure{"encoding",
                     [](const RecordedRequest&, Connection& c) {
                         c.respond(200, "x", {"Content-Encoding: " + kToken});
                     },
                     TransportError::Kind::Broken},
             Failure{"rejected", [](const RecordedRequest&, Connection& c) { c.respond(401, kToken); },
                     TransportError::Kind::Broken},
             Failure{"cut", [](const RecordedRequest&, Connection& c) { c.cut(); },
                     TransportError::Kind::Broken},
         }) {
        FakeApiServer server(failure.script);
        ClientConfig config = config_for(server);
        config.token_file = folder.write("token", kToken);
        const auto transport = transport_to(config);
        RecordedAnswer answer;
        fetch(*transport, {.target = "/x"}, answer);
        transport->credentials_rejected();
        folder.write("token", "bad\n" + kToken);
        RecordedAnswer again;
        fetch(*transport, {.target = "/x"}, again);
        texts.push_back(answer.what());
        texts.push_back(again.what());
    }
    const auto lines = log.lines();
    EXPECT_GT(lines.size(), 10U);
    texts.insert(texts.end(), lines.begin(), lines.end());
    for (const std::string& text : texts) {
        EXPECT_EQ(text.find(kToken), std::string::npos) << text;
    }
}

TEST(Transport, ConfigurationMistakesAreStartUpErrors_AUTH006_AUTH008) {
    ClientConfig config;
    config.origin = "test";
    config.server = "https://127.0.0.1:1";
    config.insecure_skip_tls_verify = true;
    const auto insecure = CurlTransport::create(config);
    ASSERT_FALSE(insecure);
    EXPECT_EQ(
        insecure.error().what,
        "test: insecure-skip-tls-verify: the server's identity would not be verified; to permit this, pass "
        "--insecure-skip-tls-verify-allowed");
    EXPECT_TRUE(CurlTransport::create(config, {.allow_insecure = true}));
    config.insecure_skip_tls_verify = false;
    config.impersonate.user = "jane\r\nAuthorization: x";
    EXPECT_FALSE(CurlTransport::create(config));
    config.impersonate = {};
    config.server = "https://[::1";
    EXPECT_FALSE(CurlTransport::create(config));
    config.server = "https://127.0.0.1:1";
    config.token_file = "/no/such/file";
    EXPECT_FALSE(CurlTransport::create(config));
}

}  // namespace transport_test
}  // namespace penstock::kube
