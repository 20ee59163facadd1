// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/config_service.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "control/log/log.hpp"
#include "control/rpc/errors.hpp"
#include "control/rpc/state_message.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::rpc {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::StateMessage, v1::GatewayMessage>;

// Maximum of streams that wait for the lead: replicas of a Deployment, plus those of a DaemonSet during a
// change of mode. Each holds an HTTP/2 stream.
constexpr size_t kWaitingMax = 16;

// Call metadata with the name of the control plane (config.proto).
constexpr const char* kSourceKey = "penstock-source";
constexpr const char* kPriorityKey = "penstock-priority";

std::string metadata_of(const grpc::CallbackServerContext& context, const char* key) {
    const auto found = context.client_metadata().find(key);
    return found == context.client_metadata().end() ? std::string()
                                                    : std::string(found->second.data(), found->second.size());
}

// An absent or malformed priority is read as the lowest.
uint32_t priority_of(const grpc::CallbackServerContext& context) {
    return whole_number<uint32_t>(metadata_of(context, kPriorityKey)).value_or(0);
}

// A call that is refused before it begins.
class Refusal final : public Reactor {
 public:
    explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
    void OnDone() override { delete this; }
};

}  // namespace

// Owned by itself until gRPC has finished the call, and by pending answers.
class ConfigService::Stream final : public Reactor, public std::enable_shared_from_this<Stream> {
 public:
    Stream(ConfigService& service, std::string peer, std::string source, uint32_t priority)
        : service_(service), peer_(std::move(peer)), source_(std::move(source)), priority_(priority) {}

