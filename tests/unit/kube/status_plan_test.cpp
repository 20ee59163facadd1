// SPDX-License-Identifier: Apache-2.0
// Comparison of the status of Services, and the patches between them.
#include <gtest/gtest.h>

#include "control/kube/status/service_status.hpp"
#include "tests/unit/kube/status_model.hpp"

namespace penstock::kube {
namespace status_plan_test {

using namespace std::chrono_literals;
using test::address;
using test::allocated;
using test::ModelService;
using test::programmed;
using test::with_addresses;
using Action = StatusPlan::Action;

constexpr WallTime kNow{1'700'000'000s};

ModelService service(std::vector<LoadBalancerIngress> ingress, const std::vector<Condition>& conditions) {
    ModelService model{.name = "web", .version = 5, .ingress = std::move(ingress), .conditions = {}};
    for (const Condition& condition : conditions) {
        model.put(condition);
    }
    return model;
}

StatusPlan plan(const ModelService& model, const ServiceStatus& desired) {
    const ServiceVersion current = model.decoded();
    return plan_status(*current.object, current.resource_version, desired, kNow);
}

LoadBalancerIngress with_ports(std::vector<LoadBalancerIngress::PortStatus> ports) {
    LoadBalancerIngress entry = address("203.0.113.7");
    entry.ports = std::move(ports);
    return entry;
}

TEST(StatusPlan, EqualStatusIsNotWritten_STATUS004) {
    struct Case {
        const char* name;
        std::vector<LoadBalancerIngress> current;
        std::vector<LoadBalancerIngress> desired;
        bool is_equal;
    };
    const std::vector<Case> cases = {
        {"nothing", {}, {}, true},
        {"one address", {address("203.0.113.7")}, {address("203.0.113.7")}, true},
        {"other address", {address("203.0.113.7")}, {address("203.0.113.8")}, false},
        {"order",
         {address("203.0.113.7"), address("2001:db8::7")},
         {address("2001:db8::7"), address("203.0.113.7")},
         true},
        {"spelling", {address("2001:DB8:0:0::7")}, {address("2001:db8::7")}, true},
        {"absent mode", {address("203.0.113.7", "")}, {address("203.0.113.7", "VIP")}, true},
        {"mode Proxy (STATUS-005)",
         {address("203.0.113.7", "VIP")},
         {address("203.0.113.7", "Proxy")},
         false},
        {"mode VIP again (STATUS-005)",
         {address("203.0.113.7", "Proxy")},
         {address("203.0.113.7", "")},
         false},
        {"twice", {address("203.0.113.7"), address("203.0.113.7")}, {address("203.0.113.7")}, false},
        {"other of equal count",
         {address("203.0.113.7"), address("203.0.113.7")},
         {address("203.0.113.7"), address("203.0.113.8")},
         false},
        {"order of ports",
         {with_ports({{80, "TCP", ""}, {53, "UDP", ""}})},
         {with_ports({{53, "UDP", ""}, {80, "TCP", ""}})},
         true},
        {"error of a port",
         {with_ports({{80, "TCP", ""}})},
         {with_ports({{80, "TCP", "NodePortRequired"}})},
         false},
        {"protocol of a port", {with_ports({{80, "TCP", ""}})}, {with_ports({{80, "UDP", ""}})}, false},
    };
    for (const Case& each : cases) {
        SCOPED_TRACE(each.name);
        EXPECT_EQ(is_same_ingress(each.current, each.desired), each.is_equal);
        EXPECT_EQ(is_same_ingress(each.desired, each.current), each.is_equal);
        const StatusPlan planned = plan(service(each.current, {allocated()}), with_addresses(each.desired));
        EXPECT_EQ(planned.action, each.is_equal ? Action::None : Action::Write);
        EXPECT_EQ(planned.body.empty(), each.is_equal);
    }
}

TEST(StatusPlan, EveryFieldOfAConditionCounts_STATUS004) {
    ServiceStatus desired = with_addresses({address("203.0.113.7")});
    desired.conditions.push_back(programmed());
    const ModelService model = service(desired.ingress, desired.conditions);
    desired.observed_generation = 7;
    EXPECT_EQ(plan(model, desired).action, Action::None) << "a generation alone is no difference";
    std::swap(desired.conditions[0], desired.conditions[1]);
    EXPECT_EQ(plan(model, desired).action, Action::None);
    for (std::string Condition::* const field :
         {&Condition::status, &Condition::reason, &Condition::message}) {
        ServiceStatus other = desired;
        other.conditions[0].*field = "Unknown";
        EXPECT_EQ(plan(model, other).action, Action::Write);
        EXPECT_FALSE(is_same_status(status_of(*model.decoded().object), other));
    }
    desired.conditions.pop_back();
    EXPECT_EQ(plan(model, desired).action, Action::Write);
}

TEST(StatusPlan, TheWholePatch_STATUS001_STATUS005) {
    LoadBalancerIngress entry = with_ports({{80, "TCP", ""}, {53, "UDP", "a \"reason\""}});
    ServiceStatus desired = with_addresses({entry, address("2001:db8::7", "Proxy")});
    desired.observed_generation = 3;
    const StatusPlan planned = plan(service({}, {programmed()}), desired);
    ASSERT_EQ(planned.action, Action::Write);
    EXPECT_EQ(planned.body,
              R"({"metadata":{"resourceVersion":"5"},"status":{)"
              R"("loadBalancer":{"ingress":[)"
              R"({"ip":"203.0.113.7","ipMode":"VIP","ports":[{"port":80,"protocol":"TCP"},)"
              R"({"port":53,"protocol":"UDP","error":"a \"reason\""}]},)"
              R"({"ip":"2001:db8::7","ipMode":"Proxy"}]},)"
              R"("conditions":[{"type":"penstock.io/Allocated","status":"True","reason":"Allocated",)"
              R"("message":"text","lastTransitionTime":"2023-11-14T22:13:20Z","observedGeneration":3},)"
              R"({"type":"penstock.io/Programmed","$patch":"delete"}]}})");
}

