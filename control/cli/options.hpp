// Command line of penstockctl: which command, and with which options. One grammar for all commands; an option that a command does not know
// is refused by name, wherever on the line it stands. Pure.
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

// Text that answers --help or --version.
struct Information {
    std::string text;
};

// Values of environment variables; "" where one is not set. An option on the command line has precedence.
struct Environment {
    std::string gateway;      // $PENSTOCK_GATEWAY, for --gateway
    std::string sync_server;  // $PENSTOCK_SYNC_SERVER, for --sync-server
    client::TlsFiles
        tls;  // $PENSTOCK_TLS_CERT, $PENSTOCK_TLS_KEY, $PENSTOCK_TLS_CA, for --tls-cert, --tls-key, --tls-ca
};

// `arguments` without the program's name. Every error is one of usage.
[[nodiscard]] Result<std::variant<Invocation, Information>> read_command_line(
    const std::vector<std::string>& arguments, const Environment& environment = {});

[[nodiscard]] std::string help_text();
// Synopsis, summary and options of one command.
[[nodiscard]] std::string help_text(const Command& command);
// Long names of all options that `command` takes, the general ones included: "--output".
[[nodiscard]] std::vector<std::string> option_names(const Command& command);
// Spellings of the options that take a value, in the long and the short form: "--output", "-o".
[[nodiscard]] std::vector<std::string> options_with_value();

}  // namespace penstock::cli
