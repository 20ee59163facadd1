// SPDX-License-Identifier: Apache-2.0
// Errors between client and server, and the wait time after each.
#include <algorithm>

#include "tests/unit/kube/reflector_fixture.hpp"

namespace penstock::kube {
namespace reflector_trouble_test {

using namespace test;

class ReflectorTrouble : public ReflectorFixture {
 protected:
    std::vector<std::string> told() {
        std::vector<std::string> texts;
        for (const LogLine& line : log_.take()) {
            texts.push_back(line.text);
        }
        return texts;
    }
};

using Kind = TransportError::Kind;

TEST_F(ReflectorTrouble, WaitsLongerEachTime_APISYNC012) {
    begin();
    std::vector<std::chrono::milliseconds> waits;
    for (int failure = 0; failure < 7; ++failure) {
        fail();
        waits.push_back(wait_for_request());
    }
    EXPECT_EQ(waits,
              (std::vector<std::chrono::milliseconds>{800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30s}));
}

TEST_F(ReflectorTrouble, EveryWaitIsMultipliedByChance_APISYNC012) {
    draw_ = 0.5;
    begin();
    fail();
    EXPECT_EQ(wait_for_request(), 1200ms);
    fail();
    EXPECT_EQ(wait_for_request(), 2400ms);
}

TEST_F(ReflectorTrouble, BeginsAnewAfterTwoGoodMinutes_APISYNC012) {
    begin_watching("100");
    for (int failure = 0; failure < 2; ++failure) {
        fail(Kind::Broken);
        wait_for_request();
        head(200);
    }
    wait(120s);
    fail(Kind::Broken);
    EXPECT_EQ(wait_for_request(), 800ms);
}

TEST_F(ReflectorTrouble, HonoursRetryAfterOfHeadAndBody_APISYNC012) {
    for (const int code : {429, 503}) {
        begin();
        reply(code, "", 7s);
        EXPECT_GE(wait_for_request(), 7s) << code;
        reply(code, status_text(code, "TooManyRequests", "later", R"({"retryAfterSeconds":9})"), 7s);
        EXPECT_GE(wait_for_request(), 9s) << code;
        EXPECT_EQ(status().errors.at("http_" + std::to_string(code)), 2U);
        reflector_.reset();
        transport_.open.clear();
    }
}

TEST_F(ReflectorTrouble, ABusyServerIsNotMadeToList_APISYNC012) {
    begin_watching("100");
    end();
    wait_for_request();
    for (int failure = 0; failure < 10; ++failure) {
        reply(429, "", 1s);
        wait_for_request();
        EXPECT_TRUE(is_watch());
        EXPECT_EQ(asked().at("resourceVersion"), "100");
    }
}

TEST_F(ReflectorTrouble, RejectedCredentialsAreReadAgainAndTriedOnceAtOnce_APISYNC013) {
    begin();
    reply(401, status_text(401, "Unauthorized", "Unauthorized"));
    EXPECT_EQ(transport_.rejected, 1);
    EXPECT_TRUE(is_asking()) << "at once";
    reply(401);
    EXPECT_EQ(transport_.rejected, 2);
    EXPECT_FALSE(is_asking());
    EXPECT_GE(wait_for_request(), 800ms);
    reply(401);
    EXPECT_GE(wait_for_request(), 1600ms) << "and no second time at once";
    reply(200, list_text("100", {}));
    reply(401);
    EXPECT_TRUE(is_asking()) << "they were good meanwhile";
    EXPECT_TRUE(is_watch());
    EXPECT_EQ(status().errors.at("http_401"), 4U);
}

// A login page, or a server that is not a Kubernetes API server.
TEST_F(ReflectorTrouble, AnAnswerThatIsNoJsonIsNamedByItsType_APISYNC013) {
    begin();
    ASSERT_EQ(transport_.open.size(), 1U);
    transport_.open[0].handler->on_head({.status = 200, .content_type = "text/html; charset=utf-8"});
    settle();
    EXPECT_EQ(told(), (std::vector<std::string>{"/api/v1/services: the response is text/html; "
                                                "charset=utf-8, not JSON (is the server an API server, "
                                                "or does a proxy respond in its place?)"}));
    EXPECT_EQ(status().errors.at("decode"), 1U);
    EXPECT_EQ(status().state, State::BackingOff);
    wait_for_request();
    reply(200, list_text("100", {}));
    head(200);
    EXPECT_EQ(status().state, State::Watching);
}

TEST_F(ReflectorTrouble, AForbiddenCollectionIsToldOnceAndHeals_APISYNC013) {
    begin();
    for (int failure = 0; failure < 20; ++failure) {
        reply(403, status_text(403, "Forbidden", "services is forbidden: User penstock cannot list"));
        EXPECT_EQ(status().state, State::BackingOff);
        EXPECT_FALSE(status().listed);
        EXPECT_EQ(wait_for_request(), 30s);
    }
    EXPECT_EQ(told(),
              (std::vector<std::string>{
                  "/api/v1/services: 403 Forbidden: services is forbidden: User penstock cannot list; "
                  "nothing is sent to gateways until services can be listed and watched: grant these rights "
                  "(docs/deploy/common/rbac.yaml)"}));
    EXPECT_EQ(status().errors.at("http_403"), 20U);
    EXPECT_FALSE(store_.is_listed());
    reply(200, list_text("100", {}));
    head(200);
    EXPECT_EQ(status().state, State::Watching);
    EXPECT_EQ(told(), (std::vector<std::string>{"/api/v1/services: is followed again"}));
}

TEST_F(ReflectorTrouble, AForbiddenWatchKeepsWhatWasListed_APISYNC013) {
    begin_watching("100", {service_text("web", "7")});
    end();
    wait_for_request();
    reply(403);
    EXPECT_EQ(status().objects, 1U);
    wait(30s);
    EXPECT_TRUE(is_watch());
    EXPECT_EQ(status().stale_age, 31s) << "it ended a second before that";
}

TEST_F(ReflectorTrouble, AnOutageOfAnHourLosesNothing_APISYNC014) {
    begin_watching("100", {service_text("web", "7"), service_text("mail", "8")});
    (void)told();
    fail(Kind::Broken);
    const auto lost = now_;
    size_t tries = 0;
    while (now_ < lost + 1h) {
        wait_for_request();
        fail(Kind::Connect);
        ++tries;
    }
    EXPECT_EQ(status().objects, 2U);
    EXPECT_TRUE(store_.take_changes().is_empty());
    EXPECT_TRUE(store_.is_listed());
    EXPECT_GE(*status().stale_age, 1h);
    EXPECT_LE(tries, 125U);
    EXPECT_EQ(told().size(), 2U) << "that it broke, and that it cannot be reached";
    wait_for_request();
    EXPECT_EQ(asked().at("resourceVersionMatch"), "NotOlderThan")
        << "whoever was away that long may have another history";
    reply(200, list_text("500", {service_text("web", "7")}));
    head(200);
    EXPECT_EQ(status().stale_age, 0ms);
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.services.size(), 1U) << "what was deleted meanwhile";
    EXPECT_EQ(changes.services.at({"default", "mail"}), nullptr);
}

TEST_F(ReflectorTrouble, AShortInterruptionResumes_APISYNC007) {
    begin_watching("100");
    fail(Kind::Broken);
    wait_for_request();
    fail(Kind::Timeout);
    wait_for_request();
    EXPECT_TRUE(is_watch());
    EXPECT_EQ(asked().at("resourceVersion"), "100");
}

TEST_F(ReflectorTrouble, TroubleIsCountedByItsKind_APISYNC014) {
    begin();
    const std::vector<std::pair<Kind, std::string>> kinds = {
        {Kind::Connect, "connect"},        {Kind::Tls, "tls"},           {Kind::Timeout, "timeout"},
        {Kind::Broken, "broken"},          {Kind::Redirect, "redirect"}, {Kind::TooLarge, "too_large"},
        {Kind::Credentials, "credentials"}};
    for (const auto& [kind, name] : kinds) {
        fail(kind);
        EXPECT_EQ(status().errors[name], 1U) << name;
        wait_for_request();
    }
    reply(502, "<html>bad gateway</html>");
    EXPECT_EQ(status().errors["http_502"], 1U);
}

TEST_F(ReflectorTrouble, AServerCannotMakeUpKindsOfErrors_APISYNC014) {
    begin_watching("100");
    for (int code = 1000; code < 1010; ++code) {
        body(event_text("ERROR", status_text(code, "Odd", "odd")));
        wait_for_request();
        if (!is_watch()) {
            reply(200, list_text("100", {}));
        }
        head(200);
    }
    EXPECT_EQ(status().errors.size(), 1U);
    EXPECT_EQ(status().errors.at("error_event"), 10U);
}

TEST_F(ReflectorTrouble, WhatAServerSaysIsShownAsOneShortLine_APISYNC012) {
    begin();
    std::string text;
    while (text.size() < 1'000) {
        text +=
            "\\n\\u001b[31m\xc3\xa9";  // "500 Odd: " and the bound end in the middle of the last character
    }
    reply(500, status_text(500, "Odd", text));
    const std::string shown = status().last_error;
    EXPECT_LE(shown.size(), 515U);
    EXPECT_TRUE(std::ranges::none_of(shown, [](unsigned char c) { return c < ' '; })) << shown;
    ASSERT_TRUE(shown.ends_with("...")) << shown;
    EXPECT_NE(static_cast<unsigned char>(shown[shown.size() - 4]), 0xC3) << "half a character";
}

TEST_F(ReflectorTrouble, AServerThatRepeatsOurTokenIsNotQuoted_AUTH009) {
    const std::string text = "no such user: Bearer " + std::string(FakeTransport::kToken);
    begin();
    reply(500, status_text(500, "Odd", text));
    EXPECT_EQ(status().last_error, "500 Odd: no such user: Bearer ***");
    wait_for_request();
    reply(200, list_text("100", {}));
    head(200);
    body(event_text("ERROR", status_text(500, "Odd", text)));
    EXPECT_EQ(status().last_error, "500 Odd: no such user: Bearer ***");
    for (const std::string& line : told()) {
        EXPECT_EQ(line.find(FakeTransport::kToken), std::string::npos) << line;
    }
}

TEST_F(ReflectorTrouble, AnErrorIsReadOnlySoFar_APISYNC012) {
    begin();
    head(500);
    for (int piece = 0; piece < 100; ++piece) {
        body(std::string(1'000'000, 'x'));
    }
    end();
    EXPECT_EQ(status().errors["http_500"], 1U);
}

TEST_F(ReflectorTrouble, AnAnswerThatBreaksAfterItsHeadIsThatAnswer_APISYNC012) {
    begin();
    head(503, 20s);
    fail(Kind::Broken);
    EXPECT_GE(wait_for_request(), 20s);
}

TEST_F(ReflectorTrouble, NothingIsUnderWayAfterItsEnd_APISYNC014) {
    begin_watching("100");
    reflector_.reset();
    EXPECT_TRUE(transport_.open.empty());
}

}  // namespace reflector_trouble_test
}  // namespace penstock::kube
