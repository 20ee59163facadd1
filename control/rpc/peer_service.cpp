// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/peer_service.hpp"

#include <chrono>
#include <vector>

#include "control/log/log.hpp"
#include "control/rpc/errors.hpp"
#include "control/rpc/limits.hpp"

namespace penstock::rpc {

class PeerService::Stream final : public CopyReceiver {
 public:
    Stream(PeerService& service, grpc::ServerContext& context,
           grpc::ServerWriter<v1::ConnectionCopies>& writer)
        : service_(service), context_(context), writer_(writer) {}

    bool send(const v1::ConnectionCopies& copies) override { return writer_.Write(copies); }
    bool wait(std::chrono::milliseconds duration) override {
        std::unique_lock lock(service_.mutex_);
        service_.changed_.wait_for(lock, duration, [&] { return is_ended_; });
        return !is_ended_ && !context_.IsCancelled();
    }
    // The service's mutex is held. A send() that waits for the reader fails.
    void end() {
        is_ended_ = true;
        context_.TryCancel();
    }

 private:
    PeerService& service_;
    grpc::ServerContext& context_;
    grpc::ServerWriter<v1::ConnectionCopies>& writer_;
    bool is_ended_ = false;  // guarded by the service's mutex
};

grpc::Status PeerService::FollowConnections(grpc::ServerContext* context,
                                            const v1::FollowConnectionsRequest* request,
                                            grpc::ServerWriter<v1::ConnectionCopies>* writer) {
    const std::string& gateway = request->gateway();
    if (const auto status = examine(caller_of(*context), *request); !status) {
        log::get("rpc").debug("{} gets no copies of connections: {}", identity_of(*context),
                              status.error().what);
        return to_status(status);
    }
    Stream stream(*this, *context, *writer);
    if (const auto status = enter(gateway, stream); !status) {
        return to_status(status);
    }
    log::get("rpc").info("gateway {} ({}) follows the connections of this one, its plan has version {}",
                         gateway, identity_of(*context), request->plan_version());
    const auto status = target_->send_copies(*request, stream);
    leave(gateway, stream);
    log::get("rpc").info("gateway {} follows the connections no longer: {}", gateway,
                         status ? "the stream has ended" : status.error().what);
    return to_status(status);
}

Status PeerService::examine(const Caller& caller, const v1::FollowConnectionsRequest& request) const {
    PENSTOCK_TRY_STATUS(authorizer_.may_read(caller));
    if (target_ == nullptr) {
        return fail(Errc::Outdated, "this gateway has no plan of shares (--shares)");
    }
    PENSTOCK_TRY(const std::vector<std::string> names, target_->certificate_names_of(request.gateway()));
    PENSTOCK_TRY_STATUS(authorizer_.may_follow(caller, names));
    if (request.format() == 0) {
        return fail(Errc::Outdated, "the request names no format of records that its sender reads");
    }
    return {};
}

Status PeerService::enter(const std::string& gateway, Stream& stream) {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) {
        return fail(Errc::Unavailable, "this gateway stops");
    }
    if (threads_ >= kPeerStreamsMax) {
        return fail(Errc::Exhausted,
                    std::to_string(kPeerStreamsMax) +
                        " streams with copies of connections are open, the maximum: give this "
                        "gateway shares in common with fewer others");
    }
    ++threads_;
    Stream*& current = streams_[gateway];
    if (current != nullptr) {
        current->end();
        changed_.notify_all();
    }
    current = &stream;
    return {};
}

void PeerService::leave(const std::string& gateway, const Stream& stream) {
    const std::lock_guard lock(mutex_);
    --threads_;
    const auto current = streams_.find(gateway);
    if (current != streams_.end() && current->second == &stream) {
        streams_.erase(current);
    }
}

void PeerService::stop() {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    for (const auto& [gateway, stream] : streams_) {
        stream->end();
    }
    changed_.notify_all();
}

}  // namespace penstock::rpc
