// SPDX-License-Identifier: Apache-2.0
#include "control/sync/stream/state_session.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/sync/model_gateway.hpp"
#include "tests/unit/sync/objects.hpp"

namespace penstock::sync {
namespace state_session_test {

using namespace std::chrono_literals;
using test::changes_of;
using test::service_at;
using test::slice_of;
using test::without_service;
using test::without_slice;
using Refusal = test::ModelGateway::Refusal;
using Time = StateSession::Time;

const Refusal kNoRoom{"CapacityExceeded", "no room"};

// Records calls as lines: "+ edge-1 default/a ExternalIPNotAllowed".
class Listener final : public Observer {
 public:
    void on_notice_appeared(const std::string& gateway, const semantics::ObjectNotice& about) override {
        told.push_back("+ " + gateway + " " + about.object.name + " " + about.notice.reason);
    }
    void on_notice_gone(const std::string& gateway, const semantics::ObjectNotice& about) override {
        told.push_back("- " + gateway + " " + about.object.name + " " + about.notice.reason);
    }
    void on_refused(const std::string& gateway, const model::ServiceKey& key, const std::string& reason,
                    const std::string&) override {
        told.push_back("refused " + gateway + " " + key.to_string() + " " + reason);
    }
    void on_programmed(const std::string& gateway, const model::ServiceKey& key) override {
        told.push_back("programmed " + gateway + " " + key.to_string());
    }
    void on_served(const std::string& gateway, const kube::ObjectName& service, bool is_served) override {
        told.push_back((is_served ? "served " : "not served ") + gateway + " " + service.name);
    }
    void on_reachable(const std::string&, bool) override {}
    std::vector<std::string> take() { return std::exchange(told, {}); }

 private:
    std::vector<std::string> told;
};

class StateSessionTest : public testing::Test {
 protected:
    // The next call is late enough after the last change for every window to be over.
    void changes(kube::Changes heard) {
        now_ += 10s;
        session_.on_changes(std::move(heard), now_);
        now_ += kSettle;
    }
    void open() {
        session_.on_stream_opened();
        ASSERT_TRUE(session_.on_identity(gateway_.identity(), now_));
    }
    void lose_stream() {
        session_.on_stream_ended();
        gateway_.drop_parts();
    }
    // The next state complete, or the first of its parts if there are several. Not answered.
    v1::StateMessage sent() {
        auto message = session_.next(now_);
        EXPECT_TRUE(message);
        return message.value_or(v1::StateMessage());
    }
    void answer(const v1::StateMessage& message) {
        auto applied = gateway_.take(message);
        ASSERT_TRUE(applied) << applied.error().what;
        ASSERT_TRUE(*applied) << "more parts are awaited";
        ASSERT_TRUE(session_.on_applied(**applied, now_));
    }
    // Runs until the session has nothing more to send.
    void settle() {
        while (auto message = session_.next(now_)) {
            auto applied = gateway_.take(*message);
            ASSERT_TRUE(applied) << applied.error().what;
            if (*applied) {
                ASSERT_TRUE(session_.on_applied(**applied, now_));
            }
        }
    }
    void start_with(kube::Changes heard) {
        changes(std::move(heard));
        open();
        settle();
        listener_.take();
        (void)session_.take_log();
    }
    // Number of log lines since the last call that contain `text`.
    size_t said(const std::string& text) {
        const auto lines = session_.take_log();
        return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [&](const LogLine& line) {
            return line.text.find(text) != std::string::npos;
        }));
    }
    GatewayStatus status() const {
        GatewayStatus filled;
        session_.describe(filled, now_);
        return filled;
    }

    Time now_{1h};
    Listener listener_;
    test::ModelGateway gateway_;
    StateSession session_{{.source = "me", .policy = test::sync_policy(), .audit_period = 30min}, &listener_};
};

TEST_F(StateSessionTest, SendsNothingBeforeObjectsAreKnown_GEN012) {
    open();
    EXPECT_FALSE(session_.next(now_));
    changes({});
    EXPECT_TRUE(session_.next(now_)) << "an empty folder is a statement";
}

TEST_F(StateSessionTest, SaysNothingAboutObjectsBeforeTheyAreKnown_GEN012) {
    gateway_.node_name = "edge-1";
    open();
    EXPECT_EQ(said("NodeNotFound"), 0U) << "a list that has not arrived lacks no Node";
    auto there = changes_of({service_at("a", "80.0.0.1")});
    there.nodes["edge-1"] = std::make_shared<const kube::Node>(kube::Node{.meta = {.name = "edge-1"}});
    changes(std::move(there));
    EXPECT_EQ(sent().full().services_size(), 1);
    EXPECT_EQ(said("NodeNotFound"), 0U);
    EXPECT_EQ(listener_.take(), std::vector<std::string>());
}

