// SPDX-License-Identifier: Apache-2.0
// Clients that may open flows to LoadBalancer IPs.
#include "control/semantics/source_ranges.hpp"

#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace source_ranges_test {

constexpr const char* kAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges";

struct RangesRow {
    const char* name;
    std::vector<std::string> field;
    const char* annotation;  // null: absent
    bool restricted;
    std::vector<std::string> allowed;
    Lines reasons;
};

class Ranges : public ::testing::TestWithParam<RangesRow> {};

TEST_P(Ranges, OfALoadBalancer) {
    const RangesRow& row = GetParam();
    kube::Service service;
    service.load_balancer_source_ranges = row.field;
    if (row.annotation != nullptr) {
        service.meta.annotations[kAnnotation] = row.annotation;
    }
    Notices notices;
    const SourceRanges ranges = source_ranges_of(service, ServiceType::LoadBalancer, false, notices);
    std::vector<std::string> allowed;
    for (const Prefix& prefix : ranges.listed) {
        allowed.push_back(prefix.to_string());
    }
    Lines said;
    for (const model::Notice& notice : notices.sorted()) {
        said.push_back(notice.reason);
    }
    EXPECT_EQ(ranges.restricted, row.restricted);
    EXPECT_EQ(allowed, row.allowed);
    EXPECT_EQ(said, row.reasons);
}

INSTANTIATE_TEST_SUITE_P(
    All, Ranges,
    ::testing::Values(
        RangesRow{"Absent_SRC004", {}, nullptr, false, {}, {}},
        RangesRow{"One_SRC001", {"10.0.0.0/8"}, nullptr, true, {"10.0.0.0/8"}, {}},
        RangesRow{"TrimmedAndMasked_SRC002",
                  {" 10.1.2.3/8 ", "\t2001:DB8::1/32\n"},
                  nullptr,
                  true,
                  {"10.0.0.0/8", "2001:db8::/32"},
                  {}},
        RangesRow{"Everyone_SRC002", {"0.0.0.0/0"}, nullptr, true, {"0.0.0.0/0"}, {}},
        RangesRow{
            "DuplicatesCollapse_SRC002", {"10.0.0.0/8", "10.9.9.9/8"}, nullptr, true, {"10.0.0.0/8"}, {}},
        RangesRow{"InvalidIsSkipped_SRC002",
                  {"10.0.0.0/8", "10.0.0.1", "10.0.0.0/33"},
                  nullptr,
                  true,
                  {"10.0.0.0/8"},
                  {"InvalidSourceRange", "InvalidSourceRange"}},
        RangesRow{"AllInvalidDeniesAll_SRC002",
                  {"10.0.0.1"},
                  nullptr,
                  true,
                  {},
                  {"InvalidSourceRange", "InvalidSourceRange"}},
        RangesRow{"BlankEntryIsInvalid_SRC002",
                  {" "},
                  nullptr,
                  true,
                  {},
                  {"InvalidSourceRange", "InvalidSourceRange"}},
        RangesRow{"MappedIsInvalid_GEN005",
                  {"::ffff:10.0.0.0/104"},
                  nullptr,
                  true,
                  {},
                  {"InvalidSourceRange", "InvalidSourceRange"}},
        RangesRow{"Annotation_SRC004",
                  {},
                  "10.0.0.0/8, 192.168.0.0/16",
                  true,
                  {"10.0.0.0/8", "192.168.0.0/16"},
                  {}},
        RangesRow{"AnnotationBlank_SRC004", {}, "  ", false, {}, {}},
        RangesRow{"AnnotationInvalidDeniesAll_SRC004",
                  {},
                  "10.0.0.1",
                  true,
                  {},
                  {"InvalidSourceRange", "InvalidSourceRange"}},
        RangesRow{"FieldWins_SRC004", {"172.16.0.0/12"}, "10.0.0.0/8", true, {"172.16.0.0/12"}, {}},
        RangesRow{"FieldWinsEvenIfInvalid_SRC004",
                  {"x"},
                  "10.0.0.0/8",
                  true,
                  {},
                  {"InvalidSourceRange", "InvalidSourceRange"}}),
    [](const auto& row) { return row.param.name; });

TEST(Ranges, IgnoredWithOneWordElsewhere_SRC004) {
    for (const char* type : {"ClusterIP", "NodePort"}) {
        World world;
        kube::Service& web = world.service("default/web");
        web.type = type;
        web.external_ips = {"203.0.113.7"};
        web.load_balancer_source_ranges = {"10.0.0.0/8", "nonsense"};
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP X 203.0.113.7 80"});
        EXPECT_EQ(reasons(outcome), Lines{"Service default/web SourceRangesIgnored"});
        EXPECT_EQ(outcome.notices.size(), 1U);
    }
}

