// SPDX-License-Identifier: Apache-2.0
// Processes that exchange the state of their gateways by a model of the Lease, with a test clock.
#include "control/sync/addresses/gateway_reports.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "control/kube/events/json_text.hpp"
#include "control/kube/json/json_fields.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::sync {
namespace gateway_reports_test {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;
using Time = GatewayReports::Time;

// Services with versions, and the annotations of the Lease.
struct Model {
    struct Answer {
        int status = 200;
        std::string body = {};
    };

    // A new version of the Service, with an address of Penstock or without.
    void put(const std::string& name, bool has_address = true) {
        auto service = std::make_shared<kube::Service>();
        service->meta.namespace_name = "default";
        service->meta.name = name;
        service->type = "LoadBalancer";
        if (has_address) {
            service->ingress.push_back({.ip = "203.0.113.1", .hostname = {}, .ip_mode = {}, .ports = {}});
            service->conditions = {{.type = std::string(kube::kAllocatedCondition),
                                    .status = "True",
                                    .reason = {},
                                    .message = {}}};
        }
        services[{"default", name}] = {service, version_prefix + std::to_string(++version)};
    }
    Answer execute(const kube::Request& request) {
        ++requests[request.method];
        if (refusal != 0) {
            return {refusal};
        }
        if (request.method == "POST") {
            EXPECT_TRUE(request.body.contains(R"("name":"penstock-sync-gateways")")) << request.body;
            exists = true;
            return {201, body()};
        }
        EXPECT_TRUE(request.target.ends_with("/leases/penstock-sync-gateways")) << request.target;
        if (!exists) {
            return {404};
        }
        if (request.content_type == "application/merge-patch+json") {
            kube::JsonTree tree;
            EXPECT_TRUE(tree.parse(request.body));
            kube::FaultList faults;
            kube::JsonFields(tree, 0, faults)
                .mapping("metadata")
                .each_entry("annotations", [&](std::string_view key, std::string_view text) {
                    annotations[std::string(key)] = text;
                });
        } else if (request.content_type == "application/json-patch+json") {
            return remove(request.body);
        }
        return {200, body()};
    }
    // "test" and "remove" of one annotation.
    Answer remove(const std::string& patch) {
        kube::JsonTree tree;
        EXPECT_TRUE(tree.parse("{\"a\":" + patch + "}"));
        kube::FaultList faults;
        std::vector<std::pair<std::string, std::string>> steps;
        std::string value;
        kube::JsonFields(tree, 0, faults).each_mapping("a", [&](const kube::JsonFields& step) {
            steps.emplace_back(step.text("op"), step.text("path"));
            value = step.has("value") ? step.text("value") : value;
        });
        EXPECT_EQ(steps.size(), 2u);
        EXPECT_EQ(steps.at(0).first, "test");
        EXPECT_EQ(steps.at(1).first, "remove");
        std::string key = steps.at(1).second;
        EXPECT_TRUE(key.starts_with("/metadata/annotations/"));
        key.erase(0, key.rfind('/') + 1);
        key.replace(key.find("~1"), 2, "/");
        const auto found = annotations.find(key);
        if (found == annotations.end() || found->second != value) {
            return {422};
        }
        annotations.erase(found);
        return {200, body()};
    }
    [[nodiscard]] std::string body() const {
        std::string entries;
        for (const auto& [key, text] : annotations) {
            std::string member = "{";
            kube::add_text(member, "", text);
            entries += (entries.empty() ? "\"" : ",\"") + key + "\"" + member.substr(member.find(':'));
        }
        return R"({"metadata":{"resourceVersion":"1","annotations":{)" + entries + "}}}";
    }

    std::map<kube::ObjectName, kube::ServiceVersion> services;
    std::map<std::string, std::string> annotations;
    std::map<std::string, int> requests;  // by method
    std::string version_prefix;
    uint64_t version = 100;
    bool exists = false;
    int refusal = 0;  // status of each answer
};

struct Process {
    explicit Process(Model& cluster, const std::string& name)
        : model(cluster),
          reports({.lease = {"penstock-system", "penstock-sync"}, .identity = name}, transport, limiter,
                  board, [this](const kube::ObjectName& service) -> std::optional<kube::ServiceVersion> {
                      const auto found = model.services.find(service);
                      return found == model.services.end() ? std::nullopt : std::optional(found->second);
                  }) {}

