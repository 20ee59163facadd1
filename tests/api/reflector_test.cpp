// SPDX-License-Identifier: Apache-2.0
// The reflector over the real transport, against scripted servers, for cases that a real one cannot produce.
// (tests/unit/kube/reflector_*: the same state machine on a test clock, case by case.)
#include "control/kube/follow/reflector.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "control/kube/client/curl_transport.hpp"
#include "tests/support/fake_api_server.hpp"
#include "tests/unit/kube/api_text.hpp"

namespace penstock::kube {
namespace reflector_test {

using namespace std::chrono_literals;
using namespace test;
using penstock::test::Connection;
using penstock::test::FakeApiServer;
using penstock::test::RecordedRequest;
using Served = std::map<std::string, int64_t>;

class ReflectorOverHttp : public testing::Test {
 protected:
    using Script = std::function<void(const RecordedRequest&, Connection&)>;

    // `watch` answers watches, `list` all other requests.
    void begin(Script list, Script watch, const TransportOptions& options = {}, bool streamed_lists = false) {
        server_ = std::make_unique<FakeApiServer>(
            [list, watch](const RecordedRequest& request, Connection& connection) {
                (request.query("watch").empty() ? list : watch)(request, connection);
            });
        ClientConfig config;
        config.origin = "test";
        config.server = server_->url();
        auto transport = CurlTransport::create(config, options);
        ASSERT_TRUE(transport) << transport.error().what;
        transport_ = std::move(*transport);
        access_ = std::make_unique<ServerAccess>(*transport_, decoder_, [] { return 0.0; }, log_);
        reflector_ =
            std::make_unique<Reflector>(Collection{ObjectKind::Service, "v1", "/api/v1/services", "", ""},
                                        store_.services(), *access_, streamed_lists);
        store_.slices().begin_list();
        store_.slices().commit_list(ObjectTable::Missing::Erase);
    }

    [[nodiscard]] std::chrono::steady_clock::time_point now() const {
        return std::chrono::steady_clock::now() + skipped_;
    }
    void run_once() {
        transport_->poll(5ms);
        reflector_->on_time(now());
        readers_.apply(store_.take_changes());
        // Back-off times are skipped. They are below a minute and a half; a later deadline is the end of a
        // watch.
        const auto left = reflector_->next_deadline() - now();
        if (skips_waits_ && reflector_->status(now()).state == CollectionStatus::State::BackingOff &&
            left < 90s) {
            skipped_ += std::max(left, decltype(left)::zero());
        }
    }
    // The deadline exceeds the time needed on any machine.
    [[nodiscard]] bool run_until(const std::function<bool()>& reached) {
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        while (!reached() && std::chrono::steady_clock::now() < deadline) {
            run_once();
        }
        return reached();
    }
    [[nodiscard]] bool run_until_served(const Served& wanted) {
        return run_until([&] { return served() == wanted; });
    }
    [[nodiscard]] Served served() const {
        Served ports;
        for (const auto& [name, service] : readers_.services) {
            ports.emplace(name.name, service->ports.at(0).port);
        }
        return ports;
    }
    [[nodiscard]] CollectionStatus status() const { return reflector_->status(now()); }
    [[nodiscard]] std::vector<RecordedRequest> watches() const {
        std::vector<RecordedRequest> found;
        for (RecordedRequest& request : server_->requests()) {
            if (!request.query("watch").empty()) {
                found.push_back(std::move(request));
            }
        }
        return found;
    }

    static Script lists(const std::string& version, const std::vector<std::string>& items = {}) {
        return [text = list_text(version, items)](const RecordedRequest&, Connection& c) {
            c.respond(200, text);
        };
    }
    // The first watch runs `first`; the following ones report Service "later" and stay open.
    static Script first_watch(Script first) {
        return [first, count = std::make_shared<std::atomic<int>>(0)](const RecordedRequest& request,
                                                                      Connection& c) {
            if (++*count == 1) {
                first(request, c);
                return;
            }
            c.start_chunks(200);
            c.chunk(event_text("ADDED", service_text("later", "900")));
            c.wait_for_close();
        };
    }

