// SPDX-License-Identifier: Apache-2.0
// Rules follow the configuration by difference, also if the NIC refuses some of them.
#include "control/gateway/rules/flow_follower.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/fake_flow_driver.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/prng.hpp"
#include "tests/unit/gateway/flow_bed.hpp"

namespace penstock::gateway {
namespace flow_follower_test {

using drivers::FlowKind;
using drivers::FlowRule;
using test::FakeFlowDriver;
using test::FakeFlows;
using test::SeenFlow;
using State = FlowView::State;

FlowFollower::Port port_with(FakeFlows& fake, bool is_isolated = false) {
    auto flows = std::make_unique<drivers::PortFlows>(
        std::make_unique<FakeFlowDriver>(fake),
        drivers::FlowPortFacts{.rx_queues = 4, .rss_types = 0, .rss_key = {}});
    if (is_isolated) {
        EXPECT_TRUE(flows->add(FlowRule::isolation()));
    }
    return {{.id = NicPortId{0}, .reply_hash = {}, .support = takes_all(), .is_isolated = is_isolated},
            std::move(flows)};
}

std::vector<FlowFollower::Port> one(FlowFollower::Port port) {
    std::vector<FlowFollower::Port> ports;
    ports.push_back(std::move(port));
    return ports;
}

config::Snapshot publish_to(FlowFollower& follower, const FlowConfig& config) {
    config::Snapshot next = snapshot_of(config);
    follower.before_publish(next);
    return next;
}

class Follows : public testing::Test {
 protected:
    config::Snapshot publish(const FlowConfig& config) { return publish_to(follower, config); }
    void settle() {
        for (int steps = 0; follower.work(); ++steps) {
            ASSERT_LT(steps, 100) << "it never ends";
        }
    }
    std::map<std::string, State> states() {
        std::map<std::string, State> out;
        for (const FlowView& view : follower.list()) {
            if (!view.match.empty()) {
                out[view.match] = view.state;
            }
        }
        return out;
    }

