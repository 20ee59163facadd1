// SPDX-License-Identifier: Apache-2.0
// Conversion between penstock.v1 and the model: every model value survives the wire, and each rule of the
// protos refuses with its own message.
#include "control/rpc/convert.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "control/annotations/value.hpp"

namespace penstock::rpc {
namespace convert_test {

IpAddr ip(const char* text) {
    return IpAddr::parse(text).value();
}

model::Service everything() {
    model::Service service;
    service.key = {"default", "web", "http", Protocol::Tcp};
    service.service_port = 80;
    service.scheduler = lb::SchedulerKind::Maglev;
    service.sets.push_back(
        {.endpoints = {{ip("10.0.0.1"), 9376, 1, "node-a", "z1"}, {ip("10.0.0.2"), 9376, 0, "", ""}},
         .excluded = {{ip("10.0.0.3"), 9376, model::Exclusion::NotLocal, true},
                      {ip("10.0.0.4"), 9376, model::Exclusion::NotReady, false}},
         .source = lb::SourceMode::Keep,
         .when_empty = lb::EmptyAction::DropNoLocal,
         .family = IpFamily::V4});
    service.sets.push_back({.endpoints = {{ip("2001:db8::9"), 9376, 65535, "node-b", ""}},
                            .excluded = {{ip("2001:db8::a"), 9376, model::Exclusion::TopologyHints, true}},
                            .family = IpFamily::V6});
    service.frontends.push_back(
        {lb::FrontendClass::LoadBalancerIp, ip("192.0.2.8"), IpFamily::V4, 80, 0, true});
    service.frontends.push_back(
        {lb::FrontendClass::ExternalIp, ip("2001:db8:80::1"), IpFamily::V6, 80, 1, false});
    service.frontends.push_back({lb::FrontendClass::NodePort, {}, IpFamily::V4, 30080, 0, false});
    service.frontends.push_back({lb::FrontendClass::NodePort, {}, IpFamily::V6, 30080, 1, false});
    service.source_ranges = {Prefix::parse("198.51.100.0/24").value(),
                             Prefix::parse("2001:db8::/32").value()};
    service.notices = {
        {model::Notice::Level::Warning, "FrontendConflict", "192.0.2.9:80/TCP belongs to default/older"}};
    service.frontends[0].inside_set = 0;
    service.uid = "3f1c";
    service.affinity_timeout_s = 10800;
    service.affinity_scope = lb::AffinityScope::Service;
    service.source_ranges_deny = true;
    service.idle_timeout_s = 350;
    service.drain_timeout_s = 0;
    service.health_check = {30123, 3};
    service.probe = {.kind = model::Probe::Kind::Http,
                     .port = 10256,
                     .path = "/healthz",
                     .interval_s = 30,
                     .timeout_s = 7,
                     .healthy = 3,
                     .unhealthy = 4,
                     .fails_closed = true};
    service.access_log = {
        .enabled = false, .interval_min = 5, .sink = "audit", .prefix = "team/web", .tags = "a=1,b=2"};
    return service;
}

TEST(Convert, AServiceSurvivesTheWire) {
    const auto service = everything();
    const auto back = from_proto(to_proto(service));
    ASSERT_TRUE(back) << back.error().what;
    EXPECT_EQ(*back, service);
}

// IPv4 endpoints behind IPv6 frontends in set 2, and the reverse in set 3.
model::Service translating() {
    model::Service service = everything();
    service.sets.push_back({.endpoints = {{ip("10.0.0.1"), 9376, 1, "", ""}},
                            .excluded = {{ip("10.0.0.3"), 9376, model::Exclusion::NotReady, false}},
                            .family = IpFamily::V6,
                            .translates_family = true});
    service.sets.push_back({.endpoints = {{ip("2001:db8::9"), 9376, 1, "", ""}},
                            .excluded = {{ip("2001:db8::a"), 9376, model::Exclusion::NotReady, true}},
                            .when_empty = lb::EmptyAction::DropNoLocal,
                            .family = IpFamily::V4,
                            .translates_family = true});
    service.frontends[1].set = 2;
    service.frontends[2].set = 3;
    return service;
}

TEST(Convert, EndpointsOfTheOtherFamilySurviveTheWire_ANN32) {
    const auto back = from_proto(to_proto(translating()));
    ASSERT_TRUE(back) << back.error().what;
    EXPECT_EQ(*back, translating());
    EXPECT_EQ(back->sets[2].endpoint_family(), IpFamily::V4);
    EXPECT_EQ(back->sets[1].endpoint_family(), IpFamily::V6);
}

// to_string() has a text for each enumerator, which the compiler checks; so a new one is found here.
template <typename Ours>
size_t survivors() {
    size_t found = 0;
    for (unsigned number = 0; number < 256; ++number) {
        const auto value = static_cast<Ours>(number);
        if (std::string_view(to_string(value)) != "unknown") {
            EXPECT_EQ(from_proto(to_proto(value)), value) << to_string(value);
            ++found;
        }
    }
    return found;
}

TEST(Convert, EveryEnumeratorSurvivesTheWire) {
    EXPECT_EQ(survivors<Protocol>(), 3u);
    EXPECT_EQ(survivors<lb::SchedulerKind>(), lb::kSchedulerKinds.size());
    EXPECT_EQ(survivors<lb::SourceMode>(), 2u);
    EXPECT_EQ(survivors<lb::EmptyAction>(), 3u);
    EXPECT_EQ(survivors<lb::FrontendClass>(), 4u);
    EXPECT_EQ(survivors<model::GatewayMode>(), 2u);
}

TEST(Convert, AbsentFieldsHaveTheDefaultsOfTheProto) {
    v1::Service message;
    message.mutable_key()->set_namespace_("default");
    message.mutable_key()->set_name("web");
    message.mutable_key()->set_protocol(v1::PROTOCOL_UDP);
    message.set_service_port(53);
    auto& endpoint = *message.add_sets()->add_endpoints();
    endpoint.set_address("10.0.0.1");
    endpoint.set_port(53);
    const auto service = from_proto(message);
    ASSERT_TRUE(service) << service.error().what;
    EXPECT_EQ(service->scheduler, lb::SchedulerKind::RoundRobin);
    EXPECT_EQ(service->sets[0].source, lb::SourceMode::Translate);
    EXPECT_EQ(service->sets[0].when_empty, lb::EmptyAction::Reject);
    EXPECT_EQ(service->sets[0].family, IpFamily::V4);
    EXPECT_EQ(service->sets[0].endpoints[0].weight, 1);
}

TEST(Convert, WeightZeroIsNotTheAbsentWeight) {
    auto message = to_proto(everything());
    EXPECT_EQ(from_proto(message)->sets[0].endpoints[1].weight, 0);
    message.mutable_sets(0)->mutable_endpoints(1)->clear_weight();
    EXPECT_EQ(from_proto(message)->sets[0].endpoints[1].weight, 1);
}

TEST(Convert, EndpointsAreSortedWhateverTheirOrderWas) {
    auto message = to_proto(everything());
    message.mutable_sets(0)->mutable_endpoints()->SwapElements(0, 1);
    EXPECT_EQ(from_proto(message).value(), everything());
}

TEST(Convert, AddressesAreComparedInBinary_GEN005) {
    auto message = to_proto(everything());
    message.mutable_sets(0)->mutable_endpoints(0)->set_address("010.0.0.1");
    message.mutable_frontends(1)->set_address("2001:DB8:80:0::1");
    EXPECT_EQ(from_proto(message).value(), everything());
}

struct Breach {
    const char* name;
    std::function<void(v1::Service&)> make;
    const char* text;  // must be part of the error
};

TEST(Convert, EachRuleRefusesByName) {
    const std::vector<Breach> breaches = {
        {"no key", [](auto& s) { s.clear_key(); }, "service //?: protocol is missing"},
        {"no namespace", [](auto& s) { s.mutable_key()->clear_namespace_(); }, "namespace is empty"},
        {"no name", [](auto& s) { s.mutable_key()->clear_name(); }, "name is empty"},
        {"slash in a name", [](auto& s) { s.mutable_key()->set_name("a/b"); }, "name contains a character"},
        {"newline in a name", [](auto& s) { s.mutable_key()->set_port_name("a\nb"); },
         "port_name contains a character"},
        {"endless name", [](auto& s) { s.mutable_key()->set_name(std::string(254, 'a')); },
         "name is longer than 253 bytes"},
        {"unknown protocol", [](auto& s) { s.mutable_key()->set_protocol(static_cast<v1::Protocol>(9)); },
         "protocol 9 is unknown"},
        {"service port 0", [](auto& s) { s.set_service_port(0); }, "service_port: port 0 is not in 1-65535"},
        {"unknown scheduler", [](auto& s) { s.set_scheduler(static_cast<v1::Scheduler>(77)); },
         "scheduler 77 is unknown"},
        {"no set", [](auto& s) { s.clear_sets(); }, "sets: there are 0, not 1-8"},
        {"too many sets",
         [](auto& s) {
             for (int i = 0; i < 7; ++i) {
                 s.add_sets();
             }
         },
         "sets: there are 9"},
        {"unknown source mode",
         [](auto& s) { s.mutable_sets(0)->set_source(static_cast<v1::SourceMode>(5)); },
         "sets[0]: source mode 5"},
        {"unknown empty action",
         [](auto& s) { s.mutable_sets(1)->set_when_empty(static_cast<v1::EmptyAction>(5)); },
         "sets[1]: empty action 5"},
        {"endpoint port", [](auto& s) { s.mutable_sets(0)->mutable_endpoints(1)->set_port(70000); },
         "service default/web:http/TCP: sets[0].endpoints[1]: port 70000 is not in 1-65535"},
        {"endpoint address",
         [](auto& s) { s.mutable_sets(0)->mutable_endpoints(0)->set_address("10.0.0.256"); },
         "sets[0].endpoints[0]: address"},
        {"endpoint family",
         [](auto& s) { s.mutable_sets(0)->mutable_endpoints(0)->set_address("2001:db8::1"); },
         "address 2001:db8::1 is not of the set's family, IPv4"},
        {"endpoint loopback",
         [](auto& s) { s.mutable_sets(0)->mutable_endpoints(0)->set_address("127.0.0.1"); },
         "127.0.0.1 is loopback"},
        {"endpoint link-local",
         [](auto& s) { s.mutable_sets(1)->mutable_endpoints(0)->set_address("fe80::1"); },
         "fe80::1 is link-local"},
        {"endpoint multicast",
         [](auto& s) { s.mutable_sets(0)->mutable_endpoints(0)->set_address("224.0.0.1"); },
         "224.0.0.1 is multicast"},
        {"endpoint unspecified",
         [](auto& s) { s.mutable_sets(0)->mutable_endpoints(0)->set_address("0.0.0.0"); },
         "0.0.0.0 is unspecified"},
        {"mapped address",
         [](auto& s) { s.mutable_sets(1)->mutable_endpoints(0)->set_address("::ffff:10.0.0.1"); },
         "sets[1].endpoints[0]: address"},
        {"weight", [](auto& s) { s.mutable_sets(0)->mutable_endpoints(0)->set_weight(65536); },
         "weight 65536 is not in 0-65535"},
        {"endpoint twice", [](auto& s) { s.mutable_sets(0)->mutable_endpoints(0)->set_address("10.0.0.2"); },
         "sets[0]: endpoints: 10.0.0.2:9376 is listed twice"},
        {"no class", [](auto& s) { s.mutable_frontends(0)->clear_class_(); },
         "frontends[0]: frontend class is missing"},
        {"unknown class",
         [](auto& s) { s.mutable_frontends(0)->set_class_(static_cast<v1::FrontendClass>(8)); },
         "frontends[0]: frontend class 8"},
        {"frontend address", [](auto& s) { s.mutable_frontends(0)->set_address("web"); },
         "frontends[0]: address"},
        {"frontend loopback", [](auto& s) { s.mutable_frontends(0)->set_address("127.0.0.9"); },
         "frontends[0]: address 127.0.0.9 is loopback"},
        {"frontend port", [](auto& s) { s.mutable_frontends(0)->set_port(0); }, "frontends[0]: port 0"},
        {"frontend set", [](auto& s) { s.mutable_frontends(0)->set_set(2); },
         "frontends[0]: set 2 does not exist; the last one is 1"},
        {"excluded address", [](auto& s) { s.mutable_sets(0)->mutable_excluded(1)->set_address("four!"); },
         "sets[0]: excluded[1]: an address of 5 bytes is not of the set's family, IPv4"},
        {"excluded port", [](auto& s) { s.mutable_sets(0)->mutable_excluded(0)->set_port(0); },
         "excluded[0]: port 0"},
        {"excluded for nothing", [](auto& s) { s.mutable_sets(0)->mutable_excluded(0)->clear_why(); },
         "excluded[0]: reason of exclusion"},
        {"excluded and offered",
         [](auto& s) { s.mutable_sets(0)->mutable_excluded(0)->set_address(std::string("\x0a\0\0\1", 4)); },
         "sets[0]: excluded: 10.0.0.1:9376 is listed twice"},
        {"inside set", [](auto& s) { s.mutable_frontends(0)->set_inside_set(9); },
         "frontends[0]: inside_set 9 does not exist"},
        {"inside family", [](auto& s) { s.mutable_frontends(0)->set_inside_set(1); },
         "uses inside_set 1, which is of family IPv6"},
        {"health check port", [](auto& s) { s.mutable_health_check()->set_port(65536); },
         "health_check: port 65536"},
        {"probe kind", [](auto& s) { s.mutable_probe()->clear_kind(); }, "probe: kind 0"},
        {"probe interval", [](auto& s) { s.mutable_probe()->set_interval_s(0); },
         "probe: interval_s 0 is not in 1-3600"},
        {"probe path", [](auto& s) { s.mutable_probe()->set_path("healthz"); },
         "probe: path must begin with /"},
        {"probe path", [](auto& s) { s.mutable_probe()->set_path("/x HTTP/1.1\r\nX: y"); },
         "probe: path must begin with / and contain no blanks"},
        {"probe path", [](auto& s) { s.mutable_probe()->set_path("/" + std::string(1024, 'x')); },
         "probe: path is longer than 1024 bytes"},
        {"affinity timeout", [](auto& s) { s.set_affinity_timeout_s(86'401); },
         "affinity_timeout_s 86401 is not in 0-86400"},
        {"affinity scope", [](auto& s) { s.set_affinity_timeout_s(0); },
         "affinity_all_ports without affinity_timeout_s"},
        {"idle timeout", [](auto& s) { s.set_idle_timeout_s(604'801); },
         "idle_timeout_s 604801 is not in 0-604800"},
        {"drain timeout", [](auto& s) { s.set_drain_timeout_s(3'601); },
         "drain_timeout_s 3601 is not in 0-3600"},
        {"access log interval", [](auto& s) { s.mutable_access_log()->set_interval_min(6); },
         "access_log: interval_min 6 is not 5 or 60"},
        {"access log sink", [](auto& s) { s.mutable_access_log()->set_sink("a/../b"); },
         "access_log: sink must have"},
        {"access log tags", [](auto& s) { s.mutable_access_log()->set_tags("b=1,a=2"); },
         "access_log: tags must be at most 50 pairs, sorted"},
        {"access log tags", [](auto& s) { s.mutable_access_log()->set_tags("a=\"1\""); },
         "access_log: tags must be at most 50 pairs, sorted"},
        {"access log prefix", [](auto& s) { s.mutable_access_log()->set_prefix("/etc"); },
         "access_log: prefix must be a relative path"},
        {"access log prefix", [](auto& s) { s.mutable_access_log()->set_prefix("a/../b"); },
         "access_log: prefix must be a relative path"},
        {"probe timeout", [](auto& s) { s.mutable_probe()->set_timeout_s(30); },
         "probe: timeout_s 30 is not less than interval_s 30"},
        {"frontend family", [](auto& s) { s.mutable_frontends(0)->set_set(1); },
         "an IPv4 frontend uses set 1, which is of family IPv6"},
        {"NodePort with address", [](auto& s) { s.mutable_frontends(2)->set_address("10.9.9.9"); },
         "frontends[2]: a NODE_PORT frontend"},
        {"NodePort twice", [](auto& s) { *s.add_frontends() = s.frontends(2); },
         "frontends[4]: NodePort 30080 is listed twice"},
        {"frontend twice", [](auto& s) { *s.add_frontends() = s.frontends(0); },
         "frontends[4]: 192.0.2.8:80 is listed twice"},
        {"source range", [](auto& s) { s.set_source_ranges(1, "10.0.0.0/33"); }, "source_ranges[1]"},
        {"bare source address", [](auto& s) { s.set_source_ranges(0, "10.0.0.1"); }, "source_ranges[0]"},
        {"notice level", [](auto& s) { s.mutable_notices(0)->set_level(static_cast<v1::Notice::Level>(4)); },
         "notices[0]: notice level 4"},
    };
    for (const auto& breach : breaches) {
        auto message = to_proto(everything());
        breach.make(message);
        const auto service = from_proto(message);
        ASSERT_FALSE(service) << breach.name;
        EXPECT_EQ(service.error().code, Errc::InvalidArgument) << breach.name;
        EXPECT_NE(service.error().what.find(breach.text), std::string::npos)
            << breach.name << ": " << service.error().what;
    }
}

// A path that the annotation accepts must not cause the gateway to refuse the Service.
TEST(Convert, EndpointsOfAnotherFamilyThanTheSetSaysAreRefused_ANN32_DUAL002) {
    const std::vector<Breach> breaches = {
        {"source kept", [](auto& s) { s.mutable_sets(2)->set_source(v1::SOURCE_MODE_KEEP); },
         "service default/web:http/TCP: sets[2]: source KEEP is not possible with endpoints IPv4 behind "
         "IPv6: the client's address is of another family than the endpoints"},
        {"endpoint of the frontends' family",
         [](auto& s) { s.mutable_sets(2)->mutable_endpoints(0)->set_address("2001:db8::9"); },
         "sets[2].endpoints[0]: address 2001:db8::9 is not of the set's endpoints, IPv4 behind IPv6"},
        {"the other way round",
         [](auto& s) { s.mutable_sets(3)->mutable_endpoints(0)->set_address("10.0.0.1"); },
         "sets[3].endpoints[0]: address 10.0.0.1 is not of the set's endpoints, IPv6 behind IPv4"},
        {"excluded of the frontends' family",
         [](auto& s) { s.mutable_sets(2)->mutable_excluded(0)->set_address(std::string(16, '\1')); },
         "sets[2]: excluded[0]: an address of 16 bytes is not of the set's endpoints, IPv4 behind IPv6"},
        {"not said", [](auto& s) { s.mutable_sets(2)->set_translates_family(false); },
         "address 10.0.0.1 is not of the set's family, IPv6"},
        {"frontend of the endpoints' family", [](auto& s) { s.mutable_frontends(0)->set_set(2); },
         "an IPv4 frontend uses set 2, which is of family IPv6"},
    };
    for (const auto& breach : breaches) {
        auto message = to_proto(translating());
        breach.make(message);
        const auto service = from_proto(message);
        ASSERT_FALSE(service) << breach.name;
        EXPECT_EQ(service.error().code, Errc::InvalidArgument) << breach.name;
        EXPECT_NE(service.error().what.find(breach.text), std::string::npos)
            << breach.name << ": " << service.error().what;
    }
}

TEST(Convert, EveryPathThatAnAnnotationMayHaveTravels_ANN10) {
    const annotations::SettingSpec& row = annotations::spec_of(annotations::Setting::HealthCheckPath);
    const std::string key(row.spellings.front().key);
    const std::string longest =
        "/" + std::string(static_cast<size_t>(row.spellings.front().rule.max) - 1, 'x');
    std::string characters = "/";
    for (int c = 0x21; c < 0x7f; ++c) {
        characters += static_cast<char>(c);
    }
    for (const std::string& path : {std::string("/"), longest, characters}) {
        const annotations::Annotations object{{key, path}};
        const auto read = annotations::read(row, object);
        ASSERT_TRUE(read && read->valid) << path;
        auto service = everything();
        service.probe->path = path;
        const auto back = from_proto(to_proto(service));
        ASSERT_TRUE(back) << back.error().what;
        EXPECT_EQ(back->probe->path, path);
    }
}

TEST(Convert, AnObservedNoticeSurvivesTheWireAndNamesWhatIsWrong) {
    const model::ObservedNotice observed{
        {"default", "web", "http", Protocol::Tcp},
        {model::Notice::Level::Warning, model::kNodePortInUse, "nodePort 30080/TCP"}};
    v1::ObservedNotice message = to_proto(observed);
    EXPECT_EQ(from_proto(message), observed);
    message.mutable_key()->clear_protocol();
    const auto broken = from_proto(message);
    ASSERT_FALSE(broken);
    EXPECT_NE(broken.error().what.find("default/web"), std::string::npos) << broken.error().what;
}

TEST(Convert, AnEnvironmentSurvivesTheWire_PRESENCE005) {
    const model::Environment environment{.node_ports = {{}, true, {ip("10.1.0.1")}},
                                         .pod_cidrs = {Prefix::parse("10.244.0.0/16").value()},
                                         .rejects_closed_vip_ports = true,
                                         .node_eligible = false,
                                         .vips_withheld = "Node edge-1 is excluded"};
    EXPECT_EQ(from_proto(to_proto(environment)).value(), environment);
    v1::Environment message = to_proto(environment);
    message.set_pod_cidrs(0, "everywhere");
    EXPECT_NE(from_proto(message).error().what.find("environment.pod_cidrs[0]"), std::string::npos);
}

TEST(Convert, NodePortAddressesSurviveTheWireAndNameWhatIsWrong) {
    const model::NodePortAddresses addresses{
        {Prefix::parse("10.0.0.0/8").value()}, true, {ip("10.1.0.1"), ip("2001:db8::1")}};
    EXPECT_EQ(from_proto(to_proto(addresses)).value(), addresses);
    auto message = to_proto(addresses);
    message.set_within(0, "10.0.0.0");
    EXPECT_NE(from_proto(message).error().what.find("node_ports.within[0]"), std::string::npos);
    message = to_proto(addresses);
    message.set_node_addresses(1, "x");
    EXPECT_NE(from_proto(message).error().what.find("node_ports.node_addresses[1]"), std::string::npos);
}

TEST(Convert, AnIdentitySurvivesTheWireAndNamesWhatIsWrong) {
    const model::GatewayIdentity identity{"edge-1",
                                          model::GatewayMode::Node,
                                          "worker-1",
                                          {{"zone", "a"}},
                                          {{"pen0", ip("192.0.2.1"), 24, true}},
                                          {Prefix::parse("10.244.0.0/16").value()}};
    EXPECT_EQ(from_proto(to_proto(identity)).value(), identity);
    auto message = to_proto(identity);
    message.clear_node_name();
    EXPECT_EQ(from_proto(message).error().what, "identity of gateway \"edge-1\": node_name is empty");
    message = to_proto(identity);
    message.mutable_addresses(0)->set_prefix_length(33);
    EXPECT_NE(from_proto(message).error().what.find("addresses[0]: prefix length 33 is not in 0-32"),
              std::string::npos);
    message = to_proto(identity);
    message.set_routed_prefixes(0, "10.244.0.0");
    EXPECT_NE(from_proto(message).error().what.find("routed_prefixes[0]: "), std::string::npos);
    for (size_t i = 0; i < model::kRoutedPrefixesMax; ++i) {
        message.add_routed_prefixes("10.244.0.0/16");
    }
    EXPECT_NE(from_proto(message).error().what.find("routed_prefixes: more than 8192"), std::string::npos);
    message = to_proto(identity);
    message.clear_gateway_name();
    EXPECT_NE(from_proto(message).error().what.find("gateway_name is empty"), std::string::npos);
    message = to_proto(identity);
    message.clear_mode();
    EXPECT_NE(from_proto(message).error().what.find("mode is missing"), std::string::npos);
}

}  // namespace convert_test
}  // namespace penstock::rpc
