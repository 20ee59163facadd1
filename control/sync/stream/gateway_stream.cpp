// SPDX-License-Identifier: Apache-2.0
#include "control/sync/stream/gateway_stream.hpp"

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "control/client/channel.hpp"
#include "control/log/log.hpp"
#include "control/semantics/text.hpp"
#include "control/tls/handshake.hpp"
#include "penstock/v1/config.grpc.pb.h"

namespace penstock::sync {
namespace {

constexpr size_t kSourceShown = 128;
// Timeout of each step of the diagnostic handshake, which determines why a stream over TLS does not open.
constexpr std::chrono::milliseconds kHandshakeLimit{500};

// The reason why a stream ended, for the log.
std::string text_of(const grpc::Status& status, bool was_identified) {
    if (status.ok()) {
        return "the gateway closed the stream";
    }
    constexpr size_t kShown = 512;  // bound for the text, which comes from the gateway
    const bool is_away = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    return (was_identified ? "the stream ended: "
                           : (is_away ? "not reachable: " : "refused by the gateway: ")) +
           semantics::printable(status.error_message(), kShown);
}

spdlog::level::level_enum level_of(LogLine::Level level) {
    switch (level) {
        case LogLine::Level::Debug:
            return spdlog::level::debug;
        case LogLine::Level::Info:
            return spdlog::level::info;
        case LogLine::Level::Warning:
            break;
    }
    return spdlog::level::warn;
}

}  // namespace

// One stream. Results of gRPC's threads go to the inbox. Only the stream's own thread writes and ends the
// stream.
class GatewayStream::Call final : private grpc::ClientBidiReactor<v1::StateMessage, v1::GatewayMessage> {
 public:
    Call(GatewayStream& owner, const std::shared_ptr<grpc::Channel>& channel)
        : owner_(owner), stub_(v1::GatewayConfig::NewStub(channel)) {
        context_.AddMetadata("penstock-source", owner_.source_);
        context_.AddMetadata("penstock-priority", std::to_string(owner_.priority_));
        stub_->async()->SyncState(&context_, this);
        AddHold();  // for write() and read_on(), which are called from outside reactions
        StartRead(&incoming_);
        StartCall();
    }
    // Call only while no message is being written. A failed write is followed by the end of the stream.
    void write(v1::StateMessage message) {
        outgoing_ = std::move(message);
        writing_ = true;
        StartWrite(&outgoing_);
    }
    // Reads one message; the next one is read after the last has been handled. A gateway that sends more than
    // this process can handle is slowed down by flow control of the transport, instead of filling memory
    // here.
    void read_on() {
        incoming_.Clear();
        StartRead(&incoming_);
    }
    [[nodiscard]] bool writing() const noexcept { return writing_; }
    void note_written() noexcept { writing_ = false; }
    // Waits until gRPC has finished the call. Cancels the call first if it has not ended by itself.
    grpc::Status end(bool has_ended) {
        if (!has_ended) {
            context_.TryCancel();
        }
        RemoveHold();
        std::unique_lock lock(owner_.mutex_);
        owner_.news_.wait(lock, [this] { return done_; });
        return status_;
    }

 private:
    void OnReadDone(bool ok) override {
        {
            const std::lock_guard lock(owner_.mutex_);
            if (ok) {
                owner_.inbox_.message = std::move(incoming_);
            } else {
                owner_.inbox_.stream_ended = true;
            }
        }
        owner_.news_.notify_all();
    }
    void OnWriteDone(bool) override {
        {
            const std::lock_guard lock(owner_.mutex_);
            owner_.inbox_.written = true;
        }
        owner_.news_.notify_all();
    }
    // The last callback of gRPC. It holds the lock to its end, because the waiting thread destroys this
    // object at once.
    void OnDone(const grpc::Status& status) override {
        const std::lock_guard lock(owner_.mutex_);
        status_ = status;
        done_ = true;
        owner_.news_.notify_all();
    }

