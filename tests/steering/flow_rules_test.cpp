// SPDX-License-Identifier: Apache-2.0
// Rules on software NICs whose RSS cannot be predicted: the daemon's follower plans and installs them, and
// the workers' counters show their effect.
#include <gtest/gtest.h>

#include "control/gateway/rules/flow_follower.hpp"
#include "tests/steering/bed.hpp"
#include "tests/steering/traffic.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/sanitizers.hpp"

namespace penstock::test {
namespace flow_rules_test {

using gateway::FlowFollower;
using gateway::FlowLimits;
using gateway::FlowView;

// RSS that keeps a flow on its queue, with a key that cannot be read: only rules can bring replies to their
// owner.
constexpr const char* kHiddenHash = "key=hidden,reta_access=hidden,loopback=0";

constexpr uint32_t kConnections = kUnderAddressSanitizer || kUnderThreadSanitizer ? 8'000 : 100'000;
constexpr uint32_t kSomeConnections = kConnections / 5;  // for tests that do not check each reply

class FlowSteering : public testing::Test {
 protected:
    void start(uint32_t workers, const std::string& nic) {
        auto started = SteeringBed::start(
            {.workers = workers, .nic = nic, .services = steering_services(), .follows_rules = false});
        ASSERT_TRUE(started) << started.error().what;
        bed = std::move(*started);
    }
    // Without the follower's thread, so that the rules are installed on return.
    void follow(const FlowLimits& limits, const route::PrefixSet& blocked = {}) {
        follower = std::make_unique<FlowFollower>(limits, bed->flow_ports());
        follower->set_marks_listener([&] { publish(blocked); });
        publish(blocked);
        while (follower->work()) {
        }
    }
    void publish(const route::PrefixSet& blocked) {
        auto next = std::make_unique<config::Snapshot>(bed->gateway().snapshot());
        next->blocked_sources = blocked.empty() ? nullptr : std::make_shared<const route::PrefixSet>(blocked);
        follower->before_publish(*next);
        bed->workers().publish(std::move(next));
    }
    void pass(uint32_t connections) {
        uint32_t opened = 0;
        for (const TrafficKind& kind : kTrafficKinds) {
            const TrafficResult result =
                open_connections(*bed, kind, opened, connections / kTrafficKinds.size());
            ASSERT_EQ(result.first_fault, "") << bed->drops_by_name();
            opened += result.opened;
        }
        EXPECT_EQ(bed->connections(), connections);
        EXPECT_EQ(bed->drops(), 0U) << bed->drops_by_name();
    }
    [[nodiscard]] size_t installed(drivers::FlowKind kind) const {
        const auto views = follower->list();
        return static_cast<size_t>(std::ranges::count_if(views, [&](const FlowView& view) {
            return view.kind == kind && view.state == FlowView::State::Installed;
        }));
    }
    void TearDown() override {
        if (follower) {
            follower->stop();
            EXPECT_EQ(bed->nic(kUp).flow_rules() + bed->nic(kCluster).flow_rules(), 0U)
                << "rules were left behind";
        }
        follower.reset();
        bed.reset();
    }

    std::unique_ptr<SteeringBed> bed;
    std::unique_ptr<FlowFollower> follower;
};

TEST_F(FlowSteering, NoReplyIsHandedOver) {
    for (const uint32_t workers : {2U, 4U}) {
        start(workers, kHiddenHash);
        ASSERT_NE(bed, nullptr);
        EXPECT_EQ(bed->port(kCluster).facts().steering.steering, drivers::Steering::FlowRules)
            << bed->port(kCluster).facts().steering.reason;
        follow({.workers = workers});
        EXPECT_GT(installed(drivers::FlowKind::SnatToQueue), 0U);
        pass(kConnections);
        EXPECT_EQ(bed->count(stats::Counter::HandedOff), 0U) << workers << " workers";
        TearDown();
    }
}

// The same NIC with room for only some of the rules: slower, but correct.
TEST_F(FlowSteering, WhereTheTableIsFullTheRestIsHandedOver) {
    start(2, std::string(kHiddenHash) + ",flow_rules=3");
    ASSERT_NE(bed, nullptr);
    follow({.workers = 2});
    const auto views = follower->list();
    EXPECT_TRUE(std::ranges::any_of(views, [](const FlowView& view) {
        return view.state == FlowView::State::Refused && !view.reason.empty();
    }));
    pass(kSomeConnections);
    EXPECT_GT(bed->count(stats::Counter::HandedOff), 0U);
}

TEST_F(FlowSteering, ThreeWorkersHaveNoMaskAndSaySo) {
    start(3, kHiddenHash);
    ASSERT_NE(bed, nullptr);
    EXPECT_EQ(bed->port(kCluster).facts().steering.steering, drivers::Steering::Handoff);
    EXPECT_NE(bed->port(kCluster).facts().steering.reason.find("not a power of two"), std::string::npos);
    follow({.workers = 3});
    EXPECT_EQ(installed(drivers::FlowKind::SnatToQueue), 0U);
    pass(kSomeConnections);
}

TEST_F(FlowSteering, MarkedPacketsGoWhereUnmarkedOnesDo) {
    start(2, kHiddenHash);
    ASSERT_NE(bed, nullptr);
    follow({.workers = 2, .mark = true});
    EXPECT_GT(installed(drivers::FlowKind::VipMark), 0U);
    pass(kSomeConnections);
    EXPECT_EQ(bed->count(stats::Counter::HandedOff), 0U);
}

TEST_F(FlowSteering, ABlockedSourceEndsInTheNicAndIsLetInBeforeWorkersKnow) {
    start(2, kHiddenHash);
    ASSERT_NE(bed, nullptr);
    follow({.workers = 2}, route::PrefixSet({*Prefix::parse("203.0.113.0/24")}));
    ASSERT_EQ(installed(drivers::FlowKind::SourceDrop), 2U);  // on both ports
    // Not to a SNAT address: another rule would match as well, the NIC would choose one of the two, and
    // software would drop.
    const auto frame = eth()
                           .from_mac(kClientMac.to_string())
                           .to_mac(kUpMac.to_string())
                           .ipv4("203.0.113.9", kVip.to_string())
                           .udp(1, 9)
                           .build();
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(bed->wire(kUp).put(frame).fate, Received::Fate::Dropped);
    }
    uint64_t hits = 0;
    for (const FlowView& view : follower->list()) {
        hits += view.hits ? view.hits->packets : 0;
    }
    EXPECT_EQ(hits, 5U);
    publish({});
    EXPECT_EQ(installed(drivers::FlowKind::SourceDrop), 0U);
    EXPECT_EQ(bed->wire(kUp).put(frame).fate, Received::Fate::Queued);
}

}  // namespace flow_rules_test
}  // namespace penstock::test
