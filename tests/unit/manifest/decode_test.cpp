// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/decode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

namespace penstock::manifest {

void PrintTo(const Problem& problem, std::ostream* out) {
    *out << problem.to_string();
}

namespace decode_test {

std::string service(const std::string& name, const std::string& spec) {
    return "apiVersion: v1\nkind: Service\nmetadata:\n  name: " + name + "\nspec:\n" + spec;
}

template <typename T>
const T& only(const DecodedFile& file) {
    for (const Problem& problem : file.problems) {
        EXPECT_EQ(problem.severity, Problem::Severity::Warning) << problem.to_string();
    }
    EXPECT_EQ(file.objects.size(), 1u);
    return std::get<T>(file.objects.at(0).object.value());
}

TEST(Decode, AppliesTheDefaultsOfAServiceWhereFieldsAreAbsent_GEN004) {
    const DecodedFile file = decode(service("web", "  ports:\n  - port: 80\n"), "web.yaml");
    const auto& decoded = only<kube::Service>(file);
    EXPECT_EQ(decoded.meta.namespace_name, "default");
    EXPECT_EQ(decoded.type, "ClusterIP");
    EXPECT_EQ(decoded.external_traffic_policy, "Cluster");
    EXPECT_EQ(decoded.internal_traffic_policy, "Cluster");
    EXPECT_EQ(decoded.session_affinity, "None");
    EXPECT_EQ(decoded.affinity_timeout_s, 10800);
    ASSERT_EQ(decoded.ports.size(), 1u);
    EXPECT_EQ(
        decoded.ports[0],
        (kube::ServicePort{.name = "", .protocol = "TCP", .port = 80, .node_port = 0, .target_port = "80"}));
}

TEST(Decode, NullAndAbsentAreEqual_GEN004) {
    const auto absent = decode(service("web", "  ports:\n  - port: 80\n"), "web.yaml");
    const auto null = decode(
        service("web",
                "  type: null\n  clusterIP: ~\n  clusterIPs:\n  externalIPs: null\n  selector: null\n"
                "  externalTrafficPolicy: null\n  sessionAffinity: null\n  sessionAffinityConfig: null\n"
                "  allocateLoadBalancerNodePorts: null\n  publishNotReadyAddresses: null\n"
                "  ports:\n  - port: 80\n    name: null\n    protocol: null\n    targetPort: null\n    "
                "nodePort: null\n"
                "status: null\n"),
        "web.yaml");
    EXPECT_EQ(only<kube::Service>(null), only<kube::Service>(absent));
}

TEST(Decode, ReadsEveryFieldOfAService) {
    const auto file = decode(R"(
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, uid: u-1, creationTimestamp: 2026-01-02T03:04:05Z, labels: {app: web, service.kubernetes.io/headless: ""},
  annotations: {a/b: "1", penstock.io/scheduler: rr}}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.7
  ipFamilies: [IPv4]
  externalIPs: [80.11.12.10]
  selector: {app: web}
  externalTrafficPolicy: Local
  internalTrafficPolicy: Local
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}
  loadBalancerIP: 203.0.113.9
  loadBalancerClass: penstock.io/gateway
  loadBalancerSourceRanges: [10.0.0.0/8]
  allocateLoadBalancerNodePorts: false
  healthCheckNodePort: 31000
  publishNotReadyAddresses: true
  externalName: example.org
  ports:
  - {name: http, protocol: TCP, port: 80, targetPort: web, nodePort: 30080}
status:
  loadBalancer:
    ingress:
    - ip: 203.0.113.20
      hostname: h
      ipMode: VIP
      ports: [{port: 80, protocol: TCP, error: Nope}]
)",
                             "web.yaml");
    const kube::Service expected{
        .meta = {"shop",
                 "web",
                 "u-1",
                 "2026-01-02T03:04:05Z",
                 {{"app", "web"}, {"service.kubernetes.io/headless", ""}},
                 {{"penstock.io/scheduler", "rr"}}},
        .type = "LoadBalancer",
        .cluster_ip = "10.96.0.7",
        .awaits_cluster_ip = true,
        .cluster_ips = {"10.96.0.7"},
        .ip_families = {"IPv4"},
        .external_ips = {"80.11.12.10"},
        .ports = {{"http", "TCP", 80, 30080, "web"}},
        .selector = {{"app", "web"}},
        .external_traffic_policy = "Local",
        .internal_traffic_policy = "Local",
        .session_affinity = "ClientIP",
        .affinity_timeout_s = 60,
        .load_balancer_ip = "203.0.113.9",
        .load_balancer_class = "penstock.io/gateway",
        .load_balancer_source_ranges = {"10.0.0.0/8"},
        .allocate_load_balancer_node_ports = false,
        .health_check_node_port = 31000,
        .publish_not_ready_addresses = true,
        .external_name = "example.org",
        .ingress = {
            {.ip = "203.0.113.20", .hostname = "h", .ip_mode = "VIP", .ports = {{80, "TCP", "Nope"}}}}};
    EXPECT_EQ(only<kube::Service>(file), expected);
}

