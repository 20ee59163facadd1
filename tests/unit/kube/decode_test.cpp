// SPDX-License-Identifier: Apache-2.0
#include "control/kube/decode.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/kept_keys.hpp"

namespace penstock::kube {
namespace decode_test {

// Of the 64 levels, the object itself is the first.
constexpr size_t kLevels = 63;

using Faults = std::vector<std::string>;

DecodedObject decoded(ObjectKind kind, const std::string& json) {
    Decoder decoder;
    auto result = decode_object(decoder, kind, json);
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().what);
    return result ? std::move(*result) : DecodedObject();
}

template <typename Ptr>
auto only(ObjectKind kind, const std::string& json) {
    const DecodedObject object = decoded(kind, json);
    EXPECT_EQ(object.faults, Faults());
    return *std::get<Ptr>(object.object.value());
}

Service service(const std::string& spec, const std::string& rest = "") {
    return only<ServicePtr>(ObjectKind::Service,
                            R"({"metadata":{"name":"web","namespace":"shop"},"spec":)" + spec + rest + "}");
}

EndpointSlice slice(const std::string& fields) {
    return only<EndpointSlicePtr>(
        ObjectKind::EndpointSlice,
        R"({"apiVersion":"discovery.k8s.io/v1","metadata":{"name":"web-1","namespace":"shop"},)" + fields +
            "}");
}

Faults faults_of(ObjectKind kind, const std::string& json) {
    const DecodedObject object = decoded(kind, json);
    EXPECT_FALSE(object.object.has_value());
    return object.faults;
}

Faults faults_of_spec(const std::string& spec) {
    return faults_of(ObjectKind::Service,
                     R"({"metadata":{"name":"web","namespace":"shop"},"spec":)" + spec + "}");
}

TEST(Decode, ReadsAService) {
    const DecodedObject object = decoded(ObjectKind::Service, R"({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "42", "generation": 3,
                     "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "web", "service.kubernetes.io/headless": ""},
                     "annotations": {"penstock.io/scheduler": "rr", "kubectl.kubernetes.io/last-applied-configuration": "{\"a\":1}"},
                     "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:ports": {".": {}}}}}]},
        "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                 "externalIPs": ["80.11.12.10"], "selector": {"app": "web"}, "externalTrafficPolicy": "Local",
                 "internalTrafficPolicy": "Local", "trafficDistribution": "PreferClose", "sessionAffinity": "ClientIP",
                 "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}, "loadBalancerIP": "203.0.113.9",
                 "loadBalancerClass": "penstock.io/gateway", "loadBalancerSourceRanges": ["10.0.0.0/8"],
                 "allocateLoadBalancerNodePorts": false, "healthCheckNodePort": 31000, "publishNotReadyAddresses": true,
                 "externalName": "example.org",
                 "ports": [{"name": "http", "protocol": "UDP", "port": 80, "targetPort": "web", "nodePort": 30080}, {"port": 81}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.20", "hostname": "h", "ipMode": "VIP",
                                                "ports": [{"port": 80, "protocol": "TCP", "error": "Nope"}]}]},
                   "conditions": [{"type": "LoadBalancerPortsError", "status": "False", "reason": "Other"},
                                  {"type": "penstock.io/Allocated", "status": "True", "reason": "Allocated", "message": "from pool edge"}]}})");
    EXPECT_EQ(object.id.to_string(), "Service shop/web");
    EXPECT_EQ(object.resource_version, "42");
    const Service expected{.meta = {.namespace_name = "shop",
                                    .name = "web",
                                    .uid = "u-1",
                                    .creation_timestamp = "2026-01-02T03:04:05Z",
                                    .labels = {{"app", "web"}, {"service.kubernetes.io/headless", ""}},
                                    .annotations = {{"penstock.io/scheduler", "rr"}}},
                           .type = "LoadBalancer",
                           .cluster_ip = "10.96.0.7",
                           .awaits_cluster_ip = true,
                           .cluster_ips = {"10.96.0.7"},
                           .ip_families = {"IPv4"},
                           .ip_family_policy = "SingleStack",
                           .external_ips = {"80.11.12.10"},
                           .ports = {{"http", "UDP", 80, 30080, "web"}, {"", "TCP", 81, 0, "81"}},
                           .selector = {{"app", "web"}},
                           .external_traffic_policy = "Local",
                           .internal_traffic_policy = "Local",
                           .session_affinity = "ClientIP",
                           .traffic_distribution = "PreferClose",
                           .affinity_timeout_s = 60,
                           .load_balancer_ip = "203.0.113.9",
                           .load_balancer_class = "penstock.io/gateway",
                           .load_balancer_source_ranges = {"10.0.0.0/8"},
                           .allocate_load_balancer_node_ports = false,
                           .health_check_node_port = 31000,
                           .publish_not_ready_addresses = true,
                           .external_name = "example.org",
                           .ingress = {{.ip = "203.0.113.20",
                                        .hostname = "h",
                                        .ip_mode = "VIP",
                                        .ports = {{80, "TCP", "Nope"}}}},
                           .conditions = {{.type = "penstock.io/Allocated",
                                           .status = "True",
                                           .reason = "Allocated",
                                           .message = "from pool edge"}}};
    EXPECT_EQ(*std::get<ServicePtr>(object.object.value()), expected);
}

