// SPDX-License-Identifier: Apache-2.0
#include "control/options/roff.hpp"

#include <gtest/gtest.h>

namespace penstock::options {
namespace roff_test {

TEST(Roff, TextIsWrappedAndItsSpecialCharactersAreEscaped) {
    const std::pair<const char*, const char*> kCases[] = {
        {"", ""},
        {"one  two\nthree", "one two three\n"},
        {"--port a\\b", "\\-\\-port a\\eb\n"},
        {".hidden 'quoted'", "\\&.hidden \\(aqquoted\\(aq\n"},
        {"'", "\\(aq\n"},
        {"First. Second", "First.\nSecond\n"},
        {"~/x `y` z^2", "\\(ti/x \\(gay\\(ga z\\(ha2\n"},
    };
    for (const auto& [text, expected] : kCases) {
        EXPECT_EQ(roff_text(text), expected) << text;
    }
    const std::string word(30, 'x');
    EXPECT_EQ(roff_text(word + " " + word + " " + word), word + " " + word + "\n" + word + "\n");
}

TEST(Roff, AnExampleKeepsItsLines) {
    EXPECT_EQ(roff_example("a  b\n\n.c\n"), ".RS 4\n.nf\na  b\n\\&\n\\&.c\n.fi\n.RE\n");
}

struct Program {
    bool is_on = true, is_dry = false;
    uint32_t burst = 64;
    std::string name, file = "/x";
    OptionSet set;
    Program() {
        set.add_daemon_group();
        set.group("Settings");
        set.add("burst,b", number(burst, {4, 64, "packets"}), "Receive burst, 4-64");
        set.add("dry", on_off_switch(is_dry), "Change nothing (default: off)");
        set.add("name", text(name, "NAME").or_variable("TEST_NAME", ""), "Name.");
    }
};

TEST(Roff, AnOptionHasItsFormsItsDescriptionAndItsDefault) {
    const Program program;
    const auto& options = program.set.groups()[1].options;
    EXPECT_EQ(roff_option(options[0], OptionForm::CommandLine),
              ".TP\n\\fB\\-b\\fR, \\fB\\-\\-burst\\fR \\fIN\\fR\nReceive burst, 4\\-64.\nDefault: 64.\n");
    EXPECT_EQ(roff_option(options[0], OptionForm::Ini),
              ".TP\n\\fBburst\\fR = \\fIN\\fR\nReceive burst, 4\\-64.\nDefault: 64.\n");
    EXPECT_EQ(roff_option(options[1], OptionForm::CommandLine),
              ".TP\n\\fB\\-\\-dry\\fR [\\fIon|off\\fR]\nChange nothing (default: off).\n");
    EXPECT_EQ(roff_option(options[2], OptionForm::CommandLine),
              ".TP\n\\fB\\-\\-name\\fR \\fINAME\\fR\nName.\n"
              "The environment variable TEST_NAME sets the default.\n");
    EXPECT_EQ(roff_option(options[2], OptionForm::Ini), ".TP\n\\fBname\\fR = \\fINAME\\fR\nName.\n");
}

TEST(Roff, AFileHasNoOptionsOfTheCommandLine) {
    const Program program;
    const std::string all = roff_options(program.set, OptionForm::CommandLine);
    const std::string file = roff_options(program.set, OptionForm::Ini);
    EXPECT_NE(all.find(".SS General\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"), std::string::npos) << all;
    EXPECT_TRUE(file.starts_with(".SS Settings\n")) << file;
}

}  // namespace roff_test
}  // namespace penstock::options
