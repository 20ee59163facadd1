// SPDX-License-Identifier: Apache-2.0
#include "control/pages/pages.hpp"

#include <string_view>

#include "control/cli/commands/list.hpp"
#include "control/cli/completion/words.hpp"
#include "control/cli/option_list.hpp"
#include "control/gateway/options/option_list.hpp"
#include "control/options/ini_template.hpp"
#include "control/options/roff.hpp"
#include "control/sync/option_list.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::pages {
namespace {

using options::OptionForm;
using options::roff_bold;
using options::roff_example;
using options::roff_options;
using options::roff_text;

struct Edition {
    std::string version, date;
};

// The sets store into variables that live with them.
struct GatewayOptions {
    gateway::Options values;
    gateway::RawOptions raw;
    options::OptionSet set;
    GatewayOptions() { gateway::add_options(set, values, raw); }
};
struct SyncOptions {
    sync::Options values;
    options::OptionSet set;
    SyncOptions() { sync::add_options(set, values); }
};

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return out;
}

std::string title(const std::string& name, const char* section, const Edition& edition) {
    return ".\\\" Generated from the lists of options and commands.\n.TH \"" + upper(name) + "\" \"" +
           section + "\" \"" + edition.date + "\" \"Penstock " + edition.version + "\" \"Penstock\"\n";
}

std::string name_section(const std::string& name, const std::string& purpose) {
    std::string escaped;
    for (const char c : name) {
        escaped += c == '-' ? "\\-" : std::string(1, c);
    }
    return ".SH NAME\n" + escaped + " \\- " + purpose + "\n";
}

std::string section(const char* heading, const std::string& body) {
    return std::string(".SH ") + heading + "\n" + body;
}

// A list of terms, each with its meaning.
using Terms = std::vector<std::pair<std::string_view, std::string_view>>;

std::string terms(const Terms& list) {
    std::string text;
    for (const auto& [term, meaning] : list) {
        text += ".TP\n" + roff_bold(term) + "\n" + roff_text(meaning);
    }
    return text;
}

// "penstockd(8), penstockctl(1)"
std::string see_also(const std::vector<std::pair<const char*, const char*>>& pages) {
    std::string text;
    for (size_t i = 0; i < pages.size(); ++i) {
        text += roff_bold(pages[i].first) + "(" + pages[i].second + ")" + (i + 1 < pages.size() ? "," : "") +
                "\n";
    }
    return section("SEE ALSO", text + roff_text("The operator's guide is operations.md in the documentation "
                                                "(Debian: package penstock-doc)."));
}

// What follows the first line of a --help's head, without its usage line.
std::string_view after(std::string_view text, std::string_view mark) {
    return text.substr(text.find(mark) + mark.size());
}

constexpr std::string_view kGatewayDescription =
    "penstockd receives traffic for ExternalIPs, NodePorts and LoadBalancer addresses of Kubernetes Services "
    "by DPDK ports, forwards it to the endpoints, and translates the replies back. It is configured by "
    "penstock-sync over gRPC. It keeps forwarding with the last configuration if penstock-sync or the API "
    "server stops.";

std::string penstockd_page(const Edition& edition) {
    const GatewayOptions options;
    return title("penstockd", "8", edition) + name_section("penstockd", "layer\\-4 gateway for Kubernetes") +
           section("SYNOPSIS", roff_bold("penstockd") + "\n" + roff_bold("--port") +
                                   " \\fISPEC\\fR [\\fIoptions\\fR]\n.br\n" + roff_bold("penstockd") + "\n" +
                                   roff_bold("--config") + " \\fIFILE\\fR [\\fIoptions\\fR]\n") +
           section("DESCRIPTION", roff_text(kGatewayDescription)) +
           section("OPTIONS", roff_options(options.set, OptionForm::CommandLine)) +
           section("EXAMPLES", roff_example(after(gateway::kHelpExamples, "Examples\n"))) +
           section("SIGNALS",
                   terms({{"SIGTERM, SIGINT",
                           "Stop, after a drain with --drain-on-stop. A second signal stops at once."},
                          {"SIGHUP", "Read the blocklist, the plan of shares and the TLS files again."},
                          {"SIGUSR2",
                           "With --supervise on: replace the running process by the program at "
                           "its path, without losing connections."}})) +
           section("EXIT STATUS", terms({{"0", "Stopped by a signal."},
                                         {"1", "The start failed."},
                                         {"2", "Invalid command line or file."}})) +
           section("FILES",
                   terms({{"/etc/penstock/penstockd.ini", "Options of the service."},
                          {"/run/penstock/penstockd.sock", "gRPC socket of penstock-sync and penstockctl."},
                          {"/var/lib/penstock/last-good.pb", "The last good configuration."}})) +
           see_also({{"penstockd.ini", "5"}, {"penstock-sync", "8"}, {"penstockctl", "1"}});
}

