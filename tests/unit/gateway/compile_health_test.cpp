// SPDX-License-Identifier: Apache-2.0
// Step 6 of EP-020: probe results determine the endpoints that a set offers.
#include <gtest/gtest.h>

#include "control/gateway/compile/compile.hpp"
#include "desired_builder.hpp"

namespace penstock::gateway {
namespace compile_health_test {

class CompileHealth : public testing::Test {
 protected:
    void apply(const model::Service& service) {
        wanted_ = desired({service});
        run();
    }
    void found(std::vector<std::pair<std::string, Health>> verdicts) {
        auto health = std::make_shared<EndpointHealth>();
        for (const auto& [address, verdict] : verdicts) {
            health->verdicts.emplace(SocketAddress{ip(address), 8080}, verdict);
        }
        results_.insert_or_assign(key("web"), health);
        run();
    }
    void run() { compiler_.run({wanted_, {}, {}, {}, results_}, std::vector{key("web")}); }
    // Last bytes of the addresses that new flows may get: "1 2".
    std::string usable() const {
        std::string text;
        for (const auto& backend : row().service->sets[row().set].usable) {
            const std::string address = backend.address.to_string();
            text += (text.empty() ? "" : " ") + address.substr(address.rfind('.') + 1);
        }
        return text;
    }
    const lb::FrontendRow& row() const {
        return *compiler_.compiled()->table->find(ip("192.0.2.8"), 80, Protocol::Tcp);
    }
    bool fails_open() const { return compiler_.compiled()->services.at(key("web")).fails_open; }
    static model::Service web(bool fails_closed = false) {
        auto out = service("web", {external("192.0.2.8", 80)}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"});
        out.probe = model::Probe{.fails_closed = fails_closed};
        return out;
    }

    DesiredServices wanted_;
    ProbeResults results_;
    Compiler compiler_;
};

TEST_F(CompileHealth, NobodyIsDownBeforeTheFirstAnswer_HC010) {
    apply(web());
    EXPECT_EQ(usable(), "1 2 3");
    EXPECT_FALSE(fails_open());
}

TEST_F(CompileHealth, EndpointsThatAreDownGetNoNewFlows_EP020_HC009) {
    apply(web());
    const auto before = row().service->sets[0].usable[2].id;
    found({{"10.0.0.1", Health::Down}, {"10.0.0.2", Health::Up}});
    EXPECT_EQ(usable(), "2 3");
    EXPECT_EQ(row().service->sets[0].usable[1].id, before) << "ids stay";
    EXPECT_EQ(compiler_.ids().backends.live(), 3U) << "flows of the one that is down go on";
    EXPECT_EQ(compiler_.changes().services, std::vector{key("web")});
    found({{"10.0.0.1", Health::Up}, {"10.0.0.2", Health::Up}});
    EXPECT_EQ(usable(), "1 2 3");
}

TEST_F(CompileHealth, AllDownFailsOpen_HC010) {
    apply(web());
    found({{"10.0.0.1", Health::Down}, {"10.0.0.2", Health::Down}, {"10.0.0.3", Health::Down}});
    EXPECT_EQ(usable(), "1 2 3");
    EXPECT_TRUE(fails_open());
    found({{"10.0.0.1", Health::Down}, {"10.0.0.2", Health::Down}, {"10.0.0.3", Health::Up}});
    EXPECT_EQ(usable(), "3");
    EXPECT_FALSE(fails_open());
}

TEST_F(CompileHealth, NodesFailClosedAndNeverProbedOnesAreDown_HC007_HC010) {
    auto closed = web(true);
    closed.sets[0].when_empty = lb::EmptyAction::Drop;
    apply(closed);
    EXPECT_EQ(usable(), "");
    EXPECT_EQ(row().service->sets[0].when_empty, lb::EmptyAction::Reject);
    found({{"10.0.0.2", Health::Up}});
    EXPECT_EQ(usable(), "2");
    EXPECT_EQ(row().service->sets[0].when_empty, lb::EmptyAction::Drop);
    found({{"10.0.0.2", Health::Down}});
    EXPECT_EQ(usable(), "");
    EXPECT_FALSE(fails_open());
}

// Step (6) precedes (7): a healthy endpoint without weight is a candidate, so the others, which are down,
// stay excluded.
TEST_F(CompileHealth, WeightIsLookedAtAfterHealth_EP020) {
    auto service = web();
    service.sets[0].endpoints[0].weight = 0;
    apply(service);
    found({{"10.0.0.1", Health::Up}, {"10.0.0.2", Health::Down}, {"10.0.0.3", Health::Down}});
    EXPECT_EQ(usable(), "");
}

TEST_F(CompileHealth, WithoutAProbeOldVerdictsMeanNothing_HC010) {
    apply(web());
    found({{"10.0.0.1", Health::Down}});
    auto service = web();
    service.probe.reset();
    apply(service);
    EXPECT_EQ(usable(), "1 2 3");
}

TEST_F(CompileHealth, AnUnchangedResultCompilesNothing) {
    apply(web());
    found({{"10.0.0.1", Health::Down}});
    const lb::Service* before = row().service;
    run();
    EXPECT_EQ(row().service, before);
    EXPECT_TRUE(compiler_.changes().services.empty());
}

}  // namespace compile_health_test
}  // namespace penstock::gateway