TEST(Decode, AppliesTheDefaultsWhereFieldsAreAbsentOrNull_GEN004) {
    const Service absent = service(R"({"ports":[{"port":80}]})");
    EXPECT_EQ(absent.type, "ClusterIP");
    EXPECT_EQ(absent.external_traffic_policy, "Cluster");
    EXPECT_EQ(absent.internal_traffic_policy, "Cluster");
    EXPECT_EQ(absent.session_affinity, "None");
    EXPECT_EQ(absent.affinity_timeout_s, 10800);
    EXPECT_EQ(absent.ports, (std::vector<ServicePort>{{"", "TCP", 80, 0, "80"}}));
    const Service null = service(
        R"({"type":null,"clusterIP":null,"clusterIPs":null,"externalIPs":null,"selector":null,"externalTrafficPolicy":null,)"
        R"("sessionAffinityConfig":{"clientIP":null},"allocateLoadBalancerNodePorts":null,)"
        R"("ports":[{"port":80,"name":null,"protocol":null,"targetPort":null,"nodePort":null}]})",
        R"(,"status":null)");
    EXPECT_EQ(null, absent);
    EXPECT_EQ(slice(R"("addressType":"IPv4","ports":[{"port":8080}])").ports,
              (std::vector<EndpointPort>{{"", "TCP", 8080}}));
}

TEST(Decode, AServersServiceWithoutClusterIpWaitsForOne_SVC002) {
    EXPECT_TRUE(service("{}").awaits_cluster_ip);
    EXPECT_EQ(service(R"({"clusterIPs":["None"]})").cluster_ip, "None");
}

TEST(Decode, UnknownFieldsAtAnyDepthChangeNothing_GEN002) {
    EXPECT_EQ(
        service(
            R"({"foo":{"bar":[1,{"x":"y"}]},"ports":[{"port":80,"baz":[]}],"huge":123456789012345678901234567890,"far":1e999})",
            R"(,"extra":true,"status":{"phases":[1]})"),
        service(R"({"ports":[{"port":80}]})"));
}

TEST(Decode, OfAKeyGivenTwiceTheLastCounts_APISYNC017) {
    EXPECT_EQ(
        service(
            R"({"type":"NodePort","type":"ClusterIP","ports":[{"port":1}],"ports":[{"port":2,"port":3}]})"),
        service(R"({"ports":[{"port":3}]})"));
    EXPECT_EQ(service(R"({"selector":{"a":"1","a":"2"}})").selector,
              (std::map<std::string, std::string>{{"a", "2"}}));
    EXPECT_EQ(service(R"({"type":"NodePort","type":null})").type, "ClusterIP");
}

TEST(Decode, IntegersReachToInt64_APISYNC017) {
    EXPECT_EQ(service(R"({"healthCheckNodePort":9223372036854775807})").health_check_node_port, INT64_MAX);
    EXPECT_EQ(service(R"({"healthCheckNodePort":-9223372036854775808})").health_check_node_port, INT64_MIN);
    for (const char* number :
         {"9223372036854775808", "-9223372036854775809", "99999999999999999999999999", "80.0", "8e1"}) {
        EXPECT_EQ(faults_of_spec(std::string(R"({"healthCheckNodePort":)") + number + "}"),
                  Faults{std::string("spec.healthCheckNodePort is a number with a fraction (") + number +
                         "), must be an integer (GEN-003)"});
    }
}

