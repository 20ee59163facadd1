// SPDX-License-Identifier: Apache-2.0
// penstockctl: runs one command and prints the result, repeatedly with --watch.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <thread>

#include "control/cli/exit_code.hpp"
#include "control/cli/gateway.hpp"
#include "control/cli/options.hpp"

namespace penstock::cli {
namespace {

int complain(const Error& error) {
    std::cerr << "penstockctl: " << error.what << "\n";
    return exit_code(error);
}

// A terminal is cleared before each result. In a file or pipe, results are separated by an empty line.
int watch(Gateway* gateway, const Invocation& invocation) {
    const bool on_terminal = ::isatty(STDOUT_FILENO) == 1;
    constexpr const char* kClearScreen = "\033[H\033[2J";
    for (bool first = true;; first = false) {
        const auto answer = answer_of(*invocation.command, gateway, invocation.request);
        if (!answer) {
            return complain(answer.error());
        }
        std::cout << (on_terminal ? kClearScreen : (first ? "" : "\n")) << *answer << std::flush;
        if (!std::cout) {
            return EXIT_SUCCESS;  // the reader closed the pipe
        }
        std::this_thread::sleep_for(invocation.request.interval);
    }
}

int run(const Invocation& invocation) {
    std::unique_ptr<Gateway> gateway;
    if (invocation.command->needs_gateway) {
        const Request& request = invocation.request;
        const Program program = invocation.command->program;
        // Best effort: a penstock-sync that does not respond delays the command by this time only.
        constexpr uint32_t kSyncTimeoutS = 1;
        std::unique_ptr<Gateway> sync;
        if (invocation.command->reads_addresses) {
            if (auto beside = connect(Program::PenstockSync, request.sync_target, {}, kSyncTimeoutS)) {
                sync = std::move(*beside);
            }
        }
        auto connected =
            connect(program, program == Program::Penstockd ? request.target : request.sync_target,
                    request.tls, request.timeout_s, std::move(sync));
        if (!connected) {
            return complain(connected.error());
        }
        gateway = std::move(*connected);
    }
    if (invocation.command->perform != nullptr) {
        const auto code = invocation.command->perform(gateway.get(), invocation.request);
        return code ? *code : complain(code.error());
    }
    if (invocation.request.watch) {
        return watch(gateway.get(), invocation);
    }
    const auto answer = answer_of(*invocation.command, gateway.get(), invocation.request);
    if (!answer) {
        return complain(answer.error());
    }
    std::cout << *answer << std::flush;
    if (invocation.command->judge != nullptr) {
        if (const Status verdict = invocation.command->judge(gateway.get(), invocation.request); !verdict) {
            return complain(verdict.error());
        }
    }
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace penstock::cli

int main(int argc, char** argv) {
    using namespace penstock::cli;
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    };
    const auto read =
        read_command_line({argv + 1, argv + argc}, {.gateway = variable("PENSTOCK_GATEWAY"),
                                                    .sync_server = variable("PENSTOCK_SYNC_SERVER"),
                                                    .tls = {.certificate = variable("PENSTOCK_TLS_CERT"),
                                                            .key = variable("PENSTOCK_TLS_KEY"),
                                                            .authority = variable("PENSTOCK_TLS_CA")}});
    if (!read) {
        return complain(read.error());
    }
    if (const auto* information = std::get_if<Information>(&*read)) {
        std::cout << information->text;
        return EXIT_SUCCESS;
    }
    return run(std::get<Invocation>(*read));
}
