// SPDX-License-Identifier: Apache-2.0
// The schedule of probes and the evaluation of their results, with a clock that is an argument.
#include "control/gateway/care/probes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "desired_builder.hpp"

namespace penstock::gateway {
namespace probes_test {

using namespace std::chrono_literals;
using Questions = std::vector<ProbeSchedule::Question>;

std::shared_ptr<const model::Service> probed(const std::string& name,
                                             const std::vector<std::string>& endpoints,
                                             model::Probe probe = {}) {
    auto one = service(name, {}, endpoints);
    one.probe = std::move(probe);
    return std::make_shared<const model::Service>(std::move(one));
}

class ProbesTest : public testing::Test {
 protected:
    void set(const std::shared_ptr<const model::Service>& service) {
        schedule_.set(service->key, service, now_);
    }
    // Starts and completes all probes that are due. Returns their number.
    size_t answer(bool well) {
        const Questions questions = schedule_.due(now_);
        for (const auto& question : questions) {
            schedule_.finished(question.id, well, well ? "" : "refused", now_);
        }
        return questions.size();
    }
    // Runs this many rounds of all probes, each after the maximum interval.
    void answer_times(int times, bool well) {
        for (int i = 0; i < times; ++i) {
            now_ += 11s;
            EXPECT_GT(answer(well), 0U);
        }
    }
    // "web 10.0.0.1 up; web 10.0.0.2 down", from take_results().
    std::string results() {
        std::string text;
        for (const auto& [key, health] : schedule_.take_results()) {
            if (health == nullptr) {
                text += key.name + " nothing; ";
                continue;
            }
            for (const auto& [place, verdict] : health->verdicts) {
                text += key.name + " " + place.address.to_string() +
                        (verdict == Health::Up ? " up; " : " down; ");
            }
        }
        return text;
    }

