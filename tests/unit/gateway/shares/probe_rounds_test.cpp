// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/probe_rounds.hpp"

#include <gtest/gtest.h>

namespace penstock::gateway {
namespace probe_rounds_test {

using namespace std::chrono_literals;
using Time = ProbeRounds::Time;

const LinkTarget kFirst{3, {IpAddr::v4(192, 0, 2, 80), NicPortId{0}}};
const LinkTarget kSecond{3, {IpAddr::v4(198, 51, 100, 80), NicPortId{1}}};
constexpr uint64_t kShare = 1 << 3;

class ProbeRoundsTest : public testing::Test {
 protected:
    // The probes that are due have been sent.
    size_t send(Time now) {
        const std::vector<LinkTarget> due = rounds_.due(now);
        for (const LinkTarget& target : due) {
            rounds_.sent(target, now);
        }
        return due.size();
    }
    // Three probes of each target have had no answer. Returns the time.
    Time silence(Time now) {
        for (uint32_t i = 0; i < ProbeRounds::kProbes; ++i, now += ProbeRounds::kFast) {
            send(now);
        }
        return now;
    }

    ProbeRounds rounds_;
    const Time start_{1h};
};

TEST_F(ProbeRoundsTest, ThreeProbesWithoutAnAnswerAreSilence_PRESENCE006) {
    EXPECT_EQ(send(start_), 0u) << "nothing is probed";
    rounds_.set(kShare, {kFirst}, start_);
    EXPECT_EQ(rounds_.unanswered_since()[3], start_);
    for (int i = 0; i < 3; ++i) {
        const Time now = start_ + i * ProbeRounds::kFast;
        EXPECT_EQ(rounds_.unanswered(now), 0u);
        EXPECT_EQ(rounds_.due(now), std::vector{kFirst});
        EXPECT_EQ(send(now), 1u);
        EXPECT_EQ(send(now), 0u) << "not before its time";
    }
    const Time last = start_ + 2 * ProbeRounds::kFast;
    EXPECT_EQ(rounds_.unanswered(last + ProbeRounds::kFast - 1ms), 0u) << "the answer may be on its way";
    EXPECT_EQ(rounds_.unanswered(last + ProbeRounds::kFast), kShare);
    EXPECT_EQ(send(last + ProbeRounds::kSlow - 1ms), 0u);
    EXPECT_EQ(send(last + ProbeRounds::kSlow), 1u);
    EXPECT_EQ(rounds_.unanswered(last + ProbeRounds::kSlow), kShare) << "a further probe takes nothing back";
    EXPECT_EQ(rounds_.unanswered_since()[3], start_);
}

TEST_F(ProbeRoundsTest, AProbeThatWasNotSentIsNoSilence_PRESENCE006) {
    rounds_.set(kShare, {kFirst}, start_);
    for (int i = 0; i < 9; ++i) {
        EXPECT_EQ(rounds_.due(start_ + i * ProbeRounds::kFast), std::vector{kFirst});
    }
    EXPECT_EQ(rounds_.unanswered(start_ + 1h), 0u);
}

TEST_F(ProbeRoundsTest, AClaimIsAnAnswerUntilThreeProbesHaveNone_PRESENCE006) {
    rounds_.set(kShare, {kFirst}, start_);
    EXPECT_EQ(send(start_), 1u);
    rounds_.claimed(kSecond, start_);
    EXPECT_EQ(rounds_.answered(), 0u) << "another address, another link";
    rounds_.claimed(kFirst, start_ + 1ms);
    EXPECT_EQ(rounds_.answered(), kShare);
    EXPECT_EQ(rounds_.unanswered(start_ + 1h), 0u);
    Time now = start_ + 1ms + ProbeRounds::kSlow;
    EXPECT_EQ(send(now - 1ms), 0u);
    for (int i = 0; i < 3; ++i, now += ProbeRounds::kFast) {
        EXPECT_EQ(rounds_.answered(), kShare);
        EXPECT_EQ(send(now), 1u);
    }
    EXPECT_EQ(rounds_.answered(), 0u);
    EXPECT_EQ(rounds_.unanswered(now), kShare);
    EXPECT_EQ(rounds_.unanswered_since()[3], start_ + 1ms) << "the last answer";
}

TEST_F(ProbeRoundsTest, AnAnswerOnOneLinkCounts_PRESENCE006) {
    rounds_.set(kShare, {kFirst, kSecond}, start_);
    EXPECT_EQ(send(start_), 2u);
    rounds_.claimed(kSecond, start_);
    const Time now = silence(start_ + ProbeRounds::kFast);
    EXPECT_EQ(rounds_.answered(), kShare);
    EXPECT_EQ(rounds_.unanswered(now), 0u);
    EXPECT_EQ(rounds_.unanswered(silence(start_ + ProbeRounds::kSlow)), kShare) << "silent on both";
}

TEST_F(ProbeRoundsTest, AShareThatIsProbedAgainBeginsAnew_PRESENCE006) {
    rounds_.set(kShare, {kFirst}, start_);
    rounds_.claimed(kFirst, start_);
    rounds_.set(0, {kFirst}, start_);
    EXPECT_EQ(rounds_.answered(), 0u);
    EXPECT_EQ(rounds_.unanswered(start_), 0u);
    rounds_.set(kShare, {kFirst}, start_ + 1s);
    EXPECT_EQ(rounds_.unanswered_since()[3], start_ + 1s);
    EXPECT_EQ(send(start_ + 1s), 1u);
    rounds_.set(kShare, {kSecond}, start_ + 1s);
    EXPECT_EQ(rounds_.due(start_ + 1s), std::vector{kSecond}) << "another address";
    rounds_.set(kShare, {kSecond}, start_ + 2s);
    EXPECT_EQ(rounds_.unanswered_since()[3], start_ + 1s) << "nothing has changed";
}

TEST_F(ProbeRoundsTest, AShareWithoutAnAddressOnALinkIsNotSilent_PRESENCE006) {
    rounds_.set(kShare | 1 << 4, {kFirst}, start_);
    EXPECT_EQ(rounds_.on_link(), kShare);
    EXPECT_EQ(rounds_.unanswered(silence(start_)), kShare)
        << "nothing proves that no host answers for the other";
}

}  // namespace probe_rounds_test
}  // namespace penstock::gateway
