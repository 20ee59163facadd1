// SPDX-License-Identifier: Apache-2.0
// penstockd: the gateway. Exit codes: 0 stopped by a signal, 1 could not start, 2 wrong usage.
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "control/gateway/options/options.hpp"
#include "control/gateway/program/daemon.hpp"
#include "control/gateway/program/descriptors.hpp"
#include "control/gateway/program/environment_check.hpp"
#include "control/gateway/program/port_setup.hpp"
#include "control/gateway/program/supervisor.hpp"
#include "control/gateway/program/version.hpp"
#include "control/gateway/upgrade/handover.hpp"
#include "control/log/log.hpp"
#include "control/process/sandbox.hpp"
#include "dataplane/base/text.hpp"

int main(int argc, char** argv) {
    using namespace penstock;
    using gateway::Daemon;

    auto options = gateway::Options::parse(std::vector<std::string>(argv + 1, argv + argc));
    if (!options) {
        for (const std::string_view mistake : split(options.error().what, '\n')) {
            std::cerr << "penstockd: " << mistake << "\n";
        }
        std::cerr << "penstockd --help lists the options\n";
        return 2;
    }
    if (options->action == gateway::Options::Action::Help) {
        std::cout << gateway::Options::help();
        return 0;
    }
    if (options->action == gateway::Options::Action::Version) {
        std::cout << "penstockd " << gateway::kVersion << "\n";
        return 0;
    }
    const auto mistakes = gateway::check_environment(*options, gateway::this_machine());
    if (options->action == gateway::Options::Action::Check) {
        for (const std::string& mistake : mistakes) {
            std::cerr << "penstockd: " << mistake << "\n";
        }
        if (mistakes.empty()) {
            std::cout << "penstockd: the configuration is valid: " << options->ports.size()
                      << " ports, gateway " << options->identity.gateway_name << "\n";
        }
        return mistakes.empty() ? 0 : 2;
    }
    log::set_format(options->log_format);
    if (auto set = log::set_levels(options->log_levels); !set) {
        std::cerr << "penstockd: " << set.error().what << "\n";
        return 2;
    }

    for (const std::string& mistake : mistakes) {
        log::get("control").error("cannot start: {}", mistake);
    }
    if (!mistakes.empty()) {
        return 1;
    }
    if (const std::string missing = gateway::missing_capabilities(*options); !missing.empty()) {
        log::get("control").error("cannot start: {}", missing);
        return 1;
    }
    auto handover = gateway::Handover::inherit();
    if (options->supervise && !handover.is_supervised()) {
        return gateway::supervise(
            argv, gateway::guarded_interfaces(
                      options->ports));  // which starts this program again, without the sandbox of its child
    }
    gateway::raise_descriptor_limit();
    if (options->sandbox) {
        const auto capabilities = gateway::used_capabilities(*options);
        // Before any thread starts.
        if (auto entered = process::enter_sandbox(
                {.capabilities = capabilities, .keeps_bpf = gateway::uses_bpf(*options)});
            !entered) {
            log::get("control").error("cannot start: {}; use --sandbox off to start without a sandbox",
                                      entered.error().what);
            return 1;
        }
    }
    Daemon daemon(std::move(*options), std::move(handover));
    for (const Daemon::Step step : daemon.steps()) {
        if (auto done = (daemon.*step)(); !done) {
            log::get("control").error("cannot start: {}", done.error().what);
            return 1;
        }
    }
    daemon.run();
    return 0;
}
