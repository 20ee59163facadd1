// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/debug_service.hpp"

#include <string>
#include <utility>

#include "control/log/log.hpp"
#include "control/rpc/convert.hpp"
#include "control/rpc/errors.hpp"

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

}  // namespace penstock::rpc