    test::LogCapture log{"drivers"};
    FakeFlows fake;
    FlowFollower follower{{.workers = 1, .budget = 100}, one(port_with(fake))};
};

TEST_F(Follows, TheDifferenceAndNoMore) {
    publish(flow_config({}, {}, {"10.0.0.0/8", "198.51.100.0/24"}));
    settle();
    EXPECT_EQ(fake.log, (std::vector<std::string>{"create", "create"}));
    publish(flow_config({}, {}, {"10.0.0.0/8", "203.0.113.0/24"}));
    settle();
    EXPECT_EQ(fake.log, (std::vector<std::string>{"create", "create", "destroy", "create"}));
    settle();
    EXPECT_EQ(fake.log.size(), 4U);
    EXPECT_EQ(states(), (std::map<std::string, State>{{"from 10.0.0.0/8", State::Installed},
                                                      {"from 203.0.113.0/24", State::Installed}}));
}

TEST_F(Follows, ADropThatIsWantedNoMoreIsGoneBeforeTheConfigurationIsPublished) {
    publish(
        flow_config({denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/8"})}, {}, {"198.51.100.0/24"}));
    settle();
    ASSERT_EQ(fake.live.size(), 2U);
    publish(
        flow_config({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})}, {}, {"198.51.100.0/24"}));
    EXPECT_EQ(fake.live.size(), 1U) << "without a step of the thread";
}

// The plan was made for a configuration that is no longer the newest when its rules are installed.
TEST_F(Follows, AnOldPlanMakesNoDropThatTheNewConfigurationDoesNotCover) {
    std::vector<std::string> many;
    for (int i = 0; i < 80; ++i) {
        many.push_back("10.0." + std::to_string(i) + ".0/24");
    }
    publish(flow_config({}, {}, many));
    ASSERT_TRUE(follower.work());  // a part of them
    EXPECT_EQ(fake.live.size(), FlowFollower::kRulesPerStep);
    publish(flow_config({}, {}, {"10.0.79.0/24"}));
    EXPECT_EQ(fake.live.size(), 0U);
    settle();
    EXPECT_EQ(fake.live.size(), 1U);
}

TEST_F(Follows, ARefusalIsRememberedWithItsReasonAndTriedAgainWhenThereIsRoom) {
    fake.create = [this](const SeenFlow&) { return fake.live.size() >= 2 ? "no room (rule)" : ""; };
    publish(flow_config({}, {}, {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}));
    settle();
    const auto views = follower.list();
    const auto refused = std::ranges::find(views, State::Refused, &FlowView::state);
    ASSERT_NE(refused, views.end());
    EXPECT_EQ(refused->match, "from 192.168.0.0/16");
    EXPECT_EQ(refused->reason, "no room (rule)");
    publish(flow_config({service("other", {external("192.0.2.80", 80)}, {"10.0.0.1"})}, {},
                        {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}));
    settle();
    EXPECT_EQ(fake.created, 2U) << "not again without a reason";
    publish(flow_config({}, {}, {"172.16.0.0/12", "192.168.0.0/16"}));
    settle();
    EXPECT_EQ(states(), (std::map<std::string, State>{{"from 172.16.0.0/12", State::Installed},
                                                      {"from 192.168.0.0/16", State::Installed}}));
}

TEST_F(Follows, ARuleThatCannotBeRemovedIsShownAndTriedAgain) {
    publish(flow_config({}, {}, {"10.0.0.0/8"}));
    settle();
    fake.destroy = [](uintptr_t) { return "busy (state of the device)"; };
    publish(flow_config({}));
    settle();
    auto views = follower.list();
    ASSERT_FALSE(views.empty());
    EXPECT_EQ(views.front().state, State::Installed);
    EXPECT_EQ(log.count("cannot be removed: busy"), 2U) << "by the publication and by the thread";
    fake.destroy = [](uintptr_t) { return ""; };
    publish(flow_config({}, {}, {"203.0.113.0/24"}));
    settle();
    EXPECT_EQ(states(), (std::map<std::string, State>{{"from 203.0.113.0/24", State::Installed}}));
}

TEST_F(Follows, HitsComeFromTheNic) {
    publish(flow_config({}, {}, {"10.0.0.0/8"}));
    settle();
    fake.hits[1] = {.packets = 12, .bytes = 720};
    const auto views = follower.list();
    ASSERT_TRUE(views.front().hits);
    EXPECT_EQ(views.front().hits->packets, 12U);
    EXPECT_EQ(views.front().hits->bytes, 720U);
}

TEST_F(Follows, APublicationWaitsForOneQueryAndNotForTheList) {
    std::vector<std::string> many;
    for (int i = 0; i < 80; ++i) {
        many.push_back("10.0." + std::to_string(i) + ".0/24");
    }
    publish(flow_config({}, {}, many));
    settle();
    const auto next = flow_config({}, {}, {"10.0.79.0/24"});
    std::thread publisher;
    std::atomic<bool> has_published = false;
    int queries = 0;
    fake.query = [&] {
        if (queries++ == 0) {
            publisher = std::thread([&] {
                publish(next);
                has_published = true;
            });
        }
        if (!has_published) {
            std::this_thread::sleep_for(
                std::chrono::milliseconds(25));  // a slow NIC; two seconds of it in all
        }
    };
    const auto views = follower.list();
    const bool was_in_time = has_published;
    publisher.join();
    EXPECT_TRUE(was_in_time);
    EXPECT_LT(queries, 80) << "rules that the publication took away were not asked for";
    EXPECT_EQ(std::ranges::count(views, State::Installed, &FlowView::state), 80)
        << "what there was when the list was asked for";
    fake.query = [] {};
    EXPECT_EQ(fake.live.size(), 1U);
}

TEST_F(Follows, KindsThatAreNotUsedSayWhy) {
    publish(flow_config({}));
    settle();
    std::map<FlowKind, std::string> reasons;
    for (const FlowView& view : follower.list()) {
        EXPECT_EQ(view.state, State::NotUsed);
        reasons[view.kind] = view.reason;
    }
    EXPECT_EQ(reasons[FlowKind::VipIsolate], "not enabled (--vip-isolate)");
    EXPECT_EQ(reasons[FlowKind::VipMark], "not enabled (--vip-mark)");
}

TEST_F(Follows, NothingIsAskedOfAPortThatIsGone) {
    publish(flow_config({}, {}, {"10.0.0.0/8", "198.51.100.0/24"}));
    settle();
    const auto before = fake.log;
    follower.port_is_gone(NicPortId{0});
    publish(flow_config({}, {}, {"203.0.113.0/24"}));
    settle();
    follower.stop();
    EXPECT_EQ(fake.log, before);
    EXPECT_TRUE(follower.list().empty());
}

TEST_F(Follows, NothingIsLeftAtTheEndAlsoHalfWay) {
    std::vector<std::string> many;
    for (int i = 0; i < 80; ++i) {
        many.push_back("10.0." + std::to_string(i) + ".0/24");
    }
    publish(flow_config({}, {}, many));
    ASSERT_TRUE(follower.work());
    follower.stop();
    EXPECT_TRUE(fake.live.empty());
    EXPECT_FALSE(follower.work());
    EXPECT_TRUE(fake.live.empty());
}

TEST(FlowFollower, ItsThreadFollowsAndEnds) {
    FakeFlows fake;
    FlowFollower follower({.workers = 1, .budget = 100}, one(port_with(fake)));
    follower.start();
    publish_to(follower, flow_config({}, {}, {"10.0.0.0/8"}));
    const auto installed = [&] {
        const auto views = follower.list();
        return std::ranges::count(views, State::Installed, &FlowView::state);
    };
    for (int i = 0; i < 3'000 && installed() == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(installed(), 1);
    follower.stop();
    EXPECT_TRUE(fake.live.empty());
}

TEST(FlowFollower, IsolationStaysOverChangesAndEndsLast) {
    FakeFlows fake;
    FlowFollower follower({.workers = 1, .budget = 100, .isolate = true}, one(port_with(fake, true)));
    publish_to(follower, flow_config({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})}));
    while (follower.work()) {
    }
    EXPECT_TRUE(fake.isolated);
    EXPECT_EQ(fake.live.size(), 3U);  // ARP, ICMPv6, the VIP
    follower.stop();
    EXPECT_EQ(fake.log.back(), "isolate off");
}

TEST(FlowFollower, IsolationIsLeftWhereARuleOfItIsRefused) {
    test::LogCapture log("drivers");
    FakeFlows fake;
    fake.create = [](const SeenFlow& flow) { return flow.items.size() > 1 ? "no room" : ""; };
    FlowFollower follower({.workers = 1, .budget = 100, .isolate = true}, one(port_with(fake, true)));
    publish_to(follower, flow_config({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})}));
    for (int i = 0; i < 10; ++i) {
        follower.work();
    }
    EXPECT_FALSE(fake.isolated);
    EXPECT_TRUE(fake.live.empty());
    EXPECT_EQ(log.count("isolation is over"), 1U);
    const auto views = follower.list();
    EXPECT_TRUE(std::ranges::any_of(views, [](const FlowView& view) {
        return view.reason.starts_with("left, because a rule was refused");
    }));
}

