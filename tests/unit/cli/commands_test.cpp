// SPDX-License-Identifier: Apache-2.0
// From the command line to the text on standard output, with the real parser and a gateway that answers from
// memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "control/cli/commands/list.hpp"
#include "control/cli/exit_code.hpp"
#include "control/cli/option_list.hpp"
#include "control/cli/options.hpp"
#include "tests/unit/cli/fake_gateway.hpp"

namespace penstock::cli {
namespace commands_test {

using Words = std::vector<std::string>;

// A document without its style. A string in one notation must be the same string in the other; a mapping has
// no order.
std::string canonical(const YAML::Node& node) {
    std::string text;
    if (node.IsMap()) {
        std::map<std::string, std::string> fields;
        for (const auto& field : node) {
            fields[field.first.Scalar()] = canonical(field.second);
        }
        for (const auto& [key, value] : fields) {
            text += key + "=" + value + ";";
        }
        return "{" + text + "}";
    }
    for (const auto& item : node) {
        text += canonical(item) + ";";
    }
    return node.IsSequence() ? "[" + text + "]" : "\"" + node.Scalar() + "\"";
}

class CommandTest : public testing::Test {
 protected:
    Result<std::string> run(const Words& words) {
        auto read = read_command_line(words);
        if (!read) {
            return std::unexpected(read.error());
        }
        const auto& invocation = std::get<Invocation>(*read);
        return answer_of(*invocation.command, &gateway_, invocation.request);
    }

    test::FakeGateway gateway_;
};

// Rows have the form "    penstockctl COMMAND[, WORD]  meaning"; WORD replaces the last word of COMMAND.
TEST_F(CommandTest, TheOperationsPageListsEveryCommand) {
    std::ifstream file(PENSTOCK_OPERATIONS_PAGE);
    ASSERT_TRUE(file) << PENSTOCK_OPERATIONS_PAGE;
    std::set<std::string> listed;
    const std::string start = "    penstockctl ";
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(start)) {
            continue;
        }
        std::istringstream rest(line.substr(start.size()));
        std::string command;
        for (std::string word; rest >> word;) {
            const bool more = word.ends_with(',');
            command += (command.empty() ? "" : " ") + word.substr(0, word.size() - (more ? 1 : 0));
            listed.insert(command);
            if (more) {
                const size_t space = command.rfind(' ');
                command = space == std::string::npos ? "" : command.substr(0, space);
            }
        }
    }
    for (const Command& command : all_commands()) {
        EXPECT_TRUE(listed.contains(name_of(command)))
            << name_of(command) << " is missing in docs/operations.md";
    }
}

TEST_F(CommandTest, EveryCommandTakesAServiceWithOrWithoutItsNamespace) {
    for (const Words& name :
         {Words{"shop/web"}, Words{"web", "-n", "shop"}, Words{"shop/web", "-n", "shop"}}) {
        const auto with_name = [&](Words words) {
            words.insert(words.end(), name.begin(), name.end());
            return words;
        };
        EXPECT_TRUE(run(with_name({"get", "services"})));
        EXPECT_EQ(gateway_.services_request.namespace_() + "/" + gateway_.services_request.name(),
                  "shop/web");
        EXPECT_TRUE(run(with_name({"get", "backends"})));
        EXPECT_EQ(gateway_.backends_request.namespace_() + "/" + gateway_.backends_request.service(),
                  "shop/web");
        EXPECT_TRUE(run(with_name({"get", "affinity"})));
        EXPECT_EQ(gateway_.affinity_request.namespace_() + "/" + gateway_.affinity_request.name(),
                  "shop/web");
        EXPECT_TRUE(run(with_name({"clear", "affinity"})));
        EXPECT_EQ(gateway_.clear_request.namespace_() + "/" + gateway_.clear_request.name(), "shop/web");
        EXPECT_FALSE(run(with_name({"get", "addresses"}))) << "there is none";
        EXPECT_EQ(gateway_.addresses_request.namespace_() + "/" + gateway_.addresses_request.name(),
                  "shop/web");
    }
    EXPECT_TRUE(run({"get", "affinity", "web"}));
    EXPECT_EQ(gateway_.affinity_request.namespace_(), "")
        << "a list covers all namespaces, as get services does";
    for (const Words& wrong :
         {Words{"get", "services", "/web"}, Words{"get", "backends", "shop/"},
          Words{"get", "affinity", "a/b/c"}, Words{"get", "services", "shop/web", "-n", "other"},
          Words{"get", "services", "-A", "-n", "shop"}}) {
        const auto refused = run(wrong);
        ASSERT_FALSE(refused) << testing::PrintToString(wrong);
        EXPECT_EQ(exit_code(refused.error()), kExitUsage);
    }
}

