// SPDX-License-Identifier: Apache-2.0
#include "control/kube/status/status_writer.hpp"

#include <gtest/gtest.h>

#include "tests/unit/kube/status_fixture.hpp"

namespace penstock::kube {
namespace status_writer_test {

using namespace std::chrono_literals;
using test::address;
using test::allocated;
using test::programmed;
using test::with_addresses;
using Lines = std::vector<std::string>;

using StatusWriterTest = test::StatusTest;

TEST_F(StatusWriterTest, WritesOnceAndConfirmsByTheResponse_STATUS001_STATUS004) {
    send_first();
    const Request& request = transport.fake.started[0];
    EXPECT_EQ(request.method, "PATCH");
    EXPECT_EQ(request.target, "/api/v1/namespaces/default/services/web/status");
    EXPECT_EQ(request.content_type, "application/strategic-merge-patch+json");
    EXPECT_GT(request.timeout, 0ms);
    EXPECT_LE(request.timeout, kStatusTimeout);
    EXPECT_EQ(writer.counts().pending, 1u);
    respond_all();
    EXPECT_TRUE(has("web", desired()));
    // The store is still behind, and the Service is looked at again.
    writer.object_changed(id("web"));
    advance(1h);
    deliver("web");
    advance(1h);
    writer.set(id("web"), desired());
    advance(1h);
    EXPECT_EQ(started(), 1u);
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 1}));
    EXPECT_EQ(writer.next_wake(), std::nullopt);
    EXPECT_EQ(events(), Lines{"IPAllocated web: Allocated 203.0.113.7"});
}

TEST_F(StatusWriterTest, EqualStatusAfterARestartIsNotWritten_STATUS004) {
    create("web", {address("203.0.113.7", "")}, {allocated()});
    writer.set(id("web"), desired());
    advance();
    EXPECT_EQ(started(), 0u);
    EXPECT_TRUE(reported.empty()) << "a restart does not repeat IPAllocated (EVT-003)";
    EXPECT_EQ(writer.counts(), WriteCounts{});
}

// Writes are limited to 8 a second, so their order decides when a Service gets its address.
TEST_F(StatusWriterTest, AddressesAreWrittenBeforeConditions_APISYNC020_LB007) {
    const auto want_condition = [this](const std::string& name) {
        create(name, {address("203.0.113.7")}, {allocated()});
        ServiceStatus status = desired();
        status.conditions.push_back(programmed());
        writer.set(id(name), status);
    };
    const auto want_address = [this](const std::string& name) {
        create(name);
        writer.set(id(name), desired());
    };
    for (const char* name : {"c1", "c2", "c3"}) {
        want_condition(name);
    }
    const auto letters = [](char first, char last) {
        Lines names;
        for (char letter = first; letter <= last; ++letter) {
            names.push_back(std::string("a-") + letter);
        }
        return names;
    };
    for (const std::string& name : letters('a', 'q')) {
        want_address(name);
    }
    advance();
    EXPECT_EQ(writer.counts().pending, 20u) << "each is counted once";
    writer.set(id("c3"), desired("203.0.113.8"));  // waits with the conditions, and gets an address now
    want_address("b");
    run_until_idle();
    Lines order;
    for (const Request& request : transport.fake.started) {
        order.push_back(name_in(request));
    }
    Lines expected = letters('a', 'o');  // kMajorWritesInARow
    expected.insert(expected.end(), {"c1", "a-p", "a-q", "c3", "b", "c2"});
    EXPECT_EQ(order, expected);
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 21}));
}

TEST_F(StatusWriterTest, ADeletedServiceThatWaitsWithTheConditionsIsForgotten_STATUS002) {
    for (const char* name : {"c1", "c2"}) {
        create(name, {address("203.0.113.7")}, {allocated()});
        ServiceStatus status = desired();
        status.conditions.push_back(programmed());
        writer.set(id(name), status);
    }
    is_leader = false;
    advance();
    is_leader = true;
    for (const char* name : {"a0", "a1", "a2", "a3", "a4"}) {
        create(name);
        writer.set(id(name), desired());
    }
    advance();
    ASSERT_EQ(open().size(), kStatusWritesAtOnceMin);
    server.erase("c1");
    deliver("c1");
    writer.clear(id("c1"));
    writer.clear(id("c2"));  // its address is removed
    run_until_idle();
    EXPECT_TRUE(server.at("c2").ingress.empty());
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 6}));
}

