// SPDX-License-Identifier: Apache-2.0
#include "control/cli/option_list.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "control/cli/contexts.hpp"
#include "control/cli/service_name.hpp"
#include "control/client/target.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::cli {

using options::flag;
using options::number;
using options::one_of;
using options::OptionSet;
using options::parsed;
using options::refuse;
using options::text;

const char* const kExitCodes =
    "Exit codes: 0 done; 1 refused, object not found, or status: not ready; 2 invalid command line; 3 "
    "penstockd or penstock-sync is not reachable. With --all-gateways: the highest code of a gateway. "
    "doctor: 0 ready, 1 warning, 2 fault.\n";

const char* const kVariables =
    "Environment: PENSTOCK_GATEWAY, PENSTOCK_SYNC_SERVER, PENSTOCK_CONFIG, PENSTOCK_TLS_CERT, "
    "PENSTOCK_TLS_KEY and PENSTOCK_TLS_CA set the defaults of the options with these names.\n";

namespace {

constexpr const char* kIntroduction =
    "penstockctl: queries and controls a Penstock gateway.\n"
    "\n"
    "  penstockctl [options] COMMAND [arguments]\n"
    "\n"
    "  penstockctl get services\n"
    "  penstockctl get connections --client 10.0.0.7 --watch\n"
    "  penstockctl explain --proto tcp --src 192.0.2.1:40000 --dst 80.11.12.10:80\n";

constexpr const char* kGeneralTitle = "General options";

// Parses "1.2.3.4", "1.2.3.4:80", "2001:db8::1" or "[2001:db8::1]:80"; the result is in canonical form.
Result<v1::SocketAddress> socket_address(const std::string& given) {
    std::string_view host = given, port;
    bool has_port = false;
    if (given.starts_with('[')) {
        const size_t bracket = given.find(']');
        if (bracket == std::string::npos || (bracket + 1 < given.size() && given[bracket + 1] != ':')) {
            return refuse(given, "must be [IPV6]:PORT");
        }
        host = host.substr(1, bracket - 1);
        has_port = bracket + 2 < given.size();
        port = has_port ? std::string_view(given).substr(bracket + 2) : "";
    } else if (std::ranges::count(given, ':') == 1) {
        host = host.substr(0, given.find(':'));
        port = std::string_view(given).substr(given.find(':') + 1);
        has_port = !port.empty();
    }
    PENSTOCK_TRY(const auto address, IpAddr::parse(host));
    v1::SocketAddress socket;
    socket.set_address(address.to_string());
    if (has_port) {
        const auto number = whole_number<uint16_t>(port);
        if (number.value_or(0) == 0) {
            return refuse(given, "must have a port from 1 to 65535");
        }
        socket.set_port(*number);
    }
    return socket;
}

Result<v1::Protocol> protocol(const std::string& given) {
    std::string lower = given;
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    auto read = options::parse_word<v1::Protocol>(
        lower, {{"tcp", v1::PROTOCOL_TCP}, {"udp", v1::PROTOCOL_UDP}, {"sctp", v1::PROTOCOL_SCTP}});
    if (!read && lower.starts_with("icmp")) {
        read.error().what += "; ICMP is not supported";
    }
    return read;
}

Result<v1::CaptureRequest::Point> capture_point(const std::string& given) {
    return options::parse_word<v1::CaptureRequest::Point>(given, {{"rx", v1::CaptureRequest::POINT_RX},
                                                                  {"tx", v1::CaptureRequest::POINT_TX},
                                                                  {"drop", v1::CaptureRequest::POINT_DROP},
                                                                  {"host", v1::CaptureRequest::POINT_HOST}});
}

// Shorter intervals are not readable and would load a busy gateway.
Result<std::chrono::milliseconds> interval(const std::string& given) {
    return options::parse_seconds(given, std::chrono::milliseconds(100), std::chrono::hours(1));
}

Result<std::string> absolute_path(const std::string& given) {
    return given.starts_with('/') ? Result<std::string>(given) : refuse(given, "must be an absolute path");
}

// The list for --help and completion.
struct List {
    Request request;
    OptionSet set;
    List() { add_options(set, request, {}); }
};

}  // namespace

