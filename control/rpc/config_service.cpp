#include "control/rpc/config_service.hpp"

#include <chrono>
#include <deque>
#include <utility>

#include "control/log/log.hpp"
#include "control/rpc/errors.hpp"
#include "control/rpc/state_message.hpp"

namespace penstock::rpc {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::StateMessage, v1::GatewayMessage>;

// A call that ends before it begins.
class Refusal final : public Reactor {
 public:
    explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
    void OnDone() override { delete this; }
};

}  // namespace

// Kept alive by itself until gRPC is done with it, and by the answers that are still under way.
class ConfigService::Stream final : public Reactor, public std::enable_shared_from_this<Stream> {
 public:
    Stream(ConfigService& service, std::string peer) : service_(service), peer_(std::move(peer)) {}

    void open(std::shared_ptr<Stream> self) {
        self_ = std::move(self);
        send_identity();
        send_observed();
        StartRead(&incoming_);
    }
    void send_identity() {
        v1::GatewayMessage message;
        *message.mutable_identity() = service_.target_.identity();
        send(std::move(message));
    }
    void send_observed() {
        v1::GatewayMessage message;
        *message.mutable_observed() = service_.target_.observed();
        send(std::move(message));
    }
    // Ends the call as soon as the write under way, if any, is through. Only the first status counts.
    void end(grpc::Status status) {
        const std::lock_guard lock(mutex_);
        if (ending_) {
            return;
        }
        ending_ = true;
        status_ = std::move(status);
        outgoing_.resize(writing_ ? 1 : 0);  // the message under way stays in place
        finish_if_due();
    }

    void OnReadDone(bool ok) override {
        if (!ok) {  // the client has said all, or is gone
            const std::lock_guard lock(mutex_);
            read_all_ = true;
            finish_if_due();
            return;
        }
        auto whole = parts_.add(incoming_);
        if (!whole) {
            log::get("rpc").warn("state stream of {}: {}", peer_, whole.error().what);
            end(to_status(whole.error()));
            return;
        }
        std::optional<CheckedMessage>& checked = *whole;
        if (!checked) {
            read_next();
            return;
        }
        bool read_on = false;
        {
            const std::lock_guard lock(mutex_);
            ++unanswered_;
            paused_ = unanswered_ >= kUnansweredMax;
            read_on = !paused_;
        }
        checked->update.received = std::chrono::steady_clock::now();
        checked->update.done = [self = shared_from_this(), version = checked->update.version, refused = std::move(checked->refused)](
                                   Result<UpdateResult> result) { self->answer(version, refused, std::move(result)); };
        service_.target_.submit(std::move(checked->update));
        if (read_on) {
            read_next();
        }
    }
    void OnWriteDone(bool ok) override {
        const std::lock_guard lock(mutex_);
        writing_ = false;
        outgoing_.pop_front();
        if (!ok) {
            outgoing_.clear();
            ending_ = true;  // nobody listens any more
        } else if (!ending_) {
            write_next();
        }
        finish_if_due();
    }
    void OnCancel() override { end(grpc::Status(grpc::StatusCode::CANCELLED, "the client ended the stream")); }
    void OnDone() override {
        service_.closed(this);
        log::get("rpc").info("state stream of {} has ended{}{}", peer_, status_.ok() ? "" : ": ", status_.error_message());
        self_.reset();
    }

 private:
    void answer(const StateVersion& version, const std::vector<v1::ServiceResult>& refused, Result<UpdateResult> result) {
        if (!result) {
            log::get("rpc").warn("state stream of {}: {}", peer_, result.error().what);
            end(to_status(result.error()));
        } else {
            v1::GatewayMessage message;
            auto& applied = *message.mutable_applied();
            *applied.mutable_version() = to_proto(version);
            for (const auto& outcome : result->services) {
                *applied.add_services() = to_proto(outcome);
            }
            for (const auto& refusal : refused) {
                *applied.add_services() = refusal;
            }
            applied.set_apply_us(result->apply_us);
            send(std::move(message));
        }
        bool read_on = false;
        {
            const std::lock_guard lock(mutex_);
            --unanswered_;
            read_on = std::exchange(paused_, false);
            finish_if_due();
        }
        if (read_on) {
            read_next();
        }
    }
    void read_next() {
        const std::lock_guard lock(mutex_);
        if (!finished_) {
            StartRead(&incoming_);
        }
    }
    void send(v1::GatewayMessage message) {
        const std::lock_guard lock(mutex_);
        if (ending_ || finished_) {
            return;
        }
        outgoing_.push_back(std::move(message));
        write_next();
    }
    void write_next() {
        if (!writing_ && !outgoing_.empty()) {
            writing_ = true;
            StartWrite(&outgoing_.front());
        }
    }
    // Under the lock, as every operation that is started: none may be once the call is finished. Whoever comes here owns the stream or is a
    // reaction of it, so OnDone() cannot take it away meanwhile.
    void finish_if_due() {
        const bool all_said = read_all_ && unanswered_ == 0 && outgoing_.empty();
        if (finished_ || writing_ || !(ending_ || all_said)) {
            return;
        }
        finished_ = true;
        Finish(status_);
    }

    ConfigService& service_;
    const std::string peer_;
    std::shared_ptr<Stream> self_;
    v1::StateMessage incoming_;
    StateParts parts_;  // of a state whose last part has not come; dies with the stream

    std::mutex mutex_;
    std::deque<v1::GatewayMessage> outgoing_;  // the first one is being written while writing_
    uint32_t unanswered_ = 0;
    bool writing_ = false;
    bool paused_ = false;  // no read is under way, because too much is unanswered
    bool read_all_ = false;
    bool ending_ = false;
    bool finished_ = false;
    grpc::Status status_;
};

grpc::ServerBidiReactor<v1::StateMessage, v1::GatewayMessage>* ConfigService::SyncState(grpc::CallbackServerContext* context) {
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        log::get("rpc").warn("state stream of {}: {}", context->peer(), status.error().what);
        return new Refusal(to_status(status));
    }
    auto stream = std::make_shared<Stream>(*this, context->peer());
    std::shared_ptr<Stream> replaced;
    {
        const std::lock_guard lock(mutex_);
        replaced = std::exchange(current_, stream);
    }
    log::get("rpc").info("state stream of {} is open{}", context->peer(), replaced ? "; it replaces the former one" : "");
    if (replaced) {
        replaced->end(grpc::Status(grpc::StatusCode::ABORTED, "another control plane has opened a state stream"));
    }
    target_.set_control_connected(true);
    stream->open(stream);
    return stream.get();
}

void ConfigService::announce_identity() {
    if (const auto stream = current()) {
        stream->send_identity();
    }
}

void ConfigService::announce_observed() {
    if (const auto stream = current()) {
        stream->send_observed();
    }
}

std::shared_ptr<ConfigService::Stream> ConfigService::current() {
    const std::lock_guard lock(mutex_);
    return current_;
}

void ConfigService::closed(const Stream* stream) {
    const std::lock_guard lock(mutex_);
    if (current_.get() == stream) {
        current_.reset();
        target_.set_control_connected(false);
    }
}

}  // namespace penstock::rpc
