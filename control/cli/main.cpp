// SPDX-License-Identifier: Apache-2.0
// penstockctl: runs one command, at one gateway or at all of a context file, and prints the result. With
// --watch it does so repeatedly.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "control/base/whole_file.hpp"
#include "control/cli/all_gateways.hpp"
#include "control/cli/exit_code.hpp"
#include "control/cli/gateway.hpp"
#include "control/cli/options.hpp"

namespace penstock::cli {
namespace {

int complain(const Error& error) {
    std::cerr << "penstockctl: " << error.what << "\n";
    return exit_code(error);
}

// Connects a command's request; does not block.
Result<std::unique_ptr<Gateway>> connect_for(const Command& command, const Request& request) {
    // Best effort: a penstock-sync that does not respond delays the command by this time only.
    constexpr uint32_t kSyncTimeoutS = 1;
    std::unique_ptr<Gateway> sync;
    if (command.reads_addresses) {
        if (auto beside = connect(Program::PenstockSync, request.sync_target, {}, kSyncTimeoutS)) {
            sync = std::move(*beside);
        }
    }
    return connect(command.program,
                   command.program == Program::Penstockd ? request.target : request.sync_target, request.tls,
                   request.timeout_s, std::move(sync));
}

// One answer, printed to standard output; errors on standard error. Returns the exit code.
using Round = std::function<int(std::string_view separator)>;

// A terminal is cleared before each result. In a file or pipe, results are separated by an empty line. Ends
// when the reader has closed the pipe.
int watch(const Round& round, std::chrono::milliseconds interval, bool ends_on_error) {
    const bool on_terminal = ::isatty(STDOUT_FILENO) == 1;
    constexpr const char* kClearScreen = "\033[H\033[2J";
    for (bool first = true;; first = false) {
        const int code = round(on_terminal ? kClearScreen : (first ? "" : "\n"));
        if (code != EXIT_SUCCESS && ends_on_error) {
            return code;
        }
        if (!std::cout) {
            return EXIT_SUCCESS;  // the reader closed the pipe
        }
        std::this_thread::sleep_for(interval);
    }
}

int run_at_one(const Invocation& invocation) {
    const Command& command = *invocation.command;
    std::unique_ptr<Gateway> gateway;
    if (command.needs_gateway) {
        auto connected = connect_for(command, invocation.request);
        if (!connected) {
            return complain(connected.error());
        }
        gateway = std::move(*connected);
    }
    if (command.perform != nullptr) {
        const auto code = command.perform(gateway.get(), invocation.request);
        return code ? *code : complain(code.error());
    }
    const Round round = [&](std::string_view separator) {
        const auto answer = answer_of(command, gateway.get(), invocation.request);
        if (!answer) {
            return complain(answer.error());
        }
        std::cout << separator << *answer << std::flush;
        return EXIT_SUCCESS;
    };
    if (invocation.request.watch) {
        return watch(round, invocation.request.interval, true);
    }
    const int code = round("");
    if (code == EXIT_SUCCESS && command.judge != nullptr) {
        if (const Status verdict = command.judge(gateway.get(), invocation.request); !verdict) {
            return complain(verdict.error());
        }
    }
    return code;
}

int run_at_all(const Invocation& invocation) {
    std::vector<Member> members;
    for (const NamedRequest& named : invocation.all) {
        members.push_back({named.name, named.request, connect_for(*invocation.command, named.request)});
    }
    const Round round = [&](std::string_view separator) {
        const Report report = report_of_all(*invocation.command, invocation.request, members);
        std::cout << separator << report.text << std::flush;
        for (const std::string& error : report.errors) {
            std::cerr << "penstockctl: " << error << "\n";
        }
        return report.exit_code;
    };
    // One gateway of several may be gone and return.
    return invocation.request.watch ? watch(round, invocation.request.interval, false) : round("");
}

// The default context file: $XDG_CONFIG_HOME/penstock/contexts.ini, or ~/.config/penstock/contexts.ini.
std::string home_config(const std::string& config_home, const std::string& home) {
    if (!config_home.empty()) {
        return config_home + "/penstock/contexts.ini";
    }
    return home.empty() ? "" : home + "/.config/penstock/contexts.ini";
}

Result<std::optional<std::string>> read_context_file(const std::string& path) {
    constexpr size_t kBytesMax = size_t{1} << 20;  // more than kContextsMax contexts
    auto text = read_whole_file(path, kBytesMax);
    if (!text) {
        text.error().code = Errc::InvalidArgument;
    }
    return text;
}

}  // namespace
}  // namespace penstock::cli

int main(int argc, char** argv) {
    using namespace penstock::cli;
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    };
    const auto read = read_command_line(
        {argv + 1, argv + argc}, {.gateway = variable("PENSTOCK_GATEWAY"),
                                  .sync_server = variable("PENSTOCK_SYNC_SERVER"),
                                  .tls = {.certificate = variable("PENSTOCK_TLS_CERT"),
                                          .key = variable("PENSTOCK_TLS_KEY"),
                                          .authority = variable("PENSTOCK_TLS_CA")},
                                  .config = variable("PENSTOCK_CONFIG"),
                                  .home_config = home_config(variable("XDG_CONFIG_HOME"), variable("HOME")),
                                  .read_file = read_context_file});
    if (!read) {
        return complain(read.error());
    }
    if (const auto* information = std::get_if<Information>(&*read)) {
        std::cout << information->text;
        return EXIT_SUCCESS;
    }
    const auto& invocation = std::get<Invocation>(*read);
    return invocation.all.empty() ? run_at_one(invocation) : run_at_all(invocation);
}