TEST_F(StatusWriterTest, AWriteWithoutAnAnswerIsNotSettled_LEASE003) {
    send_first();
    create("other");
    writer.finish();
    writer.set(id("other"), desired());
    advance();
    EXPECT_EQ(started(), 1u) << "no write is started any more";
    EXPECT_TRUE(writer.has_writes());
    EXPECT_FALSE(writer.is_settled(now));
    respond();
    EXPECT_FALSE(writer.has_writes());
    EXPECT_TRUE(writer.is_settled(now));
}

TEST_F(StatusWriterTest, ACancelledWriteIsSettledAfterTheTimeOfALease_LEASE003) {
    send_first();
    is_leader = false;
    advance(1s);  // cancelled: the server may execute it later
    EXPECT_FALSE(writer.has_writes());
    EXPECT_FALSE(writer.is_settled(now));
    writer.reset();
    EXPECT_FALSE(writer.is_settled(now)) << "also in a later term";
    EXPECT_TRUE(writer.is_settled(now - 1s + kLeaseDuration));
}

TEST_F(StatusWriterTest, AnErrorOfTheServerLeavesItOpenWhetherAWriteIsExecuted_LEASE003) {
    send_first();
    transport.fake.answer(504, "{}");
    advance();
    EXPECT_FALSE(writer.is_settled(now));
    EXPECT_TRUE(writer.is_settled(now + kLeaseDuration));
}

TEST_F(StatusWriterTest, ARefusedWriteIsSettled_LEASE003) {
    send_first();
    transport.fake.answer(429, "{}");
    writer.finish();
    advance();
    EXPECT_TRUE(writer.is_settled(now));
}

TEST_F(StatusWriterTest, WritesOnTopOfItsOwnWriteBeforeTheWatchReportsIt) {
    send_first();
    respond_all();
    for (const char* ip : {"203.0.113.8", "203.0.113.9", "203.0.113.10"}) {
        writer.set(id("web"), desired(ip));
        respond_all();
        EXPECT_TRUE(has("web", desired(ip)));
    }
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 4})) << "no conflict";
    // The watch reports an intermediate version: it is not a change by another writer.
    test::ModelService old = server.at("web");
    old.version = 2;
    old.ingress = {address("203.0.113.7")};
    store.insert_or_assign(id("web"), old.decoded());
    writer.object_changed(id("web"));
    advance(1h);
    EXPECT_EQ(started(), 4u);
}

TEST_F(StatusWriterTest, OnlyTheLatestDesiredStatusIsWritten) {
    send_first();
    for (const char* ip : {"203.0.113.8", "203.0.113.9"}) {
        writer.set(id("web"), desired(ip));
    }
    respond_all();
    EXPECT_EQ(started(), 2u);
    EXPECT_TRUE(has("web", desired("203.0.113.9")));
    EXPECT_EQ(events(),
              (Lines{"IPAllocated web: Allocated 203.0.113.7", "IPReleased web: Released 203.0.113.7",
                     "IPAllocated web: Allocated 203.0.113.9"}));
}

TEST_F(StatusWriterTest, FourAtOnceInOrderAndAtTheRateOfTheLimiter) {
    Lines names;
    for (int number = 100; number < 140; ++number) {
        names.push_back("web-" + std::to_string(number));
        create(names.back());
        writer.set(id(names.back()), desired());
    }
    advance();
    EXPECT_EQ(open().size(), kStatusWritesAtOnceMin);
    EXPECT_EQ(writer.counts().pending, 40u);
    for (int round = 0; round < 100 && writer.counts().pending > 0; ++round) {
        respond_all();
        advance_to_wake(1h);
    }
    Lines written;
    for (const Request& request : transport.fake.started) {
        written.push_back(name_in(request));
    }
    EXPECT_EQ(written, names);
    EXPECT_GE(now - start, 125ms * (40 - 16));
    EXPECT_LT(now - start, 10s);
}

// --status-qps 100.
class FastStatusWriterTest : public testing::Test, protected test::StatusWriterFixture {
 protected:
    FastStatusWriterTest() : StatusWriterFixture(100) {}
};

TEST_F(FastStatusWriterTest, TheRateAndTheWritesInProgressFollowTheOption_APISYNC020) {
    for (int number = 0; number < 500; ++number) {
        const std::string name = "web-" + std::to_string(number);
        create(name);
        writer.set(id(name), with_addresses({address("203.0.113.7")}));
    }
    advance();
    EXPECT_EQ(open().size(), 13u);
    while (writer.counts().written < 500 && now - start < 10s) {
        respond_all();
        advance_to_wake(10s);
    }
    // A burst of two seconds, and the rest in three.
    EXPECT_GE(now - start, 2900ms);
    EXPECT_LT(now - start, 3100ms);
}

