// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/line_tail.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace penstock::gateway {
namespace line_tail_test {

TEST(LineTailTest, JoinsPartsAndKeepsTheLastLines) {
    LineTail tail;
    tail.add("fir");
    tail.add("st\n\nsecond\nthi");
    EXPECT_EQ(tail.lines(), (std::deque<std::string>{"first", "second", "thi"}));
    for (size_t i = 0; i < LineTail::kLinesMax; ++i) {
        tail.add("\n" + std::to_string(i));
    }
    tail.add("\n");
    ASSERT_EQ(tail.lines().size(), LineTail::kLinesMax);
    EXPECT_EQ(tail.lines().front(), "0");
}

TEST(LineTailTest, KeepsTheBeginningOfALongLine) {
    LineTail tail;
    tail.add(std::string(10 * LineTail::kLineBytesMax, 'a') + "\nb");
    ASSERT_EQ(tail.lines().size(), 2U);
    EXPECT_EQ(tail.lines().front(), std::string(LineTail::kLineBytesMax, 'a'));
}

}  // namespace line_tail_test
}  // namespace penstock::gateway
