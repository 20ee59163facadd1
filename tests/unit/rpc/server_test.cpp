// SPDX-License-Identifier: Apache-2.0
// The gRPC server over real sockets with a fake gateway: protocol of the state stream, rights by transport,
// errors by code.
#include "control/rpc/server.hpp"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/rpc/auth.hpp"
#include "control/rpc/config_service.hpp"
#include "control/rpc/errors.hpp"
#include "control/rpc/limits.hpp"
#include "control/rpc/state_message.hpp"
#include "control/tls/handshake.hpp"
#include "penstock/v1/config.grpc.pb.h"
#include "penstock/v1/debug.grpc.pb.h"
#include "penstock/v1/status.grpc.pb.h"
#include "tests/support/free_port.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/sanitizers.hpp"

namespace penstock::rpc {
namespace server_test {

// Answers every update as applied, unless configured to hold or refuse updates.
class FakeGateway final : public StateTarget, public StatusSource, public DebugTarget {
 public:
    v1::Identity identity() const override {
        v1::Identity message;
        message.set_gateway_name("edge");
        message.set_applied_version(announcements);
        return message;
    }
    v1::Observed observed() const override {
        v1::Observed message;
        for (uint64_t i = 0; i < observations; ++i) {
            message.add_notices()->mutable_key()->set_name(std::to_string(i));
        }
        return message;
    }
    v1::SetDrainedResponse set_drained(const v1::SetDrainedRequest& request) override {
        drained = request.drained();
        v1::SetDrainedResponse message;
        message.set_drained(request.drained());
        return message;
    }
    Result<v1::FailBackResponse> fail_back() override {
        if (!can_fail_back) {
            return fail(Errc::Outdated, "share 3 waits for copies");
        }
        v1::FailBackResponse message;
        message.add_shares(3);
        return message;
    }
    Result<v1::UpgradeResponse> upgrade(const v1::UpgradeRequest& request,
                                        const std::string& requested_by) override {
        if (request.binary() != "/usr/bin/penstockd") {
            return fail(Errc::NotFound, "binary " + request.binary() + ": No such file or directory");
        }
        upgrade_requested_by = requested_by;
        v1::UpgradeResponse message;
        message.set_number(7);
        return message;
    }
    Status capture(const CaptureOrder& order, CaptureClient& client) override {
        capture_order = order;
        if (order.name == "gone") {
            return fail(Errc::NotFound, "there is no service default/gone");
        }
        v1::CaptureChunk chunk;
        chunk.set_pcapng("blocks");
        chunk.set_records(3);
        chunk.set_lost(1);
        client.send(chunk);
        if (order.records_max == 0) {  // until the client is gone
            for (const test::Patience patience; !client.is_gone() && patience.wait();) {
            }
            capture_client_was_gone = client.is_gone();
            return {};
        }
        chunk.set_ended("the number of records is reached");
        client.send(chunk);
        return {};
    }
    void submit(StateUpdate update) override {
        const std::lock_guard lock(mutex);
        if (update.base && update.base->number != version) {
            update.done(fail(Errc::Outdated, "another state is in force"));
            return;
        }
        version = update.version.number;
        if (hold) {
            waiting.push_back(std::move(update));
            return;
        }
        update.done(UpdateResult{.services = {}, .apply_us = 7});
    }
    void set_control(ControlPlane now) override {
        connected = now.connected;
        const std::lock_guard lock(mutex);
        control = std::move(now);
    }
    ControlPlane control_now() {
        const std::lock_guard lock(mutex);
        return control;
    }

    v1::Status status() const override {
        v1::Status message;
        message.set_workers(3);
        return message;
    }
    v1::ListPortsResponse ports() const override { return {}; }
    v1::ListWorkersResponse workers() const override { return {}; }
    v1::ListServicesResponse services(std::string_view, std::string_view name) const override {
        v1::ListServicesResponse response;
        if (name.empty() || name == "web") {
            response.add_services()->set_connections(1);
        }
        return response;
    }
    v1::ListBackendsResponse backends(std::string_view, std::string_view) const override { return {}; }
    void connections(const ConnectionFilter& filter,
                     const std::function<bool(const v1::Connection&)>& visit) const override {
        v1::Connection message;
        for (uint32_t i = 0; endless || i < 100; ++i) {
            message.set_worker(i);
            if (filter.client.matches(IpAddr::v4(192, 0, 2, 1), static_cast<L4Port>(1000 + i % 100)) &&
                !visit(message)) {
                ++stopped;
                return;
            }
        }
    }
    void affinity(const AffinityFilter& filter,
                  const std::function<bool(const v1::AffinityEntry&)>& visit) const override {
        v1::AffinityEntry message;
        message.mutable_service()->set_name(filter.name);
        message.set_client(filter.client ? filter.client->to_string() : "any");
        while (!no_affinity && visit(message)) {
        }
    }
    Result<uint64_t> clear_affinity(const AffinityFilter& filter) const override {
        if (filter.name == "absent") {
            return fail(Errc::NotFound, "there is no service default/absent");
        }
        return filter.client ? 1 : 7;
    }
    v1::Counters counters() const override { return {}; }
    v1::ListRoutesResponse routes() const override { return {}; }
    v1::ListNeighboursResponse neighbours() const override { return {}; }
    v1::ListVipsResponse vips() const override { return {}; }
    v1::ListBfdSessionsResponse bfd_sessions() const override { return {}; }
    v1::ListSharesResponse shares() const override { return {}; }
    v1::ListFlowsResponse flows() const override { return {}; }
    Result<v1::Explanation> explain(const ExplainQuestion& question) const override {
        if (question.port.value_or(0) != 0) {
            return fail(Errc::InvalidArgument, "port 9 does not exist; the last one is 0");
        }
        v1::Explanation message;
        message.set_verdict(question.key.to_string());
        return message;
    }

    std::mutex mutex;
    uint64_t version = 0;
    bool hold = false;
    std::deque<StateUpdate> waiting;
    std::atomic<bool> connected{false};
    std::atomic<uint64_t> announcements{0};
    std::atomic<uint64_t> observations{0};
    std::atomic<bool> drained{false};
    std::atomic<bool> can_fail_back{false};
    std::string upgrade_requested_by;
    CaptureOrder capture_order;
    std::atomic<bool> capture_client_was_gone{false};
    std::atomic<bool> endless{false};
    std::atomic<bool> no_affinity{false};
    mutable std::atomic<int> stopped{0};
    ControlPlane control;  // guarded by mutex
};

class RpcServer : public testing::Test {
 protected:
    using Stream = grpc::ClientReaderWriter<v1::StateMessage, v1::GatewayMessage>;