TEST(Decode, DepthIsLimited_APISYNC017) {
    const auto nested = [](size_t levels) {
        return R"({"metadata":{"name":"n"},"x":)" + std::string(levels, '[') + std::string(levels, ']') + "}";
    };
    EXPECT_EQ(only<NodePtr>(ObjectKind::Node, nested(kLevels)).meta.name, "n");
    for (const size_t levels : {kLevels + 1, size_t{5'000}, size_t{400'000}}) {
        const DecodedObject deep = decoded(ObjectKind::Node, nested(levels));
        EXPECT_EQ(deep.id.to_string(), "Node n");
        EXPECT_EQ(deep.faults, Faults{"is nested deeper than 64 levels (APISYNC-017)"});
    }
}

struct WrongType {
    const char* name;
    const char* spec;
    const char* fault;
};

class Quarantine : public testing::TestWithParam<WrongType> {};

TEST_P(Quarantine, KeepsTheNameAndTellsPathAndRule_GEN003) {
    EXPECT_EQ(faults_of_spec(GetParam().spec), Faults{GetParam().fault});
}

INSTANTIATE_TEST_SUITE_P(
    Table, Quarantine,
    testing::Values(
        WrongType{"quoted_port", R"({"ports":[{"port":"80"}]})",
                  R"(spec.ports[0].port is a string ("80"), must be an integer (GEN-003))"},
        WrongType{"second_port", R"({"ports":[{"port":80},{"port":true}]})",
                  "spec.ports[1].port is a boolean (true), must be an integer (GEN-003)"},
        WrongType{"ports_mapping", R"({"ports":{}})", "spec.ports is a mapping, must be a list (GEN-003)"},
        WrongType{"port_null", R"({"ports":[{"port":80},null]})",
                  "spec.ports[1] is null, must be a mapping (GEN-003)"},
        WrongType{"number_for_text", R"({"externalIPs":["10.0.0.1",5]})",
                  "spec.externalIPs[1] is an integer (5), must be a string (GEN-003)"},
        WrongType{"text_for_boolean", R"({"publishNotReadyAddresses":"true"})",
                  R"(spec.publishNotReadyAddresses is a string ("true"), must be a boolean (GEN-003))"},
        WrongType{"target_port_list", R"({"ports":[{"port":1,"targetPort":[]}]})",
                  "spec.ports[0].targetPort is a list, must be an integer or a string (GEN-003)"},
        WrongType{"selector_value", R"({"selector":{"app":1}})",
                  R"(spec.selector["app"] is an integer (1), must be a string (GEN-003))"},
        WrongType{"spec_list", "[]", "spec is a list, must be a mapping (GEN-003)"},
        WrongType{
            "long_text", R"({"ports":"0123456789012345678901234567890123456789X"})",
            R"(spec.ports is a string ("0123456789012345678901234567890123456789..."), must be a list (GEN-003))"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Decode, AQuarantinedServiceNamesItsAddresses_GEN003_LB008) {
    const DecodedObject object = decoded(ObjectKind::Service,
                                         R"({"metadata":{"name":"web","namespace":"shop"},"spec":{"ports":7},
        "status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"ip":7},{"hostname":"h"},{"ip":"2001:DB8::1"}]}}})");
    EXPECT_FALSE(object.object);
    EXPECT_EQ(object.held_addresses, (std::vector<IpAddr>{IpAddr::parse("192.0.2.1").value(),
                                                          IpAddr::parse("2001:db8::1").value()}));
    EXPECT_TRUE(decoded(ObjectKind::Node, R"({"metadata":{"name":"n","labels":7}})").held_addresses.empty());
}

TEST(Decode, ManyFaultsAreToldShortly_GEN003) {
    std::string ips;
    for (int i = 0; i < 1000; ++i) {
        ips += i == 0 ? "1" : ",1";
    }
    const Faults faults = faults_of_spec(R"({"externalIPs":[)" + ips + "]}");
    ASSERT_EQ(faults.size(), 21u);
    EXPECT_EQ(faults.back(), "and 980 more faults");
}

TEST(Decode, WhatHasNoNameIsNoObject_GEN003) {
    Decoder decoder;
    for (const auto& [json, why] : std::vector<std::pair<const char*, const char*>>{
             {R"({})", "Service has no metadata.name"},
             {R"({"metadata":{"name":5}})", "metadata.name is an integer (5), must be a string (GEN-003)"},
             {R"({"metadata":[]})", "metadata is a list, must be a mapping (GEN-003)"},
             {R"({"kind":"Pod","metadata":{"name":"a"}})", "is a Pod, must be a Service"}}) {
        const auto result = decode_object(decoder, ObjectKind::Service, json);
        ASSERT_FALSE(result.has_value()) << json;
        EXPECT_EQ(result.error().what, why);
    }
}

TEST(Decode, WhatIsNoJsonIsAnError_APISYNC007) {
    Decoder decoder;
    for (const char* json : {"",
                             "x",
                             "[]",
                             "5",
                             "{",
                             "{}{}",
                             "{}]",
                             R"({"a":1,})",
                             R"({"a" 1})",
                             R"({"a":[1 2]})",
                             R"({"a":[1,]})",
                             R"({"a":01})",
                             R"({"a":1x})",
                             R"({"a":-})",
                             R"({"a":1.})",
                             R"({"a":.5})",
                             R"({"a":1e})",
                             R"({"a":+1})",
                             R"({"a":nul})",
                             R"({"a":truely})",
                             R"({"a":"\x"})",
                             R"({"a":"\ud800"})",
                             "{\"a\":\"\x01\"}",
                             "{\"a\":\"\xff\"}",
                             "{\"a\":\"\xed\xa0\x80\"}",
                             R"({"a":"})",
                             R"({1:2})",
                             R"({"metadata":{"name":"a"},"b":})"}) {
        const auto result = decode_object(decoder, ObjectKind::Node, json);
        ASSERT_FALSE(result.has_value()) << json;
        EXPECT_EQ(result.error().code, Errc::Corrupt) << json;
    }
}

