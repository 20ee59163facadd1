// SPDX-License-Identifier: Apache-2.0
#include "control/options/values.hpp"

#include <gtest/gtest.h>

namespace penstock::options {
namespace values_test {

using namespace std::chrono_literals;

template <typename T>
std::string error_of(const Result<T>& result) {
    return result ? "accepted" : result.error().what;
}

TEST(OptionValues, BooleansAreOnOrOffAndHaveOtherSpellings) {
    for (const char* yes : {"on", "true", "yes", "1", "ON", "True", "yEs"}) {
        EXPECT_EQ(parse_on_off(yes), true) << yes;
    }
    for (const char* no : {"off", "false", "no", "0", "OFF", "False", "nO"}) {
        EXPECT_EQ(parse_on_off(no), false) << no;
    }
    for (const char* neither : {"", "o", "onn", "2", "t", "f", "enabled", " on"}) {
        EXPECT_EQ(error_of(parse_on_off(neither)), "\"" + std::string(neither) + "\" must be on or off");
    }
}

TEST(OptionValues, NumbersHaveARangeAndAUnit) {
    const Range range{.min = 4, .max = 64, .unit = "packets"};
    EXPECT_EQ(parse_number("4", range), 4u);
    EXPECT_EQ(parse_number(" 64 ", range), 64u);
    for (const char* text : {"3", "65", "", "+5", "-5", "5x", "5.0", "99999999999999999999"}) {
        EXPECT_EQ(error_of(parse_number(text, range)),
                  "\"" + std::string(text) + "\" must be 4 to 64 packets");
    }
    EXPECT_EQ(error_of(parse_number("x", {.max = 9})), "\"x\" must be 0 to 9");
}

TEST(OptionValues, SecondsMayHaveAFraction) {
    EXPECT_EQ(parse_seconds("0.1", 100ms, 1h), 100ms);
    EXPECT_EQ(parse_seconds("3600", 100ms, 1h), 1h);
    for (const char* text : {"0.09", "3600.1", "1s", "", "nan", "inf", "-1"}) {
        EXPECT_EQ(error_of(parse_seconds(text, 100ms, 1h)),
                  "\"" + std::string(text) + "\" must be 0.1 to 3600 seconds");
    }
}

TEST(OptionValues, IntervalsAreOrdered) {
    const Range range{.min = 1, .max = 65535};
    const auto ports = parse_interval("1024-65535", range);
    ASSERT_TRUE(ports);
    EXPECT_EQ(ports->first, 1024u);
    EXPECT_EQ(ports->last, 65535u);
    EXPECT_TRUE(parse_interval("7-7", range));
    for (const char* text : {"2-1", "0-1", "1-65536", "1", "1-2-3", "-", "a-b", ""}) {
        EXPECT_EQ(error_of(parse_interval(text, range)),
                  "\"" + std::string(text) + "\" must be FIRST-LAST within 1 to 65535");
    }
}

TEST(OptionValues, FilesHaveAbsolutePaths) {
    EXPECT_EQ(parse_file("/etc/list"), "/etc/list");
    for (const char* text : {"", "list", "./list", "/etc/"}) {
        EXPECT_EQ(error_of(parse_file(text)),
                  "\"" + std::string(text) + "\" must be the absolute path of a file");
    }
}

TEST(OptionValues, WordsAreListedByTheError) {
    const std::vector<Word<int>> words = {{"pod", 1}, {"node", 2}, {"auto", 3}};
    EXPECT_EQ(parse_word("node", words), 2);
    EXPECT_EQ(error_of(parse_word("Node", words)), "\"Node\" must be pod, node or auto");
    EXPECT_EQ(alternatives({"a"}), "a");
    EXPECT_EQ(alternatives({"a", "b"}), "a or b");
}

}  // namespace values_test
}  // namespace penstock::options
