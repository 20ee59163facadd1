// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/options/option_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/gateway/options/text.hpp"
#include "control/http/server.hpp"

namespace penstock::gateway {
namespace {

namespace po = boost::program_options;
using Strings = std::vector<std::string>;

constexpr unsigned kMemoryMbMin = 64;  // EAL, one small pool and one small table; less does not start
constexpr unsigned kMemoryMbMax = 1'048'576;
constexpr unsigned kConnectionsMin = 1'024;
// With fewer packets no memory latency is shared, and the vector paths of some PMDs return none for fewer
// than four packets.
constexpr unsigned kBurstMin = 4;
// Lower bound: Linux accepts no smaller value (net.ipv4.route.min_pmtu). Upper bound: most links carry 1,500
// bytes, so a larger value has no use.
constexpr unsigned kMinPathMtuMin = 552, kMinPathMtuMax = 1500;
constexpr unsigned kConnectionsMax = 67'108'864;  // 2^26: 9 GB of table for one worker
// Number of mark values; far more than can be installed in acceptable time.
constexpr unsigned kFlowRulesMax = 65'536;
constexpr unsigned kAffinityEntriesMin = 1'024;
constexpr unsigned kAffinityEntriesMax = 67'108'864;  // 2^26: 2.5 GB

std::unexpected<Error> refuse(const char* option, const std::string& why) {
    return fail(Errc::InvalidArgument, std::string("--") + option + ": " + why);
}

Result<std::string> host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
        return refuse("gateway-name", "this host has no name; set the option");
    }
    return std::string(name.data());
}

// Each function reads one group. The first error is returned.
class Reader {
 public:
    explicit Reader(const po::variables_map& values) : values_(values) {}

    Result<Options> read() {
        for (const auto step :
             {&Reader::read_ports, &Reader::read_workers, &Reader::read_identity, &Reader::read_management,
              &Reader::read_tls, &Reader::read_presence, &Reader::read_rules, &Reader::read_snat,
              &Reader::read_packets, &Reader::read_logging}) {
            if (auto status = (this->*step)(); !status) {
                return std::unexpected(std::move(status.error()));
            }
        }
        return std::move(options_);
    }

 private:
    [[nodiscard]] std::string text(const char* name) const {
        return values_.contains(name) ? values_[name].as<std::string>() : std::string();
    }
    [[nodiscard]] Strings texts(const char* name) const {
        return values_.contains(name) ? values_[name].as<Strings>() : Strings();
    }

    Result<unsigned> whole(const char* name, unsigned min, unsigned max) const {
        const std::string value = text(name);
        const auto parsed = number(trim(value), max);
        if (!parsed || *parsed < min) {
            return refuse(name,
                          "\"" + value + "\" is not in " + std::to_string(min) + "-" + std::to_string(max));
        }
        return *parsed;
    }

    Status read_ports() {
        for (const std::string& value : texts("port")) {
            auto port = PortOption::parse(value);
            if (!port) {
                return refuse("port", port.error().what);
            }
            options_.ports.push_back(std::move(*port));
        }
        if (auto status = check_ports(options_.ports); !status) {
            return status;
        }
        for (size_t i = 0; i < options_.ports.size(); ++i) {
            options_.packets.mss_max[i] = options_.ports[i].mss;
            options_.packets.lowers_mss |= options_.ports[i].mss != 0;
        }
        return {};
    }

    Status read_workers() {
        if (values_.contains("workers")) {
            const auto workers = whole("workers", 1, limits::kWorkersMax);
            if (!workers) {
                return std::unexpected(workers.error());
            }
            options_.cores.workers = *workers;
        }
        if (values_.contains("main-core")) {
            const auto core = whole("main-core", 0, 1023);
            if (!core) {
                return std::unexpected(core.error());
            }
            options_.cores.main_core = *core;
        }
        if (values_.contains("worker-cores")) {
            auto cores = parse_cores(text("worker-cores"));
            if (!cores) {
                return refuse("worker-cores", cores.error().what);
            }
            options_.cores.worker_cores = std::move(*cores);
        }
        const auto memory = whole("memory-mb", kMemoryMbMin, kMemoryMbMax);
        const auto connections = whole("connections", kConnectionsMin, kConnectionsMax);
        const auto affinity = whole("affinity-entries", kAffinityEntriesMin, kAffinityEntriesMax);
        const auto burst = whole("burst", kBurstMin, limits::kBurstMax);
        for (const auto* number : {&memory, &connections, &affinity, &burst}) {
            if (!*number) {
                return std::unexpected(number->error());
            }
        }
        options_.memory_mb = *memory;
        options_.connections = *connections;
        options_.affinity_entries = *affinity;
        options_.burst = *burst;
        options_.no_huge = values_["no-huge"].as<bool>();
        const std::string idle = text("idle");
        if (idle != "poll" && idle != "adaptive") {
            return refuse("idle", "\"" + idle + "\" is neither poll nor adaptive");
        }
        options_.idle = idle == "poll" ? worker::IdleMode::Poll : worker::IdleMode::Adaptive;
        return {};
    }