// mlx5 can leave isolation only while the port is stopped.
TEST(FlowFollower, WhereIsolationCannotBeLeftTheRestIsBroughtAllTheSame) {
    test::LogCapture log("drivers");
    FakeFlows fake;
    fake.create = [](const SeenFlow& flow) {
        return flow.items.size() == 2 && flow.has(RTE_FLOW_ACTION_TYPE_QUEUE) ? "" : "no room";
    };
    FlowFollower follower({.workers = 1, .budget = 100, .isolate = true}, one(port_with(fake, true)));
    fake.isolate_refusal[0] = "port must be stopped first";
    publish_to(follower, flow_config({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})}));
    for (int i = 0; i < 10; ++i) {
        follower.work();
    }
    EXPECT_TRUE(fake.isolated);
    EXPECT_EQ(fake.live.size(), 2U);
    EXPECT_EQ(log.count("stay with the kernel"), 1U);
    EXPECT_EQ(log.count("port must be stopped first"), 1U);
    fake.isolate_refusal[0].clear();
}

TEST(FlowFollower, EachRuleThatIsolationLosesIsToldOnceAndLeavingItIsTriedAgain) {
    test::LogCapture log("drivers");
    FakeFlows fake;
    fake.create = [](const SeenFlow& flow) {
        return std::ranges::count(flow.items, RTE_FLOW_ITEM_TYPE_IPV4) > 0 ? "no room" : "";
    };
    FlowFollower follower({.workers = 1, .budget = 100, .isolate = true}, one(port_with(fake, true)));
    fake.isolate_refusal[0] = "port must be stopped first";
    const auto follow = [&](const std::vector<std::string>& addresses) {
        std::vector<model::Service> services;
        for (const auto& address : addresses) {
            services.push_back(service("at-" + address, {external(address, 80)}, {"10.0.0.1"}));
        }
        publish_to(follower, flow_config(std::move(services)));
        for (int i = 0; i < 10; ++i) {
            follower.work();
        }
    };
    follow({"192.0.2.80"});
    EXPECT_EQ(log.count("\"to 192.0.2.80\" stay with the kernel"), 1U);
    follow({"192.0.2.80", "192.0.2.81"});
    EXPECT_EQ(log.count("\"to 192.0.2.81\" stay with the kernel"), 1U)
        << "the second is as lost as the first";
    EXPECT_EQ(log.count("stay with the kernel"), 2U);
    fake.isolate_refusal[0].clear();
    follow({"192.0.2.80", "192.0.2.81", "192.0.2.82"});
    EXPECT_FALSE(fake.isolated) << "the third made it try again";
    EXPECT_EQ(log.count("isolation is over"), 1U);
    EXPECT_EQ(log.count("stay with the kernel"), 2U);
}

