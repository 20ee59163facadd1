// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/drain_order.hpp"

#include <gtest/gtest.h>

#include "tests/support/prng.hpp"

namespace penstock::gateway {
namespace drain_order_test {

using namespace std::chrono_literals;

// One round a second, with a packet rate and a number of open flows.
struct Gateway {
    explicit Gateway(bool has_metric = true) : order(has_metric) {}
    DrainStep round(uint64_t rate, uint64_t flows = 0, bool is_announced = false) {
        now += 1s;
        packets += rate;
        order.work(now, {packets, flows, is_announced});
        return order.step();
    }
    DrainOrder order;
    DrainOrder::Time now{1h};
    uint64_t packets = 1'000'000;
};

TEST(DrainOrder, TheMetricThenTheRoutesThenTheFlows_PRESENCE003) {
    Gateway gateway;
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(gateway.round(10'000, 5, true), DrainStep::Serving);
    }
    gateway.order.begin(gateway.now);
    EXPECT_EQ(gateway.order.step(), DrainStep::Depreferred) << "at once";
    EXPECT_EQ(gateway.order.depreferred_until(), gateway.now + 10s);
    EXPECT_EQ(gateway.round(10'000, 5, true), DrainStep::Depreferred);
    EXPECT_EQ(gateway.round(5'000, 5, true), DrainStep::Depreferred);
    EXPECT_EQ(gateway.round(100, 5, true), DrainStep::Depreferred) << "1 % is not below 1 %";
    EXPECT_EQ(gateway.round(99, 5, true), DrainStep::Withdrawn);
    EXPECT_EQ(gateway.round(99, 5), DrainStep::Withdrawn) << "flows are open";
    EXPECT_EQ(gateway.round(0, 0, true), DrainStep::Withdrawn) << "routes are there yet";
    EXPECT_EQ(gateway.round(0, 0), DrainStep::Done);
    EXPECT_EQ(gateway.round(1, 1), DrainStep::Withdrawn) << "a late client";
    EXPECT_EQ(gateway.round(1, 0), DrainStep::Done);
}

TEST(DrainOrder, TrafficThatStaysIsWaitedForTenSeconds_PRESENCE003) {
    Gateway gateway;
    gateway.round(10'000);
    gateway.round(10'000);
    gateway.order.begin(gateway.now);
    for (int second = 1; second < 10; ++second) {
        EXPECT_EQ(gateway.round(10'000, 1, true), DrainStep::Depreferred) << second;
    }
    EXPECT_EQ(gateway.round(10'000, 1, true), DrainStep::Withdrawn);
}

TEST(DrainOrder, AGatewayWithoutTrafficWaitsForOneInterval_PRESENCE003) {
    Gateway gateway;
    gateway.round(0);
    gateway.round(0);
    gateway.order.begin(gateway.now);
    EXPECT_EQ(gateway.round(0, 0, true), DrainStep::Depreferred) << "begins an interval";
    EXPECT_EQ(gateway.round(0, 0, true), DrainStep::Withdrawn);
    EXPECT_EQ(gateway.round(0), DrainStep::Done);
}

TEST(DrainOrder, AnUnknownRateIsNoReasonToHurry_PRESENCE003) {
    Gateway gateway;  // drained before the first interval was complete
    gateway.order.begin(gateway.now);
    for (int second = 1; second < 10; ++second) {
        EXPECT_EQ(gateway.round(0), DrainStep::Depreferred) << second;
    }
    EXPECT_EQ(gateway.round(0, 1), DrainStep::Withdrawn);
}

TEST(DrainOrder, AFallingSumOfPacketsIsNoRate_PRESENCE003) {
    Gateway gateway;
    gateway.round(10'000);
    gateway.round(10'000);
    gateway.packets = 0;  // a Service was deleted just before the drain
    gateway.round(0);
    gateway.order.begin(gateway.now);
    gateway.round(10'000, 5, true);
    EXPECT_EQ(gateway.round(10'000, 5, true), DrainStep::Depreferred) << "10,000 a second as before";
    gateway.packets = 0;  // and another one during the drain
    EXPECT_EQ(gateway.round(50, 5, true), DrainStep::Depreferred);
    EXPECT_EQ(gateway.round(50, 5, true), DrainStep::Withdrawn) << "the next interval counts";
}

TEST(DrainOrder, RoundsInQuickSuccessionAreNoInterval_PRESENCE003) {
    Gateway gateway;
    gateway.round(10'000);
    gateway.round(10'000);
    gateway.order.begin(gateway.now);
    gateway.order.work(gateway.now, {gateway.packets, 5, true});
    // A pause of the clients shorter than an interval does not show that they have moved.
    for (int i = 0; i < 8; ++i) {
        gateway.now += 100ms;
        gateway.order.work(gateway.now, {gateway.packets, 5, true});
        gateway.order.work(gateway.now, {gateway.packets, 5, true});
        EXPECT_EQ(gateway.order.step(), DrainStep::Depreferred) << i;
    }
    gateway.now += 100ms;
    gateway.packets += 1'000;
    gateway.order.work(gateway.now, {gateway.packets, 5, true});
    EXPECT_EQ(gateway.order.step(), DrainStep::Depreferred) << "1,000 packets in the whole interval";
}

TEST(DrainOrder, WithoutRoutesNothingIsDepreferred_DRAIN006) {
    Gateway gateway(false);
    gateway.round(10'000);
    gateway.round(10'000);
    gateway.order.begin(gateway.now);
    EXPECT_EQ(gateway.order.step(), DrainStep::Withdrawn);
    EXPECT_EQ(gateway.round(10'000, 3), DrainStep::Withdrawn);
    EXPECT_EQ(gateway.round(0), DrainStep::Done);
}

TEST(DrainOrder, ADrainOfAnEarlierProcessAnnouncesNothing_DRAIN006) {
    Gateway gateway;
    gateway.order.begin_withdrawn();
    gateway.order.begin(gateway.now);  // each round repeats it
    EXPECT_EQ(gateway.round(0, 1), DrainStep::Withdrawn);
    EXPECT_EQ(gateway.round(0), DrainStep::Done);
    gateway.order.end();
    EXPECT_EQ(gateway.round(0), DrainStep::Serving);
}

// Any sequence of traffic, flows, drains and undrains: the order of the steps holds, undrain serves at once,
// and a step depreferred never lasts longer than its limit and a round.
TEST(DrainOrder, UndrainServesFromAnyStep_PRESENCE003) {
    test::Prng prng;
    for (int run = 0; run < 200; ++run) {
        Gateway gateway(prng.below(4) != 0);
        bool drained = false;
        DrainStep before = DrainStep::Serving;
        int depreferred = 0;
        for (int i = 0; i < 100; ++i) {
            if (prng.below(10) == 0) {
                drained = !drained;
                drained ? gateway.order.begin(gateway.now) : gateway.order.end();
                EXPECT_EQ(gateway.order.step() == DrainStep::Serving, !drained);
                before = gateway.order.step();
            }
            const DrainStep step = gateway.round(prng.below(1'000), prng.below(3), prng.below(2) == 0);
            EXPECT_EQ(step == DrainStep::Serving, !drained);
            if (drained) {
                EXPECT_TRUE(step >= before || (before == DrainStep::Done && step == DrainStep::Withdrawn))
                    << to_string(before) << " to " << to_string(step);
            }
            depreferred = step == DrainStep::Depreferred ? depreferred + 1 : 0;
            EXPECT_LE(depreferred, 10);
            before = step;
        }
    }
}

}  // namespace drain_order_test
}  // namespace penstock::gateway