    Status read_identity() {
        auto& identity = options_.identity;
        identity.gateway_name = text("gateway-name");
        if (identity.gateway_name.empty()) {
            auto name = host_name();
            if (!name) {
                return std::unexpected(std::move(name.error()));
            }
            identity.gateway_name = std::move(*name);
        }
        const std::string mode = text("mode");
        if (mode != "node" && mode != "external") {
            return refuse("mode", "\"" + mode + "\" is neither node nor external");
        }
        identity.mode = mode == "node" ? model::GatewayMode::Node : model::GatewayMode::External;
        identity.node_name = text("node-name");
        if (identity.mode == model::GatewayMode::Node && identity.node_name.empty()) {
            return refuse("node-name", "is required with --mode node");
        }
        if (identity.mode == model::GatewayMode::External && !identity.node_name.empty()) {
            return refuse("node-name", "requires --mode node");
        }
        for (const std::string& label : texts("label")) {
            const size_t equals = label.find('=');
            if (equals == 0 || equals == std::string::npos) {
                return refuse("label", "\"" + label + "\" is not KEY=VALUE");
            }
            if (!identity.labels.emplace(label.substr(0, equals), label.substr(equals + 1)).second) {
                return refuse("label", label.substr(0, equals) + " is given twice");
            }
        }
        return {};
    }

