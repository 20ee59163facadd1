// SPDX-License-Identifier: Apache-2.0
// Status writes that the API server refuses, and failures.

#include <gtest/gtest.h>

#include "control/log/log.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/unit/kube/status_fixture.hpp"

namespace penstock::kube {
namespace status_refusal_test {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

using StatusRefusal = test::StatusTest;

TEST_F(StatusRefusal, AConflictIsRetriedFromTheStore_STATUS002) {
    send_first();
    test::ModelService& model = server.at("web");
    model.put({"example.com/Ready", "True", "Ready", ""});
    ++model.version;
    respond_all();
    EXPECT_EQ(writer.counts(), (WriteCounts{.conflicts = 1, .pending = 1}));
    advance(500ms);
    EXPECT_EQ(started(), 1u) << "it waits";
    deliver("web");
    advance(1s);
    respond_all();
    EXPECT_TRUE(has("web", desired()));
    EXPECT_TRUE(model.conditions.contains("example.com/Ready"));
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 1, .conflicts = 1}));
}

TEST_F(StatusRefusal, RepeatedConflictsBackOff_STATUS002) {
    send_first();
    for (int round = 0; round < 20; ++round) {
        ++server.at("web").version;  // the store never catches up
        respond_all();
        advance_to_wake(1min);
    }
    EXPECT_GT(now - start, 5min);
}

TEST_F(StatusRefusal, AMissingServiceIsNotTriedAgainUntilItChanges_STATUS002) {
    send_first();
    server.erase("web");
    respond_all();
    EXPECT_EQ(writer.counts(), (WriteCounts{.gone = 1}));
    advance(1h);
    writer.set(id("web"), desired("203.0.113.8"));
    advance(1h);
    EXPECT_EQ(started(), 1u);
    deliver("web");
    advance(1h);
    EXPECT_EQ(started(), 1u);
    create("web");
    server.at("web").version = 9;  // created again
    deliver("web");
    respond_all();
    EXPECT_TRUE(has("web", desired("203.0.113.8")));
}

TEST_F(StatusRefusal, ARejectionIsReportedOnceAndWaitsForAChange_STATUS002) {
    send_first();
    transport.fake.answer(422, rejection("ports is wrong, " + std::string(test::FakeTransport::kToken)));
    advance();
    EXPECT_EQ(events(),
              Lines{"StatusRejected web: The API server rejected the status: ports is wrong, ***. It "
                    "is written again when the Service changes"});
    EXPECT_EQ(reported.at(0).type, Event::Type::Warning);
    EXPECT_EQ(writer.counts(), (WriteCounts{.rejected = 1}));
    writer.set(id("web"), desired());
    writer.object_changed(id("web"));
    advance(1h);
    EXPECT_EQ(started(), 1u);
    ++server.at("web").version;
    deliver("web");
    respond_all();
    EXPECT_TRUE(has("web", desired()));
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 1, .rejected = 1}));
}

TEST_F(StatusRefusal, AnotherStatusIsWrittenAfterARejection_STATUS002) {
    send_first();
    transport.fake.answer(400, "not JSON");
    advance(1h);
    EXPECT_EQ(started(), 1u);
    writer.set(id("web"), desired("203.0.113.8"));
    advance();
    ASSERT_EQ(open().size(), 1u);
    // Changed during the request that is rejected.
    writer.set(id("web"), desired("203.0.113.9"));
    transport.fake.answer(422, rejection("no"));
    advance();
    respond_all();
    EXPECT_TRUE(has("web", desired("203.0.113.9")));
}

TEST_F(StatusRefusal, ForbiddenPausesOneMinuteAndIsLoggedOnce_STATUS002) {
    const penstock::test::LogCapture log("kube");
    create("web");
    create("mail");
    writer.set(id("web"), desired());
    writer.set(id("mail"), desired("203.0.113.8"));
    advance();
    ASSERT_EQ(open().size(), 2u);
    for (int round = 0; round < 3; ++round) {
        while (!open().empty()) {
            transport.fake.answer(403);
        }
        advance();
        const size_t before = started();
        writer.set(id("web"), desired("203.0.113." + std::to_string(20 + round)));
        advance(59s);
        EXPECT_EQ(started(), before);
        advance(1s);
        EXPECT_EQ(started(), before + 2);
    }
    respond_all();
    EXPECT_TRUE(has("web", desired("203.0.113.22")));
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 2, .forbidden = 6}));
    EXPECT_EQ(log.count("(403)"), 1u);
}

TEST_F(StatusRefusal, TemporaryFailuresAreRetried_STATUS002) {
    struct Case {
        int status;
        std::optional<std::chrono::seconds> retry_after;
        std::chrono::milliseconds wait;  // at least
    };
    int rejected = 0;
    for (const Case& each : std::vector<Case>{{0, {}, 800ms},
                                              {401, {}, 800ms},
                                              {408, {}, 800ms},
                                              {429, 20s, 20s},
                                              {500, {}, 800ms},
                                              {503, 7s, 7s},
                                              {504, {}, 800ms}}) {
        SCOPED_TRACE(each.status);
        const std::string name = "web-" + std::to_string(each.status);
        create(name);
        writer.set(id(name), desired());
        advance(5min);
        ASSERT_EQ(open().size(), 1u);
        if (each.status == 0) {
            transport.fake.fail(TransportError::Kind::Timeout, "timeout");
        } else {
            transport.fake.answer(each.status, "{}", each.retry_after);
        }
        advance();
        rejected += each.status == 401 ? 1 : 0;
        EXPECT_EQ(transport.fake.rejected, rejected);
        create("other-" + name);  // no object is written during the wait
        writer.set(id("other-" + name), desired("203.0.113.8"));
        const size_t before = started();
        advance(each.wait - 1ms);
        EXPECT_EQ(started(), before);
        EXPECT_EQ(writer.counts().pending, 2u);
        for (int round = 0; round < 10; ++round) {
            advance_to_wake(30s);
            respond_all();
        }
        EXPECT_TRUE(has(name, desired()));
        EXPECT_EQ(writer.counts().pending, 0u);
    }
    EXPECT_EQ(writer.counts().failed, 7u);
}

TEST_F(StatusRefusal, ASingleFailingServiceDoesNotStopTheOthers) {
    const penstock::test::LogCapture log("kube");
    send_first();
    size_t written = 0;
    for (int round = 0; round < 60; ++round) {
        const std::string name = "other-" + std::to_string(round);
        create(name);
        writer.set(id(name), desired());
        for (const auto deadline = now + 10s; now < deadline;) {
            while (!open().empty()) {
                if (name_in(open().front().request) == "web") {
                    transport.fake.answer(500);
                    advance();
                } else {
                    respond();
                }
            }
            advance_to_wake(1s);
        }
        written += has(name, desired()) ? 1 : 0;
    }
    EXPECT_EQ(written, 60u);
    EXPECT_LE(log.lines().size(), 3u) << "in ten minutes";
}

}  // namespace status_refusal_test
}  // namespace penstock::kube