TEST_F(StateSessionTest, ANodeThatTheFirstListLacksIsMissed_GEN012) {
    gateway_.node_name = "edge-1";
    open();
    changes({});
    (void)sent();
    EXPECT_EQ(said("NodeNotFound"), 1U);
}

TEST_F(StateSessionTest, SendsNothingBeforeTheGatewaySaysWhoItIs) {
    changes(changes_of({service_at("a", "80.0.0.1")}));
    session_.on_stream_opened();
    EXPECT_FALSE(session_.next(now_));
}

TEST_F(StateSessionTest, SendsAFullStateThenDifferences) {
    changes(
        changes_of({service_at("a", "80.0.0.1"), service_at("b", "80.0.0.2"), service_at("d", "80.0.0.9")}));
    open();
    const auto first = sent();
    ASSERT_TRUE(first.has_full());
    EXPECT_EQ(first.full().version().source(), "me");
    EXPECT_EQ(first.full().version().version(), 1u);
    EXPECT_EQ(first.full().services_size(), 3);
    EXPECT_TRUE(first.full().has_environment());
    answer(first);

    auto second_changes = changes_of({service_at("b", "80.0.0.3"), service_at("c", "80.0.0.4")});
    second_changes.merge(without_service("a"));
    changes(std::move(second_changes));
    const auto second = sent();
    ASSERT_TRUE(second.has_delta());
    EXPECT_EQ(second.delta().base().version(), 1u);
    EXPECT_EQ(second.delta().base().source(), "me");
    EXPECT_EQ(second.delta().version().version(), 2u);
    EXPECT_EQ(second.delta().upsert_size(), 2) << "d stays as it is";
    ASSERT_EQ(second.delta().remove_size(), 1);
    EXPECT_EQ(second.delta().remove(0).name(), "a");
    EXPECT_FALSE(second.delta().has_environment());
}

TEST_F(StateSessionTest, ObjectsThatMeanTheSameSendNothing_ANNG6) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    auto relabelled = service_at("a", "80.0.0.1");
    relabelled.meta.labels["colour"] = "red";
    changes(changes_of({relabelled}));
    EXPECT_FALSE(session_.next(now_));
    EXPECT_EQ(status().lag.count(), 0);
}

TEST_F(StateSessionTest, AnEndpointThatMovesToAnotherSliceIsNeverMissing_GEN008) {
    start_with(changes_of({service_at("a", "80.0.0.1")},
                          {slice_of("a", "a-1", {"10.0.0.1"}), slice_of("a", "a-2", {})}));
    now_ += 10s;
    session_.on_changes(changes_of({}, {slice_of("a", "a-1", {})}), now_);
    EXPECT_FALSE(session_.next(now_)) << "the other half may be on its way";
    now_ += 1ms;
    session_.on_changes(changes_of({}, {slice_of("a", "a-2", {"10.0.0.1"})}), now_);
    EXPECT_EQ(session_.due(), now_ + kSettle);
    now_ += kSettle;
    EXPECT_FALSE(session_.next(now_)) << "together they change nothing";
}

TEST_F(StateSessionTest, AChangeOfConditionsDoesNotWait_GEN008) {
    start_with(changes_of({service_at("a", "80.0.0.1")}, {slice_of("a", "a-1", {"10.0.0.1", "10.0.0.2"})}));
    auto slice = slice_of("a", "a-1", {"10.0.0.1", "10.0.0.2"});
    slice.endpoints[0].ready = false;
    now_ += 10s;
    session_.on_changes(changes_of({}, {slice}), now_);
    EXPECT_EQ(session_.due(), now_);
    settle();
    EXPECT_EQ(gateway_.services.at("default/a:http/TCP").sets(0).endpoints_size(), 1);
}

TEST_F(StateSessionTest, AChangeThatCanBePartOfAMoveWaits_GEN008) {
    const auto former = slice_of("a", "a-1", {"10.0.0.1", "10.0.0.2"});
    start_with(changes_of({service_at("a", "80.0.0.1")}, {former}));
    auto other_port = former;
    other_port.ports[0].port = 8081;
    const std::pair<const char*, kube::Changes> cases[] = {
        {"an endpoint less", changes_of({}, {slice_of("a", "a-1", {"10.0.0.1"})})},
        {"an endpoint more", changes_of({}, {slice_of("a", "a-1", {"10.0.0.1", "10.0.0.2", "10.0.0.3"})})},
        {"another endpoint", changes_of({}, {slice_of("a", "a-1", {"10.0.0.1", "10.0.0.3"})})},
        {"another Service", changes_of({}, {slice_of("b", "a-1", {"10.0.0.1", "10.0.0.2"})})},
        {"another port", changes_of({}, {other_port})},
        {"a new slice", changes_of({}, {slice_of("a", "a-2", {"10.0.0.3"})})},
        {"a Service too", changes_of({service_at("a", "80.0.0.2")}, {former})},
        {"a slice less", without_slice("a-1")},
    };
    for (const auto& [name, change] : cases) {
        now_ += 10s;
        session_.on_changes(change, now_);
        EXPECT_EQ(session_.due(), now_ + kSettle) << name;
        now_ += 10s;
        settle();
        session_.on_changes(changes_of({service_at("a", "80.0.0.1")}, {former}), now_);
        session_.on_changes(without_slice("a-2"), now_);
        now_ += 10s;
        settle();
    }
}

