// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/spsc_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace penstock {
namespace spsc_queue_test {

TEST(SpscQueue, GivesBackInOrderAndSaysWhenFull) {
    SpscQueue<int, 4> queue;
    EXPECT_FALSE(queue.pop().has_value());
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(queue.push(i));
    }
    EXPECT_FALSE(queue.push(4));
    EXPECT_EQ(queue.pop(), 0);
    EXPECT_TRUE(queue.push(5));
    for (const int expected : {1, 2, 3, 5}) {
        EXPECT_EQ(queue.pop(), expected);
    }
    EXPECT_FALSE(queue.pop().has_value());
}

TEST(SpscQueue, CarriesWholeValuesBetweenTwoThreads) {
    struct Pair {
        uint64_t a, b;
    };
    constexpr uint64_t kValues = 100'000;
    auto queue = std::make_unique<SpscQueue<Pair, 64>>();
    std::thread writer([&] {
        for (uint64_t i = 0; i < kValues; ++i) {
            while (!queue->push({i, ~i})) {
                std::this_thread::yield();
            }
        }
    });
    for (uint64_t i = 0; i < kValues; ++i) {
        std::optional<Pair> value;
        while (!(value = queue->pop())) {
            std::this_thread::yield();
        }
        ASSERT_EQ(value->a, i);
        ASSERT_EQ(value->b, ~i);
    }
    writer.join();
}

}  // namespace spsc_queue_test
}  // namespace penstock