    void SetUp() override {
        if (test::kUnderThreadSanitizer) {
            GTEST_SKIP() << test::kGrpcHidesItsLocks;
        }
        std::string name = testing::TempDir() + "penstock-rpc-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        options_.unix_paths = {(folder_ / "gateway.sock").string()};
    }
    void TearDown() override {
        server_.reset();
        std::filesystem::remove_all(folder_);
    }
    void start() {
        auto started = Server::start(options_, {gateway_, gateway_, gateway_});
        ASSERT_TRUE(started) << started.error().what;
        server_ = std::move(*started);
        channel_ = grpc::CreateChannel("unix:" + options_.unix_paths[0], grpc::InsecureChannelCredentials());
    }
    static v1::StateMessage full(uint64_t version) {
        v1::StateMessage message;
        message.mutable_full()->mutable_version()->set_source("test");
        message.mutable_full()->mutable_version()->set_version(version);
        return message;
    }
    static v1::StateMessage delta(uint64_t base, uint64_t version) {
        v1::StateMessage message;
        message.mutable_delta()->mutable_base()->set_source("test");
        message.mutable_delta()->mutable_base()->set_version(base);
        message.mutable_delta()->mutable_version()->set_source("test");
        message.mutable_delta()->mutable_version()->set_version(version);
        return message;
    }
    // The next message; fails the test if the stream ends instead. Observed notices are stored separately.
    static v1::GatewayMessage read(Stream& stream) {
        v1::GatewayMessage message;
        while (stream.Read(&message)) {
            if (!message.has_observed()) {
                return message;
            }
        }
        ADD_FAILURE() << "the stream has ended";
        return {};
    }
    // True if the stream sends nothing more, except observed notices.
    static bool has_ended(Stream& stream) {
        v1::GatewayMessage message;
        while (stream.Read(&message)) {
            if (!message.has_observed()) {
                return false;
            }
        }
        return true;
    }
    static void set_deadline(grpc::ClientContext& context) {
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    }

    std::filesystem::path folder_;
    ServerOptions options_;
    FakeGateway gateway_;
    std::unique_ptr<Server> server_;
    std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(RpcServer, TheGatewaySpeaksFirstThenAnswersEachMessageInOrder) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    grpc::ClientContext context;
    set_deadline(context);
    const auto stream = stub->SyncState(&context);
    EXPECT_EQ(read(*stream).identity().gateway_name(), "edge");
    EXPECT_TRUE(gateway_.connected);
    ASSERT_TRUE(stream->Write(full(1)));
    for (uint64_t version = 2; version <= 100; ++version) {  // more than may be unanswered at once
        ASSERT_TRUE(stream->Write(delta(version - 1, version)));
    }
    for (uint64_t version = 1; version <= 100; ++version) {
        const auto answer = read(*stream);
        ASSERT_EQ(answer.applied().version().version(), version);
        ASSERT_EQ(answer.applied().apply_us(), 7U);
    }
    gateway_.announcements = 5;
    server_->announce_identity();
    EXPECT_EQ(read(*stream).identity().applied_version(), 5U);
    stream->WritesDone();
    EXPECT_TRUE(has_ended(*stream));
    EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(RpcServer, WhatTheGatewayObservedFollowsItsIdentityAndIsSentAgainOnChange_NAT002_HC005) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    grpc::ClientContext context;
    set_deadline(context);
    gateway_.observations = 2;
    const auto stream = stub->SyncState(&context);
    v1::GatewayMessage message;
    ASSERT_TRUE(stream->Read(&message));
    EXPECT_TRUE(message.has_identity());
    ASSERT_TRUE(stream->Read(&message));
    EXPECT_EQ(message.observed().notices_size(), 2);
    gateway_.observations = 0;
    server_->announce_observed();
    ASSERT_TRUE(stream->Read(&message));
    EXPECT_TRUE(message.has_observed()) << "nothing is something to say, too";
    EXPECT_EQ(message.observed().notices_size(), 0);
}

TEST_F(RpcServer, DrainReachesTheGateway_DRAIN006) {
    start();
    const auto stub = v1::GatewayDebug::NewStub(channel_);
    for (const bool wanted : {true, false}) {
        grpc::ClientContext context;
        set_deadline(context);
        v1::SetDrainedRequest request;
        request.set_drained(wanted);
        v1::SetDrainedResponse response;
        ASSERT_TRUE(stub->SetDrained(&context, request, &response).ok());
        EXPECT_EQ(response.drained(), wanted);
        EXPECT_EQ(gateway_.drained, wanted);
    }
}

TEST_F(RpcServer, FailBackReachesTheGateway) {
    start();
    const auto stub = v1::GatewayDebug::NewStub(channel_);
    const auto call = [&](v1::FailBackResponse& response) {
        grpc::ClientContext context;
        set_deadline(context);
        return stub->FailBack(&context, {}, &response);
    };
    v1::FailBackResponse response;
    const grpc::Status refused = call(response);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(refused.error_message(), "share 3 waits for copies");
    gateway_.can_fail_back = true;
    ASSERT_TRUE(call(response).ok());
    ASSERT_EQ(response.shares_size(), 1);
    EXPECT_EQ(response.shares(0), 3u);
}

TEST_F(RpcServer, UpgradeReachesTheGatewayWithTheIdentityOfTheClient) {
    start();
    const auto stub = v1::GatewayDebug::NewStub(channel_);
    v1::UpgradeRequest request;
    v1::UpgradeResponse response;
    {
        grpc::ClientContext context;
        set_deadline(context);
        request.set_binary("/gone");
        const auto status = stub->Upgrade(&context, request, &response);
        EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
        EXPECT_EQ(status.error_message(), "binary /gone: No such file or directory");
    }
    grpc::ClientContext context;
    set_deadline(context);
    request.set_binary("/usr/bin/penstockd");
    ASSERT_TRUE(stub->Upgrade(&context, request, &response).ok());
    EXPECT_EQ(response.number(), 7U);
    EXPECT_TRUE(gateway_.upgrade_requested_by.starts_with("unix:")) << gateway_.upgrade_requested_by;
}

TEST_F(RpcServer, CaptureReachesTheGatewayAndIsLogged) {
    start();
    const test::LogCapture log("rpc");
    const auto stub = v1::GatewayDebug::NewStub(channel_);
    v1::CaptureRequest request;
    auto& instruction = *request.add_filter();
    instruction.set_code(0x06);
    instruction.set_k(1);
    request.set_filter_text("tcp \"\n");
    request.set_namespace_("default");
    request.set_name("web");
    request.set_client("192.0.2.1");
    request.add_points(v1::CaptureRequest::POINT_DROP);
    request.set_records_max(3);
    const auto parts_of = [&](const v1::CaptureRequest& wanted) {
        grpc::ClientContext context;
        set_deadline(context);
        const auto reader = stub->Capture(&context, wanted);
        std::vector<v1::CaptureChunk> parts;
        for (v1::CaptureChunk part; reader->Read(&part);) {
            parts.push_back(part);
        }
        return std::pair(parts, reader->Finish());
    };
    const auto [parts, status] = parts_of(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].pcapng(), "blocks");
    EXPECT_EQ(parts[1].ended(), "the number of records is reached");
    EXPECT_TRUE(gateway_.capture_order.filter.matches(nullptr, 0));
    EXPECT_EQ(gateway_.capture_order.points, (capture::Points{1U << 2}));
    EXPECT_EQ(gateway_.capture_order.limit.count(), 60);
    EXPECT_EQ(gateway_.capture_order.snap_bytes, 128u);
    EXPECT_EQ(log.count("captures packets: filter \"tcp \\\"\\n\", 1 instructions, service default/web, "
                        "client 192.0.2.1, 128 bytes of each packet, for up to 60 s"),
              1u);
    EXPECT_EQ(log.count("has ended: the number of records is reached, 3 records, 1 lost"), 1u);

