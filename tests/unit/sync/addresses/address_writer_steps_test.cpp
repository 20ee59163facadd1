// SPDX-License-Identifier: Apache-2.0
// Steps of AddressWriter with a model of the API server: phases, what is written in each, and Events.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/support/model_writer.hpp"

namespace penstock::sync::testing {
namespace address_writer_steps_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ModelCluster;
using test::ModelNetwork;
using test::ModelWriter;

kube::ObjectName id(const std::string& name) {
    return {.namespace_name = "default", .name = name};
}

class AddressWriterSteps : public ::testing::Test {
 protected:
    AddressWriterSteps() { pool(1, 1); }

    // The pool has the addresses 192.0.2.FIRST to 192.0.2.LAST.
    void pool(uint8_t first, uint8_t last, std::vector<std::string> namespaces = {}) {
        ipam::Pool pool{.name = "pool"};
        pool.ranges = {{IpAddr::v4(192, 0, 2, first), IpAddr::v4(192, 0, 2, last)}};
        pool.namespaces = std::move(namespaces);
        cluster.put_pool(pool);
    }
    static kube::Service service(const std::string& name, const std::string& created = "2024") {
        kube::Service service;
        service.meta.namespace_name = "default";
        service.meta.name = name;
        service.meta.uid = "uid-" + name;
        service.meta.creation_timestamp = created;
        service.type = "LoadBalancer";
        service.load_balancer_class = "penstock.io/gateway";
        service.ip_families = {"IPv4"};
        service.ip_family_policy = "SingleStack";
        service.ports = {{.name = {}, .protocol = "TCP", .port = 80, .node_port = 30'000, .target_port = {}}};
        return service;
    }
    // One round of a process whose watch is up to date, except for lists.
    void step(ModelWriter& writer) {
        network.execute(now);
        writer.deliver_all();
        writer.advance();
    }
    static void list(ModelWriter& writer) {
        writer.begin_list();
        writer.finish_list();
    }
    void run(ModelWriter& writer, seconds duration) {
        for (const auto end = now + duration; now < end; now += milliseconds(100)) {
            step(writer);
            if (writer.wants_list()) {
                list(writer);
            }
        }
    }
    [[nodiscard]] std::string condition(const std::string& name, std::string_view type) const {
        for (const kube::Condition& each : cluster.find(id(name))->conditions) {
            if (each.type == type) {
                return each.status + " " + each.reason;
            }
        }
        return "";
    }
    [[nodiscard]] std::string allocated(const std::string& name) const {
        return condition(name, kube::kAllocatedCondition);
    }
    [[nodiscard]] std::string address(const std::string& name) const {
        const auto& ingress = cluster.find(id(name))->ingress;
        return ingress.empty() ? "" : ingress.front().ip;
    }

    ModelCluster cluster;
    ModelNetwork network{cluster};
    ModelNetwork::Time now{seconds(1'000)};
    ModelWriter first{cluster, network, now, "first"};
    ModelWriter second{cluster, network, now, "second"};
};

TEST_F(AddressWriterSteps, TheStatusFollowsThePortsOfAService_STATUS001) {
    cluster.put(service("web"));
    run(first, seconds(5));
    ASSERT_EQ(address("web"), "192.0.2.1");
    kube::Service changed = *cluster.find(id("web"));
    changed.ports.push_back(
        {.name = "more", .protocol = "UDP", .port = 53, .node_port = 30'001, .target_port = {}});
    cluster.put(changed);
    run(first, seconds(5));
    const auto& ports = cluster.find(id("web"))->ingress.front().ports;
    ASSERT_EQ(ports.size(), 2u) << "the allocation is the same, the list of ports is not";
    EXPECT_EQ(ports[1].port, 53);
}

TEST_F(AddressWriterSteps, TheAddressOfAServiceThatCannotBeDecodedIsGivenToNoOther_LB008_GEN003) {
    cluster.put(service("web"));
    first.hold(id("broken"), {IpAddr::v4(192, 0, 2, 1)});
    run(first, seconds(5));
    EXPECT_EQ(allocated("web"), "False PoolExhausted");
    // It is held over the end of a term as well.
    second.hold(id("broken"), {IpAddr::v4(192, 0, 2, 1)});
    run(second, seconds(30));
    ASSERT_EQ(second.phase(), "assigning");
    EXPECT_EQ(allocated("web"), "False PoolExhausted");
    second.hold(id("broken"), {});
    run(second, seconds(5));
    EXPECT_EQ(address("web"), "192.0.2.1");
}

TEST_F(AddressWriterSteps, EachPhaseOfALeaderWritesWhatItMay_LB007_LB008) {
    cluster.put(service("web"));
    std::vector<std::string> seen;  // phase, and what the Service shows
    for (int i = 0; i < 40; ++i) {
        step(first);
        if (first.wants_list() && i > 20) {
            list(first);
        }
        const std::string now_seen = first.phase() + ": " + allocated("web");
        if (seen.empty() || seen.back() != now_seen) {
            seen.push_back(now_seen);
        }
        now += milliseconds(50);
    }
    EXPECT_EQ(seen,
              (std::vector<std::string>{"following: ", "refreshing: ", "fencing: ", "fencing: False Pending",
                                        "assigning: False Pending", "assigning: True Allocated"}));
    EXPECT_EQ(first.relists(), 1);
    EXPECT_EQ(address("web"), "192.0.2.1");
}

// Otherwise each change of the leader would write each condition twice.
TEST_F(AddressWriterSteps, ANewLeaderKeepsTheConditionUntilAllGatewaysHaveReported_PRESENCE001) {
    cluster.put(service("web"));
    run(first, seconds(5));
    ASSERT_EQ(condition("web", kube::kProgrammedCondition), "");
    first.writer.board().report("edge-1", id("web"), true);
    first.writer.board().set_others({"edge-2"});
    run(first, seconds(2));
    ASSERT_EQ(condition("web", kube::kProgrammedCondition), "True Served")
        << "a first condition does not wait";
    const auto message = [&] {
        for (const kube::Condition& each : cluster.find(id("web"))->conditions) {
            if (each.type == kube::kProgrammedCondition) {
                return each.message;
            }
        }
        return std::string();
    };
    first.writer.board().report_other("edge-2", id("web"), true);
    run(first, seconds(2));
    ASSERT_EQ(message(), "served by edge-1, edge-2");

    second.has_other_gateways = false;
    run(second, seconds(20));
    EXPECT_EQ(second.phase(), "refreshing");
    second.has_other_gateways = true;
    second.writer.board().set_others({"edge-1"});
    second.writer.board().report("edge-2", id("web"), false);
    const uint64_t writes = cluster.status_writes();
    run(second, seconds(5));
    EXPECT_EQ(second.phase(), "assigning");
    EXPECT_EQ(cluster.status_writes(), writes);
    second.writer.board().report_other("edge-1", id("web"), true);
    run(second, seconds(2));
    EXPECT_EQ(message(), "served by edge-1");
    EXPECT_EQ(cluster.status_writes(), writes + 1);
    second.writer.board().set_others({});
    run(second, seconds(2));
    EXPECT_EQ(condition("web", kube::kProgrammedCondition), "False NotServed");
}

TEST_F(AddressWriterSteps, AFollowerWritesNothing_LEASE004) {
    run(first, seconds(5));
    ASSERT_EQ(first.phase(), "assigning");
    cluster.put(service("web"));
    second.deliver_all();
    const uint64_t writes = cluster.status_writes() + cluster.pool_writes();
    run(second, seconds(5));
    EXPECT_EQ(second.phase(), "following");
    EXPECT_EQ(cluster.status_writes() + cluster.pool_writes(), writes);
    EXPECT_EQ(allocated("web"), "");
}

TEST_F(AddressWriterSteps, AFrozenLeaderStopsWhenItsRenewalIsOver_LEASE004) {
    run(first, seconds(5));
    cluster.put(service("web"));
    now += seconds(11);
    const uint64_t writes = cluster.status_writes();
    first.deliver_all();
    first.advance();
    EXPECT_EQ(first.phase(), "following");
    network.execute(now + seconds(60));
    EXPECT_EQ(cluster.status_writes(), writes);
}

TEST_F(AddressWriterSteps, AReleasedLeaseIsTakenOverAtOnce_LEASE003) {
    run(first, seconds(5));
    first.writer.release();
    run(first, seconds(1));
    EXPECT_TRUE(first.writer.is_released());
    EXPECT_EQ(first.phase(), "following");
    EXPECT_EQ(cluster.holder(), "");
    run(second, seconds(1));
    EXPECT_EQ(second.phase(), "assigning");
}

TEST_F(AddressWriterSteps, TheLeaseIsReleasedWhenItsWritesAreAnswered_LEASE003) {
    run(first, seconds(5));
    network.path = [](const kube::Request& request) {
        return ModelNetwork::Path{.there =
                                      request.target.contains("/services/") ? seconds(4) : milliseconds(1)};
    };
    cluster.put(service("web"));
    run(first, seconds(1));
    EXPECT_EQ(address("web"), "") << "the write is on its way";
    cluster.put(service("late"));
    first.writer.release();
    run(first, seconds(1));
    EXPECT_EQ(cluster.holder(), "first") << "another process could decide before the write arrives";
    EXPECT_FALSE(first.writer.is_released());
    run(first, seconds(3));
    EXPECT_EQ(address("web"), "192.0.2.1");
    EXPECT_EQ(cluster.holder(), "");
    EXPECT_TRUE(first.writer.is_released());
    EXPECT_EQ(allocated("late"), "") << "no write is started after the release";
}

TEST_F(AddressWriterSteps, AWriteWithoutAnAnswerLeavesTheLeaseToExpire_LEASE003) {
    run(first, seconds(5));
    network.path = [](const kube::Request& request) {
        return ModelNetwork::Path{.there =
                                      request.target.contains("/services/") ? seconds(60) : milliseconds(1)};
    };
    cluster.put(service("web"));
    run(first, seconds(1));
    first.writer.release();
    run(first, seconds(8));  // the request times out
    EXPECT_TRUE(first.writer.is_released());
    EXPECT_EQ(cluster.holder(), "first");
    network.path = [](const kube::Request&) { return ModelNetwork::Path(); };
    run(second, seconds(30));
    EXPECT_EQ(cluster.holder(), "second");
    EXPECT_EQ(address("web"), "192.0.2.1");
}

// The former leader gave the address to "old". Its write arrives when the next leader, which has other pools,
// evaluates "new", and the writes of the next leader to "old" are slow.
TEST_F(AddressWriterSteps, ALateWriteToARefusedServiceIsSeenOrFails_LB008) {
    run(first, seconds(5));
    cluster.put(service("old"));
    const auto delay_old = [this](seconds delay) {
        network.path = [delay](const kube::Request& request) {
            return ModelNetwork::Path{.there = request.target.contains("/services/old/") ? delay
                                                                                         : milliseconds(1)};
        };
    };
    delay_old(seconds(30));
    step(first);  // frozen from now on
    delay_old(seconds(20));
    pool(1, 1, {"shop"});
    auto fresh = service("new");
    fresh.meta.namespace_name = "shop";
    cluster.put(fresh);
    run(second, seconds(28));
    EXPECT_EQ(second.phase(), "fencing");
    EXPECT_EQ(cluster.find({"shop", "new"})->ingress.size(), 0U);
    run(second, seconds(60));
    EXPECT_EQ(second.phase(), "assigning");
    EXPECT_EQ(address("old"), "192.0.2.1");
    EXPECT_EQ(cluster.find({"shop", "new"})->ingress.size(), 0U);
}

TEST_F(AddressWriterSteps, ALateWriteThatCameFirstKeepsItsAddress_LB008) {
    pool(1, 9);
    auto web = service("web");
    cluster.put(web);
    run(second, seconds(1));
    second.writer.release();
    run(second, seconds(1));
    web = *cluster.find(id("web"));
    web.ingress = {};
    web.conditions = {};
    cluster.put(web);  // as before the late write
    for (int i = 0; i < 40 && first.phase() != "refreshing"; ++i) {
        step(first);
        now += milliseconds(50);
    }
    network.path = [](const kube::Request&) { return ModelNetwork::Path{.there = seconds(1)}; };
    list(first);
    step(first);
    ASSERT_EQ(first.phase(), "fencing");
    web.ingress = {{.ip = "192.0.2.7", .hostname = {}, .ip_mode = "VIP", .ports = {}}};
    web.conditions = {{std::string(kube::kAllocatedCondition), "True", "Allocated", "late"}};
    cluster.put(web);
    run(first, seconds(10));
    EXPECT_EQ(first.phase(), "assigning");
    EXPECT_EQ(address("web"), "192.0.2.7");
}

TEST_F(AddressWriterSteps, ARefusalIsReportedOnceWhileItLasts_LB024) {
    cluster.put(service("a", "2023"));
    cluster.put(service("b", "2024"));
    run(first, seconds(5));
    EXPECT_EQ(allocated("b"), "False PoolExhausted");
    EXPECT_EQ(first.events("PoolExhausted").size(), 1U);
    auto touched = *cluster.find(id("b"));
    touched.meta.labels["x"] = "y";
    cluster.put(touched);
    first.writer.board().report("gateway-1", id("b"), false);  // the Service is evaluated again
    run(first, seconds(5));
    EXPECT_EQ(first.events("PoolExhausted").size(), 1U);
    pool(1, 2);
    run(first, seconds(5));
    EXPECT_EQ(allocated("b"), "True Allocated");
    EXPECT_EQ(first.events("IPAllocated"),
              (std::vector<std::string>{"a: Allocated 192.0.2.1", "b: Allocated 192.0.2.2"}));
}

TEST_F(AddressWriterSteps, AnAddressOutsideThePoolsStaysAndIsReported_LB014) {
    cluster.put(service("web"));
    run(first, seconds(5));
    pool(5, 6);
    run(first, seconds(5));
    EXPECT_EQ(address("web"), "192.0.2.1");
    EXPECT_EQ(allocated("web"), "True Allocated");
    EXPECT_EQ(first.events("PoolMissing").size(), 1U);
}

TEST_F(AddressWriterSteps, AServiceThatLeavesItsTypeIsCleared_LB013_EVT003) {
    cluster.put(service("web"));
    run(first, seconds(5));
    auto changed = *cluster.find(id("web"));
    changed.type = "ClusterIP";
    cluster.put(changed);
    run(first, seconds(5));
    EXPECT_TRUE(cluster.find(id("web"))->ingress.empty());
    EXPECT_TRUE(cluster.find(id("web"))->conditions.empty());
    EXPECT_EQ(first.events("IPReleased"), std::vector<std::string>{"web: Released 192.0.2.1"});
}

// A condition of a former leader that gave no address.
TEST_F(AddressWriterSteps, ConditionsAreClearedWithAnyStatus_LB013) {
    auto web = service("web");
    web.type = "ClusterIP";
    web.conditions = kube::marker("False");
    cluster.put(web);
    run(first, seconds(5));
    EXPECT_TRUE(cluster.find(id("web"))->conditions.empty());
}

TEST_F(AddressWriterSteps, ForeignIngressIsLeftAlone_STATUS003) {
    auto web = service("web");
    web.ingress = {{.ip = "198.51.100.7", .hostname = {}, .ip_mode = {}, .ports = {}}};
    cluster.put(web);
    auto other = service("other");
    other.load_balancer_class = "example.org/lb";
    other.ingress = web.ingress;
    cluster.put(other);
    run(first, seconds(5));
    EXPECT_EQ(cluster.find(id("web"))->ingress, web.ingress);
    EXPECT_EQ(allocated("web"), "False AddressOutsidePools");
    EXPECT_EQ(*cluster.find(id("other")), other);
}

TEST_F(AddressWriterSteps, ProgrammedFollowsTheBoard_PRESENCE001) {
    cluster.put(service("web"));
    run(first, seconds(5));
    EXPECT_EQ(condition("web", kube::kProgrammedCondition), "");
    first.writer.board().report("gateway-1", id("web"), true);
    run(first, seconds(2));
    EXPECT_EQ(condition("web", kube::kProgrammedCondition), "True Served");
    first.writer.board().report("gateway-1", id("web"), false);
    run(first, seconds(2));
    EXPECT_EQ(condition("web", kube::kProgrammedCondition), "False NotServed");
}

TEST_F(AddressWriterSteps, RefusedPoolsAreReportedAndTheLastOnesStay_LB015) {
    ipam::Pool overlapping{.name = "twin"};
    overlapping.ranges = {{IpAddr::v4(192, 0, 2, 1), IpAddr::v4(192, 0, 2, 9)}};
    run(first, seconds(5));
    static_cast<void>(first.writer.take_log());
    cluster.put_pool(overlapping);
    cluster.put(service("web"));
    run(first, seconds(5));
    EXPECT_NE(first.writer.status().pools_refused, "");
    EXPECT_EQ(address("web"), "192.0.2.1");
    const auto lines = first.writer.take_log();
    EXPECT_EQ(
        std::ranges::count_if(
            lines, [](const kube::LogLine& line) { return line.text.contains("address pools refused"); }),
        1);
    cluster.remove_pool("twin");
    run(first, seconds(5));
    EXPECT_EQ(first.writer.status().pools_refused, "");
}

TEST_F(AddressWriterSteps, FinalizersAreNeverWritten_LB020) {
    std::vector<std::string> bodies;
    network.path = [&](const kube::Request& request) {
        if (request.target.contains("/services/")) {
            EXPECT_EQ(request.method + " " + request.target,
                      "PATCH /api/v1/namespaces/default/services/web/status");
            bodies.push_back(request.body);
        }
        return ModelNetwork::Path();
    };
    cluster.put(service("web"));
    run(first, seconds(5));
    auto changed = *cluster.find(id("web"));
    changed.type = "ClusterIP";
    cluster.put(changed);
    run(first, seconds(5));
    ASSERT_EQ(bodies.size(), 3U);  // pending, allocated, cleared
    for (const std::string& body : bodies) {
        EXPECT_FALSE(body.contains("finalizers")) << body;
    }
}

TEST_F(AddressWriterSteps, TheLeaderElectionIsLogged) {
    run(first, seconds(5));
    const auto lines = first.writer.take_log();
    EXPECT_TRUE(std::ranges::any_of(
        lines, [](const kube::LogLine& line) { return line.text.contains("it holds the Lease"); }));
}

}  // namespace address_writer_steps_test
}  // namespace penstock::sync::testing
