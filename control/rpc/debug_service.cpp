// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/debug_service.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/log/log.hpp"
#include "control/rpc/convert.hpp"
#include "control/rpc/errors.hpp"
#include "control/rpc/limits.hpp"

namespace penstock::rpc {

Result<ExplainQuestion> from_proto(const v1::ExplainRequest& request) {
    ExplainQuestion question;
    PENSTOCK_TRY(question.key.protocol, from_proto(request.protocol()));
    PENSTOCK_TRY_IN("source", const IpAddr source, IpAddr::parse(request.source().address()));
    PENSTOCK_TRY_IN("source", question.key.source_port, l4_port(request.source().port()));
    PENSTOCK_TRY_IN("destination", const IpAddr destination, IpAddr::parse(request.destination().address()));
    PENSTOCK_TRY_IN("destination", question.key.destination_port, l4_port(request.destination().port()));
    if (source.family() != destination.family()) {
        return fail(Errc::InvalidArgument, "source " + source.to_string() + " and destination " +
                                               destination.to_string() + " are of different families");
    }
    question.key.source = source;
    question.key.destination = destination;
    question.port = request.has_port() ? std::optional(request.port()) : std::nullopt;
    question.queue = request.queue();
    question.tcp_not_syn = request.tcp_not_syn();
    return question;
}

Result<AffinityFilter> from_proto(const v1::ClearAffinityRequest& request) {
    // Clearing all clients requires `all`, so that an omitted field cannot cause it.
    if (request.all() != request.name().empty() ||
        (request.name().empty() && !request.namespace_().empty())) {
        return fail(Errc::InvalidArgument, "set either a service's namespace and name, or all");
    }
    if (!request.all() && request.namespace_().empty()) {
        return fail(Errc::InvalidArgument, "service " + request.name() + ": its namespace is missing");
    }
    PENSTOCK_TRY(const auto client, optional_address(request.client(), "client"));
    return AffinityFilter{request.namespace_(), request.name(), client};
}

Result<CaptureOrder> from_proto(const v1::CaptureRequest& request) {
    std::vector<capture::Instruction> instructions;
    for (const v1::FilterInstruction& each : request.filter()) {
        if (each.code() > UINT16_MAX || each.jump_true() > UINT8_MAX || each.jump_false() > UINT8_MAX) {
            return fail(Errc::InvalidArgument, "filter: instruction " + std::to_string(instructions.size()) +
                                                   ": a field is too large");
        }
        instructions.push_back({static_cast<uint16_t>(each.code()), static_cast<uint8_t>(each.jump_true()),
                                static_cast<uint8_t>(each.jump_false()), each.k()});
    }
    CaptureOrder order;
    PENSTOCK_TRY_IN("filter", order.filter, capture::Program::make(instructions));
    if (request.form() != v1::CaptureRequest::FORM_UNSPECIFIED) {
        order.form = request.form();
    }
    if (request.namespace_().empty() != request.name().empty()) {
        return fail(Errc::InvalidArgument, "a service needs both its namespace and its name");
    }
    order.namespace_name = request.namespace_();
    order.name = request.name();
    PENSTOCK_TRY(order.client, optional_address(request.client(), "client"));
    if (request.points_size() > 0) {
        order.points = {};
    }
    for (const int point : request.points()) {
        if (point < v1::CaptureRequest::POINT_RX || point > v1::CaptureRequest::POINT_HOST) {
            return fail(Errc::InvalidArgument, "points: " + std::to_string(point) + " is unknown");
        }
        order.points.add(static_cast<capture::Point>(point - v1::CaptureRequest::POINT_RX));
    }
    order.records_max = request.records_max();
    const auto limit = [](const char* name, uint32_t given, uint32_t least, uint32_t most,
                          uint32_t fallback) -> Result<uint32_t> {
        const uint32_t value = given == 0 ? fallback : given;
        if (value < least || value > most) {
            return fail(Errc::InvalidArgument, std::string(name) + ": " + std::to_string(value) +
                                                   " must be " + std::to_string(least) + " to " +
                                                   std::to_string(most));
        }
        return value;
    };
    PENSTOCK_TRY(const uint32_t seconds, limit("seconds", request.seconds(), 1, kCaptureSecondsMax, 60));
    order.limit = std::chrono::seconds(seconds);
    PENSTOCK_TRY(order.snap_bytes, limit("snap_bytes", request.snap_bytes(), kSnapMin, kSnapMax, 128));
    return order;
}

namespace {

// For the log: what is captured.
std::string capture_text(const v1::CaptureRequest& request, const CaptureOrder& order) {
    constexpr size_t kTextMax = 256;
    std::string text = "filter \"" + log::json_escaped(request.filter_text().substr(0, kTextMax)) + "\", " +
                       std::to_string(request.filter_size()) + " instructions";
    if (!order.name.empty()) {
        text += ", service " + order.namespace_name + "/" + order.name;
    }
    if (order.client) {
        text += ", client " + order.client->to_string();
    }
    return text + ", " + std::to_string(order.snap_bytes) + " bytes of each packet, for up to " +
           std::to_string(order.limit.count()) + " s";
}

// The stream to the client. A client that stays connected and does not read would block it for ever, so the
// call is cancelled some time after the limit.
class CaptureStream final : public CaptureClient {
 public:
    CaptureStream(grpc::ServerContext& context, grpc::ServerWriter<v1::CaptureChunk>& writer,
                  std::chrono::seconds limit)
        : context_(context), writer_(writer), timer_([this, limit](const std::stop_token& stop) {
              constexpr std::chrono::seconds kGrace{5};
              std::mutex mutex;
              std::unique_lock lock(mutex);
              std::condition_variable_any wakes;
              if (!wakes.wait_for(lock, stop, limit + kGrace, [&] { return stop.stop_requested(); }) &&
                  !stop.stop_requested()) {
                  context_.TryCancel();
              }
          }) {}
    bool send(const v1::CaptureChunk& chunk) override {
        records_ = chunk.records();
        lost_ = chunk.lost();
        ended_ = chunk.ended();
        return writer_.Write(chunk);
    }
    [[nodiscard]] bool is_gone() const override { return context_.IsCancelled(); }
    // For the log: the result.
    [[nodiscard]] std::string result() const {
        return (ended_.empty() ? "the client is gone" : ended_) + ", " + std::to_string(records_) +
               " records, " + std::to_string(lost_) + " lost";
    }