TEST(Decode, OnlyAManifestWithoutClusterIPStopsWaitingForOne_SVC002) {
    EXPECT_FALSE(only<kube::Service>(decode(service("web", "  ports: []\n"), "f")).awaits_cluster_ip);
    EXPECT_TRUE(only<kube::Service>(decode(service("web", "  clusterIP: ''\n"), "f")).awaits_cluster_ip);
    const auto headless = decode(service("web", "  clusterIPs: [None]\n"), "f");
    EXPECT_EQ(only<kube::Service>(headless).cluster_ip, "None");
}

TEST(Decode, ReadsSlicesOfV1AndKeepsNullConditionsApart_EP010) {
    const auto file = decode(R"(
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 9376}, {port: null}]
endpoints:
- {addresses: [10.80.2.11], conditions: {ready: false, serving: null}, nodeName: edge-1, zone: z, hints: {forZones: [{name: z}], forNodes: [{name: edge-1}]}}
- {addresses: [10.80.2.12]}
)",
                             "slice.yaml");
    const auto& slice = only<kube::EndpointSlice>(file);
    EXPECT_EQ(slice.address_type, "IPv4");
    EXPECT_EQ(slice.ports,
              (std::vector<kube::EndpointPort>{{"http", "TCP", 9376}, {"", "TCP", std::nullopt}}));
    ASSERT_EQ(slice.endpoints.size(), 2u);
    const kube::Endpoint first{.address = "10.80.2.11",
                               .ready = false,
                               .node_name = "edge-1",
                               .zone = "z",
                               .hints_for_zones = {"z"},
                               .hints_for_nodes = {"edge-1"}};
    EXPECT_EQ(slice.endpoints[0], first);
    EXPECT_EQ(slice.endpoints[1], kube::Endpoint{.address = "10.80.2.12"});
}

TEST(Decode, TakesNodeAndZoneFromTopologyInV1beta1Only_EP001) {
    const std::string body =
        "\nkind: EndpointSlice\nmetadata: {name: s}\naddressType: IPv4\nendpoints:\n- addresses: [10.0.0.1]\n"
        "  topology: {kubernetes.io/hostname: edge-1, topology.kubernetes.io/zone: z1}\n";
    const auto beta = decode("apiVersion: discovery.k8s.io/v1beta1" + body, "f");
    EXPECT_EQ(only<kube::EndpointSlice>(beta).endpoints[0].node_name, "edge-1");
    EXPECT_EQ(only<kube::EndpointSlice>(beta).endpoints[0].zone, "z1");
    EXPECT_EQ(only<kube::EndpointSlice>(beta).topology.size(), 1U);
    EXPECT_EQ(only<kube::EndpointSlice>(decode("apiVersion: discovery.k8s.io/v1" + body, "f"))
                  .endpoints[0]
                  .node_name,
              "");
}

