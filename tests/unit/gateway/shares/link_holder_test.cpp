// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/link_holder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/prng.hpp"

namespace penstock::gateway {
namespace link_holder_test {

using namespace std::chrono_literals;
using Peer = LinkHolder::Peer;
using Bfd = LinkHolder::Peer::Bfd;
using Time = LinkHolder::Time;

// Share 0: primary a, heir b.
GatewayShares seen_by(const std::string& name) {
    return {{.version = 1,
             .gateways = {{.name = "a"}, {.name = "b"}},
             .shares = {{.vips = {}, .primary = "a", .heir = "b"}}},
            name};
}

// One gateway, and what it sees. At first: able, returned, with all links, and without reports.
struct One {
    explicit One(const std::string& name) : shares(seen_by(name)) {}
    bool holds() {
        lost = holder.update(shares, [&](const std::string&) { return peer; }, inputs, now);
        return holder.held() == 1;
    }
    void reported(uint64_t able, uint64_t ready, uint64_t held) {
        peer.is_reporting = true;
        peer.report = {.plan_version = 1, .able = able, .ready = ready, .held = held};
    }
    void silent(Bfd bfd = Bfd::None) {
        peer = {.is_reporting = false, .silent_since = now, .bfd = bfd, .report = {}};
    }
    void nobody_answers() {
        inputs.answered = 0;
        inputs.unanswered = 1;
    }
    void the_other_answers() {
        inputs.answered = 1;
        inputs.unanswered = 0;
        inputs.unanswered_since[0] = now;
    }
    GatewayShares shares;
    LinkHolder holder;
    Peer peer;
    LinkHolder::Inputs inputs{.able = 1, .whole = 1, .on_link = 1};
    Time now{1h};
    uint64_t lost = 0;
};

TEST(LinkHolder, APrimaryHoldsItsShareAndAnHeirDoesNot_PRESENCE006) {
    One a("a"), b("b");
    a.reported(1, 1, 0);
    b.reported(1, 1, 1);
    EXPECT_TRUE(a.holds());
    EXPECT_FALSE(b.holds());
    EXPECT_EQ(a.holder.ready(), 1u);
    EXPECT_EQ(b.holder.ready(), 1u);
    EXPECT_EQ(b.holder.to_probe(), 0u) << "nobody is silent";
    b.reported(1, 1, 0);
    EXPECT_FALSE(b.holds()) << "the primary is about to";
}

TEST(LinkHolder, AGatewayThatIsNotAbleHoldsNothing_PRESENCE006) {
    for (const bool is_reporting : {true, false}) {
        One a("a");
        a.reported(1, 1, 0);
        EXPECT_TRUE(a.holds());
        a.inputs.able = 0;
        if (!is_reporting) {
            a.silent();
        }
        EXPECT_FALSE(a.holds());
        EXPECT_EQ(a.holder.ready(), 0u);
        EXPECT_EQ(a.holder.to_probe(), 0u);
    }
}

TEST(LinkHolder, AnHeirHoldsWhatThePrimaryReportsNotToHold_PRESENCE006) {
    One b("b");
    b.reported(1, 1, 1);
    EXPECT_FALSE(b.holds());
    b.reported(0, 0, 1);
    EXPECT_FALSE(b.holds()) << "workers of the primary still answer";
    b.reported(0, 0, 0);
    EXPECT_TRUE(b.holds());
    b.reported(1, 1, 0);
    EXPECT_FALSE(b.holds()) << "the primary has returned";
}

TEST(LinkHolder, APrimaryWaitsUntilTheHeirHasEnded_PRESENCE006) {
    One a("a");
    a.inputs.returning = 1;
    a.reported(1, 1, 1);
    EXPECT_FALSE(a.holds());
    EXPECT_EQ(a.holder.ready(), 0u) << "it has no copies of the heir's connections yet";
    EXPECT_EQ(a.lost, 0u) << "it returns already";
    a.inputs.returning = 0;
    EXPECT_FALSE(a.holds());
    EXPECT_EQ(a.lost, 0u);
    EXPECT_EQ(a.holder.ready(), 1u);
    a.reported(1, 1, 0);
    EXPECT_TRUE(a.holds());
}

TEST(LinkHolder, WhenNoneIsReadyThePrimaryPrecedes_PRESENCE006) {
    One a("a"), b("b");
    a.inputs.returning = b.inputs.returning = 1;  // both start
    a.reported(1, 0, 0);
    b.reported(1, 0, 0);
    EXPECT_TRUE(a.holds());
    EXPECT_FALSE(b.holds());
    a.reported(1, 1, 0);
    EXPECT_FALSE(a.holds()) << "the heir is ready, and the primary still returns";
    b.inputs.returning = 0;
    EXPECT_TRUE(b.holds());
}

TEST(LinkHolder, ALostLinkMovesTheShareToAGatewayWithAllLinks_PRESENCE006) {
    One a("a"), b("b");
    a.reported(1, 1, 0);
    EXPECT_TRUE(a.holds());
    a.inputs.whole = 0;
    EXPECT_FALSE(a.holds());
    b.reported(1, 0, 0);
    EXPECT_TRUE(b.holds());
    b.inputs.whole = 0;
    EXPECT_FALSE(b.holds()) << "both have lost it: the primary answers on the other links";
    b.reported(0, 0, 0);
    EXPECT_TRUE(b.holds()) << "the primary drains";
    a.reported(1, 0, 0);
    EXPECT_TRUE(a.holds());
    a.silent(Bfd::Down);
    EXPECT_TRUE(a.holds()) << "nobody else could";
}

TEST(LinkHolder, WithBfdAnHeirTakesOverWhenSessionReportsAndLinkAreSilent_PRESENCE006) {
    One b("b");
    b.reported(1, 1, 1);
    b.peer.bfd = Bfd::Down;
    EXPECT_FALSE(b.holds()) << "the primary reports";
    EXPECT_EQ(b.holder.to_probe(), 1u) << "in advance";
    b.silent(Bfd::Up);
    b.nobody_answers();
    b.now += LinkHolder::kPatienceWithBfd - 1ms;
    EXPECT_FALSE(b.holds()) << "its workers send";
    b.now += 1ms;
    EXPECT_TRUE(b.holds()) << "but they do not answer";
    One c("b");
    c.silent(Bfd::Down);
    c.the_other_answers();
    EXPECT_FALSE(c.holds()) << "it answers on the link";
    EXPECT_EQ(c.holder.to_probe(), 1u);
    c.inputs.answered = 0;
    EXPECT_FALSE(c.holds()) << "the probes are not complete";
    c.nobody_answers();
    EXPECT_TRUE(c.holds());
}

TEST(LinkHolder, WithoutBfdAnHeirIsPatient_PRESENCE006) {
    One b("b");
    b.silent();
    b.nobody_answers();
    EXPECT_FALSE(b.holds());
    b.now += LinkHolder::kPatience - 1ms;
    EXPECT_FALSE(b.holds());
    b.now += 1ms;
    EXPECT_TRUE(b.holds());
    One late("b");  // reports have been missing for long
    late.silent();
    late.now += 1h;
    late.the_other_answers();
    EXPECT_FALSE(late.holds());
    late.nobody_answers();
    late.now += LinkHolder::kPatience - 1ms;
    EXPECT_FALSE(late.holds()) << "since the last answer";
    late.now += 1ms;
    EXPECT_TRUE(late.holds());
}

TEST(LinkHolder, AnHeirThatStartsWaitsForTheReturn_PRESENCE006) {
    One b("b");
    b.inputs.returning = 1;
    b.silent(Bfd::Down);
    b.nobody_answers();
    EXPECT_FALSE(b.holds());
    b.inputs.returning = 0;
    EXPECT_TRUE(b.holds());
}

TEST(LinkHolder, WithoutReportsAShareStaysWhereItIs_PRESENCE006) {
    One a("a"), b("b");
    a.reported(1, 1, 0);
    b.reported(1, 1, 1);
    EXPECT_TRUE(a.holds());
    EXPECT_FALSE(b.holds());
    a.silent(Bfd::Down);
    b.silent(Bfd::Down);
    a.nobody_answers();
    for (int second = 0; second < 60; ++second) {
        a.now += 1s;
        b.now += 1s;
        b.the_other_answers();
        EXPECT_TRUE(a.holds());
        EXPECT_FALSE(b.holds()) << "the primary answers on the link";
    }
}

TEST(LinkHolder, AnHeirWithoutReportsEndsIfThePrimaryAnswers_PRESENCE006) {
    One b("b");
    b.silent(Bfd::Down);
    b.nobody_answers();
    EXPECT_TRUE(b.holds());
    EXPECT_EQ(b.holder.to_probe(), 1u);
    b.the_other_answers();
    EXPECT_FALSE(b.holds()) << "two parts of the link are one again";
}

TEST(LinkHolder, OfTwoHoldersThePrimaryEndsAndReturns_PRESENCE006) {
    One a("a"), b("b");
    a.reported(1, 1, 0);
    EXPECT_TRUE(a.holds());
    a.reported(1, 1, 1);  // after a pause of its processes, or of the link
    EXPECT_FALSE(a.holds());
    EXPECT_EQ(a.lost, 1u);
    EXPECT_EQ(a.holder.ready(), 0u) << "the heir must not end before this gateway returns";
    a.inputs.returning = 1;
    EXPECT_FALSE(a.holds());
    EXPECT_EQ(a.lost, 0u) << "once";
    a.inputs.returning = 0;
    EXPECT_FALSE(a.holds());
    EXPECT_EQ(a.lost, 0u) << "it has returned";
    EXPECT_EQ(a.holder.ready(), 1u);

    b.silent(Bfd::Down);
    b.nobody_answers();
    EXPECT_TRUE(b.holds());
    b.reported(1, 1, 1);
    EXPECT_TRUE(b.holds());
    b.now += LinkHolder::kConflictMax - 1ms;
    b.reported(1, 0, 0);
    EXPECT_TRUE(b.holds()) << "the primary has ended";
    b.now += 1h;
    b.reported(1, 1, 1);
    EXPECT_TRUE(b.holds()) << "a second time";
    b.now += LinkHolder::kConflictMax - 1ms;
    EXPECT_TRUE(b.holds()) << "the primary is to end";
    b.now += 1ms;
    EXPECT_FALSE(b.holds()) << "but it does not receive reports";
    b.reported(1, 1, 1);
    EXPECT_FALSE(b.holds());
    b.silent(Bfd::Down);
    EXPECT_TRUE(b.holds());
    b.reported(1, 1, 1);
    EXPECT_TRUE(b.holds()) << "a conflict of its own";
}

TEST(LinkHolder, APrimaryThatWasIsolatedReturns_PRESENCE006) {
    One a("a");
    a.reported(1, 1, 0);
    EXPECT_TRUE(a.holds());
    a.inputs.able = 0;
    a.silent(Bfd::Down);
    EXPECT_FALSE(a.holds());
    a.inputs.able = 1;
    a.reported(1, 1, 1);
    EXPECT_FALSE(a.holds());
    EXPECT_EQ(a.lost, 1u) << "the heir has held the share without its knowledge";
    One b("a");
    b.reported(1, 1, 0);
    EXPECT_TRUE(b.holds());
    b.inputs.able = 0;
    EXPECT_FALSE(b.holds());
    b.reported(1, 1, 1);
    b.inputs.able = 1;
    EXPECT_FALSE(b.holds());
    EXPECT_EQ(b.lost, 0u) << "its copies have followed";
}

TEST(LinkHolder, ASuccessorContinuesOrReturns_PRESENCE006) {
    One kept("a");
    kept.holder.resume(1);
    kept.silent(Bfd::Up);
    EXPECT_TRUE(kept.holds());
    One lost("a");  // the heir took over during the upgrade
    lost.reported(1, 1, 1);
    EXPECT_FALSE(lost.holds());
    EXPECT_EQ(lost.lost, 1u);
}

TEST(LinkHolder, APrimaryThatStartsAloneWaitsForItsHeirToTakeOver_PRESENCE006) {
    One a("a");
    a.inputs.returning = 1;
    a.silent(Bfd::Up);
    a.nobody_answers();
    a.now += LinkHolder::kPatienceAfterStart - 1ms;
    EXPECT_FALSE(a.holds());
    a.now += 1ms;
    EXPECT_TRUE(a.holds());
    One returned("a");
    returned.silent(Bfd::Up);
    EXPECT_FALSE(returned.holds());
    returned.nobody_answers();
    EXPECT_TRUE(returned.holds()) << "nobody answers, and it misses nothing";
}

TEST(LinkHolder, TheOnlyGatewayOfAPlanHoldsAll_PRESENCE006) {
    const GatewayShares alone(
        {.version = 1, .gateways = {{.name = "a"}}, .shares = {{.vips = {}, .primary = "a", .heir = ""}}},
        "a");
    for (const uint64_t whole : {1u, 0u}) {
        LinkHolder holder;
        const auto no_peer = [](const std::string&) { return Peer(); };
        EXPECT_EQ(holder.update(alone, no_peer, {.able = 1, .whole = whole, .on_link = 1}, Time(1h)), 0u);
        EXPECT_EQ(holder.held(), 1u) << "also with a lost link";
    }
}

// Two gateways with their state machines, a step of 25 ms. A message takes a step. Workers answer a step
// after they shall.
struct Pair {
    struct Side {
        explicit Side(const std::string& name) : one(name) {}
        One one;
        bool lives = true;     // false: no process
        bool answers = false;  // its workers
        HolderReport sent;     // by the last step
        int losses = 0;
        int returns_after = 0;  // steps until it has the other's connections
    };
    void step() {
        const std::array<bool, 2> answers{a.answers, b.answers};
        for (const size_t i : {0, 1}) {
            Side& self = i == 0 ? a : b;
            const Side& other = i == 0 ? b : a;
            self.one.now += 25ms;
            if (!self.lives) {
                continue;
            }
            const bool has_reports = stream[i] && other.lives;
            if (has_reports) {
                self.one.reported(other.sent.able, other.sent.ready, other.sent.held);
                self.one.peer.report.served = other.sent.served;
            } else if (self.one.peer.is_reporting) {
                self.one.silent();
            }
            self.one.peer.bfd = !has_bfd ? Bfd::None : link && other.lives ? Bfd::Up : Bfd::Down;
            link&& answers[1 - i] ? self.one.the_other_answers() : self.one.nobody_answers();
            if (self.one.inputs.returning != 0 && has_reports && --self.returns_after <= 0) {
                self.one.inputs.returning = 0;
            }
            self.one.holds();
            if (self.one.lost != 0) {
                ++self.losses;
                self.one.inputs.returning = 1;
                self.returns_after = 4;
            }
        }
        for (Side* side : {&a, &b}) {
            const bool holds = side->lives && side->one.holder.held() != 0;
            side->sent = {.plan_version = 1,
                          .able = side->one.inputs.able,
                          .ready = side->one.holder.ready(),
                          .held = holds || side->answers ? 1u : 0u,
                          .served = side->one.holder.served()};
            side->answers = holds;
        }
    }
    void start(Side& side) {
        const Time now = side.one.now;
        side = Side(&side == &a ? "a" : "b");
        side.one.now = now;
        side.one.silent();
        side.one.inputs.returning = 1;
        side.returns_after = 8;
    }
    void stop(Side& side) { side.lives = side.answers = false; }
    [[nodiscard]] bool all_able() const {
        return a.lives && b.lives && a.one.inputs.able != 0 && b.one.inputs.able != 0;
    }
    Side a{"a"}, b{"b"};
    std::array<bool, 2> stream{true, true};  // to a, to b
    bool link = true, has_bfd = true;
};

// Faults of any kind and order. While both live and the link is whole, one of them answers after a time,
// whatever reports there are, and not both do. While reports arrive, both never do for longer than messages
// take. When all is well again, exactly the primary answers.
TEST(LinkHolder, ExactlyOneHoldsTheShareInTheEnd_PRESENCE006) {
    test::Prng prng(test::seed());
    constexpr int kLong = 1'000;  // steps: 25 s
    for (int run = 0; run < 200; ++run) {
        Pair pair;
        pair.has_bfd = prng.one_in(2);
        for (int fault = 0; fault < 12; ++fault) {
            Pair::Side& side = prng.one_in(2) ? pair.a : pair.b;
            switch (prng.below(6)) {
                case 0:
                    pair.stream[prng.below(2)] ^= true;
                    break;
                case 1:
                    pair.stream = {true, true};
                    break;
                case 2:
                    pair.link = !pair.link;
                    break;
                case 3:
                    side.lives ? pair.stop(side) : pair.start(side);
                    break;
                case 4:
                    side.one.inputs.able ^= 1;
                    break;
                default:
                    side.one.inputs.whole ^= 1;
            }
            int both = 0;
            const auto steps = static_cast<int>(prng.one_in(3) ? kLong : prng.below(400));
            for (int step = 0; step < steps; ++step) {
                pair.step();
                const bool has_reports = pair.stream[0] && pair.stream[1] && pair.link;
                both = pair.a.answers && pair.b.answers && has_reports ? both + 1 : 0;
                ASSERT_LE(both, 4) << "run " << run << ", fault " << fault;
            }
            if (steps == kLong && pair.all_able() && pair.link) {
                EXPECT_NE(pair.a.answers, pair.b.answers) << "run " << run << ", fault " << fault;
            }
        }
        pair.stream = {true, true};
        pair.link = true;
        for (Pair::Side* side : {&pair.a, &pair.b}) {
            if (!side->lives) {
                pair.start(*side);
            }
            side->one.inputs.able = side->one.inputs.whole = 1;
        }
        for (int steps = 0; steps < kLong; ++steps) {
            pair.step();
        }
        EXPECT_TRUE(pair.a.answers) << "run " << run;
        EXPECT_FALSE(pair.b.answers) << "run " << run;
    }
}

// Its links and its channel were lost, and the heir has ended before a report arrives.
TEST(LinkHolder, APrimaryReturnsIfTheHeirHasServedWithoutIt_PRESENCE006) {
    Pair pair;
    const auto steps = [&](int count) {
        for (; count > 0; --count) {
            pair.step();
        }
    };
    steps(200);
    const int before = pair.a.losses;
    pair.stream = {false, false};
    pair.link = false;
    pair.a.one.inputs.whole = 0;
    steps(400);
    EXPECT_TRUE(pair.b.answers);
    pair.link = true;
    pair.a.one.inputs.whole = 1;
    steps(40);
    EXPECT_TRUE(pair.a.answers);
    EXPECT_FALSE(pair.b.answers) << "the primary answers its probes";
    EXPECT_EQ(pair.a.losses, before);
    pair.stream = {true, true};
    steps(200);
    EXPECT_EQ(pair.a.losses, before + 1);
    EXPECT_TRUE(pair.a.answers) << "it has returned";
    EXPECT_FALSE(pair.b.answers);
    EXPECT_EQ(pair.b.one.holder.served(), 0u);
}

TEST(LinkHolder, AnHeirWithoutReportsAndLinksHoldsNothing_PRESENCE006) {
    One b("b");
    b.silent(Bfd::Down);
    b.nobody_answers();
    EXPECT_TRUE(b.holds());
    b.inputs.on_link = b.inputs.unanswered = 0;
    EXPECT_FALSE(b.holds()) << "it must probe before it answers again";
}

TEST(LinkHolder, OfAnotherPlanOnlySharesThatAreTheSameAreKept_PRESENCE006) {
    One a("a");
    a.reported(1, 1, 0);
    EXPECT_TRUE(a.holds());
    a.silent(Bfd::Up);
    a.holder.keep(1);
    EXPECT_TRUE(a.holds());
    a.holder.keep(0);
    EXPECT_FALSE(a.holds()) << "it probes first";
    a.nobody_answers();
    EXPECT_TRUE(a.holds());
}

// The loss of either gateway leaves the share at the other one.
TEST(LinkHolder, TheOtherGatewayHoldsTheShareOfALostOne_PRESENCE006) {
    for (const bool is_a_lost : {true, false}) {
        Pair pair;
        for (int steps = 0; steps < 40; ++steps) {
            pair.step();
        }
        ASSERT_TRUE(pair.a.answers);
        ASSERT_FALSE(pair.b.answers);
        pair.stop(is_a_lost ? pair.a : pair.b);
        for (int steps = 0; steps < 8; ++steps) {
            pair.step();
            EXPECT_TRUE(is_a_lost || pair.a.answers);
        }
        EXPECT_TRUE((is_a_lost ? pair.b : pair.a).answers);
    }
}

}  // namespace link_holder_test
}  // namespace penstock::gateway
