// SPDX-License-Identifier: Apache-2.0
// Command line parser of penstockctl: the command and its options. One grammar for all commands. An option
// that the command does not have is rejected by name, at any position on the line. Pure, except for the
// context file, which it reads by a function of the caller.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/cli/commands/command.hpp"
#include "control/cli/request.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

// A gateway of --all-gateways, and the request with the options of its context.
struct NamedRequest {
    std::string name;
    Request request;
};

struct Invocation {
    const Command* command = nullptr;
    Request request;
    std::vector<NamedRequest> all;  // with --all-gateways: each gateway, in place of `request`
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
    std::string config;       // $PENSTOCK_CONFIG, for --config
    std::string home_config;  // the context file without --config
    // Returns the text of a file; nullopt: there is no such file. Empty function: there are no files.
    std::function<Result<std::optional<std::string>>(const std::string& path)> read_file = {};
};

// Parses `arguments`, without the program name. Every error is a usage error.
//
// An option of the command line has precedence over the context, and the context over an environment
// variable. Without --context, the context file's default applies if neither --gateway nor $PENSTOCK_GATEWAY
// is set.
[[nodiscard]] Result<std::variant<Invocation, Information>> read_command_line(
    const std::vector<std::string>& arguments, const Environment& environment = {});

}  // namespace penstock::cli
