// SPDX-License-Identifier: Apache-2.0
// Copies of connections over a real socket, with a fake gateway.
#include "control/rpc/peer_service.hpp"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/rpc/limits.hpp"
#include "penstock/v1/peers.grpc.pb.h"
#include "tests/support/patience.hpp"
#include "tests/support/sanitizers.hpp"

namespace penstock::rpc {
namespace peer_service_test {

using namespace std::chrono_literals;

// "edge-9" is not in its plan, "edge-8" has nothing in common with it.
class FakePeer final : public PeerTarget {
 public:
    Result<std::vector<std::string>> certificate_names_of(const std::string& gateway) const override {
        if (gateway == "edge-9") {
            return fail(Errc::NotFound, "edge-9 is not in the plan");
        }
        if (gateway == "edge-8") {
            return fail(Errc::PermissionDenied, "edge-8 has no share in common with edge-1");
        }
        return std::vector<std::string>{gateway, "192.0.2.2"};
    }
    Status send_copies(const v1::FollowConnectionsRequest& request, CopyReceiver& receiver) override {
        v1::ConnectionCopies copies;
        copies.set_gateway("edge-1");
        copies.set_records(request.gateway());
        copies.set_pass_ended(true);
        ++open;
        bool has_receiver = receiver.send(copies);
        if (endless) {
            copies.set_records(std::string(100'000, 'x'));
            while (has_receiver) {
                has_receiver = receiver.send(copies);
            }
        }
        while (has_receiver && !has_changed_plan) {
            has_receiver = receiver.wait(20ms);
        }
        --open;
        return has_receiver ? fail(Errc::PermissionDenied, "the plan has changed") : Status{};
    }
    std::atomic<int> open{0};
    std::atomic<bool> endless{false}, has_changed_plan{false};
};

class Peers : public testing::Test {
 protected:
    struct Call {
        grpc::ClientContext context;
        std::unique_ptr<grpc::ClientReader<v1::ConnectionCopies>> reader;
    };

    void SetUp() override {
        if (test::kUnderThreadSanitizer) {
            GTEST_SKIP() << test::kGrpcHidesItsLocks;
        }
        std::string name = testing::TempDir() + "penstock-peers-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override {
        service_.stop();
        server_.reset();
        std::filesystem::remove_all(folder_);
    }
    void start(PeerService& service) {
        const std::string address = "unix:" + (folder_ / "gateway.sock").string();
        grpc::ServerBuilder builder;
        builder.AddListeningPort(address, grpc::InsecureServerCredentials());
        builder.RegisterService(&service);
        server_ = builder.BuildAndStart();
        ASSERT_NE(server_, nullptr);
        stub_ = v1::GatewayPeers::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    }
    std::unique_ptr<Call> call(const std::string& gateway, uint32_t format = 1) {
        auto out = std::make_unique<Call>();
        out->context.set_deadline(std::chrono::system_clock::now() + 60s);
        v1::FollowConnectionsRequest request;
        request.set_gateway(gateway);
        request.set_format(format);
        out->reader = stub_->FollowConnections(&out->context, request);
        return out;
    }
    grpc::Status refusal(const std::string& gateway, uint32_t format = 1) {
        const auto refused = call(gateway, format);
        v1::ConnectionCopies copies;
        EXPECT_FALSE(refused->reader->Read(&copies));
        return refused->reader->Finish();
    }
    // An open stream: its first message has been received.
    std::unique_ptr<Call> opened(const std::string& gateway) {
        auto out = call(gateway);
        v1::ConnectionCopies copies;
        EXPECT_TRUE(out->reader->Read(&copies));
        EXPECT_EQ(copies.records(), gateway);
        EXPECT_EQ(copies.gateway(), "edge-1");
        EXPECT_TRUE(copies.pass_ended());
        return out;
    }
    // Reads until the stream has ended.
    static grpc::Status end_of(Call& call) {
        v1::ConnectionCopies copies;
        while (call.reader->Read(&copies)) {
        }
        return call.reader->Finish();
    }
    void await_open(int count) {
        for (const test::Patience patience; target_.open != count && patience.wait();) {
        }
        EXPECT_EQ(target_.open, count);
    }

    std::filesystem::path folder_;
    FakePeer target_;
    Authorizer authorizer_;
    PeerService service_{&target_, authorizer_};
    std::unique_ptr<grpc::Server> server_;
    std::unique_ptr<v1::GatewayPeers::Stub> stub_;
};

TEST_F(Peers, AStreamCarriesCopiesUntilItIsCancelled) {
    start(service_);
    const auto stream = opened("edge-2");
    stream->context.TryCancel();
    EXPECT_EQ(end_of(*stream).error_code(), grpc::StatusCode::CANCELLED);
    await_open(0);
}

TEST_F(Peers, EachReasonOfARefusalHasItsCode) {
    start(service_);
    EXPECT_EQ(refusal("edge-9").error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(refusal("edge-8").error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(refusal("edge-2", 0).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(target_.open, 0);
}

TEST_F(Peers, WithoutAPlanThereAreNoCopies) {
    PeerService without(nullptr, authorizer_);
    start(without);
    const auto status = refusal("edge-2");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status.error_message(), "this gateway has no plan of shares (--shares)");
    server_.reset();
}

TEST_F(Peers, AChangedPlanEndsAStreamWithItsReason) {
    start(service_);
    const auto stream = opened("edge-2");
    target_.has_changed_plan = true;
    const auto status = end_of(*stream);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(status.error_message(), "the plan has changed");
}

TEST_F(Peers, ASecondStreamOfAGatewayEndsTheFirst) {
    start(service_);
    const auto first = opened("edge-2");
    const auto other = opened("edge-3");
    const auto second = opened("edge-2");
    EXPECT_FALSE(end_of(*first).ok());
    await_open(2);
    second->context.TryCancel();
    other->context.TryCancel();
    await_open(0);
}

TEST_F(Peers, AStopEndsStreamsThatWaitForTheirReaders) {
    target_.endless = true;
    start(service_);
    const auto stream = opened("edge-2");
    service_.stop();
    await_open(0);
    EXPECT_FALSE(end_of(*stream).ok());
    EXPECT_EQ(refusal("edge-3").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Peers, TheNumberOfStreamsIsLimited) {
    start(service_);
    std::vector<std::unique_ptr<Call>> streams;
    for (int i = 0; i < kPeerStreamsMax; ++i) {
        streams.push_back(opened("gateway-" + std::to_string(i)));
    }
    EXPECT_EQ(refusal("edge-2").error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    streams.front()->context.TryCancel();
    await_open(kPeerStreamsMax - 1);
}

}  // namespace peer_service_test
}  // namespace penstock::rpc
