// SPDX-License-Identifier: Apache-2.0
#include "control/cli/gateway.hpp"

#include <grpcpp/client_context.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "control/cli/interrupt.hpp"
#include "control/client/channel.hpp"
#include "control/tls/handshake.hpp"
#include "penstock/v1/debug.grpc.pb.h"
#include "penstock/v1/status.grpc.pb.h"
#include "penstock/v1/sync.grpc.pb.h"

namespace penstock::cli {
namespace {

// What gRPC reports, and what to do. Its message ends with the system's reason: "... last error: UNKNOWN:
// unix:/run/x.sock: No such file or directory".
std::string unreachable_text(const std::string& program, const client::Target& target,
                             const std::string& message) {
    const std::string state = "systemctl status " +
                              std::string(program == "penstockd" ? "penstock-gateway" : program) +
                              " has its state";
    if (message.contains("Permission denied")) {
        return "this user may not use the socket: run as root, or as a member of the group of " + program +
               " --socket-group";
    }
    if (message.contains("No such file or directory")) {
        return "there is no such socket: " + program + " does not run, or listens elsewhere (--listen); " +
               state;
    }
    if (message.contains("Connection refused")) {
        return "nothing listens there: " + (target.is_unix()
                                                ? program + " has ended; " + state
                                                : "is " + program + " running with this --listen?");
    }
    return "is it running? (" + message + ")";
}

class RpcGateway final : public Gateway {
 public:
    RpcGateway(Program program, client::Target target, uint32_t timeout_s,
               const std::shared_ptr<grpc::Channel>& channel, std::optional<tls::Material> material,
               std::unique_ptr<Gateway> sync)
        : program_(program == Program::Penstockd ? "penstockd" : "penstock-sync"),
          target_(std::move(target)),
          timeout_(timeout_s),
          material_(std::move(material)),
          status_(v1::GatewayStatus::NewStub(channel)),
          debug_(v1::GatewayDebug::NewStub(channel)),
          sync_(v1::SyncStatus::NewStub(channel)),
          sync_gateway_(std::move(sync)) {}

    Result<v1::Status> status() override {
        return call(*status_, &v1::GatewayStatus::Stub::GetStatus, v1::GetStatusRequest());
    }
    Result<v1::ListPortsResponse> ports() override {
        return call(*status_, &v1::GatewayStatus::Stub::ListPorts, v1::ListPortsRequest());
    }
    Result<v1::ListWorkersResponse> workers() override {
        return call(*status_, &v1::GatewayStatus::Stub::ListWorkers, v1::ListWorkersRequest());
    }
    Result<v1::ListServicesResponse> services(const v1::ListServicesRequest& request) override {
        return call(*status_, &v1::GatewayStatus::Stub::ListServices, request);
    }
    Result<v1::ListBackendsResponse> backends(const v1::ListBackendsRequest& request) override {
        return call(*status_, &v1::GatewayStatus::Stub::ListBackends, request);
    }
    Status connections(const v1::ListConnectionsRequest& request,
                       const std::function<void(const v1::Connection&)>& each) override {
        grpc::ClientContext context;
        return read_all<v1::Connection>(
            context, [&] { return status_->ListConnections(&context, request); }, each);
    }
    Status affinity(const v1::ListAffinityRequest& request,
                    const std::function<void(const v1::AffinityEntry&)>& each) override {
        grpc::ClientContext context;
        return read_all<v1::AffinityEntry>(
            context, [&] { return status_->ListAffinity(&context, request); }, each);
    }
    Result<v1::ClearAffinityResponse> clear_affinity(const v1::ClearAffinityRequest& request) override {
        return call(*debug_, &v1::GatewayDebug::Stub::ClearAffinity, request);
    }
    Result<v1::Counters> counters() override {
        return call(*status_, &v1::GatewayStatus::Stub::GetCounters, v1::GetCountersRequest());
    }
    Result<v1::ListRoutesResponse> routes() override {
        return call(*status_, &v1::GatewayStatus::Stub::ListRoutes, v1::ListRoutesRequest());
    }
    Result<v1::ListNeighboursResponse> neighbours() override {
        return call(*status_, &v1::GatewayStatus::Stub::ListNeighbours, v1::ListNeighboursRequest());
    }
    Result<v1::ListFlowsResponse> flows() override {
        return call(*status_, &v1::GatewayStatus::Stub::ListFlows, v1::ListFlowsRequest());
    }
    Result<v1::ListVipsResponse> vips() override {
        return call(*status_, &v1::GatewayStatus::Stub::ListVips, v1::ListVipsRequest());
    }
    Result<v1::ListBfdSessionsResponse> bfd_sessions() override {
        return call(*status_, &v1::GatewayStatus::Stub::ListBfdSessions, v1::ListBfdSessionsRequest());
    }
    Result<v1::ListSharesResponse> shares() override {
        return call(*status_, &v1::GatewayStatus::Stub::ListShares, v1::ListSharesRequest());
    }
    Result<v1::Explanation> explain(const v1::ExplainRequest& request) override {
        return call(*debug_, &v1::GatewayDebug::Stub::Explain, request);
    }
    Result<v1::SetLogLevelResponse> set_log_level(const v1::SetLogLevelRequest& request) override {
        return call(*debug_, &v1::GatewayDebug::Stub::SetLogLevel, request);
    }
    Result<v1::FailBackResponse> fail_back() override {
        return call(*debug_, &v1::GatewayDebug::Stub::FailBack, v1::FailBackRequest());
    }
    Result<v1::SetDrainedResponse> set_drained(const v1::SetDrainedRequest& request) override {
        return call(*debug_, &v1::GatewayDebug::Stub::SetDrained, request);
    }
    Result<v1::UpgradeResponse> upgrade(const v1::UpgradeRequest& request) override {
        return call(*debug_, &v1::GatewayDebug::Stub::Upgrade, request);
    }
    Status capture(const v1::CaptureRequest& request, int interrupt,
                   const std::function<bool(const v1::CaptureChunk&)>& each) override {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(request.seconds()) +
                             timeout_);
        std::atomic<bool> is_cancelled{false};
        const auto cancel = [&] {
            is_cancelled = true;
            context.TryCancel();
        };
        const auto reader = debug_->Capture(&context, request);
        const ReadableWatch watch(interrupt, cancel);
        v1::CaptureChunk chunk;
        while (reader->Read(&chunk)) {
            if (!is_cancelled && !each(chunk)) {
                cancel();
            }
        }
        if (const grpc::Status status = reader->Finish(); !status.ok() && !is_cancelled) {
            return std::unexpected(error_from(status));
        }
        return {};
    }
    Result<v1::Sync> sync() override {
        return call(*sync_, &v1::SyncStatus::Stub::GetSync, v1::GetSyncRequest());
    }
    Result<v1::ListPoolsResponse> pools() override {
        return call(*sync_, &v1::SyncStatus::Stub::ListPools, v1::ListPoolsRequest());
    }
    Result<v1::ListAddressesResponse> addresses(const v1::ListAddressesRequest& request) override {
        return sync_gateway_ != nullptr ? sync_gateway_->addresses(request)
                                        : call(*sync_, &v1::SyncStatus::Stub::ListAddresses, request);
    }

