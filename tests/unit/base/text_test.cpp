// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/text.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace penstock {
namespace text_test {

using Fields = std::vector<std::string_view>;

TEST(Text, BlanksAtBothEndsAreRemoved) {
    EXPECT_EQ(trimmed("  a b\t\r\n"), "a b");
    EXPECT_EQ(trimmed("a"), "a");
    EXPECT_EQ(trimmed(" \t\n\v\f\r"), "");
    EXPECT_EQ(trimmed(""), "");
}

TEST(Text, FieldsAreTrimmedAndEmptyOnesAreKept) {
    EXPECT_EQ(split("a, b ,,c", ','), (Fields{"a", "b", "", "c"}));
    EXPECT_EQ(split("", ','), Fields{""});
    EXPECT_EQ(split(",", ','), (Fields{"", ""}));
    EXPECT_EQ(split("a,b", ';'), Fields{"a,b"});
}

TEST(Text, ANumberIsTheWholeTextAndFitsItsType) {
    EXPECT_EQ(whole_number<uint16_t>("65535"), 65535);
    EXPECT_EQ(whole_number<uint8_t>("007"), 7);
    EXPECT_EQ(whole_number<uint32_t>("00ff", 16), 255u);
    EXPECT_EQ(whole_number<int64_t>("9223372036854775807"), INT64_MAX);
    for (const char* text : {"", " 1", "1 ", "+1", "-1", "-0", "1.0", "1x", "0x1", "65536", "one"}) {
        EXPECT_FALSE(whole_number<uint16_t>(text)) << text;
    }
    for (const char* text : {"-1", "-0", "9223372036854775808"}) {
        EXPECT_FALSE(whole_number<int64_t>(text)) << text;
    }
}

}  // namespace text_test
}  // namespace penstock