    request.set_name("gone");
    EXPECT_EQ(parts_of(request).second.error_code(), grpc::StatusCode::NOT_FOUND);
    const auto refused = [&](const auto& change) {
        v1::CaptureRequest wrong;
        change(wrong);
        const auto result = parts_of(wrong).second;
        EXPECT_EQ(result.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
        return result.error_message();
    };
    EXPECT_EQ(refused([](auto& wrong) { wrong.add_filter()->set_code(0x05); }),
              "filter: instruction 0: a jump of 0 leads out of the program");
    EXPECT_EQ(refused([](auto& wrong) { wrong.add_filter()->set_jump_true(256); }),
              "filter: instruction 0: a field is too large");
    EXPECT_EQ(refused([](auto& wrong) { wrong.set_seconds(3'601); }), "seconds: 3601 must be 1 to 3600");
    EXPECT_EQ(refused([](auto& wrong) { wrong.set_snap_bytes(33); }), "snap_bytes: 33 must be 34 to 16384");
    EXPECT_EQ(refused([](auto& wrong) { wrong.set_name("web"); }),
              "a service needs both its namespace and its name");
    EXPECT_EQ(refused([](auto& wrong) { wrong.add_points(v1::CaptureRequest::POINT_UNSPECIFIED); }),
              "points: 0 is unknown");
    EXPECT_TRUE(refused([](auto& wrong) { wrong.set_client("nobody"); }).starts_with("client: "));
}

TEST_F(RpcServer, ACaptureEndsWhenItsClientIsGone) {
    start();
    const auto stub = v1::GatewayDebug::NewStub(channel_);
    grpc::ClientContext context;
    set_deadline(context);
    const auto reader = stub->Capture(&context, v1::CaptureRequest());
    v1::CaptureChunk chunk;
    ASSERT_TRUE(reader->Read(&chunk));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
    for (const test::Patience patience; !gateway_.capture_client_was_gone && patience.wait();) {
    }
    EXPECT_TRUE(gateway_.capture_client_was_gone);
}

TEST_F(RpcServer, AnInvalidServiceIsAnsweredAndTheStreamGoesOn_GEN001) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    grpc::ClientContext context;
    set_deadline(context);
    const auto stream = stub->SyncState(&context);
    read(*stream);
    auto message = full(1);
    message.mutable_full()->add_services()->mutable_key()->set_name("broken");
    ASSERT_TRUE(stream->Write(message));
    const auto answer = read(*stream);
    ASSERT_EQ(answer.applied().services_size(), 1);
    EXPECT_EQ(answer.applied().services(0).outcome(), v1::ServiceResult::OUTCOME_REFUSED);
    EXPECT_EQ(answer.applied().services(0).key().name(), "broken");
    ASSERT_TRUE(stream->Write(delta(1, 2)));
    EXPECT_EQ(read(*stream).applied().version().version(), 2U);
}

TEST_F(RpcServer, PartsAreAppliedAndAnsweredAsOne_GEN007) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    grpc::ClientContext context;
    set_deadline(context);
    const auto stream = stub->SyncState(&context);
    read(*stream);
    for (int part = 0; part < 40; ++part) {  // more than states may be unanswered
        auto message = full(1);
        message.mutable_full()->add_services()->mutable_key()->set_name("broken");
        message.mutable_full()->set_more(part != 39);
        ASSERT_TRUE(stream->Write(message));
    }
    EXPECT_EQ(read(*stream).applied().services_size(), 40);
    ASSERT_TRUE(stream->Write(delta(1, 2)));
    EXPECT_EQ(read(*stream).applied().version().version(), 2U);
}

TEST_F(RpcServer, AStreamThatEndsBetweenPartsLeavesNothing) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    {
        grpc::ClientContext context;
        set_deadline(context);
        const auto stream = stub->SyncState(&context);
        read(*stream);
        auto message = full(1);
        message.mutable_full()->set_more(true);
        ASSERT_TRUE(stream->Write(message));
        stream->WritesDone();
        EXPECT_TRUE(has_ended(*stream));
        EXPECT_TRUE(stream->Finish().ok());
    }
    grpc::ClientContext context;
    set_deadline(context);
    const auto stream = stub->SyncState(&context);
    read(*stream);
    ASSERT_TRUE(stream->Write(full(7)));
    EXPECT_EQ(read(*stream).applied().version().version(), 7U);
}

TEST_F(RpcServer, AMessageTooLargeEndsTheStream) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    grpc::ClientContext context;
    set_deadline(context);
    const auto stream = stub->SyncState(&context);
    read(*stream);
    auto message = full(1);
    message.mutable_full()->add_services()->add_source_ranges(std::string(kMessageBytesMax, '1'));
    stream->Write(message);
    EXPECT_TRUE(has_ended(*stream));
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RpcServer, BrokenProtocolEndsTheStreamWithTheRightCode) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    const auto end_of = [&](const v1::StateMessage& message) {
        grpc::ClientContext context;
        set_deadline(context);
        const auto stream = stub->SyncState(&context);
        read(*stream);
        stream->Write(message);
        EXPECT_TRUE(has_ended(*stream));
        return stream->Finish().error_code();
    };
    EXPECT_EQ(end_of(v1::StateMessage()), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(end_of(delta(5, 5)), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(end_of(delta(8, 9)), grpc::StatusCode::FAILED_PRECONDITION);
}

// A control plane with its own metadata.
struct ControlPlaneClient {
    ControlPlaneClient(v1::GatewayConfig::Stub& stub, const std::string& source,
                       const std::string& priority) {
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
        context.AddMetadata("penstock-source", source);
        context.AddMetadata("penstock-priority", priority);
        stream = stub.SyncState(&context);
    }
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::StateMessage, v1::GatewayMessage>> stream;
};

TEST_F(RpcServer, ASecondControlPlaneWaitsAndLeadsWhenTheFirstEnds) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    ControlPlaneClient first(*stub, "sync-a", "0");
    EXPECT_TRUE(read(*first.stream).has_identity());
    ControlPlaneClient second(*stub, "sync-b", "0");
    const v1::GatewayMessage standby = read(*second.stream);
    ASSERT_TRUE(standby.has_standby()) << standby.DebugString();
    EXPECT_EQ(standby.standby().leader(), "sync-a");
    EXPECT_EQ(gateway_.control_now(), (ControlPlane{true, "sync-a", 1}));
    // The leader continues undisturbed; messages of the waiting stream are not read.
    ASSERT_TRUE(second.stream->Write(full(7)));
    ASSERT_TRUE(first.stream->Write(full(1)));
    EXPECT_EQ(read(*first.stream).applied().version().version(), 1U);
    first.context.TryCancel();
    EXPECT_TRUE(read(*second.stream).has_identity());
    EXPECT_EQ(read(*second.stream).applied().version().version(), 7U);
    EXPECT_EQ(gateway_.control_now(), (ControlPlane{true, "sync-b", 0}));
}

TEST_F(RpcServer, AHigherPriorityTakesTheLead) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    ControlPlaneClient low(*stub, "low", "1");
    EXPECT_TRUE(read(*low.stream).has_identity());
    ControlPlaneClient older(*stub, "older", "1");
    EXPECT_EQ(read(*older.stream).standby().leader(), "low");
    ControlPlaneClient high(*stub, "high", "2");
    EXPECT_TRUE(read(*high.stream).has_identity());
    EXPECT_TRUE(has_ended(*low.stream));
    EXPECT_EQ(low.stream->Finish().error_code(), grpc::StatusCode::ABORTED);
    const v1::GatewayMessage changed = read(*older.stream);
    EXPECT_EQ(changed.standby().leader(), "high");
    EXPECT_EQ(changed.standby().leader_priority(), 2U);
    ControlPlaneClient middle(*stub, "middle", "2");
    EXPECT_EQ(read(*middle.stream).standby().leader(), "high");
    high.context.TryCancel();
    EXPECT_TRUE(read(*middle.stream).has_identity()) << "the highest priority, not the oldest stream";
    EXPECT_EQ(read(*older.stream).standby().leader(), "middle");
    middle.context.TryCancel();
    EXPECT_TRUE(read(*older.stream).has_identity());
}

// The same while gRPC has not finished the call of the ended leader.
TEST_F(RpcServer, ANewcomerDoesNotPrecedeTheOnesThatWait) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    // The gateway has ended the stream by this point.
    const auto end = [](ControlPlaneClient& client) {
        client.stream->WritesDone();
        EXPECT_TRUE(has_ended(*client.stream));
        EXPECT_TRUE(client.stream->Finish().ok());
    };
    for (int round = 0; round < 20; ++round) {
        ControlPlaneClient leader(*stub, "leader", "0");
        EXPECT_TRUE(read(*leader.stream).has_identity());
        ControlPlaneClient waiting(*stub, "waiting", "0");
        EXPECT_TRUE(read(*waiting.stream).has_standby());
        end(leader);
        ControlPlaneClient newcomer(*stub, "newcomer", "0");
        EXPECT_EQ(read(*newcomer.stream).standby().leader(), "waiting");
        EXPECT_TRUE(read(*waiting.stream).has_identity());
        end(waiting);
        EXPECT_TRUE(read(*newcomer.stream).has_identity());
        end(newcomer);
    }
}