// The removal arrives first, the addition up to 50 ms later, whatever the window of the last batch does to
// either.
TEST_F(StateSessionTest, AServiceDoesNotLoseAnEndpointThatMovesWithin50Ms_GEN008_EP017) {
    start_with(changes_of({service_at("a", "80.0.0.1")},
                          {slice_of("a", "a-1", {"10.0.0.1"}), slice_of("a", "a-2", {})}));
    const auto has_endpoint = [this] {
        return gateway_.services.at("default/a:http/TCP").sets(0).endpoints_size() == 1;
    };
    size_t from = 1;
    for (auto gap = 0ms; gap <= 50ms; gap += 1ms) {
        for (const auto after : {60ms, 1'000ms}) {  // within the window of the last batch, and long after it
            const Time begin = now_ + after;
            const std::string source = "a-" + std::to_string(from);
            const std::string target = "a-" + std::to_string(3 - from);
            for (now_ += 1ms; now_ < begin + 300ms; now_ += 1ms) {
                if (now_ == begin) {
                    session_.on_changes(changes_of({}, {slice_of("a", source, {})}), now_);
                }
                if (now_ == begin + gap) {
                    session_.on_changes(
                        changes_of({}, {slice_of("a", target, {"10.0.0." + std::to_string(from)})}), now_);
                }
                settle();
                ASSERT_TRUE(has_endpoint())
                    << "gap " << gap.count() << " ms, " << (now_ - begin) / 1ms << " ms after the removal";
            }
            from = 3 - from;
        }
    }
    EXPECT_EQ(status().lag, 0ms);
}

TEST_F(StateSessionTest, TheLastEndpointsLossWaitsAndEverythingElseDoesNot_GEN008) {
    start_with(
        changes_of({service_at("a", "80.0.0.1"), service_at("b", "80.0.0.2")},
                   {slice_of("a", "a-1", {"10.0.0.1"}), slice_of("b", "b-1", {"10.0.0.2", "10.0.0.3"})}));
    const auto endpoints = [this](const std::string& name) {
        return gateway_.services.at("default/" + name + ":http/TCP").sets(0).endpoints_size();
    };
    changes(changes_of({}, {slice_of("a", "a-1", {}), slice_of("b", "b-1", {"10.0.0.3"})}));
    settle();
    EXPECT_EQ(endpoints("b"), 1) << "another one is left";
    EXPECT_EQ(endpoints("a"), 1);
    EXPECT_EQ(status().lag, kSettle);
    EXPECT_EQ(session_.due(), now_ + kLossWait);
    now_ += kLossWait;
    EXPECT_EQ(status().desired_version, status().applied_version + 1);
    settle();
    EXPECT_EQ(endpoints("a"), 0);
    EXPECT_EQ(status().lag, 0ms);
    EXPECT_EQ(status().desired_version, status().applied_version);

    changes(changes_of({}, {slice_of("a", "a-1", {"10.0.0.1"})}));
    settle();
    EXPECT_EQ(endpoints("a"), 1);
    changes(changes_of({}, {slice_of("a", "a-1", {})}));
    settle();
    now_ += 1ms;
    session_.on_changes(without_service("a"), now_);
    now_ += 50ms;
    settle();
    EXPECT_EQ(gateway_.services.size(), 1U) << "a Service that is deleted goes at once";
}

TEST_F(StateSessionTest, AFullStateHasWhatIsHeldBackAsItWas_GEN008) {
    start_with(changes_of({service_at("a", "80.0.0.1")}, {slice_of("a", "a-1", {"10.0.0.1"})}));
    changes(changes_of({}, {slice_of("a", "a-1", {})}));
    settle();
    lose_stream();
    gateway_.applied.set_source("somebody else");
    open();
    const auto full = sent();
    ASSERT_TRUE(full.has_full());
    EXPECT_EQ(full.full().services(0).sets(0).endpoints_size(), 1);
    answer(full);
    now_ += kLossWait;
    settle();
    EXPECT_EQ(gateway_.services.at("default/a:http/TCP").sets(0).endpoints_size(), 0);
}

// It is still logged and shown: a node gateway serves its address as kube-proxy does.
TEST_F(StateSessionTest, TheClusterHearsNothingAboutAServiceOfAForeignClass_LB002) {
    gateway_.refuse = [](const v1::ServiceKey&) { return kNoRoom; };
    auto of_class = [](const std::string& name, const std::string& type, const std::string& lb_class) {
        auto service = service_at(name, "81.0.0.1");
        service.type = type;
        service.load_balancer_class = lb_class;
        return service;
    };
    const std::vector<kube::Service> all = {of_class("foreign", "LoadBalancer", "metallb.io/metallb"),
                                            of_class("leftover", "ClusterIP", "metallb.io/metallb"),
                                            of_class("none", "LoadBalancer", ""),
                                            of_class("own", "LoadBalancer", "penstock.io/gateway")};
    changes(changes_of(all));
    open();
    settle();
    EXPECT_EQ(said("Service default/foreign: ExternalIPNotAllowed"), 1U);
    const auto count = [](const std::vector<std::string>& told, const std::string& name) {
        return std::ranges::count_if(told, [&](const std::string& line) {
            return line.find("default/" + name + ":") != std::string::npos ||
                   line.find(" " + name + " ") != std::string::npos;
        });
    };
    auto told = listener_.take();
    EXPECT_EQ(count(told, "foreign"), 0);
    for (const char* name : {"leftover", "none", "own"}) {
        EXPECT_EQ(count(told, name), 2) << name << ": a notice and a refusal";
    }
    gateway_.refuse = [](const v1::ServiceKey&) { return Refusal(); };
    for (const kube::Service& service : all) {
        auto allowed = service;
        allowed.external_ips = {"80.0.0." + std::to_string(service.meta.name.size())};
        changes(changes_of({allowed}));
        settle();
    }
    told = listener_.take();
    EXPECT_EQ(count(told, "foreign"), 0);
    EXPECT_EQ(count(told, "own"), 2) << "the notice is gone, and it is programmed";
}

TEST_F(StateSessionTest, AStormIsMergedIntoPortions_GEN008) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    now_ += 10s;
    int states = 0;
    for (int i = 0; i < 1'000; ++i) {
        now_ += 1ms;
        session_.on_changes(changes_of({service_at(
                                "a", "80.0." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250))}),
                            now_);
        if (const auto message = session_.next(now_)) {
            ++states;
            answer(*message);
        }
    }
    EXPECT_GE(states, 15);
    EXPECT_LE(states, 25) << "one in 50 ms";
}