    bool skips_waits_ = true;
    std::chrono::steady_clock::duration skipped_{0};
    LogLines log_;
    Decoder decoder_;
    Store store_{false, log_};
    Objects readers_;
    std::unique_ptr<FakeApiServer> server_;
    std::unique_ptr<CurlTransport> transport_;
    std::unique_ptr<ServerAccess> access_;
    std::unique_ptr<Reflector> reflector_;
};

TEST_F(ReflectorOverHttp, AnEventEndsTheWaitForEvents_GEN008) {
    const auto may_send = std::make_shared<std::atomic<bool>>(false);
    begin(lists("100"), [may_send](const RecordedRequest&, Connection& c) {
        c.start_chunks(200);
        while (!*may_send && c.wait(1ms)) {
        }
        c.chunk(event_text("ADDED", service_text("web", "101")));
        c.wait_for_close();
    });
    ASSERT_TRUE(run_until([&] { return status().state == CollectionStatus::State::Watching; }));
    *may_send = true;
    const auto began = std::chrono::steady_clock::now();
    while (served().empty() && std::chrono::steady_clock::now() < began + 60s) {
        transport_->poll(60s);
        readers_.apply(store_.take_changes());
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
}

TEST_F(ReflectorOverHttp, GarbageInAStreamResumesBehindTheLastEvent_APISYNC007) {
    begin(lists("100"), first_watch([](const RecordedRequest&, Connection& c) {
              c.start_chunks(200);
              c.chunk(event_text("ADDED", service_text("web", "101")));
              c.chunk("\x16\x03\x01garbage\r\n");
              c.wait_for_close();
          }));
    ASSERT_TRUE(run_until_served({{"web", 80}, {"later", 80}}));
    EXPECT_EQ(watches().at(1).query("resourceVersion"), "101");
    EXPECT_EQ(status().relists, 0U);
    EXPECT_EQ(status().errors.at("decode"), 1U);
}

TEST_F(ReflectorOverHttp, GarbageThriceOnOneVersionIsARelist_APISYNC007) {
    begin(
        [](const RecordedRequest& request, Connection& c) {
            const bool again = !request.query("resourceVersion").empty();
            c.respond(200,
                      again ? list_text("200", {service_text("relisted", "150")}) : list_text("100", {}));
        },
        [](const RecordedRequest& request, Connection& c) {
            c.start_chunks(200);
            if (request.query("resourceVersion") == "100") {
                c.chunk("garbage");
            }
            c.wait_for_close();
        });
    ASSERT_TRUE(run_until_served({{"relisted", 80}}));
    ASSERT_TRUE(run_until([&] { return watches().size() == 4; }));
    EXPECT_EQ(status().relists, 1U);
}

TEST_F(ReflectorOverHttp, OneByteAtATime_APISYNC008) {
    std::string web = service_text("web", "101", 81);
    web.insert(web.size() - 1, R"(,"status":{"note":"größe 網 🚰 }{"})");
    begin(
        [](const RecordedRequest&, Connection& c) {
            const std::string text = list_text("100", {service_text("listed", "7")});
            c.start_chunks(200);
            for (const char byte : text) {
                c.chunk({&byte, 1});
            }
            c.end_chunks();
        },
        [text = event_text("ADDED", web)](const RecordedRequest&, Connection& c) {
            c.start_chunks(200);
            for (const char byte : text) {
                c.chunk({&byte, 1});
            }
            c.wait_for_close();
        });
    ASSERT_TRUE(run_until_served({{"listed", 80}, {"web", 81}}));
    EXPECT_TRUE(status().errors.empty());
}

TEST_F(ReflectorOverHttp, AnAnswerCutAtAnyByteIsAskedForAgain_APISYNC007) {
    const std::string text = list_text("100", {service_text("web", "7")});
    const auto count = std::make_shared<std::atomic<size_t>>(0);
    constexpr size_t kStep = 13;
    begin(
        [=](const RecordedRequest&, Connection& c) {
            const size_t length = (*count)++ * kStep;
            if (length >= text.size()) {
                c.respond(200, text);
                return;
            }
            c.start_chunks(200);
            c.chunk(std::string_view(text).substr(0, length));
            c.cut();
        },
        first_watch([](const RecordedRequest&, Connection& c) {
            c.start_chunks(200);
            c.wait_for_close();
        }));
    ASSERT_TRUE(run_until_served({{"web", 80}}));
    EXPECT_GT(*count, text.size() / kStep);
}

TEST_F(ReflectorOverHttp, ASocketThatFallsSilentIsLeft_APISYNC015) {
    begin(lists("100"), first_watch([](const RecordedRequest&, Connection& c) {
              c.start_chunks(200);
              c.chunk(event_text("ADDED", service_text("web", "101")));
              c.wait_for_close();
          }),
          {.liveness = {.silence_max = 300ms}});
    ASSERT_TRUE(run_until_served({{"web", 80}, {"later", 80}}));
    EXPECT_GE(watches().size(), 2U);
    EXPECT_EQ(watches().at(1).query("resourceVersion"), "101");
    EXPECT_GE(status().errors.at("broken"), 1U);
}

TEST_F(ReflectorOverHttp, ABlackHoleIsLeftToo_APISYNC015) {
    begin(lists("100", {service_text("web", "7")}),
          first_watch([](const RecordedRequest&, Connection& c) { c.wait_for_close(); }),
          {.liveness = {.silence_max = 300ms}});
    ASSERT_TRUE(run_until_served({{"web", 80}, {"later", 80}})) << "a watch without even a head";
}

TEST_F(ReflectorOverHttp, RetryAfterIsHonoured_APISYNC012) {
    skips_waits_ = false;
    const auto count = std::make_shared<std::atomic<int>>(0);
    begin(
        [count](const RecordedRequest&, Connection& c) {
            const int n = ++*count;
            if (n <= 2) {
                c.respond(n == 1 ? 429 : 503, status_text(n == 1 ? 429 : 503, "TooManyRequests", "later"),
                          {"Retry-After: 2"});
                return;
            }
            c.respond(200, list_text("100", {service_text("web", "7")}));
        },
        first_watch([](const RecordedRequest&, Connection& c) { c.wait_for_close(); }));
    ASSERT_TRUE(run_until_served({{"web", 80}}));
    const auto requests = server_->requests();
    EXPECT_GE(requests.at(1).time - requests.at(0).time, 2s);
    EXPECT_GE(requests.at(2).time - requests.at(1).time, 2s);
    EXPECT_EQ(status().errors.at("http_429"), 1U);
    EXPECT_EQ(status().errors.at("http_503"), 1U);
}

TEST_F(ReflectorOverHttp, AServerThatIgnoresEveryParameter_APISYNC011) {
    // Streams the present objects without an end, and returns lists whole.
    begin(
        lists("100", {service_text("web", "7"), service_text("mail", "8")}),
        [](const RecordedRequest& request, Connection& c) {
            c.start_chunks(200);
            if (request.query("resourceVersion").empty()) {
                c.chunk(event_text("ADDED", service_text("web", "7")));
            } else {
                c.chunk(event_text("ADDED", service_text("later", "101")));
            }
            c.wait_for_close();
        },
        {}, true);
    ASSERT_TRUE(run_until([&] { return status().last_event_age.has_value(); }));
    EXPECT_EQ(served(), Served{});
    skipped_ += 30s;
    ASSERT_TRUE(run_until_served({{"web", 80}, {"mail", 80}, {"later", 80}}));
    EXPECT_EQ(server_->requests().at(0).query("sendInitialEvents"), "true");
    EXPECT_EQ(server_->requests().at(1).query("limit"), "500");
}

TEST_F(ReflectorOverHttp, AServerThatStreamsLists_APISYNC011) {
    begin(
        lists("1"),
        [](const RecordedRequest&, Connection& c) {
            c.start_chunks(200);
            c.chunk(event_text("ADDED", service_text("web", "7")) + bookmark_text("100", true));
            c.chunk(event_text("ADDED", service_text("later", "101")));
            c.wait_for_close();
        },
        {}, true);
    ASSERT_TRUE(run_until_served({{"web", 80}, {"later", 80}}));
    EXPECT_EQ(server_->request_count(), 1U);
}

TEST_F(ReflectorOverHttp, WithoutBookmarksTheLastEventIsWhereItGoesOn_APISYNC004) {
    begin(lists("100"), first_watch([](const RecordedRequest&, Connection& c) {
              c.start_chunks(200);
              c.chunk(event_text("ADDED", service_text("web", "101")));
              c.end_chunks();
          }));
    ASSERT_TRUE(run_until_served({{"web", 80}, {"later", 80}}));
    EXPECT_EQ(watches().at(1).query("resourceVersion"), "101");
    EXPECT_EQ(server_->requests().size(), 3U) << "no relist";
    EXPECT_TRUE(status().errors.empty());
}

TEST_F(ReflectorOverHttp, VersionsThatGoBackwardsAreVersions_APISYNC009) {
    const auto count = std::make_shared<std::atomic<int>>(0);
    begin(
        [](const RecordedRequest& request, Connection& c) {
            const bool again = !request.query("resourceVersion").empty();
            c.respond(200, again ? list_text("7", {service_text("restored", "3")})
                                 : list_text("100", {service_text("web", "90")}));
        },
        [count](const RecordedRequest& request, Connection& c) {
            c.start_chunks(200);
            switch (++*count) {
                case 1:
                    c.chunk(event_text("MODIFIED", service_text("web", "50", 81)));
                    c.end_chunks();
                    return;
                case 2:
                    c.chunk(event_text(
                        "ERROR", status_text(410, "Expired", "from " + request.query("resourceVersion"))));
                    c.end_chunks();
                    return;
                default:
                    c.wait_for_close();
            }
        });
    ASSERT_TRUE(run_until_served({{"restored", 80}}));
    ASSERT_TRUE(run_until([&] { return watches().size() == 3; }));
    EXPECT_EQ(watches().at(1).query("resourceVersion"), "50");
    EXPECT_EQ(watches().at(2).query("resourceVersion"), "7");
}

TEST_F(ReflectorOverHttp, AServerThatIsAwayLosesNothing_APISYNC014) {
    begin(lists("100", {service_text("web", "7")}), [](const RecordedRequest&, Connection& c) {
        c.start_chunks(200);
        c.wait_for_close();
    });
    ASSERT_TRUE(run_until([&] { return status().state == CollectionStatus::State::Watching; }));
    const auto left = now();
    server_->go_away();
    ASSERT_TRUE(run_until([&] { return now() > left + 1h; }));
    EXPECT_EQ(served(), (Served{{"web", 80}}));
    EXPECT_GE(*status().stale_age, 59min);
    server_->come_back();
    ASSERT_TRUE(run_until([&] { return status().state == CollectionStatus::State::Watching; }));
    EXPECT_EQ(status().stale_age, 0ms);
    EXPECT_EQ(served(), (Served{{"web", 80}}));
}

}  // namespace reflector_test
}  // namespace penstock::kube