TEST_F(RpcServer, AWaitingControlPlaneThatEndsIsForgotten) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    ControlPlaneClient leader(*stub, "leader", "0");
    EXPECT_TRUE(read(*leader.stream).has_identity());
    {
        ControlPlaneClient waiting(*stub, "waiting", "not a number");
        EXPECT_TRUE(read(*waiting.stream).has_standby());
        waiting.context.TryCancel();
        EXPECT_FALSE(waiting.stream->Finish().ok());
    }
    while (gateway_.control_now().waiting > 0) {
        std::this_thread::yield();
    }
    std::vector<std::unique_ptr<ControlPlaneClient>> many;
    for (int i = 0; i < 16; ++i) {
        many.push_back(std::make_unique<ControlPlaneClient>(*stub, std::to_string(i), "0"));
        EXPECT_TRUE(read(*many.back()->stream).has_standby());
    }
    ControlPlaneClient beyond(*stub, "beyond", "0");
    EXPECT_TRUE(has_ended(*beyond.stream));
    EXPECT_EQ(beyond.stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    ASSERT_TRUE(leader.stream->Write(full(1)));
    EXPECT_EQ(read(*leader.stream).applied().version().version(), 1U);
}

TEST_F(RpcServer, AStreamOfTheSameControlPlaneReplacesTheFormerWhichEndsWithAborted) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    gateway_.hold = true;
    ControlPlaneClient first(*stub, "sync-a", "0");
    read(*first.stream);
    ASSERT_TRUE(first.stream->Write(full(1)));  // still unanswered when its stream is replaced
    while (true) {
        const std::lock_guard lock(gateway_.mutex);
        if (!gateway_.waiting.empty()) {
            break;
        }
    }
    ControlPlaneClient second(*stub, "sync-a", "0");
    EXPECT_TRUE(read(*second.stream).has_identity());
    EXPECT_TRUE(has_ended(*first.stream));
    EXPECT_EQ(first.stream->Finish().error_code(), grpc::StatusCode::ABORTED);
    EXPECT_TRUE(gateway_.connected);
    {
        const std::lock_guard lock(gateway_.mutex);
        gateway_.hold = false;
        gateway_.waiting.front().done(UpdateResult{});  // its stream has ended
    }
    ASSERT_TRUE(second.stream->Write(full(2)));
    EXPECT_EQ(read(*second.stream).applied().version().version(), 2U);
}

TEST_F(RpcServer, WhatIsNotAnsweredIsNotReadWithoutEnd) {
    constexpr size_t kSent = 64;
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    grpc::ClientContext context;
    set_deadline(context);
    gateway_.hold = true;
    const auto stream = stub->SyncState(&context);
    read(*stream);
    ASSERT_TRUE(stream->Write(full(1)));
    for (uint64_t version = 2; version <= kSent;
         ++version) {  // few bytes: the transport has room for all of them
        ASSERT_TRUE(stream->Write(delta(version - 1, version)));
    }
    const auto unanswered = [&] {
        const std::lock_guard lock(gateway_.mutex);
        return gateway_.waiting.size();
    };
    while (unanswered() < kUnansweredMax) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // time for messages that must not arrive
    EXPECT_EQ(unanswered(), kUnansweredMax);
    for (uint64_t version = 1; version <= kSent; ++version) {
        std::optional<StateUpdate> next;
        while (!next) {
            const std::lock_guard lock(gateway_.mutex);
            EXPECT_LE(gateway_.waiting.size(), kUnansweredMax);
            if (!gateway_.waiting.empty()) {
                next = std::move(gateway_.waiting.front());
                gateway_.waiting.pop_front();
            }
        }
        next->done(UpdateResult{});
        ASSERT_EQ(read(*stream).applied().version().version(), version);
    }
}