constexpr std::string_view kSyncDescription =
    "penstock-sync watches Services, EndpointSlices and Nodes at the API server of a cluster, or reads them "
    "from a folder of manifests. It computes the state of each gateway and streams it to one or more "
    "penstockd. When it stops, the gateways keep forwarding with the last state.";

std::string sync_page(const Edition& edition) {
    const SyncOptions options;
    return title("penstock-sync", "8", edition) +
           name_section("penstock-sync", "control plane of Penstock gateways") +
           section("SYNOPSIS", roff_bold("penstock-sync") + "\n" + roff_bold("--kubeconfig") +
                                   " \\fIFILE\\fR [\\fIoptions\\fR]\n.br\n" + roff_bold("penstock-sync") +
                                   "\n" + roff_bold("--manifests") +
                                   " \\fIPATH\\fR [\\fIoptions\\fR]\n.br\n" + roff_bold("penstock-sync") +
                                   "\n" + roff_bold("--in-cluster") + " [\\fIoptions\\fR]\n") +
           section("DESCRIPTION", roff_text(kSyncDescription)) +
           section("OPTIONS", roff_options(options.set, OptionForm::CommandLine)) +
           section("SIGNALS",
                   terms({{"SIGTERM, SIGINT", "Stop. The gateways keep their state."},
                          {"SIGHUP",
                           "Read manifests, address pools, the external IP policy and the TLS files "
                           "again."}})) +
           section("EXIT STATUS", terms({{"0", "Stopped by a signal."},
                                         {"1", "The start failed."},
                                         {"2", "Invalid command line or file."}})) +
           section("FILES", terms({{"/etc/penstock/penstock-sync.ini", "Options of the service."},
                                   {"/run/penstock/penstock-sync.sock", "Status socket of penstockctl."}})) +
           see_also({{"penstock-sync.ini", "5"}, {"penstockd", "8"}, {"penstockctl", "1"}});
}

// One entry of a command: synopsis, other names, summary and its own options.
std::string command_entry(const cli::Command& command) {
    std::string text = ".TP\n" + roff_bold(cli::name_of(command));
    std::string arguments;
    for (const char c : command.arguments) {
        arguments += c == '-' ? "\\-" : std::string(1, c);
    }
    text += (arguments.empty() ? "" : " " + arguments) + "\n";
    text += roff_text(std::string(command.summary) + ".");
    std::string more;
    for (const std::string_view alias : command.aliases) {
        more += (more.empty() ? "Other names: " : ", ") + std::string(alias);
    }
    text += more.empty() ? "" : roff_text(more + ".");
    more.clear();
    for (const std::string_view option : command.options) {
        more += (more.empty() ? "Options: --" : ", --") + std::string(option);
    }
    return text + (more.empty() ? "" : roff_text(more + "."));
}