TEST_F(CommandTest, AliasesAreThoseOfKubectl) {
    for (const char* word : {"services", "service", "svc"}) {
        gateway_.services_request.Clear();
        EXPECT_TRUE(run({"get", word, "web", "-A"})) << word;
        EXPECT_EQ(gateway_.services_request.name(), "web") << word;
    }
    gateway_.services_.add_services();
    EXPECT_TRUE(run({"describe", "svc", "default/web"}));
    EXPECT_TRUE(run({"get", "neighbors"}));
    EXPECT_TRUE(run({"get", "be", "shop/web"}));
    EXPECT_EQ(gateway_.backends_request.service(), "web");
    EXPECT_TRUE(run({"get", "conn", "--limit", "7"}));
    EXPECT_EQ(gateway_.connections_request.limit(), 7u);
    EXPECT_FALSE(run({"svc"}));
}

TEST_F(CommandTest, NoHeadersOmitsTheFirstLineOfATable) {
    gateway_.routes_.add_routes()->set_destination("10.80.2.0/24");
    const std::string whole = run({"get", "routes"}).value();
    EXPECT_EQ(run({"get", "routes", "--no-headers"}).value(), whole.substr(whole.find('\n') + 1));
    EXPECT_EQ(run({"get", "routes", "--no-headers", "-o", "json"}).value(),
              run({"get", "routes", "-o", "json"}).value());
    EXPECT_FALSE(run({"status", "--no-headers"}));
}

TEST_F(CommandTest, VersionIsStructuredToo) {
    gateway_.status_.mutable_identity()->set_software_version("1.2.3");
    EXPECT_EQ(YAML::Load(run({"version", "-o", "json"}).value())["penstockd"].Scalar(), "1.2.3");
}

TEST_F(CommandTest, DrainAndUndrain_DRAIN006) {
    gateway_.set_drained_.set_connections(5);
    gateway_.set_drained_.set_open_connections(3);
    EXPECT_EQ(run({"drain"}).value(), "drained: health checks answer 503; 3 connections are open\n");
    EXPECT_FALSE(gateway_.until_restart);
    EXPECT_EQ(run({"undrain"}).value(),
              "in service: health checks report the actual state; 3 connections are open\n");
    EXPECT_EQ(gateway_.set_drained_to, (std::vector{true, false}));
    gateway_.set_drained_.set_not_kept("the drain was requested until the next start");
    EXPECT_EQ(run({"drain", "--until-restart"}).value(),
              "drained: health checks answer 503; not kept over a restart: the drain was requested until "
              "the next start; 3 connections are open\n");
    EXPECT_TRUE(gateway_.until_restart);
    gateway_.set_drained_.set_not_kept("cannot remove x: why");
    EXPECT_EQ(exit_code(run({"undrain"}).error()), kExitRefused);
}

TEST_F(CommandTest, FailBackNamesTheShares) {
    EXPECT_EQ(run({"fail-back"}).value(),
              "no share waits: this gateway has returned to all shares of which it is the primary\n");
    gateway_.fail_back_.add_shares(3);
    EXPECT_EQ(run({"fail-back"}).value(), "share 3: announced as the primary (metric 100)\n");
    gateway_.fail_back_.add_shares(7);
    EXPECT_EQ(run({"fail-back"}).value(), "shares 3, 7: announced as the primary (metric 100)\n");
    EXPECT_FALSE(run({"fail-back", "3"}));
}

TEST_F(CommandTest, DrainWaitsForTheLastOpenConnectionWhenToldHowLong_DRAIN006) {
    gateway_.set_drained_.set_connections(3);
    gateway_.set_drained_.set_open_connections(3);
    gateway_.status_.set_connections(3);
    gateway_.status_.set_open_connections(0);
    EXPECT_EQ(run({"drain", "--timeout", "60"}).value(),
              "drained: health checks answer 503, and no connection is open\n");
    gateway_.status_.set_open_connections(1);
    const auto left = run({"drain", "--timeout", "1"});
    ASSERT_FALSE(left);
    EXPECT_EQ(exit_code(left.error()), kExitRefused);
    EXPECT_NE(left.error().what.find("after 1 s 1 connection is open"), std::string::npos)
        << left.error().what;
    gateway_.status_.clear_open_connections();
    EXPECT_FALSE(run({"drain", "--timeout", "1"})) << "an older gateway counts those that are over as well";
}

TEST_F(CommandTest, DrainWaitsForTheEndOfItsSteps_PRESENCE003) {
    gateway_.status_.set_drain_step("withdrawn");  // no connection is open, but the routes are there yet
    EXPECT_FALSE(run({"drain", "--timeout", "1"}));
    gateway_.status_.set_drain_step("done");
    EXPECT_TRUE(run({"drain", "--timeout", "1"}));
}

TEST_F(CommandTest, DrainOfConnectionsThatAreOverSucceedsAtOnce_DRAIN006) {
    gateway_.set_drained_.set_connections(5);
    gateway_.set_drained_.set_open_connections(0);
    gateway_.status_.set_connections(5);
    gateway_.status_.set_open_connections(5);  // not read
    EXPECT_EQ(run({"drain", "--timeout", "60"}).value(),
              "drained: health checks answer 503, and no connection is open\n");
}