TEST(Decode, StringsMayHoldAnything_APISYNC017) {
    const std::string huge(1'400'000, 'x');
    const Service odd = service(
        R"({"selector":{"nul":"a\u0000b","pair":"\ud83d\udeb0","esc":"\"\\\/\n","huge":")" + huge + R"("}})");
    EXPECT_EQ(odd.selector.at("nul"), std::string("a\0b", 3));
    EXPECT_EQ(odd.selector.at("pair"), "\xf0\x9f\x9a\xb0");
    EXPECT_EQ(odd.selector.at("esc"), "\"\\/\n");
    EXPECT_EQ(odd.selector.at("huge"), huge);
    EXPECT_EQ(service(R"({"t\u0079pe":"NodePort"})").type, "NodePort");
}

TEST(Decode, ReadsSlicesOfV1AndKeepsNullConditionsApart_EP010) {
    const EndpointSlice read = slice(
        R"("addressType":"IPv4","ports":[{"name":"http","port":9376},{"port":null},{"port":0,"protocol":"UDP"}],"endpoints":[)"
        R"({"addresses":["10.80.2.11","nonsense"],"conditions":{"ready":false,"serving":null},"nodeName":"edge-1","zone":"z",)"
        R"("hints":{"forZones":[{"name":"z"}],"forNodes":[{"name":"edge-1"}]},"targetRef":{"kind":"Pod"}},)"
        R"({"addresses":["10.80.2.12"]},{"addresses":[]},{"addresses":["x"],"conditions":{"terminating":true},"topology":{"kubernetes.io/hostname":"no"}}])");
    EXPECT_EQ(read.address_type, "IPv4");
    // EP-009: "all ports" is distinct from 0.
    EXPECT_EQ(read.ports,
              (std::vector<EndpointPort>{{"http", "TCP", 9376}, {"", "TCP", std::nullopt}, {"", "UDP", 0}}));
    const std::vector<Endpoint> expected = {{.address = "10.80.2.11",
                                             .ready = false,
                                             .node_name = "edge-1",
                                             .zone = "z",
                                             .hints_for_zones = {"z"},
                                             .hints_for_nodes = {"edge-1"}},
                                            {.address = "10.80.2.12"},
                                            {},
                                            {.address = "x", .terminating = true}};
    EXPECT_EQ(read.endpoints, expected);
}