    GatewayStream& owner_;
    std::unique_ptr<v1::GatewayConfig::Stub> stub_;
    grpc::ClientContext context_;
    v1::GatewayMessage incoming_;
    v1::StateMessage outgoing_;
    bool writing_ = false;  // accessed by the stream's thread only
    grpc::Status status_;   // guarded by the owner's mutex, as is done_
    bool done_ = false;
};

GatewayStream::GatewayStream(client::Target target, const tls::Watch* tls, StateSession::Settings settings,
                             Observer* observer, uint32_t priority)
    : target_(std::move(target)),
      tls_(tls),
      source_(settings.source),
      priority_(priority),
      observer_(observer),
      session_(std::move(settings), observer),
      status_{.target = target_.text, .last_error = "not tried yet"},
      status_at_(Clock::now()),
      thread_([this] { run(); }) {}

GatewayStream::~GatewayStream() {
    {
        const std::lock_guard lock(mutex_);
        inbox_.stopping = true;
    }
    news_.notify_all();
}

void GatewayStream::update(kube::Changes changes) {
    {
        const std::lock_guard lock(mutex_);
        if (inbox_.changes) {
            inbox_.changes->merge(std::move(changes));
        } else {
            inbox_.changes = std::move(changes);
            inbox_.heard = Clock::now();
        }
    }
    news_.notify_all();
}

void GatewayStream::update(std::vector<semantics::ExternalIpRule> rules) {
    {
        const std::lock_guard lock(mutex_);
        inbox_.rules = std::move(rules);
    }
    news_.notify_all();
}

GatewayStatus GatewayStream::status() const {
    const std::lock_guard lock(status_mutex_);
    GatewayStatus status = status_;
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - status_at_);
    status.heartbeat_age = since;
    if (status.lag.count() > 0) {
        status.lag += since;
    }
    if (status.applied_age) {
        *status.applied_age += since;
    }
    return status;
}

void GatewayStream::run() {
    auto retry = kRetryMin;
    bool said_away = false;
    for (;;) {
        std::string why;
        const auto began = Clock::now();
        const bool was_there = converse(why);
        report(&why);
        if (was_there) {
            said_away = false;
            // Keeps the retry delay of a gateway that ends each stream at once. It would otherwise be sent a
            // full state five times per second.
            if (Clock::now() - began >= kRetryMax) {
                retry = kRetryMin;
            }
        }
        if (!pause(std::chrono::milliseconds(0))) {
            return;
        }
        if (!std::exchange(said_away, true)) {
            log::get("sync").warn(
                "gateway {}: {}; the gateway keeps its last state, reconnecting until it answers",
                target_.text, why);
        } else {
            log::get("sync").debug("gateway {}: still unreachable: {}", target_.text, why);
        }
        if (!pause(retry)) {
            return;
        }
        retry = std::min(retry * 2, kRetryMax);
    }
}

bool GatewayStream::pause(std::chrono::milliseconds time) {
    const auto until = Clock::now() + time;
    do {
        Inbox news = take_news(std::min(until, session_.due().value_or(until)));
        if (news.stopping) {
            return false;
        }
        note_changes(news);
        session_.work_in_changes(Clock::now());
        report();
    } while (Clock::now() < until);
    return true;
}

bool GatewayStream::converse(std::string& why) {
    const auto material = tls_ != nullptr ? tls_->current() : nullptr;
    if (tls_ != nullptr && material == nullptr) {
        why = tls_->error();
        return false;
    }
    const auto channel = client::open_channel(target_, material.get());
    if (!channel) {
        why = channel.error().what;
        return false;
    }
    session_.on_stream_opened();
    bool identified = false;
    Call call(*this, *channel);
    const bool has_ended = send_and_receive(call, why, identified);
    const grpc::Status status = call.end(has_ended);
    session_.on_stream_ended();
    leader_.clear();
    {
        const std::lock_guard lock(mutex_);  // leftovers of this stream must not reach the next one
        inbox_.message.reset();
        inbox_.written = false;
        inbox_.stream_ended = false;
    }
    if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
        status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
        session_.on_refused_stream();
    }
    if (why.empty()) {
        why = text_of(status, identified);
        // Not while stopping, and not if there is no server to connect to: the handshake may take a while.
        if (material && !identified && status.error_code() == grpc::StatusCode::UNAVAILABLE &&
            !is_stopping()) {
            why = tls::handshake_trouble(target_.text, *material, kHandshakeLimit).value_or(why);
        }
    }
    return identified;
}