TEST_F(StateSessionTest, ChangesWhileAnAnswerIsAwaitedBecomeOneDifference) {
    changes(changes_of({service_at("a", "80.0.0.1")}));
    open();
    const auto first = sent();
    changes(changes_of({service_at("a", "80.0.0.2")}));
    EXPECT_FALSE(session_.next(now_));
    changes(changes_of({service_at("a", "80.0.0.3")}));
    EXPECT_FALSE(session_.next(now_));
    answer(first);
    const auto second = sent();
    ASSERT_EQ(second.delta().upsert_size(), 1);
    EXPECT_EQ(second.delta().upsert(0).frontends(0).address(), "80.0.0.3");
    answer(second);
    EXPECT_FALSE(session_.next(now_));
}

TEST_F(StateSessionTest, AReconnectedGatewayThatHasItAllIsLeftAlone) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    lose_stream();
    open();
    EXPECT_FALSE(session_.next(now_));
    changes(changes_of({service_at("a", "80.0.0.2")}));
    EXPECT_TRUE(sent().has_delta());
}

TEST_F(StateSessionTest, AReconnectedGatewayThatMissedChangesGetsTheDifference) {
    start_with(changes_of({service_at("a", "80.0.0.1"), service_at("b", "80.0.0.9")}));
    lose_stream();
    changes(changes_of({service_at("a", "80.0.0.2")}));
    EXPECT_FALSE(session_.next(now_)) << "nobody is there";
    changes(without_service("b"));
    EXPECT_FALSE(session_.next(now_));
    open();
    const auto message = sent();
    EXPECT_EQ(message.delta().base().version(), 1u);
    EXPECT_EQ(message.delta().upsert_size(), 1);
    EXPECT_EQ(message.delta().remove_size(), 1);
}

TEST_F(StateSessionTest, AGatewayThatWasAwayForLongCostsBoundedMemoryAndGetsAFullState) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    lose_stream();
    for (size_t i = 0; i <= kDirtyFloor / 1'000; ++i) {
        kube::Changes come;
        kube::Changes go;
        for (size_t j = 0; j < 1'001; ++j) {
            const std::string name = "s" + std::to_string(i * 1'001 + j);
            come.merge(changes_of({service_at(name, "81.0.0.1")}));
            go.merge(without_service(name));
        }
        changes(std::move(come));
        session_.work_in_changes(now_);
        changes(std::move(go));
        session_.work_in_changes(now_);
    }
    (void)session_.take_log();
    changes(changes_of({service_at("b", "80.0.0.2")}));
    open();
    const auto message = sent();
    ASSERT_TRUE(message.has_full()) << "removing what it never had would be dearer";
    EXPECT_EQ(message.full().services_size(), 2);
    answer(message);
    EXPECT_EQ(status().audit_differences, 0u) << "it was no audit";
}