v1::Status status_with(v1::Upgrade::State state, uint64_t number = 3) {
    v1::Status status;
    v1::Upgrade& upgrade = *status.mutable_upgrade();
    upgrade.set_number(number);
    upgrade.set_state(state);
    upgrade.set_binary("/opt/penstockd");
    upgrade.set_version("1.2.3");
    upgrade.set_age_ms(12'000);
    return status;
}

TEST_F(CommandTest, UpgradeReturnsWhenItHasBegun) {
    gateway_.upgrade_.set_number(3);
    EXPECT_EQ(run({"upgrade"}).value(), "upgrade 3 has begun; `penstockctl status` has its result\n");
    EXPECT_EQ(gateway_.upgrade_request.binary(), "");
    EXPECT_TRUE(run({"upgrade", "--binary", "/opt/penstockd"}));
    EXPECT_EQ(gateway_.upgrade_request.binary(), "/opt/penstockd");
    EXPECT_EQ(exit_code(run({"upgrade", "--binary", "penstockd"}).error()), kExitUsage);
}

TEST_F(CommandTest, UpgradeWaitsForItsResultWhileTheProcessIsReplaced) {
    gateway_.upgrade_.set_number(3);
    auto done = status_with(v1::Upgrade::STATE_DONE);
    done.mutable_upgrade()->set_pause_us(12'340);
    gateway_.statuses = {status_with(v1::Upgrade::STATE_RUNNING),
                         fail(Errc::Unavailable, "penstockd is not reachable"), done};
    EXPECT_EQ(run({"upgrade", "--wait"}).value(),
              "upgrade 3 to /opt/penstockd (penstockd 1.2.3) is done, the pause was 12.3 ms\n");
    EXPECT_TRUE(gateway_.statuses.empty());
}

TEST_F(CommandTest, UpgradeQuotesTheLogOfASuccessorThatFailed) {
    gateway_.upgrade_.set_number(3);
    auto failed = status_with(v1::Upgrade::STATE_FAILED);
    failed.mutable_upgrade()->set_why("the successor has ended with exit code 2");
    failed.mutable_upgrade()->add_last_lines("unknown option --x");
    gateway_.statuses = {failed};
    const auto result = run({"upgrade", "--wait"});
    ASSERT_FALSE(result);
    EXPECT_EQ(exit_code(result.error()), kExitRefused);
    EXPECT_EQ(
        result.error().what,
        "upgrade 3 to /opt/penstockd (penstockd 1.2.3) failed: the successor has ended with exit code 2\n"
        "last lines of the successor's log:\n  unknown option --x");
}

TEST_F(CommandTest, UpgradeEndsIfItsRecordIsLostOrReplacedOrLate) {
    gateway_.upgrade_.set_number(3);
    for (const uint64_t number : {0U, 4U}) {
        gateway_.statuses = {status_with(v1::Upgrade::STATE_RUNNING, number)};
        EXPECT_EQ(exit_code(run({"upgrade", "--wait"}).error()), kExitRefused) << number;
    }
    gateway_.status_ = status_with(v1::Upgrade::STATE_RUNNING);
    const auto late = run({"upgrade", "--wait", "--timeout", "1"});
    ASSERT_FALSE(late);
    EXPECT_NE(late.error().what.find("is not over after 1 s"), std::string::npos) << late.error().what;
    gateway_.statuses = {fail(Errc::PermissionDenied, "no")};
    EXPECT_EQ(run({"upgrade", "--wait"}).error().what, "no");
}

TEST_F(CommandTest, StatusHasTheLastUpgrade) {
    EXPECT_EQ(run({"status"}).value().find("Upgrade:"), std::string::npos) << "no supervisor";
    gateway_.status_.mutable_upgrade();
    EXPECT_NE(run({"status"}).value().find("Upgrade:        none since the start of the supervisor\n"),
              std::string::npos);
    gateway_.status_ = status_with(v1::Upgrade::STATE_DONE);
    gateway_.status_.mutable_upgrade()->set_pause_us(8'100);
    EXPECT_NE(run({"status"})
                  .value()
                  .find("Upgrade:        upgrade 3 to /opt/penstockd (penstockd 1.2.3), done 12s ago, pause "
                        "8.1 ms\n"),
              std::string::npos)
        << run({"status"}).value();
    gateway_.status_ = status_with(v1::Upgrade::STATE_FAILED);
    gateway_.status_.mutable_upgrade()->set_why("a reason");
    EXPECT_NE(run({"status"}).value().find("failed 12s ago: a reason\n"), std::string::npos);
    gateway_.status_ = status_with(v1::Upgrade::STATE_RUNNING);
    EXPECT_NE(run({"status"}).value().find("is under way for 12s\n"), std::string::npos);
}

TEST_F(CommandTest, StatusIsRefusedAfterItsPageWhileTheGatewayIsNotReady) {
    const auto read = read_command_line({"status"});
    ASSERT_TRUE(read);
    const auto& invocation = std::get<Invocation>(*read);
    ASSERT_NE(invocation.command->judge, nullptr);
    EXPECT_TRUE(invocation.command->judge(&gateway_, invocation.request));
    gateway_.status_.add_not_well("no configuration is in force");
    gateway_.status_.add_not_well("drained");
    const auto verdict = invocation.command->judge(&gateway_, invocation.request);
    ASSERT_FALSE(verdict);
    EXPECT_EQ(exit_code(verdict.error()), kExitRefused);
    EXPECT_EQ(verdict.error().what, "the gateway is not ready: no configuration is in force; drained");
    EXPECT_NE(
        run({"status"}).value().find("Health:         not ready: no configuration is in force; drained\n"),
        std::string::npos);
}

TEST_F(CommandTest, FiltersReachTheGateway) {
    EXPECT_TRUE(run({"get", "services", "web", "-n", "shop"}));
    EXPECT_EQ(gateway_.services_request.namespace_(), "shop");
    EXPECT_EQ(gateway_.services_request.name(), "web");
    EXPECT_TRUE(run({"get", "backends", "web"}));
    EXPECT_EQ(gateway_.backends_request.service(), "web");
    EXPECT_TRUE(run({"get", "connections", "--client", "010.0.0.7", "--frontend=80.11.12.10:80", "--backend",
                     "[2001:DB8::1]:53", "--proto=UDP", "--limit=5"}));
    const auto& filter = gateway_.connections_request;
    EXPECT_EQ(filter.client().address(), "10.0.0.7");
    EXPECT_EQ(filter.client().port(), 0u);
    EXPECT_EQ(filter.frontend().port(), 80u);
    EXPECT_EQ(filter.backend().address(), "2001:db8::1");
    EXPECT_EQ(filter.backend().port(), 53u);
    EXPECT_EQ(filter.protocol(), v1::PROTOCOL_UDP);
    EXPECT_EQ(filter.limit(), 5u);
    EXPECT_TRUE(run({"get", "connections", "--client", "2001:db8::7"}));
    EXPECT_EQ(gateway_.connections_request.client().address(), "2001:db8::7");
}

TEST_F(CommandTest, ExplainAsksForThePacketDescribed) {
    EXPECT_TRUE(run({"explain", "--proto", "tcp", "--src", "10.80.1.2:40000", "--dst", "80.11.12.10:80",
                     "--port", "1", "--queue", "2", "--not-syn"}));
    const auto& packet = gateway_.explain_request;
    EXPECT_EQ(packet.protocol(), v1::PROTOCOL_TCP);
    EXPECT_EQ(packet.source().port(), 40000u);
    EXPECT_EQ(packet.destination().address(), "80.11.12.10");
    EXPECT_EQ(packet.port(), 1u);
    EXPECT_EQ(packet.queue(), 2u);
    EXPECT_TRUE(packet.tcp_not_syn());
    EXPECT_TRUE(run({"explain", "--proto", "sctp", "--src", "10.80.1.2:40000", "--dst", "80.11.12.10:80"}));
    EXPECT_EQ(packet.protocol(), v1::PROTOCOL_SCTP);
}

// The gateway uses the port of the route to the source.
TEST_F(CommandTest, ExplainNamesNoPortUnlessAsked) {
    EXPECT_TRUE(run({"explain", "--proto", "tcp", "--src", "10.80.1.2:40000", "--dst", "80.11.12.10:80"}));
    EXPECT_FALSE(gateway_.explain_request.has_port());
    EXPECT_TRUE(run(
        {"explain", "--proto", "tcp", "--src", "10.80.1.2:40000", "--dst", "80.11.12.10:80", "--port", "0"}));
    EXPECT_TRUE(gateway_.explain_request.has_port());
}

TEST_F(CommandTest, ExplainAnnotationsPrintsTheTable_ANNG7) {
    const std::string all = run({"explain", "annotations"}).value();
    EXPECT_THAT(all, testing::ContainsRegex("\npenstock.io/connection-draining-timeout +300 s +yes "));
    const std::string one = run({"explain", "annotations", "idle-timeout"}).value();
    EXPECT_NE(one.find("4-30 min"), std::string::npos) << one;
    EXPECT_EQ(run({"explain", "annotations", "penstock.io/idle-timeout"}).value(), one);
    EXPECT_EQ(
        run({"explain", "annotations", "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"})
            .value(),
        one);
    const YAML::Node json = YAML::Load(run({"explain", "annotations", "-o", "json"}).value());
    const YAML::Node yaml = YAML::Load(run({"explain", "annotations", "-o", "yaml"}).value());
    EXPECT_EQ(canonical(json), canonical(yaml));
    ASSERT_TRUE(json.IsSequence());
    EXPECT_EQ(json[0]["keys"][0]["key"].Scalar(), "penstock.io/connection-draining");
    EXPECT_EQ(YAML::Load(run({"explain", "annotations", "scheduler", "-o", "json"}).value())["requirement"]
                  .Scalar(),
              "ANN-26");
    const std::string refused = run({"explain", "annotations", "proxy-protocol"}).value();
    EXPECT_TRUE(refused.starts_with("penstock.io/proxy-protocol is refused: ")) << refused;
    EXPECT_EQ(run({"explain", "annotations", "penstock.io/proxy-protocol"}).value(), refused);
    EXPECT_THAT(all, testing::ContainsRegex("\npenstock.io/proxy-protocol +- +no +endpoints"));
    EXPECT_EQ(
        YAML::Load(run({"explain", "annotations", "vip-id", "-o", "json"}).value())["requirement"].Scalar(),
        "ANN-19");
    const auto unknown = run({"explain", "annotations", "idle-timout"});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(exit_code(unknown.error()), kExitRefused);
    EXPECT_EQ(unknown.error().what,
              "there is no annotation idle-timout; did you mean penstock.io/idle-timeout?");
    EXPECT_FALSE(run({"explain", "annotations", "xyzzy-plugh", "quux"}));
}

TEST_F(CommandTest, SetSchedulerIsRefusedWithTheLineThatDoesIt_SCHED001) {
    gateway_.services_.add_services();
    const auto refused = run({"set", "scheduler", "shop/web", "LC"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(exit_code(refused.error()), kExitRefused);
    EXPECT_EQ(gateway_.services_request.namespace_(), "shop");
    EXPECT_EQ(gateway_.services_request.name(), "web");
    EXPECT_NE(refused.error().what.find(
                  "\n  kubectl annotate --overwrite --namespace shop service web penstock.io/scheduler=lc"),
              std::string::npos)
        << refused.error().what;
    const auto no_such = run({"set", "scheduler", "shop/web", "fastest"});
    ASSERT_FALSE(no_such);
    EXPECT_EQ(exit_code(no_such.error()), kExitUsage);
    EXPECT_EQ(
        no_such.error().what,
        "there is no scheduler fastest; must be one of rr, wrr, lc, wlc, sh, dh, sed, nq, p2c, random, mh");
    for (const char* name : {"/web", "shop/"}) {
        EXPECT_EQ(exit_code(run({"set", "scheduler", name, "lc"}).error()), kExitUsage) << name;
    }
    gateway_.services_.Clear();
    const auto nowhere = run({"set", "scheduler", "shop/web", "lc"});
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(exit_code(nowhere.error()), kExitRefused);
    EXPECT_EQ(nowhere.error().what, "there is no service shop/web");
}

TEST_F(CommandTest, GetAffinityAsksForAServiceAClientOrAll) {
    EXPECT_TRUE(run({"get", "affinity"}));
    EXPECT_EQ(gateway_.affinity_request.namespace_() + "|" + gateway_.affinity_request.name(), "|");
    EXPECT_TRUE(run({"get", "affinity", "shop/web", "--client", "2001:db8::7", "--limit", "3"}));
    EXPECT_EQ(gateway_.affinity_request.namespace_() + "|" + gateway_.affinity_request.name(), "shop|web");
    EXPECT_EQ(gateway_.affinity_request.client(), "2001:db8::7");
    EXPECT_EQ(gateway_.affinity_request.limit(), 3u);
    EXPECT_TRUE(run({"get", "affinity", "-n", "shop"}));
    EXPECT_EQ(gateway_.affinity_request.namespace_() + "|" + gateway_.affinity_request.name(), "shop|");
}

TEST_F(CommandTest, ClearAffinityWantsAServiceOrAllOfThemByName) {
    gateway_.cleared_.set_cleared(3);
    EXPECT_EQ(run({"clear", "affinity", "shop/web", "--client", "10.0.0.7"}).value(), "cleared 3 entries\n");
    EXPECT_EQ(gateway_.clear_request.namespace_() + "|" + gateway_.clear_request.name(), "shop|web");
    EXPECT_EQ(gateway_.clear_request.client(), "10.0.0.7");
    EXPECT_FALSE(gateway_.clear_request.all());
    gateway_.cleared_.set_cleared(1);
    EXPECT_EQ(run({"clear", "affinity", "--all"}).value(), "cleared 1 entry\n");
    EXPECT_TRUE(gateway_.clear_request.all());
    EXPECT_EQ(exit_code(run({"clear", "affinity"}).error()), kExitUsage);
    EXPECT_EQ(exit_code(run({"clear", "affinity", "web", "--all"}).error()), kExitUsage);
    EXPECT_EQ(exit_code(run({"clear", "affinity", "/web"}).error()), kExitUsage);
}

TEST_F(CommandTest, SetLogLevelTakesALoggerOrAll) {
    (*gateway_.log_levels_.mutable_levels())["rpc"] = "debug";
    (*gateway_.log_levels_.mutable_levels())["drivers"] = "info";
    EXPECT_EQ(run({"set", "log-level", "debug", "rpc"}).value(),
              "LOGGER   LEVEL\ndrivers  info\nrpc      debug\n");
    EXPECT_EQ(gateway_.log_level_request.level(), "debug");
    EXPECT_EQ(gateway_.log_level_request.logger(), "rpc");
    EXPECT_TRUE(run({"set", "log-level", "info"}));
    EXPECT_EQ(gateway_.log_level_request.logger(), "");
}

TEST_F(CommandTest, JsonIsAListWithTheNamesOfTheProtoFilesAndZerosToo) {
    EXPECT_EQ(run({"-o", "json", "get", "connections"}).value(), "[]\n");
    gateway_.routes_.add_routes()->set_destination("10.80.2.0/24");
    gateway_.routes_.add_routes()->set_twin("uplink0");
    EXPECT_EQ(run({"get", "routes", "-o", "json"}).value(),
              "[{\n \"destination\": \"10.80.2.0/24\",\n \"gateway\": \"\",\n \"twin\": \"\",\n \"port\": "
              "0,\n \"metric\": 0\n},\n"
              "{\n \"destination\": \"\",\n \"gateway\": \"\",\n \"twin\": \"uplink0\",\n \"port\": 0,\n "
              "\"metric\": 0\n}]\n");
    gateway_.ports_.add_ports()->set_rx_packets(7);
    // Beyond 2^53 not every integer has an exact double, the number type of many JSON parsers.
    auto& port = *gateway_.ports_.add_ports();
    port.set_rx_packets(uint64_t{1} << 53);
    port.set_tx_packets((uint64_t{1} << 53) + 1);
    const std::string ports = run({"get", "ports", "-o", "json"}).value();
    EXPECT_NE(ports.find("\"rx_packets\": 9007199254740992,"), std::string::npos) << ports;
    EXPECT_NE(ports.find("\"tx_packets\": \"9007199254740993\","), std::string::npos) << ports;
}

TEST_F(CommandTest, JsonHasEnumValuesWithoutTheirTypesNames) {
    auto& backend = *gateway_.backends_.add_backends();
    backend.mutable_service()->set_protocol(v1::PROTOCOL_SCTP);
    backend.set_health(v1::BackendStatus::HEALTH_DOWN);
    const YAML::Node json = YAML::Load(run({"get", "backends", "-o", "json"}).value())[0];
    EXPECT_EQ(json["service"]["protocol"].Scalar(), "SCTP");
    EXPECT_EQ(json["health"].Scalar(), "DOWN");
    gateway_.status_.set_origin(v1::Status::CONFIGURATION_ORIGIN_LAST_GOOD);
    (*gateway_.status_.mutable_identity()->mutable_labels())["a\"b\\\n\x01"] = "c";
    const YAML::Node status = YAML::Load(run({"status", "-o", "json"}).value());
    EXPECT_EQ(status["origin"].Scalar(), "LAST_GOOD");
    EXPECT_EQ(status["identity"]["labels"]["a\"b\\\n\x01"].Scalar(), "c");
    gateway_.services_.add_services()->mutable_desired()->add_sets()->add_excluded()->set_address(
        "\x0a\x50\x02\x0b");
    const YAML::Node set =
        YAML::Load(run({"get", "services", "-o", "json"}).value())[0]["desired"]["sets"][0];
    EXPECT_EQ(set["excluded"][0]["address"].Scalar(), "ClACCw==")
        << "bytes are base64, as in protobuf's JSON";
    EXPECT_FALSE(json["endpoint"]) << "a message that is not set is left out";
}

TEST_F(CommandTest, YamlSaysWhatJsonSays) {
    auto& service = *gateway_.services_.add_services();
    service.mutable_desired()->mutable_key()->set_namespace_("default");
    service.mutable_desired()->mutable_key()->set_name("yes");
    service.mutable_desired()->mutable_key()->set_port_name("1:2 \"x\"\n");
    service.mutable_desired()->add_source_ranges("10.0.0.0/8");
    service.mutable_desired()->add_sets()->add_endpoints()->set_address("10.80.2.11");
    service.set_connections(7);
    const std::string yaml = run({"get", "services", "-o", "yaml"}).value();
    const std::string json = run({"get", "services", "-o", "json"}).value();
    EXPECT_TRUE(yaml.starts_with("- desired:\n    key:\n      namespace: default\n      name: \"yes\"\n"))
        << yaml;
    EXPECT_EQ(canonical(YAML::Load(yaml)), canonical(YAML::Load(json)));
    EXPECT_EQ(YAML::Load(yaml)[0]["connections"].Tag(), "?") << "a number in JSON stays one";
}

TEST_F(CommandTest, DescribeTakesANameWithOrWithoutItsNamespace) {
    gateway_.add_service("shop", "web");
    for (const Words& name : {Words{"shop/web"}, Words{"web"}, Words{"web", "-n", "shop"}}) {
        Words words{"describe", "service"};
        words.insert(words.end(), name.begin(), name.end());
        gateway_.services_requests.clear();
        EXPECT_TRUE(run(words));
        EXPECT_EQ(gateway_.services_request.namespace_() + "|" + gateway_.services_request.name(),
                  "shop|web");
        EXPECT_EQ(gateway_.backends_request.namespace_(), "shop");
        EXPECT_EQ(gateway_.services_requests.size(), name == Words{"web"} ? 2u : 1u)
            << "only a bare name is looked up";
    }
}

TEST_F(CommandTest, ABareNameMeansTheOnlyServiceOfThatName) {
    gateway_.add_service("shop", "web");
    EXPECT_TRUE(run({"clear", "affinity", "web"}));
    EXPECT_EQ(gateway_.clear_request.namespace_() + "|" + gateway_.clear_request.name(), "shop|web");
    EXPECT_NE(run({"set", "scheduler", "web", "lc"}).error().what.find("--namespace shop service web "),
              std::string::npos);
    // Two ports of one Service are one name; another namespace is another.
    gateway_.add_service("shop", "web");
    EXPECT_TRUE(run({"clear", "affinity", "web"}));
    gateway_.add_service("default", "web");
    gateway_.clear_request.Clear();
    for (const Words& words : {Words{"describe", "service", "web"}, Words{"clear", "affinity", "web"},
                               Words{"set", "scheduler", "web", "lc"}}) {
        const auto refused = run(words);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().what,
                  "service web: several namespaces have this name; pass one of default/web, shop/web");
        EXPECT_EQ(exit_code(refused.error()), kExitUsage);
    }
    EXPECT_EQ(gateway_.clear_request.name(), "") << "nothing is cleared";
    EXPECT_TRUE(run({"clear", "affinity", "web", "-n", "shop"}));
    EXPECT_EQ(gateway_.clear_request.namespace_(), "shop");
}

TEST_F(CommandTest, ABareNameThatNoNamespaceHasIsNotFound) {
    gateway_.services_error = Error{Errc::NotFound, "there is no service */web"};
    for (const Words& words : {Words{"describe", "service", "web"}, Words{"clear", "affinity", "web"},
                               Words{"set", "scheduler", "web", "lc"}}) {
        const auto refused = run(words);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().what,
                  "there is no service web in any namespace; penstockctl get services lists all");
        EXPECT_EQ(exit_code(refused.error()), kExitRefused);
    }
    gateway_.services_error = Error{Errc::Unavailable, "gone"};
    EXPECT_EQ(run({"clear", "affinity", "web"}).error().what, "gone");
}

TEST_F(CommandTest, ExplainNamesTheArgumentThatIsMissing) {
    const struct {
        Words words;
        const char* told;
    } cases[] = {
        {{"--src", "10.80.1.2:4000", "--dst", "80.11.12.10:80"},
         "explain: --proto is missing: tcp, udp or sctp"},
        {{"--proto", "icmp", "--src", "10.80.1.2:4000", "--dst", "80.11.12.10:80"},
         "--proto: \"icmp\" must be tcp, udp or sctp; ICMP is not supported"},
        {{"--proto", "sctp", "--dst", "80.11.12.10:80"},
         "explain: --src is missing: IP:PORT, or [IPV6]:PORT"},
        {{"--proto", "udp", "--src", "10.80.1.2", "--dst", "80.11.12.10:80"},
         "explain: --src 10.80.1.2: the port is missing: write 10.80.1.2:PORT"},
        {{"--proto", "udp", "--src", "10.80.1.2:4000"}, "explain: --dst is missing: IP:PORT, or [IPV6]:PORT"},
        {{"--proto", "udp", "--src", "[2001:db8::7]:4000", "--dst", "2001:db8::1:80"},
         "explain: --dst 2001:db8::1:80: the port is missing: write [ADDRESS]:PORT"},
    };
    for (const auto& c : cases) {
        Words words{"explain"};
        words.insert(words.end(), c.words.begin(), c.words.end());
        const auto told = run(words);
        ASSERT_FALSE(told) << c.told;
        EXPECT_EQ(told.error().what, c.told);
        EXPECT_EQ(exit_code(told.error()), kExitUsage);
    }
}

TEST_F(CommandTest, ExitCodesTellRefusalUsageAndAbsenceApart) {
    EXPECT_EQ(exit_code(run({"describe", "service", "web"}).error()), kExitRefused) << "there is none";
    EXPECT_EQ(exit_code(run({"explain", "--proto", "tcp"}).error()), kExitUsage);
    EXPECT_EQ(exit_code(run({"describe", "service", "web/"}).error()), kExitUsage);
    EXPECT_EQ(exit_code(run({"describe", "service", ""}).error()), kExitUsage) << "not all Services";
    EXPECT_EQ(exit_code(run({"get", "services", ""}).error()), kExitUsage);
    gateway_.error = Error{Errc::Unavailable, "gone"};
    for (const auto& words : {Words{"get", "services"}, Words{"get", "connections"}, Words{"status"},
                              Words{"version"}, Words{"stats"}, Words{"set", "log-level", "info"}}) {
        EXPECT_EQ(exit_code(run(words).error()), kExitUnreachable);
    }
    EXPECT_NE(run({"version"}).error().what.find("version "), std::string::npos)
        << "our own is known without a daemon";
}

struct Refusal {
    const char* name;
    Words words;
    const char* says;
};

class RefusedCommandLine : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedCommandLine, IsAnErrorOfUsageThatNamesWhatIsWrong) {
    const auto read = read_command_line(GetParam().words);
    ASSERT_FALSE(read);
    EXPECT_EQ(exit_code(read.error()), kExitUsage);
    EXPECT_NE(read.error().what.find(GetParam().says), std::string::npos) << read.error().what;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedCommandLine,
    testing::Values(
        Refusal{"nothing", {}, "a command is missing"},
        Refusal{"no_such_command", {"get", "pods"}, "no command get pods; get takes services, backends"},
        Refusal{"misspelt_command", {"doctr"}, "no command doctr; did you mean doctor?; see --help"},
        Refusal{"misspelt_option", {"get", "services", "--nmespace", "x"}, "did you mean --namespace?"},
        Refusal{"half_a_command", {"get"}, "no command get"},
        Refusal{"capture_of_an_empty_name", {"capture", "--service", ""}, "must be NAME or NAMESPACE/NAME"},
        Refusal{"too_many", {"get", "ports", "x"}, "get ports takes no arguments"},
        Refusal{"too_few", {"describe", "service"}, "takes NAME|NS/NAME"},
        Refusal{"unknown", {"status", "--colour"}, "--colour"},
        Refusal{"prefix", {"status", "--out", "json"}, "--out"},
        Refusal{"foreign", {"get", "ports", "--client", "1.2.3.4"}, "--client is not an option"},
        Refusal{"watch_explain", {"explain", "-w"}, "--watch is not an option of explain"},
        Refusal{"format", {"status", "-o", "xml"}, "table, wide, json or yaml"},
        Refusal{"address", {"get", "connections", "--client", "localhost"}, "--client: \"localhost\""},
        Refusal{"port", {"get", "connections", "--client", "1.2.3.4:0"}, "1 to 65535"},
        Refusal{"bracket", {"get", "connections", "--client", "[::1"}, "[IPV6]:PORT"},
        Refusal{"protocol", {"get", "connections", "--proto", "icmp"}, "tcp, udp or sctp"},
        Refusal{"limit", {"get", "connections", "--limit", "-1"}, "--limit"},
        Refusal{"timeout", {"status", "--timeout", "0"}, "--timeout: \"0\" must be 1 to 3600 seconds"},
        Refusal{
            "interval", {"status", "-w", "--interval", "0"}, "--interval: \"0\" must be 0.1 to 3600 seconds"},
        Refusal{
            "target", {"status", "--gateway", "here"}, "--gateway: \"here\" must be unix:PATH or HOST:PORT"},
        Refusal{"tls", {"status", "--gateway", "here:1"}, "--tls-cert"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(CommandLine, HelpNamesEveryCommandAndTheExitCodes) {
    const auto read = read_command_line({"--help"});
    const auto& help = std::get<Information>(read.value()).text;
    for (const Command& command : all_commands()) {
        EXPECT_NE(help.find("  " + name_of(command)), std::string::npos) << name_of(command);
    }
    EXPECT_NE(help.find("Exit codes: 0 done; 1 refused"), std::string::npos);
}

TEST(CommandLine, HelpOfACommandNamesItsOptionsAlone) {
    for (const Words& words : {Words{"get", "routes", "--help"}, Words{"help", "get", "route"}}) {
        const std::string text = std::get<Information>(read_command_line(words).value()).text;
        EXPECT_TRUE(text.starts_with("penstockctl get routes [options]\n")) << text;
        EXPECT_NE(text.find("--no-headers"), std::string::npos) << text;
        EXPECT_EQ(text.find("--client"), std::string::npos) << text;
    }
    EXPECT_EQ(std::get<Information>(read_command_line({"help"}).value()).text, help_text());
}

TEST(CommandLine, HelpOfAFirstWordNamesItsCommands) {
    for (const Words& words : {Words{"help", "set"}, Words{"set", "--help"}}) {
        const std::string text = std::get<Information>(read_command_line(words).value()).text;
        EXPECT_TRUE(text.starts_with("penstockctl set:\n  set log-level")) << text;
        EXPECT_NE(text.find("  set scheduler"), std::string::npos) << text;
        EXPECT_EQ(text.find("get services"), std::string::npos) << text;
    }
}

TEST(CommandLine, HelpAboutAnUnknownCommandIsAnErrorOfUsage) {
    for (const Words& words :
         {Words{"help", "nothing"}, Words{"help", "get", "nothing"}, Words{"nothing", "--help"}}) {
        const auto read = read_command_line(words);
        ASSERT_FALSE(read) << testing::PrintToString(words);
        EXPECT_EQ(exit_code(read.error()), kExitUsage);
        EXPECT_NE(read.error().what.find("there is no command"), std::string::npos) << read.error().what;
    }
}

TEST(CommandLine, EnvironmentHoldsDefaultsThatOptionsOverride) {
    const Environment environment{.gateway = "gateway.example:7443",
                                  .sync_server = "unix:/run/s.sock",
                                  .tls = {.certificate = "c.pem", .key = "k.pem", .authority = "a.pem"}};
    const auto request = [&](const Words& words) {
        return std::get<Invocation>(read_command_line(words, environment).value()).request;
    };
    EXPECT_EQ(request({"status"}).target.text, "gateway.example:7443");
    EXPECT_EQ(request({"status"}).sync_target.text, "unix:/run/s.sock");
    EXPECT_EQ(request({"status"}).tls.key, "k.pem");
    EXPECT_EQ(request({"status", "--gateway", "unix:/x"}).target.text, "unix:/x");
    EXPECT_EQ(request({"status", "--tls-key", "other.pem"}).tls.key, "other.pem");
    EXPECT_EQ(std::get<Invocation>(read_command_line({"status"}).value()).request.target.text,
              client::kDefaultTarget);
    const auto wrong = read_command_line({"status"}, {.gateway = "here"});
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().what.find("$PENSTOCK_GATEWAY"), std::string::npos) << wrong.error().what;
}

}  // namespace commands_test
}  // namespace penstock::cli
