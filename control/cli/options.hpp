// SPDX-License-Identifier: Apache-2.0
// Command line parser of penstockctl: the command and its options. One grammar for all commands. An option
// that the command does not have is rejected by name, at any position on the line. Pure.
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "control/cli/commands/command.hpp"
#include "control/cli/request.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct Invocation {
    const Command* command = nullptr;
    Request request;
};

// Text for --help or --version.
struct Information {
    std::string text;
};

// Values of environment variables; "" if unset. An option on the command line has precedence.
struct Environment {
    std::string gateway;      // $PENSTOCK_GATEWAY, for --gateway
    std::string sync_server;  // $PENSTOCK_SYNC_SERVER, for --sync-server
    // $PENSTOCK_TLS_CERT, $PENSTOCK_TLS_KEY and $PENSTOCK_TLS_CA, for --tls-cert, --tls-key and --tls-ca.
    client::TlsFiles tls;
};

// Parses `arguments`, without the program name. Every error is a usage error.
[[nodiscard]] Result<std::variant<Invocation, Information>> read_command_line(
    const std::vector<std::string>& arguments, const Environment& environment = {});

}  // namespace penstock::cli
