// SPDX-License-Identifier: Apache-2.0
// Versions of the state stream against the accepted state, without a compiler and without threads.
#include "control/gateway/apply/acceptance.hpp"

#include <gtest/gtest.h>

#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace acceptance_test {

using Keys = std::vector<model::ServiceKey>;
using Services = std::vector<model::Service>;

class AcceptanceTest : public testing::Test {
 protected:
    Result<Keys> full(uint64_t number, Services services, std::vector<std::string> invalid = {}) {
        return take({.version = {"sync", number}, .services = std::move(services)}, std::move(invalid));
    }
    Result<Keys> delta(uint64_t number, Services services, Keys removed = {},
                       std::vector<std::string> invalid = {}) {
        return take({.version = {"sync", number},
                     .base = rpc::StateVersion{"sync", number - 1},
                     .services = std::move(services),
                     .removed = std::move(removed)},
                    std::move(invalid));
    }
    Result<Keys> take(rpc::StateUpdate update, std::vector<std::string> invalid) {
        for (const auto& name : invalid) {
            update.invalid.emplace_back(key(name), name + " is invalid");
        }
        return acceptance_.accept(update, refusals_);
    }
    static model::Service with_affinity(const std::string& name, uint32_t timeout_s) {
        model::Service out = service(name, {}, {"10.0.0.1"});
        out.affinity_timeout_s = timeout_s;
        return out;
    }

    AcceptedState state_;
    Acceptance::Refusals refusals_;
    Acceptance acceptance_{state_};
};

TEST_F(AcceptanceTest, DeltaOnAnotherVersionIsOutdatedAndChangesNothing) {
    EXPECT_EQ(delta(1, {service("web", {}, {"10.0.0.1"})}).error().code, Errc::Outdated)
        << "nothing accepted";
    ASSERT_TRUE(full(1, {service("web", {}, {"10.0.0.1"})}));
    const auto result = delta(8, {service("api", {}, {"10.0.0.2"})}, {key("web")});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::Outdated);
    EXPECT_EQ(result.error().what,
              "the delta builds on version 7 of sync, but version 1 of sync is in force");
    EXPECT_EQ(state_.accepted, (rpc::StateVersion{"sync", 1}));
    EXPECT_EQ(state_.asked.size(), 1U);
    EXPECT_NE(state_.asked.get(key("web")), nullptr);
}

TEST_F(AcceptanceTest, FullStateReturnsWhatDiffersAndRemovesWhatItOmits) {
    EXPECT_EQ(full(1, {service("a", {}, {"10.0.0.1"}), service("b", {}, {"10.0.0.2"})}).value(),
              (Keys{key("a"), key("b")}));
    EXPECT_EQ(full(2, {service("a", {}, {"10.0.0.1"}), service("b", {}, {"10.0.0.2"})}).value(), Keys{});
    EXPECT_EQ(full(3, {service("b", {}, {"10.0.0.3"})}).value(), (Keys{key("a"), key("b")}));
    EXPECT_EQ(state_.asked.get(key("a")), nullptr);
}

// A refused service port is tried again with every full state, and reported again.
TEST_F(AcceptanceTest, FullStateReturnsAnEqualServicePortThatWasRefused) {
    ASSERT_TRUE(full(1, {service("web", {}, {"10.0.0.1"})}));
    refusals_.insert_or_assign(key("web"), model::Refusal{});
    EXPECT_EQ(full(2, {service("web", {}, {"10.0.0.1"})}).value(), Keys{key("web")});
}

TEST_F(AcceptanceTest, InvalidServicePortKeepsItsVersionUntilItIsValidOrRemoved) {
    ASSERT_TRUE(full(1, {service("web", {}, {"10.0.0.1"})}));
    EXPECT_EQ(full(2, {}, {"web"}).value(), Keys{});
    EXPECT_NE(state_.asked.get(key("web")), nullptr);
    EXPECT_NE(state_.invalid.get(key("web")), nullptr);
    EXPECT_EQ(delta(3, {}, {key("web")}).value(), Keys{key("web")});
    EXPECT_EQ(state_.asked.get(key("web")), nullptr);
    EXPECT_EQ(state_.invalid.get(key("web")), nullptr);
}

// Two messages that are compiled together: the affinity that was off in between starts empty.
TEST_F(AcceptanceTest, AffinityThatEndsBetweenTwoCompilationsIsReported_AFF007) {
    ASSERT_TRUE(full(1, {with_affinity("web", 600)}));
    ASSERT_TRUE(delta(2, {with_affinity("web", 0)}));
    ASSERT_TRUE(delta(3, {with_affinity("web", 600)}));
    EXPECT_EQ(acceptance_.affinity_ended(), Keys{key("web")});
    acceptance_.forget_affinity_ended();
    EXPECT_TRUE(acceptance_.affinity_ended().empty());
}

}  // namespace acceptance_test
}  // namespace penstock::gateway
