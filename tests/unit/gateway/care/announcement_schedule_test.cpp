// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/announcement_schedule.hpp"

#include <gtest/gtest.h>

#include "desired_builder.hpp"

namespace penstock::gateway {
namespace announcement_schedule_test {

using namespace std::chrono_literals;
using Time = AnnouncementSchedule::Time;

const route::LocalAddress kVip{NicPortId{0}, ip("192.0.2.80"), 32};
const route::LocalAddress kMoved{NicPortId{1}, ip("192.0.2.80"), 32};

// The times, in ms, at which a caller that follows next() announces anything.
std::vector<int64_t> announced(AnnouncementSchedule& schedule, Time start, std::chrono::milliseconds span) {
    std::vector<int64_t> times;
    for (auto next = schedule.next(); next && *next <= start + span; next = schedule.next()) {
        for (size_t i = schedule.take_due(*next).size(); i > 0; --i) {
            times.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(*next - start).count());
        }
    }
    return times;
}

TEST(AnnouncementSchedule, AtOnceAfterATenthAndASecondThenEachMinute_PRESENCE004) {
    AnnouncementSchedule schedule;
    const Time start{5h};
    EXPECT_FALSE(schedule.next());
    schedule.add(kVip, start);
    schedule.add(kVip, start + 50ms);  // no second beginning
    EXPECT_EQ(announced(schedule, start, 130s), (std::vector<int64_t>{0, 100, 1'000, 61'000, 121'000}));
    schedule.remove(kVip);
    EXPECT_FALSE(schedule.next());
}

TEST(AnnouncementSchedule, AVipOnAnotherPortBeginsAgain_PRESENCE004) {
    AnnouncementSchedule schedule;
    const Time start{5h};
    schedule.add(kVip, start);
    EXPECT_EQ(announced(schedule, start, 30s).size(), 3U);
    schedule.remove(kVip);
    schedule.add(kMoved, start + 30s);
    EXPECT_EQ(schedule.next(), start + 30s);
    const auto due = schedule.take_due(start + 30s);
    ASSERT_EQ(due.size(), 1U);
    EXPECT_EQ(due[0], kMoved);
}

TEST(AnnouncementSchedule, ALateCallerAnnouncesOnceAndManyVipsInTurn_PRESENCE004) {
    AnnouncementSchedule schedule;
    const Time start{5h};
    for (uint8_t i = 0; i < 70; ++i) {
        schedule.add({NicPortId{0}, IpAddr::v4(192, 0, 2, i), 32}, start);
    }
    EXPECT_EQ(schedule.take_due(start).size(), 64U);
    EXPECT_EQ(schedule.next(), start + 16ms) << "six are left";
    EXPECT_EQ(schedule.take_due(start + 15ms).size(), 0U) << "the rate is limited";
    EXPECT_EQ(schedule.take_due(start + 16ms).size(), 6U);
    size_t late = 0;
    for (auto now = start + 1h; now < start + 1h + 1s; now += 16ms) {
        late += schedule.take_due(now).size();
    }
    EXPECT_EQ(late, 140U)
        << "the two left of the first three, each; minutes that were missed are not repeated";
    schedule.clear();
    EXPECT_FALSE(schedule.next());
}

}  // namespace announcement_schedule_test
}  // namespace penstock::gateway
