// SPDX-License-Identifier: Apache-2.0
// penstockctl get sync: exact tables, the same content as JSON, and the socket in use.
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <regex>

#include "control/cli/commands/views.hpp"
#include "control/cli/exit_code.hpp"
#include "control/cli/options.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/unit/cli/fake_gateway.hpp"
#include "tests/unit/manifest/temporary_folder.hpp"

namespace penstock::cli {
namespace sync_test {

constexpr const char* kSync = R"(
software_version: "1.2.3" state_source: "host-7-0badcafe" uptime_ms: 90000 resident_bytes: 67108864
source: "https://192.0.2.1:6443" heartbeat_age_ms: 100
collections {
  kind: "services" path: "/api/v1/services" state: STATE_WATCHING listed: true objects: 5000 quarantined: 2 resource_version: "4711"
  last_event_age_ms: 250 stale_age_ms: 0 watch_restarts: 3 relists: 1
}
collections {
  kind: "endpointslices" path: "/apis/discovery.k8s.io/v1/endpointslices" state: STATE_BACKING_OFF listed: true objects: 7000
  resource_version: "4712" last_event_age_ms: 65000 stale_age_ms: 12000 last_error: "connection refused"
}
collections { kind: "nodes" path: "/api/v1/nodes" state: STATE_LISTING }
gateways {
  target: "unix:/run/penstock/penstockd.sock" name: "edge-1" connected: true desired_version: 18 applied_version: 17 lag_ms: 40
  changes_waiting: 5 services: 9000 refused: 1 full_states: 1 deltas: 16
  apply_latency { bounds_s: 0.01 bounds_s: 0.02 counts: 99 counts: 1 counts: 0 }
}
gateways { target: "192.0.2.9:9106" last_error: "connection refused" apply_latency { bounds_s: 0.01 counts: 0 counts: 0 } }
events { enabled: true posted: 8 repeated: 2 waiting: 1 dropped { key: "rate" value: 3 } dropped { key: "gone" value: 1 } }
)";

constexpr const char* kMapsDiffer =
    "protobuf's headers lay out map fields otherwise under TSan than its library, which reads them here";

v1::Sync example() {
    v1::Sync sync;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kSync, &sync));
    return sync;
}

TEST(SyncView, TableSaysWhatIsFollowedAndHowFarEachGatewayIs) {
    if (penstock::test::kUnderThreadSanitizer) {
        GTEST_SKIP() << kMapsDiffer;
    }
    EXPECT_EQ(sync_text(example(), false), R"(Source:    https://192.0.2.1:6443, last event 0.25s ago
Software:  penstock-sync 1.2.3, up for 1m30s, 64 MB
Events:    8 posted, 2 repeated, 1 waiting, 4 dropped

COLLECTION      STATE        OBJECTS  QUARANTINED  SYNC            LAST-EVENT  LAST-ERROR
services        watching        5000            2  in sync              0.25s  -
endpointslices  backing-off     7000            0  stale for 12s         1m5s  connection refused
nodes           listing            0            0  not listed yet           -  -

GATEWAY                            NAME    CONNECTED  APPLIED    LAG  SERVICES  REFUSED  WAITING  LAST-ERROR
unix:/run/penstock/penstockd.sock  edge-1  yes             17  0.04s      9000        1        5  -
192.0.2.9:9106                     -       no               -  0.00s         0        0        0  connection refused
)");
}

TEST(SyncView, WideAddsVersionsRestartsAndLatency) {
    if (penstock::test::kUnderThreadSanitizer) {
        GTEST_SKIP() << kMapsDiffer;
    }
    const std::string text = sync_text(example(), true);
    EXPECT_NE(text.find("/apis/discovery.k8s.io/v1/endpointslices"), std::string::npos) << text;
    EXPECT_NE(text.find("  <=10ms  <=10ms  "), std::string::npos) << text;
    v1::Sync slow = example();
    slow.mutable_gateways(0)->mutable_apply_latency()->set_counts(2, 10);
    EXPECT_NE(sync_text(slow, true).find("  <=10ms  >0.02s  "), std::string::npos) << sync_text(slow, true);
}

