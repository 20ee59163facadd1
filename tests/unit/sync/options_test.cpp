// SPDX-License-Identifier: Apache-2.0
#include "control/sync/options.hpp"
#include "control/sync/policy_options.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "control/annotations/table.hpp"
#include "tests/unit/manifest/temporary_folder.hpp"

namespace penstock::sync {
namespace options_test {

using Words = std::vector<std::string>;

Options options_of(const Words& words) {
    const auto read = read_options(words);
    EXPECT_TRUE(read) << (read ? "" : read.error().what);
    return std::get<Options>(read.value());
}

Prefix prefix(const char* text) {
    return Prefix::parse(text).value();
}

struct Boolean {
    const char* name;
    bool is_switch;  // may be given without a value
    bool usually;
    std::function<bool(const Options&)> value;
};

const std::vector<Boolean>& booleans() {
    static const std::vector<Boolean> kAll = {
        {"allow-empty-folder", true, false, [](const Options& o) { return o.allow_empty_folder; }},
        {"insecure-skip-tls-verify-allowed", true, false, [](const Options& o) { return o.allow_insecure; }},
        {"events", false, true, [](const Options& o) { return o.events; }},
        {"external-ips-annotation", true, false,
         [](const Options& o) { return o.policy.external_ips_annotation; }},
        {"default-lb", true, false, [](const Options& o) { return o.policy.default_lb; }},
        {"serve-cluster-ips", true, false, [](const Options& o) { return o.policy.serve_cluster_ips; }},
        {"masquerade-all", true, false, [](const Options& o) { return o.policy.masquerade_all; }},
        {"symmetric-return", false, true, [](const Options& o) { return o.policy.symmetric_return; }},
        {"serve-health-check-node-ports", false, true,
         [](const Options& o) { return o.policy.serve_health_checks; }},
        {"ignore-exclude-label", true, false, [](const Options& o) { return o.policy.ignore_exclude_label; }},
        {"ignore-network-unavailable", true, false,
         [](const Options& o) { return o.policy.ignore_network_unavailable; }},
    };
    return kAll;
}

TEST(SyncOptions, AllMistakesAreReportedAtOnce) {
    EXPECT_EQ(read_options({"--manifests=m", "--context=c", "--namespace=shop", "--lease=a/b",
                            "--audit-period-s=x", "--gateway=edge:1"})
                  .error()
                  .what,
              "--audit-period-s: \"x\" must be 1 to 86400 seconds\n"
              "--context requires --kubeconfig\n"
              "--namespace applies to an API server and cannot be used with --manifests\n"
              "--lease requires --allocate-addresses on\n"
              "gateway edge:1: a TCP target needs --tls-cert, --tls-key and --tls-ca (mutual TLS)");
}

TEST(SyncOptions, EveryBooleanIsOnOrOffInAnySpelling) {
    for (const Boolean& each : booleans()) {
        const std::string name = std::string("--") + each.name;
        const auto value = [&](Words words) {
            words.emplace_back("--manifests=m");
            return each.value(options_of(words));
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
            EXPECT_FALSE(read_options({"--manifests=m", name})) << name;
        }
        const auto wrong = read_options({"--manifests=m", name, "some"});
        ASSERT_FALSE(wrong) << name;
        EXPECT_EQ(wrong.error().what, name + ": \"some\" must be on or off");
    }
}

TEST(SyncOptions, InClusterIsOnOrOffInAnySpelling_AUTH003) {
    for (const char* on :
         {"--in-cluster", "--in-cluster=on", "--in-cluster=true", "--in-cluster=yes", "--in-cluster=1"}) {
        EXPECT_TRUE(options_of({on}).in_cluster) << on;
    }
    for (const char* off : {"--in-cluster=off", "--in-cluster=false", "--in-cluster=no", "--in-cluster=0"}) {
        EXPECT_FALSE(options_of({off, "--manifests=m"}).in_cluster) << off;
    }
}

TEST(SyncOptions, AddressesAreAllocatedFromTheClusterOrFromFiles_LB007) {
    EXPECT_FALSE(options_of({"--in-cluster"}).allocate_addresses);
    EXPECT_TRUE(options_of({"--in-cluster", "--allocate-addresses"}).allocate_addresses);
    EXPECT_TRUE(options_of({"--in-cluster", "--allocate-addresses", "on"}).allocate_addresses);
    const Options files = options_of({"--manifests=m", "--address-pools=p", "--allocation-file=a"});
    EXPECT_TRUE(files.allocate_addresses);
    EXPECT_EQ(files.address_pools, "p");
    EXPECT_EQ(files.allocation_file, "a");
    EXPECT_EQ(options_of({"--manifests=m", "--address-pools=p"}).allocation_file,
              "/var/lib/penstock/allocations");
    const Options elected = options_of({"--in-cluster", "--allocate-addresses", "--lease", "edge/writer",
                                        "--address-pools-exclude", "10.0.0.0/8,fd00::/8"});
    EXPECT_EQ(elected.lease, (kube::ObjectName{"edge", "writer"}));
    EXPECT_EQ(elected.pools_exclude.size(), 2u);
    EXPECT_EQ(elected.status_per_s, 8u);
    EXPECT_EQ(options_of({"--in-cluster", "--allocate-addresses", "--status-qps=200"}).status_per_s, 200u);
    struct Refused {
        std::vector<std::string> arguments;
        const char* error;
    };
    for (const Refused& each : std::vector<Refused>{
             {{"--manifests=m", "--allocate-addresses"},
              "--allocate-addresses with --manifests requires --address-pools PATH"},
             {{"--manifests=m", "--address-pools=p", "--allocate-addresses=off"},
              "--address-pools requires --allocate-addresses on"},
             {{"--manifests=m", "--address-pools=p", "--lease=a/b"},
              "--lease applies to an API server and cannot be used with --manifests"},
             {{"--in-cluster", "--lease=a/b"}, "--lease requires --allocate-addresses on"},
             {{"--manifests=m", "--address-pools=p", "--status-qps=9"},
              "--status-qps applies to an API server and cannot be used with --manifests"},
             {{"--in-cluster", "--status-qps=9"}, "--status-qps requires --allocate-addresses on"},
             {{"--in-cluster", "--allocate-addresses", "--status-qps=0"},
              "--status-qps: \"0\" must be 1 to 200"},
             {{"--in-cluster", "--allocate-addresses", "--status-qps=201"},
              "--status-qps: \"201\" must be 1 to 200"},
             {{"--in-cluster", "--allocate-addresses", "--allocation-file=f"},
              "--allocation-file requires --manifests: a cluster keeps addresses in its Services"},
             {{"--in-cluster", "--allocate-addresses", "--lease=writer"},
              "--lease: \"writer\" must be NAMESPACE/NAME, as of a Lease"},
             {{"--in-cluster", "--allocate-addresses", "--namespace=shop"},
              "--allocate-addresses requires all namespaces: with --namespace, addresses of other Services "
              "are "
              "unknown"}}) {
        const auto read = read_options(each.arguments);
        ASSERT_FALSE(read) << each.error;
        EXPECT_EQ(read.error().what, each.error);
    }
}

// A new boolean option belongs in the tables above.
TEST(SyncOptions, HelpShowsEveryBooleanAsOnOrOff) {
    const auto read = read_options({"--help"});
    const std::string& help = std::get<Information>(read.value()).text;
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
    EXPECT_EQ(count, booleans().size() + 2) << "with --in-cluster and --allocate-addresses";
}

TEST(SyncOptions, HaveTheDefaultsThatHelpStates) {
    const Options options = options_of({"--manifests", "/etc/m"});
    EXPECT_EQ(options.gateways, (std::vector<client::Target>{{"unix:/run/penstock/penstockd.sock"}}));
    EXPECT_EQ(options.policy, semantics::Policy{});
    EXPECT_TRUE(options.log_levels.empty());
    EXPECT_EQ(options.log_format, log::Format::Text);
}

TEST(SyncOptions, ListsAreRepeatedOrSeparatedByCommas_XIP006) {
    const Options options =
        options_of({"--manifests", "m", "--allowed-external-cidrs", "80.11.12.0/24, 203.0.113.0/24",
                    "--allowed-external-cidrs", "2001:db8::/32", "--gateway", "unix:/a", "--gateway",
                    "unix:/b", "--protected-addresses", "10.0.0.1,::1"});
    EXPECT_EQ(
        options.policy.allowed_external_cidrs,
        (std::vector<Prefix>{prefix("80.11.12.0/24"), prefix("203.0.113.0/24"), prefix("2001:db8::/32")}));
    EXPECT_EQ(options.gateways, (std::vector<client::Target>{{"unix:/a"}, {"unix:/b"}}));
    EXPECT_EQ(options.policy.protected_addresses.size(), 2u);
}

TEST(SyncOptions, ReadThePolicy_LB002_LB003_SRC003_SVC004) {
    const semantics::Policy policy =
        options_of({"--manifests=m", "--lb-vip-scope=owned", "--lb-class=x.io/y", "--default-lb",
                    "--scheduler=mh", "--proxy-name=penstock", "--source-ranges-compat=kube-proxy"})
            .policy;
    EXPECT_EQ(policy.lb_vip_scope, semantics::Policy::VipScope::Owned);
    EXPECT_EQ(policy.lb_class, "x.io/y");
    EXPECT_TRUE(policy.default_lb);
    EXPECT_EQ(policy.default_scheduler, lb::SchedulerKind::Maglev);
    EXPECT_EQ(policy.own_proxy_name, "penstock");
    EXPECT_TRUE(policy.source_ranges_compat_kube_proxy);
}

TEST(SyncOptions, ReadWhatClusterIpsAndTopologyWant_SVC013_NAT004_ETP004_TOPO004) {
    const semantics::Policy defaults = options_of({"--manifests=m"}).policy;
    EXPECT_FALSE(defaults.serve_cluster_ips);
    EXPECT_FALSE(defaults.masquerade_all);
    EXPECT_TRUE(defaults.symmetric_return);
    EXPECT_FALSE(defaults.topology_no_match_drops);
    const semantics::Policy policy = options_of({"--manifests=m", "--serve-cluster-ips", "--masquerade-all",
                                                 "--symmetric-return=off", "--topology-no-match=drop"})
                                         .policy;
    EXPECT_TRUE(policy.serve_cluster_ips);
    EXPECT_TRUE(policy.masquerade_all);
    EXPECT_FALSE(policy.symmetric_return);
    EXPECT_TRUE(policy.topology_no_match_drops);
}

TEST(SyncOptions, NodeFactsThatWithholdVipsAreIgnoredOneByOne_PRESENCE005) {
    const semantics::Policy defaults = options_of({"--manifests=m"}).policy;
    EXPECT_FALSE(defaults.ignore_exclude_label);
    EXPECT_FALSE(defaults.ignore_network_unavailable);
    const semantics::Policy label = options_of({"--manifests=m", "--ignore-exclude-label"}).policy;
    EXPECT_TRUE(label.ignore_exclude_label);
    EXPECT_FALSE(label.ignore_network_unavailable);
    const semantics::Policy network = options_of({"--manifests=m", "--ignore-network-unavailable"}).policy;
    EXPECT_FALSE(network.ignore_exclude_label);
    EXPECT_TRUE(network.ignore_network_unavailable);
}

TEST(SyncOptions, RightsAndAnnotations_XIP006_XIP008_ANNG4) {
    const Options plain = options_of({"--manifests=m"});
    EXPECT_TRUE(plain.external_ip_policy.empty());
    EXPECT_FALSE(plain.policy.external_ips_annotation || plain.policy.refuse_unsupported_annotations);
    const Options given = options_of({"--manifests=m", "--external-ip-policy=/etc/penstock/policy.yaml",
                                      "--external-ips-annotation", "--unsupported-annotations=refuse"});
    EXPECT_EQ(given.external_ip_policy, "/etc/penstock/policy.yaml");
    EXPECT_TRUE(given.policy.external_ips_annotation && given.policy.refuse_unsupported_annotations);
}

TEST(SyncOptions, EverySchedulerThatTheTableNamesIsTaken_SCHED001) {
    for (const annotations::Word& name : annotations::scheduler_names()) {
        const auto kind =
            options_of({"--manifests=m", "--scheduler", std::string(name.spelled)}).policy.default_scheduler;
        EXPECT_EQ(lb::to_string(kind), name.spelled);
    }
}

TEST(SyncOptions, NodePortAddressesAreRangesOrPrimary_NODEPORT002) {
    EXPECT_TRUE(options_of({"--manifests=m", "--nodeport-addresses=primary"}).policy.node_port_primary_only);
    EXPECT_EQ(options_of({"--manifests=m", "--nodeport-addresses=10.0.0.0/8"}).policy.node_port_within,
              (std::vector<Prefix>{prefix("10.0.0.0/8")}));
}

TEST(SyncOptions, AListOfOneFamilyLeavesTheOtherOpenAndSaysSo_NODEPORT003) {
    const auto hints = [](const char* list) { return hints_of(options_of({"--manifests=m", list}).policy); };
    EXPECT_EQ(hints("--nodeport-addresses=10.0.0.0/8"),
              (Words{"--nodeport-addresses lists IPv4 only, so NodePorts are served on every IPv6 address of "
                     "a gateway"}));
    EXPECT_EQ(hints("--nodeport-addresses=fd00::/8"),
              (Words{"--nodeport-addresses lists IPv6 only, so NodePorts are served on every IPv4 address of "
                     "a gateway"}));
    EXPECT_TRUE(hints("--nodeport-addresses=10.0.0.0/8,fd00::/8").empty());
    EXPECT_TRUE(hints("--nodeport-addresses=primary").empty());
}

TEST(SyncOptions, ReadWhatConcernsNodes_NODEPORT009_LB017_LB021_HC001_HC007) {
    using Mode = semantics::Policy::BackendMode;
    const semantics::Policy usual = options_of({"--manifests=m"}).policy;
    EXPECT_EQ(usual, semantics::Policy{});
    const semantics::Policy other =
        options_of({"--manifests=m", "--cluster-cidr=10.244.0.0/16,fd00::/48", "--backend-mode=auto",
                    "--node-weight=ready-pods", "--node-probe-port=0", "--serve-health-check-node-ports=off",
                    "--vip-closed-port=reject", "--protocols=udp, tcp,udp"})
            .policy;
    EXPECT_EQ(other.cluster_cidrs, (std::vector<Prefix>{prefix("10.244.0.0/16"), prefix("fd00::/48")}));
    EXPECT_EQ(other.backend_mode, Mode::Auto);
    EXPECT_TRUE(other.node_weight_ready_pods);
    EXPECT_EQ(other.node_probe_port, 0);
    EXPECT_FALSE(other.serve_health_checks);
    EXPECT_TRUE(other.rejects_closed_vip_ports);
    EXPECT_EQ(other.disabled_protocols, std::vector{Protocol::Sctp});
    EXPECT_EQ(options_of({"--manifests=m", "--backend-mode=node"}).policy.backend_mode, Mode::Node);
}

struct Refusal {
    const char* name;
    Words words;
    const char* says;
};

class RefusedSyncOptions : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedSyncOptions, NameTheOptionAndTheRule_NODEPORT003) {
    const auto read = read_options(GetParam().words);
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().what.find(GetParam().says), std::string::npos) << read.error().what;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedSyncOptions,
    testing::Values(
        Refusal{"nothing",
                {},
                "nothing to follow: exactly one of --manifests PATH, --kubeconfig FILE and --in-cluster"},
        Refusal{"two_sources", {"--manifests=m", "--kubeconfig=k"}, "more than one thing to follow"},
        Refusal{"cluster_twice", {"--in-cluster", "--kubeconfig=k"}, "more than one thing to follow"},
        Refusal{"no_kubeconfig", {"--kubeconfig=:"}, "--kubeconfig names no file"},
        Refusal{"context", {"--in-cluster", "--context=c"}, "--context requires --kubeconfig"},
        Refusal{"namespace", {"--manifests=m", "--namespace=n"}, "cannot be used with --manifests"},
        Refusal{"endpoints_api", {"--in-cluster", "--endpoints-api=pods"}, "auto or endpoints"},
        Refusal{"events", {"--in-cluster", "--events=some"}, "on or off"},
        Refusal{"coalesce", {"--in-cluster", "--coalesce-ms=1001"}, "0 to 1000"},
        Refusal{"coalesce_word", {"--in-cluster", "--coalesce-ms=soon"}, "coalesce-ms"},
        Refusal{"audit", {"--in-cluster", "--audit-period-s=0"}, "1 to 86400"},
        Refusal{"priority",
                {"--in-cluster", "--sync-priority=1001"},
                "--sync-priority: \"1001\" must be 0 to 1000"},
        Refusal{"empty_folder", {"--in-cluster", "--allow-empty-folder"}, "requires --manifests"},
        Refusal{"unknown", {"--manifests=m", "--colour=red"}, "--colour"},
        Refusal{"prefix", {"--manif", "m"}, "--manif"}, Refusal{"stray", {"--manifests=m", "stray"}, "stray"},
        Refusal{
            "cidr", {"--manifests=m", "--allowed-external-cidrs=10.0.0.0/33"}, "--allowed-external-cidrs"},
        Refusal{"bare_address",
                {"--manifests=m", "--nodeport-addresses=10.0.0.1"},
                "--nodeport-addresses: \"10.0.0.1\" is not a CIDR"},
        Refusal{"primary_and_more",
                {"--manifests=m", "--nodeport-addresses=primary,10.0.0.0/8"},
                "must be prefixes, or primary alone"},
        Refusal{"scope", {"--manifests=m", "--lb-vip-scope=some"}, "owned or all"},
        Refusal{"unsupported", {"--manifests=m", "--unsupported-annotations=no"}, "must be serve or refuse"},
        Refusal{"scheduler",
                {"--manifests=m", "--scheduler=best"},
                "unknown scheduler \"best\" (use one of rr, wrr, lc, wlc, sh, dh, sed, nq, random, mh, p2c)"},
        Refusal{"compat", {"--manifests=m", "--source-ranges-compat=yes"}, "none or kube-proxy"},
        Refusal{"symmetric", {"--manifests=m", "--symmetric-return=maybe"}, "on or off"},
        Refusal{"no_match", {"--manifests=m", "--topology-no-match=shrug"}, "reject or drop"},
        Refusal{"cluster_cidr", {"--manifests=m", "--cluster-cidr=10.244.0.0"}, "--cluster-cidr"},
        Refusal{"backend_mode", {"--manifests=m", "--backend-mode=vm"}, "pod, node or auto"},
        Refusal{"node_weight", {"--manifests=m", "--node-weight=cpu"}, "equal or ready-pods"},
        Refusal{"node_probe_port", {"--manifests=m", "--node-probe-port=65536"}, "0 to 65535"},
        Refusal{"vip_closed_port", {"--manifests=m", "--vip-closed-port=rst"}, "drop or reject"},
        Refusal{"protocols", {"--manifests=m", "--protocols=tcp,icmp"}, "tcp, udp or sctp"},
        Refusal{"tcp_without_tls",
                {"--manifests=m", "--gateway=10.0.0.1:7443"},
                "--tls-cert, --tls-key and --tls-ca"},
        Refusal{"target", {"--manifests=m", "--gateway=10.0.0.1"}, "HOST:PORT"},
        Refusal{"twice", {"--manifests=m", "--gateway=unix:/a", "--gateway=unix:/a"}, "given twice"},
        Refusal{"log_level", {"--manifests=m", "--log-level=loud"}, "--log-level"},
        Refusal{"log_format", {"--manifests=m", "--log-format=xml"}, "--log-format"},
        Refusal{"no_file", {"--config=/nonexistent.ini"}, "/nonexistent.ini"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(SyncOptions, ChooseOneSource_AUTH001_AUTH003) {
    EXPECT_EQ(options_of({"--kubeconfig", "/a:/b", "--kubeconfig", "c", "--context", "edge"}).kubeconfig,
              (std::vector<std::filesystem::path>{"/a", "/b", "c"}));
    EXPECT_TRUE(options_of({"--in-cluster"}).in_cluster);
    const Options narrow =
        options_of({"--in-cluster", "--namespace=shop", "--endpoints-api=endpoints", "--events=off"});
    EXPECT_EQ(narrow.namespace_name, "shop");
    EXPECT_TRUE(narrow.endpoints_only);
    EXPECT_FALSE(narrow.events);
    EXPECT_FALSE(narrow.allow_insecure) << "only for the asking (AUTH-006)";
    EXPECT_TRUE(options_of({"--in-cluster", "--insecure-skip-tls-verify-allowed"}).allow_insecure);
}

TEST(SyncOptions, ReadTimes_GEN008_APISYNC021) {
    const Options plain = options_of({"--in-cluster"});
    EXPECT_EQ(plain.coalesce, std::chrono::milliseconds(50));
    EXPECT_EQ(plain.audit_period, std::chrono::minutes(30));
    const Options told = options_of({"--in-cluster", "--coalesce-ms=0", "--audit-period-s=60"});
    EXPECT_EQ(told.coalesce, std::chrono::milliseconds(0));
    EXPECT_EQ(told.audit_period, std::chrono::minutes(1));
}

TEST(SyncOptions, AFileHasTheSameNamesAndTheCommandLineWins) {
    const test::TemporaryFolder disk;
    disk.write("sync.ini",
               "manifests = /from/file\nscheduler = mh\ndefault-lb = on\nmasquerade-all = true\ngateway = "
               "unix:/a\ngateway = unix:/b\n");
    const Options options =
        options_of({"--config", (disk.path() / "sync.ini").string(), "--scheduler", "Random"});
    EXPECT_EQ(options.manifests, "/from/file");
    EXPECT_EQ(options.policy.default_scheduler, lb::SchedulerKind::Random);
    EXPECT_TRUE(options.policy.default_lb);
    EXPECT_TRUE(options.policy.masquerade_all);
    EXPECT_EQ(options.gateways.size(), 2u);
}

TEST(SyncOptions, AnUnknownKeyOfTheFileIsRefusedByName) {
    const test::TemporaryFolder disk;
    disk.write("sync.ini", "manifests = m\nshceduler = mh\n");
    const auto read = read_options({"--config", (disk.path() / "sync.ini").string()});
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().what.find("sync.ini:2: "), std::string::npos) << read.error().what;
    EXPECT_NE(read.error().what.find("shceduler"), std::string::npos) << read.error().what;
}

TEST(SyncOptions, HelpNamesEveryPolicyOption) {
    const auto read = read_options({"--help"});
    const auto& help = std::get<Information>(read.value()).text;
    for (const char* option : {"--manifests", "--gateway", "--allowed-external-cidrs", "--nodeport-addresses",
                               "--log-format", "--config"}) {
        EXPECT_NE(help.find(option), std::string::npos) << option;
    }
}

TEST(SyncOptions, WhereItCanBeAsked) {
    const MonitorOptions usual = options_of({"--manifests=m"}).monitor;
    EXPECT_EQ(usual.http, "");
    EXPECT_EQ(usual.socket, "/run/penstock/penstock-sync.sock");
    EXPECT_FALSE(usual.socket_is_wanted) << "nobody asked for it: not worth a refusal to start";
    const MonitorOptions other = options_of({"--manifests=m", "--http=[::1]:9107",
                                             "--listen=unix:/tmp/s.sock", "--socket-group=operators"})
                                     .monitor;
    EXPECT_EQ(other.http, "[::1]:9107");
    EXPECT_EQ(other.socket, "/tmp/s.sock");
    EXPECT_TRUE(other.socket_is_wanted);
    EXPECT_EQ(other.socket_group, "operators");
    EXPECT_EQ(options_of({"--manifests=m", "--listen=off"}).monitor.socket, "");
    for (const char* wrong : {"--http=9107", "--http=localhost:9107", "--listen=127.0.0.1:9106",
                              "--listen=unix:relative", "--listen=unix:", "--listen=/run/x.sock"}) {
        const auto refused = read_options({"--manifests=m", wrong});
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().code, Errc::InvalidArgument);
        EXPECT_TRUE(refused.error().what.starts_with(std::string(wrong).substr(0, 6)))
            << refused.error().what;
    }
}

}  // namespace options_test
}  // namespace penstock::sync
