#include "control/sync/state_session.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::sync {
namespace {

kube::Service service_at(const std::string& name, const std::string& address) {
    return {.meta = {.namespace_name = "default", .name = name},
            .cluster_ip = "10.96.0.1",
            .external_ips = {address},
            .ports = {{.name = "http", .port = 80, .target_port = "80"}}};
}

std::shared_ptr<kube::ObjectSet> objects_with(const std::vector<kube::Service>& services) {
    auto objects = std::make_shared<kube::ObjectSet>();
    for (const kube::Service& service : services) {
        objects->services[{"default", service.meta.name}] = service;
    }
    return objects;
}

v1::Identity identity(const std::string& applied_source = "", uint64_t applied_version = 0) {
    v1::Identity message;
    message.set_gateway_name("edge-1");
    message.set_mode(v1::Identity::MODE_NODE);
    message.set_node_name("edge-1");
    message.set_applied_source(applied_source);
    message.set_applied_version(applied_version);
    return message;
}

class StateSessionTest : public testing::Test {
 protected:
    StateSessionTest() { policy_.allowed_external_cidrs = {Prefix::parse("80.0.0.0/8").value()}; }

    void open(const v1::Identity& message = identity()) {
        session_.on_stream_opened();
        ASSERT_TRUE(session_.on_identity(message));
    }
    // Answers what was sent last as a gateway does that applies all.
    void answer(const v1::StateMessage& sent, const std::vector<v1::ServiceResult>& results = {}) {
        v1::Applied applied;
        *applied.mutable_version() = sent.has_full() ? sent.full().version() : sent.delta().version();
        for (const auto& result : results) {
            *applied.add_services() = result;
        }
        ASSERT_TRUE(session_.on_applied(applied));
    }
    v1::StateMessage sent() {
        auto message = session_.next();
        EXPECT_TRUE(message);
        return message.value_or(v1::StateMessage());
    }
    // Lines of the log since the last call that contain `text`.
    size_t said(const std::string& text) {
        const auto lines = session_.take_log();
        return static_cast<size_t>(
            std::count_if(lines.begin(), lines.end(), [&](const LogLine& line) { return line.text.find(text) != std::string::npos; }));
    }

    semantics::Policy policy_;
    StateSession session_{"me", [this] {
                              semantics::Policy policy;
                              policy.allowed_external_cidrs = {Prefix::parse("80.0.0.0/8").value()};
                              return policy;
                          }()};
};

TEST_F(StateSessionTest, SendsNothingBeforeObjectsAreKnown_GEN012) {
    open();
    EXPECT_FALSE(session_.next());
    session_.on_objects(objects_with({}));
    EXPECT_TRUE(session_.next()) << "an empty folder is a statement";
}

TEST_F(StateSessionTest, SendsNothingBeforeTheGatewaySaysWhoItIs) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1")}));
    session_.on_stream_opened();
    EXPECT_FALSE(session_.next());
}

TEST_F(StateSessionTest, SendsAFullStateThenDifferences) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1"), service_at("b", "80.0.0.2")}));
    open();
    const auto first = sent();
    ASSERT_TRUE(first.has_full());
    EXPECT_EQ(first.full().version().source(), "me");
    EXPECT_EQ(first.full().version().version(), 1u);
    EXPECT_EQ(first.full().services_size(), 2);
    EXPECT_TRUE(first.full().has_node_port_addresses());
    answer(first);

    session_.on_objects(objects_with({service_at("b", "80.0.0.3"), service_at("c", "80.0.0.4")}));
    const auto second = sent();
    ASSERT_TRUE(second.has_delta());
    EXPECT_EQ(second.delta().base().version(), 1u);
    EXPECT_EQ(second.delta().base().source(), "me");
    EXPECT_EQ(second.delta().version().version(), 2u);
    EXPECT_EQ(second.delta().upsert_size(), 2);
    ASSERT_EQ(second.delta().remove_size(), 1);
    EXPECT_EQ(second.delta().remove(0).name(), "a");
    EXPECT_FALSE(second.delta().has_node_port_addresses());
}

TEST_F(StateSessionTest, ObjectsThatMeanTheSameSendNothing_ANNG6) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1")}));
    open();
    answer(sent());
    auto relabelled = service_at("a", "80.0.0.1");
    relabelled.meta.labels["colour"] = "red";
    session_.on_objects(objects_with({relabelled}));
    EXPECT_FALSE(session_.next());
}

TEST_F(StateSessionTest, ChangesWhileAnAnswerIsAwaitedBecomeOneDifference) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1")}));
    open();
    const auto first = sent();
    session_.on_objects(objects_with({service_at("a", "80.0.0.2")}));
    EXPECT_FALSE(session_.next());
    session_.on_objects(objects_with({service_at("a", "80.0.0.3")}));
    EXPECT_FALSE(session_.next());
    answer(first);
    const auto second = sent();
    ASSERT_EQ(second.delta().upsert_size(), 1);
    EXPECT_EQ(second.delta().upsert(0).frontends(0).address(), "80.0.0.3");
    answer(second);
    EXPECT_FALSE(session_.next());
}