TEST_F(StateSessionTest, AnAnswerLostWithItsStreamIsFoundInTheNextIdentity) {
    changes(changes_of({service_at("a", "80.0.0.1")}));
    open();
    ASSERT_TRUE(*gateway_.take(sent()));
    lose_stream();
    open();
    EXPECT_FALSE(session_.next(now_));
    EXPECT_EQ(status().lag.count(), 0);
    EXPECT_EQ(status().services, 1u);
    EXPECT_EQ(session_.due(), now_ + 30min) << "it is audited like any other";
}

TEST_F(StateSessionTest, ADifferenceLostWithItsStreamIsSentAgainWithWhatCameAfter) {
    start_with(changes_of({service_at("a", "80.0.0.1"), service_at("b", "80.0.0.2")}));
    changes(changes_of({service_at("a", "80.0.0.3")}));
    EXPECT_TRUE(sent().has_delta());
    lose_stream();
    changes(changes_of({service_at("b", "80.0.0.4")}));
    EXPECT_GT(status().lag, 9s) << "since the first of the two";
    open();
    const auto message = sent();
    EXPECT_EQ(message.delta().base().version(), 1u);
    EXPECT_EQ(message.delta().version().version(), 3u) << "2 may have been seen";
    EXPECT_EQ(message.delta().upsert_size(), 2);
}

TEST_F(StateSessionTest, AGatewayThatHasSomethingElseGetsAFullState) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    const std::vector<std::pair<std::string, uint64_t>> others{{"", 0}, {"somebody else", 1}, {"me", 77}};
    for (const auto& [source, version] : others) {
        lose_stream();
        gateway_.applied.set_source(source);
        gateway_.applied.set_version(version);
        open();
        const auto message = sent();
        EXPECT_TRUE(message.has_full());
        answer(message);
    }
}

TEST_F(StateSessionTest, ARefusedStreamStartsAgainFromAFullState) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    lose_stream();
    session_.on_refused_stream();
    changes({});
    session_.on_stream_opened();
    ASSERT_TRUE(session_.on_identity(gateway_.identity(), now_));
    EXPECT_TRUE(sent().has_full());
}

TEST_F(StateSessionTest, ALargeStateIsSentInPartsAndAnsweredOnce_GEN007) {
    kube::Changes many;
    for (int i = 0; i < 100; ++i) {
        std::vector<std::string> addresses;
        for (int j = 0; j < 1'000; ++j) {
            addresses.push_back("10." + std::to_string(i) + "." + std::to_string(j / 250) + "." +
                                std::to_string(1 + j % 250));
        }
        const std::string name = "s" + std::to_string(i);
        many.merge(changes_of({service_at(name, "80.0.1." + std::to_string(1 + i))},
                              {slice_of(name, name + "-1", addresses)}));
    }
    changes(std::move(many));
    open();
    settle();
    EXPECT_GT(gateway_.parts_of_last_state, 1u);
    EXPECT_EQ(gateway_.services.size(), 100u);
    EXPECT_EQ(status().full_states, 1u);
    EXPECT_EQ(status().services, 100u);

    lose_stream();
    session_.on_refused_stream();
    open();
    EXPECT_TRUE(sent().full().more());
    EXPECT_FALSE(session_.awaits_answer()) << "not all is sent";
    lose_stream();
    open();
    settle();
    EXPECT_EQ(gateway_.services.size(), 100u) << "the parts of the stream before are forgotten on both sides";
}

TEST_F(StateSessionTest, ANewIdentityIsEvaluatedAnew) {
    auto local = service_at("a", "80.0.0.1");
    local.external_traffic_policy = "Local";
    gateway_.node_name = "edge-1";
    changes(changes_of({local}, {slice_of("a", "a-1", {"10.0.0.1"}, "edge-2")}));
    open();
    const auto first = sent();
    EXPECT_EQ(first.full().services(0).sets(0).endpoints_size(), 0) << "edge-1 has none of them";
    answer(first);
    auto renamed = gateway_.identity();
    renamed.set_node_name("edge-2");
    ASSERT_TRUE(session_.on_identity(renamed, now_));
    EXPECT_EQ(sent().delta().upsert(0).sets(0).endpoints_size(), 1);
}

