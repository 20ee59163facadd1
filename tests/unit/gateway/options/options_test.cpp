// SPDX-License-Identifier: Apache-2.0
// penstockd's options: the meaning of each, and that each error names its option.
#include "control/gateway/options/options.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>

namespace penstock::gateway {
namespace options_test {

using Arguments = std::vector<std::string>;

const char* const kPort =
    "device=net_af_packet0,iface=veth0;twin=pen0;address=192.0.2.1/24,2001:db8::1/64;mtu=9000";

Result<Options> parse(Arguments more) {
    Arguments all{"--port", kPort};
    all.insert(all.end(), more.begin(), more.end());
    return Options::parse(all);
}

TEST(Options, OnePortIsEnoughAndTheRestHasDefaults) {
    const auto options = parse({});
    ASSERT_TRUE(options) << options.error().what;
    EXPECT_EQ(options->action, Options::Action::Run);
    ASSERT_EQ(options->ports.size(), 1U);
    EXPECT_EQ(options->ports[0].device, "net_af_packet0,iface=veth0");
    EXPECT_EQ(options->ports[0].twin, "pen0");
    EXPECT_EQ(options->ports[0].mtu, 9000);
    ASSERT_EQ(options->ports[0].addresses.size(), 2U);
    EXPECT_EQ(options->ports[0].addresses[1].to_string(), "2001:db8::1/64");
    EXPECT_FALSE(options->cores.workers);
    EXPECT_TRUE(options->cores.worker_cores.empty());
    EXPECT_FALSE(options->cores.main_core);
    EXPECT_EQ(options->memory_mb, 512U);
    EXPECT_FALSE(options->no_huge);
    EXPECT_EQ(options->connections, limits::kConnectionsDefault);
    EXPECT_EQ(options->affinity_entries, limits::kAffinityEntriesDefault);
    EXPECT_EQ(options->burst, limits::kBurstMax);
    EXPECT_EQ(options->idle, worker::IdleMode::Adaptive);
    EXPECT_TRUE(options->packets.passes_ip_options);
    EXPECT_EQ(options->packets.min_path_mtu, 1280);
    EXPECT_FALSE(options->identity.gateway_name.empty());
    EXPECT_EQ(options->identity.mode, model::GatewayMode::External);
    ASSERT_EQ(options->listen.size(), 1U);
    EXPECT_EQ(options->listen[0].path, "/run/penstock/penstockd.sock");
    EXPECT_EQ(options->metrics_listen, "127.0.0.1:9105");
    EXPECT_EQ(options->state_file, "/var/lib/penstock/last-good.pb");
    EXPECT_EQ(options->table_dir, "auto");
    EXPECT_TRUE(options->snat_addresses.empty());
    EXPECT_EQ(options->snat_ports, (nat::PortRange{1024, 65535}));
    EXPECT_EQ(options->log_levels, Arguments{"info"});
}

TEST(Options, FlowRecordsAreOffUnlessTheyHaveADestination_ANN11) {
    EXPECT_FALSE(parse({})->flow_records.is_on());
    const auto files =
        parse({"--flow-log", "/var/log/penstock", "--flow-log-mb", "5", "--flow-log-files", "3"});
    ASSERT_TRUE(files) << files.error().what;
    EXPECT_TRUE(files->flow_records.is_on());
    EXPECT_EQ(files->flow_records.folder, "/var/log/penstock");
    EXPECT_EQ(files->flow_records.file_mb, 5U);
    EXPECT_EQ(files->flow_records.files, 3U);
    EXPECT_FALSE(files->flow_records.all_services);
    const auto sent = parse({"--flow-collector", "[2001:db8::9]:4739", "--flow-domain", "9",
                             "--flow-services", "all", "--flow-sample", "100"});
    ASSERT_TRUE(sent) << sent.error().what;
    EXPECT_TRUE(sent->flow_records.is_on());
    EXPECT_EQ(sent->flow_records.collector->to_string(), "[2001:db8::9]:4739");
    EXPECT_EQ(sent->flow_records.domain, 9U);
    EXPECT_TRUE(sent->flow_records.all_services);
    EXPECT_EQ(sent->flow_records.one_in, 100U);
    const std::pair<Arguments, const char*> refused[] = {
        {{"--flow-log", "log"}, "flow-log: \"log\" must be the absolute path of a folder, or off"},
        {{"--flow-collector", "collector:4739"}, "must be ADDRESS:PORT of a collector, or off"},
        {{"--flow-collector", "192.0.2.9:0"}, "must be ADDRESS:PORT of a collector, or off"},
        {{"--flow-collector", "0.0.0.0:4739"}, "must be ADDRESS:PORT of a collector, or off"},
        {{"--flow-log", "/l", "--flow-sample", "0"}, "--flow-sample"},
        {{"--flow-services", "all"}, "--flow-services: requires --flow-log or --flow-collector"},
        {{"--flow-sample", "10"}, "--flow-sample: requires --flow-log or --flow-collector"}};
    for (const auto& [arguments, why] : refused) {
        const auto options = parse(arguments);
        ASSERT_FALSE(options) << arguments.back();
        EXPECT_NE(options.error().what.find(why), std::string::npos) << options.error().what;
    }
}

TEST(Options, HealthIsToldByDefaultOnNodesOnly_HC006) {
    EXPECT_EQ(parse({})->healthz, "");
    EXPECT_EQ(parse({})->sync_limit, std::chrono::seconds(60));
    EXPECT_EQ(parse({"--mode", "node", "--node-name", "n"})->healthz, "0.0.0.0:10256");
    EXPECT_EQ(parse({"--mode", "node", "--node-name", "n", "--healthz", "off"})->healthz, "");
    EXPECT_EQ(parse({"--healthz", "[::1]:80"})->healthz, "[::1]:80");
    EXPECT_EQ(parse({})->vip_presence, VipPresenceMode::Off) << "two gateways on one link would fight";
    EXPECT_EQ(parse({"--vip-presence", "routes"})->vip_presence, VipPresenceMode::Routes);
    EXPECT_EQ(parse({"--vip-presence", "addresses"})->vip_presence, VipPresenceMode::Addresses);
    EXPECT_EQ(parse({"--vip-presence", "on"})->vip_presence, VipPresenceMode::Addresses);
    EXPECT_EQ(parse({"--vip-presence", "arp"})->vip_presence, VipPresenceMode::Arp);
    EXPECT_TRUE(parse({"--vip-presence", "arp", "--vip-standby"})->vip_standby);
    EXPECT_EQ(parse({})->drain_on_stop.count(), 0);
    EXPECT_EQ(parse({"--drain-on-stop", "30"})->drain_on_stop.count(), 30);
    EXPECT_FALSE(parse({"--vip-presence", "on"})->withdraw_empty);
    EXPECT_TRUE(parse({"--vip-presence", "on", "--withdraw-empty"})->withdraw_empty);
    EXPECT_EQ(parse({"--sync-limit", "5"})->sync_limit, std::chrono::seconds(5));
    EXPECT_FALSE(parse({})->allow_empty);
    EXPECT_TRUE(parse({"--allow-empty"})->allow_empty);
}

TEST(Options, BlocklistAndRulesAreRead) {
    const auto usual = parse({});
    EXPECT_EQ(usual->blocklist, "");
    EXPECT_EQ(usual->flow_rules, 256U);
    EXPECT_FALSE(usual->vip_isolate || usual->vip_mark);
    const auto all = parse({"--blocklist", "/etc/penstock/blocklist", "--flow-rules", "32", "--vip-isolate",
                            "on", "--vip-mark", "on"});
    ASSERT_TRUE(all) << all.error().what;
    EXPECT_EQ(all->blocklist, "/etc/penstock/blocklist");
    EXPECT_EQ(all->flow_rules, 32U);
    EXPECT_TRUE(all->vip_isolate && all->vip_mark);
    EXPECT_EQ(parse({"--flow-rules", "0"})->flow_rules, 0U);
}

TEST(Options, WhatHappensToPacketsIsRead_REJ004) {
    EXPECT_TRUE(parse({})->packets.answers_vip_echo);
    EXPECT_TRUE(parse({"--vip-icmp-echo", "reply"})->packets.answers_vip_echo);
    EXPECT_FALSE(parse({"--vip-icmp-echo", "drop"})->packets.answers_vip_echo);
    EXPECT_FALSE(parse({})->packets.aborts_sctp);
    EXPECT_FALSE(parse({"--sctp-reject", "icmp"})->packets.aborts_sctp);
    EXPECT_TRUE(parse({"--sctp-reject", "abort"})->packets.aborts_sctp);
    EXPECT_FALSE(parse({})->packets.picks_up_midstream);
    EXPECT_FALSE(parse({"--midstream-pickup", "false"})->packets.picks_up_midstream);
    EXPECT_TRUE(parse({"--midstream-pickup", "true"})->packets.picks_up_midstream);
}

TEST(Options, EveryOptionIsRead) {
    const auto options = parse({"--port",
                                "device=0000:03:00.0;twin=pen1;",
                                "--workers",
                                "3",
                                "--worker-cores",
                                "1,1,2-2",
                                "--main-core",
                                "0",
                                "--memory-mb",
                                "1024",
                                "--no-huge",
                                "--connections",
                                "4096",
                                "--affinity-entries",
                                "5000",
                                "--burst",
                                "16",
                                "--idle",
                                "poll",
                                "--ip-options",
                                "drop",
                                "--min-path-mtu",
                                "1400",
                                "--gateway-name",
                                "edge-1",
                                "--mode",
                                "node",
                                "--node-name",
                                "worker-1",
                                "--label",
                                "zone=a",
                                "--label",
                                "rack=",
                                "--listen",
                                "unix:/tmp/p.sock",
                                "--listen",
                                "[2001:db8::1]:9106",
                                "--tls-cert",
                                "c",
                                "--tls-key",
                                "k",
                                "--tls-client-ca",
                                "a",
                                "--tls-admin-names",
                                "sync, ops",
                                "--socket-group",
                                "adm",
                                "--metrics-listen",
                                "off",
                                "--state-file",
                                "none",
                                "--table-dir",
                                "/mnt/huge/edge-1",
                                "--snat-address",
                                "192.0.2.7",
                                "--snat-address",
                                "2001:db8::7",
                                "--snat-ports",
                                "20000-29999",
                                "--log-format",
                                "json",
                                "--log-level",
                                "warn",
                                "--log-level",
                                "rpc=debug"});
    ASSERT_TRUE(options) << options.error().what;
    EXPECT_EQ(options->ports[1].device, "0000:03:00.0");
    EXPECT_EQ(options->ports[1].mtu, 1500);
    EXPECT_EQ(options->cores.workers, 3U);
    EXPECT_EQ(options->cores.worker_cores, (std::vector<unsigned>{1, 1, 2}));
    EXPECT_EQ(options->cores.main_core, 0U);
    EXPECT_EQ(options->memory_mb, 1024U);
    EXPECT_TRUE(options->no_huge);
    EXPECT_EQ(options->connections, 4096U);
    EXPECT_EQ(options->affinity_entries, 5000U);
    EXPECT_EQ(options->burst, 16U);
    EXPECT_EQ(options->idle, worker::IdleMode::Poll);
    EXPECT_FALSE(options->packets.passes_ip_options);
    EXPECT_EQ(options->packets.min_path_mtu, 1400);
    EXPECT_EQ(options->identity.gateway_name, "edge-1");
    EXPECT_EQ(options->identity.mode, model::GatewayMode::Node);
    EXPECT_EQ(options->identity.node_name, "worker-1");
    EXPECT_EQ(options->identity.labels, (std::map<std::string, std::string>{{"zone", "a"}, {"rack", ""}}));
    EXPECT_EQ(options->listen[1].text, "[2001:db8::1]:9106");
    EXPECT_EQ(options->tls_admin_names, (Arguments{"sync", "ops"}));
    EXPECT_EQ(options->socket_group, "adm");
    EXPECT_EQ(options->metrics_listen, "");
    EXPECT_EQ(options->state_file, "");
    EXPECT_EQ(options->table_dir, "/mnt/huge/edge-1");
    EXPECT_EQ(options->snat_addresses.size(), 2U);
    EXPECT_EQ(options->snat_ports, (nat::PortRange{20000, 29999}));
    EXPECT_EQ(options->log_format, log::Format::Json);
    EXPECT_EQ(options->log_levels, (Arguments{"warn", "rpc=debug"}));
}

struct Refusal {
    Arguments arguments;
    const char* text;  // must be part of the error text
};

struct Boolean {
    const char* name;
    bool is_switch;  // may be given without a value
    bool usually;
    std::function<bool(const Options&)> value;
    Arguments with;  // other options that it requires
};

const std::vector<Boolean>& booleans() {
    static const std::vector<Boolean> kAll = {
        {"no-huge", true, false, [](const Options& o) { return o.no_huge; }, {}},
        {"allow-empty", true, false, [](const Options& o) { return o.allow_empty; }, {}},
        {"withdraw-empty",
         true,
         false,
         [](const Options& o) { return o.withdraw_empty; },
         {"--vip-presence=on"}},
        {"sandbox", false, true, [](const Options& o) { return o.sandbox; }, {}},
        {"supervise", false, false, [](const Options& o) { return o.supervise; }, {}},
        {"vip-standby",
         true,
         false,
         [](const Options& o) { return o.vip_standby; },
         {"--vip-presence=routes"}},
        {"share-fail-back",
         true,
         true,
         [](const Options& o) { return o.share_fail_back; },
         {"--shares=/x", "--vip-presence=routes"}},
        {"vip-isolate", false, false, [](const Options& o) { return o.vip_isolate; }, {}},
        {"vip-mark", false, false, [](const Options& o) { return o.vip_mark; }, {}},
        {"midstream-pickup", false, false, [](const Options& o) { return o.packets.picks_up_midstream; }, {}},
    };
    return kAll;
}

TEST(Options, EveryBooleanIsOnOrOffInAnySpelling) {
    for (const Boolean& each : booleans()) {
        const std::string name = std::string("--") + each.name;
        const auto value = [&](Arguments arguments) {
            arguments.insert(arguments.end(), each.with.begin(), each.with.end());
            const auto options = parse(arguments);
            EXPECT_TRUE(options) << name << ": " << (options ? "" : options.error().what);
            return options && each.value(*options);
        };
        EXPECT_EQ(value({}), each.usually) << name;
        for (const char* on : {"on", "true", "yes", "1"}) {
            EXPECT_TRUE(value({name, on})) << name << " " << on;
            EXPECT_TRUE(value({name + "=" + on})) << name << "=" << on;
        }
        for (const char* off : {"off", "false", "no", "0"}) {
            EXPECT_FALSE(value({name, off})) << name << " " << off;
            EXPECT_FALSE(value({name + "=" + off})) << name << "=" << off;
        }
        if (each.is_switch) {
            EXPECT_TRUE(value({name})) << name;
        } else {
            EXPECT_FALSE(parse({name})) << name;
        }
        const auto wrong = parse({name, "some"});
        ASSERT_FALSE(wrong) << name;
        EXPECT_EQ(wrong.error().what, name + ": \"some\" must be on or off");
    }
}

// A new boolean option belongs in the table above.
TEST(Options, HelpShowsEveryBooleanAsOnOrOff) {
    const std::string help = Options::help();
    for (const Boolean& each : booleans()) {
        EXPECT_NE(
            help.find(std::string("--") + each.name + " on|off (=" + (each.usually ? "on" : "off") + ")"),
            std::string::npos)
            << each.name;
    }
    size_t count = 0;
    for (size_t at = help.find(" on|off"); at != std::string::npos; at = help.find(" on|off", at + 1)) {
        ++count;
    }
    EXPECT_EQ(count, booleans().size());
}

TEST(Options, EachBreachIsRefusedByName) {
    const std::vector<Refusal> refusals = {
        {{"--prot", "x"}, "--prot"},
        {{"--mem", "64"}, "--mem"},  // no abbreviations
        {{"stray"}, "unexpected argument \"stray\""},
        {{"--port", "device=net_af_packet9,iface=veth0;twin=p1"},
         "--port: interface veth0 is given to two ports"},
        {{"--port", "twin=p1"}, "--port: device: is missing"},
        {{"--port", "device=net_null0"}, "--port: twin: is missing"},
        {{"--port", "device=net_null0;twin=a/b"}, "--port: twin: \"a/b\" is not an interface name"},
        {{"--port", "device=net_null0;twin=sixteencharsname"}, "is not an interface name"},
        {{"--port", "device=eth0;twin=p1"}, "--port: device \"eth0\""},
        {{"--port", "device=net_af_packet1;twin=p1"}, "iface"},
        {{"--port", "device=net_null0;twin=p1;mtu=100"}, "--port: mtu: \"100\" must be 576 to 9600"},
        {{"--port", "device=net_null0;twin=p1;mtu=1500x"}, "mtu: \"1500x\""},
        {{"--port", "device=net_null0;twin=p1;mss=535"}, "--port: mss: \"535\" must be 536 to 9560"},
        {{"--port", "device=net_null0;twin=p1;address=10.0.0.1"}, "--port: address: "},
        {{"--port", "device=net_null0;twin=p1;address=10.0.0.1/8,10.0.0.1/24"}, "10.0.0.1 is given twice"},
        {{"--port", "device=net_null0;twin=p1;speed=9"}, "unknown field \"speed\""},
        {{"--port", "device=net_null0;twin=p1;twin=p2"}, "twin: is given twice"},
        {{"--port", "device=net_null0;twin"}, "\"twin\" is not FIELD=VALUE"},
        {{"--port", "device=net_null0;twin=pen0"}, "twin pen0 is given to two ports"},
        {{"--port", "device=net_af_packet0,iface=veth9;twin=p1"},
         "device net_af_packet0 is given to two ports"},
        {{"--port", "device=net_null0;twin=p1;address=192.0.2.1/25"},
         "address 192.0.2.1 is given to two ports"},
        {{"--port", "device=net_null0;twin=p1;address=2001:db8::1/64"},
         "address 2001:db8::1 is given to two ports"},
        {{"--port", "device=net_null0;twin=p1;address=10.9.0.1/24,fd00::1/64;mtu=1279"},
         "mtu: 1279 is below the 1280 that IPv6 needs for fd00::1/64"},
        {{"--workers", "0"}, "--workers: \"0\" must be 1 to 64"},
        {{"--workers", "two"}, "--workers: \"two\""},
        {{"--worker-cores", "1-"}, "--worker-cores: \"1-\""},
        {{"--worker-cores", "3-1"}, "--worker-cores: \"3-1\""},
        {{"--worker-cores", "0-99"}, "--worker-cores: more than 64 workers"},
        {{"--main-core", "-1"}, "--main-core"},
        {{"--memory-mb", "63"}, "--memory-mb: \"63\" must be 64 to "},
        {{"--connections", "1000"}, "--connections: \"1000\""},
        {{"--affinity-entries", "1023"}, "--affinity-entries: \"1023\" must be 1024 to "},
        {{"--burst", "65"}, "--burst: \"65\""},
        {{"--burst", "3"}, "--burst: \"3\""},
        {{"--idle", "deeply"}, "--idle: \"deeply\""},
        {{"--hugepage-size", "1GB"}, "--hugepage-size: \"1GB\" must be auto, 2M or 1G"},
        {{"--hugepage-size", "2M", "--no-huge"}, "--hugepage-size: 2M and 1G require --no-huge off"},
        {{"--reverse-path", "lose"}, "--reverse-path: \"lose\" must be feasible, strict, loose or off"},
        {{"--port", "device=net_null0;twin=p1;reverse-path=on"},
         "--port: reverse-path: \"on\" must be feasible, strict, loose or off"},
        {{"--ip-options", "some"}, "--ip-options: \"some\" must be pass or drop"},
        {{"--min-path-mtu", "551"}, "--min-path-mtu: \"551\" must be 552 to 1500"},
        {{"--min-path-mtu", "1501"}, "--min-path-mtu: \"1501\" must be 552 to 1500"},
        {{"--min-path-mtu", "none"}, "--min-path-mtu: \"none\""},
        {{"--blocklist", "list"}, "--blocklist: \"list\" must be the absolute path of a file"},
        {{"--flow-rules", "many"}, "--flow-rules: \"many\" must be 0 to 65536"},
        {{"--vip-isolate", "some"}, "--vip-isolate: \"some\" must be on or off"},
        {{"--vip-icmp-echo", "off"}, "--vip-icmp-echo: \"off\" must be reply or drop"},
        {{"--sctp-reject", "rst"}, "--sctp-reject: \"rst\" must be icmp or abort"},
        {{"--midstream-pickup", "maybe"}, "--midstream-pickup: \"maybe\" must be on or off"},
        {{"--no-huge", "maybe"}, "--no-huge: \"maybe\" must be on or off"},
        {{"--vip-mark", "on", "--flow-rules", "0"}, "--vip-mark: requires --flow-rules above 0"},
        {{"--mode", "cluster"}, "--mode: \"cluster\" must be node or external"},
        {{"--mode", "node"}, "--node-name: is required with --mode node"},
        {{"--node-name", "n"}, "--node-name: requires --mode node"},
        {{"--label", "zone"}, "--label: \"zone\" must be KEY=VALUE"},
        {{"--label", "a=1", "--label", "a=2"}, "--label: a is given twice"},
        {{"--listen", "unix:relative"}, "--listen: \"unix:relative\""},
        {{"--listen", "unix:/" + std::string(107, 'x')}, "exceeds the maximum length of a socket path"},
        {{"--listen", "localhost"}, "--listen: \"localhost\" is neither unix:PATH nor HOST:PORT"},
        {{"--listen", "2001:db8::1:9106"}, "--listen: "},
        {{"--listen", "unix:/a", "--listen", "unix:/a"}, "--listen: \"unix:/a\" is given twice"},
        {{"--listen", "10.0.0.1:9106"}, "--tls-cert: is missing; listening on 10.0.0.1:9106 needs"},
        {{"--listen", "10.0.0.1:9106", "--tls-cert", "c", "--tls-key", "k"}, "--tls-client-ca: is missing"},
        {{"--tls-cert", "c", "--tls-client-ca", "a"}, "--tls-key: is missing"},
        {{"--tls-admin-names", "a,,b"}, "--tls-admin-names: \"a,,b\" must not contain an empty name"},
        {{"--metrics-listen", "9105"},
         "--metrics-listen: \"9105\" must be ADDRESS:PORT, with an IPv6 address in brackets, or off"},
        {{"--state-file", "here"}, "--state-file: \"here\""},
        {{"--table-dir", "here"},
         "--table-dir: \"here\" must be the absolute path of a folder, auto, or off"},
        {{"--vip-presence"}, "'--vip-presence' is missing"},
        {{"--vip-presence", "yes"}, "--vip-presence: \"yes\""},
        {{"--withdraw-empty"}, "--withdraw-empty: requires --vip-presence routes, addresses or arp"},
        {{"--vip-standby", "--vip-presence", "on"}, "--vip-standby: requires --vip-presence routes or arp"},
        {{"--healthz", "10256"}, "--healthz: \"10256\" must be ADDRESS:PORT"},
        {{"--healthz", "localhost:10256"}, "--healthz: \"localhost:10256\""},
        {{"--sync-limit", "0"}, "--sync-limit: \"0\" must be 1 to 3600"},
        {{"--snat-address", "10.0.0.0/8"}, "--snat-address: "},
        {{"--snat-address", "127.0.0.1"}, "--snat-address: \"127.0.0.1\" must be a global unicast address"},
        {{"--snat-address", "10.0.0.1", "--snat-address", "010.0.0.1"},
         "--snat-address: \"010.0.0.1\" is given twice"},
        {{"--snat-ports", "2000-1000"}, "--snat-ports: \"2000-1000\" must be FIRST-LAST"},
        {{"--snat-ports", "0-1000"}, "--snat-ports"},
        {{"--snat-ports", "1-70000"}, "--snat-ports"},
        {{"--log-format", "xml"}, "--log-format: \"xml\""},
        {{"--log-level", "loud"}, "--log-level: log level \"loud\""},
        {{"--log-level", "engine=info"}, "--log-level: unknown logger \"engine\""},
        {{"--memory-mb", "64", "--memory-mb", "65"}, "--memory-mb"},
        {{"--config", "/nonexistent/penstockd.ini"},
         "--config: \"/nonexistent/penstockd.ini\" cannot be read"},
    };
    for (const auto& refusal : refusals) {
        const auto options = parse(refusal.arguments);
        ASSERT_FALSE(options) << testing::PrintToString(refusal.arguments);
        EXPECT_NE(options.error().what.find(refusal.text), std::string::npos)
            << testing::PrintToString(refusal.arguments) << ": " << options.error().what;
    }
    EXPECT_EQ(Options::parse({}).error().what, "a gateway needs at least one --port");
}

TEST(Options, ASegmentSizeIsTheBusinessOfItsPort) {
    const auto options = parse({"--port", "device=net_null0;twin=p1;mss=1360"});
    ASSERT_TRUE(options) << options.error().what;
    EXPECT_TRUE(options->packets.lowers_mss);
    EXPECT_EQ(options->packets.mss_max[0], 0);
    EXPECT_EQ(options->packets.mss_max[1], 1360);
    EXPECT_FALSE(parse({})->packets.lowers_mss);
}

TEST(Options, APortMayCheckReversePathsInItsOwnWay) {
    using enum config::ReversePath;
    const auto modes = [](const std::vector<std::string>& arguments) {
        const auto options = parse(arguments);
        EXPECT_TRUE(options) << options.error().what;
        return std::vector(options->packets.reverse_path.begin(), options->packets.reverse_path.begin() + 2);
    };
    const std::string second = "device=net_null0;twin=p1";
    EXPECT_EQ(modes({"--port", second}), std::vector({Feasible, Feasible}));
    EXPECT_EQ(modes({"--port", second, "--reverse-path", "strict"}), std::vector({Strict, Strict}));
    EXPECT_EQ(modes({"--port", second + ";reverse-path=loose", "--reverse-path", "off"}),
              std::vector({Off, Loose}));
    EXPECT_EQ(modes({"--port", second + ";reverse-path=feasible", "--reverse-path", "strict"}),
              std::vector({Strict, Feasible}));
}

TEST(Options, EachLinkMayHaveTheSameLinkLocalAddress) {
    const auto options =
        Options::parse({"--port", "device=net_null0;twin=p0;address=fd00::1/64,fe80::1/64;mtu=1280", "--port",
                        "device=net_null1;twin=p1;address=fd00:1::1/64,fe80::1/64"});
    ASSERT_TRUE(options) << options.error().what;
    EXPECT_EQ(options->ports[1].addresses[1].to_string(), "fe80::1/64");
}

TEST(Options, TheSizeOfHugepagesIsAnyUnlessNamed) {
    using drivers::HugepageSize;
    const auto size = [](Arguments arguments) {
        arguments.insert(arguments.end(), {"--port", kPort});
        const auto options = Options::parse(arguments);
        EXPECT_TRUE(options) << options.error().what;
        return options->hugepage_size;
    };
    EXPECT_EQ(size({}), HugepageSize::Any);
    EXPECT_EQ(size({"--hugepage-size", "auto", "--no-huge"}), HugepageSize::Any);
    EXPECT_EQ(size({"--hugepage-size", "2M"}), HugepageSize::Small2M);
    EXPECT_EQ(size({"--hugepage-size=1G", "--no-huge=off"}), HugepageSize::Large1G);
}

TEST(Options, AnIniFileHasTheSameNames) {
    const auto options =
        Options::parse_ini(std::string("# a gateway\nport = ") + kPort +
                           "\nport = device=net_null0;twin=p1\nworkers=2\nlabel = zone=a\nno-huge = true\n");
    ASSERT_TRUE(options) << options.error().what;
    EXPECT_EQ(options->ports.size(), 2U);
    EXPECT_EQ(options->ports[0].device, "net_af_packet0,iface=veth0");
    EXPECT_EQ(options->cores.workers, 2U);
    EXPECT_TRUE(options->no_huge);
    EXPECT_EQ(options->identity.labels.at("zone"), "a");
}

TEST(Options, UnknownKeysOfAnIniFileAreRefusedByName) {
    EXPECT_NE(Options::parse_ini("wrokers=2\n").error().what.find("wrokers"), std::string::npos);
    EXPECT_NE(Options::parse_ini("[ports]\nworkers=2\n").error().what.find("ports.workers"),
              std::string::npos);
    EXPECT_NE(Options::parse_ini("help=1\n").error().what.find("help"), std::string::npos);
    EXPECT_NE(Options::parse_ini("just words\n").error().what.find("just words"), std::string::npos);
}

TEST(Options, TheCommandLineWinsOverTheFile) {
    const std::string file = testing::TempDir() + "penstockd-options-test.ini";
    std::ofstream(file) << "port = " << kPort << "\nmemory-mb = 128\ngateway-name = from-file\n";
    const auto options = Options::parse({"--config", file, "--memory-mb", "256"});
    std::ofstream(file) << "port = " << kPort << "\nmemory = 128\n";
    const auto broken = Options::parse({"--config", file});
    std::remove(file.c_str());
    ASSERT_TRUE(options) << options.error().what;
    EXPECT_EQ(options->memory_mb, 256U);
    EXPECT_EQ(options->identity.gateway_name, "from-file");
    EXPECT_TRUE(broken.error().what.starts_with(file + ":2: ")) << broken.error().what;
}

TEST(Options, AMistakeOfTheFile_IsNamedWithItsLine) {
    const std::string file = testing::TempDir() + "penstockd-options-line.ini";
    const auto error_of = [&](const std::string& text, Arguments more = {}) {
        std::ofstream(file) << "# a gateway\nport = " << kPort << "\n" << text;
        more.insert(more.end(), {"--config", file});
        const auto options = Options::parse(more);
        std::remove(file.c_str());
        return options ? std::string("accepted") : options.error().what;
    };
    EXPECT_EQ(error_of("workers = x\n"), file + ":3: --workers: \"x\" must be 1 to 64 workers");
    EXPECT_EQ(error_of("\nport = device=net_null0;twin=p1;mtu=100\n"),
              file + ":4: --port: mtu: \"100\" must be 576 to 9600 bytes");
    EXPECT_EQ(error_of("workers = x\n", {"--workers", "y"}), "--workers: \"y\" must be 1 to 64 workers")
        << "the command line's own mistake";
    EXPECT_TRUE(error_of("\njust words\n").starts_with(file + ":4: ")) << error_of("\njust words\n");
    EXPECT_TRUE(error_of("wrokers = 2\n").starts_with(file + ":3: ")) << error_of("wrokers = 2\n");
    EXPECT_EQ(error_of("check-config = true\n").find("accepted"), std::string::npos)
        << "of the command line only";
}

TEST(Options, Bfd_IsTheSocketOfFrr) {
    EXPECT_EQ(parse({})->bfd, "");
    EXPECT_EQ(parse({"--bfd", "off"})->bfd, "");
    EXPECT_EQ(parse({"--bfd", "frr:/run/frr/bfdd-dp.sock"})->bfd, "/run/frr/bfdd-dp.sock");
    for (const std::string wrong :
         {"", "on", "/run/frr/bfdd-dp.sock", "frr:", "frr:/", "frr:relative", "bird:/x"}) {
        const auto options = parse({"--bfd", wrong});
        ASSERT_FALSE(options) << wrong;
        EXPECT_EQ(options.error().what,
                  "--bfd: \"" + wrong + "\" must be frr: and the absolute path of bfdd's socket, or off");
    }
    EXPECT_FALSE(parse({"--bfd", "frr:/" + std::string(107, 'x')})) << "longer than a socket's path";
}

TEST(Options, SharesRequireRoutesAndDetermineTheLevel) {
    EXPECT_EQ(parse({})->shares, "");
    EXPECT_EQ(parse({"--shares", "/etc/penstock/shares", "--vip-presence", "routes"})->shares,
              "/etc/penstock/shares");
    for (const char* const presence : {"off", "addresses"}) {
        EXPECT_EQ(parse({"--shares", "/x", "--vip-presence", presence}).error().what,
                  "--shares: requires --vip-presence routes or arp");
    }
    const auto usual = parse({"--shares", "/x", "--vip-presence", "routes"});
    EXPECT_EQ(usual->share_age, std::chrono::seconds(3));
    EXPECT_EQ(usual->share_copies, std::nullopt) << "as many as all workers have connections";
    const auto given =
        parse({"--shares", "/x", "--vip-presence", "routes", "--share-age", "0", "--share-copies", "2048"});
    EXPECT_EQ(given->share_age.count(), 0);
    EXPECT_EQ(given->share_copies, 2048U);
    EXPECT_EQ(parse({"--shares", "/x", "--vip-presence", "routes", "--share-copies", "0"})->share_copies, 0U);
    EXPECT_EQ(parse({"--share-age", "0"}).error().what, "--share-age: requires --shares");
    EXPECT_EQ(parse({"--share-copies", "0"}).error().what, "--share-copies: requires --shares");
    EXPECT_EQ(parse({"--share-fail-back", "off"}).error().what, "--share-fail-back: requires --shares");
    EXPECT_TRUE(usual->share_fail_back);
    EXPECT_FALSE(
        parse({"--shares", "/x", "--vip-presence", "routes", "--share-fail-back", "off"})->share_fail_back);
    EXPECT_EQ(parse({"--share-copies", "7"}).error().what,
              "--share-copies: \"7\" must be 1024 to 67108864 copies, or 0");
    EXPECT_EQ(parse({"--shares", "/x", "--vip-presence", "routes", "--gateway-name", "edge 1"}).error().what,
              "--shares: requires a --gateway-name of letters, digits, '.', '-' and '_'");
    EXPECT_EQ(parse({"--shares", "/x", "--vip-presence", "routes", "--vip-standby", "on"}).error().what,
              "--shares: excludes --vip-standby: the plan determines the level of each VIP");
}

TEST(Options, AllMistakesAreReportedAtOnce) {
    EXPECT_EQ(parse({"--workers", "x", "--mode", "node", "--label", "zone", "--label", "a=b",
                     "--withdraw-empty", "--port", kPort, "--port", "device=net_null0;twin=p1;mtu=1"})
                  .error()
                  .what,
              "--port: mtu: \"1\" must be 576 to 9600 bytes\n"
              "--workers: \"x\" must be 1 to 64 workers\n"
              "--node-name: is required with --mode node\n"
              "--label: \"zone\" must be KEY=VALUE\n"
              "--withdraw-empty: requires --vip-presence routes, addresses or arp");
    EXPECT_EQ(parse({"--port", kPort}).error().what,
              "--port: device net_af_packet0 is given to two ports\n"
              "--port: interface veth0 is given to two ports\n"
              "--port: twin pen0 is given to two ports\n"
              "--port: address 192.0.2.1 is given to two ports\n"
              "--port: address 2001:db8::1 is given to two ports");
}

TEST(Options, CheckConfig_IsAnActionOfItsOwn) {
    EXPECT_EQ(parse({"--check-config"})->action, Options::Action::Check);
}

TEST(Options, HelpAndVersionNeedNothingElse) {
    EXPECT_EQ(Options::parse({"--help"})->action, Options::Action::Help);
    EXPECT_EQ(Options::parse({"--version"})->action, Options::Action::Version);
    const std::string help = Options::help();
    for (const char* option : {"--port",
                               "--workers",
                               "--worker-cores",
                               "--main-core",
                               "--memory-mb",
                               "--no-huge",
                               "--connections",
                               "--gateway-name",
                               "--mode",
                               "--node-name",
                               "--label",
                               "--listen",
                               "--socket-group",
                               "--tls-cert",
                               "--tls-key",
                               "--tls-client-ca",
                               "--tls-admin-names",
                               "--metrics-listen",
                               "--metrics-backends",
                               "--latency-histograms",
                               "--state-file",
                               "--snat-address",
                               "--snat-ports",
                               "--log-format",
                               "--log-level",
                               "--config",
                               "--version",
                               "--burst",
                               "--affinity-entries",
                               "--hugepage-size",
                               "--healthz",
                               "--sync-limit",
                               "--vip-presence",
                               "--bfd",
                               "--shares",
                               "--share-age",
                               "--share-copies",
                               "--share-fail-back",
                               "--withdraw-empty",
                               "--blocklist",
                               "--flow-rules",
                               "--vip-isolate",
                               "--vip-mark",
                               "--idle",
                               "--sctp-reject",
                               "--vip-icmp-echo",
                               "--ip-options",
                               "--midstream-pickup",
                               "--table-dir",
                               "--min-path-mtu",
                               "--allow-empty",
                               "--reverse-path",
                               "--check-config",
                               "--sandbox",
                               "--flow-log",
                               "--flow-log-mb",
                               "--flow-log-files",
                               "--flow-collector",
                               "--flow-domain",
                               "--flow-services",
                               "--flow-sample",
                               "Examples"}) {
        EXPECT_NE(help.find(option), std::string::npos) << option;
    }
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 120U) << line;
    }
}

}  // namespace options_test
}  // namespace penstock::gateway