    [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
    [[nodiscard]] const std::string& source() const noexcept { return source_; }
    [[nodiscard]] uint32_t priority() const noexcept { return priority_; }
    // "edge-sync-5f3a (priority 3)"
    [[nodiscard]] std::string name() const {
        return (source_.empty() ? "an unnamed control plane at " + peer_ : source_) + " (priority " +
               std::to_string(priority_) + ")";
    }

    // True if nothing more is received, although gRPC may not have finished the call yet.
    [[nodiscard]] bool is_over() {
        const std::lock_guard lock(mutex_);
        return ending_ || finished_;
    }
    // Call before anything is sent.
    void hold(std::shared_ptr<Stream> self) { self_ = std::move(self); }
    // Another stream leads. This one is not read; OnCancel() reports its end.
    void wait_for(const Stream& leader) {
        v1::GatewayMessage message;
        message.mutable_standby()->set_leader(leader.source());
        message.mutable_standby()->set_leader_priority(leader.priority());
        send(std::move(message));
    }
    // Call once.
    void lead() {
        send_identity();
        send_observed();
        read_next();
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
    // Ends the call as soon as the pending write, if any, has finished. Only the first status is used.
    void end(grpc::Status status) {
        const std::lock_guard lock(mutex_);
        if (ending_) {
            return;
        }
        ending_ = true;
        status_ = std::move(status);
        outgoing_.resize(writing_ ? 1 : 0);  // the message being written stays in place
        finish_if_due();
    }

    void OnReadDone(bool ok) override {
        if (!ok) {  // the client has sent everything, or is disconnected
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
        {
            const std::lock_guard lock(mutex_);
            ++unanswered_;
        }
        checked->update.received = std::chrono::steady_clock::now();
        checked->update.done = [self = shared_from_this(), version = checked->update.version,
                                refused = std::move(checked->refused)](Result<UpdateResult> result) {
            self->answer(version, refused, std::move(result));
        };
        service_.target_.submit(std::move(checked->update));
        // Afterwards: an answer to an earlier update on another thread would otherwise begin the next read,
        // and that update could overtake this one.
        bool read_on = false;
        {
            const std::lock_guard lock(mutex_);
            paused_ = unanswered_ >= kUnansweredMax;
            read_on = !paused_;
        }
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
            ending_ = true;  // the client is disconnected
        } else if (!ending_) {
            write_next();
        }
        finish_if_due();
    }
    void OnCancel() override {
        end(grpc::Status(grpc::StatusCode::CANCELLED, "the client closed the stream"));
    }
    void OnDone() override {
        service_.closed(this);
        log::get("rpc").info("state stream of {} has ended{}{}", peer_, status_.ok() ? "" : ": ",
                             status_.error_message());
        self_.reset();
    }

 private:
    void answer(const StateVersion& version, const std::vector<v1::ServiceResult>& refused,
                Result<UpdateResult> result) {
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
    // Call with the lock held, as for every operation that is started: none may start after the call has
    // finished. The caller owns the stream or is one of its callbacks, so OnDone() cannot destroy it
    // meanwhile.
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
    const std::string source_;
    const uint32_t priority_;
    std::shared_ptr<Stream> self_;
    v1::StateMessage incoming_;
    StateParts parts_;  // parts of an unfinished state; discarded with the stream

    std::mutex mutex_;
    std::deque<v1::GatewayMessage> outgoing_;  // while writing_, the first one is being written
    uint32_t unanswered_ = 0;
    bool writing_ = false;
    bool paused_ = false;  // no read is pending, because too many states are unanswered
    bool read_all_ = false;
    bool ending_ = false;
    bool finished_ = false;
    grpc::Status status_;
};

grpc::ServerBidiReactor<v1::StateMessage, v1::GatewayMessage>* ConfigService::SyncState(
    grpc::CallbackServerContext* context) {
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        log::get("rpc").warn("state stream of {}: {}", context->peer(), status.error().what);
        return new Refusal(to_status(status));
    }
    auto stream = std::make_shared<Stream>(*this, context->peer(), metadata_of(*context, kSourceKey),
                                           priority_of(*context));
    stream->hold(stream);
    std::unique_lock lock(mutex_);
    // gRPC may not have finished the call of a leader that has ended. A waiting stream takes precedence over
    // this one, as if closed() had been called.
    while (current_ != nullptr && current_->is_over()) {
        if (const std::shared_ptr<Stream> next = elect()) {
            lock.unlock();
            next->lead();
            lock.lock();
        }
    }
    if (current_ == nullptr) {
        make_leader(stream);
        lock.unlock();
        log::get("rpc").info("state stream of {} is open: {} leads", stream->peer(), stream->name());
        stream->lead();
        return stream.get();
    }
    const bool is_the_same = !stream->source().empty() && stream->source() == current_->source();
    if (is_the_same || stream->priority() > current_->priority()) {
        const std::shared_ptr<Stream> former = current_;
        make_leader(stream);
        lock.unlock();
        log::get("rpc").info("state stream of {} is open: {} leads, in place of {}", stream->peer(),
                             stream->name(), former->name());
        former->end(grpc::Status(grpc::StatusCode::ABORTED,
                                 is_the_same ? "this control plane has opened another state stream"
                                             : stream->name() + " has a higher priority and leads"));
        stream->lead();
        return stream.get();
    }
    if (waiting_.size() >= kWaitingMax) {
        const std::string why = std::to_string(kWaitingMax) + " state streams are already waiting, and " +
                                current_->name() + " leads";
        lock.unlock();
        log::get("rpc").warn("state stream of {}: refused, {}", stream->peer(), why);
        stream->end(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, why));
        return stream.get();
    }
    waiting_.push_back(stream);
    report();
    log::get("rpc").info("state stream of {} is open: {} waits, {} leads", stream->peer(), stream->name(),
                         current_->name());
    stream->wait_for(*current_);
    return stream.get();
}

void ConfigService::make_leader(std::shared_ptr<Stream> stream) {
    current_ = std::move(stream);
    for (const std::shared_ptr<Stream>& waiting : waiting_) {
        waiting->wait_for(*current_);
    }
    report();
}

void ConfigService::report() {
    target_.set_control({.connected = current_ != nullptr,
                         .source = current_ == nullptr ? std::string() : current_->source(),
                         .waiting = static_cast<uint32_t>(waiting_.size())});
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
    std::unique_lock lock(mutex_);
    std::erase_if(waiting_, [stream](const std::shared_ptr<Stream>& each) { return each.get() == stream; });
    if (current_.get() != stream) {
        return report();
    }
    if (const std::shared_ptr<Stream> next = elect()) {
        lock.unlock();
        next->lead();
    }
}

std::shared_ptr<ConfigService::Stream> ConfigService::elect() {
    current_.reset();
    // The oldest stream of the highest priority.
    const auto next = std::ranges::max_element(
        waiting_, {}, [](const std::shared_ptr<Stream>& each) { return each->priority(); });
    if (next == waiting_.end()) {
        report();
        return nullptr;
    }
    const std::shared_ptr<Stream> leader = *next;
    waiting_.erase(next);
    make_leader(leader);
    log::get("rpc").info("state streams: {} now leads", leader->name());
    return leader;
}

}  // namespace penstock::rpc