TEST(StatusPlan, TransitionTimeChangesWithTheStatusOnly_STATUS001) {
    ModelService model = service({address("203.0.113.7")}, {allocated(), programmed("False")});
    ServiceStatus desired = with_addresses({address("203.0.113.7")});
    desired.conditions[0].message = "another text";
    desired.conditions.push_back(programmed("True"));
    EXPECT_EQ(model.apply(plan(model, desired).body), 200);
    EXPECT_EQ(model.conditions.at(std::string(kAllocatedCondition)).at("lastTransitionTime"),
              "2020-01-01T00:00:00Z");
    EXPECT_EQ(model.conditions.at(std::string(kProgrammedCondition)).at("lastTransitionTime"),
              "2023-11-14T22:13:20Z");
    EXPECT_TRUE(is_same_status(model.status(), desired));
}

TEST(StatusPlan, ForeignIngressIsLeftAlone_STATUS003) {
    const Condition other{"example.com/Ready", "True", "Ready", ""};
    const Condition other_of_penstock{"penstock.io/Other", "True", "Other", ""};
    const std::vector<LoadBalancerIngress> foreign = {address("198.51.100.1")};
    const ServiceStatus desired = with_addresses({address("203.0.113.7"), address("2001:db8::7")});
    struct Case {
        const char* name;
        ModelService current;
        ServiceStatus desired;
        Action action;
        std::vector<LoadBalancerIngress> ingress;  // afterwards
    };
    const ServiceStatus refused{.ingress = {}, .conditions = {allocated("False")}, .observed_generation = {}};
    const std::vector<Case> cases = {
        {"no marker", service(foreign, {other}), desired, Action::Foreign, foreign},
        {"marker is False", service(foreign, {allocated("False")}), desired, Action::Foreign, foreign},
        {"one of two is desired",
         service({address("203.0.113.7"), foreign[0]}, {}),
         desired,
         Action::Foreign,
         {address("203.0.113.7"), foreign[0]}},
        {"a host name",
         service({{.ip = {}, .hostname = "lb.example", .ip_mode = {}, .ports = {}}}, {}),
         desired,
         Action::Foreign,
         {{.ip = {}, .hostname = "lb.example", .ip_mode = {}, .ports = {}}}},
        {"our marker", service(foreign, {allocated(), other}), desired, Action::Write, desired.ingress},
        {"adopted", service({address("203.0.113.7", "")}, {other}), desired, Action::Write, desired.ingress},
        {"adopted as it is", service(desired.ingress, {other_of_penstock}), desired, Action::Write,
         desired.ingress},
        {"only a condition beside it", service(foreign, {other}), refused, Action::Write, foreign},
        {"equal condition beside it", service(foreign, {allocated("False")}), refused, Action::None, foreign},
        {"marker without ingress would take it", service(foreign, {}), with_addresses({}), Action::Foreign,
         foreign},
        {"release of our own (LB-013)",
         service(desired.ingress, {allocated(), programmed(), other}),
         {},
         Action::Write,
         {}},
        {"release beside foreign ingress (LB-013)",
         service(foreign, {allocated("False"), other}),
         {},
         Action::Write,
         foreign},
        {"nothing to release (LB-013)",
         service(foreign, {other, other_of_penstock}),
         {},
         Action::None,
         foreign},
    };
    for (const Case& each : cases) {
        SCOPED_TRACE(each.name);
        const StatusPlan planned = plan(each.current, each.desired);
        ASSERT_EQ(planned.action, each.action) << planned.body;
        ModelService after = each.current;
        if (planned.action == Action::Write) {
            EXPECT_EQ(after.apply(planned.body), 200);
            EXPECT_EQ(plan(after, each.desired).action, Action::None);
            EXPECT_TRUE(is_same_status({.ingress = {}, .conditions = each.desired.conditions},
                                       {.ingress = {}, .conditions = after.status().conditions}));
        }
        EXPECT_TRUE(is_same_ingress(after.ingress, each.ingress));
        for (const std::string& type : {other.type, other_of_penstock.type}) {
            EXPECT_EQ(after.conditions.contains(type), each.current.conditions.contains(type)) << type;
        }
    }
}

TEST(StatusPlan, TargetIsTheSubresource_STATUS001) {
    EXPECT_EQ(service_status_target({"default", "web"}), "/api/v1/namespaces/default/services/web/status");
    EXPECT_EQ(service_status_target({"a/b", "c?"}), "/api/v1/namespaces/a%2Fb/services/c%3F/status");
}

}  // namespace status_plan_test
}  // namespace penstock::kube