TEST_F(StateSessionTest, AReconnectedGatewayThatHasItAllIsLeftAlone) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1")}));
    open();
    answer(sent());
    session_.on_stream_ended();
    open(identity("me", 1));
    EXPECT_FALSE(session_.next());
    session_.on_objects(objects_with({service_at("a", "80.0.0.2")}));
    EXPECT_TRUE(sent().has_delta());
}

TEST_F(StateSessionTest, AReconnectedGatewayThatMissedChangesGetsTheDifference) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1")}));
    open();
    answer(sent());
    session_.on_stream_ended();
    session_.on_objects(objects_with({service_at("a", "80.0.0.2")}));
    EXPECT_FALSE(session_.next()) << "nobody is there";
    open(identity("me", 1));
    EXPECT_EQ(sent().delta().base().version(), 1u);
}

TEST_F(StateSessionTest, AnAnswerLostWithItsStreamIsFoundInTheNextIdentity) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1")}));
    open();
    EXPECT_TRUE(sent().has_full());
    session_.on_stream_ended();
    open(identity("me", 1));
    EXPECT_FALSE(session_.next());
}

TEST_F(StateSessionTest, AGatewayThatHasSomethingElseGetsAFullState) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1")}));
    open();
    answer(sent());
    for (const auto& other : {identity(), identity("somebody else", 1), identity("me", 7)}) {
        session_.on_stream_ended();
        open(other);
        const auto message = sent();
        EXPECT_TRUE(message.has_full());
        answer(message);
    }
}

TEST_F(StateSessionTest, ARefusedStreamStartsAgainFromAFullState) {
    session_.on_objects(objects_with({service_at("a", "80.0.0.1")}));
    open();
    answer(sent());
    session_.on_stream_ended();
    session_.on_refused_stream();
    open(identity("me", 1));
    EXPECT_TRUE(sent().has_full());
}

TEST_F(StateSessionTest, ANewIdentityIsEvaluatedAnew) {
    auto local = service_at("a", "80.0.0.1");
    local.external_traffic_policy = "Local";
    auto objects = objects_with({local});
    objects->slices[{"default", "a-1"}] = {.meta = {"default", "a-1", "", "", {{"kubernetes.io/service-name", "a"}}, {}},
                                           .address_type = "IPv4",
                                           .endpoints = {{.address = "10.0.0.1", .node_name = "edge-2"}},
                                           .ports = {{"http", "TCP", 80}}};
    session_.on_objects(objects);
    open();
    const auto first = sent();
    EXPECT_EQ(first.full().services(0).sets(0).endpoints_size(), 0) << "edge-1 has none of them";
    answer(first);
    auto renamed = identity("me", 1);
    renamed.set_node_name("edge-2");
    ASSERT_TRUE(session_.on_identity(renamed));
    EXPECT_EQ(sent().delta().upsert(0).sets(0).endpoints_size(), 1);
}

TEST_F(StateSessionTest, AnAnswerToSomethingElseIsAnError) {
    session_.on_objects(objects_with({}));
    open();
    v1::Applied applied;
    EXPECT_FALSE(session_.on_applied(applied));
    (void)sent();
    applied.mutable_version()->set_source("me");
    applied.mutable_version()->set_version(9);
    EXPECT_FALSE(session_.on_applied(applied));
}

TEST_F(StateSessionTest, RefusalsAndNoticesAreSaidOnceAndWhenTheyAreOver_XIP006) {
    session_.on_objects(objects_with({service_at("a", "81.0.0.1")}));
    open();
    const auto first = sent();
    EXPECT_EQ(said("ExternalIPNotAllowed"), 1u);
    v1::ServiceResult refused;
    refused.mutable_key()->set_namespace_("default");
    refused.mutable_key()->set_name("a");
    refused.mutable_key()->set_protocol(v1::PROTOCOL_TCP);
    refused.set_outcome(v1::ServiceResult::OUTCOME_REFUSED);
    refused.set_why("no room");
    answer(first, {refused});
    EXPECT_EQ(said("refused service default/a/TCP: no room"), 1u);

    session_.on_objects(objects_with({service_at("a", "81.0.0.1"), service_at("b", "80.0.0.1")}));
    answer(sent(), {refused});
    EXPECT_EQ(said("default/a"), 0u) << "nothing about it is new";

    session_.on_objects(objects_with({service_at("a", "80.0.0.2"), service_at("b", "80.0.0.1")}));
    const auto third = sent();
    EXPECT_EQ(said("no longer: Service default/a: ExternalIPNotAllowed"), 1u);
    refused.set_outcome(v1::ServiceResult::OUTCOME_APPLIED);
    answer(third, {refused});
    EXPECT_EQ(said("service default/a/TCP is applied now"), 1u);
}

}  // namespace
}  // namespace penstock::sync