bool GatewayStream::send_and_receive(Call& call, std::string& why, bool& identified) {
    auto asked_at = Clock::now();
    for (;;) {
        const auto look_again = Clock::now() + kAnswerExpected;
        Inbox news = take_news(call.writing() ? look_again
                                              : std::min(look_again, session_.due().value_or(look_again)));
        const auto now = Clock::now();
        if (news.stopping) {
            return false;
        }
        note_changes(news);
        if (news.message) {
            if (const Status handled = handle(*news.message); !handled) {
                why = handled.error().what;
                return false;
            }
            identified |= news.message->has_identity() || news.message->has_standby();
            asked_at = now;
            call.read_on();
        }
        if (news.stream_ended) {
            return true;
        }
        if (news.written) {
            call.note_written();
            asked_at = now;
        }
        if (!call.writing()) {
            if (auto message = session_.next(now)) {
                call.write(std::move(*message));
                asked_at = now;
            }
        }
        report();
        if ((!identified || call.writing() || session_.awaits_answer()) && now - asked_at > kAnswerExpected) {
            log::get("sync").warn("gateway {}: no answer for {} s, waiting", target_.text,
                                  std::chrono::duration_cast<std::chrono::seconds>(now - asked_at).count());
        }
    }
}

Status GatewayStream::handle(const v1::GatewayMessage& message) {
    if (message.has_standby()) {
        const v1::Standby& standby = message.standby();
        leader_ = (standby.leader().empty() ? "another control plane"
                                            : semantics::printable(standby.leader(), kSourceShown)) +
                  " (priority " + std::to_string(standby.leader_priority()) + ")";
        log::get("sync").info(
            "gateway {}: {} leads; this process (priority {}) is standby until that stream ends",
            target_.text, leader_, priority_);
        return {};
    }
    if (message.has_identity()) {
        leader_.clear();
        return session_.on_identity(message.identity(), Clock::now());
    }
    if (message.has_applied()) {
        return session_.on_applied(message.applied(), Clock::now());
    }
    if (message.has_observed()) {
        session_.on_observed(message.observed());
        return {};
    }
    return {};  // a message type newer than this version: ignored
}

bool GatewayStream::is_stopping() {
    const std::lock_guard lock(mutex_);
    return inbox_.stopping;
}

GatewayStream::Inbox GatewayStream::take_news(Clock::time_point due) {
    std::unique_lock lock(mutex_);
    news_.wait_until(lock, due, [this] { return inbox_.has_news(); });
    Inbox news = std::move(inbox_);
    inbox_ = Inbox{.stopping = news.stopping};
    return news;
}

void GatewayStream::note_changes(Inbox& news) {
    if (news.changes) {
        session_.on_changes(std::move(*news.changes), news.heard);
    }
    if (news.rules) {
        session_.on_external_ip_rules(std::move(*news.rules), Clock::now());
    }
}

void GatewayStream::report(const std::string* last_error) {
    for (const LogLine& line : session_.take_log()) {
        if (!log::get("sync").should_log(level_of(line.level))) {
            continue;
        }
        const auto left_out = flood_guard_.admit(Clock::now());
        if (!left_out) {
            continue;
        }
        if (*left_out > 0) {
            log::get("sync").warn("gateway {}: {} log lines suppressed by the rate limit", target_.text,
                                  *left_out);
        }
        log::get("sync").log(level_of(line.level), "gateway {}: {}", target_.text, line.text);
    }
    const std::lock_guard lock(status_mutex_);
    status_at_ = Clock::now();
    session_.describe(status_, status_at_);
    if (observer_ != nullptr) {
        reachability_.update(status_.name, status_.connected && status_.applied_version != 0, status_at_,
                             *observer_);
    }
    status_.leader = leader_;
    if (status_.connected || !leader_.empty()) {
        status_.last_error.clear();
    } else if (last_error != nullptr) {
        status_.last_error = *last_error;
    }
}

}  // namespace penstock::sync
