// SPDX-License-Identifier: Apache-2.0
#include "control/options/ini_values.hpp"

#include <gtest/gtest.h>

namespace penstock::options {
namespace ini_values_test {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(IniValues, AllNamesInTheirOrder) {
    EXPECT_EQ(ini_values("# comment\nport = device=a;twin=b\n\nport = c # comment\nno-huge =\n").value(),
              (Pairs{{"port", "device=a;twin=b"}, {"port", "c"}, {"no-huge", ""}}));
    EXPECT_EQ(ini_values("").value(), Pairs());
}

TEST(IniValues, ALineWithoutAValueIsRefused) {
    const auto refused = ini_values("port = a\nrubbish\n");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("rubbish"), std::string::npos) << refused.error().what;
}

}  // namespace ini_values_test
}  // namespace penstock::options