TEST_F(StatusWriterTest, AFollowerWritesNothingUntilItLeads) {
    is_leader = false;
    create("web");
    create("gone", {address("203.0.113.9")}, {allocated()});
    writer.set(id("web"), desired());
    writer.clear(id("gone"));
    advance();
    advance(1h);
    EXPECT_EQ(started(), 0u);
    EXPECT_EQ(writer.next_wake(), std::nullopt);
    EXPECT_EQ(writer.counts().pending, 2u);
    server.erase("gone");
    deliver("gone");
    advance();
    EXPECT_EQ(writer.counts().pending, 1u) << "a Service that was deleted is forgotten";
    is_leader = true;
    respond_all();
    EXPECT_TRUE(has("web", desired()));
    EXPECT_EQ(started(), 1u);
}

TEST_F(StatusWriterTest, LeadershipThatEndsCancelsTheWrites) {
    send_first();
    is_leader = false;
    advance();
    EXPECT_TRUE(open().empty());
    EXPECT_EQ(writer.counts(), (WriteCounts{.cancelled = 1, .pending = 1}));
    EXPECT_EQ(writer.next_wake(), std::nullopt);
    advance(1h);
    EXPECT_EQ(started(), 1u);
    is_leader = true;
    respond_all();
    EXPECT_TRUE(has("web", desired()));
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 1, .cancelled = 1}));
}

TEST_F(StatusWriterTest, LeadershipIsTestedDirectlyBeforeEachWrite) {
    for (int calls = 0; calls <= 4; ++calls) {
        SCOPED_TRACE(calls);
        test::StatusWriterFixture each;
        for (const char* name : {"a", "b", "c"}) {
            each.create(name);
            each.writer.set(id(name), desired());
        }
        each.lead_calls_left = calls;
        each.advance();  // the transport fails the test if a write starts later
        EXPECT_EQ(each.is_leader, calls == 4);
        EXPECT_EQ(each.started(), static_cast<size_t>(std::max(0, calls - 1)));
        EXPECT_EQ(each.open().size(), calls == 4 ? 3u : 0u);
        EXPECT_EQ(each.writer.counts().pending, 3u);
    }
}

TEST_F(StatusWriterTest, TwoWritersThatFightWriteEveryTenSeconds_STATUS004) {
    send_first();
    respond_all();
    deliver("web");
    reported.clear();
    const auto until = now + 65s;
    while (now < until) {
        server.at("web").ingress = {address("198.51.100.1")};  // our marker stays
        ++server.at("web").version;
        deliver("web");
        respond_all();
        deliver("web");
        advance(500ms);
        respond_all();
    }
    EXPECT_EQ(started(), 1u + 6u);
    EXPECT_EQ(events(), Lines(6,
                              "StatusConflict web: Another writer changed the status that Penstock wrote; it "
                              "was written again"));
    // A new desired status does not wait.
    respond_all();
    writer.set(id("web"), desired("203.0.113.8"));
    respond_all();
    EXPECT_TRUE(has("web", desired("203.0.113.8")));
}

TEST_F(StatusWriterTest, ForeignIngressIsLeftAloneAndCounted_STATUS003) {
    create("web", {address("198.51.100.1")});
    writer.set(id("web"), desired());
    advance(1h);
    EXPECT_EQ(started(), 0u);
    EXPECT_EQ(writer.foreign(), 1u);
    EXPECT_EQ(writer.counts().pending, 0u);
    server.at("web").ingress.clear();
    ++server.at("web").version;
    deliver("web");
    respond_all();
    EXPECT_TRUE(has("web", desired()));
    EXPECT_EQ(writer.foreign(), 0u);
    create("mail", {address("198.51.100.1")});
    writer.set(id("mail"), desired("203.0.113.8"));
    advance();
    EXPECT_EQ(writer.foreign(), 1u);
    writer.clear(id("mail"));
    advance();
    EXPECT_EQ(writer.foreign(), 0u);
}

