// SPDX-License-Identifier: Apache-2.0
// Watches: effect of events, start and end of streams, framing, versions.
#include "tests/unit/kube/reflector_fixture.hpp"

namespace penstock::kube {
namespace reflector_watch_test {

using namespace test;

class ReflectorWatch : public ReflectorFixture {};

using Served = std::map<std::string, int64_t>;
const std::string kExpired = status_text(410, "Expired", "too old resource version: 100 (2000)");

TEST_F(ReflectorWatch, AsksForBookmarksAndARandomEnd_APISYNC004) {
    for (const auto& [draw, seconds] :
         std::map<double, std::string>{{0.0, "300"}, {0.5, "450"}, {0.9999, "600"}}) {
        draw_ = draw;
        begin_watching("100");
        EXPECT_EQ(asked(), (Query{{"watch", "1"},
                                  {"resourceVersion", "100"},
                                  {"allowWatchBookmarks", "true"},
                                  {"timeoutSeconds", seconds}}));
        EXPECT_TRUE(transport_.started.back().watch);
        EXPECT_EQ(transport_.started.back().timeout, 0ms);
        EXPECT_FALSE(transport_.started.back().accept_gzip) << "APISYNC-019";
        reflector_.reset();
        transport_.open.clear();
    }
}

TEST_F(ReflectorWatch, ANormalEndIsFollowedByAWatchAtOnce_APISYNC004) {
    begin_watching("100");
    body(event_text("ADDED", service_text("web", "107")));
    const size_t before = requests();
    end();
    EXPECT_EQ(requests(), before + 1) << "at once";
    EXPECT_TRUE(is_watch());
    EXPECT_EQ(asked().at("resourceVersion"), "107");
    EXPECT_EQ(status().relists, 0U);
    EXPECT_EQ(status().watch_restarts, 1U);
}

TEST_F(ReflectorWatch, WatchesThatEndWithoutAnEventAreOneASecond_APISYNC004) {
    begin_watching("100");
    size_t watches = 1;
    const auto until = now_ + 60s;
    while (now_ < until) {
        body(bookmark_text("100"));
        end();
        EXPECT_FALSE(is_asking());
        wait_for_request();
        ++watches;
        head(200);
    }
    EXPECT_LE(watches, 62U);
    EXPECT_GE(watches, 60U) << "and no slower";
    EXPECT_EQ(status().relists, 0U) << "nothing is wrong";
    EXPECT_TRUE(status().errors.empty());
}

TEST_F(ReflectorWatch, WatchesThatEndAfterEachEventAreOneASecondInTheLongRun_APISYNC004) {
    begin_watching("100");
    int watches = 0;
    const auto until = now_ + 60s;
    for (; now_ < until; ++watches) {
        body(event_text("ADDED", service_text("web", std::to_string(watches))));
        end();
        wait_for_request();
        head(200);
    }
    EXPECT_LE(watches, 60 + static_cast<int>(Reflector::kRestartBurst) + 1);
}

TEST_F(ReflectorWatch, AWatchWhoseEndNeverComesIsEndedFromHere_APISYNC015) {
    begin_watching("100");
    const size_t before = requests();
    wait(329s);
    EXPECT_EQ(requests(), before);
    wait(1s);
    EXPECT_EQ(requests(), before + 1) << "300 s were asked for, and 30 s are grace";
    EXPECT_EQ(transport_.open.size(), 1U) << "the old one is cancelled";
    EXPECT_TRUE(is_watch());
}

TEST_F(ReflectorWatch, EventsAboutKnownAndUnknownObjects_APISYNC005) {
    begin_watching("100", {service_text("web", "7")});
    services_.services.clear();
    body(event_text("ADDED", service_text("web", "101", 81)));
    EXPECT_EQ(served(), (Served{{"web", 81}})) << "ADDED, known";
    body(event_text("MODIFIED", service_text("mail", "102", 25)));
    EXPECT_EQ(served(), (Served{{"web", 81}, {"mail", 25}})) << "MODIFIED, unknown";
    body(event_text("DELETED", service_text("nobody", "103")));
    EXPECT_EQ(served(), (Served{{"web", 81}, {"mail", 25}})) << "DELETED, unknown";
    body(event_text("DELETED", service_text("web", "104")));
    EXPECT_EQ(served(), (Served{{"mail", 25}}));
    EXPECT_EQ(status().resource_version, "104");
}

TEST_F(ReflectorWatch, ABookmarkOnlyAdvancesTheVersion_APISYNC005) {
    begin_watching("100", {service_text("web", "7")});
    body(bookmark_text("150"));
    EXPECT_TRUE(store_.take_changes().is_empty());
    EXPECT_EQ(status().objects, 1U);
    EXPECT_EQ(status().resource_version, "150");
    body(bookmark_text("160", true));
    EXPECT_EQ(status().objects, 1U) << "an end of what was not begun changes nothing";
    body(bookmark_text(""));
    EXPECT_EQ(status().resource_version, "160");
}

TEST_F(ReflectorWatch, VersionZeroIsNoneToResumeFrom_APISYNC005) {
    begin_watching("100");
    body(bookmark_text("0"));
    body(event_text("ADDED", service_text("web", "0")));
    end();
    wait_for_request();
    EXPECT_EQ(asked().at("resourceVersion"), "100")
        << "a watch from 0 would never tell what was deleted meanwhile";
}

TEST_F(ReflectorWatch, AnUnknownTypeOfAnyLengthIsToldInShort_APISYNC005) {
    begin_watching("100");
    body(event_text(std::string(1'000'000, 'X'), "{}"));
    ASSERT_FALSE(log_.take().empty());
    body(event_text(std::string(1'000'000, 'X'), "{}"));
    for (const LogLine& line : log_.take()) {
        EXPECT_LT(line.text.size(), 300U);
    }
}

TEST_F(ReflectorWatch, AnUnknownTypeIsSkippedAndTold_APISYNC005) {
    begin_watching("100");
    (void)log_.take();
    body(event_text("TELEPORTED", service_text("web", "101")) +
         event_text("ADDED", service_text("mail", "102")));
    EXPECT_EQ(served(), (Served{{"mail", 80}}));
    const auto lines = log_.take();
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_NE(lines[0].text.find("TELEPORTED"), std::string::npos);
}

TEST_F(ReflectorWatch, AnExpiredVersionIsARelistAndADifference_APISYNC006) {
    for (const bool as_event : {true, false}) {
        begin_watching("100",
                       {service_text("web", "7"), service_text("mail", "8"), service_text("old", "9")});
        if (as_event) {
            body(event_text("ERROR", kExpired));
        } else {
            end();
            wait_for_request();
            reply(410, kExpired);
        }
        EXPECT_FALSE(is_watch()) << "at once";
        EXPECT_EQ(status().objects, 3U) << "what is there serves meanwhile";
        reply(200, list_text("2000", {service_text("web", "7"), service_text("mail", "1500", 25)}));
        const Changes changes = store_.take_changes();
        EXPECT_EQ(changes.services.size(), 2U) << "unchanged objects cause no work";
        EXPECT_EQ(changes.services.at({"default", "mail"})->ports[0].port, 25);
        EXPECT_EQ(changes.services.at({"default", "old"}), nullptr);
        EXPECT_EQ(asked().at("resourceVersion"), "2000");
        EXPECT_EQ(status().relists, 1U);
        EXPECT_EQ(status().errors.at("http_410"), 1U);
        reflector_.reset();
        transport_.open.clear();
    }
}

TEST_F(ReflectorWatch, AReasonOfGoneOrExpiredNeedsNoCode_APISYNC006) {
    for (const std::string reason : {"Expired", "Gone"}) {
        begin_watching("100");
        body(event_text("ERROR", R"({"kind":"Status","reason":")" + reason + R"("})"));
        EXPECT_FALSE(is_watch()) << reason;
        reflector_.reset();
        transport_.open.clear();
    }
}

TEST_F(ReflectorWatch, AVersionThatExpiredDuringAnOutageIsListedAnewAtOnce_APISYNC006) {
    begin_watching("100");
    fail(TransportError::Kind::Broken);
    wait_for_request();
    fail(TransportError::Kind::Connect);
    wait_for_request();
    reply(410, kExpired);
    EXPECT_TRUE(is_asking()) << "it is no third failure";
    EXPECT_FALSE(is_watch());
}

TEST_F(ReflectorWatch, AServerWhoseVersionsAlwaysExpireIsNotAskedInACircle_APISYNC006) {
    begin_watching("100");
    const auto started = now_;
    for (int round = 0; round < 6; ++round) {
        body(event_text("ERROR", kExpired));
        wait_for_request();
        reply(200, list_text("100", {}));
        head(200);
    }
    EXPECT_GE(now_ - started, 20s);
}

TEST_F(ReflectorWatch, ABrokenStreamResumesAndAfterThreeItRelists_APISYNC007) {
    const std::vector<std::string> broken = {"garbage",
                                             "{\"type\":",
                                             "[]",
                                             "{}",
                                             "\xff\xfe",
                                             R"({"type":"ADDED"})",
                                             event_text("ERROR", status_text(500, "InternalError", "etcd"))};
    for (const std::string& bytes : broken) {
        begin_watching("100");
        for (int failure = 1; failure <= 3; ++failure) {
            body(bytes);
            if (is_asking()) {
                end();  // truncation is detected only here
            }
            EXPECT_FALSE(is_asking()) << bytes << ": a wait comes first";
            EXPECT_GE(wait_for_request(), 800ms) << bytes;
            EXPECT_EQ(is_watch(), failure < 3) << bytes << ", failure " << failure;
            if (failure < 3) {
                EXPECT_EQ(asked().at("resourceVersion"), "100");
                head(200);
            }
        }
        reflector_.reset();
        transport_.open.clear();
    }
}

TEST_F(ReflectorWatch, ProgressEndsARowOfFailures_APISYNC007) {
    begin_watching("100");
    for (int failure = 0; failure < 10; ++failure) {
        body(event_text("ADDED", service_text("web", "v" + std::to_string(failure))) + "garbage");
        wait_for_request();
        EXPECT_TRUE(is_watch()) << "each on another version";
        head(200);
    }
    body("garbage");
    wait_for_request();
    head(200);
    end();
    wait_for_request();
    head(200);
    body("garbage");
    wait_for_request();
    EXPECT_TRUE(is_watch()) << "a normal end lies between";
}

TEST_F(ReflectorWatch, EverythingBeforeTheGarbageCounts_APISYNC007) {
    begin_watching("100");
    body(event_text("ADDED", service_text("web", "101")) + "garbage" +
         event_text("ADDED", service_text("mail", "102")));
    EXPECT_EQ(served(), (Served{{"web", 80}}));
    wait_for_request();
    EXPECT_EQ(asked().at("resourceVersion"), "101");
}

TEST_F(ReflectorWatch, FramesDoNotDependOnChunks_APISYNC008) {
    begin_watching("100");
    std::string web = service_text("web", "101");
    web.insert(web.size() - 1, R"(,"status":{"note":"größe 網 🚰 \u007b\" }{"})");
    const std::string text = event_text("ADDED", web) + event_text("ADDED", service_text("mail", "102"));
    for (const char byte : text) {
        body({});
        body({&byte, 1});
    }
    EXPECT_EQ(served(), (Served{{"web", 80}, {"mail", 80}})) << "byte by byte";
    std::string joined = event_text("MODIFIED", service_text("web", "103", 81)) +
                         event_text("MODIFIED", service_text("mail", "104", 26));
    std::erase(joined, '\n');
    body(joined);
    EXPECT_EQ(served(), (Served{{"web", 81}, {"mail", 26}})) << "two in one, nothing between";
}

TEST_F(ReflectorWatch, VersionsAreOpaque_APISYNC009) {
    begin_watching("abc", {service_text("web", "999999")});
    EXPECT_EQ(asked().at("resourceVersion"), "abc") << "the list's own, not that of an object in it";
    body(event_text("MODIFIED", service_text("web", "7", 81)));
    body(event_text("MODIFIED", service_text("web", "5", 82)));
    EXPECT_EQ(served(), (Served{{"web", 82}})) << "smaller is not older";
    EXPECT_EQ(status().resource_version, "5");
    body(bookmark_text("3-x"));
    end();
    EXPECT_EQ(asked().at("resourceVersion"), "3-x");
}

TEST_F(ReflectorWatch, AnObjectThatCannotBeReadStaysAsItWas_GEN003) {
    begin_watching("100", {service_text("web", "7", 81)});
    services_.services.clear();
    body(event_text("MODIFIED", odd_service_text("web", "101")) +
         event_text("ADDED", service_text("mail", "102")));
    EXPECT_EQ(served(), (Served{{"mail", 80}})) << "others go on, and this one is unchanged";
    EXPECT_EQ(status().objects, 2U);
    EXPECT_EQ(status().quarantined, 1U);
    EXPECT_EQ(status().resource_version, "102");
    body(event_text("MODIFIED", service_text("web", "103", 82)));
    EXPECT_EQ(served(), (Served{{"web", 82}, {"mail", 80}}));
    EXPECT_EQ(status().quarantined, 0U);
    body(event_text("MODIFIED", odd_service_text("web", "104")) +
         event_text("DELETED", odd_service_text("web", "105")));
    EXPECT_EQ(served(), (Served{{"mail", 80}})) << "its name suffices to delete it";
}

TEST_F(ReflectorWatch, DeletionUnderWayChangesNothing_GEN011) {
    begin_watching("100", {service_text("web", "7")});
    std::string text = service_text("web", "101");
    const std::string_view where = R"("uid":)";
    text.insert(text.find(where), R"("deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x/y"],)");
    body(event_text("MODIFIED", text));
    EXPECT_EQ(status().objects, 1U);
    EXPECT_TRUE(store_.take_changes().is_empty());
    body(event_text("DELETED", text));
    EXPECT_EQ(store_.take_changes().services.at({"default", "web"}), nullptr);
}

TEST_F(ReflectorWatch, TellsHowOldItsNewsIs_APISYNC014) {
    begin_watching("100");
    EXPECT_EQ(status().stale_age, 0ms);
    wait(20s);
    EXPECT_EQ(status().last_event_age, 20s);
    EXPECT_EQ(status().stale_age, 0ms) << "the watch is open";
    body(bookmark_text("101"));
    EXPECT_EQ(status().last_event_age, 0ms);
    fail(TransportError::Kind::Broken);
    wait(700ms);
    EXPECT_EQ(status().stale_age, 700ms);
    EXPECT_EQ(status().state, State::BackingOff);
    EXPECT_EQ(status().last_error, "it failed");
    wait_for_request();
    head(200);
    EXPECT_EQ(status().stale_age, 0ms);
    EXPECT_EQ(status().state, State::Watching);
    EXPECT_EQ(status().last_error, "");
}

TEST_F(ReflectorWatch, AServerThatOpensAndBreaksWatchesIsStale_APISYNC014) {
    begin_watching("100");
    wait(10s);
    fail(TransportError::Kind::Broken);
    const auto lost = now_;
    for (int round = 0; round < 2; ++round) {
        wait_for_request();
        head(200);
        fail(TransportError::Kind::Broken);
    }
    EXPECT_EQ(status().stale_age, std::chrono::round<std::chrono::milliseconds>(now_ - lost));
}

}  // namespace reflector_watch_test
}  // namespace penstock::kube
