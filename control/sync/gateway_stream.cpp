#include "control/sync/gateway_stream.hpp"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <utility>

#include "control/client/channel.hpp"
#include "control/log/log.hpp"
#include "penstock/v1/config.grpc.pb.h"

namespace penstock::sync {
namespace {

// How a stream ended, for the log.
std::string text_of(const grpc::Status& status, bool was_identified) {
    if (status.ok()) {
        return "it ended the stream";
    }
    const bool is_away = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    return (was_identified ? "the stream ended: " : (is_away ? "not reachable: " : "it refuses: ")) + status.error_message();
}

}  // namespace

GatewayStream::GatewayStream(client::Target target, client::TlsFiles tls, std::string source, semantics::Policy policy)
    : target_(std::move(target)), tls_(std::move(tls)), session_(std::move(source), std::move(policy)), thread_([this] { run(); }) {}

GatewayStream::~GatewayStream() {
    {
        const std::lock_guard lock(mutex_);
        inbox_.stopping = true;
        if (context_ != nullptr) {
            context_->TryCancel();
        }
    }
    news_.notify_all();
}

void GatewayStream::update(std::shared_ptr<const kube::ObjectSet> objects) {
    {
        const std::lock_guard lock(mutex_);
        inbox_.objects = std::move(objects);
    }
    news_.notify_all();
}

void GatewayStream::run() {
    auto retry = kRetryMin;
    bool said_away = false;
    for (;;) {
        std::string why;
        const bool was_there = converse(why);
        write_log();
        if (was_there) {
            retry = kRetryMin;
            said_away = false;
        }
        if (!pause(std::chrono::milliseconds(0))) {
            return;
        }
        if (!std::exchange(said_away, true)) {
            log::get("sync").warn("gateway {}: {}; it keeps what it has, and is tried again until it answers", target_.text, why);
        } else {
            log::get("sync").debug("gateway {}: still away: {}", target_.text, why);
        }
        if (!pause(retry)) {
            return;
        }
        retry = std::min(retry * 2, kRetryMax);
    }
}

bool GatewayStream::pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !news_.wait_for(lock, time, [this] { return inbox_.stopping; });
}

bool GatewayStream::converse(std::string& why) {
    const auto channel = client::open_channel(target_, tls_);
    if (!channel) {
        why = channel.error().what;
        return false;
    }
    grpc::ClientContext context;
    {
        const std::lock_guard lock(mutex_);
        if (inbox_.stopping) {
            return false;
        }
        context_ = &context;
        inbox_.messages.clear();
        inbox_.stream_ended = false;
    }
    const auto stub = v1::GatewayConfig::NewStub(*channel);
    const auto stream = stub->SyncState(&context);
    session_.on_stream_opened();
    bool identified = false;
    {
        const std::jthread reader([this, &stream] {
            v1::GatewayMessage message;
            while (stream->Read(&message)) {
                const std::lock_guard lock(mutex_);
                inbox_.messages.push_back(std::move(message));
                news_.notify_all();
            }
            const std::lock_guard lock(mutex_);
            inbox_.stream_ended = true;
            news_.notify_all();
        });
        if (!send_and_receive(*stream, why, identified)) {
            context.TryCancel();  // the reader waits for a gateway that has nothing to say
        }
    }
    session_.on_stream_ended();
    const grpc::Status status = stream->Finish();
    {
        const std::lock_guard lock(mutex_);
        context_ = nullptr;
    }
    if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT || status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
        session_.on_refused_stream();
    }
    if (why.empty()) {
        why = text_of(status, identified);
    }
    return identified;
}

template <typename Stream>
bool GatewayStream::send_and_receive(Stream& stream, std::string& why, bool& identified) {
    auto asked_at = Clock::now();
    for (;;) {
        Inbox news = take_news();
        if (news.stopping) {
            return false;
        }
        if (news.objects) {
            session_.on_objects(std::move(news.objects));
        }
        for (const v1::GatewayMessage& message : news.messages) {
            if (const Status handled = handle(message); !handled) {
                why = handled.error().what;
                return false;
            }
            identified |= message.has_identity();
            asked_at = Clock::now();
        }
        if (news.stream_ended) {
            return true;
        }
        if (const auto message = session_.next()) {
            write_log();
            // Fails where the stream has ended; the reader is about to say so, and Finish will say why.
            (void)stream.Write(*message);
            asked_at = Clock::now();
        }
        write_log();
        if ((!identified || session_.awaits_answer()) && Clock::now() - asked_at > kAnswerExpected) {
            log::get("sync").warn("gateway {}: no answer for {} s, still waiting", target_.text,
                                  std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - asked_at).count());
        }
    }
}

Status GatewayStream::handle(const v1::GatewayMessage& message) {
    if (message.has_identity()) {
        return session_.on_identity(message.identity());
    }
    if (message.has_applied()) {
        return session_.on_applied(message.applied());
    }
    return {};  // something newer than we are
}

GatewayStream::Inbox GatewayStream::take_news() {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, kAnswerExpected,
                   [this] { return inbox_.stopping || inbox_.stream_ended || inbox_.objects || !inbox_.messages.empty(); });
    Inbox news{.objects = std::exchange(inbox_.objects, nullptr),
               .messages = std::exchange(inbox_.messages, {}),
               .stream_ended = inbox_.stream_ended,
               .stopping = inbox_.stopping};
    return news;
}

void GatewayStream::write_log() {
    for (const LogLine& line : session_.take_log()) {
        log::get("sync").log(line.level == LogLine::Level::Warning ? spdlog::level::warn : spdlog::level::info, "gateway {}: {}",
                             target_.text, line.text);
    }
}

}  // namespace penstock::sync
