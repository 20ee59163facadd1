// SPDX-License-Identifier: Apache-2.0
// The options of penstockd. They are given on the command line or, with the same names, in an INI file
// (--config). An unknown name is an error, and each value is checked (option_list.hpp, control/options). A
// start therefore either fails at once with one line or runs with the intended values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/gateway/care/vip_presence_mode.hpp"
#include "control/gateway/options/listen_address.hpp"
#include "control/gateway/options/port_option.hpp"
#include "control/host/core_plan.hpp"
#include "control/log/log.hpp"
#include "control/model/desired.hpp"
#include "control/options/option_set.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/socket_address.hpp"
#include "dataplane/config/packet_policy.hpp"
#include "dataplane/nat/snat_config.hpp"
#include "dataplane/worker/idle.hpp"
#include "dataplane/worker/latencies.hpp"
#include "drivers/eal/hugepage_size.hpp"

namespace penstock::gateway {

// Records of the begin and the end of connections; off without a folder and without a collector.
struct FlowRecordOptions {
    std::string folder;  // of files; "": none
    unsigned file_mb = 64;
    unsigned files = 24;                     // rotated ones kept, of each file
    std::optional<SocketAddress> collector;  // IPFIX over UDP
    uint32_t domain = 1;                     // observation domain
    bool all_services = false;               // by default; otherwise those that request records
    uint32_t one_in = 1;                     // sampling rate

    [[nodiscard]] bool is_on() const noexcept { return !folder.empty() || collector; }
};

inline constexpr std::chrono::seconds kShareAgeDefault{3};

struct Options {
    using Action = options::Action;
    Action action = Action::Run;

    std::vector<PortOption> ports;
    host::CoreWishes cores;
    unsigned memory_mb = 512;
    bool no_huge = false;
    drivers::HugepageSize hugepage_size = drivers::HugepageSize::Any;
    uint32_t connections = limits::kConnectionsDefault;  // per worker
    uint32_t affinity_entries = limits::kAffinityEntriesDefault;
    std::string table_dir = "auto";      // or an absolute path; "": tables end with the process
    uint32_t burst = limits::kBurstMax;  // packets
    worker::IdleMode idle = worker::IdleMode::Adaptive;

    // Name, mode, node name and labels. Addresses are known only after the twins are up.
    model::GatewayIdentity identity;

    std::vector<ListenAddress> listen{{"unix:/run/penstock/penstockd.sock", "/run/penstock/penstockd.sock"}};
    std::string tls_cert, tls_key, tls_client_ca;  // files; all or none
    std::vector<std::string> tls_admin_names;
    std::string socket_group;  // "": the group of the process
    bool sandbox = true;
    bool supervise = false;                         // a parent process starts the successor of an upgrade
    std::string metrics_listen = "127.0.0.1:9105";  // "": off
    uint32_t metrics_backends = 0;                  // backends with series of their own
    worker::Latencies latencies = worker::Latencies::Off;
    std::string state_file = "/var/lib/penstock/last-good.pb";  // "": none
    std::string healthz;                                        // ADDRESS:PORT; "": off
    std::chrono::seconds sync_limit{60};
    bool allow_empty = false;

    VipPresenceMode vip_presence = VipPresenceMode::Off;
    bool withdraw_empty = false;  // with vip_presence only
    bool vip_standby = false;     // with VipPresenceMode::Routes and Arp only
    std::chrono::seconds drain_on_stop{0};
    std::string shares;                                // file with the plan of shares; "": none
    std::chrono::seconds share_age{kShareAgeDefault};  // of connections that are copied to other gateways
    // Copies held of other gateways' connections; empty: as many as all workers have connections. 0: none.
    std::optional<uint32_t> share_copies;
    bool share_fail_back = true;  // after a start, without a command
    std::string bfd;              // bfdd's socket for data planes; "": the workers have no BFD sessions

    std::string blocklist;      // file; "": none
    unsigned flow_rules = 256;  // maximum on each port; 0: none are installed
    bool vip_isolate = false;
    bool vip_mark = false;

    std::vector<IpAddr> snat_addresses;
    nat::PortRange snat_ports;

    config::PacketPolicy packets;

    FlowRecordOptions flow_records;

    log::Format log_format = log::Format::Text;
    std::vector<std::string> log_levels{"info"};  // checked

    // InvalidArgument names the option. NotFound names the config file that cannot be read. `arguments`
    // excludes the program name.
    static Result<Options> parse(const std::vector<std::string>& arguments);
    // The same from the text of an INI file alone, for tests and fuzzing.
    static Result<Options> parse_ini(const std::string& text);
    // The text of --help: every option by group, then examples.
    static std::string help();
};

}  // namespace penstock::gateway
