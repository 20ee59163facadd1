// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "control/cli/commands/views.hpp"
#include "control/cli/options.hpp"

namespace penstock::cli {
namespace doctor_test {

using host::Level;

const std::vector<host::Finding> kFindings{
    {"clock", "", Level::Ok, "synchronised", {}},
    {"binding",
     "0000:03:00.0",
     Level::Fault,
     "bound to ixgbe, not to vfio-pci",
     {"penstockctl doctor bind 0000:03:00.0"}},
    {"isolation", "", Level::Warning, "other programs may run", {"one", "two"}},
    {"numa", "", Level::Unknown, "/sys cannot be read", {}},
};

TEST(DoctorCommand, EachFindingIsALineWithItsCommandsBelow) {
    EXPECT_EQ(findings_text(kFindings),
              "RESULT   CHECK      OBJECT        DETAIL\n"
              "ok       clock      -             synchronised\n"
              "fault    binding    0000:03:00.0  bound to ixgbe, not to vfio-pci\n"
              "         penstockctl doctor bind 0000:03:00.0\n"
              "warning  isolation  -             other programs may run\n"
              "         one\n"
              "         two\n"
              "unknown  numa       -             /sys cannot be read\n"
              "1 fault, 1 warning, 1 unknown, 1 ok\n");
}

TEST(DoctorCommand, JsonHasTheWorstResultAndEachFinding) {
    const YAML::Node all = YAML::Load(findings_json(kFindings));
    EXPECT_EQ(all["result"].as<std::string>(), "fault");
    ASSERT_EQ(all["findings"].size(), 4U);
    const YAML::Node fault = all["findings"][1];
    EXPECT_EQ(fault["check"].as<std::string>(), "binding");
    EXPECT_EQ(fault["object"].as<std::string>(), "0000:03:00.0");
    EXPECT_EQ(fault["result"].as<std::string>(), "fault");
    EXPECT_EQ(fault["commands"][0].as<std::string>(), "penstockctl doctor bind 0000:03:00.0");
}

TEST(DoctorCommand, TheExitCodeIsThatOfTheWorstFinding) {
    const auto code = [](Level level) { return exit_code_of({kFindings[0], {"x", "", level, "", {}}}); };
    EXPECT_EQ(code(Level::Ok), 0);
    EXPECT_EQ(code(Level::Unknown), 0);
    EXPECT_EQ(code(Level::Warning), 1);
    EXPECT_EQ(code(Level::Fault), 2);
}

TEST(DoctorCommand, BindAndUnbindTakeAPciAddress) {
    for (const char* word : {"bind", "unbind"}) {
        const auto read = read_command_line({"doctor", word, "../../etc"});
        const auto& invocation = std::get<Invocation>(read.value());
        const auto refused = invocation.command->run(nullptr, invocation.request);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Errc::InvalidArgument);
        EXPECT_FALSE(read_command_line({"doctor", word}));
    }
    EXPECT_TRUE(read_command_line({"doctor", "/etc/penstock/penstockd.ini", "-o", "json"}));
}

}  // namespace doctor_test
}  // namespace penstock::cli