TEST(Ranges, FilterOnlyLoadBalancerIps_SRC001_XIP002_NODEPORT007) {
    World world;
    kube::Service& web = world.service("default/web");
    web.type = "LoadBalancer";
    web.ingress = {{.ip = "198.51.100.7"}};
    web.external_ips = {"203.0.113.7"};
    web.ports[0].node_port = 30080;
    web.load_balancer_source_ranges = {"10.0.0.0/8"};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome),
              (Lines{"default/web/TCP L 198.51.100.7 80 filtered", "default/web/TCP X 203.0.113.7 80",
                     "default/web/TCP N IPv4 30080"}));
    EXPECT_EQ(find(outcome, "default/web/TCP")->source_ranges, std::vector{cidr("10.0.0.0/8")});
}

// ANN-04 inverts the list: clients not on it are allowed. If no entry of the list is valid, no client is
// allowed.
TEST(Ranges, Deny_ANN04_SRC002) {
    struct Row {
        const char* name;
        const char* policy;
        std::vector<std::string> field;
        Lines frontends;
        bool deny;
    };
    const std::string v4 = "default/web/TCP L 198.51.100.7 80";
    const std::string v6 = "default/web/TCP L 2001:db8::7 80";
    const Row rows[] = {
        {"deny", "deny", {"10.0.0.0/8"}, {v4 + " filtered", v6}, true},
        {"deny, both families",
         "deny",
         {"10.0.0.0/8", "fd00::/8"},
         {v4 + " filtered", v6 + " filtered"},
         true},
        {"deny, one entry cannot be read", "deny", {"10.0.0.0/8", "x"}, {v4 + " filtered", v6}, true},
        {"deny, none can be read", "deny", {"x"}, {v4 + " filtered", v6 + " filtered"}, false},
        {"deny, no list", "deny", {}, {v4, v6}, false},
        {"allow", "allow", {"10.0.0.0/8"}, {v4 + " filtered", v6 + " filtered"}, false},
        {"blank", " ", {"10.0.0.0/8"}, {v4 + " filtered", v6 + " filtered"}, false},
        {"invalid is allow", "forbid", {"10.0.0.0/8"}, {v4 + " filtered", v6 + " filtered"}, false},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& web = world.service("default/web");
        web.type = "LoadBalancer";
        web.ip_families = {"IPv4", "IPv6"};
        web.ingress = {{.ip = "198.51.100.7"}, {.ip = "2001:db8::7"}};
        web.load_balancer_source_ranges = row.field;
        web.meta.annotations["service.cilium.io/src-ranges-policy"] = row.policy;
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(frontends(outcome), row.frontends) << row.name;
        EXPECT_EQ(find(outcome, "default/web/TCP")->source_ranges_deny, row.deny) << row.name;
    }
}

TEST(Ranges, FamilyWithoutACidr_SRC003) {
    struct Row {
        const char* name;
        std::vector<std::string> field;
        bool compat;
        Lines expected;
    };
    const std::string v4 = "default/web/TCP L 198.51.100.7 80";
    const std::string v6 = "default/web/TCP L 2001:db8::7 80";
    const Row rows[] = {
        {"hardened", {"10.0.0.0/8"}, false, {v4 + " filtered", v6 + " filtered"}},
        {"as kube-proxy", {"10.0.0.0/8"}, true, {v4 + " filtered", v6}},
        {"as kube-proxy, the other way", {"fd00::/8"}, true, {v4, v6 + " filtered"}},
        {"as kube-proxy, both listed",
         {"10.0.0.0/8", "fd00::/8"},
         true,
         {v4 + " filtered", v6 + " filtered"}},
        {"as kube-proxy, all invalid", {"x"}, true, {v4 + " filtered", v6 + " filtered"}},
        {"no list", {}, true, {v4, v6}},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& web = world.service("default/web");
        web.type = "LoadBalancer";
        web.ip_families = {"IPv4", "IPv6"};
        web.ingress = {{.ip = "198.51.100.7"}, {.ip = "2001:db8::7"}};
        web.load_balancer_source_ranges = row.field;
        world.policy.source_ranges_compat_kube_proxy = row.compat;
        EXPECT_EQ(frontends(world.evaluate()), row.expected) << row.name;
    }
}

}  // namespace source_ranges_test
}  // namespace penstock::semantics::testing