    Status read_management() {
        Strings addresses = texts("listen");
        if (addresses.empty()) {
            addresses.emplace_back("unix:/run/penstock/penstockd.sock");
        }
        for (const std::string& value : addresses) {
            auto address = ListenAddress::parse(value);
            if (!address) {
                return refuse("listen", address.error().what);
            }
            if (std::ranges::find(options_.listen, *address) != options_.listen.end()) {
                return refuse("listen", value + " is given twice");
            }
            options_.listen.push_back(std::move(*address));
        }
        options_.socket_group = text("socket-group");
        const std::string sandbox = text("sandbox");
        if (sandbox != "on" && sandbox != "off") {
            return refuse("sandbox", "\"" + sandbox + "\" is neither on nor off");
        }
        options_.sandbox = sandbox == "on";
        if (const std::string metrics = text("metrics-listen"); metrics != "off") {
            if (const auto checked = http::check_address(metrics); !checked) {
                return refuse("metrics-listen", checked.error().what + ", or off");
            }
            options_.metrics_listen = metrics;
        }
        const bool is_node = options_.identity.mode == model::GatewayMode::Node;
        const std::string healthz = values_.contains("healthz") ? text("healthz")
                                    : is_node                   ? "0.0.0.0:10256"
                                                                : "off";
        if (healthz != "off") {
            if (const auto checked = http::check_address(healthz); !checked) {
                return refuse("healthz", checked.error().what + ", or off");
            }
            options_.healthz = healthz;
        }
        const auto sync_limit = whole("sync-limit", 1, 3'600);
        if (!sync_limit) {
            return std::unexpected(sync_limit.error());
        }
        options_.sync_limit = std::chrono::seconds(*sync_limit);
        options_.allow_empty = values_["allow-empty"].as<bool>();
        if (const std::string file = text("state-file"); file != "none") {
            if (file.empty() || file.front() != '/' || file.back() == '/') {
                return refuse("state-file",
                              "\"" + file + "\" is neither an absolute path of a file nor none");
            }
            options_.state_file = file;
        }
        return {};
    }

    Status read_tls() {
        options_.tls_cert = text("tls-cert");
        options_.tls_key = text("tls-key");
        options_.tls_client_ca = text("tls-client-ca");
        if (values_.contains("tls-admin-names")) {
            const std::string names = text("tls-admin-names");
            for (const auto piece : split(names, ',')) {
                if (trim(piece).empty()) {
                    return refuse("tls-admin-names", "\"" + names + "\" contains an empty name");
                }
                options_.tls_admin_names.emplace_back(trim(piece));
            }
        }
        const bool any =
            !options_.tls_cert.empty() || !options_.tls_key.empty() || !options_.tls_client_ca.empty();
        const bool all =
            !options_.tls_cert.empty() && !options_.tls_key.empty() && !options_.tls_client_ca.empty();
        const auto tcp = std::ranges::find_if(
            options_.listen, [](const ListenAddress& address) { return !address.is_unix(); });
        if ((tcp != options_.listen.end() || any) && !all) {
            const char* missing = options_.tls_cert.empty()  ? "tls-cert"
                                  : options_.tls_key.empty() ? "tls-key"
                                                             : "tls-client-ca";
            return refuse(missing, "is missing; " +
                                       (tcp != options_.listen.end() ? "listening on " + tcp->text
                                                                     : std::string("TLS")) +
                                       " needs --tls-cert, --tls-key and --tls-client-ca");
        }
        return {};
    }

    Status read_presence() {
        const std::string presence = text("vip-presence");
        if (presence != "on" && presence != "off") {
            return refuse("vip-presence", "\"" + presence + "\" is neither on nor off");
        }
        options_.vip_presence = presence == "on";
        options_.withdraw_empty = values_["withdraw-empty"].as<bool>();
        if (options_.withdraw_empty && !options_.vip_presence) {
            return refuse("withdraw-empty", "requires --vip-presence on");
        }
        return {};
    }

    Status read_rules() {
        if (values_.contains("blocklist")) {
            const std::string file = text("blocklist");
            if (file.empty() || file.front() != '/' || file.back() == '/') {
                return refuse("blocklist", "\"" + file + "\" is not the absolute path of a file");
            }
            options_.blocklist = file;
        }
        const auto rules = whole("flow-rules", 0, kFlowRulesMax);
        if (!rules) {
            return std::unexpected(rules.error());
        }
        options_.flow_rules = *rules;
        for (auto [name, flag] :
             {std::pair{"vip-isolate", &options_.vip_isolate}, std::pair{"vip-mark", &options_.vip_mark}}) {
            const std::string whether = text(name);
            if (whether != "on" && whether != "off") {
                return refuse(name, "\"" + whether + "\" is neither on nor off");
            }
            *flag = whether == "on";
            if (*flag && options_.flow_rules == 0) {
                return refuse(name, "requires --flow-rules above 0");
            }
        }
        return {};
    }

    Status read_snat() {
        for (const std::string& value : texts("snat-address")) {
            const auto address = IpAddr::parse(value);
            if (!address) {
                return refuse("snat-address", address.error().what);
            }
            if (address->is_unspecified() || address->is_loopback() || address->is_link_local() ||
                address->is_multicast() || address->is_reserved_v4()) {
                return refuse("snat-address", value + " is not a global unicast address");
            }
            if (std::ranges::find(options_.snat_addresses, *address) != options_.snat_addresses.end()) {
                return refuse("snat-address", value + " is given twice");
            }
            options_.snat_addresses.push_back(*address);
        }
        if (options_.snat_addresses.size() > limits::kSnatAddressesMax) {
            return refuse("snat-address",
                          "more addresses than the maximum of " + std::to_string(limits::kSnatAddressesMax));
        }
        const std::string range = text("snat-ports");
        const auto ends = split(trim(range), '-');
        const auto first = number(ends.front(), 65535);
        const auto last = number(ends.back(), 65535);
        if (ends.size() != 2 || !first || !last || *first == 0 || *first > *last) {
            return refuse("snat-ports", "\"" + range + "\" is not FIRST-LAST within 1-65535");
        }
        options_.snat_ports = {static_cast<L4Port>(*first), static_cast<L4Port>(*last)};
        return {};
    }

    Status read_packets() {
        const std::string echo = text("vip-icmp-echo");
        if (echo != "reply" && echo != "drop") {
            return refuse("vip-icmp-echo", "\"" + echo + "\" is neither reply nor drop");
        }
        options_.packets.answers_vip_echo = echo == "reply";
        const std::string sctp = text("sctp-reject");
        if (sctp != "icmp" && sctp != "abort") {
            return refuse("sctp-reject", "\"" + sctp + "\" is neither icmp nor abort");
        }
        options_.packets.aborts_sctp = sctp == "abort";
        const std::string pickup = text("midstream-pickup");
        if (pickup != "true" && pickup != "false") {
            return refuse("midstream-pickup", "\"" + pickup + "\" is neither true nor false");
        }
        options_.packets.picks_up_midstream = pickup == "true";
        const std::string ip_options = text("ip-options");
        if (ip_options != "pass" && ip_options != "drop") {
            return refuse("ip-options", "\"" + ip_options + "\" is neither pass nor drop");
        }
        options_.packets.passes_ip_options = ip_options == "pass";
        const auto min_path_mtu = whole("min-path-mtu", kMinPathMtuMin, kMinPathMtuMax);
        if (!min_path_mtu) {
            return std::unexpected(min_path_mtu.error());
        }
        options_.packets.min_path_mtu = static_cast<uint16_t>(*min_path_mtu);
        const auto reverse_path = parse_reverse_path(text("reverse-path"));
        if (!reverse_path) {
            return refuse("reverse-path", reverse_path.error().what);
        }
        for (size_t i = 0; i < options_.ports.size(); ++i) {
            options_.packets.reverse_path[i] = options_.ports[i].reverse_path.value_or(*reverse_path);
        }
        return {};
    }

    Status read_logging() {
        const auto format = log::parse_format(text("log-format"));
        if (!format) {
            return refuse("log-format", format.error().what);
        }
        options_.log_format = *format;
        options_.log_levels = texts("log-level");
        if (options_.log_levels.empty()) {
            options_.log_levels.emplace_back("info");
        }
        for (const std::string& setting : options_.log_levels) {
            if (auto status = log::check_setting(setting); !status) {
                return refuse("log-level", status.error().what);
            }
        }
        return {};
    }

    const po::variables_map& values_;
    Options options_;
};

}  // namespace

Result<Options> read_options(const po::variables_map& values) {
    return Reader(values).read();
}

}  // namespace penstock::gateway
