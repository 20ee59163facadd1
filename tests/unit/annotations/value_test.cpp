// SPDX-License-Identifier: Apache-2.0
// Every row of the table: values at and just beyond the bounds, invalid text, blank values, precedence, and
// each alias in its own unit (ANN-G7). The expected values come from the requirement sheet, not from the
// table.
#include "control/annotations/value.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace penstock::annotations {
namespace value_test {

constexpr const char* kAws = "service.beta.kubernetes.io/aws-load-balancer-";

std::string own(const std::string& key) {
    return "penstock.io/" + key;
}
std::string aws(const std::string& key) {
    return kAws + key;
}

// "unset", "invalid", otherwise the parsed value: a word, a number, or the text itself. A trailing "!" marks
// an unsupported value.
std::string meaning(const Annotations& annotations) {
    const SettingSpec* spec = find(annotations.begin()->first);
    if (spec == nullptr) {
        return "no such key";
    }
    const auto value = read(*spec, annotations);
    if (!value) {
        return "unset";
    }
    if (!value->valid) {
        return "invalid";
    }
    const Kind kind = value->spelling->rule.kind;
    std::string text(value->text);
    if (!value->word.empty()) {
        text = value->word;
    } else if (kind == Kind::Number || kind == Kind::Duration) {
        text = std::to_string(value->number);
    }
    return text + (asks_for_more(*spec, *value) ? "!" : "");
}

using Cases = std::vector<std::pair<std::string, std::string>>;

void expect_meanings(const std::string& key, const Cases& cases) {
    for (const auto& [value, expected] : cases) {
        EXPECT_EQ(meaning({{key, value}}), expected) << key << ": \"" << value.substr(0, 128) << "\"";
    }
    // For every row: a blank value is unset, and arbitrary bytes cause no harm.
    for (const char* blank : {"", " ", "\t\r\n"}) {
        EXPECT_EQ(meaning({{key, blank}}), "unset") << key;
    }
    EXPECT_EQ(meaning({{key, std::string("\0\xff\x1b[2J", 6)}}).substr(0, 7), "invalid") << key;
}

void expect_first_wins(const std::string& first, const std::string& first_value, const std::string& second,
                       const std::string& second_value) {
    const std::string alone = meaning({{first, first_value}});
    const std::string other = meaning({{second, second_value}});
    ASSERT_NE(alone, other) << first;
    EXPECT_EQ(meaning({{first, first_value}, {second, second_value}}), alone)
        << first << " goes before " << second;
    EXPECT_EQ(meaning({{first, " "}, {second, second_value}}), other)
        << "blank " << first << " leaves the word to " << second;
    EXPECT_EQ(meaning({{first, "\x01"}, {second, second_value}}), "invalid")
        << "an invalid " << first << " hides " << second;
}

const Cases kBools = {{"true", "true"}, {"TRUE", "true"},   {"t", "true"},       {"T", "true"},
                      {"1", "true"},    {" true ", "true"}, {"false", "false"},  {"False", "false"},
                      {"f", "false"},   {"0", "false"},     {"yes", "invalid"},  {"on", "invalid"},
                      {"2", "invalid"}, {"tru", "invalid"}, {"truex", "invalid"}};

TEST(AnnotationValue, Durations_ANNG2) {
    expect_meanings(own("idle-timeout"), {{" 60 ", "60"},
                                          {"60s", "60"},
                                          {"2m", "120"},
                                          {"3h", "10800"},
                                          {"+5", "invalid"},
                                          {"5.0", "invalid"},
                                          {"-5", "invalid"},
                                          {"5 s", "invalid"},
                                          {"5S", "invalid"},
                                          {"1d", "invalid"},
                                          {"s", "invalid"},
                                          {"0x10", "invalid"},
                                          {"1h30m", "invalid"},
                                          {"99999999999999999999", "invalid"},
                                          {"9223372036854775807h", "invalid"},
                                          {"007", "7"},
                                          {std::string(256 * 1024, '9'), "invalid"}});
}

TEST(AnnotationValue, ConnectionDraining_ANN01) {
    expect_meanings(own("connection-draining"), kBools);
    expect_meanings(aws("connection-draining-enabled"), kBools);
    expect_first_wins(own("connection-draining"), "false", aws("connection-draining-enabled"), "true");
}

TEST(AnnotationValue, ConnectionDrainingTimeout_ANN02) {
    expect_meanings(own("connection-draining-timeout"), {{"1", "1"},
                                                         {"3600", "3600"},
                                                         {"1h", "3600"},
                                                         {"0", "invalid"},
                                                         {"3601", "invalid"},
                                                         {"61m", "invalid"},
                                                         {"x", "invalid"}});
    expect_meanings(aws("connection-draining-timeout"),
                    {{"1", "1"}, {"3600", "3600"}, {"0", "invalid"}, {"3601", "invalid"}, {"1h", "invalid"}});
    expect_first_wins(own("connection-draining-timeout"), "5", aws("connection-draining-timeout"), "6");
}

TEST(AnnotationValue, IdleTimeout_ANN03) {
    expect_meanings(
        own("idle-timeout"),
        {{"1", "1"}, {"604800", "604800"}, {"168h", "604800"}, {"0", "invalid"}, {"604801", "invalid"}});
    expect_meanings(aws("connection-idle-timeout"),
                    {{"1", "1"}, {"4000", "4000"}, {"0", "invalid"}, {"4001", "invalid"}, {"1m", "invalid"}});
    const std::string azure = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    expect_meanings(azure,
                    {{"4", "240"}, {"30", "1800"}, {"3", "invalid"}, {"31", "invalid"}, {"240s", "invalid"}});
    expect_first_wins(own("idle-timeout"), "9", aws("connection-idle-timeout"), "8");
    expect_first_wins(aws("connection-idle-timeout"), "8", azure, "7");
}

TEST(AnnotationValue, SourceRangesPolicy_ANN04) {
    const Cases cases = {{"allow", "allow"}, {"deny", "deny"}, {"Deny", "invalid"}, {"denied", "invalid"}};
    expect_meanings(own("source-ranges-policy"), cases);
    expect_meanings("service.cilium.io/src-ranges-policy", cases);
    expect_first_wins(own("source-ranges-policy"), "allow", "service.cilium.io/src-ranges-policy", "deny");
}

TEST(AnnotationValue, HealthCheck_ANN05) {
    expect_meanings(
        own("health-check"),
        {{"off", "off"}, {"tcp", "tcp"}, {"http", "http"}, {"https", "invalid"}, {"true", "invalid"}});
}

TEST(AnnotationValue, HealthCheckInterval_ANN06_HC008) {
    expect_meanings(
        own("health-check-interval"),
        {{"5", "5"}, {"300", "300"}, {"5m", "300"}, {"4", "invalid"}, {"301", "invalid"}, {"6m", "invalid"}});
    expect_meanings(aws("healthcheck-interval"),
                    {{"5", "5"}, {"300", "300"}, {"4", "invalid"}, {"301", "invalid"}, {"10s", "invalid"}});
    expect_first_wins(own("health-check-interval"), "7", aws("healthcheck-interval"), "8");
}

TEST(AnnotationValue, HealthCheckTimeout_ANN07_HC008) {
    expect_meanings(own("health-check-timeout"),
                    {{"2", "2"}, {"60", "60"}, {"1m", "60"}, {"1", "invalid"}, {"61", "invalid"}});
    expect_meanings(aws("healthcheck-timeout"),
                    {{"2", "2"}, {"60", "60"}, {"1", "invalid"}, {"61", "invalid"}, {"5s", "invalid"}});
    expect_first_wins(own("health-check-timeout"), "7", aws("healthcheck-timeout"), "8");
}

TEST(AnnotationValue, HealthCheckThresholds_ANN08_ANN09_HC008) {
    for (const char* key : {"healthy-threshold", "unhealthy-threshold"}) {
        const std::string native = own(std::string("health-check-") + key);
        const std::string alias = aws(std::string("healthcheck-") + key);
        for (const std::string& each : {native, alias}) {
            expect_meanings(each, {{"2", "2"},
                                   {"10", "10"},
                                   {"1", "invalid"},
                                   {"11", "invalid"},
                                   {"2s", "invalid"},
                                   {"three", "invalid"}});
        }
        expect_first_wins(native, "3", alias, "4");
    }
}

TEST(AnnotationValue, HealthCheckPortAndPath_ANN10) {
    expect_meanings(
        own("health-check-port"),
        {{"1", "1"}, {"65535", "65535"}, {"0", "invalid"}, {"65536", "invalid"}, {"http", "invalid"}});
    expect_meanings(aws("healthcheck-port"), {{"traffic-port", "0"}, {"8080", "8080"}, {"65536", "invalid"}});
    for (const std::string& key : {own("health-check-path"), aws("healthcheck-path")}) {
        expect_meanings(key, {{"/", "/"},
                              {"/healthz?full=1", "/healthz?full=1"},
                              {"healthz", "invalid"},
                              {"/a b", "invalid"},
                              {"/a\r\nHost: x", "invalid"},
                              {"/" + std::string(1023, 'x'), "/" + std::string(1023, 'x')},
                              {"/" + std::string(1024, 'x'), "invalid"}});
    }
}

TEST(AnnotationValue, AccessLog_ANN11) {
    for (const std::string& key : {own("access-log"), aws("access-log-enabled")}) {
        expect_meanings(key, {{"false", "false"}, {"true", "true"}, {"T", "true"}, {"maybe", "invalid"}});
    }
    for (const std::string& key : {own("access-log-interval"), aws("access-log-emit-interval")}) {
        expect_meanings(key, {{"5", "5"},
                              {"60", "60"},
                              {"6", "invalid"},
                              {"59", "invalid"},
                              {"61", "invalid"},
                              {"4", "invalid"}});
    }
}

TEST(AnnotationValue, AccessLogNames_ANN12) {
    for (const std::string& key : {own("access-log-sink"), aws("access-log-s3-bucket-name")}) {
        expect_meanings(key, {{"abc", "abc"},
                              {"ab", "invalid"},
                              {std::string(63, 'a'), std::string(63, 'a')},
                              {std::string(64, 'a'), "invalid"},
                              {"a.b-c9", "a.b-c9"},
                              {"..", "invalid"},
                              {"Audit", "invalid"},
                              {"a/b", "invalid"}});
    }
    for (const std::string& key : {own("access-log-prefix"), aws("access-log-s3-bucket-prefix")}) {
        expect_meanings(key, {{"team", "team"},
                              {"Team_A/web.logs/x-1", "Team_A/web.logs/x-1"},
                              {std::string(128, 'a'), std::string(128, 'a')},
                              {std::string(129, 'a'), "invalid"},
                              {"/team", "invalid"},
                              {"team/", "invalid"},
                              {"a//b", "invalid"},
                              {"a/ b", "invalid"},
                              {"..", "invalid"},
                              {"a/../../etc", "invalid"},
                              {"a/./b", "invalid"},
                              {"a\\b", "invalid"}});
    }
    expect_first_wins(own("access-log-sink"), "audit", aws("access-log-s3-bucket-name"), "bucket");
    expect_first_wins(own("access-log-prefix"), "team", aws("access-log-s3-bucket-prefix"), "other");
}

TEST(AnnotationValue, BackendNodeSelector_ANN14) {
    for (const std::string key :
         {"penstock.io/backend-node-selector", "service.kubernetes.io/qcloud-loadbalancer-backends-label"}) {
        expect_meanings(key, {{"disk in (ssd, nvme)", "disk in (ssd, nvme)"},
                              {"gpu", "gpu"},
                              {"disk in ssd", "invalid"},
                              {"=x", "invalid"}});
    }
}

TEST(AnnotationValue, ZonesAndNodes_ANN15_ANN16) {
    for (const std::string& key : {own("cross-zone"), aws("cross-zone-load-balancing-enabled")}) {
        expect_meanings(key, {{"true", "true"}, {"false", "false!"}, {"no", "invalid"}});
    }
    for (const std::string key : {"penstock.io/only-nodes-with-endpoints",
                                  "service.kubernetes.io/local-svc-only-bind-node-with-pod"}) {
        expect_meanings(key, {{"true", "true"}, {"false", "false"}, {"2", "invalid"}});
    }
}

TEST(AnnotationValue, Scope_ANN17) {
    for (const std::string key : {"penstock.io/scope", "cloud.google.com/load-balancer-type",
                                  "networking.gke.io/load-balancer-type"}) {
        expect_meanings(key, {{"Internal", "internal"},
                              {"INTERNAL", "internal"},
                              {"external", "external"},
                              {"intern", "invalid"}});
    }
    for (const auto& [value, expected] : Cases{{"true", "internal"},
                                               {"0.0.0.0/0", "internal"},
                                               {"x", "internal"},
                                               {"false", "external"},
                                               {"False", "external"},
                                               {" ", "unset"}}) {
        EXPECT_EQ(meaning({{aws("internal"), value}}), expected) << value;
    }
    for (const std::string key : {"service.beta.kubernetes.io/azure-load-balancer-internal",
                                  "service.beta.kubernetes.io/openstack-internal-load-balancer",
                                  "service.beta.kubernetes.io/cce-load-balancer-internal-vpc"}) {
        expect_meanings(key,
                        {{"true", "internal"}, {"T", "internal"}, {"0", "external"}, {"maybe", "invalid"}});
    }
    EXPECT_EQ(meaning({{"service.kubernetes.io/qcloud-loadbalancer-internal-subnetid", "subnet-1"}}),
              "internal");
    expect_first_wins(own("scope"), "external", aws("internal"), "0.0.0.0/0");
}

TEST(AnnotationValue, Tls_ANN20) {
    expect_meanings(own("tls-mode"), {{"passthrough", "passthrough"}, {"terminate", "invalid"}});
    expect_meanings(aws("backend-protocol"), {{"tcp", "passthrough"},
                                              {"ssl", "passthrough"},
                                              {"http", "terminate!"},
                                              {"HTTPS", "terminate!"},
                                              {"grpc", "invalid"}});
    for (const char* key : {"ssl-cert", "ssl-ports", "ssl-negotiation-policy"}) {
        EXPECT_EQ(meaning({{aws(key), "x"}}), "terminate!") << key;
    }
}

TEST(AnnotationValue, AddressesFromPools_ANN22_ANN23_ANN24) {
    for (const std::string key :
         {"penstock.io/load-balancer-ips", "metallb.io/loadBalancerIPs",
          "metallb.universe.tf/loadBalancerIPs", "lbipam.cilium.io/ips", "io.cilium/lb-ipam-ips"}) {
        expect_meanings(key, {{"192.0.2.1", "192.0.2.1"},
                              {"192.0.2.1, 2001:db8::1", "192.0.2.1, 2001:db8::1"},
                              {"192.0.2.1,192.0.2.2", "invalid"},
                              {"192.0.2.0/24", "invalid"},
                              {"any", "invalid"}});
    }
    expect_first_wins(own("load-balancer-ips"), "192.0.2.1", "metallb.io/loadBalancerIPs", "192.0.2.2");
    for (const std::string key :
         {"penstock.io/address-pool", "metallb.io/address-pool", "metallb.universe.tf/address-pool"}) {
        expect_meanings(key, {{"edge", "edge"},
                              {std::string(253, 'a'), std::string(253, 'a')},
                              {std::string(254, 'a'), "invalid"},
                              {"a b", "invalid"}});
    }
    for (const std::string key : {"penstock.io/allow-shared-ip", "metallb.io/allow-shared-ip",
                                  "metallb.universe.tf/allow-shared-ip", "lbipam.cilium.io/sharing-key"}) {
        expect_meanings(key, {{"Key 1", "Key 1"}, {std::string(254, 'k'), "invalid"}});
    }
    for (const std::string key :
         {"penstock.io/allow-shared-ip-namespaces", "lbipam.cilium.io/sharing-cross-namespace"}) {
        expect_meanings(key, {{"*", "*"},
                              {"shop,spy-1", "shop,spy-1"},
                              {"shop,*", "invalid"},
                              {"shop;spy", "invalid"},
                              {std::string(64, 'a'), "invalid"}});
    }
}

TEST(AnnotationValue, Scheduler_ANN26_SCHED001) {
    for (const std::string key : {"penstock.io/scheduler", "kube-router.io/service.scheduler"}) {
        for (const std::string name :
             {"rr", "wrr", "lc", "wlc", "sh", "dh", "sed", "nq", "random", "mh", "p2c"}) {
            EXPECT_EQ(meaning({{key, name}}), name) << key;
        }
        expect_meanings(
            key,
            {{"WLC", "wlc"}, {" Mh ", "mh"}, {"maglev", "invalid"}, {"rrr", "invalid"}, {"r", "invalid"}});
    }
    expect_meanings(
        "service.cilium.io/lb-algorithm",
        {{"random", "random"}, {"maglev", "mh"}, {"Maglev", "mh"}, {"mh", "invalid"}, {"rr", "invalid"}});
    expect_first_wins(own("scheduler"), "rr", "kube-router.io/service.scheduler", "lc");
    expect_first_wins("kube-router.io/service.scheduler", "lc", "service.cilium.io/lb-algorithm", "maglev");
}

TEST(AnnotationValue, WeightsTopologyAndNobodyThere_ANN27_ANN28_ANN29) {
    expect_meanings(own("node-weight-label"), {{"example.com/weight", "example.com/weight"},
                                               {"weight", "weight"},
                                               {"a b", "invalid"},
                                               {"/x", "invalid"}});
    EXPECT_EQ(meaning({{own("topology-keys"), " kubernetes.io/hostname , * "}}),
              "kubernetes.io/hostname , *");
    EXPECT_EQ(meaning({{own("topology-keys"), " "}}), "unset");
    expect_meanings(own("no-endpoints-action"),
                    {{"reject", "reject"}, {"drop", "drop"}, {"DROP", "invalid"}, {"none", "invalid"}});
}

TEST(AnnotationValue, SnatAndTheRest_ANN30_ANN31_ANN32) {
    expect_meanings(own("snat"),
                    {{"auto", "auto"}, {"always", "always!"}, {"never", "never!"}, {"on", "invalid"}});
    EXPECT_EQ(meaning({{aws("type"), "nlb"}}), "fine");
    EXPECT_EQ(meaning({{aws("type"), "external"}}), "other!");
    expect_meanings("service.kubernetes.io/loadbalance-type",
                    {{"classic", "fine"}, {"application", "application!"}, {"x", "invalid"}});
    EXPECT_EQ(meaning({{"service.kubernetes.io/qcloud-loadbalancer-internet-charge-type", "TRAFFIC"}}),
              "TRAFFIC");
    expect_meanings(own("translate-family"),
                    {{"false", "false"}, {"true", "true"}, {"T", "true"}, {"64", "invalid"}});
    expect_meanings(own("affinity-scope"), {{"port", "port"}, {"service", "service"}, {"all", "invalid"}});
}

}  // namespace value_test
}  // namespace penstock::annotations
