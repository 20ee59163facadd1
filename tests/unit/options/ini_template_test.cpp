// SPDX-License-Identifier: Apache-2.0
#include "control/options/ini_template.hpp"

#include <gtest/gtest.h>

namespace penstock::options {
namespace ini_template_test {

TEST(IniTemplate, EachOptionIsDescribedAndCommentedOut) {
    uint32_t burst = 64;
    std::string name;
    std::vector<std::string> labels;
    OptionSet set;
    set.add_daemon_group();
    set.group("Settings");
    set.add("burst", number(burst, {4, 64, "packets"}), "Receive burst, 4-64");
    set.group("Names");
    set.add("name", text(name, "NAME"), "Name (default: the host name)");
    set.add("label", list(labels, "K=V", any_text), std::string(60, 'x') + " " + std::string(60, 'y'));
    EXPECT_EQ(ini_template(set, "Options of a program.\nSecond line."),
              "# Options of a program.\n"
              "# Second line.\n"
              "\n"
              "# ---- Settings ----\n"
              "\n"
              "# Receive burst, 4-64. Default: 64.\n"
              "#burst = 64\n"
              "\n"
              "# ---- Names ----\n"
              "\n"
              "# Name (default: the host name).\n"
              "#name = NAME\n"
              "\n"
              "# " +
                  std::string(60, 'x') + "\n# " + std::string(60, 'y') +
                  ".\n"
                  "#label = K=V\n");
    EXPECT_TRUE(set.read_ini(ini_template(set, "head"), [] { return Status(); }));
}

}  // namespace ini_template_test
}  // namespace penstock::options
