// SPDX-License-Identifier: Apache-2.0
// A Service changes, and its gateway goes on; its twin is killed right after the change, starts with the new
// state, and adopts the flows. Each flow ends in both at the same time after the change, or in neither.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/gateway/compile/flow_keeper.hpp"
#include "tests/support/prng.hpp"
#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace inherited_flows_property_test {

using std::chrono::seconds;

constexpr uint32_t kDrainS = 5;

struct Flow {
    SocketAddress endpoint, frontend;
    auto operator<=>(const Flow&) const = default;
};

class Gateway {
 public:
    void apply(const model::Service& service) {
        desired_ = desired({service});
        compiler.run({desired_, {}, {}}, std::vector{service.key});
        note(keeper.follow(compiler.changes(), *compiler.compiled(), compiler.ids(), flows_of, now_), 0);
    }
    // As adopt::Adoption does for a flow that the snapshot has a place for, or not.
    void adopt(const Flow& flow, const model::Service& service) {
        flows_.push_back(flow);
        const auto has_endpoint = [&](const model::BackendSet& set) {
            return std::ranges::any_of(
                set.endpoints, [&](const auto& endpoint) { return endpoint.socket() == flow.endpoint; });
        };
        const bool has_frontend = std::ranges::any_of(service.frontends, [&](const auto& frontend) {
            return SocketAddress{frontend.address, frontend.port} == flow.frontend;
        });
        if (has_frontend && std::ranges::any_of(service.sets, has_endpoint)) {
            return;
        }
        const Programmed& programmed = *compiler.compiled()->services.get(service.key);
        const auto id = compiler.number_of_former(
            {programmed.service->id, flow.endpoint.address, flow.endpoint.port, service.uid});
        ASSERT_TRUE(id);
        if (!keeper.inherit(service.key, flow.endpoint, flow.frontend, *id, now_)) {
            ended_.emplace(flow, 0);
        }
    }
    void open(const Flow& flow) { flows_.push_back(flow); }
    void wait_and_see() {
        for (const uint32_t passed : {0U, kDrainS - 1, kDrainS, 100 * kDrainS}) {
            note(keeper.wake(compiler.ids(), flows_of, now_ + seconds(passed)), passed);
        }
    }
    // Seconds after the change; no entry: it goes on.
    [[nodiscard]] const std::map<Flow, uint32_t>& ended() const { return ended_; }

 private:
    void note(const std::vector<conn::FlowOrder>& orders, uint32_t passed) {
        for (const conn::FlowOrder& order : orders) {
            const BackendKey& backend = *compiler.ids().backends.key_of(order.backend);
            for (const Flow& flow : flows_) {
                const SocketAddress by{order.frontend, order.frontend_port};
                if (flow.endpoint == SocketAddress{backend.address, backend.port} &&
                    (order.frontend_port == 0 || by == flow.frontend)) {
                    ended_.emplace(flow, passed);
                }
            }
        }
    }

    Compiler compiler;
    FlowKeeper keeper;
    FlowKeeper::FlowsOf flows_of = [](BackendId) { return 1; };
    FlowKeeper::Time now_{seconds(1'000)};
    DesiredServices desired_;
    std::vector<Flow> flows_;
    std::map<Flow, uint32_t> ended_;
};

model::Service random_service(test::Prng& random, Protocol protocol) {
    std::vector<model::Frontend> frontends;
    std::vector<std::string> endpoints;
    for (int n = 1; n <= 3; ++n) {
        if (n == 1 || random.one_in(2)) {  // without any frontend there is no Service
            frontends.push_back(external("192.0.2." + std::to_string(n), 80));
        }
    }
    std::vector<std::string> excluded;
    for (int n = 1; n <= 4; ++n) {
        const std::string address = "10.0.0." + std::to_string(n);
        const uint64_t fate = random.below(3);
        if (fate < 2) {
            (fate == 0 ? endpoints : excluded).push_back(address);
        }
    }
    model::Service service = gateway::service("web", std::move(frontends), endpoints);
    service.key.protocol = protocol;
    service.uid = "u1";
    for (const std::string& address : excluded) {
        const auto why = random.one_in(4)   ? model::Exclusion::ForbiddenAddress
                         : random.one_in(2) ? model::Exclusion::Terminating
                                            : model::Exclusion::NotLocal;
        service.sets[0].excluded.push_back({ip(address), 8080, why, random.one_in(2)});
    }
    if (random.one_in(2)) {
        service.drain_timeout_s = random.one_in(2) ? 0 : kDrainS;
    }
    return service;
}

TEST(InheritedFlows, EndWhenTheRunningGatewayEndsThem_DRAIN004_DRAIN007_UDP001) {
    test::Prng random;
    std::map<uint32_t, int> seen;  // flows, by the seconds until their end
    for (int round = 0; round < 2'000; ++round) {
        const Protocol protocol = random.one_in(2)   ? Protocol::Tcp
                                  : random.one_in(2) ? Protocol::Udp
                                                     : Protocol::Sctp;
        const model::Service before = random_service(random, protocol);
        const model::Service after = random_service(random, protocol);
        Gateway running, restarted;
        running.apply(before);
        std::vector<Flow> flows;
        for (const model::Endpoint& endpoint : before.sets[0].endpoints) {
            for (const model::Frontend& frontend : before.frontends) {
                flows.push_back({endpoint.socket(), {frontend.address, frontend.port}});
                running.open(flows.back());
            }
        }
        running.apply(after);
        restarted.apply(after);
        for (const Flow& flow : flows) {
            restarted.adopt(flow, after);
        }
        running.wait_and_see();
        restarted.wait_and_see();
        for (const Flow& flow : flows) {
            const auto expected = running.ended().find(flow), found = restarted.ended().find(flow);
            const bool ends = expected != running.ended().end();
            ASSERT_EQ(found != restarted.ended().end(), ends)
                << "round " << round << ": " << flow.endpoint.to_string() << " by "
                << flow.frontend.to_string();
            if (ends) {
                ASSERT_EQ(found->second, expected->second)
                    << "round " << round << ": " << flow.endpoint.to_string() << " by "
                    << flow.frontend.to_string();
            }
            ++seen[ends ? expected->second : 1'000'000];
        }
    }
    EXPECT_GT(seen[0], 0);
    EXPECT_GT(seen[kDrainS], 0);
    EXPECT_GT(seen[1'000'000], 0);
}

}  // namespace inherited_flows_property_test
}  // namespace penstock::gateway