TEST_F(StateSessionTest, AnAnswerToSomethingElseIsAnError) {
    changes({});
    open();
    v1::Applied applied;
    EXPECT_FALSE(session_.on_applied(applied, now_));
    (void)sent();
    applied.mutable_version()->set_source("me");
    applied.mutable_version()->set_version(9);
    EXPECT_FALSE(session_.on_applied(applied, now_));
}

TEST_F(StateSessionTest, RefusalsAndNoticesAreSaidOnceAndWhenTheyAreOver_XIP006) {
    gateway_.refuse = [](const v1::ServiceKey& key) { return key.name() == "a" ? kNoRoom : Refusal(); };
    changes(changes_of({service_at("a", "81.0.0.1")}));
    open();
    const auto first = sent();
    EXPECT_EQ(said("ExternalIPNotAllowed"), 1u);
    answer(first);
    EXPECT_EQ(said("refused service default/a:http/TCP: no room"), 1u);
    EXPECT_EQ(status().refused, 1u);
    EXPECT_EQ(listener_.take(),
              (std::vector<std::string>{"+ edge-1 a ExternalIPNotAllowed",
                                        "refused edge-1 default/a:http/TCP CapacityExceeded"}));

    auto again = service_at("a", "81.0.0.2");
    changes(changes_of({again, service_at("b", "80.0.0.1")}));
    settle();
    EXPECT_EQ(said("refused"), 0u) << "nothing about it is new";
    const auto told = listener_.take();
    EXPECT_EQ(std::ranges::count(told, "programmed edge-1 default/b:http/TCP"), 1);

    gateway_.refuse = [](const v1::ServiceKey&) { return Refusal(); };
    changes(changes_of({service_at("a", "80.0.0.2")}));
    settle();
    EXPECT_EQ(status().refused, 0u);
    EXPECT_EQ(said("service default/a:http/TCP has been applied"), 1u);
    EXPECT_EQ(listener_.take(), (std::vector<std::string>{"- edge-1 a ExternalIPNotAllowed",
                                                          "programmed edge-1 default/a:http/TCP"}));
}

TEST_F(StateSessionTest, NewRulesAboutExternalIpsAreSentAndNoticesCounted_XIP006) {
    start_with(changes_of({service_at("a", "81.0.0.1"), service_at("b", "80.0.0.1")}));
    EXPECT_EQ(status().notices, (std::map<std::string, uint64_t>{{"ExternalIPNotAllowed", 1}}));
    const semantics::ExternalIpRule rule{.namespaces = {"default"},
                                         .cidrs = {Prefix::parse("81.0.0.0/24").value()}};
    session_.on_external_ip_rules({rule}, now_);
    const auto granted = sent();
    EXPECT_EQ(granted.delta().upsert_size(), 1)
        << "the other one has its address from --allowed-external-cidrs";
    answer(granted);
    EXPECT_EQ(listener_.take(), (std::vector<std::string>{"- edge-1 a ExternalIPNotAllowed"}));
    session_.on_external_ip_rules({rule}, now_);
    EXPECT_FALSE(session_.next(now_)) << "nothing is new";
    session_.on_external_ip_rules({}, now_);
    settle();
    EXPECT_EQ(status().notices, (std::map<std::string, uint64_t>{{"ExternalIPNotAllowed", 2}}));
}

