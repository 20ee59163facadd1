// SPDX-License-Identifier: Apache-2.0
// GatewayStream against a gateway in the same process, over a real Unix socket.
#include "control/sync/stream/gateway_stream.hpp"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "penstock/v1/config.grpc.pb.h"
#include "tests/support/sanitizers.hpp"
#include "tests/unit/manifest/temporary_folder.hpp"
#include "tests/unit/sync/model_gateway.hpp"
#include "tests/unit/sync/objects.hpp"

namespace penstock::sync {
namespace gateway_stream_test {

using namespace std::chrono_literals;

// Applies everything, over any number of streams, and keeps it for its lifetime.
class FakeGateway final : public v1::GatewayConfig::Service {
 public:
    explicit FakeGateway(const std::string& target) {
        grpc::ServerBuilder builder;
        builder.AddListeningPort(target, grpc::InsecureServerCredentials());
        builder.RegisterService(this);
        // Time in which the synchronous server notices its shutdown; the default is ten seconds.
        builder.SetSyncServerOption(grpc::ServerBuilder::CQ_TIMEOUT_MSEC, 50);
        server_ = builder.BuildAndStart();
    }
    ~FakeGateway() override {
        release();
        server_->Shutdown(std::chrono::system_clock::now());
    }

    template <typename Read>
    auto read(const Read& read) {
        const std::lock_guard lock(mutex_);
        return read(model_);
    }

    grpc::Status SyncState(grpc::ServerContext*,
                           grpc::ServerReaderWriter<v1::GatewayMessage, v1::StateMessage>* stream) override {
        v1::GatewayMessage hello;
        *hello.mutable_identity() = read([](const test::ModelGateway& model) { return model.identity(); });
        stream->Write(hello);
        v1::StateMessage message;
        while (wait_until_released() && stream->Read(&message)) {
            std::unique_lock lock(mutex_);
            const auto applied = model_.take(message);
            changed_.notify_all();
            lock.unlock();
            if (!applied) {
                return {grpc::StatusCode::FAILED_PRECONDITION, applied.error().what};
            }
            if (*applied) {
                v1::GatewayMessage answer;
                *answer.mutable_applied() = **applied;
                stream->Write(answer);
            }
        }
        const std::lock_guard lock(mutex_);
        model_.drop_parts();
        ++ended_streams_;
        changed_.notify_all();
        return grpc::Status::OK;
    }

    // True if `condition` became true for the gateway's state. The limit is generous, because the machine may
    // be busy.
    bool comes_to(const std::function<bool(const test::ModelGateway&)>& condition) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 30s, [&] { return condition(model_); });
    }
    bool stream_ends() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 30s, [&] { return ended_streams_ > 0; });
    }
    // Stops reading until release(), so that sent messages pile up.
    void hold() {
        const std::lock_guard lock(mutex_);
        held_ = true;
    }
    void release() {
        const std::lock_guard lock(mutex_);
        held_ = false;
        changed_.notify_all();
    }

 private:
    bool wait_until_released() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !held_; });
        return true;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    test::ModelGateway model_;
    int ended_streams_ = 0;
    bool held_ = false;
    std::unique_ptr<grpc::Server> server_;
};

// Answers the first state, and then sends its identity as fast as possible.
class TalkativeGateway final : public v1::GatewayConfig::Service {
 public:
    static constexpr int kMessages = 2'000;  // of 60 KB each: more than all buffers on the path hold

    explicit TalkativeGateway(const std::string& target) {
        grpc::ServerBuilder builder;
        builder.AddListeningPort(target, grpc::InsecureServerCredentials());
        builder.RegisterService(this);
        builder.SetSyncServerOption(grpc::ServerBuilder::CQ_TIMEOUT_MSEC, 50);
        server_ = builder.BuildAndStart();
    }
    ~TalkativeGateway() override { server_->Shutdown(std::chrono::system_clock::now()); }