TEST(Decode, ReadsNodes) {
    const auto file = decode(R"(
apiVersion: v1
kind: Node
metadata: {name: edge-1, namespace: ignored, labels: {rack: r1}}
spec: {podCIDR: 10.244.0.0/24, unschedulable: true}
status:
  addresses: [{type: InternalIP, address: 10.80.1.1}]
  conditions: [{type: MemoryPressure, status: "False"}, {type: Ready, status: Unknown}, {type: NetworkUnavailable, status: "True"}]
)",
                             "node.yaml");
    const kube::Node expected{.meta = {.name = "edge-1", .labels = {{"rack", "r1"}}},
                              .addresses = {{"InternalIP", "10.80.1.1"}},
                              .pod_cidrs = {"10.244.0.0/24"},
                              .ready = false,
                              .network_unavailable = true,
                              .unschedulable = true};
    EXPECT_EQ(only<kube::Node>(file), expected);
}

TEST(Decode, UnknownFieldsAtAnyDepthChangeNothing_GEN002) {
    const auto plain = decode(service("web", "  ports:\n  - port: 80\n"), "f");
    const auto odd = decode(service("web",
                                    "  foo: {bar: [1, {x: y}]}\n  ports:\n  - port: 80\n    baz: []\n"
                                    "status: {phases: [1]}\nextra: true\n"),
                            "f");
    EXPECT_EQ(only<kube::Service>(odd), only<kube::Service>(plain));
}

TEST(Decode, UnknownFieldsAreToldWithTheNearestOne_GEN002) {
    const auto texts = [](const std::string& manifest) {
        std::vector<std::string> told;
        for (const Problem& problem : decode(manifest, "f").problems) {
            EXPECT_EQ(problem.severity, Problem::Severity::Warning) << problem.to_string();
            told.push_back(problem.to_string());
        }
        return told;
    };
    using Texts = std::vector<std::string>;
    EXPECT_EQ(
        texts("apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  lables: {a: b}\nspec:\n  externalIP: "
              "[80.0.0.1]\n"
              "  externalTraficPolicy: Local\n  selector: {whatever: goes}\n  ports:\n  - {port: 80}\n  - "
              "{port: 81, targetport: 8}\n"),
        (Texts{
            "f:5: Service default/web: unknown field metadata.lables is ignored; did you mean labels?",
            "f:7: Service default/web: unknown field spec.externalIP is ignored; did you mean externalIPs?",
            "f:8: Service default/web: unknown field spec.externalTraficPolicy is ignored; did you mean "
            "externalTrafficPolicy?",
            "f:12: Service default/web: unknown field spec.ports[1].targetport is ignored; did you mean "
            "targetPort?"}));
    EXPECT_EQ(texts("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s}\naddressType: "
                    "IPv4\nendpoints:\n"
                    "- adresses: []\n  addresses: [10.0.0.1]\n  conditions: {redy: true}\n  targetRef: {any: "
                    "thing}\n  zzz: 1\n"),
              (Texts{"f:6: EndpointSlice default/s: unknown field endpoints[0].adresses is ignored; did you "
                     "mean addresses?",
                     "f:8: EndpointSlice default/s: unknown field endpoints[0].conditions.redy is ignored; "
                     "did you mean ready?",
                     "f:10: EndpointSlice default/s: unknown field endpoints[0].zzz is ignored"}));
    EXPECT_EQ(texts("apiVersion: v1\nkind: Node\nmetadata: {name: edge}\nspec: {podCidr: "
                    "10.0.0.0/24}\nstatus: {adresses: []}\n"),
              (Texts{"f:4: Node edge: unknown field spec.podCidr is ignored; did you mean podCIDR?"}))
        << "a Node's status has too many fields to be known";
}