v1::Observed observed_by_gateway(const std::vector<std::pair<std::string, std::string>>& notices) {
    v1::Observed message;
    for (const auto& [service, reason] : notices) {
        auto& each = *message.add_notices();
        each.mutable_key()->set_namespace_("default");
        each.mutable_key()->set_name(service);
        each.mutable_key()->set_port_name("http");
        each.mutable_key()->set_protocol(v1::PROTOCOL_TCP);
        each.mutable_notice()->set_reason(reason);
        each.mutable_notice()->set_message(std::string(5'000, 'm'));
    }
    return message;
}

TEST_F(StateSessionTest, WhatTheGatewayObservesIsToldOnceAndWhenItIsOver_NAT002_HC005) {
    start_with(changes_of({service_at("a", "80.0.0.1"), service_at("b", "80.0.0.2")}));
    session_.on_observed(observed_by_gateway({{"a", "SNATPortExhausted"}}));
    EXPECT_EQ(listener_.take(), std::vector<std::string>{"+ edge-1 a SNATPortExhausted"});
    session_.on_observed(observed_by_gateway({{"a", "SNATPortExhausted"}, {"b", "NodePortInUse"}}));
    EXPECT_EQ(listener_.take(), std::vector<std::string>{"+ edge-1 b NodePortInUse"});
    lose_stream();
    open();
    session_.on_observed(observed_by_gateway({{"b", "NodePortInUse"}}));
    EXPECT_EQ(listener_.take(), std::vector<std::string>{"- edge-1 a SNATPortExhausted"})
        << "another stream is no news";
    EXPECT_EQ(said("no longer: Service default/a: SNATPortExhausted"), 1U);
}

TEST_F(StateSessionTest, ObservationsBeforeTheObjectsAreKnownAreKept_GEN012) {
    open();
    session_.on_observed(observed_by_gateway({{"a", "SNATPortExhausted"}}));
    EXPECT_TRUE(listener_.take().empty());
    changes(changes_of({service_at("a", "80.0.0.1")}));
    settle();
    const auto told = listener_.take();
    EXPECT_EQ(std::ranges::count(told, "+ edge-1 a SNATPortExhausted"), 1);
}

// As with refusals: foreign Services, invalid reasons and endless texts are rejected.
TEST_F(StateSessionTest, AGatewayCannotSayWhatItLikes_EVT001) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    session_.on_observed(
        observed_by_gateway({{"stranger", "NodePortInUse"}, {"a", "not a word"}, {"a", ""}}));
    EXPECT_TRUE(listener_.take().empty());
    session_.on_observed(observed_by_gateway({{"a", "NodePortInUse"}}));
    const auto lines = session_.take_log();
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_LT(lines[0].text.size(), 1'200U);
}

// A gateway of an older version sends a text without a reason.
TEST_F(StateSessionTest, ARefusalIsToldUnderTheGatewaysReason_EVT001) {
    gateway_.refuse = [](const v1::ServiceKey& key) {
        return Refusal{key.name() == "a" ? "FrontendConflict" : "", "belongs to another"};
    };
    changes(changes_of({service_at("a", "80.0.0.1"), service_at("b", "80.0.0.2")}));
    open();
    settle();
    EXPECT_EQ(listener_.take(),
              (std::vector<std::string>{"refused edge-1 default/a:http/TCP FrontendConflict",
                                        "refused edge-1 default/b:http/TCP InvalidService"}));
}

// Owned by Penstock, with this address in its status.
kube::Service load_balancer(const std::string& name, const std::string& address) {
    kube::Service service = service_at(name, "80.0.0.9");
    service.external_ips.clear();
    service.type = "LoadBalancer";
    service.load_balancer_class = "penstock.io/gateway";
    service.ingress = {{.ip = address, .hostname = {}, .ip_mode = {}, .ports = {}}};
    return service;
}

TEST_F(StateSessionTest, ReportsWhichLoadBalancersTheGatewayServes_PRESENCE001) {
    gateway_.refuse = [](const v1::ServiceKey& key) { return key.name() == "b" ? kNoRoom : Refusal(); };
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    changes(changes_of({load_balancer("b", "203.0.113.2"), load_balancer("c", "203.0.113.3")}));
    const auto served = [this] {
        auto lines = listener_.take();
        std::erase_if(lines,
                      [](const std::string& line) { return line.find("served ") == std::string::npos; });
        return lines;
    };
    static_cast<void>(served());
    settle();
    EXPECT_EQ(served(), std::vector<std::string>{"served edge-1 c"})
        << "the gateway refuses b, and a has no address";
    gateway_.refuse = [](const v1::ServiceKey&) { return Refusal(); };
    changes(changes_of({load_balancer("b", "203.0.113.4")}));
    settle();
    EXPECT_EQ(served(), std::vector<std::string>{"served edge-1 b"});
    changes(without_service("c"));
    settle();
    EXPECT_EQ(served(), std::vector<std::string>{"not served edge-1 c"});
}

TEST_F(StateSessionTest, ReportsWhatAGatewayHadBeforeItConnected_PRESENCE001) {
    changes(changes_of({load_balancer("c", "203.0.113.3")}));
    open();
    settle();
    const auto first = listener_.take();
    EXPECT_NE(std::ranges::find(first, "served edge-1 c"), first.end());
    lose_stream();
    open();
    settle();
    EXPECT_EQ(std::ranges::count(listener_.take(), "served edge-1 c"), 0) << "no change";
}

TEST_F(StateSessionTest, AGatewayHasNoSayAboutServicesThatItWasNotSent_EVT002) {
    changes(changes_of({service_at("a", "80.0.0.1")}));
    open();
    auto applied = gateway_.take(sent());
    ASSERT_TRUE(applied && *applied);
    for (const auto outcome : {v1::ServiceResult::OUTCOME_APPLIED, v1::ServiceResult::OUTCOME_REFUSED}) {
        for (int i = 0; i < 100; ++i) {
            v1::ServiceResult& result = *(*applied)->add_services();
            result.mutable_key()->CopyFrom((*applied)->services(0).key());
            result.mutable_key()->set_namespace_("bank");
            result.mutable_key()->set_name("s" + std::to_string(i));
            result.set_outcome(outcome);
            result.set_why("pay elsewhere (CapacityExceeded)");
        }
    }
    ASSERT_TRUE(session_.on_applied(**applied, now_));
    EXPECT_EQ(listener_.take(), (std::vector<std::string>{"programmed edge-1 default/a:http/TCP"}));
    EXPECT_EQ(status().refused, 0u);
    EXPECT_EQ(said("bank"), 0u);
}

TEST_F(StateSessionTest, WhatAGatewaySaysIsKeptInShort_EVT002) {
    gateway_.refuse = [](const v1::ServiceKey&) {
        return Refusal{std::string(1'000, 'Y'), std::string(1'000'000, 'x')};
    };
    changes(changes_of({service_at("a", "80.0.0.1")}));
    open();
    settle();
    for (const LogLine& line : session_.take_log()) {
        EXPECT_LT(line.text.size(), 2'000u);
    }
    EXPECT_EQ(listener_.take(),
              (std::vector<std::string>{"refused edge-1 default/a:http/TCP InvalidService"}));
}

TEST_F(StateSessionTest, ARefusedServiceThatIsDeletedIsNoLongerCounted) {
    gateway_.refuse = [](const v1::ServiceKey&) { return kNoRoom; };
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    EXPECT_EQ(status().refused, 1u);
    changes(without_service("a"));
    settle();
    EXPECT_EQ(status().refused, 0u);
}

TEST_F(StateSessionTest, TheAuditFindsAndRepairsWhatIsDifferentAtTheGateway_APISYNC021) {
    gateway_.refuse = [](const v1::ServiceKey& key) { return key.name() == "c" ? kNoRoom : Refusal(); };
    start_with(
        changes_of({service_at("a", "80.0.0.1"), service_at("b", "80.0.0.2"), service_at("c", "80.0.0.3")}));
    // A change unknown to the control plane.
    gateway_.services["default/b:http/TCP"].mutable_frontends(0)->set_port(81);
    EXPECT_FALSE(session_.next(now_));
    EXPECT_EQ(session_.due(), now_ + 30min);
    now_ += 30min;
    settle();
    EXPECT_EQ(status().audit_differences, 1u) << "what is refused again is no difference";
    EXPECT_EQ(gateway_.services["default/b:http/TCP"].frontends(0).port(), 80u);
    EXPECT_EQ(said("audit: service default/b:http/TCP was different at the gateway and has been repaired"),
              1u);
    now_ += 30min;
    settle();
    EXPECT_EQ(status().audit_differences, 1u) << "nothing is different any more";
    EXPECT_EQ(status().full_states, 3u);
}

TEST_F(StateSessionTest, WhatChangesWithTheAuditIsNoDifference_APISYNC021) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    now_ += 30min;
    session_.on_changes(changes_of({service_at("a", "80.0.0.2"), service_at("b", "80.0.0.3")}), now_ - 1s);
    const auto message = sent();
    EXPECT_TRUE(message.has_full());
    answer(message);
    EXPECT_EQ(status().audit_differences, 0u);
}

TEST_F(StateSessionTest, AnAuditCutShortIsMadeUpFor_APISYNC021) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    gateway_.services.begin()->second.mutable_frontends(0)->set_port(81);
    now_ += 30min;
    EXPECT_TRUE(sent().has_full());
    lose_stream();
    open();
    settle();
    EXPECT_EQ(gateway_.services.begin()->second.frontends(0).port(), 80u);
    EXPECT_EQ(status().audit_differences, 1u);
}

TEST_F(StateSessionTest, WhatChangesWhileAnAuditIsMadeUpForIsNoDifference_APISYNC021) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    now_ += 30min;
    EXPECT_TRUE(sent().has_full());
    lose_stream();
    open();
    changes(changes_of({service_at("a", "80.0.0.2"), service_at("b", "80.0.0.3")}));
    EXPECT_TRUE(sent().has_full());
    lose_stream();
    open();
    settle();
    EXPECT_EQ(gateway_.services.size(), 2u);
    EXPECT_EQ(status().audit_differences, 0u);
}

TEST_F(StateSessionTest, StatusTellsLagAndHowLongAChangeTook) {
    start_with(changes_of({service_at("a", "80.0.0.1")}));
    const auto before = status().apply_latency;
    changes(changes_of({service_at("a", "80.0.0.2")}));
    const auto message = sent();
    now_ += 4ms;
    EXPECT_EQ(status().lag, kSettle + 4ms);
    EXPECT_EQ(status().desired_version, 2u);
    EXPECT_EQ(status().applied_version, 1u);
    answer(message);
    EXPECT_EQ(status().lag, 0ms);
    EXPECT_EQ(status().applied_version, 2u);
    EXPECT_EQ(status().deltas, 1u);
    auto expected = before;
    expected.observe(kSettle + 4ms);
    EXPECT_EQ(status().apply_latency.counts, expected.counts);
}

}  // namespace state_session_test
}  // namespace penstock::sync