TEST_F(StatusWriterTest, ClearRemovesEachTraceAndForgets_LB013) {
    create("web", {address("203.0.113.7")}, {allocated(), programmed(), {"example.com/A", "True", "A", ""}});
    writer.clear(id("web"));
    writer.clear(id("web"));
    respond_all();
    EXPECT_TRUE(has("web", {}));
    EXPECT_TRUE(server.at("web").conditions.contains("example.com/A"));
    EXPECT_EQ(events(), Lines{"IPReleased web: Released 203.0.113.7"});
    EXPECT_EQ(started(), 1u);
    // Forgotten: what happens to the Service later is of no interest.
    server.at("web").put(allocated());
    server.at("web").ingress = {address("203.0.113.7")};
    ++server.at("web").version;
    deliver("web");
    advance(1h);
    EXPECT_EQ(started(), 1u);
    // set() again before anything was removed.
    writer.clear(id("web"));
    writer.set(id("web"), desired());
    advance();
    EXPECT_EQ(started(), 1u);
}

TEST_F(StatusWriterTest, ClearRemovesAWriteWhoseResponseWasLost_LB013) {
    for (const bool is_leadership_lost : {false, true}) {
        SCOPED_TRACE(is_leadership_lost);
        const std::string name = is_leadership_lost ? "mail" : "web";
        create(name);
        writer.set(id(name), desired());
        advance(1min);
        ASSERT_EQ(open().size(), 1u);
        EXPECT_EQ(server.at(name).apply(open().front().request.body), 200);
        if (is_leadership_lost) {
            is_leader = false;
            advance();
            is_leader = true;
        } else {
            transport.fake.fail(TransportError::Kind::Timeout, "timeout");
        }
        writer.clear(id(name));
        advance();
        advance(1min);  // the store has nothing to remove yet
        EXPECT_TRUE(open().empty());
        deliver(name);
        respond_all();
        EXPECT_TRUE(has(name, {}));
        EXPECT_EQ(writer.counts().pending, 0u);
    }
}

TEST_F(StatusWriterTest, ALostResponseIsConfirmedByTheWatch_EVT003) {
    send_first();
    EXPECT_EQ(server.at("web").apply(open().front().request.body), 200);
    transport.fake.fail(TransportError::Kind::Broken, "reset");
    advance();
    EXPECT_TRUE(reported.empty());
    deliver("web");
    advance(1min);
    EXPECT_EQ(started(), 1u) << "it is equal";
    EXPECT_EQ(events(), Lines{"IPAllocated web: Allocated 203.0.113.7"});
}

TEST_F(StatusWriterTest, AnUnreadableResponseWaitsForTheWatch) {
    send_first();
    EXPECT_EQ(server.at("web").apply(open().front().request.body), 200);
    transport.fake.answer(200, "<html>");
    advance();
    advance(9s);
    EXPECT_EQ(started(), 1u);
    deliver("web");
    advance(1min);
    EXPECT_EQ(started(), 1u);
    EXPECT_EQ(writer.counts(), (WriteCounts{.written = 1}));
}

TEST_F(StatusWriterTest, WhatTheServerDropsIsNotWrittenAgain_STATUS004) {
    create("web");
    const ServiceStatus proxy = with_addresses({address("203.0.113.7", "Proxy")});
    writer.set(id("web"), proxy);
    for (int round = 0; round < 5; ++round) {
        advance(1min);
        while (!open().empty()) {
            EXPECT_EQ(server.at("web").apply(open().front().request.body), 200);
            server.at("web").ingress[0].ip_mode.clear();  // a server before 1.29
            transport.fake.answer(200, server.at("web").text());
            advance();
        }
        ++server.at("web").version;
        deliver("web");
    }
    EXPECT_EQ(started(), 1u);
    EXPECT_EQ(events(), Lines{"IPAllocated web: Allocated 203.0.113.7"});
}

// Each gateway that serves the Service has an Event of its own (event_observer.hpp).
TEST_F(StatusWriterTest, TheConditionProgrammedHasNoEvent_EVT003) {
    send_first();
    respond_all();
    ServiceStatus status = desired();
    status.conditions.push_back(programmed());
    writer.set(id("web"), status);
    respond_all();
    ASSERT_EQ(events(), (Lines{"IPAllocated web: Allocated 203.0.113.7"}));
    EXPECT_EQ(reported[0].type, Event::Type::Normal);
    EXPECT_EQ(reported[0].kind, "Service");
}

TEST_F(StatusWriterTest, AServiceWithoutVersionIsNotWritten_STATUS001) {
    create("web");
    store.at(id("web")).resource_version.clear();
    writer.set(id("web"), desired());
    advance(1h);
    EXPECT_EQ(started(), 0u);
}

}  // namespace status_writer_test
}  // namespace penstock::kube
