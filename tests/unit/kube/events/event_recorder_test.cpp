// SPDX-License-Identifier: Apache-2.0
// The recorder with a test clock and a fake transport.
#include "control/kube/events/event_recorder.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "control/log/log.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::kube {
namespace event_recorder_test {

using namespace std::chrono_literals;

class EventRecorderTest : public testing::Test {
 protected:
    static Event event(std::string object = "web", std::string message = "81.0.0.1 is not allowed") {
        return {.kind = "Service",
                .object = {"default", std::move(object)},
                .type = Event::Type::Warning,
                .reason = "ExternalIPNotAllowed",
                .message = std::move(message),
                .reporter = "edge-1"};
    }

    void advance(std::chrono::milliseconds by = 0ms) {
        now_ += by;
        recorder_.advance(now_, std::chrono::system_clock::time_point(1'700'000'000s) + (now_ - start_));
    }
    // Answers every request with `status` until there are none, moving the clock to each next_wake().
    void answer_all(int status, const std::string& body = "{}") {
        advance();
        for (;;) {
            while (!transport_.open.empty()) {
                transport_.answer(status, body);
                advance();
            }
            const auto wake = recorder_.next_wake();
            if (!wake) {
                return;
            }
            now_ = std::max(now_, *wake);
            advance();
            ASSERT_LE(transport_.started.size(), 100'000u) << "it never ends";
        }
    }
    // "POST web" or "PATCH web" in request order: names of Events are "web.0123456789abcdef".
    std::vector<std::string> asked() const {
        std::vector<std::string> lines;
        for (const Request& request : transport_.started) {
            const bool is_post = request.method == "POST";
            const std::string_view text = is_post ? request.body : request.target;
            const std::string_view before = is_post ? R"("metadata":{"name":")" : "/events/";
            const size_t name = text.find(before) + before.size();
            lines.push_back(request.method + " " +
                            std::string(text.substr(name, text.find('.', name) - name)));
        }
        return lines;
    }
    const std::string& last_body() const { return transport_.started.back().body; }

    const std::chrono::steady_clock::time_point start_{1h};
    std::chrono::steady_clock::time_point now_ = start_;
    test::FakeTransport transport_;
    WriteLimiter limiter_;
    std::set<std::string> gone_;
    double draw_ = 0;
    int woken_ = 0;
    EventRecorder recorder_{
        transport_, limiter_,
        [this](const std::string&, const ObjectName& object) -> std::optional<ObjectIdentity> {
            if (gone_.contains(object.name)) {
                return std::nullopt;
            }
            return ObjectIdentity{.uid = "uid-" + object.name, .resource_version = "5"};
        },
        [this] { return draw_ += 0.0001; }, [this] { ++woken_; }};
};

using Lines = std::vector<std::string>;

TEST_F(EventRecorderTest, WhatIsOfferedIsPosted_EVT001) {
    recorder_.offer(event());
    EXPECT_EQ(woken_, 1);
    EXPECT_TRUE(transport_.started.empty()) << "offering asks nothing";
    answer_all(201);
    ASSERT_EQ(asked(), Lines{"POST web"});
    const Request& request = transport_.started[0];
    EXPECT_EQ(request.target, "/api/v1/namespaces/default/events");
    EXPECT_EQ(request.content_type, "application/json");
    EXPECT_GT(request.timeout, 0ms);
    EXPECT_NE(request.body.find(R"("uid":"uid-web","resourceVersion":"5")"), std::string::npos)
        << request.body;
    EXPECT_EQ(recorder_.status().posted, 1u);
    EXPECT_EQ(recorder_.status().waiting, 0u);
}

TEST_F(EventRecorderTest, ARepeatWithinTenMinutesRaisesTheCount_EVT002) {
    recorder_.offer(event());
    answer_all(201);
    now_ += 9min;
    recorder_.offer(event());
    answer_all(200);
    ASSERT_EQ(asked(), (Lines{"POST web", "PATCH web"}));
    EXPECT_EQ(last_body(), R"({"count":2,"lastTimestamp":"2023-11-14T22:22:20Z"})");
    EXPECT_EQ(transport_.started[1].content_type, "application/merge-patch+json");
    EXPECT_EQ(recorder_.status().repeated, 1u);
    now_ += 9min;  // ten minutes count from the last one, not from the first
    recorder_.offer(event());
    answer_all(200);
    EXPECT_EQ(asked().back(), "PATCH web");
    now_ += 11min;
    recorder_.offer(event());
    answer_all(201);
    EXPECT_EQ(asked().back(), "POST web");
    EXPECT_NE(last_body().find(R"("count":1)"), std::string::npos);
}

TEST_F(EventRecorderTest, RepeatsWhileItWaitsOrTravelsAreOneRequest_EVT002) {
    for (int i = 0; i < 5; ++i) {
        recorder_.offer(event());
    }
    advance();
    ASSERT_EQ(transport_.started.size(), 1u);
    EXPECT_NE(last_body().find(R"("count":5)"), std::string::npos) << last_body();
    for (int i = 0; i < 3; ++i) {
        recorder_.offer(event());
        advance();
    }
    answer_all(200);
    ASSERT_EQ(asked(), (Lines{"POST web", "PATCH web"}));
    EXPECT_NE(last_body().find(R"("count":8)"), std::string::npos) << last_body();
}

TEST_F(EventRecorderTest, AnotherMessageGatewayOrObjectIsAnotherEvent_EVT002) {
    Event other_gateway = event();
    other_gateway.reporter = "edge-2";
    for (const Event& each : {event(), event("web", "another reason"), event("api"), other_gateway}) {
        recorder_.offer(each);
    }
    answer_all(201);
    EXPECT_EQ(asked(), (Lines{"POST web", "POST web", "POST api", "POST web"}));
    EXPECT_EQ(recorder_.status().posted, 4u);
    std::set<std::string> bodies;
    for (const Request& request : transport_.started) {
        bodies.insert(request.body.substr(request.body.find("\"name\""), 40));
    }
    EXPECT_EQ(bodies.size(), 4u) << "names are unique";
}

TEST_F(EventRecorderTest, AnEventThatIsNoLongerThereIsPostedAnew_EVT002) {
    recorder_.offer(event());
    answer_all(201);
    recorder_.offer(event());
    advance();
    transport_.answer(404);
    answer_all(201);
    ASSERT_EQ(asked(), (Lines{"POST web", "PATCH web", "POST web"}));
    EXPECT_NE(last_body().find(R"("count":2)"), std::string::npos);
}

TEST_F(EventRecorderTest, OneObjectGets25AndThenOneEachFiveMinutes_EVT002) {
    for (int i = 0; i < 100; ++i) {
        recorder_.offer(event("web", "trouble " + std::to_string(i)));
    }
    recorder_.offer(event("api"));
    answer_all(201);
    EXPECT_EQ(recorder_.status().posted, 26u);
    EXPECT_EQ(recorder_.status().dropped_rate, 75u);
    EXPECT_EQ(std::ranges::count(asked(), "POST api"), 1);
    now_ = start_ + 5min;
    for (int i = 0; i < 10; ++i) {
        recorder_.offer(event("web", "later trouble " + std::to_string(i)));
    }
    answer_all(201);
    EXPECT_EQ(recorder_.status().posted, 27u);
}

TEST_F(EventRecorderTest, AFailureIsTriedThreeTimesAndDropped_EVT002) {
    for (const int status : {500, 429, 401}) {
        SCOPED_TRACE(status);
        const size_t before = transport_.started.size();
        const uint64_t failed = recorder_.status().dropped_failed;
        recorder_.offer(event("web", "of " + std::to_string(status)));
        answer_all(status);
        EXPECT_EQ(transport_.started.size() - before, 3u);
        EXPECT_EQ(recorder_.status().dropped_failed, failed + 1);
    }
    EXPECT_EQ(transport_.rejected, 3) << "401: credentials are read again";
    recorder_.offer(event("web", "unreachable"));
    advance(1h);
    for (int tries = 1; tries <= 3; ++tries) {
        ASSERT_EQ(transport_.open.size(), 1u) << tries;
        transport_.fail(TransportError::Kind::Connect, "refused");
        advance();
        EXPECT_TRUE(transport_.open.empty()) << "not at once";
        advance(1min);
    }
    EXPECT_TRUE(transport_.open.empty());
    EXPECT_EQ(recorder_.status().dropped_failed, 4u);
    EXPECT_FALSE(recorder_.next_wake());
}

TEST_F(EventRecorderTest, ItWaitsAsLongAsTheServerAsks_EVT002) {
    recorder_.offer(event());
    advance();
    transport_.answer(429, "{}", 20s);
    advance();
    advance(19s);
    EXPECT_TRUE(transport_.open.empty());
    advance(2s);
    ASSERT_EQ(transport_.open.size(), 1u);
    answer_all(201);
    EXPECT_EQ(recorder_.status().posted, 1u);
}

TEST_F(EventRecorderTest, WhatTheServerCallsInvalidIsNotSentAgain_EVT002) {
    recorder_.offer(event());
    answer_all(422);
    EXPECT_EQ(transport_.started.size(), 1u);
    EXPECT_EQ(recorder_.status().dropped_failed, 1u);
}

TEST_F(EventRecorderTest, AReadOnlyInstallationHasOneLineAndNoEvents_RBAC001) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < 50; ++i) {
        recorder_.offer(event("web-" + std::to_string(i)));
    }
    answer_all(403);
    EXPECT_EQ(transport_.started.size(), 1u) << "one answer speaks for all";
    EXPECT_EQ(recorder_.status().dropped_forbidden, 50u);
    EXPECT_FALSE(recorder_.status().enabled);
    for (int i = 0; i < 100; ++i) {  // an hour and a half: retried every ten minutes
        recorder_.offer(event("web-" + std::to_string(i)));
        advance(1min);
        answer_all(403);
    }
    EXPECT_LE(transport_.started.size(), 11u);
    EXPECT_GE(transport_.started.size(), 9u);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_NE(said.find("create and patch"), std::string::npos) << said;