TEST(FlowFollower, MarksArePublishedWithWhatTheyMean) {
    FakeFlows fake;
    FlowFollower follower({.workers = 1, .budget = 2, .mark = true}, one(port_with(fake)));
    int told = 0;
    follower.set_marks_listener([&] { ++told; });
    const auto web = service(
        "web", {external("192.0.2.80", 80), external("192.0.2.80", 443), external("192.0.2.80", 8080)},
        {"10.0.0.1"});
    const auto config = flow_config({web});
    EXPECT_EQ(publish_to(follower, config).marked, nullptr) << "marks are not assigned yet";
    while (follower.work()) {
    }
    EXPECT_EQ(told, 1);
    EXPECT_EQ(fake.live.size(), 2U);
    const auto again = publish_to(follower, config);
    ASSERT_NE(again.marked, nullptr);
    const auto* row = config.services->find(ip("192.0.2.80"), 443, Protocol::Tcp);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(again.marked->find(2, ip("192.0.2.80"), 443, Protocol::Tcp), row);
    EXPECT_EQ(again.marked->find(1, ip("192.0.2.80"), 443, Protocol::Tcp), nullptr) << "a mark that lies";
    EXPECT_EQ(again.marked->find(3, ip("192.0.2.80"), 8080, Protocol::Tcp), nullptr) << "beyond the budget";
    EXPECT_EQ(again.marked->find(0, ip("192.0.2.80"), 80, Protocol::Tcp), nullptr) << "no mark";
    // A removed frontend releases its number to another one; the others keep theirs.
    publish_to(follower,
               flow_config({service("web", {external("192.0.2.80", 443), external("192.0.2.80", 8080)},
                                    {"10.0.0.1"})}));
    while (follower.work()) {
    }
    EXPECT_EQ(told, 2);
    std::map<std::string, std::string> actions;
    for (const FlowView& view : follower.list()) {
        if (view.state == State::Installed) {
            actions[view.match] = view.action;
        }
    }
    EXPECT_EQ(actions, (std::map<std::string, std::string>{{"to 192.0.2.80 tcp port 443", "mark 2"},
                                                           {"to 192.0.2.80 tcp port 8080", "mark 1"}}));
}

// Changes in any order, with a NIC that has room for few rules and fails at random. In the end the NIC has
// all rules of the newest plan that it accepts. At no publication does it have a drop rule that software
// would not apply.
TEST(FlowFollower, AnyHistoryEndsInTheNewestPlan) {
    test::LogCapture log("drivers");
    test::Prng random;
    FakeFlows fake;
    bool fails = true;
    fake.create = [&](const SeenFlow&) {
        return fake.live.size() >= 12 || (fails && random.one_in(4)) ? "no" : "";
    };
    FlowFollower follower({.workers = 1, .budget = 16}, one(port_with(fake)));
    FlowConfig config;
    for (int round = 0; round < 300; ++round) {
        std::vector<std::string> list;
        for (int i = 0; i < 24; ++i) {
            if (random.one_in(2)) {
                list.push_back("10.0." + std::to_string(i) + ".0/24");
            }
        }
        config = flow_config({}, {}, list);
        publish_to(follower, config);
        ASSERT_LE(fake.live.size(), list.size());
        for (const FlowView& view : follower.list()) {
            if (view.state == State::Installed) {
                ASSERT_TRUE(config.blocked != nullptr && config.blocked->contains(net(view.match.substr(5))))
                    << view.match;
            }
        }
        if (random.one_in(2)) {
            follower.work();
        }
    }
    fails = false;
    publish_to(follower, flow_config({}, {}, {"172.16.0.0/12"}));
    while (follower.work()) {
    }
    EXPECT_EQ(fake.live.size(), 1U);
}

}  // namespace flow_follower_test
}  // namespace penstock::gateway