TEST(Decode, UnknownKindsAreToldAndOthersAreNot_GEN002) {
    struct Case {
        const char* api_version;
        const char* kind;
        const char* told;
    };
    for (const Case& each :
         {Case{"v1", "Servis", "unknown kind v1 Servis is ignored; did you mean Service?"},
          Case{"v1", "service", "unknown kind v1 service is ignored; did you mean Service?"},
          Case{"v1", "Zebra", "unknown kind v1 Zebra is ignored"},
          Case{"v2", "Service", "v2 Service is ignored: its apiVersion is v1"},
          Case{"v1", "EndpointSlice", "v1 EndpointSlice is ignored: its apiVersion is discovery.k8s.io/v1"},
          Case{"discovery.k8s.io/v2", "EndpointSlice",
               "discovery.k8s.io/v2 EndpointSlice is ignored: EndpointSlices are read as discovery.k8s.io/v1 "
               "or v1beta1"},
          Case{"discovery.k8s.io/v1", "EndpointSlices",
               "unknown kind discovery.k8s.io/v1 EndpointSlices is ignored; did you mean EndpointSlice?"},
          Case{"v1", "ConfigMap", ""}, Case{"v1", "SecretList", ""}, Case{"v1", "Endpoints", ""},
          Case{"apps/v1", "Deployment", ""}, Case{"serving.knative.dev/v1", "Service", ""}}) {
        const auto file = decode(std::string("apiVersion: ") + each.api_version + "\nkind: " + each.kind +
                                     "\nmetadata: {name: web}\n",
                                 "f");
        EXPECT_TRUE(file.objects.empty());
        EXPECT_FALSE(file.has_unidentified);
        ASSERT_EQ(file.problems.size(), *each.told == '\0' ? 0U : 1U) << each.api_version << " " << each.kind;
        if (!file.problems.empty()) {
            EXPECT_EQ(file.problems[0].to_string(), std::string("f:1: ") + each.told);
            EXPECT_EQ(file.problems[0].severity, Problem::Severity::Warning);
        }
    }
}

TEST(Decode, NamesThatNoServerTakesAreQuarantined_GEN003) {
    const auto problems = [](const std::string& type, const std::string& metadata) {
        const auto file = decode(type + "metadata: {" + metadata + "}\n", "f");
        EXPECT_EQ(file.objects.size(), 1U);
        EXPECT_EQ(file.objects[0].object.has_value(), file.problems.empty());
        return file.problems.empty() ? "" : file.problems[0].to_string();
    };
    const std::string kService = "apiVersion: v1\nkind: Service\n";
    const std::string kNode = "apiVersion: v1\nkind: Node\n";
    const std::string kRule = ": up to 63 characters of a-z, 0-9 and '-', an alphanumeric one first and last";
    EXPECT_EQ(problems(kService, "name: A_b"),
              "f:1: Service default/A_b: metadata.name is not a DNS label" + kRule);
    EXPECT_NE(problems(kService, "name: a.b"), "");
    EXPECT_NE(problems(kService, "name: -a"), "");
    EXPECT_NE(problems(kService, "name: " + std::string(64, 'a')), "");
    EXPECT_NE(problems(kService, "name: web, namespace: Shop"), "");
    EXPECT_NE(problems(kNode, "name: a..b"), "");
    EXPECT_NE(problems(kNode, "name: edge_1"), "");
    EXPECT_EQ(problems(kService, "name: 4ever, namespace: shop-2"), "");
    EXPECT_EQ(problems(kService, "name: " + std::string(63, 'a')), "");
    EXPECT_EQ(problems(kNode, "name: edge-1.example.com"), "");
}

TEST(Decode, ReadsListsAndTypedLists) {
    const auto list = decode(
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n- {apiVersion: v1, kind: Service, "
        "metadata: {name: b}}\n",
        "f");
    ASSERT_EQ(list.objects.size(), 2u);
    EXPECT_EQ(list.objects[1].id.to_string(), "Service default/b");
    const auto typed = decode(
        R"({"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]})",
        "f.json");
    ASSERT_EQ(typed.objects.size(), 2u);
    EXPECT_EQ(typed.objects[1].id.to_string(), "Node b");
}

TEST(Decode, OtherKindsAndOtherGroupsAreIgnored) {
    const auto file = decode(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: 5}\n---\napiVersion: "
        "serving.knative.dev/v1\nkind: Service\nmetadata: "
        "{name: k}\n"
        "---\napiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\n",
        "f");
    EXPECT_TRUE(file.objects.empty());
    EXPECT_TRUE(file.problems.empty());
    EXPECT_FALSE(file.has_unidentified);
}

