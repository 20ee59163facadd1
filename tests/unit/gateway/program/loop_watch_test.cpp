// SPDX-License-Identifier: Apache-2.0
// The watching thread with simulated loops and the wall clock: tests wait for events, not for durations.
#include "control/gateway/program/loop_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

namespace penstock::gateway {
namespace loop_watch_test {

using namespace std::chrono_literals;

TEST(LoopWatch, NamesAStalledLoopUntilItGoesRoundAgain) {
    std::atomic<bool> worker_goes{true};
    std::atomic<uint64_t> rounds{0};
    std::mutex mutex;
    std::condition_variable changed;
    int changes = 0;
    LoopWatch watch(
        {.sources = {{{.name = "worker 3", .limit = 1ms, .forwards = true},
                      [&] {
                          return LoopReading{.rounds = worker_goes ? ++rounds : rounds.load(),
                                             .stage = "sending"};
                      }},
                     {{.name = "compiler", .limit = 1ms}, [] { return LoopReading{.is_resting = true}; }}},
         .on_change =
             [&] {
                 const std::lock_guard lock(mutex);
                 ++changes;
                 changed.notify_all();
             },
         .at_each_look = {}});
    const auto wait_for = [&](int n) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return changes == n; });
    };
    EXPECT_TRUE(watch.health()->forwards());
    ASSERT_EQ(watch.health()->loops.size(), 2U);
    worker_goes = false;
    wait_for(1);
    EXPECT_FALSE(watch.health()->forwards());
    ASSERT_EQ(watch.health()->stalls().size(), 1U);
    const std::string why = watch.health()->stalls()[0];
    EXPECT_TRUE(why.starts_with("worker 3 has made no round since 2") &&
                why.ends_with("Z; it stopped in: sending"))
        << why;
    worker_goes = true;
    wait_for(2);
    EXPECT_TRUE(watch.health()->forwards());
    EXPECT_TRUE(watch.health()->stalls().empty());
    watch.stop();
    watch.stop();
    EXPECT_TRUE(watch.health()->forwards());
}

TEST(LoopWatch, TrafficGoesOnWithoutTheCompiler) {
    std::mutex mutex;
    std::condition_variable changed;
    bool has_changed = false;
    LoopWatch watch(
        {.sources = {{{.name = "compiler", .limit = 1ms, .forwards = false}, [] { return LoopReading{}; }}},
         .on_change =
             [&] {
                 const std::lock_guard lock(mutex);
                 has_changed = true;
                 changed.notify_all();
             },
         .at_each_look = {}});
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return has_changed; });
    EXPECT_EQ(watch.health()->stalls().size(), 1U);
    EXPECT_TRUE(watch.health()->forwards());
}

// As the keep-alives of a service's watchdog need it.
TEST(LoopWatch, EachLookHasTheHealthOfThatLook) {
    std::mutex mutex;
    std::condition_variable looked;
    std::vector<size_t> stalls;
    LoopWatch watch(
        {.sources = {{{.name = "worker 0", .limit = 1ms, .forwards = true}, [] { return LoopReading{}; }}},
         .on_change = [] {},
         .at_each_look =
             [&](const LoopHealth& health) {
                 const std::lock_guard lock(mutex);
                 stalls.push_back(health.stalls().size());
                 looked.notify_all();
             }});
    std::unique_lock lock(mutex);
    looked.wait(lock, [&] { return stalls.size() > StallWatch::kLooks + 1; });
    EXPECT_EQ(stalls.front(), 0U);
    EXPECT_EQ(stalls.back(), 1U);
}

}  // namespace loop_watch_test
}  // namespace penstock::gateway
