// SPDX-License-Identifier: Apache-2.0
// Completions of bash, by bash itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "control/cli/options.hpp"
#include "tests/unit/cli/fake_gateway.hpp"

namespace penstock::cli {
namespace completion_test {

std::string completion_script() {
    const auto read = read_command_line({"completion", "bash"});
    const auto& invocation = std::get<Invocation>(read.value());
    return invocation.command->run(nullptr, invocation.request).value();
}

// The completions of bash for the last word of `line`, one per line. `services` is the output of `penstockctl
// get services --no-headers`. Bash itself calls the function with these variables (bash(1), "Programmable
// Completion").
std::string completions_of(const std::string& line, const std::string& services = "") {
    const std::string folder = testing::TempDir() + "completion-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/penstockctl")
        << "#!/bin/sh\necho \"$*\" >'" << folder << "/called'\nprintf '" << services << "'\n";
    std::filesystem::permissions(folder + "/penstockctl", std::filesystem::perms::owner_all);
    std::ofstream(folder + "/run")
        << "PATH='" << folder << "':$PATH\n"
        << completion_script() << "COMP_LINE='" << line
        << "' COMP_POINT=${#COMP_LINE}\n_penstockctl\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    std::string answer;
    FILE* bash = ::popen(("bash --norc '" + folder + "/run' 2>&1").c_str(), "r");
    EXPECT_NE(bash, nullptr);
    std::array<char, 4096> part{};
    while (bash != nullptr && std::fgets(part.data(), part.size(), bash) != nullptr) {
        answer += part.data();
    }
    EXPECT_EQ(::pclose(bash), 0);
    return answer;
}

TEST(Completion, OffersCommandsAndTheirOptions) {
    EXPECT_THAT(completions_of("penstockctl ge"), "get\n");
    EXPECT_THAT(completions_of("penstockctl get "),
                testing::HasSubstr("affinity\nbackends\nbfd\nconnections\n"));
    EXPECT_THAT(completions_of("penstockctl get routes --no"), "--no-headers\n");
    EXPECT_THAT(completions_of("penstockctl -o j"), "json\n");
    EXPECT_THAT(completions_of("penstockctl set log-level w"), "warn\n");
    EXPECT_THAT(completions_of("penstockctl explain annotations penstock.io/sch"), "penstock.io/scheduler\n");
    // Flags have no value, so the next word is a command.
    EXPECT_THAT(completions_of("penstockctl --no-headers -w ge"), "get\n");
}

TEST(Completion, WorksBehindASocketsPath) {
    EXPECT_THAT(completions_of("penstockctl --gateway unix:/run/x.sock ge"), "get\n");
    EXPECT_THAT(completions_of("penstockctl --gateway=unix:/run/x.sock get ro"), "routes\n");
    EXPECT_THAT(completions_of("penstockctl --gateway uni"), "unix:\n");
    EXPECT_THAT(completions_of("penstockctl --gateway unix:/etc/hostna"), "/etc/hostname\n")
        << "bash has cut the word at the colon";
}

TEST(Completion, OffersServicesOfTheGatewayThatTheLineNames) {
    constexpr const char* kServices = "default  web  80\\nshop  web  80\\nshop  web  443\\n";
    EXPECT_THAT(completions_of("penstockctl --gateway unix:/run/x.sock describe service sho", kServices),
                "shop/web\n");
    std::ifstream called(testing::TempDir() + "completion-" + std::to_string(::getpid()) + "/called");
    std::string line;
    std::getline(called, line);
    EXPECT_EQ(line, "--gateway unix:/run/x.sock get services --no-headers --timeout 1");
    EXPECT_THAT(completions_of("penstockctl get services -n s", kServices), "shop\n");
    EXPECT_THAT(completions_of("penstockctl capture --service sho", kServices), "shop/web\n");
    EXPECT_THAT(completions_of("penstockctl top sho", kServices), "shop/web\n");
}

TEST(Completion, OffersSharesOfTheGatewayThatTheLineNames) {
    constexpr const char* kShares = "0  edge-1  edge-2\\n1  edge-2  edge-1\\n12  edge-2  edge-1\\n";
    EXPECT_THAT(completions_of("penstockctl --gateway unix:/run/x.sock describe share 1", kShares),
                "1\n12\n");
    std::ifstream called(testing::TempDir() + "completion-" + std::to_string(::getpid()) + "/called");
    std::string line;
    std::getline(called, line);
    EXPECT_EQ(line, "--gateway unix:/run/x.sock get shares --no-headers --timeout 1");
}

TEST(Completion, OffersPoolsOfThePenstockSyncThatTheLineNames) {
    constexpr const char* kPools = "internal  10.9.0.0/24  0/11\\npublic  203.0.113.0/24  2/256\\n";
    EXPECT_THAT(completions_of("penstockctl --sync-server unix:/run/y.sock describe pool pub", kPools),
                "public\n");
    std::ifstream called(testing::TempDir() + "completion-" + std::to_string(::getpid()) + "/called");
    std::string line;
    std::getline(called, line);
    EXPECT_EQ(line, "--sync-server unix:/run/y.sock get pools --no-headers --timeout 1");
}

TEST(Completion, OffersContextsOfTheFileThatTheLineNames) {
    constexpr const char* kContexts = "edge-1  192.0.2.1:9106\\nedge-2  192.0.2.2:9106\\n";
    const auto called = [] {
        std::ifstream file(testing::TempDir() + "completion-" + std::to_string(::getpid()) + "/called");
        std::string line;
        std::getline(file, line);
        return line;
    };
    EXPECT_THAT(completions_of("penstockctl --config /c.ini --context edge-", kContexts), "edge-1\nedge-2\n");
    EXPECT_EQ(called(), "--config /c.ini get contexts --no-headers");
    EXPECT_THAT(completions_of("penstockctl get ro --context e", kContexts), "edge-1\nedge-2\n");
    completions_of("penstockctl --context edge-2 describe service sho", "shop  web  80\\n");
    EXPECT_EQ(called(), "--context edge-2 get services --no-headers --timeout 1");
}

TEST(Completion, AnotherShellIsRefusedByName) {
    const auto other = read_command_line({"completion", "tcsh"});
    const auto refused = std::get<Invocation>(other.value())
                             .command->run(nullptr, std::get<Invocation>(other.value()).request);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("tcsh: must be bash, zsh or fish"), std::string::npos)
        << refused.error().what;
}

}  // namespace completion_test
}  // namespace penstock::cli
