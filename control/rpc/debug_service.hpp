// SPDX-License-Identifier: Apache-2.0
// penstock.v1.GatewayDebug: explain a packet, clear affinity, set log levels, drain the gateway, return to
// shares, upgrade it, capture packets.
#pragma once

#include "control/rpc/auth.hpp"
#include "control/rpc/gateway.hpp"
#include "penstock/v1/debug.grpc.pb.h"

namespace penstock::rpc {

// InvalidArgument names the field and the rule.
[[nodiscard]] Result<ExplainQuestion> from_proto(const v1::ExplainRequest& request);

[[nodiscard]] Result<AffinityFilter> from_proto(const v1::ClearAffinityRequest& request);

// InvalidArgument names the limit, or the instruction of the filter.
[[nodiscard]] Result<CaptureOrder> from_proto(const v1::CaptureRequest& request);

class DebugService final : public v1::GatewayDebug::Service {
 public:
    // Both must outlive the server that this service is registered with.
    DebugService(DebugTarget& target, const Authorizer& authorizer)
        : target_(target), authorizer_(authorizer) {}

    grpc::Status Explain(grpc::ServerContext* context, const v1::ExplainRequest* request,
                         v1::Explanation* response) override;
    grpc::Status ClearAffinity(grpc::ServerContext* context, const v1::ClearAffinityRequest* request,
                               v1::ClearAffinityResponse* response) override;
    grpc::Status SetLogLevel(grpc::ServerContext* context, const v1::SetLogLevelRequest* request,
                             v1::SetLogLevelResponse* response) override;
    grpc::Status SetDrained(grpc::ServerContext* context, const v1::SetDrainedRequest* request,
                            v1::SetDrainedResponse* response) override;
    grpc::Status FailBack(grpc::ServerContext* context, const v1::FailBackRequest* request,
                          v1::FailBackResponse* response) override;
    grpc::Status Upgrade(grpc::ServerContext* context, const v1::UpgradeRequest* request,
                         v1::UpgradeResponse* response) override;
    grpc::Status Capture(grpc::ServerContext* context, const v1::CaptureRequest* request,
                         grpc::ServerWriter<v1::CaptureChunk>* writer) override;

 private:
    DebugTarget& target_;
    const Authorizer& authorizer_;
};

}  // namespace penstock::rpc
