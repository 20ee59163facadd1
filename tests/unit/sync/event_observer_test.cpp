// SPDX-License-Identifier: Apache-2.0
// Reports of a gateway's thread are posted to the API server as Events.
#include "control/sync/event_observer.hpp"

#include <gtest/gtest.h>

#include "control/semantics/notices.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::sync {
namespace event_observer_test {

class EventObserverTest : public testing::Test {
 protected:
    // Bodies of all Events posted, one per line.
    std::vector<std::string> posted() {
        for (;;) {
            recorder_.advance(now_, std::chrono::system_clock::time_point());
            if (transport_.open.empty()) {
                break;
            }
            transport_.answer(201);
        }
        std::vector<std::string> bodies;
        for (const kube::Request& request : transport_.started) {
            bodies.push_back(request.body);
        }
        return bodies;
    }
    static bool has(const std::string& body, const std::string& part) {
        return body.find(part) != std::string::npos;
    }

    const std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
    kube::test::FakeTransport transport_;
    kube::WriteLimiter limiter_;
    kube::EventRecorder recorder_{transport_, limiter_,
                                  [](const auto&, const auto&) { return kube::ObjectIdentity{.uid = "u"}; },
                                  [] { return 0.5; }, [] {}};
    EventObserver observer_{&recorder_};
    const model::ServiceKey key_{"shop", "web", "http", Protocol::Tcp};
};

TEST_F(EventObserverTest, NoticesOfAllReasonsBecomeEventsUnderTheGatewaysName_EVT001) {
    using namespace semantics::reason;
    const std::vector<std::string_view> reasons{kFrontendConflict, kExternalIpNotAllowed, kInvalidPort,
                                                kInvalidSourceRange};
    for (const std::string_view reason : reasons) {
        observer_.on_notice_appeared("edge-1",
                                     {.kind = "Service",
                                      .object = {"shop", "web"},
                                      .notice = {.reason = std::string(reason), .message = "because"}});
    }
    const auto bodies = posted();
    ASSERT_EQ(bodies.size(), reasons.size());
    for (size_t i = 0; i < reasons.size(); ++i) {
        EXPECT_TRUE(has(bodies[i], R"("type":"Warning","reason":")" + std::string(reasons[i]) +
                                       R"(","message":"because")"))
            << bodies[i];
        EXPECT_TRUE(has(bodies[i], R"("reportingInstance":"edge-1")")) << bodies[i];
    }
}

TEST_F(EventObserverTest, ANormalNoticeIsANormalEvent_EVT001) {
    observer_.on_notice_appeared(
        "edge-1",
        {.kind = "Node",
         .object = {"", "node-1"},
         .notice = {.level = model::Notice::Level::Normal, .reason = "UnknownValue", .message = "m"}});
    ASSERT_EQ(posted().size(), 1u);
    EXPECT_TRUE(has(posted()[0], R"("type":"Normal")"));
    EXPECT_TRUE(has(posted()[0], R"("kind":"Node")"));
}

TEST_F(EventObserverTest, AnEndIsNoEvent_EVT001) {
    observer_.on_notice_gone(
        "edge-1", {.kind = "Service", .object = {"shop", "web"}, .notice = {.reason = "FrontendConflict"}});
    EXPECT_TRUE(posted().empty());
}

TEST_F(EventObserverTest, ARefusalNamesThePort_EVT001) {
    observer_.on_refused("edge-1", key_, "CapacityExceeded", "there is no room for another service port");
    ASSERT_EQ(posted().size(), 1u);
    EXPECT_TRUE(has(
        posted()[0],
        R"("reason":"CapacityExceeded","message":"port http/TCP: there is no room for another service port")"));
    EXPECT_TRUE(has(posted()[0], R"("kind":"Service","namespace":"shop","name":"web")"));
}

TEST_F(EventObserverTest, EachGatewayProgramsAServiceOnceWhateverPortsItHas_EVT003) {
    model::ServiceKey other_port = key_;
    other_port.port_name = "https";
    observer_.on_programmed("edge-1", key_);
    observer_.on_programmed("edge-1", other_port);
    observer_.on_programmed("edge-2", key_);
    observer_.on_programmed("edge-1", key_);
    const auto bodies = posted();
    ASSERT_EQ(bodies.size(), 2u);
    EXPECT_TRUE(has(bodies[0], R"("type":"Normal","reason":"ServiceProgrammed")")) << bodies[0];
    EXPECT_TRUE(has(bodies[0], R"("reportingInstance":"edge-1")"));
    EXPECT_TRUE(has(bodies[1], R"("reportingInstance":"edge-2")"));
}

}  // namespace event_observer_test
}  // namespace penstock::sync
