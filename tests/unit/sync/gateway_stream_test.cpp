// GatewayStream against a gateway in the same process, over a real Unix socket.
#include "control/sync/gateway_stream.hpp"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "penstock/v1/config.grpc.pb.h"
#include "tests/support/thread_sanitizer.hpp"
#include "tests/unit/manifest/temporary_folder.hpp"

namespace penstock::sync {
namespace {

using namespace std::chrono_literals;

// Applies everything and remembers it.
class FakeGateway final : public v1::GatewayConfig::Service {
 public:
    explicit FakeGateway(const std::string& target) {
        grpc::ServerBuilder builder;
        builder.AddListeningPort(target, grpc::InsecureServerCredentials());
        builder.RegisterService(this);
        server_ = builder.BuildAndStart();
    }
    ~FakeGateway() override { server_->Shutdown(std::chrono::system_clock::now()); }

    grpc::Status SyncState(grpc::ServerContext*, grpc::ServerReaderWriter<v1::GatewayMessage, v1::StateMessage>* stream) override {
        v1::GatewayMessage hello;
        hello.mutable_identity()->set_gateway_name("edge-1");
        hello.mutable_identity()->set_mode(v1::Identity::MODE_EXTERNAL);
        stream->Write(hello);
        v1::StateMessage message;
        while (stream->Read(&message)) {
            v1::GatewayMessage answer;
            *answer.mutable_applied()->mutable_version() = message.has_full() ? message.full().version() : message.delta().version();
            {
                const std::lock_guard lock(mutex_);
                received_.push_back(message);
            }
            changed_.notify_all();
            stream->Write(answer);
        }
        {
            const std::lock_guard lock(mutex_);
            ++ended_streams_;
        }
        changed_.notify_all();
        return grpc::Status::OK;
    }

    // The n-th message (from 1) that arrived; nullopt after 5 s.
    std::optional<v1::StateMessage> message(size_t n) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 5s, [&] { return received_.size() >= n; }) ? std::optional(received_[n - 1]) : std::nullopt;
    }
    bool stream_ends() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 5s, [&] { return ended_streams_ > 0; });
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<v1::StateMessage> received_;
    int ended_streams_ = 0;
    std::unique_ptr<grpc::Server> server_;
};

std::shared_ptr<const kube::ObjectSet> one_service(const std::string& address) {
    auto objects = std::make_shared<kube::ObjectSet>();
    objects->services[{"default", "web"}] = {.meta = {.namespace_name = "default", .name = "web"},
                                             .cluster_ip = "10.96.0.1",
                                             .external_ips = {address},
                                             .ports = {{.name = "http", .port = 80, .target_port = "80"}}};
    return objects;
}

class GatewayStreamTest : public testing::Test {
 protected:
    void SetUp() override {
        if (test::kUnderThreadSanitizer) {
            GTEST_SKIP() << test::kGrpcHidesItsLocks;
        }
    }
    GatewayStreamTest() { policy_.allowed_external_cidrs = {Prefix::parse("80.0.0.0/8").value()}; }

    test::TemporaryFolder disk_;
    client::Target target_{"unix:" + (disk_.path() / "gateway.sock").string()};
    semantics::Policy policy_;
};

TEST_F(GatewayStreamTest, SuppliesAGatewayWithAFullStateAndThenDifferences) {
    FakeGateway gateway(target_.text);
    GatewayStream stream(target_, {}, "me", policy_);
    stream.update(one_service("80.0.0.1"));
    const auto first = gateway.message(1);
    ASSERT_TRUE(first);
    ASSERT_EQ(first->full().services_size(), 1);
    EXPECT_EQ(first->full().services(0).frontends(0).address(), "80.0.0.1");
    stream.update(one_service("80.0.0.2"));
    const auto second = gateway.message(2);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->delta().base().version(), 1u);
}

TEST_F(GatewayStreamTest, FindsAGatewayThatComesLaterOrComesBack) {
    GatewayStream stream(target_, {}, "me", policy_);
    stream.update(one_service("80.0.0.1"));
    for (int life = 0; life < 2; ++life) {
        FakeGateway gateway(target_.text);
        const auto message = gateway.message(1);
        ASSERT_TRUE(message);
        EXPECT_TRUE(message->has_full()) << "it says that it has nothing";
    }
}

TEST_F(GatewayStreamTest, EndsItsStreamWhenItIsDestroyed) {
    FakeGateway gateway(target_.text);
    {
        GatewayStream stream(target_, {}, "me", policy_);
        stream.update(one_service("80.0.0.1"));
        ASSERT_TRUE(gateway.message(1));
    }
    EXPECT_TRUE(gateway.stream_ends());
}

TEST_F(GatewayStreamTest, EndsAtOnceAlsoWhereNobodyIsThere) {
    const auto begin = std::chrono::steady_clock::now();
    {
        GatewayStream stream(target_, {}, "me", policy_);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kRetryMax);
}

}  // namespace
}  // namespace penstock::sync
