// What keeps affinity entries valid over configurations, and what ends them.
#include "control/gateway/affinity_epochs.hpp"

#include <gtest/gtest.h>

#include "desired_builder.hpp"

namespace penstock::gateway {
namespace affinity_epochs_test {

model::Service sticky(const std::vector<std::string>& endpoints = {"10.0.0.1", "10.0.0.2"}) {
    model::Service web = service("web", {external("192.0.2.8", 80)}, endpoints);
    web.affinity_timeout_s = 100;
    return web;
}

class AffinityEpochsTest : public testing::Test {
 protected:
    const lb::Service& apply(const model::Service& web, std::vector<model::Service> others = {}) {
        others.push_back(web);
        return apply_all(std::move(others));
    }
    const lb::Service& apply_all(std::vector<model::Service> services, std::vector<model::ServiceKey> forgotten = {}) {
        std::vector<model::ServiceKey> touched;
        for (const auto& [known, service] : wanted_) {
            touched.push_back(known);
        }
        wanted_ = desired(std::move(services));
        for (const auto& [known, service] : wanted_) {
            touched.push_back(known);
        }
        compiler_.run({wanted_, node_ports_, addresses_, forgotten}, touched);
        const auto* programmed = compiler_.compiled()->services.get(key("web"));
        return programmed == nullptr ? none_ : *programmed->service;
    }
    static uint16_t stay_of(const lb::Service& service, const std::string& address) {
        for (const lb::Backend& backend : service.sets.at(0).usable) {
            if (backend.address == ip(address)) {
                return backend.stay;
            }
        }
        ADD_FAILURE() << address << " is no backend";
        return 0;
    }

    DesiredServices wanted_;
    model::NodePortAddresses node_ports_;
    std::vector<model::PortAddress> addresses_;
    Compiler compiler_;
    lb::Service none_;
};

TEST_F(AffinityEpochsTest, TheTimeoutReachesTheWorkersAndEachSetKnowsItsBackends_AFF001) {
    const lb::Service& web = apply(sticky());
    EXPECT_EQ(web.affinity_timeout_s, 100u);
    ASSERT_EQ(web.sets[0].usable.size(), 2u);
    for (uint32_t i = 0; i < 2; ++i) {
        EXPECT_EQ(web.sets[0].positions.find(web.sets[0].usable[i].id), i);
    }
    EXPECT_EQ(web.sets[0].positions.find(BackendId{77}), lb::BackendPositions::kNone);
}

TEST_F(AffinityEpochsTest, AServiceWithoutItPaysForNothing) {
    const lb::Service& web = apply(service("web", {external("192.0.2.8", 80)}, {"10.0.0.1"}));
    EXPECT_FALSE(web.has_affinity());
    EXPECT_EQ(web.affinity_epoch, 0u);
    EXPECT_TRUE(web.sets[0].positions.empty());
}

TEST_F(AffinityEpochsTest, EndpointsTimeoutAndNeighboursChangeWithoutANewEpoch_AFF008_AFF011) {
    const uint32_t epoch = apply(sticky()).affinity_epoch;
    EXPECT_EQ(apply(sticky({"10.0.0.1", "10.0.0.2", "10.0.0.3"})).affinity_epoch, epoch);
    EXPECT_EQ(apply(sticky(), {service("other", {external("192.0.2.9", 80)}, {"10.0.0.9"})}).affinity_epoch, epoch);
    model::Service longer = sticky();
    longer.affinity_timeout_s = 200;
    const lb::Service& changed = apply(longer);
    EXPECT_EQ(changed.affinity_epoch, epoch);
    EXPECT_EQ(changed.affinity_timeout_s, 200u);
}

TEST_F(AffinityEpochsTest, SwitchedOffAndOnItIsANewEpoch_AFF007) {
    const uint32_t epoch = apply(sticky()).affinity_epoch;
    EXPECT_FALSE(apply(service("web", {external("192.0.2.8", 80)}, {"10.0.0.1"})).has_affinity());
    EXPECT_NE(apply(sticky()).affinity_epoch, epoch);
}

TEST_F(AffinityEpochsTest, SwitchedOffAndOnBetweenTwoRunsItIsANewEpoch_AFF007) {
    const uint32_t epoch = apply(sticky()).affinity_epoch;
    EXPECT_NE(apply_all({sticky()}, {key("web")}).affinity_epoch, epoch);
}

// Service ids are given to others in the end: their entries must not be met.
TEST_F(AffinityEpochsTest, AServiceThatComesBackIsANewEpoch_AFF007) {
    const uint32_t epoch = apply(sticky()).affinity_epoch;
    apply_all({});
    const lb::Service& back = apply(sticky());
    EXPECT_NE(back.affinity_epoch, epoch);
    EXPECT_NE(back.affinity_epoch, 0u);
}

TEST_F(AffinityEpochsTest, AnotherServiceUnderTheOldNameIsANewEpoch_GEN010) {
    model::Service first = sticky();
    first.uid = std::string("a");
    const uint32_t epoch = apply(first).affinity_epoch;
    model::Service unknown = sticky({"10.0.0.1"});
    EXPECT_EQ(apply(unknown).affinity_epoch, epoch) << "from a source that knows no uid";
    first = sticky();
    first.uid = std::string("a");
    EXPECT_EQ(apply(first).affinity_epoch, epoch);
    first.uid = std::string("b");
    EXPECT_NE(apply(first).affinity_epoch, epoch);
}

TEST_F(AffinityEpochsTest, ABackendThatComesBackIsInItsNextStay_AFF005) {
    const uint16_t first = stay_of(apply(sticky()), "10.0.0.1");
    const uint16_t other = stay_of(apply(sticky()), "10.0.0.2");
    apply(sticky({"10.0.0.2"}));
    const lb::Service& back = apply(sticky());
    EXPECT_NE(stay_of(back, "10.0.0.1"), first);
    EXPECT_EQ(stay_of(back, "10.0.0.2"), other) << "it was there all the while";
}

TEST_F(AffinityEpochsTest, WeightZeroEndsAStayToo_AFF005) {
    const uint16_t first = stay_of(apply(sticky()), "10.0.0.1");
    model::Service resting = sticky();
    resting.sets[0].endpoints[0].weight = 0;
    apply(resting);
    EXPECT_NE(stay_of(apply(sticky()), "10.0.0.1"), first);
}

TEST_F(AffinityEpochsTest, ABackendOfTwoSetsComesBackOnce_AFF005) {
    model::Service both = sticky();
    both.sets.push_back(both.sets[0]);
    both.sets[1].source = lb::SourceMode::Keep;
    apply(both);
    model::Service without = both;
    without.sets[0].endpoints.erase(without.sets[0].endpoints.begin());
    apply(without);
    const lb::Service& still = apply(both);
    EXPECT_EQ(still.sets[0].usable[0].stay, 0) << "the other set had it";
    without.sets[1].endpoints.erase(without.sets[1].endpoints.begin());
    apply(without);
    const lb::Service& back = apply(both);
    EXPECT_EQ(back.sets[0].usable[0].stay, 1);
    EXPECT_EQ(back.sets[1].usable[0].stay, 1);
}

}  // namespace affinity_epochs_test
}  // namespace penstock::gateway