    advance(10min);
    testing::internal::CaptureStderr();
    recorder_.offer(event());
    answer_all(201);
    EXPECT_TRUE(recorder_.status().enabled);
    EXPECT_EQ(recorder_.status().posted, 1u);
    EXPECT_EQ(std::ranges::count(testing::internal::GetCapturedStderr(), '\n'), 1);
}

TEST_F(EventRecorderTest, ANamespaceThatIsBeingDeletedForbidsNothingElsewhere_RBAC001) {
    recorder_.offer(event());
    recorder_.offer(event("api"));
    advance();
    transport_.answer(403,
                      R"({"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating"}]}})");
    answer_all(201);
    EXPECT_TRUE(recorder_.status().enabled);
    EXPECT_EQ(recorder_.status().dropped_failed, 1u);
    EXPECT_EQ(recorder_.status().posted, 1u);
}

TEST_F(EventRecorderTest, TenThousandBadServicesArePostedTenASecond_EVT002_APISYNC020) {
    for (int i = 0; i < 10'000; ++i) {
        recorder_.offer(event("web-" + std::to_string(i)));
    }
    const auto began = now_;
    answer_all(201);
    EXPECT_EQ(recorder_.status().posted, 10'000u);
    EXPECT_EQ(recorder_.status().dropped_overflow, 0u);
    // 20 at once, 100 ms for each of the others.
    EXPECT_EQ(std::chrono::duration_cast<std::chrono::milliseconds>(now_ - began), 998s);
    EXPECT_EQ(transport_.started.size(), 10'000u);
}

TEST_F(EventRecorderTest, ALeaseDoesNotWaitBehindEvents_APISYNC020) {
    for (int i = 0; i < 1'000; ++i) {
        recorder_.offer(event("web-" + std::to_string(i)));
    }
    for (int i = 0; i < 100; ++i) {
        advance(100ms);
        while (!transport_.open.empty()) {
            transport_.answer(201);
            advance();
        }
        if (i % 20 == 0) {  // every two seconds
            EXPECT_TRUE(limiter_.take(WriteLane::Lease, now_)) << i;
        }
    }
    EXPECT_LE(transport_.started.size(), 20u + 100u);
    EXPECT_GE(transport_.started.size(), 100u);
}

TEST_F(EventRecorderTest, WarningsGoFirstAndRepeatsAreDroppedFirst_EVT002) {
    recorder_.offer(event("old"));
    answer_all(201);
    Event good = event("good");
    good.type = Event::Type::Normal;
    recorder_.offer(good);
    recorder_.offer(event("old"));  // a repeat
    for (size_t i = 0; i < kEventsWaitingMax - 2; ++i) {
        recorder_.offer(event("web" + std::to_string(i)));
    }
    limiter_ = WriteLimiter();
    while (limiter_.take(WriteLane::Ordinary, now_)) {
    }
    advance();
    EXPECT_EQ(recorder_.status().waiting, kEventsWaitingMax);
    recorder_.offer(event("one"));
    advance();
    EXPECT_EQ(recorder_.status().dropped_overflow, 1u);
    EXPECT_EQ(recorder_.status().waiting, kEventsWaitingMax);
    answer_all(201);
    const auto lines = asked();
    EXPECT_EQ(std::ranges::count(lines, "PATCH old"), 0) << "the repeat made room";
    EXPECT_EQ(lines.back(), "POST good") << "after every warning";
}

TEST_F(EventRecorderTest, AnInboxThatNobodyEmptiesIsBounded_EVT002) {
    for (size_t i = 0; i < kEventsWaitingMax + 7; ++i) {
        recorder_.offer(event("web" + std::to_string(i)));
    }
    EXPECT_EQ(recorder_.status().waiting, kEventsWaitingMax);
    EXPECT_EQ(recorder_.status().dropped_overflow, 7u);
    EXPECT_EQ(woken_, 1) << "one call wakes the loop";
}

TEST_F(EventRecorderTest, WhatHasGoneIsNotTold_EVT001) {
    gone_ = {"web"};
    recorder_.offer(event());
    recorder_.offer(event("api"));
    answer_all(201);
    EXPECT_EQ(asked(), Lines{"POST api"});
    EXPECT_EQ(recorder_.status().dropped_gone, 1u);
}

TEST_F(EventRecorderTest, WhatIsSaidOnceIsNotSaidAgainAfterARestart_EVT003) {
    Event programmed = event();
    programmed.type = Event::Type::Normal;
    programmed.reason = "ServiceProgrammed";
    programmed.once = true;
    recorder_.offer(programmed);
    recorder_.offer(programmed);
    answer_all(201);
    recorder_.offer(programmed);
    answer_all(201);
    ASSERT_EQ(asked(), Lines{"POST web"});

    test::FakeTransport later_transport;
    EventRecorder later(
        later_transport, limiter_, [](const auto&, const auto&) { return ObjectIdentity{.uid = "uid-web"}; },
        [] { return 0.7; }, [] {});
    later.offer(programmed);
    later.advance(now_, std::chrono::system_clock::time_point(1'700'009'000s));
    ASSERT_EQ(later_transport.started.size(), 1u);
    const auto name_in = [](const std::string& body) {
        return body.substr(body.find(R"("name":"web.)"), 29);
    };
    EXPECT_EQ(name_in(later_transport.started[0].body), name_in(transport_.started[0].body))
        << "the same name, which is taken";
    later_transport.answer(409);
    later.advance(now_ + 1s, std::chrono::system_clock::time_point(1'700'009'001s));
    EXPECT_EQ(later_transport.started.size(), 1u);
    EXPECT_EQ(later.status().dropped_failed, 0u);
    EXPECT_EQ(later.status().posted, 0u);
}

TEST_F(EventRecorderTest, AStandingWarningContinuesItsEventAfterARestart_EVT002_EVT003) {
    recorder_.offer(event());
    answer_all(201);
    now_ += 30min;  // penstock-sync is away for longer than repeats are remembered
    test::FakeTransport later_transport;
    EventRecorder later(
        later_transport, limiter_, [](const auto&, const auto&) { return ObjectIdentity{.uid = "uid-web"}; },
        [] { return 0.7; }, [] {});
    const auto advance_later = [&](std::chrono::seconds by) {
        now_ += by;
        later.advance(now_, std::chrono::system_clock::time_point(1'700'009'000s));
    };
    later.offer(event());
    advance_later(0s);
    ASSERT_EQ(later_transport.started.size(), 1u);
    const auto name_in = [](const std::string& body) {
        return body.substr(body.find(R"("name":"web.)"), 29);
    };
    EXPECT_EQ(name_in(later_transport.started[0].body), name_in(transport_.started[0].body));
    later_transport.answer(409);
    advance_later(1s);
    ASSERT_EQ(later_transport.started.size(), 2u);
    EXPECT_EQ(later_transport.started[1].method, "PATCH");
    EXPECT_EQ(later_transport.started[1].body, R"({"lastTimestamp":"2023-11-15T00:43:20Z"})");
    later_transport.answer(
        200, R"({"kind":"Event","metadata":{"name":"web.1"},"message":"\"count\":9","count":7})");
    advance_later(1s);
    ASSERT_EQ(later_transport.started.size(), 3u);
    EXPECT_EQ(later_transport.started[2].target, later_transport.started[1].target);
    EXPECT_EQ(later_transport.started[2].body, R"({"count":8,"lastTimestamp":"2023-11-15T00:43:20Z"})");
    later_transport.answer(200);
    advance_later(1s);
    EXPECT_EQ(later.status().posted, 0u);
    EXPECT_EQ(later.status().repeated, 1u);

    later.offer(event());
    advance_later(1s);
    ASSERT_EQ(later_transport.started.size(), 4u) << "a further repeat needs no look";
    EXPECT_EQ(later_transport.started[3].body, R"({"count":9,"lastTimestamp":"2023-11-15T00:43:20Z"})");
    later_transport.answer(404);
    advance_later(1s);
    ASSERT_EQ(later_transport.started.size(), 5u);
    EXPECT_EQ(later_transport.started[4].method, "POST") << "its hour is over";
    EXPECT_NE(later_transport.started[4].body.find(R"("count":2)"), std::string::npos)
        << later_transport.started[4].body;
    later_transport.answer(201);
    advance_later(1s);
    later.offer(event());
    advance_later(1s);
    EXPECT_EQ(later_transport.started.back().body, R"({"count":3,"lastTimestamp":"2023-11-15T00:43:20Z"})");
}

TEST_F(EventRecorderTest, AServerThatHasAnEventAndHasItNotIsGivenUp_EVT002) {
    recorder_.offer(event());
    advance();
    for (int i = 0; i < 100 && !transport_.open.empty(); ++i) {
        transport_.answer(transport_.open.front().request.method == "POST" ? 409 : 404);
        advance();
        advance(1min);
    }
    EXPECT_TRUE(transport_.open.empty());
    EXPECT_EQ(transport_.started.size(), 2 * kEventTriesMax);
    EXPECT_EQ(recorder_.status().dropped_failed, 1u);
    EXPECT_EQ(recorder_.status().waiting, 0u);
}

TEST_F(EventRecorderTest, OfferingFromManyThreadsLosesNothing_EVT002) {
    {
        std::vector<std::jthread> gateways;
        for (int gateway = 0; gateway < 4; ++gateway) {
            gateways.emplace_back([this, gateway] {
                for (int i = 0; i < 500; ++i) {
                    recorder_.offer(event("web-" + std::to_string(gateway) + "-" + std::to_string(i)));
                }
            });
        }
    }
    answer_all(201);
    EXPECT_EQ(recorder_.status().posted, 2'000u);
}

TEST_F(EventRecorderTest, AnEndInMidRequestCancelsIt_EVT002) {
    {
        EventRecorder ending(
            transport_, limiter_, [](const auto&, const auto&) { return ObjectIdentity{}; },
            [] { return 0.5; }, [] {});
        ending.offer(event());
        ending.advance(now_, {});
        ASSERT_EQ(transport_.open.size(), 1u);
    }
    EXPECT_TRUE(transport_.open.empty());
}

}  // namespace event_recorder_test
}  // namespace penstock::kube
