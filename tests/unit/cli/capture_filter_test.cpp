// SPDX-License-Identifier: Apache-2.0
#include "control/cli/capture_filter.hpp"

#include <gtest/gtest.h>

namespace penstock::cli {
namespace capture_filter_test {

TEST(CaptureFilter, CompilesToAValidProgram) {
    for (const char* filter : {"tcp port 80", "host 10.0.0.1 or ip6", "(udp or sctp) and not port 53"}) {
        const auto instructions = compile_filter(filter);
        ASSERT_TRUE(instructions.has_value()) << instructions.error().what;
        EXPECT_FALSE(instructions->empty());
        EXPECT_TRUE(capture::Program::make(*instructions).has_value()) << filter;
    }
    EXPECT_TRUE(compile_filter("").value().empty());
    EXPECT_TRUE(compile_filter("  \t").value().empty());
}

TEST(CaptureFilter, AnErrorNamesThePlace) {
    const struct {
        std::string filter;
        size_t column;  // from 1
    } rows[] = {
        {"host 10.0.0.1 and and port 80", 19},
        {"port 99999999", 1},
        {"tcp and (udp port 53 or )", 25},
        {"tcp )", 5},
        {"tcp and host", 9},
        {"=", 1},
    };
    for (const auto& row : rows) {
        const auto failed = compile_filter(row.filter);
        ASSERT_FALSE(failed.has_value()) << row.filter;
        EXPECT_EQ(failed.error().code, Errc::InvalidArgument);
        const std::string& what = failed.error().what;
        EXPECT_TRUE(what.starts_with("filter, column " + std::to_string(row.column) + ": ")) << what;
        EXPECT_TRUE(what.ends_with("\n  " + row.filter + "\n  " + std::string(row.column - 1, ' ') + "^"))
            << what;
    }
}

}  // namespace capture_filter_test
}  // namespace penstock::cli