 private:
    grpc::ServerContext& context_;
    grpc::ServerWriter<v1::CaptureChunk>& writer_;
    uint64_t records_ = 0, lost_ = 0;
    std::string ended_;
    std::jthread timer_;
};

}  // namespace

grpc::Status DebugService::Explain(grpc::ServerContext* context, const v1::ExplainRequest* request,
                                   v1::Explanation* response) {
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        return to_status(status);
    }
    const auto question = from_proto(*request);
    if (!question) {
        return to_status(question.error());
    }
    auto explanation = target_.explain(*question);
    if (!explanation) {
        return to_status(explanation.error());
    }
    *response = std::move(*explanation);
    return grpc::Status::OK;
}

grpc::Status DebugService::ClearAffinity(grpc::ServerContext* context,
                                         const v1::ClearAffinityRequest* request,
                                         v1::ClearAffinityResponse* response) {
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        return to_status(status);
    }
    const auto filter = from_proto(*request);
    if (!filter) {
        return to_status(filter.error());
    }
    const auto cleared = target_.clear_affinity(*filter);
    if (!cleared) {
        return to_status(cleared.error());
    }
    log::get("rpc").info("{} cleared {} affinity entries of {}", context->peer(), *cleared,
                         request->all() ? "all services" : request->namespace_() + "/" + request->name());
    response->set_cleared(*cleared);
    return grpc::Status::OK;
}

grpc::Status DebugService::SetLogLevel(grpc::ServerContext* context, const v1::SetLogLevelRequest* request,
                                       v1::SetLogLevelResponse* response) {
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        return to_status(status);
    }
    if (const auto status = log::set_level(request->logger(), request->level()); !status) {
        return to_status(status);
    }
    log::get("rpc").info("{} set the log level of {} to {}", context->peer(),
                         request->logger().empty() ? "all" : request->logger(), request->level());
    const auto levels = log::levels();
    response->mutable_levels()->insert(levels.begin(), levels.end());
    return grpc::Status::OK;
}

grpc::Status DebugService::SetDrained(grpc::ServerContext* context, const v1::SetDrainedRequest* request,
                                      v1::SetDrainedResponse* response) {
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        return to_status(status);
    }
    *response = target_.set_drained(*request);
    log::get("rpc").info("{} {} the gateway", context->peer(),
                         request->drained() ? "drains" : "ends the drain of");
    return grpc::Status::OK;
}

grpc::Status DebugService::FailBack(grpc::ServerContext* context, const v1::FailBackRequest* /*request*/,
                                    v1::FailBackResponse* response) {
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        return to_status(status);
    }
    const std::string client = identity_of(*context);
    auto done = target_.fail_back();
    if (!done) {
        log::get("rpc").warn("{} requested to fail back: {}", client, done.error().what);
        return to_status(done.error());
    }
    log::get("rpc").info("{} requested to fail back: {} shares", client, done->shares_size());
    *response = std::move(*done);
    return grpc::Status::OK;
}

grpc::Status DebugService::Upgrade(grpc::ServerContext* context, const v1::UpgradeRequest* request,
                                   v1::UpgradeResponse* response) {
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        return to_status(status);
    }
    const std::string client = identity_of(*context);
    auto begun = target_.upgrade(*request, client);
    if (!begun) {
        log::get("rpc").warn("{} requested an upgrade: {}", client, begun.error().what);
        return to_status(begun.error());
    }
    log::get("rpc").info("{} began upgrade {}", client, begun->number());
    *response = std::move(*begun);
    return grpc::Status::OK;
}

grpc::Status DebugService::Capture(grpc::ServerContext* context, const v1::CaptureRequest* request,
                                   grpc::ServerWriter<v1::CaptureChunk>* writer) {
    const std::string client = identity_of(*context);
    if (const auto status = authorizer_.may_configure(caller_of(*context)); !status) {
        log::get("rpc").warn("{} requested a capture: {}", client, status.error().what);
        return to_status(status);
    }
    const auto order = from_proto(*request);
    if (!order) {
        return to_status(order.error());
    }
    log::get("rpc").info("{} captures packets: {}", client, capture_text(*request, *order));
    CaptureStream stream(*context, *writer, order->limit);
    const auto status = target_.capture(*order, stream);
    if (!status) {
        log::get("rpc").warn("{}: no capture: {}", client, status.error().what);
        return to_status(status);
    }
    log::get("rpc").info("the capture of {} has ended: {}", client, stream.result());
    return grpc::Status::OK;
}

}  // namespace penstock::rpc