TEST(Decode, AddressTypesAreKeptAsWritten_EP008) {
    for (const std::string type : {"IPv4", "IPv6", "FQDN", "IP", "Carrier pigeon"}) {
        EXPECT_EQ(slice(R"("addressType":")" + type + "\"").address_type, type);
    }
}

TEST(Decode, OnlyTheFirstAddressCountsYetAllAreChecked_EP005_GEN003) {
    EXPECT_EQ(faults_of(ObjectKind::EndpointSlice,
                        R"({"metadata":{"name":"s"},"endpoints":[{"addresses":["10.0.0.1",7]}]})"),
              Faults{"endpoints[0].addresses[1] is an integer (7), must be a string (GEN-003)"});
}

TEST(Decode, TakesNodeAndZoneFromTopologyUnlessTheVersionIsV1_EP016) {
    const std::string rest =
        R"("metadata":{"name":"s","namespace":"d","labels":{"kubernetes.io/service-name":"web","app":"web"}},"endpoints":[{"addresses":["10.0.0.1"],)"
        R"("topology":{"kubernetes.io/hostname":"edge-1","topology.kubernetes.io/zone":"z1","topology.kubernetes.io/region":"r"}},)"
        R"({"addresses":["10.0.0.2"],"nodeName":"edge-2","topology":{"kubernetes.io/hostname":"other"}}]})";
    for (const std::string version : {"", R"("apiVersion":"discovery.k8s.io/v1beta1",)"}) {
        const auto read = only<EndpointSlicePtr>(ObjectKind::EndpointSlice, "{" + version + rest);
        EXPECT_EQ(read.endpoints[0].node_name, "edge-1");
        EXPECT_EQ(read.endpoints[0].zone, "z1");
        EXPECT_EQ(read.endpoints[1].node_name, "edge-2");
        EXPECT_EQ(read.topology, (std::vector<InternedTexts>{
                                     {"kubernetes.io/hostname", "edge-1", "topology.kubernetes.io/region",
                                      "r", "topology.kubernetes.io/zone", "z1"},
                                     {"kubernetes.io/hostname", "other"}}));
        EXPECT_EQ(read.meta.labels,
                  (std::map<std::string, std::string>{{"kubernetes.io/service-name", "web"}}));
    }
    const auto v1 =
        only<EndpointSlicePtr>(ObjectKind::EndpointSlice, R"({"apiVersion":"discovery.k8s.io/v1",)" + rest);
    EXPECT_EQ(v1.endpoints[0].node_name, "");
    EXPECT_EQ(v1.topology, std::vector<InternedTexts>());
}

TEST(Decode, TopologyKeysOfAService_TOPO002) {
    EXPECT_EQ(only<ServicePtr>(
                  ObjectKind::Service,
                  R"({"metadata":{"name":"s"},"spec":{"topologyKeys":["kubernetes.io/hostname","*"]}})")
                  .topology_keys,
              (std::vector<std::string>{"kubernetes.io/hostname", "*"}));
    EXPECT_EQ(
        faults_of(ObjectKind::Service, R"({"metadata":{"name":"s"},"spec":{"topologyKeys":"*"}})").size(),
        1U);
}

