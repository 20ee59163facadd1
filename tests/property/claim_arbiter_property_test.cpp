// SPDX-License-Identifier: Apache-2.0
// The claim arbiter, compared with a model that evaluates all claims from scratch in order of rank. Random
// sequences of claims, withdrawals, refusals for other reasons and changes of rank have few names, addresses
// and numbers, so that conflicts, and versions that stay in force in part, occur often.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/compile/claim_arbiter.hpp"
#include "tests/support/prng.hpp"

namespace penstock::gateway {
namespace claim_arbiter_property_test {

using model::ServiceKey;
using Version = std::shared_ptr<const model::Service>;

constexpr uint64_t kFrontends = 8;
constexpr Protocol kProtocols[] = {Protocol::Tcp, Protocol::Udp};

// Frontends 0-3 have an address of their own, 4-7 are NodePorts.
model::Frontend frontend(uint64_t n) {
    model::Frontend out;
    out.family = n % 2 == 0 ? IpFamily::V4 : IpFamily::V6;
    out.port = n % 4 < 2 ? 80 : 30'080;
    if (n < kFrontends / 2) {
        out.cls = lb::FrontendClass::LoadBalancerIp;
        out.address = n % 2 == 0 ? IpAddr::v4(192, 0, 2, 1)
                                 : IpAddr::v6({0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
    } else {
        out.cls = lb::FrontendClass::NodePort;
    }
    return out;
}

struct Participant : Claimant {
    using Claimant::Claimant;
    Version in_force;
    bool is_blocked = false;             // it is refused even if it can have its claims
    std::optional<ServiceKey> obstacle;  // the owner because of which it was refused
};

// The claimant with the row of a claim, and the version that the row is of.
using Winner = std::pair<ServiceKey, Version>;

// The result for all claims at once.
struct Evaluation {
    std::map<ServiceKey, Version> granted;
    std::map<ServiceKey, std::optional<ServiceKey>> refused;  // with the obstacle
    std::vector<std::pair<FrontendKey, Winner>> winners;

    [[nodiscard]] const Winner* winner(const FrontendKey& claim) const {
        const auto found = std::ranges::find(winners, claim, &std::pair<FrontendKey, Winner>::first);
        return found == winners.end() ? nullptr : &found->second;
    }
};

// What a claimant wants and has at the start of a round.
struct Stake {
    Version desired;
    Version in_force;
    bool is_blocked = false;
};

Evaluation evaluate(const std::map<ServiceKey, Stake>& stakes) {
    Evaluation out;
    const auto consider = [&](const ServiceKey& key, const Stake& stake) {
        for (const auto& each : stake.desired->frontends) {
            if (const Winner* owner = out.winner(FrontendKey(each, key.protocol))) {
                out.refused.emplace(key, owner->first);
                return;
            }
        }
        if (stake.is_blocked) {
            out.refused.emplace(key, std::nullopt);
            return;
        }
        out.granted.emplace(key, stake.desired);
        for (const auto& each : stake.desired->frontends) {
            out.winners.emplace_back(FrontendKey(each, key.protocol), Winner{key, stake.desired});
        }
    };
    for (const bool was_in_force : {true, false}) {
        for (const auto& [key, stake] : stakes) {
            if ((stake.in_force != nullptr) == was_in_force) {
                consider(key, stake);
            }
        }
    }
    // The remains of refused versions come last, so that they cannot keep a claim from its owner.
    for (const auto& [key, obstacle] : out.refused) {
        const Version& kept = stakes.at(key).in_force;
        if (kept == nullptr) {
            continue;
        }
        for (const auto& each : kept->frontends) {
            if (const FrontendKey claim(each, key.protocol); out.winner(claim) == nullptr) {
                out.winners.emplace_back(claim, Winner{key, kept});
            }
        }
    }
    return out;
}

class World {
 public:
    explicit World(test::Prng& random) : random_(random) {}

    void round() {
        arbiter_.begin_round();
        std::set<ServiceKey> changed;
        for (uint64_t changes = random_.below(4); changes > 0; --changes) {
            if (const ServiceKey key = some_key(); changed.insert(key).second) {
                change(key);
            }
        }
        std::map<ServiceKey, Stake> stakes;
        for (const auto& [key, participant] : participants_) {
            if (participant.desired != nullptr) {
                stakes.emplace(key, Stake{participant.desired, participant.in_force, participant.is_blocked});
            }
        }
        ASSERT_NO_FATAL_FAILURE(settle());
        ASSERT_NO_FATAL_FAILURE(compare(evaluate(stakes)));
        for (auto& [key, participant] : participants_) {
            arbiter_.set_in_force(participant, participant.in_force != nullptr);
        }
        std::erase_if(participants_, [](const auto& each) { return each.second.desired == nullptr; });
    }
    [[nodiscard]] bool met_everything() const { return conflicts_ > 0 && blocked_ > 0 && leftovers_ > 0; }

 private:
    ServiceKey some_key() {
        return {"default", std::string(1, static_cast<char>('a' + random_.below(5))), "",
                kProtocols[random_.below(2)]};
    }
    Version some_version() {
        auto service = std::make_shared<model::Service>();
        for (uint64_t n = 0; n < kFrontends; ++n) {
            if (random_.one_in(3)) {
                service->frontends.push_back(frontend(n));
            }
        }
        if (random_.one_in(2)) {
            std::ranges::reverse(service->frontends);  // the first obstacle depends on the order
        }
        return service;
    }
    void change(const ServiceKey& key) {
        const auto found = participants_.find(key);
        if (found == participants_.end() || random_.one_in(2)) {
            arbiter_.want(participants_.try_emplace(key, key).first->second, some_version());
        } else if (random_.one_in(2)) {
            arbiter_.withdraw(found->second);
            found->second.in_force = nullptr;
        } else {
            found->second.is_blocked = !found->second.is_blocked;
            arbiter_.make_due(found->second);
        }
    }

    // Each claimant once, in order of rank.
    void settle() {
        std::optional<std::pair<bool, ServiceKey>> previous;
        while (Claimant* due = arbiter_.take_due()) {
            auto& participant = static_cast<Participant&>(*due);
            // Each claimant is taken once, so `in_force` is still that of before the round.
            const std::pair rank(participant.in_force == nullptr, participant.key);
            ASSERT_TRUE(!previous || *previous < rank) << participant.key.to_string();
            previous = rank;
            participant.obstacle = obstacle_of(participant);
            if (participant.obstacle || participant.is_blocked) {
                arbiter_.refuse(participant, participant.in_force);
            } else if (participant.owned == participant.desired && random_.one_in(2)) {
                // The caller may leave an owner of its desired version unchanged.
            } else {
                arbiter_.grant(participant);
                participant.in_force = participant.desired;
            }
        }
    }
    [[nodiscard]] std::optional<ServiceKey> obstacle_of(const Participant& participant) const {
        for (const auto& each : participant.desired->frontends) {
            if (const Claimant* owner =
                    arbiter_.better_owner(participant, FrontendKey(each, participant.key.protocol))) {
                return owner->key;
            }
        }
        return std::nullopt;
    }

    void compare(const Evaluation& wanted) {
        for (const auto& [key, participant] : participants_) {
            if (participant.desired == nullptr) {
                ASSERT_EQ(participant.owned, nullptr) << key.to_string();
                ASSERT_EQ(participant.held, nullptr) << key.to_string();
                continue;
            }
            const auto granted = wanted.granted.find(key);
            ASSERT_EQ(participant.owned, granted == wanted.granted.end() ? nullptr : granted->second)
                << key.to_string();
            const auto refused = wanted.refused.find(key);
            ASSERT_EQ(participant.obstacle, refused == wanted.refused.end() ? std::nullopt : refused->second)
                << key.to_string();
            conflicts_ += participant.obstacle ? 1 : 0;
            blocked_ += participant.owned == nullptr && !participant.obstacle ? 1 : 0;
        }
        for (const Protocol protocol : kProtocols) {
            for (uint64_t n = 0; n < kFrontends; ++n) {
                ASSERT_NO_FATAL_FAILURE(compare(wanted, FrontendKey(frontend(n), protocol)));
            }
        }
        arbiter_.forget_touched();
        ASSERT_TRUE(arbiter_.touched().empty());
        for (const auto& [claim, winner] : wanted.winners) {
            ASSERT_EQ(winner_of(claim), winner) << claim.to_string();  // no interest in use was freed
        }
        arbiter_.touch_node_ports();
        for (const FrontendKey& claim : arbiter_.touched()) {
            ASSERT_TRUE(claim.node_port && has_interest(claim)) << claim.to_string();  // others were freed
        }
        for (const auto& [claim, winner] : wanted.winners) {
            ASSERT_EQ(arbiter_.touched().contains(claim), claim.node_port) << claim.to_string();
        }
        arbiter_.forget_touched();
        former_ = wanted;
    }
    void compare(const Evaluation& wanted, const FrontendKey& claim) {
        const Winner* expected = wanted.winner(claim);
        const Winner none;
        ASSERT_EQ(winner_of(claim), expected == nullptr ? none : *expected) << claim.to_string();
        const Winner* before = former_.winner(claim);
        if ((before == nullptr ? none : *before) != (expected == nullptr ? none : *expected)) {
            ASSERT_TRUE(arbiter_.touched().contains(claim)) << claim.to_string();
        }
        leftovers_ += expected != nullptr && !wanted.granted.contains(expected->first) ? 1 : 0;
    }
    [[nodiscard]] bool has_interest(const FrontendKey& claim) const {
        return std::ranges::any_of(participants_, [&](const auto& each) {
            const auto has = [&](const Version& version) {
                return version != nullptr &&
                       std::ranges::any_of(version->frontends, [&](const auto& frontend) {
                           return FrontendKey(frontend, each.first.protocol) == claim;
                       });
            };
            return has(each.second.desired) || has(each.second.owned) || has(each.second.held);
        });
    }
    [[nodiscard]] Winner winner_of(const FrontendKey& claim) const {
        const Claimant* winner = arbiter_.winner(claim);
        return winner == nullptr
                   ? Winner()
                   : Winner{winner->key, winner->owned != nullptr ? winner->owned : winner->held};
    }

    test::Prng& random_;
    ClaimArbiter arbiter_;
    std::map<ServiceKey, Participant> participants_;
    Evaluation former_;
    uint64_t conflicts_ = 0;
    uint64_t blocked_ = 0;
    uint64_t leftovers_ = 0;
};

TEST(ClaimArbiterProperty, OwnersAreThoseOfAnEvaluationFromScratch_GEN009_SVC018) {
    test::Prng random;
    for (int history = 0; history < 60; ++history) {
        World world(random);
        for (int round = 0; round < 200; ++round) {
            ASSERT_NO_FATAL_FAILURE(world.round()) << "history " << history << ", round " << round;
        }
        EXPECT_TRUE(world.met_everything()) << "history " << history;
    }
}

}  // namespace claim_arbiter_property_test
}  // namespace penstock::gateway