TEST(Decode, CutsDocumentsBeforeParsingThem_GEN001) {
    const auto file =
        decode("%YAML 1.2\n---\n# only a comment\n---\n" + service("a", "  ports: []\n") +
                   "--- # second\nkind: [broken\n---\n" +
                   service("b", "  externalName: |\n    --- not a separator: indented\n") + "...\n",
               "f");
    ASSERT_EQ(file.objects.size(), 2u);
    EXPECT_EQ(file.objects[0].id.to_string(), "Service default/a");
    EXPECT_EQ(file.objects[0].line, 5u);
    EXPECT_EQ(file.objects[1].id.to_string(), "Service default/b");
    EXPECT_EQ(file.objects[1].line, 14u);
    ASSERT_EQ(file.problems.size(), 1u);
    // yaml-cpp reports the missing bracket at the end of the document.
    EXPECT_EQ(file.problems[0].line, 13u);
    EXPECT_TRUE(file.has_unidentified);
}

TEST(Decode, OneHundredGoodObjectsSurviveABadOneAmongThem_GEN001) {
    std::string text = service("bad", "  ports: {}\n");
    for (int i = 0; i < 100; ++i) {
        text += "---\n" + service("good-" + std::to_string(i), "  ports:\n  - port: 80\n");
    }
    const auto file = decode(text, "all.yaml");
    EXPECT_EQ(file.objects.size(), 101u);
    EXPECT_EQ(std::count_if(file.objects.begin(), file.objects.end(),
                            [](const auto& each) { return each.object.has_value(); }),
              100);
    EXPECT_EQ(file.problems.size(), 1u);
}

struct WrongType {
    const char* name;
    std::string spec;
    const char* problem;
};

class Quarantine : public testing::TestWithParam<WrongType> {};

TEST_P(Quarantine, KeepsTheNameAndTellsFileLineAndRule_GEN003) {
    const auto file = decode(service("web", GetParam().spec), "web.yaml");
    ASSERT_EQ(file.objects.size(), 1u);
    EXPECT_EQ(file.objects[0].id.to_string(), "Service default/web");
    EXPECT_FALSE(file.objects[0].object);
    EXPECT_FALSE(file.has_unidentified);
    ASSERT_EQ(file.problems.size(), 1u);
    EXPECT_EQ(file.problems[0].to_string(), GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Quarantine,
    testing::Values(
        WrongType{"quoted_port", "  ports:\n  - port: \"80\"\n",
                  "web.yaml:7: Service default/web: spec.ports[0].port is a string (\"80\"), must be an "
                  "integer (GEN-003)"},
        WrongType{"port_fraction", "  ports:\n  - port: 80.5\n",
                  "web.yaml:7: Service default/web: spec.ports[0].port is a number with a fraction (80.5), "
                  "must be an integer (GEN-003)"},
        WrongType{"ports_mapping", "  ports: {}\n",
                  "web.yaml:6: Service default/web: spec.ports is a mapping, must be a list (GEN-003)"},
        WrongType{"number_for_text", "  ports: []\n  externalIPs:\n  - 5\n",
                  "web.yaml:8: Service default/web: spec.externalIPs[0] is an integer (5), must be a string "
                  "(GEN-003)"},
        WrongType{"boolean_for_text", "  type: on\n",
                  "web.yaml:6: Service default/web: spec.type is a boolean (on), must be a string (GEN-003)"},
        WrongType{"text_for_boolean", "  publishNotReadyAddresses: \"true\"\n",
                  "web.yaml:6: Service default/web: spec.publishNotReadyAddresses is a string (\"true\"), "
                  "must be a boolean (GEN-003)"},
        WrongType{"target_port_list", "  ports:\n  - {port: 1, targetPort: []}\n",
                  "web.yaml:7: Service default/web: spec.ports[0].targetPort is a list, must be an integer "
                  "or a string (GEN-003)"},
        WrongType{"selector_value", "  selector:\n    app: 1\n",
                  "web.yaml:7: Service default/web: spec.selector[\"app\"] is an integer (1), must be a "
                  "string (GEN-003)"},
        WrongType{
            "status", "  ports: []\nstatus:\n  loadBalancer: []\n",
            "web.yaml:8: Service default/web: status.loadBalancer is a list, must be a mapping (GEN-003)"},
        WrongType{"twice", "  type: NodePort\n  type: ClusterIP\n",
                  "web.yaml:7: Service default/web: key \"type\" is duplicated in one mapping"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Decode, LabelsOfTheWrongTypeQuarantineToo_GEN003) {
    const auto file = decode("apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  labels: []\n", "f");
    ASSERT_EQ(file.objects.size(), 1u);
    EXPECT_FALSE(file.objects[0].object);
}

TEST(Decode, ADocumentThatDoesNotSayWhatItIsLeavesTheFileUnidentified_GEN003) {
    for (const char* text : {"kind: Service\nmetadata: {name: a}\n", "apiVersion: v1\nkind: Service\n",
                             "apiVersion: v1\nkind: Service\nmetadata: {name: 5}\n", "- a\n- b\n",
                             "just text\n", "apiVersion: v1\nkind: List\nitems: {}\n"}) {
        const auto file = decode(text, "f");
        EXPECT_TRUE(file.has_unidentified) << text;
        EXPECT_FALSE(file.problems.empty()) << text;
        EXPECT_TRUE(file.objects.empty()) << text;
    }
}

TEST(Decode, FaultsInOneItemOfAListAreItsOwn_GEN001) {
    const auto file = decode(
        R"({"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "name": "a"}}, )"
        R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}]})",
        "f.json");
    ASSERT_EQ(file.objects.size(), 2u);
    EXPECT_FALSE(file.objects[0].object);
    EXPECT_TRUE(file.objects[1].object);
}