TEST(Decode, EndpointsBecomeASliceForEachSubsetAndFamily_EP015_EP014) {
    const DecodedObject object = decoded(ObjectKind::Endpoints, R"({"kind":"Endpoints","apiVersion":"v1",
        "metadata":{"name":"web","namespace":"shop","resourceVersion":"7"},"subsets":[
        {"addresses":[{"ip":"10.0.0.1","nodeName":"n1","hostname":"h"},{"ip":"fd00::1"},{"ip":"nonsense"}],
         "notReadyAddresses":[{"ip":"10.0.0.2"}],"ports":[{"name":"http","port":80},{"name":"dns","port":53,"protocol":"UDP"}]},
        {"addresses":[{"ip":"10.0.0.3"}],"ports":[{"name":"http","port":8080}]},{}]})");
    EXPECT_EQ(object.id.to_string(), "Endpoints shop/web");
    const auto slices = std::get<std::vector<EndpointSlicePtr>>(object.object.value());
    ASSERT_EQ(slices.size(), 3u);
    const auto meta = [](const std::string& name) {
        return ObjectMeta{
            .namespace_name = "shop", .name = name, .labels = {{"kubernetes.io/service-name", "web"}}};
    };
    const auto ready = [](const char* address, const char* node = "") {
        return Endpoint{
            .address = address, .ready = true, .serving = true, .terminating = false, .node_name = node};
    };
    const std::vector<EndpointPort> ports = {{"http", "TCP", 80}, {"dns", "UDP", 53}};
    EXPECT_EQ(
        *slices[0],
        (EndpointSlice{
            .meta = meta("web-0-ipv4"),
            .address_type = "IPv4",
            .endpoints = {ready("10.0.0.1", "n1"),
                          ready("nonsense"),
                          {.address = "10.0.0.2", .ready = false, .serving = false, .terminating = false}},
            .ports = ports,
            .from_endpoints = true}));
    EXPECT_EQ(*slices[1], (EndpointSlice{.meta = meta("web-0-ipv6"),
                                         .address_type = "IPv6",
                                         .endpoints = {ready("fd00::1")},
                                         .ports = ports,
                                         .from_endpoints = true}));
    EXPECT_EQ(*slices[2], (EndpointSlice{.meta = meta("web-1-ipv4"),
                                         .address_type = "IPv4",
                                         .endpoints = {ready("10.0.0.3")},
                                         .ports = {{"http", "TCP", 8080}},
                                         .from_endpoints = true}));
}

TEST(Decode, EndpointsThatWereCutOffSaySo_EP015) {
    const std::string rest = R"("subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}]}]})";
    const DecodedObject cut = decoded(
        ObjectKind::Endpoints,
        R"({"metadata":{"name":"web","annotations":{"endpoints.kubernetes.io/over-capacity":"truncated","team":"a"}},)" +
            rest);
    const auto slices = std::get<std::vector<EndpointSlicePtr>>(cut.object.value());
    EXPECT_EQ(slices.at(0)->meta.annotations,
              (std::map<std::string, std::string>{{"endpoints.kubernetes.io/over-capacity", "truncated"}}));
}

TEST(Decode, ReadsNodesWithAllTheirLabels_LB019_HC006) {
    const Node expected{
        .meta = {.name = "edge-1", .labels = {{"rack", "r1"}, {"topology.kubernetes.io/zone", "z"}}},
        .addresses = {{"InternalIP", "10.80.1.1"}},
        .pod_cidrs = {"10.244.0.0/24"},
        .ready = false,
        .unschedulable = true,
        .deleting = true,
        .taints = {"ToBeDeletedByClusterAutoscaler", "b"}};
    EXPECT_EQ(
        only<NodePtr>(
            ObjectKind::Node,
            R"({"metadata":{"name":"edge-1","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"rack":"r1","topology.kubernetes.io/zone":"z"},
        "annotations":{"csi.volume.kubernetes.io/nodeid":"x"}},"spec":{"podCIDR":"10.244.0.0/24","unschedulable":true,
        "taints":[{"key":"ToBeDeletedByClusterAutoscaler","value":"1","effect":"NoSchedule"},{"key":"b","effect":"NoExecute"}]},
        "status":{"addresses":[{"type":"InternalIP","address":"10.80.1.1"}],"images":[{"names":["a"],"sizeBytes":5}],
        "conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"Unknown","lastHeartbeatTime":"2026-01-01T00:00:00Z"}]}})"),
        expected);
}

TEST(Decode, NodeNetworkIsUnavailableOnlyWhereTheConditionIsTrue_PRESENCE005) {
    const auto is_unavailable = [](const std::string& conditions) {
        return only<NodePtr>(ObjectKind::Node,
                             R"({"metadata":{"name":"n"},"status":{"conditions":)" + conditions + "}}")
            .network_unavailable;
    };
    EXPECT_TRUE(is_unavailable(
        R"([{"type":"Ready","status":"True"},{"type":"NetworkUnavailable","status":"True","reason":"NoRoute"}])"));
    EXPECT_FALSE(is_unavailable(R"([{"type":"NetworkUnavailable","status":"False"}])"));
    EXPECT_FALSE(is_unavailable(R"([{"type":"NetworkUnavailable","status":"Unknown"}])"));
    EXPECT_FALSE(is_unavailable(R"([{"type":"NetworkUnavailable"}])"));
    EXPECT_FALSE(is_unavailable(R"([{"type":"Ready","status":"True"}])"));
    EXPECT_FALSE(is_unavailable("null"));
}

