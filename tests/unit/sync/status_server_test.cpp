// SPDX-License-Identifier: Apache-2.0
// The status service over a real socket.
#include "control/sync/status_server.hpp"

#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "control/sync/addresses/address_messages.hpp"
#include "penstock/v1/sync.grpc.pb.h"
#include "tests/support/sanitizers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/unit/sync/sync_reading.hpp"

namespace penstock::sync {
namespace status_server_test {

class StatusServerTest : public testing::Test {
 protected:
    void SetUp() override {
        if (penstock::test::kUnderThreadSanitizer) {
            GTEST_SKIP() << penstock::test::kGrpcHidesItsLocks;
        }
    }
    [[nodiscard]] std::string path() const { return folder_.path() / "sync.sock"; }

    penstock::test::ScratchFolder folder_;
};

TEST_F(StatusServerTest, ItAnswersWithTheReadingOnASocketOfMode0660) {
    const auto server = StatusServer::start(path(), "", test::example_reading);
    ASSERT_TRUE(server) << server.error().what;
    struct stat file{};
    ASSERT_EQ(stat(path().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777U, 0660U);
    const auto stub =
        v1::SyncStatus::NewStub(grpc::CreateChannel("unix:" + path(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::Sync answer;
    const grpc::Status status = stub->GetSync(&context, {}, &answer);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(answer, to_proto(test::example_reading())))
        << answer.DebugString();
}

TEST_F(StatusServerTest, PoolsAndAddressesAreThoseOfTheReading) {
    const auto server = StatusServer::start(path(), "", test::example_reading);
    ASSERT_TRUE(server) << server.error().what;
    const auto stub =
        v1::SyncStatus::NewStub(grpc::CreateChannel("unix:" + path(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext pools_context;
    v1::ListPoolsResponse pools;
    ASSERT_TRUE(stub->ListPools(&pools_context, {}, &pools).ok());
    EXPECT_TRUE(
        google::protobuf::util::MessageDifferencer::Equals(pools, pools_message(test::example_addresses())))
        << pools.DebugString();
    grpc::ClientContext addresses_context;
    v1::ListAddressesRequest request;
    request.set_name("web");
    v1::ListAddressesResponse addresses;
    ASSERT_TRUE(stub->ListAddresses(&addresses_context, request, &addresses).ok());
    ASSERT_EQ(addresses.services_size(), 1);
    EXPECT_EQ(addresses.services(0).service().namespace_(), "shop");
}

TEST_F(StatusServerTest, WithoutAssignmentPoolsAndAddressesAreNotFound) {
    const auto server = StatusServer::start(path(), "", [] {
        SyncReading reading = test::example_reading();
        reading.addresses.reset();
        return reading;
    });
    ASSERT_TRUE(server) << server.error().what;
    const auto stub =
        v1::SyncStatus::NewStub(grpc::CreateChannel("unix:" + path(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext pools_context;
    v1::ListPoolsResponse pools;
    const grpc::Status none = stub->ListPools(&pools_context, {}, &pools);
    EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_NE(none.error_message().find("assigns no addresses"), std::string::npos) << none.error_message();
    grpc::ClientContext addresses_context;
    v1::ListAddressesResponse addresses;
    EXPECT_EQ(stub->ListAddresses(&addresses_context, {}, &addresses).error_code(),
              grpc::StatusCode::NOT_FOUND);
}

TEST_F(StatusServerTest, ASecondOneIsRefusedAndAThirdMayFollow) {
    auto first = StatusServer::start(path(), "", test::example_reading);
    ASSERT_TRUE(first) << first.error().what;
    const auto second = StatusServer::start(path(), "", test::example_reading);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::AlreadyExists);
    EXPECT_NE(second.error().what.find(path()), std::string::npos);
    first->reset();
    EXPECT_TRUE(StatusServer::start(path(), "", test::example_reading));
}

TEST_F(StatusServerTest, AnUnknownGroupIsRefusedByName) {
    const auto server = StatusServer::start(path(), "no-such-group", test::example_reading);
    ASSERT_FALSE(server);
    EXPECT_NE(server.error().what.find("no-such-group"), std::string::npos);
}

TEST(SyncMessage, SaysWhatTheReadingSays) {
    if (penstock::test::kUnderThreadSanitizer) {
        GTEST_SKIP() << "protobuf's headers lay out map fields otherwise under TSan than its library";
    }
    const v1::Sync message = to_proto(test::example_reading());
    EXPECT_EQ(message.source(), "https://192.0.2.1:6443");
    ASSERT_EQ(message.collections_size(), 3);
    EXPECT_EQ(message.collections(0).state(), v1::SyncCollection::STATE_WATCHING);
    EXPECT_EQ(message.collections(0).errors().at("http_429"), 1u);
    EXPECT_EQ(message.collections(1).stale_age_ms(), 12'000u);
    EXPECT_FALSE(message.collections(2).has_last_event_age_ms());
    EXPECT_FALSE(message.collections(2).has_stale_age_ms());
    ASSERT_EQ(message.gateways_size(), 2);
    EXPECT_EQ(message.gateways(0).lag_ms(), 40u);
    EXPECT_EQ(message.gateways(0).apply_latency().counts_size(),
              message.gateways(0).apply_latency().bounds_s_size() + 1);
    EXPECT_FALSE(message.gateways(1).has_applied_age_ms());
    EXPECT_EQ(message.events().dropped().at("rate"), 3u);
}

}  // namespace status_server_test
}  // namespace penstock::sync