 private:
    template <typename Stub, typename Request, typename Response>
    Result<Response> call(Stub& stub,
                          grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                          const Request& request) {
        grpc::ClientContext context;
        set_deadline(context);
        Response response;
        if (const grpc::Status status = (stub.*method)(&context, request, &response); !status.ok()) {
            return std::unexpected(error_from(status));
        }
        return response;
    }

    // Reads the stream that `start` opens, message by message.
    template <typename Message, typename Start>
    Status read_all(grpc::ClientContext& context, const Start& start,
                    const std::function<void(const Message&)>& each) {
        set_deadline(context);
        const auto reader = start();
        Message message;
        while (reader->Read(&message)) {
            each(message);
        }
        if (const grpc::Status status = reader->Finish(); !status.ok()) {
            return std::unexpected(error_from(status));
        }
        return {};
    }

    void set_deadline(grpc::ClientContext& context) const {
        context.set_deadline(std::chrono::system_clock::now() + timeout_);
    }

    [[nodiscard]] Error error_from(const grpc::Status& status) const {
        switch (status.error_code()) {
            case grpc::StatusCode::UNAVAILABLE:
                if (material_) {
                    if (auto trouble = tls::handshake_trouble(target_.text, *material_, timeout_)) {
                        return {Errc::PermissionDenied,
                                program_ + " at " + target_.text + ": " + std::move(*trouble)};
                    }
                }
                return {Errc::Unavailable, program_ + " is not reachable at " + target_.text + ": " +
                                               unreachable_text(program_, target_, status.error_message())};
            case grpc::StatusCode::DEADLINE_EXCEEDED:
                return {Errc::Unavailable, program_ + " at " + target_.text + " did not answer within " +
                                               std::to_string(timeout_.count()) + " s"};
            case grpc::StatusCode::NOT_FOUND:
                return {Errc::NotFound, status.error_message()};
            case grpc::StatusCode::INVALID_ARGUMENT:
                return {Errc::InvalidArgument, status.error_message()};
            case grpc::StatusCode::PERMISSION_DENIED:
            case grpc::StatusCode::UNAUTHENTICATED:
                return {Errc::PermissionDenied,
                        program_ + " at " + target_.text + " refused the request: " + status.error_message()};
            case grpc::StatusCode::ALREADY_EXISTS:
                return {Errc::AlreadyExists, status.error_message()};
            case grpc::StatusCode::UNIMPLEMENTED:
                return {Errc::Unsupported, program_ + " at " + target_.text +
                                               " does not support this call (different version?)"};
            default:
                return {Errc::Internal, program_ + " at " + target_.text + ": " + status.error_message()};
        }
    }

    const std::string program_;
    client::Target target_;
    std::chrono::seconds timeout_;
    std::optional<tls::Material> material_;  // empty: a Unix socket
    std::unique_ptr<v1::GatewayStatus::Stub> status_;
    std::unique_ptr<v1::GatewayDebug::Stub> debug_;
    std::unique_ptr<v1::SyncStatus::Stub> sync_;
    std::unique_ptr<Gateway> sync_gateway_;  // null: addresses() uses the channel of this object
};

}  // namespace

Result<std::unique_ptr<Gateway>> connect(Program program, const client::Target& target,
                                         const client::TlsFiles& tls, uint32_t timeout_s,
                                         std::unique_ptr<Gateway> sync) {
    std::optional<tls::Material> material;
    if (!target.is_unix()) {
        PENSTOCK_TRY_STATUS(client::check_tls(target, tls));
        PENSTOCK_TRY(material, tls::read_material({tls.certificate, tls.key, tls.authority}, {}));
    }
    PENSTOCK_TRY(const auto channel, client::open_channel(target, material ? &*material : nullptr));
    return std::make_unique<RpcGateway>(program, target, timeout_s, channel, std::move(material),
                                        std::move(sync));
}

}  // namespace penstock::cli
