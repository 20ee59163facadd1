// SPDX-License-Identifier: Apache-2.0
// Lists: in pages, streamed, the requested version, and the visibility of their objects.
#include "tests/unit/kube/reflector_fixture.hpp"

namespace penstock::kube {
namespace reflector_list_test {

using namespace test;

class ReflectorList : public ReflectorFixture {};

using Served = std::map<std::string, int64_t>;

TEST_F(ReflectorList, ReadsPagesAndShowsTheWhole_APISYNC002) {
    list_the_others();
    begin();
    EXPECT_EQ(path_of(transport_.started[0].target), "/api/v1/services");
    EXPECT_EQ(asked(), (Query{{"limit", "500"}}));
    EXPECT_TRUE(transport_.started[0].accept_gzip);
    EXPECT_GT(transport_.started[0].timeout, 60s) << "the server gives up first";
    EXPECT_EQ(status().state, State::Listing);
    reply(200, list_text("100", {service_text("web", "7")}, "token-1"));
    EXPECT_EQ(served(), Served{}) << "not before the list is complete";
    EXPECT_EQ(asked(), (Query{{"limit", "500"}, {"continue", "token-1"}}));
    reply(200, list_text("105", {}, "token-2"));
    EXPECT_EQ(asked(), (Query{{"limit", "500"}, {"continue", "token-2"}})) << "an empty page is no end";
    EXPECT_EQ(served(), Served{});
    EXPECT_FALSE(status().listed);
    reply(200, list_text("110", {service_text("mail", "8", 25)}));
    EXPECT_EQ(served(), (Served{{"web", 80}, {"mail", 25}}));
    EXPECT_TRUE(is_watch());
    EXPECT_EQ(asked().at("resourceVersion"), "100") << "all pages show the state of the first";
    EXPECT_TRUE(status().listed);
    EXPECT_EQ(status().relists, 0U);
}

TEST_F(ReflectorList, TakesAllFromAServerThatIgnoresTheLimit_APISYNC002) {
    list_the_others();
    begin();
    std::vector<std::string> items;
    for (int item = 0; item < 700; ++item) {
        items.push_back(service_text("s" + std::to_string(item), "1"));
    }
    reply(200, list_text("100", items));
    EXPECT_EQ(served().size(), 700U);
    EXPECT_TRUE(is_watch());
}

TEST_F(ReflectorList, AnExpiredTokenBeginsAgainWithoutLimit_APISYNC003) {
    list_the_others();
    begin();
    reply(200, list_text("100", {service_text("deleted-meanwhile", "7")}, "token-1"));
    reply(410, status_text(410, "Expired", "The provided continue parameter is too old"));
    EXPECT_EQ(asked(), Query{});
    reply(200, list_text("200", {service_text("web", "7")}));
    EXPECT_EQ(served(), (Served{{"web", 80}})) << "the partial page is forgotten";
    EXPECT_EQ(asked().at("resourceVersion"), "200");
}

TEST_F(ReflectorList, TokensThatAlwaysExpireCostAWait_APISYNC003) {
    begin();
    reply(200, list_text("100", {}, "token-1"));
    reply(410);
    EXPECT_TRUE(is_asking()) << "the first time at once";
    reply(200, list_text("100", {}, "token-1"));
    reply(410);
    EXPECT_FALSE(is_asking());
    EXPECT_GE(wait_for_request(), 800ms);
}

TEST_F(ReflectorList, AListThatGoesInACircleEnds_APISYNC002) {
    begin();
    reply(200, list_text("100", {}, "token-1"));
    reply(200, list_text("100", {}, "token-1"));
    EXPECT_EQ(asked(), Query{}) << "begins again, without pages";
}

TEST_F(ReflectorList, AListThatGoesInAWiderCircleEndsToo_APISYNC002) {
    begin();
    for (const std::string token : {"token-1", "token-2", "token-3", "token-1"}) {
        ASSERT_TRUE(is_asking());
        reply(200, list_text("100", {}, token));
    }
    EXPECT_EQ(asked(), Query{}) << "begins again, without pages";
}

TEST_F(ReflectorList, APageThatFailsIsAskedForAgain_APISYNC012) {
    list_the_others();
    begin();
    reply(200, list_text("100", {service_text("web", "7")}, "token-1"));
    reply(500, "no");
    wait_for_request();
    EXPECT_EQ(asked().at("continue"), "token-1");
    reply(200, R"({"metadata":{"resourceVersion":"100"},"items":[)" + service_text("half", "7"));
    wait_for_request();
    EXPECT_EQ(asked().at("continue"), "token-1");
    reply(200, list_text("100", {}));
    EXPECT_EQ(served(), (Served{{"web", 80}})) << "nothing of a page that was cut off";
}

TEST_F(ReflectorList, APageThatFailsThreeTimesBeginsTheListAgain_APISYNC007) {
    begin();
    reply(200, list_text("100", {service_text("web", "7")}, "token-1"));
    for (int failure = 0; failure < 3; ++failure) {
        EXPECT_EQ(asked().at("continue"), "token-1");
        fail();
        wait_for_request();
    }
    EXPECT_EQ(asked(), (Query{{"limit", "500"}}));
}

TEST_F(ReflectorList, WhatIsNoListIsAFailure_APISYNC007) {
    list_the_others();
    for (const std::string text : {"", "<html>it works</html>", "{}", "null", R"({"items":[]})",
                                   R"({"metadata":{"resourceVersion":""},"items":[]})",
                                   R"({"metadata":{"resourceVersion":"0"},"items":[]})",
                                   R"({"metadata":{"resourceVersion":"1"},"items":{}})"}) {
        begin();
        reply(200, text);
        EXPECT_FALSE(status().listed) << text;
        EXPECT_EQ(status().state, State::BackingOff) << text;
        EXPECT_GE(wait_for_request(), 800ms) << text;
        EXPECT_FALSE(is_watch()) << text;
        reflector_.reset();
        transport_.open.clear();
    }
}

TEST_F(ReflectorList, ARelistDoesNotGoBackInTime_APISYNC010) {
    begin_watching("100");
    body(event_text("ERROR", status_text(410, "Expired", "too old resource version")));
    EXPECT_EQ(
        asked(),
        (Query{{"limit", "500"}, {"resourceVersion", "100"}, {"resourceVersionMatch", "NotOlderThan"}}));
    reply(200, list_text("150", {}, "token-1"));
    EXPECT_EQ(asked(), (Query{{"limit", "500"}, {"continue", "token-1"}}))
        << "a token stands for its version";
    reply(200, list_text("150", {}));
    EXPECT_EQ(asked().at("resourceVersion"), "150");
    EXPECT_EQ(status().relists, 1U);
}

TEST_F(ReflectorList, AServerThatIsBehindGetsASecondAndThenIsBelieved_APISYNC010) {
    const std::string too_large = status_text(
        504, "Timeout", "Too large resource version: 100, current: 20",
        R"({"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1})");
    begin_watching("100", {service_text("web", "7")});
    body(event_text("ERROR", status_text(410, "Expired", "too old resource version")));
    reply(504, too_large);
    EXPECT_FALSE(is_asking());
    EXPECT_GE(wait_for_request(), 1s);
    EXPECT_EQ(asked(), (Query{{"limit", "500"}})) << "any version";
    bool told = false;
    for (const LogLine& line : log_.take()) {
        told = told || line.text.find("behind version 100") != std::string::npos;
    }
    EXPECT_TRUE(told);
    reply(200, list_text("20", {service_text("restored", "3")}));
    EXPECT_EQ(served(), (Served{{"restored", 80}})) << "the new history is accepted";
    EXPECT_EQ(asked().at("resourceVersion"), "20");
    // The next relist continues in the new history.
    head(200);
    body(event_text("ERROR", status_text(410, "Expired", "too old resource version")));
    wait_for_request();
    EXPECT_EQ(asked().at("resourceVersion"), "20");
}

TEST_F(ReflectorList, AWatchThatIsToldItIsAheadListsAnyVersion_APISYNC010) {
    begin_watching("100");
    body(event_text("ERROR", status_text(504, "Timeout", "Too large resource version",
                                         R"({"causes":[{"message":"Too large resource version"}]})")));
    EXPECT_GE(wait_for_request(), 1s);
    EXPECT_EQ(asked(), (Query{{"limit", "500"}}));
}

TEST_F(ReflectorList, AVersionThatAnOldServerNoLongerHasIsNotAskedForAgain_APISYNC010) {
    begin_watching("100");
    body(event_text("ERROR", status_text(410, "Gone", "")));
    EXPECT_EQ(asked().at("resourceVersion"), "100");
    reply(410);
    wait_for_request();
    EXPECT_EQ(asked(), (Query{{"limit", "500"}}));
}

TEST_F(ReflectorList, StreamsWhereTheServerCan_APISYNC011) {
    list_the_others();
    begin(true);
    EXPECT_EQ(asked(), (Query{{"watch", "1"},
                              {"sendInitialEvents", "true"},
                              {"resourceVersionMatch", "NotOlderThan"},
                              {"allowWatchBookmarks", "true"},
                              {"timeoutSeconds", "300"}}));
    EXPECT_TRUE(transport_.started[0].watch);
    head(200);
    body(event_text("ADDED", service_text("web", "7")) + event_text("ADDED", service_text("mail", "8")));
    body(event_text("MODIFIED", service_text("web", "9", 81)) +
         event_text("DELETED", service_text("mail", "10")) + bookmark_text("10"));
    EXPECT_EQ(served(), Served{}) << "not before their end";
    EXPECT_EQ(status().state, State::Listing);
    body(bookmark_text("11", true));
    EXPECT_EQ(served(), (Served{{"web", 81}}));
    EXPECT_EQ(status().state, State::Watching);
    EXPECT_EQ(status().resource_version, "11");
    EXPECT_EQ(status().stale_age, 0ms);
    body(event_text("ADDED", service_text("late", "12")));
    EXPECT_EQ(served(), (Served{{"web", 81}, {"late", 80}})) << "the same stream goes on";
    wait(200s);
    EXPECT_EQ(requests(), 1U) << "30 s are for the initial events alone";
    end();
    EXPECT_EQ(asked().at("resourceVersion"), "12");
    EXPECT_FALSE(asked().contains("sendInitialEvents"));
    EXPECT_EQ(status().watch_restarts, 1U);
    // A relist is streamed too, from no older version.
    reply(410);
    EXPECT_EQ(asked().at("sendInitialEvents"), "true");
    EXPECT_EQ(asked().at("resourceVersion"), "12");
}

TEST_F(ReflectorList, PagesWhereTheServerRefusesToStreamAndForTenMinutes_APISYNC011) {
    for (const int code : {400, 403, 405, 422}) {
        begin(true);
        reply(code, status_text(code, "Invalid",
                                "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch"));
        EXPECT_EQ(asked(), (Query{{"limit", "500"}})) << code << ": at once";
        reply(200, list_text("100", {}));
        head(200);
        now_ += 9min + 59s;
        body(event_text("ERROR", status_text(410, "Expired", "")));
        EXPECT_EQ(asked().at("limit"), "500") << code << ": remembered";
        reply(200, list_text("101", {}));
        head(200);
        now_ += 2s;
        body(event_text("ERROR", status_text(410, "Expired", "")));
        wait_for_request();
        EXPECT_EQ(asked().at("sendInitialEvents"), "true") << code << ": tried again";
        reflector_.reset();
        transport_.open.clear();
    }
}

TEST_F(ReflectorList, PagesWhereTheParameterIsIgnored_APISYNC011) {
    // A server whose initial events do not end, and one that sends only new events.
    for (const std::string& events :
         {event_text("ADDED", service_text("web", "7")) + bookmark_text("8"), std::string()}) {
        begin(true);
        head(200);
        body(events);
        wait(29s);
        EXPECT_EQ(requests(), 1U);
        wait(1s);
        EXPECT_EQ(asked(), (Query{{"limit", "500"}})) << "after 30 s";
        EXPECT_EQ(status().resource_version, "");
        reply(200, list_text("100", {}));
        EXPECT_EQ(asked().at("resourceVersion"), "100");
        EXPECT_EQ(status().objects, 0U) << "what was streamed is forgotten";
        reflector_.reset();
        transport_.open.clear();
        transport_.started.clear();
    }
}

TEST_F(ReflectorList, PagesWhereAStreamEndsEarlyOrBreaks_APISYNC011) {
    begin(true);
    head(200);
    end();
    EXPECT_EQ(asked(), (Query{{"limit", "500"}}));
    reflector_.reset();
    transport_.open.clear();

    begin(true);
    head(200);
    body("garbage");
    EXPECT_GE(wait_for_request(), 800ms);
    EXPECT_EQ(asked(), (Query{{"limit", "500"}}));
    reflector_.reset();
    transport_.open.clear();

    begin(true);
    fail();
    wait_for_request();
    EXPECT_EQ(asked().at("sendInitialEvents"), "true") << "a server that is away has refused nothing";
}

TEST_F(ReflectorList, AnEndOfInitialEventsWithoutVersionIsNone_APISYNC011) {
    begin(true);
    head(200);
    body(bookmark_text("", true));
    wait_for_request();
    EXPECT_FALSE(status().listed);
    EXPECT_EQ(asked(), (Query{{"limit", "500"}}));
}

TEST_F(ReflectorList, AFieldSelectorThatTheServerDoesNotKnowIsLeftOut_APISYNC016) {
    field_selector_ = "spec.clusterIP!=None";
    begin();
    EXPECT_EQ(asked().at("fieldSelector"), "spec.clusterIP%21%3DNone");
    reply(400, status_text(400, "BadRequest", "field label not supported: spec.clusterIP"));
    EXPECT_EQ(asked(), (Query{{"limit", "500"}})) << "at once";
    reply(200, list_text("100", {}));
    EXPECT_FALSE(asked().contains("fieldSelector")) << "the watch sees what the list saw";
    reply(400, status_text(400, "BadRequest", "something else"));
    EXPECT_FALSE(is_asking()) << "there is nothing more to leave out";
}

TEST_F(ReflectorList, AStreamThatIsRefusedForItsFieldStaysAStream_APISYNC016) {
    field_selector_ = "spec.clusterIP!=None";
    for (const std::string said :
         {"field label not supported: spec.clusterIP", "spec.clusterIP is not a known field selector"}) {
        begin(true);
        reply(400, status_text(400, "BadRequest", said));
        EXPECT_EQ(asked().at("sendInitialEvents"), "true") << said;
        EXPECT_FALSE(asked().contains("fieldSelector")) << said;
        reflector_.reset();
        transport_.open.clear();
    }
}

TEST_F(ReflectorList, AFieldSelectorThatIsKnownStays_APISYNC016) {
    field_selector_ = "spec.clusterIP!=None";
    begin();
    reply(200, list_text("100", {}));
    EXPECT_TRUE(asked().contains("fieldSelector"));
}

TEST_F(ReflectorList, ARelistErasesNoObjectThatItCannotRead_GEN003) {
    begin_watching("100", {service_text("web", "7", 81), service_text("mail", "8")});
    EXPECT_EQ(served().size(), 0U) << "taken already";
    body(event_text("ERROR", status_text(410, "Expired", "")));
    reply(200, list_text("200", {odd_service_text("web", "150"), odd_service_text("new", "151")}));
    EXPECT_EQ(store_.services().size(), 1U);
    EXPECT_EQ(status().quarantined, 2U);
    EXPECT_EQ(status().resource_version, "200") << "and the rest goes on";
    const Changes changes = store_.take_changes();
    EXPECT_EQ(changes.services.size(), 1U);
    EXPECT_EQ(changes.services.at({"default", "mail"}), nullptr);
}

TEST_F(ReflectorList, AListWithAnObjectOfNoNameErasesNothing_GEN003) {
    begin_watching("100", {service_text("web", "7"), service_text("mail", "8")});
    body(event_text("ERROR", status_text(410, "Expired", "")));
    reply(200, list_text("200", {service_text("mail", "8"), R"({"metadata":{"name":7}})"}));
    EXPECT_EQ(status().objects, 2U);
    EXPECT_TRUE(store_.take_changes().is_empty());
    EXPECT_GT(status().errors.at("decode"), 0U);
}

}  // namespace reflector_list_test
}  // namespace penstock::kube