TEST_F(RpcServer, ALostControlPlaneIsNoticed) {
    start();
    const auto stub = v1::GatewayConfig::NewStub(channel_);
    {
        grpc::ClientContext context;
        const auto stream = stub->SyncState(&context);
        read(*stream);
        EXPECT_TRUE(gateway_.connected);
        context.TryCancel();
        EXPECT_FALSE(stream->Finish().ok());
    }
    for (int i = 0; gateway_.connected && i < 1000; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_FALSE(gateway_.connected);
}

TEST_F(RpcServer, StoppingEndsAnOpenStreamAndAnEndlessListing) {
    start();
    gateway_.endless = true;
    const auto config = v1::GatewayConfig::NewStub(channel_);
    const auto status = v1::GatewayStatus::NewStub(channel_);
    grpc::ClientContext stream_context, list_context;
    const auto stream = config->SyncState(&stream_context);
    read(*stream);
    const auto list = status->ListConnections(&list_context, {});
    v1::Connection connection;
    ASSERT_TRUE(list->Read(&connection));
    const auto began = std::chrono::steady_clock::now();
    server_->stop();
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
    EXPECT_TRUE(has_ended(*stream));
    EXPECT_FALSE(stream->Finish().ok());
    EXPECT_EQ(gateway_.stopped, 1);
    EXPECT_FALSE(std::filesystem::exists(options_.unix_paths[0]));
    while (list->Read(&connection)) {
    }
    EXPECT_FALSE(list->Finish().ok());
}

// Otherwise a read-only client could occupy a thread of the gateway with each listing that it opens and does
// not read.
TEST_F(RpcServer, ReadersWhoDoNotReadTakeABoundedNumberOfThreads) {
    const auto threads = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                             std::filesystem::directory_iterator());
    };
    start();
    gateway_.endless = true;
    const auto stub = v1::GatewayStatus::NewStub(channel_);
    const auto before = threads();
    std::deque<grpc::ClientContext> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<v1::Connection>>> readers;
    for (int i = 0; i < 150; ++i) {
        readers.push_back(stub->ListConnections(&contexts.emplace_back(), {}));
    }
    int refused = 0;
    for (auto& reader : readers) {
        v1::Connection connection;
        refused += !reader->Read(&connection) &&
                           reader->Finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED
                       ? 1
                       : 0;
    }
    EXPECT_LT(threads() - before, 100);
    EXPECT_GT(refused, 50);
    EXPECT_LT(refused, 150);
    for (grpc::ClientContext& context : contexts) {
        context.TryCancel();
    }
    // The threads are released.
    grpc::Status status;
    for (int i = 0; i < 1'000; ++i) {
        grpc::ClientContext context;
        v1::Status answer;
        if (status = stub->GetStatus(&context, {}, &answer); status.ok()) {
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(RpcServer, ConnectionsAreFilteredLimitedAndEndWithTheirReader) {
    start();
    const auto stub = v1::GatewayStatus::NewStub(channel_);
    const auto count = [&](const v1::ListConnectionsRequest& request) {
        grpc::ClientContext context;
        set_deadline(context);
        const auto reader = stub->ListConnections(&context, request);
        v1::Connection connection;
        int n = 0;
        while (reader->Read(&connection)) {
            ++n;
        }
        EXPECT_TRUE(reader->Finish().ok());
        return n;
    };
    v1::ListConnectionsRequest request;
    EXPECT_EQ(count(request), 100);
    request.set_limit(7);
    EXPECT_EQ(count(request), 7);
    request.mutable_client()->set_port(1003);
    EXPECT_EQ(count(request), 1);
    request.mutable_client()->set_address("192.0.2.2");
    EXPECT_EQ(count(request), 0);

    gateway_.endless = true;
    gateway_.stopped = 0;
    grpc::ClientContext context;
    const auto reader = stub->ListConnections(&context, {});
    v1::Connection connection;
    ASSERT_TRUE(reader->Read(&connection));
    context.TryCancel();
    static_cast<void>(reader->Finish());
    for (int i = 0; gateway_.stopped == 0 && i < 1000; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(gateway_.stopped, 1);
}

TEST_F(RpcServer, RequestsAreCheckedAndErrorsHaveTheirCodes) {
    start();
    const auto status = v1::GatewayStatus::NewStub(channel_);
    const auto debug = v1::GatewayDebug::NewStub(channel_);
    const auto code = [](auto&& call) {
        grpc::ClientContext context;
        set_deadline(context);
        return call(&context);
    };
    v1::ListServicesRequest services;
    v1::ListServicesResponse services_response;
    services.set_name("web");
    EXPECT_TRUE(code([&](auto* c) { return status->ListServices(c, services, &services_response); }).ok());
    services.set_name("other");
    services.set_namespace_("default");
    const auto missing = code([&](auto* c) { return status->ListServices(c, services, &services_response); });
    EXPECT_EQ(missing.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(missing.error_message(), "there is no service default/other");

    // A Service without endpoints is an empty list, a Service that does not exist is an error.
    v1::ListBackendsRequest backends;
    v1::ListBackendsResponse backends_response;
    backends.set_service("web");
    EXPECT_TRUE(code([&](auto* c) { return status->ListBackends(c, backends, &backends_response); }).ok());
    backends.set_service("other");
    EXPECT_EQ(
        code([&](auto* c) { return status->ListBackends(c, backends, &backends_response); }).error_message(),
        "there is no service */other");
    gateway_.no_affinity = true;
    v1::ListAffinityRequest nobody;
    nobody.set_name("web");
    EXPECT_TRUE(code([&](auto* c) { return status->ListAffinity(c, nobody)->Finish(); }).ok());
    nobody.set_name("other");
    EXPECT_EQ(code([&](auto* c) { return status->ListAffinity(c, nobody)->Finish(); }).error_code(),
              grpc::StatusCode::NOT_FOUND);
    gateway_.no_affinity = false;

    v1::ListConnectionsRequest connections;
    connections.mutable_backend()->set_address("ten");
    const auto refused = code([&](auto* c) { return status->ListConnections(c, connections)->Finish(); });
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_TRUE(refused.error_message().starts_with("backend: ")) << refused.error_message();

    v1::ExplainRequest question;
    v1::Explanation explanation;
    const auto explain = [&] {
        return code([&](auto* c) { return debug->Explain(c, question, &explanation); });
    };
    EXPECT_EQ(explain().error_message(), "protocol is missing");
    question.set_protocol(v1::PROTOCOL_TCP);
    question.mutable_source()->set_address("192.0.2.1");
    EXPECT_EQ(explain().error_message(), "source: port 0 is not in 1-65535");
    question.mutable_source()->set_port(40000);
    *question.mutable_destination() = question.source();
    question.mutable_destination()->set_address("2001:db8::1");
    EXPECT_NE(explain().error_message().find("different families"), std::string::npos);
    question.mutable_destination()->set_address("192.0.2.2");
    EXPECT_TRUE(explain().ok());
    EXPECT_EQ(explanation.verdict(), "TCP 192.0.2.1:40000 -> 192.0.2.2:40000");
    question.set_port(9);
    EXPECT_EQ(explain().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

    v1::ListAffinityRequest pinned;
    pinned.set_name("web");
    pinned.set_client("2001:DB8::1");
    pinned.set_limit(3);
    uint32_t entries = 0;
    EXPECT_TRUE(code([&](auto* c) {
                    const auto reader = status->ListAffinity(c, pinned);
                    for (v1::AffinityEntry entry; reader->Read(&entry); ++entries) {
                        EXPECT_EQ(entry.service().name() + " " + entry.client(), "web 2001:db8::1");
                    }
                    return reader->Finish();
                }).ok());
    EXPECT_EQ(entries, 3u);
    pinned.set_client("ten");
    EXPECT_TRUE(code([&](auto* c) { return status->ListAffinity(c, pinned)->Finish(); })
                    .error_message()
                    .starts_with("client: "));

    v1::ClearAffinityRequest forget;
    v1::ClearAffinityResponse forgotten;
    const auto clear = [&] {
        return code([&](auto* c) { return debug->ClearAffinity(c, forget, &forgotten); });
    };
    EXPECT_EQ(clear().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "everything is asked for by name";
    forget.set_all(true);
    EXPECT_TRUE(clear().ok());
    EXPECT_EQ(forgotten.cleared(), 7u);
    forget.set_name("absent");
    EXPECT_EQ(clear().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "one or the other";
    forget.set_all(false);
    EXPECT_EQ(clear().error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << "a name alone could mean several Services";
    forget.set_namespace_("default");
    EXPECT_EQ(clear().error_code(), grpc::StatusCode::NOT_FOUND);
    forget.set_name("web");
    forget.set_client("10.0.0.7");
    EXPECT_TRUE(clear().ok());
    EXPECT_EQ(forgotten.cleared(), 1u);

    v1::SetLogLevelRequest level;
    v1::SetLogLevelResponse levels;
    level.set_logger("rpc");
    level.set_level("warn");
    EXPECT_TRUE(code([&](auto* c) { return debug->SetLogLevel(c, level, &levels); }).ok());
    EXPECT_EQ(levels.levels().at("rpc"), "warn");
    level.set_level("loud");
    EXPECT_EQ(code([&](auto* c) { return debug->SetLogLevel(c, level, &levels); }).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    level.set_logger("engine");
    level.set_level("info");
    EXPECT_EQ(code([&](auto* c) { return debug->SetLogLevel(c, level, &levels); }).error_code(),
              grpc::StatusCode::NOT_FOUND);
}

TEST_F(RpcServer, TheSocketIsForOwnerAndGroupOnlyAndAStaleOneIsReplaced) {
    std::ofstream(options_.unix_paths[0]) << "";  // looks like the file left by a crash
    std::filesystem::remove(options_.unix_paths[0]);
    {
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::snprintf(at.sun_path, sizeof(at.sun_path), "%s", options_.unix_paths[0].c_str());
        ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
        close(fd);  // the file remains without a listener
    }
    const mode_t former = umask(0);
    start();
    umask(former);
    struct stat facts{};
    ASSERT_EQ(stat(options_.unix_paths[0].c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0660U);
    grpc::ClientContext context;
    set_deadline(context);
    v1::Status response;
    EXPECT_TRUE(v1::GatewayStatus::NewStub(channel_)->GetStatus(&context, {}, &response).ok());
    EXPECT_EQ(response.workers(), 3U);
}

TEST_F(RpcServer, AnUnknownGroupAndAMissingCertificateAreRefusedByName) {
    options_.socket_group = "no-such-group-here";
    auto refused = Server::start(options_, {gateway_, gateway_, gateway_});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("no-such-group-here"), std::string::npos);
    options_.socket_group.clear();
    options_.tcp_addresses = {"127.0.0.1:0"};
    options_.tls_cert = "/nonexistent/cert.pem";
    refused = Server::start(options_, {gateway_, gateway_, gateway_});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("--tls-cert: /nonexistent/cert.pem cannot be read"),
              std::string::npos);
}

// A certification authority, a server and two clients, created with openssl(1).
class RpcTls : public RpcServer {
 protected:
    void SetUp() override {
        RpcServer::SetUp();
        if (IsSkipped()) {
            return;
        }
        if (!make(R"(
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -subj /CN=test-ca -days 2 &&
            leaf server /CN=gateway 'subjectAltName=IP:127.0.0.1' &&
            leaf admin /CN=edge-sync 'subjectAltName=DNS:edge-sync.example' &&
            leaf san /O=nobody 'subjectAltName=DNS:by-san.example' &&
            leaf reader /CN=dashboard 'subjectAltName=DNS:dashboard.example')")) {
            GTEST_SKIP() << "openssl(1) is not there to make certificates";
        }
        options_.tcp_addresses = {"127.0.0.1:" + std::to_string(test::free_port())};
        options_.tls_cert = file("server.pem");
        options_.tls_key = file("server.key");
        options_.tls_client_ca = file("ca.pem");
        options_.tls_admin_names = {"edge-sync", "by-san.example"};
        start();
    }
    // Runs a script in the folder. `leaf NAME SUBJECT EXTENSION` creates NAME.pem and NAME.key, signed by
    // ca.pem.
    bool make(const std::string& script) const {
        const std::string all = "cd '" + folder_.string() + R"(' && exec 2>/dev/null &&
            leaf() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key -out $1.csr -subj "$2" &&
                     printf '%s\n' "$3" > $1.ext && openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out $1.pem -extfile $1.ext; } &&
        )" + script;
        return std::system(all.c_str()) == 0;
    }
    // The gateway's name in the certificate that a new connection receives; "": the connection fails.
    std::string served_name(const std::string& as_whom = "reader") const {
        grpc::ClientContext context;
        set_deadline(context);
        v1::Status response;
        const auto channel = as(as_whom);
        if (!v1::GatewayStatus::NewStub(channel)->GetStatus(&context, {}, &response).ok()) {
            return "";
        }
        const auto names = context.auth_context()->FindPropertyValues("x509_common_name");
        return names.empty() ? "" : std::string(names.front().data(), names.front().size());
    }
    tls::Material material_of(const std::string& name) const {
        return tls::read_material({file(name + ".pem"), file(name + ".key"), file("ca.pem")}, {}).value();
    }
    std::string file(const std::string& name) const { return (folder_ / name).string(); }
    std::string text(const std::string& name) const {
        std::ifstream in(file(name));
        return {std::istreambuf_iterator<char>(in), {}};
    }
    std::shared_ptr<grpc::Channel> as(const std::string& name) const {
        grpc::SslCredentialsOptions tls;
        tls.pem_root_certs = text("ca.pem");
        if (!name.empty()) {
            tls.pem_cert_chain = text(name + ".pem");
            tls.pem_private_key = text(name + ".key");
        }
        // A separate connection for each channel, so that each channel makes its own handshake.
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        return grpc::CreateCustomChannel(options_.tcp_addresses[0], grpc::SslCredentials(tls), arguments);
    }
    static grpc::Status read_status(const std::shared_ptr<grpc::Channel>& channel) {
        grpc::ClientContext context;
        set_deadline(context);
        v1::Status response;
        return v1::GatewayStatus::NewStub(channel)->GetStatus(&context, {}, &response);
    }
    static grpc::Status set_level(const std::shared_ptr<grpc::Channel>& channel) {
        grpc::ClientContext context;
        set_deadline(context);
        v1::SetLogLevelRequest request;
        request.set_level("info");
        v1::SetLogLevelResponse response;
        return v1::GatewayDebug::NewStub(channel)->SetLogLevel(&context, request, &response);
    }
    static grpc::Status open_stream(const std::shared_ptr<grpc::Channel>& channel) {
        grpc::ClientContext context;
        set_deadline(context);
        const auto stream = v1::GatewayConfig::NewStub(channel)->SyncState(&context);
        v1::GatewayMessage message;
        if (stream->Read(&message)) {
            stream->WritesDone();
            while (stream->Read(&message)) {
            }
        }
        return stream->Finish();
    }
};

TEST_F(RpcTls, NamedAdministratorsMayDoEverything) {
    for (const char* name : {"admin", "san"}) {
        EXPECT_TRUE(read_status(as(name)).ok()) << name;
        EXPECT_TRUE(set_level(as(name)).ok()) << name;
        EXPECT_TRUE(open_stream(as(name)).ok()) << name;
    }
}

TEST_F(RpcTls, OtherCertificatesOnlyReadAndAreToldWhichNameIsMissing) {
    EXPECT_TRUE(read_status(as("reader")).ok());
    const auto stream = open_stream(as("reader"));
    EXPECT_EQ(stream.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_NE(stream.error_message().find("this client is dashboard"), std::string::npos)
        << stream.error_message();
    EXPECT_EQ(set_level(as("reader")).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(RpcTls, ReadersLeaveHalfOfTheThreadsToAdministrators) {
    gateway_.endless = true;
    const auto channel = as("reader");
    const auto stub = v1::GatewayStatus::NewStub(channel);
    std::deque<grpc::ClientContext> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<v1::Connection>>> readers;
    int refused = 0;
    for (int i = 0; i < kReadersMax + 10; ++i) {
        readers.push_back(stub->ListConnections(&contexts.emplace_back(), {}));
        v1::Connection connection;  // read once, so that the call is in progress
        refused += readers.back()->Read(&connection) ? 0 : 1;
    }
    EXPECT_EQ(refused, 10);
    EXPECT_EQ(read_status(channel).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(read_status(as("admin")).ok());
    for (grpc::ClientContext& context : contexts) {
        context.TryCancel();
    }
    bool is_free = false;  // the slots of the readers are released
    for (int i = 0; i < 1'000 && !is_free; ++i) {
        is_free = read_status(channel).ok();
    }
    EXPECT_TRUE(is_free);
}

TEST_F(RpcTls, WithoutACertificateThereIsNoConnection) {
    EXPECT_EQ(read_status(as("")).error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(read_status(grpc::CreateChannel(options_.tcp_addresses[0], grpc::InsecureChannelCredentials()))
                  .error_code(),
              grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RpcTls, RenewedFiles_AreServedToNewConnectionsAndOpenOnesGoOn) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const auto channel = as("admin");
    const auto stream = v1::GatewayConfig::NewStub(channel)->SyncState(&context);
    v1::GatewayMessage message;
    ASSERT_TRUE(stream->Read(&message));
    EXPECT_EQ(served_name(), "gateway");
    ASSERT_TRUE(make("leaf renewed /CN=gateway-2 subjectAltName=IP:127.0.0.1 && mv renewed.pem server.pem"));
    // For some time the certificate is the new one and the key the old one.
    std::this_thread::sleep_for(std::chrono::milliseconds(2'500));
    EXPECT_EQ(served_name(), "gateway") << "a pair that does not match is not served";
    ASSERT_TRUE(make("mv renewed.key server.key"));
    std::string served;
    for (int i = 0; i < 300 && served != "gateway-2"; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        served = served_name();
        ASSERT_NE(served, "") << "a renewal costs no connection";
    }
    EXPECT_EQ(served, "gateway-2");
    ASSERT_TRUE(stream->Write(full(1)));
    EXPECT_TRUE(read(*stream).has_applied()) << "the stream of before the renewal goes on";
    context.TryCancel();
}

TEST_F(RpcTls, AnotherClientAuthority_CountsForNewConnections) {
    const test::LogCapture log("rpc");
    EXPECT_TRUE(read_status(as("reader")).ok());
    const auto former = material_of("reader");
    const auto old_reader = as("reader");
    ASSERT_TRUE(make(
        R"(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca2.key -out ca2.pem -subj /CN=other-ca -days 2 &&
                        mv ca2.pem ca.pem)"));
    for (int i = 0; i < 300 && log.count("TLS files reloaded") == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_FALSE(read_status(old_reader).ok());
    EXPECT_GE(log.count("client certificate refused: CN=dashboard (issuer CN=test-ca): "), 1U)
        << testing::PrintToString(log.lines());
    const auto trouble = tls::handshake_trouble(options_.tcp_addresses[0], former, std::chrono::seconds(5));
    ASSERT_TRUE(trouble);
    EXPECT_TRUE(trouble->starts_with("certificate refused by the gateway: ours is CN=dashboard")) << *trouble;
}

// The client chooses the chain sent with its certificate, which may contain our own authority.
TEST_F(RpcTls, AForgedCertificateBesideTheRealAuthority_IsRefused) {
    const test::LogCapture log("rpc");
    ASSERT_TRUE(make(
        R"(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout forged.key -out forged.leaf -subj /CN=edge-sync -days 2 &&
                        cat forged.leaf ca.pem > forged.pem)"));
    EXPECT_EQ(read_status(as("forged")).error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_GE(
        log.count("client certificate refused: CN=edge-sync (issuer CN=edge-sync): self-signed certificate"),
        1U)
        << testing::PrintToString(log.lines());
}

TEST_F(RpcTls, AnIntermediateAuthorityInTheChain_IsFollowed) {
    ASSERT_TRUE(make(R"(leaf between /CN=between basicConstraints=critical,CA:TRUE &&
                        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout below.key -out below.csr -subj /CN=below &&
                        openssl x509 -req -in below.csr -CA between.pem -CAkey between.key -CAcreateserial -days 2 -out below.leaf &&
                        cat below.leaf between.pem > below.pem)"));
    EXPECT_TRUE(read_status(as("below")).ok());
}

TEST_F(RpcTls, AHandshakeThatFails_IsExplained) {
    EXPECT_FALSE(
        tls::handshake_trouble(options_.tcp_addresses[0], material_of("reader"), std::chrono::seconds(5)));
    ASSERT_TRUE(
        make("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout x.key -out x.pem "
             "-subj /CN=x -days 2"));
    tls::Material wrong_authority = material_of("reader");
    wrong_authority.authority_pem = text("x.pem");
    EXPECT_EQ(tls::handshake_trouble(options_.tcp_addresses[0], wrong_authority, std::chrono::seconds(5)),
              "certificate refused: the gateway's certificate is not accepted by the CA given here: unable "
              "to get local issuer certificate");
    const size_t colon = options_.tcp_addresses[0].rfind(':');
    EXPECT_EQ(tls::handshake_trouble("localhost" + options_.tcp_addresses[0].substr(colon),
                                     material_of("reader"), std::chrono::seconds(5)),
              "certificate refused: the gateway's certificate is not accepted by the CA given here: hostname "
              "mismatch");
}

TEST_F(RpcTls, AClientWithoutACertificate_IsLogged) {
    const test::LogCapture log("rpc");
    EXPECT_EQ(read_status(as("")).error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_GE(log.count("TLS handshake failed: peer did not return a certificate"), 1U);
}

TEST_F(RpcTls, ASecondServerOnTheSameAddressIsRefusedByName) {
    ServerOptions again = options_;
    again.unix_paths.clear();
    const auto refused = Server::start(again, {gateway_, gateway_, gateway_});
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().what.starts_with("cannot listen on " + options_.tcp_addresses[0] +
                                                 ": Address already in use"))
        << refused.error().what;
}

// A client that connects from `source` and sends nothing by itself.
class SilentClient {
 public:
    SilentClient(const char* source, const std::string& address)
        : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in from{};
        from.sin_family = AF_INET;
        ::inet_pton(AF_INET, source, &from.sin_addr);
        sockaddr_in to = from;
        to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
        // A refused connection may end before connect() returns.
        EXPECT_TRUE(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0 ||
                    errno == ECONNRESET);
    }
    void send(std::string_view text) const {
        EXPECT_EQ(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    // True if the server has closed the connection within `patience`.
    [[nodiscard]] bool is_closed(std::chrono::milliseconds patience = {}) const {
        pollfd ends{.fd = fd_.get(), .events = POLLIN, .revents = 0};
        char byte = 0;
        while (::poll(&ends, 1, static_cast<int>(patience.count())) > 0) {
            if (::recv(fd_.get(), &byte, 1, MSG_DONTWAIT) <= 0) {
                return true;
            }
        }
        return false;
    }

 private:
    Descriptor fd_;
};

TEST_F(RpcTls, IdleClientsOfOneSource_AreCappedAndOthersAreServed) {
    const test::LogCapture log("rpc");
    std::deque<SilentClient> idle;
    for (int i = 0; i < 300; ++i) {
        idle.emplace_back("127.0.0.3", options_.tcp_addresses[0]);
    }
    const auto open = [&idle] {
        return std::ranges::count_if(idle, [](const SilentClient& client) { return !client.is_closed(); });
    };
    EXPECT_TRUE(test::comes_true(
        [&] { return server_->tcp()->counts().refused_per_source == 300 - kConnectionsPerSourceMax; }));
    EXPECT_EQ(open(), kConnectionsPerSourceMax);
    EXPECT_EQ(server_->tcp()->counts().open, kConnectionsPerSourceMax);
    EXPECT_TRUE(read_status(as("admin")).ok()) << "of another source";
    EXPECT_TRUE(read_status(channel_).ok()) << "by the Unix socket";
    EXPECT_EQ(open(), kConnectionsPerSourceMax);
    const size_t lines = log.count(
        "connection from 127.0.0.3 refused: the limit of 32 from one source, or 64 from loopback, is "
        "reached");
    EXPECT_GE(lines, 1u);
    EXPECT_LE(lines, 20u) << "anybody can cause these lines";
    idle.clear();
    EXPECT_TRUE(test::comes_true([&] { return server_->tcp()->counts().open == 0; }))
        << server_->tcp()->counts().open;
    const SilentClient again("127.0.0.3", options_.tcp_addresses[0]);
    EXPECT_TRUE(test::comes_true([&] { return server_->tcp()->counts().open == 1; }));
    EXPECT_FALSE(again.is_closed());
}

// The acceptor holds a duplicate of the descriptor. The client must see the end of the connection
// nevertheless, and its slot must be released.
TEST_F(RpcTls, AConnectionThatGrpcCloses_EndsAndIsNoLongerCounted) {
    const SilentClient client("127.0.0.3", options_.tcp_addresses[0]);
    EXPECT_TRUE(test::comes_true([&] { return server_->tcp()->counts().open == 1; }));
    client.send("GET / HTTP/1.1\r\n\r\n");  // no TLS
    EXPECT_TRUE(client.is_closed(std::chrono::seconds(10)));
    EXPECT_TRUE(test::comes_true([&] { return server_->tcp()->counts().open == 0; }));
}

TEST_F(RpcTls, AStoppedServer_EndsItsConnections) {
    const auto channel = as("admin");
    EXPECT_TRUE(read_status(channel).ok());
    const SilentClient client("127.0.0.3", options_.tcp_addresses[0]);
    EXPECT_TRUE(test::comes_true([&] { return server_->tcp()->counts().open == 2; }));
    server_->stop();
    EXPECT_TRUE(client.is_closed(std::chrono::seconds(10)));
    EXPECT_EQ(read_status(channel).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RpcTls, AServerWithoutUnixSocket_IsServedByTcp) {
    ServerOptions tcp_only = options_;
    tcp_only.unix_paths.clear();
    tcp_only.tcp_addresses = {"127.0.0.1:0"};
    auto other = Server::start(tcp_only, {gateway_, gateway_, gateway_});
    ASSERT_TRUE(other) << other.error().what;
    options_.tcp_addresses = {"127.0.0.1:" + std::to_string((*other)->tcp()->port())};
    EXPECT_TRUE(read_status(as("admin")).ok());
}

TEST(Errors, EachKindHasItsCode) {
    EXPECT_EQ(status_code(Errc::InvalidArgument), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status_code(Errc::NotFound), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(status_code(Errc::Outdated), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status_code(Errc::Exhausted), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status_code(Errc::Unavailable), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(to_status(Error{Errc::Internal, "what"}).error_message(), "what");
    EXPECT_TRUE(to_status(Status()).ok());
}

}  // namespace server_test
}  // namespace penstock::rpc
