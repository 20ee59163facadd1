// SPDX-License-Identifier: Apache-2.0
// Levels by name, and lines that stay intact whatever an object's name contains.
#include "control/log/log.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::log {
namespace log_test {

TEST(Log, LevelsAreSetForOneLoggerOrAll) {
    ASSERT_TRUE(set_level("", "warn"));
    ASSERT_TRUE(set_level("rpc", "debug"));
    const auto now = levels();
    EXPECT_EQ(now.at("rpc"), "debug");
    EXPECT_EQ(now.at("control"), "warn");
    EXPECT_EQ(now.size(), std::size(kLoggers));
    EXPECT_TRUE(get("rpc").should_log(spdlog::level::debug));
    EXPECT_FALSE(get("control").should_log(spdlog::level::info));
}

TEST(Log, ALaterSettingRefinesAnEarlierOne) {
    ASSERT_TRUE(set_levels({"error", "drivers=trace"}));
    EXPECT_EQ(levels().at("drivers"), "trace");
    EXPECT_EQ(levels().at("rpc"), "error");
}

TEST(Log, UnknownNamesAreRefusedAndChangeNothing) {
    ASSERT_TRUE(set_level("", "info"));
    EXPECT_EQ(set_level("", "loud").error().code, Errc::InvalidArgument);
    EXPECT_EQ(set_level("engine", "info").error().code, Errc::NotFound);
    EXPECT_EQ(set_levels({"rpc=loud"}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(parse_format("xml").error().code, Errc::InvalidArgument);
    for (const auto& [name, level] : levels()) {
        EXPECT_EQ(level, "info") << name;
    }
}

TEST(Log, JsonTextIsEscaped) {
    EXPECT_EQ(json_escaped("a\"b\\c\nd\x01"), R"(a\"b\\c\nd\u0001)");
    EXPECT_EQ(json_escaped("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
    EXPECT_EQ(json_escaped("\xff x"), "\xef\xbf\xbd x");
    EXPECT_EQ(json_escaped("\xc3"), "\xef\xbf\xbd");  // truncated
    EXPECT_EQ(json_escaped("\xed\xa0\x80"),
              "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate is not a character
    EXPECT_EQ(json_escaped("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
}

TEST(Log, OneRecordIsOneLineInBothForms) {
    ASSERT_TRUE(set_level("", "info"));
    testing::internal::CaptureStderr();
    get("rpc").warn("service {} refused", "evil\n2026-01-01 error control: forged");
    set_format(Format::Json);
    get("rpc").error("a \"quoted\" name");
    set_format(Format::Text);
    const std::string out = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(out, '\n'), 2) << out;
    EXPECT_NE(out.find(" warn rpc: service evil 2026-01-01 error control: forged refused\n"),
              std::string::npos)
        << out;
    EXPECT_NE(out.find(R"("level":"error","logger":"rpc","message":"a \"quoted\" name"})"), std::string::npos)
        << out;
}

}  // namespace log_test
}  // namespace penstock::log