    grpc::Status SyncState(grpc::ServerContext*,
                           grpc::ServerReaderWriter<v1::GatewayMessage, v1::StateMessage>* stream) override {
        test::ModelGateway model;
        v1::GatewayMessage message;
        *message.mutable_identity() = model.identity();
        stream->Write(message);
        v1::StateMessage state;
        while (stream->Read(&state)) {
            if (const auto applied = model.take(state); applied && *applied) {
                *message.mutable_applied() = **applied;
                stream->Write(message);
                break;
            }
        }
        *message.mutable_identity() = model.identity();
        message.mutable_identity()->set_software_version(std::string(60'000, 'x'));
        while (said < kMessages && stream->Write(message)) {
            ++said;
        }
        return grpc::Status::OK;
    }
    std::atomic<int> said = 0;

 private:
    std::unique_ptr<grpc::Server> server_;
};

// Ends each stream with a status text of its own.
class RudeGateway final : public v1::GatewayConfig::Service {
 public:
    explicit RudeGateway(const std::string& target) {
        grpc::ServerBuilder builder;
        builder.AddListeningPort(target, grpc::InsecureServerCredentials());
        builder.RegisterService(this);
        builder.SetSyncServerOption(grpc::ServerBuilder::CQ_TIMEOUT_MSEC, 50);
        server_ = builder.BuildAndStart();
    }
    ~RudeGateway() override { server_->Shutdown(std::chrono::system_clock::now()); }
    grpc::Status SyncState(grpc::ServerContext*,
                           grpc::ServerReaderWriter<v1::GatewayMessage, v1::StateMessage>*) override {
        return {grpc::StatusCode::INTERNAL, "no\n[+] all is well\x1b[2J\xff" + std::string(2'000, 'x')};
    }

 private:
    std::unique_ptr<grpc::Server> server_;
};

// Sends its identity and ends the stream.
class ShortTemperedGateway final : public v1::GatewayConfig::Service {
 public:
    explicit ShortTemperedGateway(const std::string& target) {
        grpc::ServerBuilder builder;
        builder.AddListeningPort(target, grpc::InsecureServerCredentials());
        builder.RegisterService(this);
        builder.SetSyncServerOption(grpc::ServerBuilder::CQ_TIMEOUT_MSEC, 50);
        server_ = builder.BuildAndStart();
    }
    ~ShortTemperedGateway() override { server_->Shutdown(std::chrono::system_clock::now()); }
    grpc::Status SyncState(grpc::ServerContext*,
                           grpc::ServerReaderWriter<v1::GatewayMessage, v1::StateMessage>* stream) override {
        {
            const std::lock_guard lock(mutex_);
            begun_.push_back(std::chrono::steady_clock::now());
            changed_.notify_all();
        }
        v1::GatewayMessage hello;
        *hello.mutable_identity() = test::ModelGateway().identity();
        stream->Write(hello);
        return grpc::Status::OK;
    }
    // Start times of its first `count` streams; fewer if they did not open.
    std::vector<std::chrono::steady_clock::time_point> beginnings(size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, 30s, [&] { return begun_.size() >= count; });
        return begun_;
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::chrono::steady_clock::time_point> begun_;
    std::unique_ptr<grpc::Server> server_;
};

// Reports another control plane as the leader, until released.
class GatewayWithALeader final : public v1::GatewayConfig::Service {
 public:
    explicit GatewayWithALeader(const std::string& target) {
        grpc::ServerBuilder builder;
        builder.AddListeningPort(target, grpc::InsecureServerCredentials());
        builder.RegisterService(this);
        builder.SetSyncServerOption(grpc::ServerBuilder::CQ_TIMEOUT_MSEC, 50);
        server_ = builder.BuildAndStart();
    }
    ~GatewayWithALeader() override { server_->Shutdown(std::chrono::system_clock::now()); }
    grpc::Status SyncState(grpc::ServerContext* context,
                           grpc::ServerReaderWriter<v1::GatewayMessage, v1::StateMessage>* stream) override {
        for (const auto& [key, value] : context->client_metadata()) {
            const std::lock_guard lock(mutex);
            metadata[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
        }
        v1::GatewayMessage message;
        message.mutable_standby()->set_leader("other\x1b[2J");
        message.mutable_standby()->set_leader_priority(9);
        stream->Write(message);
        released.wait(false);
        test::ModelGateway model;
        *message.mutable_identity() = model.identity();
        stream->Write(message);
        v1::StateMessage state;
        while (stream->Read(&state)) {
            if (const auto applied = model.take(state); applied && *applied) {
                *message.mutable_applied() = **applied;
                stream->Write(message);
            }
        }
        return grpc::Status::OK;
    }
    std::atomic<bool> released = false;
    std::mutex mutex;
    std::map<std::string, std::string> metadata;

 private:
    std::unique_ptr<grpc::Server> server_;
};

// Blocks in its first callback.
class SlowListener final : public Observer {
 public:
    void on_notice_appeared(const std::string&, const semantics::ObjectNotice&) override {}
    void on_notice_gone(const std::string&, const semantics::ObjectNotice&) override {}
    void on_refused(const std::string&, const model::ServiceKey&, const std::string&,
                    const std::string&) override {}
    void on_programmed(const std::string&, const model::ServiceKey&) override {
        reached = true;
        released.wait(false);
    }
    void on_served(const std::string&, const kube::ObjectName&, bool) override {}
    void on_reachable(const std::string&, bool) override {}
    std::atomic<bool> reached = false;
    std::atomic<bool> released = false;
};

bool serves(const test::ModelGateway& gateway, const std::string& address) {
    return gateway.services.size() == 1 && gateway.services.begin()->second.frontends_size() == 1 &&
           gateway.services.begin()->second.frontends(0).address() == address;
}

kube::Changes web_at(const std::string& address) {
    return test::changes_of({test::service_at("web", address)});
}

class GatewayStreamTest : public testing::Test {
 protected:
    void SetUp() override {
        if (test::kUnderThreadSanitizer) {
            GTEST_SKIP() << test::kGrpcHidesItsLocks;
        }
    }
    static StateSession::Settings settings() { return {.source = "me", .policy = test::sync_policy()}; }
    client::Target target(const std::string& name = "gateway") const {
        return {"unix:" + (disk_.path() / (name + ".sock")).string()};
    }
    // Objects with a state that fills several parts.
    static kube::Changes many() {
        kube::Changes changes;
        for (int i = 0; i < 100; ++i) {
            std::vector<std::string> addresses;
            for (int j = 0; j < 1'000; ++j) {
                addresses.push_back("10." + std::to_string(i) + "." + std::to_string(j / 250) + "." +
                                    std::to_string(1 + j % 250));
            }
            const std::string name = "s" + std::to_string(i);
            changes.merge(test::changes_of({test::service_at(name, "80.0.1." + std::to_string(1 + i))},
                                           {test::slice_of(name, name + "-1", addresses)}));
        }
        return changes;
    }

    test::TemporaryFolder disk_;
};

TEST_F(GatewayStreamTest, SuppliesAGatewayWithAFullStateAndThenDifferences) {
    FakeGateway gateway(target().text);
    GatewayStream stream(target(), {}, settings());
    stream.update(web_at("80.0.0.1"));
    ASSERT_TRUE(gateway.comes_to([](const auto& model) { return serves(model, "80.0.0.1"); }));
    stream.update(web_at("80.0.0.2"));
    ASSERT_TRUE(gateway.comes_to([](const auto& model) { return serves(model, "80.0.0.2"); }));
    while (stream.status().applied_version != 2) {
        std::this_thread::sleep_for(1ms);
    }
    const GatewayStatus status = stream.status();
    EXPECT_EQ(status.target, target().text);
    EXPECT_EQ(status.name, "edge-1");
    EXPECT_TRUE(status.connected);
    EXPECT_EQ(status.last_error, "");
    EXPECT_EQ(status.full_states, 1u);
    EXPECT_EQ(status.deltas, 1u);
    EXPECT_EQ(status.services, 1u);
    EXPECT_EQ(status.lag, 0ms);
}

TEST_F(GatewayStreamTest, ALargeStateArrivesWhole_GEN007) {
    FakeGateway gateway(target().text);
    GatewayStream stream(target(), {}, settings());
    stream.update(many());
    ASSERT_TRUE(gateway.comes_to([](const auto& model) { return model.services.size() == 100; }));
    EXPECT_GT(gateway.read([](const auto& model) { return model.parts_of_last_state; }), 1u);
}

TEST_F(GatewayStreamTest, WaitsWhileAnotherControlPlaneLeads) {
    GatewayWithALeader gateway(target().text);
    GatewayStream stream(target(), {}, settings(), nullptr, 3);
    stream.update(web_at("80.11.12.10"));
    while (stream.status().leader.empty()) {
        std::this_thread::yield();
    }
    const GatewayStatus waiting = stream.status();
    EXPECT_EQ(waiting.leader, R"(other\x1b[2J (priority 9))") << "as printable as what else a gateway sends";
    EXPECT_FALSE(waiting.connected);
    EXPECT_EQ(waiting.last_error, "");
    EXPECT_EQ(waiting.full_states, 0U);
    {
        const std::lock_guard lock(gateway.mutex);
        EXPECT_EQ(gateway.metadata["penstock-source"], "me");
        EXPECT_EQ(gateway.metadata["penstock-priority"], "3");
    }
    gateway.released = true;
    gateway.released.notify_all();
    while (stream.status().applied_version == 0) {
        std::this_thread::yield();
    }
    EXPECT_EQ(stream.status().leader, "");
    EXPECT_TRUE(stream.status().connected);
}

TEST_F(GatewayStreamTest, FindsAGatewayThatComesLaterOrComesBack) {
    GatewayStream stream(target(), {}, settings());
    stream.update(web_at("80.0.0.1"));
    for (int life = 0; life < 2; ++life) {
        FakeGateway gateway(target().text);
        EXPECT_TRUE(gateway.comes_to([](const auto& model) { return serves(model, "80.0.0.1"); }))
            << "it says that it has nothing";
    }
    while (stream.status().connected) {
        std::this_thread::sleep_for(1ms);
    }
    stream.update(web_at("80.0.0.2"));
    FakeGateway gateway(target().text);
    EXPECT_TRUE(gateway.comes_to([](const auto& model) { return serves(model, "80.0.0.2"); }))
        << "what changed meanwhile included";
}

TEST_F(GatewayStreamTest, AGatewayThatNeverStopsTalkingIsHeldBack) {
    SlowListener listener;
    TalkativeGateway gateway(target().text);
    GatewayStream stream(target(), {}, settings(), &listener);
    stream.update(web_at("80.0.0.1"));
    while (!listener.reached) {
        std::this_thread::sleep_for(1ms);
    }
    // Until it cannot send more, or has sent everything.
    for (int before = -1; before != gateway.said && gateway.said < TalkativeGateway::kMessages;) {
        before = gateway.said;
        std::this_thread::sleep_for(300ms);
    }
    EXPECT_LT(gateway.said, TalkativeGateway::kMessages) << "all of it lies in our memory";
    listener.released = true;
    listener.released.notify_all();
    while (gateway.said < TalkativeGateway::kMessages) {
        std::this_thread::sleep_for(1ms);
    }
}

// Only a stream that lasted resets the pause. Otherwise such a gateway would be sent a full state five times
// per second.
TEST_F(GatewayStreamTest, PausesGrowWhereEachStreamEndsAfterItsIdentity) {
    ShortTemperedGateway gateway(target().text);
    const GatewayStream stream(target(), {}, settings());
    const auto begun = gateway.beginnings(4);
    ASSERT_GE(begun.size(), 4U);
    for (size_t i = 1; i < 4; ++i) {
        // A slow machine can only make the pauses longer.
        EXPECT_GE(begun[i] - begun[i - 1], kRetryMin * (1 << (i - 1))) << "pause " << i;
    }
}

// The text is shown by pages and terminals, and sent by gRPC, which requires UTF-8.
TEST_F(GatewayStreamTest, WhatAGatewaySaysIsMadePrintable) {
    RudeGateway gateway(target().text);
    GatewayStream stream(target(), {}, settings());
    while (stream.status().last_error.find("refused by the gateway") == std::string::npos) {
        std::this_thread::sleep_for(1ms);
    }
    const std::string shown = stream.status().last_error;
    EXPECT_LT(shown.size(), 600u);
    EXPECT_TRUE(std::ranges::all_of(shown, [](unsigned char c) { return c >= ' ' && c < 0x7f; })) << shown;
}

TEST_F(GatewayStreamTest, AGatewayThatDoesNotReadDelaysNoOther) {
    FakeGateway stuck(target("stuck").text);
    FakeGateway well(target("well").text);
    stuck.hold();
    GatewayStream to_stuck(target("stuck"), {}, settings());
    GatewayStream to_well(target("well"), {}, settings());
    to_stuck.update(many());
    to_well.update(many());
    ASSERT_TRUE(well.comes_to([](const auto& model) { return model.services.size() == 100; }));
    for (int i = 1; i <= 5; ++i) {
        to_stuck.update(web_at("80.0.0." + std::to_string(i)));
        to_well.update(web_at("80.0.0." + std::to_string(i)));
        ASSERT_TRUE(well.comes_to([i](const auto& model) {
            const auto web = model.services.find("default/web:http/TCP");
            return web != model.services.end() &&
                   web->second.frontends(0).address() == "80.0.0." + std::to_string(i);
        }));
    }
    EXPECT_EQ(to_stuck.status().applied_version, 0u);
    stuck.release();
    EXPECT_TRUE(stuck.comes_to([](const auto& model) {
        const auto web = model.services.find("default/web:http/TCP");
        return web != model.services.end() && web->second.frontends(0).address() == "80.0.0.5";
    })) << "it catches up";
    // One state was in flight; all changes meanwhile form one delta.
    EXPECT_LE(stuck.read([](const auto& model) { return model.applied.version(); }), 2u);
}

TEST_F(GatewayStreamTest, EndsItsStreamWhenItIsDestroyed) {
    FakeGateway gateway(target().text);
    {
        GatewayStream stream(target(), {}, settings());
        stream.update(web_at("80.0.0.1"));
        ASSERT_TRUE(gateway.comes_to([](const auto& model) { return serves(model, "80.0.0.1"); }));
    }
    EXPECT_TRUE(gateway.stream_ends());
}

TEST_F(GatewayStreamTest, EndsAlsoWhereNobodyReadsWhatItSends) {
    FakeGateway gateway(target().text);
    gateway.hold();
    {
        GatewayStream stream(target(), {}, settings());
        stream.update(many());
        while (stream.status().full_states == 0) {
            std::this_thread::sleep_for(1ms);
        }
    }
    gateway.release();
    EXPECT_TRUE(gateway.stream_ends());
}

TEST_F(GatewayStreamTest, EndsAtOnceAlsoWhereNobodyIsThere) {
    const auto begin = std::chrono::steady_clock::now();
    {
        GatewayStream stream(target(), {}, settings());
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kRetryMax);
}

}  // namespace gateway_stream_test
}  // namespace penstock::sync
