// SPDX-License-Identifier: Apache-2.0
#include "control/cli/options.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <charconv>
#include <optional>

#include "control/cli/option_list.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::cli {
namespace po = boost::program_options;
namespace {

std::unexpected<Error> usage(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

Result<uint32_t> number_from(const std::string& text, const std::string& option, uint32_t max) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number > max) {
        return usage("--" + option + " " + text + ": must be a number from 0 to " + std::to_string(max));
    }
    return number;
}

// Parses "1.2.3.4", "1.2.3.4:80", "2001:db8::1" or "[2001:db8::1]:80"; the result is in canonical form.
Result<v1::SocketAddress> socket_from(const std::string& text, const std::string& option) {
    const std::string context = "--" + option + " " + text;
    std::string host = text;
    std::string port;
    if (text.starts_with('[')) {
        const size_t bracket = text.find(']');
        if (bracket == std::string::npos || (bracket + 1 < text.size() && text[bracket + 1] != ':')) {
            return usage(context + ": must be [IPV6]:PORT");
        }
        host = text.substr(1, bracket - 1);
        port = bracket + 1 < text.size() ? text.substr(bracket + 2) : "";
    } else if (std::count(text.begin(), text.end(), ':') == 1) {
        host = text.substr(0, text.find(':'));
        port = text.substr(text.find(':') + 1);
    }
    const auto address = IpAddr::parse(host);
    if (!address) {
        return in_context(context, address.error());
    }
    v1::SocketAddress socket;
    socket.set_address(address->to_string());
    if (!port.empty()) {
        const auto number = number_from(port, option, 65'535);
        if (!number || *number == 0) {
            return usage(context + ": the port must be a number from 1 to 65535");
        }
        socket.set_port(*number);
    }
    return socket;
}

Result<v1::Protocol> protocol_from(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (text == "tcp") {
        return v1::PROTOCOL_TCP;
    }
    if (text == "udp") {
        return v1::PROTOCOL_UDP;
    }
    if (text == "sctp") {
        return v1::PROTOCOL_SCTP;
    }
    return usage("--proto " + text + ": must be tcp, udp or sctp" +
                 (text.starts_with("icmp") ? "; ICMP is not supported" : ""));
}

Result<Format> format_from(const std::string& text) {
    if (text == "table") {
        return Format::Table;
    }
    if (text == "wide") {
        return Format::Wide;
    }
    if (text == "json") {
        return Format::Json;
    }
    if (text == "yaml") {
        return Format::Yaml;
    }
    return usage("--output " + text + ": must be table, wide, json or yaml");
}

Result<std::chrono::milliseconds> interval_from(const std::string& text) {
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    // Shorter intervals are not readable and would load a busy gateway.
    if (error != std::errc{} || end != text.data() + text.size() || !(seconds >= 0.1 && seconds <= 3600)) {
        return usage("--interval " + text + ": must be seconds from 0.1 to 3600");
    }
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

Result<uint32_t> timeout_from(const std::string& text) {
    const auto seconds = number_from(text, "timeout", 3600);
    if (!seconds || *seconds == 0) {
        return usage("--timeout " + text + ": must be whole seconds from 1 to 3600");
    }
    return seconds;
}

Result<client::Target> sync_target_from(const std::string& text) {
    auto target = client::parse_target(text);
    if (!target || !target->is_unix()) {
        return usage("--sync-server " + text +
                     ": must be unix:PATH; penstock-sync listens on a Unix socket only");
    }
    return target;
}

// Converts the options into a Request. Stops at the first invalid value.
class RequestReader {
 public:
    RequestReader(const po::variables_map& values, const Environment& environment)
        : values_(values), environment_(environment) {}

    Result<Request> read() {
        take_or("gateway", "PENSTOCK_GATEWAY", environment_.gateway, request_.target,
                [](const std::string& text) { return client::parse_target(text); });
        take_or("sync-server", "PENSTOCK_SYNC_SERVER", environment_.sync_server, request_.sync_target,
                sync_target_from);
        const client::TlsFiles& tls = environment_.tls;
        request_.tls = {text_or("tls-cert", tls.certificate), text_or("tls-key", tls.key),
                        text_or("tls-ca", tls.authority)};
        take("timeout", request_.timeout_s, timeout_from);
        request_.timeout_given = !values_["timeout"].defaulted();
        take("output", request_.format, format_from);
        request_.watch = values_["watch"].as<bool>();
        take("interval", request_.interval, interval_from);
        request_.no_headers = values_["no-headers"].as<bool>();
        request_.namespace_name = text_of("namespace");
        if (!error_ && values_["all-namespaces"].as<bool>() && !request_.namespace_name.empty()) {
            error_ = usage("--all-namespaces and --namespace " + request_.namespace_name +
                           " are mutually exclusive")
                         .error();
        }
        take("proto", request_.protocol, protocol_from);
        take_socket("client", request_.client);
        take_socket("frontend", request_.frontend);
        take_socket("backend", request_.backend);
        take_socket("src", request_.source);
        take_socket("dst", request_.destination);
        take("limit", request_.limit,
             [](const std::string& text) { return number_from(text, "limit", UINT32_MAX); });
        take("port", request_.nic_port,
             [](const std::string& text) { return number_from(text, "port", 255); });
        take("queue", request_.queue,
             [](const std::string& text) { return number_from(text, "queue", 65'535); });
        request_.not_syn = values_["not-syn"].as<bool>();
        request_.all = values_["all"].as<bool>();
        request_.until_restart = values_["until-restart"].as<bool>();
        if (!error_) {
            if (const Status complete = client::check_tls(request_.target, request_.tls); !complete) {
                error_ = complete.error();
            }
        }
        return error_ ? Result<Request>(std::unexpected(*error_)) : Result<Request>(std::move(request_));
    }

 private:
    [[nodiscard]] std::string text_of(const char* name) const {
        return values_.contains(name) ? values_[name].as<std::string>() : "";
    }

    [[nodiscard]] std::string text_or(const char* name, const std::string& variable) const {
        return values_.contains(name) ? text_of(name) : variable;
    }

    // Takes the option if given, otherwise the environment variable, otherwise the option's default.
    template <typename T, typename Parse>
    void take_or(const char* name, const char* variable, const std::string& value, T& into,
                 const Parse& parse) {
        if (!values_[name].defaulted() || value.empty()) {
            return take(name, into, parse);
        }
        if (error_) {
            return;
        }
        auto parsed = parse(value);
        if (parsed) {
            into = std::move(*parsed);
        } else {
            error_ = in_context("$" + std::string(variable), parsed.error()).error();
        }
    }
    template <typename T, typename Parse>
    void take(const char* name, T& into, const Parse& parse) {
        if (error_ || !values_.contains(name)) {
            return;
        }
        auto value = parse(values_[name].as<std::string>());
        if (value) {
            into = std::move(*value);
        } else {
            error_ = value.error();
        }
    }
    void take_socket(const char* name, v1::SocketAddress& into) {
        take(name, into, [name](const std::string& text) { return socket_from(text, name); });
    }

    const po::variables_map& values_;
    const Environment& environment_;
    Request request_;
    std::optional<Error> error_;
};

// The words that may follow a known first word: "; get takes services, backends, ...". Empty for an unknown
// word.
std::string what_may_follow(const std::string& first) {
    std::string text;
    for (const Command& command : all_commands()) {
        if (command.words.size() > 1 && command.words[0] == first) {
            text += (text.empty() ? "; " + first + " takes " : ", ") + std::string(command.words[1]);
        }
    }
    return text;
}

bool is_named(const Command& command, const std::vector<std::string>& words) {
    const size_t last = command.words.size() - 1;
    return words.size() > last && std::equal(command.words.begin(), command.words.end() - 1, words.begin()) &&
           (words[last] == command.words[last] ||
            std::ranges::find(command.aliases, words[last]) != command.aliases.end());
}

// The longest command whose words are a prefix of the line.
Result<const Command*> find_command(const std::vector<std::string>& words) {
    const Command* found = nullptr;
    for (const Command& command : all_commands()) {
        if (is_named(command, words) && (found == nullptr || found->words.size() < command.words.size())) {
            found = &command;
        }
    }
    if (found == nullptr) {
        std::string line;
        for (const std::string& word : words) {
            line += " " + word;
        }
        return usage(words.empty()
                         ? "a command is missing; see --help"
                         : "there is no command" + line + what_may_follow(words.front()) + "; see --help");
    }
    return found;
}

Status check_arguments(const Command& command, size_t given) {
    if (given < command.arguments_min || given > command.arguments_max) {
        return usage(
            name_of(command) + " takes " +
            (command.arguments.empty() ? std::string("no arguments") : std::string(command.arguments)));
    }
    return {};
}

Status check_options(const Command& command, const po::variables_map& values) {
    for (const auto& [name, value] : values) {
        const auto is_name = [&name = name](std::string_view each) { return each == name; };
        const bool was_given = !value.defaulted() && name != "words";
        if (was_given && !is_general(name) &&
            std::none_of(command.options.begin(), command.options.end(), is_name)) {
            return usage("--" + name + " is not an option of " + name_of(command));
        }
    }
    return {};
}

po::variables_map parse(const std::vector<std::string>& arguments) {
    po::options_description hidden;
    hidden.add_options()("words", po::value<std::vector<std::string>>());
    po::options_description all;
    all.add(general_options()).add(command_options()).add(hidden);
    po::positional_options_description words;
    words.add("words", -1);
    constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::variables_map values;
    po::store(po::command_line_parser(arguments).options(all).positional(words).style(kStyle).run(), values);
    po::notify(values);
    return values;
}

}  // namespace

Result<std::variant<Invocation, Information>> read_command_line(const std::vector<std::string>& arguments,
                                                                const Environment& environment) {
    po::variables_map values;
    try {
        values = parse(arguments);
    } catch (const po::error& error) {
        return usage(error.what());
    }
    if (values.contains("version")) {
        return Information{"penstockctl " PENSTOCK_VERSION "\n"};
    }
    auto words = values.contains("words") ? values["words"].as<std::vector<std::string>>()
                                          : std::vector<std::string>{};
    // "help get services" equals "get services --help".
    const bool is_help_command = !words.empty() && words.front() == "help";
    if (is_help_command || values.contains("help")) {
        words.erase(words.begin(), words.begin() + (is_help_command ? 1 : 0));
        const auto about = words.empty() ? nullptr : find_command(words).value_or(nullptr);
        return Information{about == nullptr ? help_text() : help_text(*about)};
    }
    const auto command = find_command(words);
    if (!command) {
        return std::unexpected(command.error());
    }
    words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>((*command)->words.size()));
    if (const Status checked = check_arguments(**command, words.size()); !checked) {
        return std::unexpected(checked.error());
    }
    if (const Status checked = check_options(**command, values); !checked) {
        return std::unexpected(checked.error());
    }
    auto request = RequestReader(values, environment).read();
    if (!request) {
        return std::unexpected(request.error());
    }
    request->arguments = std::move(words);
    return Invocation{*command, std::move(*request)};
}

}  // namespace penstock::cli