    // The watch delivers what has changed since the last call.
    void deliver() {
        kube::Changes changes;
        for (const auto& [name, version] : model.services) {
            if (seen[name] != version.resource_version) {
                seen[name] = version.resource_version;
                changes.services[name] = version.object;
            }
        }
        std::erase_if(seen, [&](const auto& each) {
            const bool is_gone = !model.services.contains(each.first);
            if (is_gone) {
                changes.services[each.first] = nullptr;
            }
            return is_gone;
        });
        reports.note(changes);
    }
    void step(Time now) {
        while (!transport.open.empty()) {
            const auto answer = model.execute(transport.open.front().request);
            transport.answer(answer.status, answer.body);
        }
        reports.advance(now, kube::WallTime(1'700'000'000s), leads);
    }
    void serve(const std::string& gateway, const std::string& service, bool is_served = true) {
        board.report(gateway, {"default", service}, is_served);
    }
    // The gateways in the condition; {"?"}: no gateway has reported.
    [[nodiscard]] Names gateways(const std::string& service) const {
        return board.gateways_of({"default", service}).value_or(Names{"?"});
    }

    Model& model;
    kube::test::FakeTransport transport;
    kube::WriteLimiter limiter;
    ProgrammedBoard board{[] {}};
    GatewayReports reports;
    std::map<kube::ObjectName, std::string> seen;
    bool leads = false;
};

class GatewayReportsTest : public testing::Test {
 protected:
    GatewayReportsTest() { leader_.leads = true; }
    void run(std::chrono::seconds time, std::vector<Process*> processes) {
        for (const Time end = now_ + time; now_ < end; now_ += 250ms) {
            for (Process* process : processes) {
                process->deliver();
                process->step(now_);
            }
        }
    }
    void run(std::chrono::seconds time) { run(time, {&leader_, &other_}); }

    Model model_;
    Time now_{1h};
    Process leader_{model_, "leader"};
    Process other_{model_, "other"};
};

TEST_F(GatewayReportsTest, TheLeaderCountsGatewaysOfOtherProcesses_PRESENCE001) {
    model_.put("web");
    model_.put("mail");
    leader_.serve("edge-1", "web");
    other_.serve("edge-2", "web");
    other_.serve("edge-2", "mail", false);
    run(5s);
    EXPECT_EQ(leader_.gateways("web"), (Names{"edge-1", "edge-2"}));
    EXPECT_EQ(leader_.gateways("mail"), Names());
    EXPECT_TRUE(leader_.board.is_complete({"default", "mail"}));
    EXPECT_EQ(other_.gateways("web"), Names{"edge-2"}) << "a follower reads nothing";
    other_.serve("edge-2", "mail");
    other_.serve("edge-2", "web", false);
    run(5s);
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-1"});
    EXPECT_EQ(leader_.gateways("mail"), Names{"edge-2"});
}

TEST_F(GatewayReportsTest, AVersionThatAReportDoesNotCoverKeepsItsState_PRESENCE001) {
    model_.put("web");
    other_.serve("edge-2", "web");
    run(5s);
    ASSERT_EQ(leader_.gateways("web"), Names{"edge-2"});
    // The other process is frozen, and has seen neither.
    model_.put("web");
    model_.put("new");
    run(10s, {&leader_});
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-2"});
    EXPECT_EQ(leader_.gateways("new"), Names{"?"});
    EXPECT_FALSE(leader_.board.is_complete({"default", "new"}));
    run(5s);
    EXPECT_EQ(leader_.gateways("new"), Names()) << "seen, and not served yet";
    other_.serve("edge-2", "new");
    run(5s);
    EXPECT_EQ(leader_.gateways("new"), Names{"edge-2"});
}

TEST_F(GatewayReportsTest, AGatewayThatIsGoneIsRemovedAtOnceItsProcessAfterAMinute_PRESENCE001) {
    model_.put("web");
    other_.serve("edge-2", "web");
    other_.serve("edge-3", "web");
    run(5s);
    ASSERT_EQ(leader_.gateways("web"), (Names{"edge-2", "edge-3"}));
    other_.board.set_reachable("edge-3", false);
    run(5s);
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-2"});
    EXPECT_EQ(model_.annotations.size(), 1u);
    run(120s);
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-2"}) << "the beat keeps it";
    run(35s, {&leader_});
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-2"});
    run(30s, {&leader_});
    EXPECT_EQ(leader_.gateways("web"), Names());
    run(5s);
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-2"});
}

TEST_F(GatewayReportsTest, AnAnnotationOfAnotherProcessIsNotRemoved_PRESENCE001) {
    Process third{model_, "third"};
    model_.put("web");
    other_.serve("edge-2", "web");
    run(5s);
    // The gateway follows another process from now on.
    third.serve("edge-2", "web");
    run(5s, {&leader_, &other_, &third});
    const std::string text = model_.annotations.at("gateway.penstock.io/edge-2");
    other_.board.set_reachable("edge-2", false);
    run(5s, {&leader_, &other_, &third});
    EXPECT_EQ(model_.annotations.at("gateway.penstock.io/edge-2"), text);
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-2"});
}

TEST_F(GatewayReportsTest, ANewLeaderKnowsTheOthersBeforeItWrites_PRESENCE001) {
    model_.put("web");
    leader_.serve("edge-1", "web");
    run(5s);
    EXPECT_FALSE(other_.reports.is_read(now_));
    leader_.leads = false;
    other_.leads = true;
    other_.deliver();
    other_.step(now_);
    EXPECT_FALSE(other_.reports.is_read(now_));
    run(3s, {&other_});
    EXPECT_TRUE(other_.reports.is_read(now_));
    EXPECT_EQ(other_.gateways("web"), Names{"edge-1"});
}

TEST_F(GatewayReportsTest, WithoutAnswersANewLeaderWaitsTenSeconds_PRESENCE001) {
    model_.refusal = 503;
    run(9s, {&leader_});
    EXPECT_FALSE(leader_.reports.is_read(now_));
    run(2s, {&leader_});
    EXPECT_TRUE(leader_.reports.is_read(now_));
}

TEST_F(GatewayReportsTest, AMissingRightIsOneLogLineAndAPause_RBAC001) {
    model_.refusal = 403;
    model_.put("web");
    leader_.serve("edge-1", "web");
    run(30s, {&leader_});
    EXPECT_TRUE(leader_.reports.is_read(now_));
    EXPECT_EQ(model_.requests["PATCH"] + model_.requests["GET"], 1);
    const auto log = leader_.reports.take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_TRUE(log[0].text.contains("penstock-system/penstock-sync-gateways cannot be used")) << log[0].text;
    model_.refusal = 0;
    run(40s, {&leader_});
    EXPECT_TRUE(model_.annotations.contains("gateway.penstock.io/edge-1"));
}

TEST_F(GatewayReportsTest, AnIdleFollowerWritesThreeTimesAMinute_APISYNC020) {
    model_.put("web");
    other_.serve("edge-2", "web");
    run(10s);
    model_.requests.clear();
    run(60s, {&other_});
    EXPECT_EQ(model_.requests["PATCH"], 3);
    EXPECT_EQ(model_.requests["GET"], 0);
    // A storm of changes is one write in two seconds.
    model_.requests.clear();
    for (int i = 0; i < 80; ++i) {
        model_.put("web");
        other_.deliver();
        other_.step(now_);
        now_ += 250ms;
    }
    EXPECT_LE(model_.requests["PATCH"], 11);
}

TEST_F(GatewayReportsTest, AProcessWithoutGatewaysWritesNothing_PRESENCE001) {
    model_.put("web");
    run(30s, {&other_});
    EXPECT_TRUE(model_.requests.empty());
}

TEST_F(GatewayReportsTest, TextsThatAreNoReportsAreIgnored_GEN001) {
    model_.exists = true;
    model_.annotations = {{"gateway.penstock.io/a", "junk"},
                          {"gateway.penstock.io/b", "1 other-name 999 1"},
                          {"example.org/c", "1 c 999 1"},
                          {"gateway.penstock.io/d", "1 d 999 1"}};
    model_.put("web");
    run(5s, {&leader_});
    EXPECT_EQ(leader_.gateways("web"), Names{"d"});
}

TEST_F(GatewayReportsTest, AReportWithoutRoomWaitsAndThenEnds_PRESENCE001) {
    for (int i = 0; i < 1'000; ++i) {
        model_.put("a-service-with-a-long-name-" + std::to_string(i));
    }
    model_.put("web");
    other_.serve("edge-2", "web");
    run(10s);
    EXPECT_EQ(leader_.gateways("web"), Names{"?"}) << "nothing is covered yet";
    for (int i = 0; i < 1'000; ++i) {
        other_.serve("edge-2", "a-service-with-a-long-name-" + std::to_string(i));
    }
    run(5s);
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-2"});
    for (int i = 0; i < 1'000; ++i) {
        other_.serve("edge-2", "a-service-with-a-long-name-" + std::to_string(i), false);
    }
    run(20s);
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-2"}) << "the former report counts for a while";
    run(30s);
    EXPECT_EQ(leader_.gateways("web"), Names());
    EXPECT_FALSE(other_.reports.take_log().empty());
}

TEST_F(GatewayReportsTest, VersionsThatAreNoNumbersExchangeNothing_PRESENCE001) {
    model_.version_prefix = "v";
    model_.put("web");
    leader_.serve("edge-1", "web");
    run(5s);
    EXPECT_TRUE(model_.requests.empty());
    EXPECT_TRUE(leader_.reports.is_read(now_));
    EXPECT_EQ(leader_.gateways("web"), Names{"edge-1"});
}

// Three processes with two gateways each, random changes, frozen processes and changes of the leader: when
// nothing has changed for a while, the leader knows exactly which gateways serve which Services.
TEST_F(GatewayReportsTest, AgreesWithTheGatewaysAfterAnyHistory_PRESENCE001) {
    const uint64_t seed = test::seed();
    SCOPED_TRACE("PENSTOCK_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t end) { return random() % end; };
    for (int history = 0; history < 20; ++history) {
        Model model;
        std::vector<std::unique_ptr<Process>> processes;
        std::vector<Process*> all;
        for (int i = 0; i < 3; ++i) {
            processes.push_back(std::make_unique<Process>(model, "p" + std::to_string(i)));
            all.push_back(processes.back().get());
        }
        size_t leader = 0;
        std::map<std::string, std::map<std::string, bool>> served;  // by Service and gateway
        std::map<std::string, bool> reachable;
        for (int round = 0; round < 60; ++round) {
            const std::string service = "s" + std::to_string(below(5));
            const size_t at = below(3);
            const std::string gateway = "edge-" + std::to_string(2 * at + below(2));
            switch (below(6)) {
                case 0:
                case 1:
                    model.put(service);
                    break;
                case 2:
                    reachable[gateway] = below(4) != 0;
                    all[at]->board.set_reachable(gateway, reachable[gateway]);
                    break;
                case 3:
                    leader = below(3);
                    break;
                default:
                    served[service][gateway] = below(3) != 0;
                    reachable.try_emplace(gateway, true);
                    all[at]->serve(gateway, service, served[service][gateway]);
            }
            for (size_t i = 0; i < all.size(); ++i) {
                all[i]->leads = i == leader;
            }
            std::vector<Process*> awake;
            std::ranges::copy_if(all, std::back_inserter(awake), [&](Process*) { return below(4) != 0; });
            run(std::chrono::seconds(below(4)), awake);
        }
        run(30s, all);
        for (const auto& [name, version] : model.services) {
            Names expected;
            for (const auto& [gateway, is_served] : served[name.name]) {
                if (is_served && reachable[gateway]) {
                    expected.push_back(gateway);
                }
            }
            Names found = all[leader]->gateways(name.name);
            EXPECT_EQ(found == Names{"?"} ? Names() : found, expected)
                << name.name << ", history " << history;
        }
    }
}

}  // namespace gateway_reports_test
}  // namespace penstock::sync