TEST(SyncView, BeforeAnythingWasHeardItSaysSo) {
    v1::Sync sync;
    sync.set_source("manifests /etc/penstock/manifests");
    const std::string text = sync_text(sync, false);
    EXPECT_TRUE(text.starts_with("Source:    manifests /etc/penstock/manifests, no event yet\n")) << text;
    EXPECT_NE(text.find("\nEvents:    off; 0 posted"), std::string::npos) << text;
}

Result<Invocation> read(const std::vector<std::string>& words) {
    auto read = read_command_line(words);
    if (!read) {
        return std::unexpected(read.error());
    }
    return std::get<Invocation>(std::move(*read));
}

TEST(SyncCommand, JsonAndTableComeFromTheSameAnswer) {
    if (penstock::test::kUnderThreadSanitizer) {
        GTEST_SKIP() << kMapsDiffer;
    }
    test::FakeGateway gateway;
    gateway.sync_ = example();
    const auto as_json = read({"get", "sync", "-o", "json"});
    ASSERT_TRUE(as_json);
    const auto json = as_json->command->run(&gateway, as_json->request);
    ASSERT_TRUE(json);
    // protobuf expects its own names of enum values, with the type as prefix.
    const std::string protobufs =
        std::regex_replace(*json, std::regex("\"state\": \""), "\"state\": \"STATE_");
    v1::Sync back;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(protobufs, &back).ok()) << protobufs;
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(back, example())) << *json;
    const auto as_table = read({"get", "sync"});
    ASSERT_TRUE(as_table);
    EXPECT_EQ(as_table->command->run(&gateway, as_table->request).value(), sync_text(example(), false));
}

TEST(SyncCommand, ItAsksPenstockSyncOnItsOwnSocket) {
    const auto plain = read({"get", "sync"});
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->command->program, Program::PenstockSync);
    EXPECT_EQ(plain->request.sync_target.text, "unix:/run/penstock/penstock-sync.sock");
    const auto elsewhere = read({"get", "sync", "--sync-server", "unix:/tmp/x.sock"});
    ASSERT_TRUE(elsewhere);
    EXPECT_EQ(elsewhere->request.sync_target.text, "unix:/tmp/x.sock");
    EXPECT_EQ(read({"get", "services"})->command->program, Program::Penstockd);
    for (const char* refused : {"192.0.2.1:9106", "unix:", "nonsense"}) {
        const auto wrong = read({"get", "sync", "--sync-server", refused});
        ASSERT_FALSE(wrong) << refused;
        EXPECT_EQ(exit_code(wrong.error()), kExitUsage);
    }
}

TEST(SyncCommand, AProgramThatIsNotThereIsNamed) {
    const auto gateway = connect(Program::PenstockSync, {"unix:/nonexistent/penstock-sync.sock"}, {}, 2);
    ASSERT_TRUE(gateway);
    const auto answer = (*gateway)->sync();
    ASSERT_FALSE(answer);
    EXPECT_EQ(exit_code(answer.error()), kExitUnreachable);
    EXPECT_EQ(
        answer.error().what,
        "penstock-sync is not reachable at unix:/nonexistent/penstock-sync.sock: there is no such socket: "
        "penstock-sync does not run, or listens elsewhere (--listen); systemctl status penstock-sync has its "
        "state");
}

TEST(SyncCommand, ASocketThatNothingListensAtIsNamed) {
    const penstock::test::TemporaryFolder folder;
    folder.write("d.sock", "");
    const std::string target = "unix:" + (folder.path() / "d.sock").string();
    const auto gateway = connect(Program::Penstockd, {target}, {}, 2);
    ASSERT_TRUE(gateway);
    EXPECT_EQ(
        (*gateway)->status().error().what,
        "penstockd is not reachable at " + target +
            ": nothing listens there: penstockd has ended; systemctl status penstock-gateway has its state");
}

}  // namespace sync_test
}  // namespace penstock::cli
