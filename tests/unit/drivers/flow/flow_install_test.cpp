// SPDX-License-Identifier: Apache-2.0
// Rules on a port: installed, counted, destroyed, for any refusal by the driver.
#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include <algorithm>

#include "drivers/flow/flow_install.hpp"
#include "tests/support/fake_flow_driver.hpp"

namespace penstock::drivers {
namespace flow_install_test {

using test::FakeFlowDriver;
using test::FakeFlows;
using test::SeenFlow;

FlowRule drop_of(uint8_t number, bool counted = false) {
    return {FlowKind::SourceDrop,
            {.family = IpFamily::V4, .source = Prefix::host(IpAddr::v4(192, 0, 2, number))},
            {FlowVerb::Drop, 0},
            counted};
}

FlowPortFacts four_queues() {
    return {.rx_queues = 4, .rss_types = RTE_ETH_RSS_IP, .rss_key = {}};
}

struct Bed {
    FakeFlows fake;
    PortFlows flows{std::make_unique<FakeFlowDriver>(fake), four_queues()};
};

TEST(PortFlows, MakesEachRuleOnceAndDestroysIt) {
    Bed bed;
    ASSERT_TRUE(bed.flows.add(drop_of(1)));
    ASSERT_TRUE(bed.flows.add(drop_of(1)));
    ASSERT_TRUE(bed.flows.add(drop_of(2)));
    EXPECT_EQ(bed.fake.live.size(), 2U);
    ASSERT_TRUE(bed.flows.remove(drop_of(1)));
    ASSERT_TRUE(bed.flows.remove(drop_of(1))) << "what is not there is gone";
    EXPECT_EQ(bed.fake.live.size(), 1U);
    EXPECT_EQ(bed.flows.installed().size(), 1U);
}

TEST(PortFlows, CountsWhereThePortCan) {
    Bed bed;
    ASSERT_TRUE(bed.flows.add(drop_of(1, true)));
    bed.fake.hits[1] = {.packets = 7, .bytes = 420};
    const auto hits = bed.flows.hits(drop_of(1, true));
    ASSERT_TRUE(hits);
    EXPECT_EQ(hits->packets, 7U);
    EXPECT_EQ(hits->bytes, 420U);
    EXPECT_FALSE(bed.flows.hits(drop_of(2, true)));
}

TEST(PortFlows, APortThatCannotCountGetsTheRuleUncounted) {
    Bed bed;
    bed.fake.validate = [](const SeenFlow& flow) {
        return flow.has(RTE_FLOW_ACTION_TYPE_COUNT) ? "action not supported" : "";
    };
    ASSERT_TRUE(bed.flows.add(drop_of(1, true)));
    ASSERT_EQ(bed.fake.live.size(), 1U);
    EXPECT_FALSE(bed.fake.live.at(1).has(RTE_FLOW_ACTION_TYPE_COUNT));
    EXPECT_FALSE(bed.flows.installed().at(drop_of(1, true)).counted);
    EXPECT_FALSE(bed.flows.hits(drop_of(1, true)));
}

TEST(PortFlows, ARefusalKeepsTheDriversWordsAndChangesNothing) {
    Bed bed;
    bed.fake.validate = [](const SeenFlow&) { return "item not supported (item)"; };
    const auto refused = bed.flows.add(drop_of(1));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "item not supported (item)");
    bed.fake.validate = [](const SeenFlow&) { return ""; };
    bed.fake.create = [](const SeenFlow&) { return "no room (rule)"; };
    EXPECT_EQ(bed.flows.add(drop_of(1)).error().what, "no room (rule)");
    EXPECT_TRUE(bed.flows.installed().empty());
    EXPECT_TRUE(bed.fake.live.empty());
}

TEST(PortFlows, WhatTheDriverWillNotDestroyStaysAndIsTriedAgain) {
    Bed bed;
    ASSERT_TRUE(bed.flows.add(drop_of(1)));
    bed.fake.destroy = [](uintptr_t) { return "busy"; };
    ASSERT_FALSE(bed.flows.remove(drop_of(1)));
    EXPECT_TRUE(bed.flows.installed().contains(drop_of(1)));
    bed.fake.destroy = [](uintptr_t) { return ""; };
    ASSERT_TRUE(bed.flows.remove(drop_of(1)));
    EXPECT_TRUE(bed.fake.live.empty());
}

TEST(PortFlows, ClearDestroysTheRestAlsoAfterAFailure) {
    Bed bed;
    for (uint8_t i = 1; i <= 5; ++i) {
        ASSERT_TRUE(bed.flows.add(drop_of(i)));
    }
    bed.fake.destroy = [](uintptr_t handle) { return handle == 3 ? "stuck (rule)" : ""; };
    const auto cleared = bed.flows.clear();
    ASSERT_FALSE(cleared);
    EXPECT_EQ(cleared.error().what, "from 192.0.2.3/32: stuck (rule)");
    EXPECT_EQ(bed.fake.live.size(), 1U);
    EXPECT_EQ(bed.flows.installed().size(), 1U);
}

TEST(PortFlows, NothingIsLeftWhenItDies) {
    FakeFlows fake;
    {
        PortFlows flows(std::make_unique<FakeFlowDriver>(fake), four_queues());
        ASSERT_TRUE(flows.add(FlowRule::isolation()));
        ASSERT_TRUE(flows.add(drop_of(1)));
        ASSERT_TRUE(flows.add(drop_of(2)));
        fake.create = [](const SeenFlow&) { return "no room"; };
        ASSERT_FALSE(flows.add(drop_of(3)));  // fails half-way
    }
    EXPECT_TRUE(fake.live.empty());
    EXPECT_FALSE(fake.isolated);
    EXPECT_EQ(fake.log.back(), "isolate off") << "the rest is the kernel's until the last rule has gone";
}

TEST(FlowError, HasTheMessageAndThePartOfTheRule) {
    const struct {
        int result;
        rte_flow_error error;
        const char* what;
        Errc code;
    } rows[] = {
        {-ENOTSUP,
         {RTE_FLOW_ERROR_TYPE_ITEM_MASK, nullptr, "partial masks"},
         "partial masks (item mask)",
         Errc::Unsupported},
        {-ENOSPC, {RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, "table full"}, "table full", Errc::Exhausted},
        {-EBUSY,
         {RTE_FLOW_ERROR_TYPE_STATE, nullptr, "port must be stopped"},
         "port must be stopped (state of the device)",
         Errc::Unsupported},
        {-ENOSYS,
         {RTE_FLOW_ERROR_TYPE_NONE, nullptr, nullptr},
         "the driver has no rte_flow",
         Errc::Unsupported},
    };
    for (const auto& row : rows) {
        const Error error = flow_error(row.result, row.error);
        EXPECT_EQ(error.what, row.what);
        EXPECT_EQ(error.code, row.code);
    }
}

class FlowProbe : public testing::Test {
 protected:
    FlowSupport probe(unsigned workers, Binding binding = Binding::Vfio) {
        return probe_flow_support(driver, PmdProfile{.driver = "net_any", .binding = binding}, port, workers);
    }
    FakeFlows fake;
    FakeFlowDriver driver{fake};
    FlowPortFacts port = four_queues();
};

TEST_F(FlowProbe, ANicThatTakesAllLeavesNothingBehind) {
    const FlowSupport support = probe(4, Binding::Bifurcated);
    EXPECT_TRUE(support.snat_to_queue.validates);
    EXPECT_TRUE(support.vip_isolate.validates);
    EXPECT_TRUE(support.source_drop.validates);
    EXPECT_TRUE(support.vip_mark.validates);
    EXPECT_TRUE(support.counts);
    EXPECT_FALSE(port.mark_spreads);
    EXPECT_TRUE(fake.live.empty());
    EXPECT_GT(fake.created, 0U);
    EXPECT_FALSE(fake.isolated);
}

TEST_F(FlowProbe, NamesWhatIsMissingBeforeItAsks) {
    EXPECT_EQ(probe(1).snat_to_queue.reason, "one worker owns everything");
    EXPECT_EQ(probe(3).snat_to_queue.reason,
              "3 workers are not a power of two, so no mask separates their SNAT ports");
    EXPECT_EQ(probe(8).snat_to_queue.reason, "4 receive queues for 8 workers");
    EXPECT_FALSE(probe(2).vip_isolate.validates);
    EXPECT_NE(probe(2).vip_isolate.reason.find("does not share this port"), std::string::npos);
}

// The port is used without isolation: probes that do not depend on isolation are made nevertheless.
TEST_F(FlowProbe, ARefusedIsolationIsToldAndNothingElseIsLost) {
    fake.isolate_refusal[1] = "port must be stopped first (state of the device)";
    const Status isolated = driver.isolate(true);
    const FlowSupport support = probe_flow_support(
        driver, PmdProfile{.driver = "net_any", .binding = Binding::Bifurcated}, port, 4, isolated);
    EXPECT_FALSE(support.vip_isolate.validates);
    EXPECT_EQ(support.vip_isolate.reason,
              "the port cannot be isolated: port must be stopped first (state of the device)");
    EXPECT_TRUE(support.source_drop.validates);
    EXPECT_TRUE(support.snat_to_queue.validates);
}

// As net_tap does: masks of ports are validated, but refused when the rule is created, and COUNT and MARK are
// refused.
TEST_F(FlowProbe, ANicThatTakesPartOfItSaysWhichAndWhy) {
    fake.validate = [](const SeenFlow& flow) {
        return flow.has(RTE_FLOW_ACTION_TYPE_COUNT) || flow.has(RTE_FLOW_ACTION_TYPE_MARK)
                   ? "action not supported (action)"
                   : "";
    };
    fake.create = [](const SeenFlow& flow) {
        return flow.items.size() == 3 ? "item not supported (item)" : "";
    };
    const FlowSupport support = probe(2);
    EXPECT_TRUE(support.source_drop.validates);
    EXPECT_FALSE(support.counts);
    EXPECT_FALSE(support.snat_to_queue.validates);
    EXPECT_EQ(support.snat_to_queue.reason,
              "to 192.0.2.1 tcp port 64-127/128: validated, but not created: item not supported (item)");
    EXPECT_EQ(support.vip_mark.reason, "to 192.0.2.1 tcp port 80: action not supported (action)");
    EXPECT_TRUE(fake.live.empty());
}

TEST_F(FlowProbe, MarksBesideRssWhereTheSearchCannotGoOn) {
    fake.validate = [](const SeenFlow& flow) {
        return flow.has(RTE_FLOW_ACTION_TYPE_PASSTHRU) ? "no fate (action)" : "";
    };
    EXPECT_TRUE(probe(2).vip_mark.validates);
    EXPECT_TRUE(port.mark_spreads);
}

TEST_F(FlowProbe, ARuleThatCannotBeDestroyedIsNoSupport) {
    fake.destroy = [](uintptr_t) { return "busy"; };
    EXPECT_EQ(probe(2).source_drop.reason, "from 192.0.2.0/24: created, but not destroyed: busy");
}

}  // namespace flow_install_test
}  // namespace penstock::drivers
