// SPDX-License-Identifier: Apache-2.0
// Settings from annotations.
#include "control/semantics/annotations.hpp"

#include <gtest/gtest.h>

#include <set>

#include "control/annotations/refused.hpp"
#include "control/semantics/engine.hpp"
#include "control/semantics/text.hpp"
#include "dataplane/lb/names.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace annotations_test {

constexpr const char* kNative = "penstock.io/scheduler";
constexpr const char* kKubeRouter = "kube-router.io/service.scheduler";
constexpr const char* kCilium = "service.cilium.io/lb-algorithm";
constexpr const char* kNoEndpoints = "penstock.io/no-endpoints-action";
constexpr lb::SchedulerKind kGlobal = lb::SchedulerKind::RoundRobin;

lb::SchedulerKind scheduler_of(const Annotations& annotations, lb::SchedulerKind otherwise,
                               Notices& notices) {
    return settings_of(annotations, {.default_scheduler = otherwise}, notices).scheduler;
}

TEST(SchedulerAnnotation, Values_SCHED001_ANN26_ANNG1_ANNG2_ANNG3) {
    using Kind = lb::SchedulerKind;
    struct Row {
        const char* name;
        Annotations annotations;
        Kind otherwise;
        Kind expected;
        const char* reason;  // "": none
    };
    const std::string huge(256 * 1024, 'r');
    const Row rows[] = {
        {"absent", {}, Kind::Maglev, Kind::Maglev, ""},
        {"rr", {{kNative, "rr"}}, Kind::Maglev, Kind::RoundRobin, ""},
        {"random", {{kNative, "random"}}, kGlobal, Kind::Random, ""},
        {"mh", {{kNative, "mh"}}, kGlobal, Kind::Maglev, ""},
        {"upper case", {{kNative, "MH"}}, kGlobal, Kind::Maglev, ""},
        {"kube-router, mixed case", {{kKubeRouter, "Mh"}}, kGlobal, Kind::Maglev, ""},
        {"trimmed", {{kNative, " mh\n"}}, kGlobal, Kind::Maglev, ""},
        {"blank is not set", {{kNative, "  "}}, Kind::Random, Kind::Random, ""},
        {"native blank, alias set", {{kNative, ""}, {kKubeRouter, "mh"}}, kGlobal, Kind::Maglev, ""},
        {"native before alias",
         {{kNative, "random"}, {kKubeRouter, "mh"}, {kCilium, "maglev"}},
         kGlobal,
         Kind::Random,
         ""},
        {"bad native hides a good alias",
         {{kNative, "best"}, {kKubeRouter, "mh"}},
         Kind::Random,
         Kind::Random,
         "InvalidAnnotation"},
        {"alias before alias", {{kKubeRouter, "random"}, {kCilium, "maglev"}}, kGlobal, Kind::Random, ""},
        {"cilium maglev", {{kCilium, "maglev"}}, kGlobal, Kind::Maglev, ""},
        {"cilium random", {{kCilium, "random"}}, kGlobal, Kind::Random, ""},
        {"cilium knows no mh", {{kCilium, "mh"}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"cilium knows no wrr", {{kCilium, "wrr"}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"maglev is cilium's word", {{kNative, "maglev"}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"unknown", {{kNative, "fastest"}}, Kind::Random, Kind::Random, "InvalidAnnotation"},
        {"prefix of a name", {{kNative, "r"}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"256 KiB", {{kNative, huge}}, kGlobal, kGlobal, "InvalidAnnotation"},
        {"control characters", {{kNative, "\x01\x7f\xff"}}, kGlobal, kGlobal, "InvalidAnnotation"},
    };
    for (const Row& row : rows) {
        Notices notices;
        EXPECT_EQ(scheduler_of(row.annotations, row.otherwise, notices), row.expected) << row.name;
        const auto said = notices.sorted();
        EXPECT_EQ(said.size(), *row.reason == '\0' ? 0U : 1U) << row.name;
        for (const model::Notice& notice : said) {
            EXPECT_EQ(notice.reason, row.reason) << row.name;
            EXPECT_LE(notice.message.size(), 1024U) << row.name;  // EVT-001
        }
    }
}

TEST(SchedulerAnnotation, ComplaintNamesKeyValueRangeAndSubstitute_ANNG3) {
    Notices notices;
    (void)scheduler_of({{kNative, "f\x01st"}}, kGlobal, notices);
    ASSERT_EQ(notices.sorted().size(), 1U);
    EXPECT_EQ(notices.sorted()[0].message,
              "penstock.io/scheduler: \"f\\x01st\" is not valid, expected rr, wrr, lc, wlc, sh, dh, sed, "
              "nq, p2c, random, mh; the "
              "gateway's own scheduler is used");
}

TEST(SchedulerAnnotation, ReachesTheGateway_SCHED001) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    world.policy.default_scheduler = lb::SchedulerKind::Random;
    EXPECT_EQ(find(world.evaluate(), "default/web/TCP")->scheduler, lb::SchedulerKind::Random);
    web.meta.annotations[kNative] = "mh";
    EXPECT_EQ(find(world.evaluate(), "default/web/TCP")->scheduler, lb::SchedulerKind::Maglev);
    web.meta.annotations[kNative] = "fastest";
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(find(outcome, "default/web/TCP")->scheduler, lb::SchedulerKind::Random);
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web InvalidAnnotation"});
}

TEST(NoEndpointsAction, Values_ANN29_ANNG2_ANNG3) {
    struct Row {
        const char* value;
        lb::EmptyAction expected;
        bool told;
    };
    const Row rows[] = {
        {"", lb::EmptyAction::Reject, false},       {"reject", lb::EmptyAction::Reject, false},
        {"drop", lb::EmptyAction::Drop, false},     {" drop ", lb::EmptyAction::Drop, false},
        {"DROP", lb::EmptyAction::Reject, true},    {"none", lb::EmptyAction::Reject, true},
        {"dropped", lb::EmptyAction::Reject, true},
    };
    for (const Row& row : rows) {
        Notices notices;
        EXPECT_EQ(settings_of({{kNoEndpoints, row.value}}, {}, notices).no_endpoints, row.expected)
            << row.value;
        EXPECT_EQ(notices.sorted().size(), row.told ? 1U : 0U) << row.value;
    }
}

// One row of the table at a time: the resulting Service and notices.
TEST(AnnotationSettings,
     ReachTheService_ANN01_ANN02_ANN03_ANN05_ANN06_ANN07_ANN08_ANN09_ANN10_DRAIN004_HC008_HC010) {
    using Annotated = std::map<std::string, std::string>;
    model::Probe probe{.kind = model::Probe::Kind::Http};
    const auto probed = [&](auto change) {
        model::Probe changed = probe;
        change(changed);
        return changed;
    };
    struct Row {
        const char* name;
        Annotated annotations;
        std::optional<uint32_t> drain;
        uint32_t idle = 0;
        std::optional<model::Probe> probe;
        Lines reasons;
    };
    const std::string own = "penstock.io/";
    const std::string aws = "service.beta.kubernetes.io/aws-load-balancer-";
    const Lines invalid{"Service default/web InvalidAnnotation"};
    const Row rows[] = {
        {"ANN-01 unset", {}, std::nullopt},
        {"ANN-01 unset, ANN-02 set", {{own + "connection-draining-timeout", "5"}}, std::nullopt},
        {"ANN-01 false",
         {{own + "connection-draining", "false"}, {own + "connection-draining-timeout", "5"}},
         0},
        {"ANN-01 true", {{own + "connection-draining", "true"}}, 300},
        {"ANN-01 true, ANN-02",
         {{aws + "connection-draining-enabled", "T"}, {own + "connection-draining-timeout", "1h"}},
         3600},
        {"ANN-01 invalid", {{own + "connection-draining", "perhaps"}}, std::nullopt, 0, {}, invalid},
        {"ANN-02 invalid",
         {{own + "connection-draining", "1"}, {own + "connection-draining-timeout", "0"}},
         300,
         0,
         {},
         invalid},
        {"ANN-03", {{own + "idle-timeout", "2h"}}, {}, 7200},
        {"ANN-03 in minutes",
         {{"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout", "30"}},
         {},
         1800},
        {"ANN-03 invalid", {{own + "idle-timeout", "0"}}, {}, 0, {}, invalid},
        {"ANN-05 off", {{own + "health-check", "off"}, {own + "health-check-interval", "20"}}},
        {"ANN-05 unset", {{own + "health-check-interval", "20"}}},
        {"ANN-05 http", {{own + "health-check", "http"}}, {}, 0, probe},
        {"ANN-05 tcp", {{own + "health-check", "tcp"}}, {}, 0, probed([](auto& p) {
             p.kind = model::Probe::Kind::Tcp;
         })},
        {"ANN-05 invalid", {{own + "health-check", "ping"}}, {}, 0, {}, invalid},
        {"ANN-06",
         {{own + "health-check", "http"}, {aws + "healthcheck-interval", "300"}},
         {},
         0,
         probed([](auto& p) { p.interval_s = 300; })},
        {"ANN-06 invalid",
         {{own + "health-check", "http"}, {aws + "healthcheck-interval", "4"}},
         {},
         0,
         probe,
         invalid},
        {"ANN-07",
         {{own + "health-check", "http"}, {own + "health-check-timeout", "9"}},
         {},
         0,
         probed([](auto& p) { p.timeout_s = 9; })},
        {"ANN-07 equals the interval",
         {{own + "health-check", "http"}, {own + "health-check-timeout", "10"}},
         {},
         0,
         probe,
         invalid},
        {"ANN-07 above the interval",
         {{own + "health-check", "http"},
          {own + "health-check-interval", "20"},
          {own + "health-check-timeout", "21"}},
         {},
         0,
         probe,
         invalid},
        {"ANN-06 is the default timeout",
         {{own + "health-check", "http"}, {own + "health-check-interval", "5"}},
         {},
         0,
         probe,
         invalid},
        {"ANN-06 is just above the default timeout",
         {{own + "health-check", "http"}, {own + "health-check-interval", "6"}},
         {},
         0,
         probed([](auto& p) { p.interval_s = 6; })},
        {"ANN-08, blank",
         {{own + "health-check", "http"},
          {own + "health-check-healthy-threshold", ""},
          {aws + "healthcheck-healthy-threshold", "10"}},
         {},
         0,
         probed([](auto& p) { p.healthy = 10; })},
        {"ANN-09",
         {{own + "health-check", "http"}, {own + "health-check-unhealthy-threshold", "2"}},
         {},
         0,
         probed([](auto& p) { p.unhealthy = 2; })},
        {"ANN-10",
         {{own + "health-check", "http"},
          {own + "health-check-port", "8080"},
          {own + "health-check-path", "/ready"}},
         {},
         0,
         probed([](auto& p) {
             p.port = 8080;
             p.path = "/ready";
         })},
        {"ANN-10, invalid path",
         {{own + "health-check", "http"},
          {own + "health-check-path", "ready"},
          {aws + "healthcheck-path", "/up"}},
         {},
         0,
         probe,
         invalid},
        {"ANN-10, a path that would end the request's line",
         {{own + "health-check", "http"}, {own + "health-check-path", "/ready HTTP/1.1\r\nHost: x"}},
         {},
         0,
         probe,
         invalid},
        {"ANN-10, invalid port",
         {{own + "health-check", "http"}, {own + "health-check-port", "http"}},
         {},
         0,
         probe,
         invalid},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& web = world.service("default/web");
        web.external_ips = {"203.0.113.7"};
        web.meta.annotations = row.annotations;
        const Outcome outcome = world.evaluate();
        const model::Service* service = find(outcome, "default/web/TCP");
        ASSERT_NE(service, nullptr);
        EXPECT_EQ(service->drain_timeout_s, row.drain) << row.name;
        EXPECT_EQ(service->idle_timeout_s, row.idle) << row.name;
        EXPECT_EQ(service->probe, row.probe) << row.name;
        EXPECT_EQ(reasons(outcome), row.reasons) << row.name;
    }
}

TEST(AnnotationSettings, ForOtherReaders_ANN04_ANN14_ANN15_ANN16_ANN27_ANN28) {
    Notices notices;
    const Annotations object{{"penstock.io/source-ranges-policy", "deny"},
                             {"penstock.io/backend-node-selector", "disk in (ssd)"},
                             {"penstock.io/cross-zone", "false"},
                             {"penstock.io/only-nodes-with-endpoints", "true"},
                             {"penstock.io/node-weight-label", " example.com/w "},
                             {"penstock.io/topology-keys", " a , * "}};
    const AnnotationSettings set = settings_of(object, {}, notices);
    EXPECT_TRUE(set.source_ranges_deny);
    ASSERT_TRUE(set.node_selector);
    EXPECT_TRUE(set.node_selector->matches({{"disk", "ssd"}}));
    EXPECT_FALSE(set.node_selector->matches({}));
    EXPECT_FALSE(set.cross_zone);
    EXPECT_EQ(set.only_nodes_with_endpoints, true);
    EXPECT_EQ(set.node_weight_label, "example.com/w");
    EXPECT_EQ(set.topology_keys, "a , *");
    Notices told;
    const AnnotationSettings unparsable =
        settings_of({{"penstock.io/backend-node-selector", "disk in ssd"}}, {}, told);
    EXPECT_FALSE(unparsable.node_selector);
    ASSERT_EQ(told.sorted().size(), 1U);
    EXPECT_EQ(told.sorted()[0].reason, "InvalidAnnotation");
    EXPECT_EQ(settings_of({}, {}, told), AnnotationSettings());
}

TEST(AnnotationSettings, InvalidSettingsOfTheAllocatorAreReported_ANN17_ANN22_ANN23_ANN24) {
    const std::pair<const char*, std::string> rows[] = {
        {"penstock.io/scope", "inside"},
        {"penstock.io/load-balancer-ips", "198.51.100."},
        {"metallb.io/address-pool", "Edge_1"},
        {"penstock.io/allow-shared-ip", std::string(254, 'k')},
        {"penstock.io/allow-shared-ip-namespaces", "a;b"}};
    for (const auto& [key, value] : rows) {
        Notices notices;
        EXPECT_EQ(settings_of({{key, value}}, {}, notices), AnnotationSettings()) << key;
        ASSERT_EQ(notices.sorted().size(), 1U) << key;
        EXPECT_EQ(notices.sorted()[0].reason, "InvalidAnnotation") << key;
    }
}

TEST(AccessLog, ReachesTheService_ANN11_ANN12) {
    const std::string own = "penstock.io/access-log",
                      aws = "service.beta.kubernetes.io/aws-load-balancer-access-log";
    struct Row {
        const char* name;
        Annotations annotations;
        model::AccessLog expected;
        Lines reasons;
    };
    const Lines invalid{"Service default/web InvalidAnnotation"};
    const Row rows[] = {
        {"unset", {}, {}, {}},
        {"on", {{own, "true"}}, {.enabled = true}, {}},
        {"off", {{own, "0"}}, {.enabled = false}, {}},
        {"alias", {{aws + "-enabled", "true"}}, {.enabled = true}, {}},
        {"invalid", {{own, "what"}}, {}, invalid},
        {"interval", {{own, "true"}, {own + "-interval", "5"}}, {.enabled = true, .interval_min = 5}, {}},
        {"interval of the alias", {{aws + "-emit-interval", "5"}}, {.interval_min = 5}, {}},
        {"interval of the default", {{own + "-interval", "60"}}, {}, {}},
        {"invalid interval", {{own + "-interval", "6"}}, {}, invalid},
        {"names",
         {{own + "-sink", "audit"}, {own + "-prefix", "team/web"}},
         {.sink = "audit", .prefix = "team/web"},
         {}},
        {"names of the alias",
         {{aws + "-s3-bucket-name", "bucket"}, {aws + "-s3-bucket-prefix", "p"}},
         {.sink = "bucket", .prefix = "p"},
         {}},
        {"the default sink", {{own + "-sink", "default"}}, {}, {}},
        {"invalid sink", {{own + "-sink", "A"}}, {}, invalid},
        {"invalid prefix", {{own + "-prefix", "../etc"}}, {}, invalid},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& web = world.service("default/web");
        web.external_ips = {"203.0.113.7"};
        web.meta.annotations = row.annotations;
        const Outcome outcome = world.evaluate();
        const model::Service* service = find(outcome, "default/web/TCP");
        ASSERT_NE(service, nullptr);
        EXPECT_EQ(service->access_log, row.expected) << row.name;
        EXPECT_EQ(reasons(outcome), row.reasons) << row.name;
    }
}

TEST(Tags, ReachTheServiceAndABadPairIsDropped_ANN21) {
    const std::string own = "penstock.io/tags",
                      aws = "service.beta.kubernetes.io/aws-load-balancer-additional-resource-tags";
    std::string most, more;
    for (int i = 10; i < 60; ++i) {
        most += (most.empty() ? "k" : ",k") + std::to_string(i) + "=v";
    }
    more = most + ",k60=v";
    const std::string key(128, 'k'), value(256, 'v');
    struct Row {
        const char* name;
        Annotations annotations;
        std::string tags;
        std::string refused;  // the pair that the Event names; "": no Event
    };
    const Row rows[] = {
        {"unset", {}, "", ""},
        {"blank", {{own, " "}}, "", ""},
        {"sorted", {{own, " team = web ,stage=prod,"}}, "stage=prod,team=web", ""},
        {"alias", {{aws, "Team=Web 1"}}, "Team=Web 1", ""},
        {"native before alias", {{own, "a=1"}, {aws, "b=2"}}, "a=1", ""},
        {"no value", {{own, "a="}}, "a=", ""},
        {"'=' in a value", {{own, "a=b=c"}}, "a=b=c", ""},
        {"other characters",
         {{own, "a.b/c:d_e-f+g@h=i.j/k:l_m-n+o@p"}},
         "a.b/c:d_e-f+g@h=i.j/k:l_m-n+o@p",
         ""},
        {"no pair", {{own, "a=1,garbage,b=2"}}, "a=1,b=2", "garbage"},
        {"no key", {{own, "=1"}}, "", "=1"},
        {"quotes", {{own, "a=\"1\""}}, "", "a=\"1\""},
        {"a key twice", {{own, "a=1,a=2"}}, "a=1", "a=2"},
        {"the longest", {{own, key + "=" + value}}, key + "=" + value, ""},
        {"a longer key", {{own, key + "k=v,a=1"}}, "a=1", key},
        {"a longer value", {{own, "a=" + value + "v"}}, "", "a=v"},
        {"50", {{own, most}}, most, ""},
        {"51", {{own, more}}, most, "k60=v"},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& web = world.service("default/web");
        web.external_ips = {"203.0.113.7"};
        web.meta.annotations = row.annotations;
        const Outcome outcome = world.evaluate();
        const model::Service* service = find(outcome, "default/web/TCP");
        ASSERT_NE(service, nullptr);
        EXPECT_EQ(service->access_log.tags.value(), row.tags) << row.name;
        EXPECT_EQ(reasons(outcome),
                  row.refused.empty() ? Lines{} : Lines{"Service default/web InvalidAnnotation"})
            << row.name;
        if (!row.refused.empty()) {
            EXPECT_NE(message(outcome, "InvalidAnnotation").find(": \"" + row.refused), std::string::npos)
                << message(outcome, "InvalidAnnotation");
        }
    }
}

TEST(UnsupportedAnnotation, IsToldAndServedWithoutIt_ANNG4) {
    struct Row {
        const char* key;
        const char* value;
        bool unsupported;
    };
    const Row rows[] = {
        {"penstock.io/snat", "never", true},
        {"penstock.io/snat", "auto", false},
        {"penstock.io/snat", "what", false},  // invalid: the default is used, which is supported
        {"penstock.io/filter-groups", "a", true},
        {"penstock.io/filter-groups", "..", true},  // refused whatever the value
        {"penstock.io/filter-groups", " ", false},
        {"penstock.io/access-log", "true", false},
        {"penstock.io/vip-id", "edge", true},
        {"penstock.io/scope", "internal", false},
        {"penstock.io/load-balancer-ips", "198.51.100.7", false},
        {"metallb.io/address-pool", "edge", false},
        {"penstock.io/idle-timeout", "60", false},
        {"example.com/access-log", "true", false},
    };
    for (const Row& row : rows) {
        for (const bool refuse : {false, true}) {
            World world;
            world.policy.refuse_unsupported_annotations = refuse;
            kube::Service& web = world.service("default/web");
            web.type = "LoadBalancer";
            web.ingress = {{.ip = "198.51.100.7"}};
            web.external_ips = {"203.0.113.7"};
            web.meta.annotations[row.key] = row.value;
            const Outcome outcome = world.evaluate();
            Lines expected{"default/web/TCP X 203.0.113.7 80"};
            if (!(row.unsupported && refuse)) {
                expected.insert(expected.begin(), "default/web/TCP L 198.51.100.7 80");
            }
            EXPECT_EQ(frontends(outcome), expected) << row.key << ": " << row.value;
            EXPECT_EQ(message(outcome, "UnsupportedAnnotation") != "no such notice", row.unsupported)
                << row.key << ": " << row.value;
        }
    }
}

TEST(UnsupportedAnnotation, EachRefusedKeyIsToldByNameWithItsReason_ANNG4_ANN13_ANN18_ANN19_ANN25_ANN31) {
    const std::string aws = "service.beta.kubernetes.io/aws-load-balancer-";
    const std::set<std::string> expected{
        "penstock.io/proxy-protocol",
        aws + "proxy-protocol",
        "penstock.io/proxy-protocol-ports",
        "penstock.io/max-bandwidth-out-mbps",
        "service.kubernetes.io/qcloud-loadbalancer-internet-max-bandwidth-out",
        "penstock.io/vip-id",
        "service.kubernetes.io/tke-existed-lbid",
        "penstock.io/filter-groups",
        aws + "extra-security-groups",
        "service.kubernetes.io/service.extensiveParameters",
        "service.kubernetes.io/service.listenerParameters",
        "service.beta.kubernetes.io/external-traffic",
        "service.beta.kubernetes.io/healthcheck-nodeport"};
    std::set<std::string> refused;
    for (const annotations::RefusedKey& each : annotations::refused_keys()) {
        const std::string key(each.key);
        refused.insert(key);
        Notices notices;
        EXPECT_EQ(settings_of({{key, "x\x01"}}, {}, notices), AnnotationSettings()) << key;
        ASSERT_EQ(notices.sorted().size(), 1U) << key;
        EXPECT_EQ(notices.sorted()[0].reason, "UnsupportedAnnotation") << key;
        EXPECT_EQ(notices.sorted()[0].message, key + ": \"x\\x01\" is not supported by this version (" +
                                                   std::string(each.reason) +
                                                   "); the Service is served without it");
    }
    EXPECT_EQ(refused, expected);
}

TEST(UnknownAnnotation, OfOursIsToldWithTheNearestKey_ANNG5) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.meta.annotations = {{"penstock.io/idle-timout", "60"},
                            {"example.com/idle-timout", "60"},
                            {"aaa.io/x", ""},
                            {"service.cilium.io/x", ""}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web UnknownAnnotation"});
    EXPECT_EQ(
        message(outcome, "UnknownAnnotation"),
        "penstock.io/idle-timout is not known and has no effect; did you mean penstock.io/idle-timeout?");
    EXPECT_EQ(find(outcome, "default/web/TCP")->idle_timeout_s, 0U);
}

// Annotations of kubectl and similar tools change nothing. A Penstock annotation changes its own setting
// only.
TEST(AnnotationChange, UpdatesTheGatewayOnlyWhereItsEffectDiffers_ANNG6_ANNG7) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    Engine engine(world.policy);
    engine.set_gateway(world.gateway);
    const auto apply = [&] {
        kube::Changes changes;
        changes.services[object_name("default/web")] = std::make_shared<const kube::Service>(web);
        return engine.apply(changes);
    };
    ASSERT_EQ(apply().upsert.size(), 1U);
    auto& annotations = web.meta.annotations;
    struct Row {
        const char* key;
        const char* value;
        bool updates;
    };
    const Row rows[] = {
        {"kubectl.kubernetes.io/last-applied-configuration", "{}", false},
        {"penstock.io/idle-timeout", "60", true},
        {"penstock.io/idle-timeout", " 60s ", false},
        {"penstock.io/idle-timeout", "1m", false},
        {"service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout", "99",
         false},                                 // the native key has precedence
        {"penstock.io/idle-timeout", "", true},  // now the alias is used
        {"penstock.io/connection-draining", "false", true},
        {"penstock.io/connection-draining", "F", false},
        {"penstock.io/connection-draining-timeout", "10", false},  // no effect while draining is false
        {"penstock.io/connection-draining", "true", true},
        {"penstock.io/scheduler", "rr", false},
        {"penstock.io/scheduler", "mh", true},
        {"penstock.io/no-endpoints-action", "drop", true},
        {"penstock.io/health-check-path", "/x", false},  // no effect without probes
        {"penstock.io/health-check", "http", true},
        {"penstock.io/health-check-interval", "11", true},
        {"penstock.io/source-ranges-policy", "deny", false},  // no effect without ranges
        {"penstock.io/access-log", "true", true},
        {"penstock.io/access-log", "T", false},
        {"penstock.io/access-log-sink", "default", false},
        {"penstock.io/access-log-sink", "audit", true},
        {"penstock.io/tags", "b=2,a=1", true},
        {"penstock.io/tags", "a=1, b=2", false},
    };
    for (const Row& row : rows) {
        annotations[row.key] = row.value;
        const Step step = apply();
        EXPECT_EQ(step.upsert.size(), row.updates ? 1U : 0U) << row.key << ": " << row.value;
        EXPECT_TRUE(step.remove.empty() && !step.environment) << row.key;
        EXPECT_TRUE(step.appeared.empty()) << row.key << ": " << row.value;
    }
    // A notice appears once and disappears once.
    annotations["penstock.io/idle-timeout"] = "never";
    EXPECT_EQ(apply().appeared.size(), 1U);
    annotations["example.com/churn"] = "2";
    EXPECT_TRUE(apply().is_empty());
    annotations["penstock.io/idle-timeout"] = "60";
    EXPECT_EQ(apply().gone.size(), 1U);
}

TEST(SchedulerAnnotation, EveryNameOfTheTableIsAKindOfItsOwn_SCHED001) {
    std::set<lb::SchedulerKind> kinds;
    for (const annotations::Word& name : annotations::scheduler_names()) {
        const auto kind = lb::parse_scheduler(name.means);
        ASSERT_TRUE(kind) << name.spelled;
        EXPECT_TRUE(kinds.insert(*kind).second) << name.spelled;
        Notices notices;
        const Policy other{.default_scheduler = *kind == lb::SchedulerKind::Random
                                                    ? lb::SchedulerKind::Maglev
                                                    : lb::SchedulerKind::Random};
        EXPECT_EQ(settings_of({{kNative, std::string(name.spelled)}}, other, notices).scheduler, *kind)
            << name.spelled;
        EXPECT_TRUE(notices.sorted().empty()) << name.spelled;
    }
    EXPECT_EQ(kinds.size(), 11U);
}

TEST(Text, PrintableFitsATerminalAndAString_ANNG3) {
    EXPECT_EQ(printable("plain text~"), "plain text~");
    EXPECT_EQ(printable(std::string_view("\0\n\x7f\xc3\xa4", 5)), "\\x00\\x0a\\x7f\\xc3\\xa4");
    EXPECT_EQ(printable(std::string(128, 'x')), std::string(128, 'x'));
    EXPECT_EQ(printable(std::string(129, 'x')), std::string(128, 'x') + "...");
    EXPECT_EQ(trimmed(" \t a b \r\n"), "a b");
    EXPECT_EQ(trimmed("  "), "");
}

TEST(Notices, AreSortedUniqueAndBounded_GEN006_EVT001) {
    Notices notices;
    for (size_t i = 0; i < kNoticesPerReason + 5; ++i) {
        notices.warn(reason::kInvalidPort, "port " + std::to_string(i));
    }
    notices.warn(reason::kFrontendConflict, "same");
    notices.warn(reason::kFrontendConflict, "same");
    const auto said = notices.sorted();
    ASSERT_EQ(said.size(), kNoticesPerReason + 2);
    EXPECT_TRUE(std::ranges::is_sorted(said));
    EXPECT_EQ(said[0].reason, "FrontendConflict");
    EXPECT_EQ(said[1].message, "and 5 more of this kind");
    Notices twice;
    notices.append_to(twice);
    notices.append_to(twice);
    EXPECT_EQ(twice.sorted().size(), said.size());
}

TEST(Annotations, AConflictOfTwoSettingsNamesTheKeyThatWasWritten_ANNG2) {
    const std::string aws = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-";
    const auto told = [](std::map<std::string, std::string> annotations) {
        World world;
        kube::Service& web = world.service("default/web");
        web.external_ips = {"203.0.113.7"};
        web.meta.annotations = std::move(annotations);
        const Outcome outcome = world.evaluate();
        return outcome.notices.empty() ? std::string() : outcome.notices.front().notice.message;
    };
    EXPECT_TRUE(told({{aws + "timeout", "10"}})
                    .starts_with(aws + "timeout: the timeout of 10 s is not less than the interval of 10 s"));
    EXPECT_TRUE(told({{aws + "interval", "5"}}).starts_with(aws + "interval: the timeout of 5 s"));
    EXPECT_TRUE(
        told({{"penstock.io/health-check-timeout", "10"}}).starts_with("penstock.io/health-check-timeout: "));
    EXPECT_TRUE(told({{aws + "interval", "5"}, {"penstock.io/health-check-timeout", "6"}})
                    .starts_with("penstock.io/health-check-timeout: "));
}

}  // namespace annotations_test
}  // namespace penstock::semantics::testing