TEST(KeptKeys, WhatSemanticsReadsIsKeptAndTheRestIsNot_ANNG5) {
    for (const char* key :
         {"penstock.io/scheduler", "penstock.io/no-endpoints-action", "kube-router.io/service.scheduler",
          "service.cilium.io/lb-algorithm", "service.beta.kubernetes.io/load-balancer-source-ranges",
          "penstock.io/idle-timout", "metallb.universe.tf/address-pool", "io.cilium/lb-ipam-ips",
          "service.kubernetes.io/tke-existed-lbid"}) {
        EXPECT_TRUE(is_kept_annotation(ObjectKind::Service, key)) << key;
    }
    for (const char* key : {"kubectl.kubernetes.io/last-applied-configuration", "meta.helm.sh/release-name",
                            "service.beta.kubernetes.io/some-cloud", "service.cilium.io/other",
                            "service.kubernetes.io/", "metallb.io/", "penstock.io", "penstock.iox/a", ""}) {
        EXPECT_FALSE(is_kept_annotation(ObjectKind::Service, key)) << key;
    }
    EXPECT_TRUE(is_kept_label(ObjectKind::Service, "service.kubernetes.io/headless"));
    EXPECT_TRUE(is_kept_label(ObjectKind::Service, "service.kubernetes.io/service-proxy-name"));
    EXPECT_TRUE(
        is_kept_label(ObjectKind::Service, "app"));  // a rule about external IPs may select by it (XIP-006)
    EXPECT_TRUE(is_kept_label(ObjectKind::EndpointSlice, "kubernetes.io/service-name"));
    EXPECT_FALSE(is_kept_label(ObjectKind::EndpointSlice, "app"));
    EXPECT_TRUE(is_kept_label(ObjectKind::Node, "rack"));
}

// A relist detects unchanged objects by comparison (APISYNC-006): fields that change all the time must not
// make a difference.
TEST(Decode, WhatNobodyReadsMakesNoDifference_APISYNC006) {
    const auto node = [](const std::string& version, const std::string& heartbeat) {
        return only<NodePtr>(
            ObjectKind::Node,
            R"({"metadata":{"name":"n","resourceVersion":")" + version +
                R"("},"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":")" +
                heartbeat + R"("}]}})");
    };
    EXPECT_EQ(node("1", "2026-01-01T00:00:00Z"), node("2", "2026-01-01T00:05:00Z"));
    EXPECT_NE(service(R"({"ports":[{"port":80}]})"), service(R"({"ports":[{"port":81}]})"));
    EXPECT_NE(slice(R"("endpoints":[{"addresses":["10.0.0.1"]}])"),
              slice(R"("endpoints":[{"addresses":["10.0.0.1"],"zone":"z"}])"));
}

// GEN-009 with the API server's largest values: 1,000 endpoints of 100 addresses, 100 ports.
TEST(Decode, TheLargestSliceWorks_GEN009) {
    std::string text = R"("addressType":"IPv4","ports":[)";
    for (int i = 0; i < 100; ++i) {
        text += (i == 0 ? R"({"name":"p)" : R"(,{"name":"p)") + std::to_string(i) + R"(","port":)" +
                std::to_string(8000 + i) + "}";
    }
    text += R"(],"endpoints":[)";
    for (int i = 0; i < 1000; ++i) {
        text += i == 0 ? R"({"addresses":[)" : R"(,{"addresses":[)";
        for (int j = 0; j < 100; ++j) {
            text += (j == 0 ? "\"10." : ",\"10.") + std::to_string(j) + "." + std::to_string(i / 250) + "." +
                    std::to_string(i % 250) + "\"";
        }
        text += "]}";
    }
    const EndpointSlice read = slice(text + "]");
    EXPECT_EQ(read.endpoints.size(), 1000u);
    EXPECT_EQ(read.ports.size(), 100u);
    EXPECT_EQ(read.endpoints[999].address, "10.0.3.249");
}

}  // namespace decode_test
}  // namespace penstock::kube