void add_options(OptionSet& set, Request& request, const Environment& environment) {
    set.group("Options of commands");
    set.add("output,o",
            one_of(request.format, {{"table", Format::Table},
                                    {"wide", Format::Wide},
                                    {"json", Format::Json},
                                    {"yaml", Format::Yaml}}),
            "Output format.");
    set.add("watch,w", flag(request.watch), "Repeat until interrupted.");
    set.add("interval", parsed(request.interval, "SECONDS", interval),
            "Interval of --watch and top, 0.1-3600; fractions are allowed (default 1).");
    set.add("no-headers", flag(request.no_headers), "Omit the header line of a table.");
    set.add("namespace,n", text(request.namespace_name, "NAME"),
            "Only this Kubernetes namespace (default: all).");
    set.add("all-namespaces,A", flag(), "All Kubernetes namespaces; the same as without --namespace.");
    set.add("client", parsed(request.client, "IP[:PORT]", socket_address),
            "Only connections from this client; IPv6 with a port: [IPV6]:PORT.");
    set.add("frontend", parsed(request.frontend, "IP[:PORT]", socket_address),
            "Only connections to this frontend.");
    set.add("backend", parsed(request.backend, "IP[:PORT]", socket_address),
            "Only connections forwarded to this backend.");
    set.add("proto", parsed(request.protocol, "PROTOCOL", protocol), "Protocol: tcp, udp or sctp.");
    set.add("limit", number(request.limit, {0, UINT32_MAX, "entries"}).without_default(),
            "Stop after N entries (default: no limit).");
    set.add("src", parsed(request.source, "IP:PORT", socket_address),
            "explain: source of the packet; IPv6: [IPV6]:PORT.");
    set.add("dst", parsed(request.destination, "IP:PORT", socket_address),
            "explain: destination of the packet; IPv6: [IPV6]:PORT.");
    set.add("port", number(request.nic_port, {0, 255}),
            "explain: NIC port on which the packet arrives, see get ports (default: the port of the route to "
            "its source).");
    set.add("queue", number(request.queue, {0, 65'535}).without_default(),
            "explain: receive queue, and so the worker, on which the packet arrives (default 0).");
    set.add("all", flag(request.all), "clear: entries of all services.");
    set.add("until-restart", flag(request.until_restart),
            "drain: end the drain at the next start of penstockd.");
    set.add("binary", parsed(request.binary, "PATH", absolute_path),
            "upgrade: absolute path of the new penstockd on the gateway's machine (default: the path of the "
            "running program).");
    set.add("wait", flag(request.waits),
            "upgrade: print each step and wait for the result, up to --timeout (default 120).");
    set.add("not-syn", flag(request.not_syn), "explain: a mid-stream TCP segment instead of a SYN.");
    set.add("view", text(request.view, "VIEW"), "top: services, backends, workers, ports, drops or clients.");
    set.add("sort", text(request.sort, "COLUMN"),
            "top: column to sort by, by its header (default: the first).");
    set.add("once", flag(request.once), "top: print the rates of one interval, and end.");
    set.add("service", parsed(request.service, "NAME|NS/NAME", parse_service_name),
            "capture: only packets of this Service: of its connections, or to its frontends.");
    set.add(
        "point",
        options::list(request.points, "rx,tx,drop,host", capture_point,
                      {.separator = ',', .is_distinct = true}),
        "capture: points at which packets are recorded: received by a port, sent by a port, dropped, from "
        "or for Linux (default: all).");
    set.add("match",
            one_of(request.form, {{"received", v1::CaptureRequest::FORM_RECEIVED},
                                  {"translated", v1::CaptureRequest::FORM_TRANSLATED},
                                  {"either", v1::CaptureRequest::FORM_EITHER}}),
            "capture: form of a packet that the filter is applied to, before or after translation. A packet "
            "that matches is recorded in both forms.");
    set.add("count,c", number(request.records_max, {1, UINT32_MAX, "records"}).without_default(),
            "capture: end after N records (default: no limit).");
    set.add("seconds", number(request.capture_seconds, {1, 3'600, "seconds"}, "SECONDS"),
            "capture: end after this time.");
    set.add("snap", number(request.snap_bytes, {34, 16'384, "bytes"}, "BYTES"),
            "capture: bytes recorded of each packet. The default has the headers and little payload.");
    set.add("write", text(request.capture_file, "FILE|-"),
            "capture: file for the packets, pcapng; - is standard output. Short form for this command: -w.");
    set.add("all-gateways", flag(),
            "Run the command at every gateway of the context file: a table has the column GATEWAY.");
    set.group(kGeneralTitle);
    set.add("context", text(request.context, "NAME"),
            "Gateway by its name in the context file (default: the file's key context).");
    set.add("config", text(request.config, "FILE").or_variable("PENSTOCK_CONFIG", environment.config),
            "Context file, an INI file with a section for each gateway (default: "
            "~/.config/penstock/contexts.ini).");
    set.add("gateway",
            parsed(request.target, "TARGET", client::parse_target, client::kDefaultTarget)
                .or_variable("PENSTOCK_GATEWAY", environment.gateway),
            "Address of penstockd: unix:PATH, or HOST:PORT with the certificates below.");
    set.add("sync-server",
            parsed(request.sync_target, "TARGET", parse_sync_target, client::kDefaultSyncTarget)
                .or_variable("PENSTOCK_SYNC_SERVER", environment.sync_server),
            "Address of penstock-sync (get sync, get pools, get addresses): unix:PATH.");
    set.add(
        "tls-cert",
        text(request.tls.certificate, "FILE").or_variable("PENSTOCK_TLS_CERT", environment.tls.certificate),
        "Client certificate, PEM.");
    set.add("tls-key", text(request.tls.key, "FILE").or_variable("PENSTOCK_TLS_KEY", environment.tls.key),
            "Private key of the client certificate, PEM.");
    set.add("tls-ca",
            text(request.tls.authority, "FILE").or_variable("PENSTOCK_TLS_CA", environment.tls.authority),
            "CA that signed the gateway's certificate, PEM.");
    set.add("timeout", number(request.timeout_s, {1, 3600, "seconds"}, "SECONDS"),
            "Timeout of a call; for drain: maximum time to wait for the last open connection; for upgrade "
            "--wait: for the result.");
    set.add("help,h", flag(), "Print this help.");
    set.add("version", flag(), "Print the version of penstockctl.");
}

bool is_general(std::string_view option) {
    return std::ranges::count(List().set.names_in(kGeneralTitle), option) > 0;
}

std::string summary_line(const Command& command) {
    const auto synopsis = [](const Command& of) {
        return name_of(of) + (of.arguments.empty() ? "" : " " + std::string(of.arguments));
    };
    size_t width = 0;
    for (const Command& each : all_commands()) {
        width = std::max(width, synopsis(each).size());
    }
    const std::string left = synopsis(command);
    return "  " + left + std::string(width - left.size() + 2, ' ') + std::string(command.summary) + "\n";
}

std::string help_text() {
    std::string text = std::string(kIntroduction) + "\nCommands:\n";
    for (const Command& command : all_commands()) {
        text += summary_line(command);
    }
    return text + List().set.help() + "\n" + kVariables + "\n" + kExitCodes;
}

std::string help_text(const Command& command) {
    std::string text = "penstockctl " + name_of(command) +
                       (command.arguments.empty() ? "" : " " + std::string(command.arguments)) +
                       (command.options.empty() ? "" : " [options]") + "\n\n  " +
                       std::string(command.summary) + "\n";
    if (!command.options.empty()) {
        text += List().set.help("Options", command.options);
    }
    return text + "\nOptions of all commands: penstockctl --help\n";
}

std::vector<std::string> options_with_value() {
    return List().set.spellings_with_value();
}

// Their Value::store must not be called: it refers to the list of this function.
std::vector<OptionSet::Option> all_shown_options() {
    const List list;
    std::vector<OptionSet::Option> all;
    for (const OptionSet::Group& group : list.set.groups()) {
        all.insert(all.end(), group.options.begin(), group.options.end());
    }
    return all;
}

std::vector<OptionSet::Option> general_options() {
    auto general = all_shown_options();
    std::erase_if(general, [](const OptionSet::Option& option) { return !is_general(option.name); });
    return general;
}

std::vector<OptionSet::Option> shown_options(const Command& command) {
    auto shown = all_shown_options();
    std::erase_if(shown, [&](const OptionSet::Option& option) {
        return !is_general(option.name) && std::ranges::count(command.options, option.name) == 0;
    });
    return shown;
}

std::vector<std::string> option_names(const Command& command) {
    std::vector<std::string> names;
    for (const std::string& name : List().set.names_in(kGeneralTitle)) {
        names.push_back("--" + name);
    }
    for (const std::string_view name : command.options) {
        names.push_back("--" + std::string(name));
    }
    return names;
}

}  // namespace penstock::cli
