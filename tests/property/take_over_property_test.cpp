// SPDX-License-Identifier: Apache-2.0
// A gateway with random Services and a random history of packets; another one, with other workers, capacities
// and secrets, holds copies of its connections. From then on both get the same packets, and must send the
// same, although the other one has opened none of the connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/copies/store.hpp"
#include "tests/property/random_gateways.hpp"

namespace penstock::test {
namespace take_over_property_test {

using namespace random_gateways;
using stats::Counter;

class TakeOver : public TwoGateways {
 protected:
    // Copies of all connections of `from`, as gateway `to` receives them: with ages instead of times, and
    // without numbers.
    std::unique_ptr<copies::Store> copies_of(VirtualGateway& from, VirtualGateway& to) {
        std::unique_ptr<copies::Store> store =
            *copies::Store::create(10'000, {random_.next(), random_.next()});
        for (conn::Connection copy : connections_of(from)) {
            for (CoarseTime* time : {&copy.last_seen, &copy.opened_at}) {
                const auto age = static_cast<uint32_t>(units_between(*time, from.now_coarse()));
                *time = {to.now_coarse().value - age};
            }
            copy.service = {};
            copy.backend = {};
            copy.snat_pool = 0;
            copy.snat_index = 0;
            copy.l4_delta = copy.ip_delta = {};
            copy.is_pinned = false;
            EXPECT_TRUE(store->put(copy).is_set());
        }
        for (uint32_t w = 0; w < to.options().workers; ++w) {
            to.worker(w).copies = store.get();
        }
        return store;
    }
};

TEST_F(TakeOver, ChangesNothingForTheConnections) {
    uint64_t taken = 0, of_many_workers = 0;
    for (int round = 0; round < 60; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        flows_.clear();
        std::vector<TestService> services = services_of(random_);
        const auto receivers = random_.next();
        Gateway first(options_of(random_), receivers);
        first.gateway.publish(services);
        for (uint64_t steps = random_.between(20, 400); steps > 0; --steps) {
            act(first, services);
            if (random_.one_in(20)) {
                first.gateway.advance_milliseconds(random_.below(3'000));
            }
        }
        first.gateway.age();
        first.gateway.take_own_segments();

        VirtualGateway::Options options = random_.one_in(2) ? options_of(random_) : first.gateway.options();
        options.connections = static_cast<uint32_t>(random_.between(600, 5'000));
        Gateway second(options, random_.one_in(2) ? receivers : random_.next());
        std::ranges::reverse(services);
        second.gateway.publish(services);
        second.gateway.advance_seconds(random_.below(1'000));
        const auto store = copies_of(first.gateway, second.gateway);
        const std::vector<conn::Connection> connections = connections_of(first.gateway);
        ASSERT_EQ(store->size(), connections.size());
        for (const Step step : {Step::Data, Step::Finish}) {
            for (uint32_t n = 0; n < connections.size() && !HasFatalFailure(); ++n) {
                expect_same(first, second, connections[n], step, n);
                if (step == Step::Data && !HasFatalFailure()) {
                    expect_same_fragments(first, second, connections[n].forward, n);
                    expect_same_errors(first, second, connections[n], n);
                }
            }
        }
        if (HasFatalFailure()) {
            return;
        }
        ASSERT_EQ(second.gateway.count(Counter::ConnectionsTakenOver), connections.size());
        ASSERT_EQ(second.gateway.count(Counter::CopiesRefused), 0U);
        ASSERT_EQ(second.gateway.connections(), first.gateway.connections());
        store->for_each([&](copies::Store::Slot slot) { EXPECT_TRUE(store->is_taken(slot)); });
        expect_balance(second.gateway);
        taken += connections.size();
        of_many_workers += options.workers > 1 ? 1 : 0;

        for (int n = 0; n < 50; ++n) {
            act(second, services);
        }
        expect_balance(second.gateway);
        // A connection that has ended here is not taken over again.
        expire_all(second.gateway);
        EXPECT_EQ(second.gateway.connections(), 0U);
        for (uint32_t n = 0; n < connections.size(); ++n) {
            second.send(frame_of(connections[n].reverse, kCluster, Step::Data, n), kCluster);
        }
        EXPECT_EQ(second.gateway.count(Counter::ConnectionsTakenOver), connections.size());
        expect_balance(second.gateway);
        if (HasFailure()) {
            return;
        }
    }
    EXPECT_GT(taken, 0U);
    EXPECT_GT(of_many_workers, 0U);
    EXPECT_GT(fragments_, 0U);
    EXPECT_GT(errors_, 0U);
}

// Packets of both directions in bursts, some of them of one flow, beside those of other flows.
TEST_F(TakeOver, ServesPacketsOfOneFlowInOneBurst) {
    for (int round = 0; round < 40; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        flows_.clear();
        const std::vector<TestService> services = services_of(random_);
        VirtualGateway::Options options = options_of(random_);
        options.workers = 1;
        options.up_hash = options.cluster_hash = {};
        Gateway first(options, 1);
        Gateway second(options, 1);
        first.gateway.publish(services);
        second.gateway.publish(services);
        for (int steps = 0; steps < 60; ++steps) {
            act(first, services);
        }
        const auto store = copies_of(first.gateway, second.gateway);
        const std::vector<conn::Connection> connections = connections_of(first.gateway);
        std::vector<std::vector<uint8_t>> frames;
        for (uint32_t n = 0; n < limits::kBurstMax; ++n) {
            const FlowKey& key = connections[random_.below(connections.size())].reverse;
            frames.push_back(frame_of(key, kCluster, Step::Data, n));
        }
        const std::vector<Outcome> expected = first.gateway.send_burst(frames, kCluster);
        const std::vector<Outcome> outcomes = second.gateway.send_burst(frames, kCluster);
        for (size_t n = 0; n < frames.size(); ++n) {
            ASSERT_EQ(outcomes[n].verdict, expected[n].verdict);
            if (expected[n].verdict == Verdict::Transmit) {
                ASSERT_EQ(without_id(outcomes[n].frame), without_id(expected[n].frame));
            }
        }
        expect_balance(second.gateway);
        if (HasFailure()) {
            return;
        }
    }
}

}  // namespace take_over_property_test
}  // namespace penstock::test
