// SPDX-License-Identifier: Apache-2.0
// Copies of another gateway's connections over a real socket: its sender behind a gRPC server, and this
// gateway's followers. Unix sockets stand for TCP, so certificates are not used.
#include "control/gateway/shares/share_copies.hpp"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/rpc/peer_service.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/copies/store.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/unit/gateway/shares/copy_test_plan.hpp"

namespace penstock::gateway {
namespace share_copies_test {

using namespace copy_test;
using namespace std::chrono_literals;

constexpr uint32_t kCapacity = 4'096;

// The other gateway, edge-2: a table of connections and a server.
class OtherGateway {
 public:
    OtherGateway(std::string address, std::function<std::shared_ptr<const GatewayShares>()> plan)
        : memory_(conn::Table::memory_needed(kCapacity)),
          table(conn::Table::create(memory_.span(), kCapacity, {3, 5}).value()),
          address_(std::move(address)),
          sender_({.shares = std::move(plan),
                   .tables = {&table},
                   .clock = CoarseClock{TscRate{}},
                   .now = [] { return CoarseTime{3'000}; },
                   .share_age = 0s,
                   .pass = 50ms,
                   .give_back =
                       [this](const std::string& gateway, uint32_t&, std::vector<std::byte>& out) {
                           EXPECT_EQ(gateway, "edge-1");
                           ++given_back;
                           for (uint32_t n = 0; n < own_connections; ++n) {
                               copies::append_held(out, n, numbered(900 + n), {3'000},
                                                   CoarseClock{TscRate{}});
                           }
                           return false;
                       }}) {
        start();
    }
    ~OtherGateway() { stop(); }
    void start() {
        service_ = std::make_unique<rpc::PeerService>(&sender_, authorizer_);
        grpc::ServerBuilder builder;
        builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
        builder.RegisterService(service_.get());
        server_ = builder.BuildAndStart();
        ASSERT_NE(server_, nullptr);
    }
    void stop() {
        if (service_) {
            service_->stop();
        }
        server_.reset();
        service_.reset();
    }
    void insert(uint32_t n, const IpAddr& vip = kVipOfShare0) {
        const conn::Connection connection = numbered(n, vip);
        const auto inserted =
            table.insert(connection, table.hash(connection.forward), table.hash(connection.reverse));
        EXPECT_EQ(inserted.status, conn::InsertStatus::Inserted);
    }
    void erase(uint32_t n) {
        const conn::Connection connection = numbered(n);
        table.erase(table.find(connection.forward, table.hash(connection.forward)).index);
    }

 private:
    test::AlignedMemory memory_;

 public:
    conn::Table table;
    std::atomic<int> given_back{0};
    std::atomic<uint32_t> own_connections{0};  // of the caller, which this gateway holds

 private:
    std::string address_;
    CopySender sender_;
    rpc::Authorizer authorizer_;
    std::unique_ptr<rpc::PeerService> service_;
    std::unique_ptr<grpc::Server> server_;
};

class ShareCopiesTest : public testing::Test {
 protected:
    void SetUp() override {
        if (test::kUnderThreadSanitizer) {
            GTEST_SKIP() << test::kGrpcHidesItsLocks;
        }
        std::string name = testing::TempDir() + "penstock-copies-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        address_ = "unix:" + (folder_ / "edge-2.sock").string();
        plan_ = plan_of("edge-1");
        store_ = *copies::Store::create(1'024, {7, 11});
        other_ = std::make_unique<OtherGateway>(address_, [this] { return plan_of("edge-2"); });
    }
    void TearDown() override {
        copies_.reset();
        other_.reset();
        std::filesystem::remove_all(folder_);
    }
    // The plan as seen by a gateway, with the address of the socket.
    std::shared_ptr<const GatewayShares> plan_of(const std::string& gateway, int version = 1) {
        shares::Plan plan = planned("edge-1", version)->plan();
        plan.gateways[1].address = address_;
        return std::make_shared<const GatewayShares>(std::move(plan), gateway);
    }
    ShareCopies::Options options() {
        ShareCopies::Options out;
        out.sender.shares = [this] { return plan_; };
        out.sender.clock = CoarseClock{TscRate{}};
        out.sender.now = [] { return CoarseTime{3'000}; };
        out.store = store_.get();
        out.material = [] { return std::make_shared<const tls::Material>(); };
        out.is_protected = true;
        out.limits = [] { return [](const conn::Connection&) { return 1'000'000; }; };
        out.lives = [](const conn::Connection&) { return false; };
        return out;
    }
    void start(ShareCopies::Options options) {
        copies_ = std::make_unique<ShareCopies>(std::move(options));
        copies_->start();
    }
    ShareCopies::Channel channel(const std::string& gateway = "edge-2") {
        for (ShareCopies::Channel& each : copies_->channels(*plan_)) {
            if (each.gateway == gateway) {
                return each;
            }
        }
        ADD_FAILURE() << "no channel of " << gateway;
        return {};
    }
    void await(const std::string& what, const std::function<bool()>& condition) {
        for (const test::Patience patience; !condition() && patience.wait();) {
        }
        EXPECT_TRUE(condition()) << what;
    }
    void await_copies(uint64_t held) {
        await("copies", [&] {
            const auto now = channel();
            return now.view.state == ChannelState::Complete && now.counts.held == held;
        });
    }

    std::filesystem::path folder_;
    std::string address_;
    std::shared_ptr<const GatewayShares> plan_;
    std::unique_ptr<copies::Store> store_;
    std::unique_ptr<OtherGateway> other_;
    std::unique_ptr<ShareCopies> copies_;
};

TEST_F(ShareCopiesTest, CopiesFollowTheTablesOfTheOtherGateway) {
    other_->insert(1);
    other_->insert(2, kVipOfShare1);
    other_->insert(3, kVipOfShare2);
    start(options());
    await_copies(2);
    EXPECT_EQ(copies_->held_in(0), 1U);
    EXPECT_EQ(copies_->held_in(1), 1U);
    other_->insert(4);
    await_copies(3);
    other_->erase(1);
    await_copies(2);
    EXPECT_FALSE(store_->find(numbered(1).forward));
    EXPECT_TRUE(store_->find(numbered(4).forward));
    EXPECT_EQ(channel("edge-3").has_common_shares, false);
    EXPECT_EQ(channel("edge-4").view.state, ChannelState::Off) << "no address in the plan";
    EXPECT_EQ(ShareCopies::summary_of(copies_->channels(*plan_)), ChannelState::Complete);
}

TEST_F(ShareCopiesTest, ANewProcessGetsItsConnectionsBackOnce) {
    other_->own_connections = 1;
    other_->insert(1);
    start(options());
    await_copies(1);
    EXPECT_EQ(own_copies(*store_), 1U);
    EXPECT_EQ(other_->given_back, 1);
    other_->stop();
    await("the loss is shown", [&] { return channel().view.state == ChannelState::Connecting; });
    other_->start();
    await("a second stream", [&] { return channel().view.streams == 2; });
    await_copies(1);
    EXPECT_EQ(other_->given_back, 1);
    EXPECT_EQ(own_copies(*store_), 1U) << "no stream ends it";
    auto adopted = options();
    adopted.own_of = [](const packet::FlowKey& key) {
        return key == numbered(900).reverse ? std::optional(copies::OwnConnection{}) : std::nullopt;
    };
    copies_.reset();
    store_ = *copies::Store::create(1'024, {7, 11});
    adopted.store = store_.get();
    start(std::move(adopted));
    await_copies(1);
    EXPECT_EQ(other_->given_back, 2);
    EXPECT_EQ(own_copies(*store_), 0U) << "a worker has it";
}

TEST_F(ShareCopiesTest, AGatewayThatIsGoneLeavesItsCopiesAndIsCalledAgain) {
    other_->insert(1);
    other_->insert(2);
    start(options());
    await_copies(2);
    other_->stop();
    await("the loss is shown", [&] { return channel().view.state == ChannelState::Connecting; });
    EXPECT_NE(channel().view.fault, "");
    EXPECT_EQ(channel().counts.held, 2U);
    other_->erase(1);
    other_->insert(3);
    other_->insert(4);
    other_->start();
    await_copies(3);
    EXPECT_EQ(channel().view.fault, "");
    EXPECT_FALSE(store_->find(numbered(1).forward)) << "not repeated by the new stream";
}

TEST_F(ShareCopiesTest, AMessageBeyondTheLimitEndsTheStreamAndIsNotRead) {
    other_->own_connections = 20'000;  // in one message, of more than twice a batch
    start(options());
    await("the reason is shown",
          [&] { return channel().view.fault.find("larger than max") != std::string::npos; });
    EXPECT_EQ(channel().counts.received, 0U);
    EXPECT_EQ(own_copies(*store_), 0U);
}

TEST_F(ShareCopiesTest, FailBackIsRefusedUntilTheCopiesAreComplete) {
    other_->insert(1);
    other_->stop();
    std::atomic<uint64_t> left{~uint64_t{0}};
    auto by_command = options();
    by_command.fail_back = ShareReturn::FailBack::ByCommand;
    by_command.on_return = [&](uint64_t returning) { left = returning; };
    start(std::move(by_command));
    EXPECT_EQ(copies_->review_returning(*plan_), 0b0011U);
    EXPECT_EQ(copies_->fail_back().error().what,
              "share 0 waits for copies of all connections of gateway edge-2; penstockctl get gateways shows "
              "the channel");
    other_->start();
    await("only the command is missing", [&] { return left == 0b0001; });
    EXPECT_EQ(copies_->held(), 0b0001U);
    EXPECT_EQ(copies_->fail_back().value(), 0b0001U);
    EXPECT_EQ(left, 0U) << "announced before the command ends";
    EXPECT_EQ(copies_->held(), 0U);
    EXPECT_EQ(copies_->fail_back().value(), 0U);
    copies_->stop();
}

TEST_F(ShareCopiesTest, ANewPlanBeginsStreamsAnewAndEndsOthers) {
    other_->insert(1);
    start(options());
    await_copies(1);
    plan_ = plan_of("edge-1", 2);
    copies_->set_plan(plan_);
    await("a second stream", [&] { return channel().view.streams == 2; });
    await_copies(1);
    plan_ = std::make_shared<const GatewayShares>(
        shares::parse_plan("version 3\ngateway edge-1 address=a:1\ngateway edge-2\nend\n").value(), "edge-1");
    copies_->set_plan(plan_);
    EXPECT_EQ(channel().view.state, ChannelState::Off) << "no address any more";
    EXPECT_EQ(store_->size(), 1U);
    plan_ = std::make_shared<const GatewayShares>(
        shares::parse_plan("version 4\ngateway edge-1 address=a:1\nend\n").value(), "edge-1");
    copies_->set_plan(plan_);
    EXPECT_EQ(store_->size(), 0U) << "no share in common any more";
}

TEST_F(ShareCopiesTest, WithoutCertificatesOrRoomNothingIsAsked) {
    other_->insert(1);
    auto unprotected = options();
    unprotected.is_protected = false;
    start(std::move(unprotected));
    EXPECT_EQ(channel().view.state, ChannelState::Unprotected);
    copies_->set_plan(plan_of("edge-1", 2));
    EXPECT_EQ(channel().view.state, ChannelState::Unprotected);
    auto off = options();
    off.store = nullptr;
    start(std::move(off));
    EXPECT_EQ(channel().view.state, ChannelState::Off);
    EXPECT_EQ(copies_->capacity(), 0U);
    EXPECT_EQ(copies_->held_in(0), 0U);
}

TEST_F(ShareCopiesTest, FilesThatAreNotValidAreTheReason) {
    auto broken = options();
    broken.material = [] { return nullptr; };
    start(std::move(broken));
    await("the reason", [&] {
        return channel().view.fault == "the files of --tls-cert, --tls-key and --tls-client-ca are not valid";
    });
    EXPECT_EQ(channel().view.state, ChannelState::Connecting);
}

}  // namespace share_copies_test
}  // namespace penstock::gateway
