// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/follower.hpp"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "control/client/channel.hpp"
#include "control/gateway/shares/copy_sender.hpp"
#include "control/log/log.hpp"
#include "control/tls/handshake.hpp"
#include "dataplane/copies/record.hpp"
#include "penstock/v1/peers.grpc.pb.h"

namespace penstock::gateway {
namespace {

// Of the TLS handshake that finds out why a connection fails.
constexpr std::chrono::milliseconds kDiagnosisLimit{1'000};

// A batch of records, and the names around it.
constexpr int kMessageBytesMax = 2 * static_cast<int>(copies::kBatchBytesMax);

}  // namespace

Follower::Follower(Options options, CopyChannel& channel)
    : options_(std::move(options)),
      channel_(channel),
      thread_([this](const std::stop_token& stopped) { run(stopped); }) {}

Follower::~Follower() {
    request_stop();
}

void Follower::request_stop() {
    thread_.request_stop();
    restart("");
}

void Follower::restart(const std::string& why) {
    const std::lock_guard lock(mutex_);
    restart_reason_ = why;
    if (context_ != nullptr) {
        context_->TryCancel();
    }
    wakes_.notify_all();
}

bool Follower::set_context(grpc::ClientContext* context, const std::stop_token& stopped) {
    const std::lock_guard lock(mutex_);
    context_ = context;
    if (context != nullptr) {
        restart_reason_.clear();
    }
    return !stopped.stop_requested();
}

void Follower::run(const std::stop_token& stopped) {
    std::chrono::milliseconds pause = options_.retry_first;
    std::string logged;
    auto& logger = log::get("control");
    while (!stopped.stop_requested()) {
        const auto began = std::chrono::steady_clock::now();
        const std::string why = follow(stopped);
        channel_.end_stream(why,
                            stopped.stop_requested() ? CopyChannel::End::Replaced : CopyChannel::End::Failed);
        if (stopped.stop_requested()) {
            return;
        }
        const CopyChannel::View view = channel_.view();
        const bool was_complete = view.complete_at && *view.complete_at >= began;
        // One line for each stream that was complete, and for each other reason.
        if (was_complete || why != std::exchange(logged, why)) {
            logger.warn("no copies of connections from gateway {} ({}): {}; copies so far are kept",
                        channel_.gateway(), options_.target.text, why);
        }
        pause = was_complete ? options_.retry_first : std::min(pause, options_.retry_max);
        std::unique_lock lock(mutex_);
        wakes_.wait_for(lock, stopped, pause, [] { return false; });
        pause *= 2;
    }
}

std::string Follower::follow(const std::stop_token& stopped) {
    const std::shared_ptr<const tls::Material> material = options_.material();
    if (material == nullptr) {
        return "the files of --tls-cert, --tls-key and --tls-client-ca are not valid";
    }
    const auto channel = client::open_channel(options_.target, material.get(), kMessageBytesMax);
    if (!channel) {
        return channel.error().what;
    }
    const auto stub = v1::GatewayPeers::NewStub(*channel);
    grpc::ClientContext context;
    v1::FollowConnectionsRequest request;
    request.set_gateway(options_.own_name);
    request.set_plan_version(options_.plan_version);
    request.set_format(kCopyFormat);
    request.set_give_back(!channel_.has_recovered());
    if (!set_context(&context, stopped)) {
        set_context(nullptr, stopped);
        return "";
    }
    channel_.begin_call(std::chrono::steady_clock::now());
    const auto reader = stub->FollowConnections(&context, request);
    v1::ConnectionCopies message;
    Status taken;
    bool has_begun = false;
    while (taken && reader->Read(&message)) {
        const auto at = std::chrono::steady_clock::now();
        if (!std::exchange(has_begun, true)) {
            channel_.begin_stream(at);
            log::get("control").info("gateway {} ({}) sends copies of its connections", channel_.gateway(),
                                     options_.target.text);
        }
        taken = channel_.take(message, options_.now(), at);
    }
    if (!taken) {
        context.TryCancel();
    }
    const grpc::Status status = reader->Finish();
    set_context(nullptr, stopped);
    if (!taken) {
        return taken.error().what;
    }
    {
        const std::lock_guard lock(mutex_);
        if (!restart_reason_.empty()) {
            return restart_reason_;
        }
    }
    if (!has_begun && status.error_code() == grpc::StatusCode::UNAVAILABLE && !stopped.stop_requested()) {
        if (const auto trouble = tls::handshake_trouble(options_.target.text, *material, kDiagnosisLimit)) {
            return *trouble;
        }
    }
    return status.ok() ? "the stream has ended" : status.error_message();
}

}  // namespace penstock::gateway