    ProbeSchedule schedule_{100, 1};
    ProbeSchedule::Time now_{1h};
};

TEST_F(ProbesTest, AQuestionThatThisHostCouldNotAskSaysNothingAboutTheEndpoint_HC007) {
    set(probed("web", {"10.0.0.1"}, {.unhealthy = 1}));
    for (int turn = 0; turn < 10; ++turn) {
        const Questions questions = schedule_.due(now_);
        ASSERT_EQ(questions.size(), 1U);
        schedule_.could_not_ask(questions.front().id, now_);
        EXPECT_EQ(results(), "");
        EXPECT_TRUE(schedule_.due(now_).empty()) << "not at once";
        now_ += 11s;
    }
    EXPECT_EQ(schedule_.counters().sent, 0U);
    EXPECT_EQ(answer(true), 1U);
    EXPECT_EQ(results(), "web 10.0.0.1 up; ");
}

TEST_F(ProbesTest, SoManyTurnsASecondAreToldAndTheOthersCounted) {
    std::vector<std::string> endpoints;
    for (int i = 0; i < 80; ++i) {
        endpoints.push_back("10.0.0." + std::to_string(i));
    }
    set(probed("web", endpoints, {.unhealthy = 1}));
    EXPECT_EQ(answer(true), 80U);
    const auto first = schedule_.take_turns(now_);
    EXPECT_EQ(first.told.size(), ProbeSchedule::kTurnsTold);
    EXPECT_EQ(first.left_out, 30U);
    set(probed("other", {"10.1.0.1"}));
    EXPECT_EQ(answer(true), 1U);
    EXPECT_TRUE(schedule_.take_turns(now_).told.empty()) << "in the same second";
    answer_times(1, false);
    const auto later = schedule_.take_turns(now_);
    EXPECT_EQ(later.told.size(), ProbeSchedule::kTurnsTold);
    EXPECT_EQ(later.left_out, 31U) << "the other one's turn too";
}

TEST_F(ProbesTest, AServiceWithoutAProbeCostsNothing_HC010) {
    set(std::make_shared<const model::Service>(service("web", {}, {"10.0.0.1"})));
    EXPECT_TRUE(schedule_.due(now_).empty());
    EXPECT_FALSE(schedule_.next());
    EXPECT_EQ(schedule_.counters().targets, 0U);
    EXPECT_EQ(results(), "");
}

TEST_F(ProbesTest, DownAfterFailuresInARowAndUpAfterSuccessesInARow_HC009) {
    set(probed("web", {"10.0.0.1"}, {.healthy = 3, .unhealthy = 4}));
    EXPECT_EQ(answer(true), 1U);
    EXPECT_EQ(results(), "web 10.0.0.1 up; ") << "the first result of an endpoint without a verdict";
    answer_times(3, false);
    answer_times(1, true);
    answer_times(3, false);
    EXPECT_EQ(results(), "") << "not four in a row yet";
    answer_times(1, false);
    EXPECT_EQ(results(), "web 10.0.0.1 down; ");
    EXPECT_EQ(schedule_.counters().down, 1U);
    answer_times(2, true);
    answer_times(1, false);
    answer_times(2, true);
    EXPECT_EQ(results(), "") << "not three in a row yet";
    answer_times(1, true);
    EXPECT_EQ(results(), "web 10.0.0.1 up; ");
    const auto turns = schedule_.take_turns(now_).told;
    ASSERT_EQ(turns.size(), 3U) << "each transition once";
    EXPECT_EQ(turns[1].verdict, Health::Down);
    EXPECT_EQ(turns[1].why, "refused");
    EXPECT_EQ(turns[1].user, key("web"));
}

TEST_F(ProbesTest, OneThatNeverAnsweredIsDownAfterAsManyFailures_HC009) {
    set(probed("web", {"10.0.0.1"}, {.unhealthy = 2}));
    answer(false);
    EXPECT_EQ(results(), "");
    answer_times(1, false);
    EXPECT_EQ(results(), "web 10.0.0.1 down; ");
}

TEST_F(ProbesTest, AskedAtOnceThenWithinATenthOfTheIntervalThenAtTheInterval_HC008) {
    std::vector<std::string> addresses;
    for (int i = 1; i <= 60; ++i) {
        addresses.push_back("10.0.0." + std::to_string(i));
    }
    set(probed("web", addresses, {.interval_s = 10}));
    EXPECT_EQ(answer(true), 60U);
    std::set<ProbeSchedule::Time> second;
    const auto begin = now_;
    for (size_t asked = 0; asked < 60;) {
        now_ = schedule_.next().value();
        EXPECT_GE(now_ - begin, 9s);
        EXPECT_LE(now_ - begin, 11s);
        second.insert(now_);
        asked += answer(true);
    }
    EXPECT_GT(second.size(), 30U) << "they are not spread";
    now_ = schedule_.next().value();
    EXPECT_EQ(now_ - *second.begin(), 10s);
}

TEST_F(ProbesTest, TheDeadlineIsTheTimeoutAndTheIntervalRunsFromTheQuestion_HC008) {
    set(probed("web", {"10.0.0.1"}, {.interval_s = 20, .timeout_s = 7}));
    answer(true);
    now_ += 1min;
    const Questions questions = schedule_.due(now_);
    ASSERT_EQ(questions.size(), 1U);
    EXPECT_EQ(questions[0].deadline, now_ + 7s);
    EXPECT_FALSE(schedule_.next()) << "one question at a time";
    schedule_.finished(questions[0].id, false, "late", now_ + 7s);
    EXPECT_EQ(schedule_.next(), now_ + 20s);
}

TEST_F(ProbesTest, OnePlaceIsAskedOnceHoweverManyServicesUseIt_HC009) {
    model::Probe http{.kind = model::Probe::Kind::Http,
                      .port = 30000,
                      .path = "/x",
                      .interval_s = 30,
                      .healthy = 5,
                      .unhealthy = 2};
    set(probed("a", {"10.0.0.1"}, http));
    http.interval_s = 10;
    http.unhealthy = 3;
    set(probed("b", {"10.0.0.1", "10.0.0.2"}, http));
    http.path = "/y";
    set(probed("c", {"10.0.0.1"}, http));
    EXPECT_EQ(schedule_.counters().targets, 3U);
    const Questions questions = schedule_.due(now_);
    ASSERT_EQ(questions.size(), 3U);
    EXPECT_EQ(questions[0].target, (ProbeTarget{{ip("10.0.0.1"), 30000}, model::Probe::Kind::Http, "/x"}));
    for (const auto& question : questions) {
        schedule_.finished(question.id, false, "", now_);
    }
    answer_times(1, false);
    EXPECT_EQ(results(), "a 10.0.0.1 down; b 10.0.0.1 down; ")
        << "the lowest threshold of its users; 10.0.0.2 has its own";
}

TEST_F(ProbesTest, EndpointsThatGoAreAskedNoMoreAtOnce_HC009) {
    set(probed("web", {"10.0.0.1", "10.0.0.2"}));
    const Questions questions = schedule_.due(now_);
    ASSERT_EQ(questions.size(), 2U);
    schedule_.finished(questions[0].id, true, "", now_);
    schedule_.finished(questions[1].id, true, "", now_);
    EXPECT_EQ(results(), "web 10.0.0.1 up; web 10.0.0.2 up; ");
    now_ += 11s;
    const Questions open = schedule_.due(now_);
    ASSERT_EQ(open.size(), 2U);
    set(probed("web", {"10.0.0.2"}));
    ASSERT_EQ(
        schedule_.take_cancelled(),
        std::vector<ProbeId>{open[0].target.socket.address == ip("10.0.0.1") ? open[0].id : open[1].id});
    EXPECT_EQ(results(), "web 10.0.0.2 up; ");
    for (const auto& question : open) {
        // the result of a cancelled probe is late, and ignored
        schedule_.finished(question.id, false, "", now_);
    }
    EXPECT_EQ(schedule_.counters().failed, 1U);
    schedule_.set(key("web"), nullptr, now_);
    EXPECT_EQ(results(), "web nothing; ");
    EXPECT_FALSE(schedule_.next());
    EXPECT_EQ(schedule_.counters().targets, 0U);
    EXPECT_EQ(schedule_.counters().down, 0U);
}

TEST_F(ProbesTest, AServiceThatLosesItsProbeOrGetsAnotherOneIsToldAnew_HC010) {
    set(probed("web", {"10.0.0.1"}, {.unhealthy = 2}));
    answer(false);
    answer_times(1, false);
    EXPECT_EQ(results(), "web 10.0.0.1 down; ");
    set(probed("web", {"10.0.0.1"}, {.port = 9, .unhealthy = 2}));
    EXPECT_EQ(results(), "web nothing; ") << "of another question nothing is known";
    EXPECT_EQ(schedule_.counters().down, 0U);
    set(std::make_shared<const model::Service>(service("web", {}, {"10.0.0.1"})));
    EXPECT_EQ(results(), "");
    EXPECT_EQ(schedule_.counters().targets, 0U);
}

TEST_F(ProbesTest, OnlySoManyQuestionsAreOpenAndTheLongestWaitingGoFirst) {
    ProbeSchedule narrow(2, 1);
    narrow.set(key("web"), probed("web", {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}), now_);
    const Questions first = narrow.due(now_);
    ASSERT_EQ(first.size(), 2U);
    EXPECT_TRUE(narrow.due(now_).empty());
    EXPECT_FALSE(narrow.next());
    now_ += 1min;
    narrow.finished(first[0].id, true, "", now_);
    narrow.finished(first[1].id, true, "", now_);
    std::set<IpAddr> asked{first[0].target.socket.address, first[1].target.socket.address};
    for (const auto& question : narrow.due(now_)) {
        asked.insert(question.target.socket.address);
    }
    EXPECT_EQ(asked.size(), 4U) << "those that never had their turn come before those that are due again";
}

}  // namespace probes_test
}  // namespace penstock::gateway