TEST(Decode, BytesThatAreNoUtf8CostTheirDocumentOnly_GEN001) {
    const std::string good = service("good", "  ports: []\n");
    EXPECT_TRUE(
        decode("\xef\xbb\xbf" +
                   service("b", "  selector: {a: \xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80}\n  ports: []\n"),
               "f")
            .problems.empty());
    for (const std::string bad : {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                  "\xf5\x80\x80\x80", "\xe2\x82", "\xff\xfe"}) {
        const auto file = decode(good + "---\nkind: " + bad + "\n", "f");
        EXPECT_EQ(file.objects.size(), 1u);
        ASSERT_EQ(file.problems.size(), 1u);
        EXPECT_EQ(file.problems[0].to_string(), "f:7: is not UTF-8 text");
    }
    EXPECT_EQ(decode(std::string("a: \0", 4), "f").problems.size(), 1u);
}

TEST(Decode, TenMegabytesAreRefusedByName) {
    const auto file = decode(std::string(10'000'000, ' '), "big.yaml");
    ASSERT_EQ(file.problems.size(), 1u);
    EXPECT_EQ(file.problems[0].to_string(),
              "big.yaml: larger than 8388608 bytes; split it into several files");
    EXPECT_TRUE(file.has_unidentified);
}

TEST(Decode, TooManyDocumentsAreRefusedByName) {
    DecodeLimits limits;
    limits.documents_max = 2;
    EXPECT_TRUE(decode("a: 1\n---\nb: 1\n---\nc: 1\n", "f", limits)
                    .problems.at(0)
                    .rule.starts_with("more than 2 documents"));
    EXPECT_FALSE(decode("---\n---\na: 1\n---\n---\nb: 1\n---\n", "f", limits)
                     .problems.at(0)
                     .rule.starts_with("more than"));
}

TEST(Decode, AThousandFaultsOfOneObjectAreToldShortly) {
    std::string ips = "  externalIPs: [";
    for (int i = 0; i < 1000; ++i) {
        ips += "1, ";
    }
    const auto file = decode(service("web", ips + "1]\n"), "f");
    ASSERT_EQ(file.problems.size(), 21u);
    EXPECT_EQ(file.problems.back().rule, "and 981 more faults");
}

}  // namespace decode_test
}  // namespace penstock::manifest
