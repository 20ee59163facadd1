// SPDX-License-Identifier: Apache-2.0
// penstock.v1.GatewayStatus: read-only views. Each call reads from the gateway once and sends the result.
#pragma once

#include <atomic>
#include <optional>

#include "control/rpc/auth.hpp"
#include "control/rpc/gateway.hpp"
#include "penstock/v1/status.grpc.pb.h"

namespace penstock::rpc {

// InvalidArgument names the field: "client: address ...".
[[nodiscard]] Result<ConnectionFilter> from_proto(const v1::ListConnectionsRequest& request);

[[nodiscard]] Result<AffinityFilter> from_proto(const v1::ListAffinityRequest& request);

class StatusService final : public v1::GatewayStatus::Service {
 public:
    // Both must outlive the server that this service is registered with.
    StatusService(const StatusSource& source, const Authorizer& authorizer)
        : source_(source), authorizer_(authorizer) {}

    grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                           v1::Status* response) override;
    grpc::Status ListPorts(grpc::ServerContext* context, const v1::ListPortsRequest* request,
                           v1::ListPortsResponse* response) override;
    grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                             v1::ListWorkersResponse* response) override;
    grpc::Status ListServices(grpc::ServerContext* context, const v1::ListServicesRequest* request,
                              v1::ListServicesResponse* response) override;
    grpc::Status ListBackends(grpc::ServerContext* context, const v1::ListBackendsRequest* request,
                              v1::ListBackendsResponse* response) override;
    grpc::Status ListConnections(grpc::ServerContext* context, const v1::ListConnectionsRequest* request,
                                 grpc::ServerWriter<v1::Connection>* writer) override;
    grpc::Status ListAffinity(grpc::ServerContext* context, const v1::ListAffinityRequest* request,
                              grpc::ServerWriter<v1::AffinityEntry>* writer) override;
    grpc::Status GetCounters(grpc::ServerContext* context, const v1::GetCountersRequest* request,
                             v1::Counters* response) override;
    grpc::Status ListRoutes(grpc::ServerContext* context, const v1::ListRoutesRequest* request,
                            v1::ListRoutesResponse* response) override;
    grpc::Status ListVips(grpc::ServerContext* context, const v1::ListVipsRequest* request,
                          v1::ListVipsResponse* response) override;
    grpc::Status ListBfdSessions(grpc::ServerContext* context, const v1::ListBfdSessionsRequest* request,
                                 v1::ListBfdSessionsResponse* response) override;
    grpc::Status ListShares(grpc::ServerContext* context, const v1::ListSharesRequest* request,
                            v1::ListSharesResponse* response) override;
    grpc::Status ListNeighbours(grpc::ServerContext* context, const v1::ListNeighboursRequest* request,
                                v1::ListNeighboursResponse* response) override;
    grpc::Status ListFlows(grpc::ServerContext* context, const v1::ListFlowsRequest* request,
                           v1::ListFlowsResponse* response) override;

 private:
    // Runs `ask` if the caller may read.
    template <typename Response, typename Ask>
    grpc::Status answer(const grpc::ServerContext& context, Response* response, Ask&& ask) const;
    // Sends the results of `list` for the request's filter, up to its limit, if the caller may read.
    template <typename Request, typename Entry, typename List>
    grpc::Status stream(const grpc::ServerContext& context, const Request& request,
                        grpc::ServerWriter<Entry>& writer, List&& list) const;
    // OK, or NOT_FOUND if `name` is set and no service port has it.
    [[nodiscard]] grpc::Status service_exists(const std::string& namespace_name,
                                              const std::string& name) const;

    // A slot of a read-only caller, held while the call runs. Empty: all slots are taken.
    class ReaderSlot;
    [[nodiscard]] std::optional<ReaderSlot> take_reader_slot(const Caller& caller) const;

    const StatusSource& source_;
    const Authorizer& authorizer_;
    mutable std::atomic<int> readers_{0};
};

}  // namespace penstock::rpc
