// SPDX-License-Identifier: Apache-2.0
#include "control/cli/option_list.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "control/client/target.hpp"

namespace penstock::cli {
namespace po = boost::program_options;
namespace {

constexpr const char* kIntroduction =
    "penstockctl: queries and controls a Penstock gateway.\n"
    "\n"
    "  penstockctl [options] COMMAND [arguments]\n"
    "\n"
    "  penstockctl get services\n"
    "  penstockctl get connections --client 10.0.0.7 --watch\n"
    "  penstockctl explain --proto tcp --src 192.0.2.1:40000 --dst 80.11.12.10:80\n";

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 refused, object not found, or status: not ready; 2 invalid command line; 3 "
    "penstockd or "
    "penstock-sync is not reachable.\n";

constexpr const char* kVariables =
    "Environment: PENSTOCK_GATEWAY, PENSTOCK_SYNC_SERVER, PENSTOCK_TLS_CERT, PENSTOCK_TLS_KEY and "
    "PENSTOCK_TLS_CA set "
    "the defaults of the options with these names.\n";

// Options of all commands. Other options must be listed in Command::options.
constexpr std::string_view kGeneral[] = {"help",     "version", "gateway", "sync-server",
                                         "tls-cert", "tls-key", "tls-ca",  "timeout"};

constexpr unsigned kHelpWidth = 120;

}  // namespace

po::options_description general_options() {
    po::options_description described("General options", kHelpWidth);
    auto add = described.add_options();
    const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
    add("gateway", text("TARGET")->default_value(client::kDefaultTarget),
        "Address of penstockd: unix:PATH, or HOST:PORT with the certificates below.");
    add("sync-server", text("TARGET")->default_value(client::kDefaultSyncTarget),
        "Address of penstock-sync (get sync): unix:PATH.");
    add("tls-cert", text("FILE"), "Client certificate, PEM.");
    add("tls-key", text("FILE"), "Private key of the client certificate, PEM.");
    add("tls-ca", text("FILE"), "CA that signed the gateway's certificate, PEM.");
    add("timeout", text("SECONDS")->default_value("10"),
        "Timeout of a call; for drain: maximum time to wait for the last open connection.");
    add("help,h", "Print this help.");
    add("version", "Print the version of penstockctl.");
    return described;
}

po::options_description command_options() {
    po::options_description described("Options of commands", kHelpWidth);
    auto add = described.add_options();
    const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
    add("output,o", text("FORMAT"), "Output format: table, wide, json or yaml (default table).");
    add("watch,w", po::bool_switch(), "Repeat until interrupted.");
    add("interval", text("SECONDS"), "Interval of --watch, 0.1-3600; fractions are allowed (default 1).");
    add("no-headers", po::bool_switch(), "Omit the header line of a table.");
    add("namespace,n", text("NAME"), "Only this Kubernetes namespace (default: all).");
    add("all-namespaces,A", po::bool_switch(), "All Kubernetes namespaces; the same as without --namespace.");
    add("client", text("IP[:PORT]"), "Only connections from this client; IPv6 with a port: [IPV6]:PORT.");
    add("frontend", text("IP[:PORT]"), "Only connections to this frontend.");
    add("backend", text("IP[:PORT]"), "Only connections forwarded to this backend.");
    add("proto", text("PROTOCOL"), "Protocol: tcp, udp or sctp.");
    add("limit", text("N"), "Stop after N entries (default: no limit).");
    add("src", text("IP:PORT"), "explain: source of the packet; IPv6: [IPV6]:PORT.");
    add("dst", text("IP:PORT"), "explain: destination of the packet; IPv6: [IPV6]:PORT.");
    add("port", text("N"),
        "explain: NIC port on which the packet arrives, see get ports (default: the port of the route to its "
        "source).");
    add("queue", text("N"),
        "explain: receive queue, and so the worker, on which the packet arrives (default 0).");
    add("all", po::bool_switch(), "clear: entries of all services.");
    add("until-restart", po::bool_switch(), "drain: end the drain at the next start of penstockd.");
    add("not-syn", po::bool_switch(), "explain: a mid-stream TCP segment instead of a SYN.");
    return described;
}

bool is_general(std::string_view option) {
    return std::ranges::find(kGeneral, option) != std::end(kGeneral);
}

std::string help_text() {
    std::ostringstream text;
    text << kIntroduction << "\nCommands:\n";
    size_t width = 0;
    const auto synopsis = [](const Command& command) {
        return name_of(command) + (command.arguments.empty() ? "" : " " + std::string(command.arguments));
    };
    for (const Command& command : all_commands()) {
        width = std::max(width, synopsis(command).size());
    }
    for (const Command& command : all_commands()) {
        const std::string left = synopsis(command);
        text << "  " << left << std::string(width - left.size() + 2, ' ') << command.summary << "\n";
    }
    text << "\n"
         << command_options() << "\n"
         << general_options() << "\n"
         << kVariables << "\n"
         << kExitCodes;
    return text.str();
}

std::string help_text(const Command& command) {
    std::ostringstream text;
    text << "penstockctl " << name_of(command)
         << (command.arguments.empty() ? "" : " " + std::string(command.arguments))
         << (command.options.empty() ? "" : " [options]") << "\n\n  " << command.summary << "\n";
    po::options_description own("Options", kHelpWidth);
    const po::options_description all = command_options();
    for (const auto& option : all.options()) {
        if (std::ranges::find(command.options, option->long_name()) != command.options.end()) {
            own.add(option);
        }
    }
    if (!own.options().empty()) {
        text << "\n" << own;
    }
    text << "\nOptions of all commands: penstockctl --help\n";
    return text.str();
}

std::vector<std::string> options_with_value() {
    std::vector<std::string> names;
    for (const po::options_description& described : {general_options(), command_options()}) {
        for (const auto& option : described.options()) {
            if (option->semantic()->max_tokens() > 0) {
                names.push_back("--" + option->long_name());
                const std::string shortest =
                    option->canonical_display_name(po::command_line_style::allow_dash_for_short);
                if (shortest.size() == 2) {
                    names.push_back(shortest);
                }
            }
        }
    }
    return names;
}

std::vector<std::string> option_names(const Command& command) {
    std::vector<std::string> names;
    for (const std::string_view name : kGeneral) {
        names.push_back("--" + std::string(name));
    }
    for (const std::string_view name : command.options) {
        names.push_back("--" + std::string(name));
    }
    return names;
}

}  // namespace penstock::cli