std::string ctl_page(const Edition& edition) {
    std::string commands, own, general;
    for (const cli::Command& command : cli::all_commands()) {
        commands += command_entry(command);
    }
    for (const auto& option : cli::all_shown_options()) {
        (cli::is_general(option.name) ? general : own) +=
            options::roff_option(option, OptionForm::CommandLine);
    }
    return title("penstockctl", "1", edition) +
           name_section("penstockctl", "query and control a Penstock gateway") +
           section("SYNOPSIS",
                   roff_bold("penstockctl") + "\n[\\fIoptions\\fR] \\fICOMMAND\\fR [\\fIarguments\\fR]\n") +
           section(
               "DESCRIPTION",
               roff_text("penstockctl shows the state of penstockd and penstock-sync, explains the path of a "
                         "packet, and takes a gateway out of service.")) +
           section("COMMANDS", commands) +
           section("OPTIONS", ".SS General options\n" + general + ".SS Options of commands\n" + own) +
           section("ENVIRONMENT", roff_text(after(cli::kVariables, "Environment: "))) +
           section("EXIT STATUS", roff_text(after(cli::kExitCodes, "Exit codes: "))) +
           section("EXAMPLES",
                   roff_example("penstockctl status\n"
                                "penstockctl get services -A -o wide\n"
                                "penstockctl explain --proto tcp --src 192.0.2.1:40000 --dst 80.11.12.10:80\n"
                                "source <(penstockctl completion bash)\n")) +
           see_also({{"penstockd", "8"}, {"penstock-sync", "8"}});
}

constexpr std::string_view kIniFormat =
    "Each line of the file is an option of the program, without its dashes: name = value. Text after # is a "
    "comment. "
    "A repeatable option is repeated as a line. There are no sections. An unknown name and an invalid value "
    "end the "
    "start with the number of the line. Boolean options are on or off; for a switch, an empty value means "
    "on. The "
    "command line takes precedence over the file, and the file over defaults. A file takes effect at the "
    "next start, "
    "or at the next upgrade of a supervised penstockd.";

std::string ini_page(const std::string& program, const options::OptionSet& set, const std::string& example,
                     const Edition& edition) {
    return title(program + ".ini", "5", edition) +
           name_section(program + ".ini", "options of " + std::string(roff_bold(program))) +
           section("SYNOPSIS", roff_bold("/etc/penstock/" + program + ".ini") + "\n") +
           section(
               "DESCRIPTION",
               roff_text(kIniFormat) + ".PP\n" + roff_text("Check a file before a restart:") + ".sp\n" +
                   roff_example(program + " --config /etc/penstock/" + program + ".ini --check-config\n")) +
           section("OPTIONS", roff_options(set, OptionForm::Ini)) +
           section("EXAMPLES", roff_example(example)) + see_also({{program.c_str(), "8"}});
}

std::string ini_file(const std::string& program, const options::OptionSet& set, const std::string& remark) {
    return options::ini_template(
        set, "Options of " + program +
                 ", as read by its service. Every option is commented out and shown with its default, or "
                 "with the form of its value.\n" +
                 remark + "\nCheck with: " + program + " --config /etc/penstock/" + program +
                 ".ini --check-config\nManual: " + program + ".ini(5), " + program + "(8)");
}

}  // namespace

std::vector<Page> all_pages(const std::string& version, const std::string& date) {
    const Edition edition{version, date};
    const GatewayOptions gateway;
    const SyncOptions sync;
    return {
        {"penstockd.8", penstockd_page(edition)},
        {"penstock-sync.8", sync_page(edition)},
        {"penstockctl.1", ctl_page(edition)},
        {"penstockd.ini.5", ini_page("penstockd", gateway.set,
                                     "port = device=0000:03:00.0;twin=pen0;address=192.0.2.1/24\n"
                                     "port = device=0000:03:00.1;twin=pen1;address=10.0.0.1/24\n"
                                     "worker-cores = 2-5\nmain-core = 1\nmemory-mb = 4096\n",
                                     edition)},
        {"penstock-sync.ini.5", ini_page("penstock-sync", sync.set,
                                         "kubeconfig = /etc/penstock/kubeconfig\n"
                                         "allowed-external-cidrs = 203.0.113.0/24\n",
                                         edition)},
        {"penstockd.ini", ini_file("penstockd", gateway.set, "At least one port is required.")},
        {"penstock-sync.ini",
         ini_file("penstock-sync", sync.set, "One of manifests, kubeconfig and in-cluster is required.")},
        {"penstockctl.bash", cli::bash_completion()},
        {"penstockctl.zsh", cli::zsh_completion()},
        {"penstockctl.fish", cli::fish_completion()},
    };
}

}  // namespace penstock::pages
