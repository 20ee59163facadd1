// SPDX-License-Identifier: Apache-2.0
// A gateway that answers from memory and records its requests.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "control/cli/gateway.hpp"

namespace penstock::cli::test {

class FakeGateway final : public Gateway {
 public:
    // Each of the next calls gets one of `statuses`; then status_.
    Result<v1::Status> status() override {
        if (statuses.empty()) {
            return answer(status_);
        }
        const auto next = statuses.front();
        statuses.pop_front();
        return next;
    }
    Result<v1::ListPortsResponse> ports() override { return answer(ports_); }
    Result<v1::ListWorkersResponse> workers() override { return answer(workers_); }
    // A service port of services_.
    v1::ServiceStatus& add_service(const std::string& namespace_name, const std::string& name) {
        v1::ServiceStatus& service = *services_.add_services();
        service.mutable_desired()->mutable_key()->set_namespace_(namespace_name);
        service.mutable_desired()->mutable_key()->set_name(name);
        return service;
    }
    Result<v1::ListServicesResponse> services(const v1::ListServicesRequest& request) override {
        services_request = request;
        services_requests.push_back(request);
        return services_error ? Result<v1::ListServicesResponse>(std::unexpected(*services_error))
                              : answer(services_);
    }
    Result<v1::ListBackendsResponse> backends(const v1::ListBackendsRequest& request) override {
        backends_request = request;
        return answer(backends_);
    }
    Status connections(const v1::ListConnectionsRequest& request,
                       const std::function<void(const v1::Connection&)>& each) override {
        connections_request = request;
        for (const v1::Connection& connection : connections_) {
            each(connection);
        }
        return error ? Status(std::unexpected(*error)) : Status();
    }
    Status affinity(const v1::ListAffinityRequest& request,
                    const std::function<void(const v1::AffinityEntry&)>& each) override {
        affinity_request = request;
        for (const v1::AffinityEntry& entry : affinity_) {
            each(entry);
        }
        return error ? Status(std::unexpected(*error)) : Status();
    }
    Result<v1::ClearAffinityResponse> clear_affinity(const v1::ClearAffinityRequest& request) override {
        clear_request = request;
        return answer(cleared_);
    }
    Result<v1::Counters> counters() override { return answer(counters_); }
    Result<v1::ListRoutesResponse> routes() override { return answer(routes_); }
    Result<v1::ListNeighboursResponse> neighbours() override { return answer(neighbours_); }
    Result<v1::ListFlowsResponse> flows() override { return answer(flows_); }
    Result<v1::ListVipsResponse> vips() override { return answer(vips_); }
    Result<v1::ListBfdSessionsResponse> bfd_sessions() override { return answer(bfd_sessions_); }
    Result<v1::ListSharesResponse> shares() override { return answer(shares_); }
    Result<v1::Explanation> explain(const v1::ExplainRequest& request) override {
        explain_request = request;
        return answer(explanation_);
    }
    Result<v1::SetLogLevelResponse> set_log_level(const v1::SetLogLevelRequest& request) override {
        log_level_request = request;
        return answer(log_levels_);
    }
    Result<v1::FailBackResponse> fail_back() override { return answer(fail_back_); }
    Result<v1::SetDrainedResponse> set_drained(const v1::SetDrainedRequest& request) override {
        set_drained_to.push_back(request.drained());
        until_restart = request.until_restart();
        return answer(set_drained_);
    }
    Result<v1::UpgradeResponse> upgrade(const v1::UpgradeRequest& request) override {
        upgrade_request = request;
        return answer(upgrade_);
    }
    Status capture(const v1::CaptureRequest& request, int,
                   const std::function<bool(const v1::CaptureChunk&)>& each) override {
        capture_request = request;
        for (const v1::CaptureChunk& chunk : chunks_) {
            if (!each(chunk)) {
                break;
            }
        }
        return error ? Status(std::unexpected(*error)) : Status();
    }
    Result<v1::Sync> sync() override { return answer(sync_); }
    Result<v1::ListPoolsResponse> pools() override { return answer(pools_); }
    Result<v1::ListAddressesResponse> addresses(const v1::ListAddressesRequest& request) override {
        addresses_request = request;
        return addresses_error ? Result<v1::ListAddressesResponse>(std::unexpected(*addresses_error))
                               : answer(addresses_);
    }

    std::optional<Error> error;            // returned by every call
    std::optional<Error> addresses_error;  // returned by addresses()
    std::optional<Error> services_error;   // returned by services()
    v1::Status status_;
    v1::ListPortsResponse ports_;
    v1::ListWorkersResponse workers_;
    v1::ListServicesResponse services_;
    v1::ListBackendsResponse backends_;
    std::vector<v1::Connection> connections_;
    std::vector<v1::AffinityEntry> affinity_;
    v1::ClearAffinityResponse cleared_;
    v1::Counters counters_;
    v1::ListRoutesResponse routes_;
    v1::ListNeighboursResponse neighbours_;
    v1::ListFlowsResponse flows_;
    v1::ListVipsResponse vips_;
    v1::ListBfdSessionsResponse bfd_sessions_;
    v1::ListSharesResponse shares_;
    v1::Explanation explanation_;
    v1::SetLogLevelResponse log_levels_;
    v1::FailBackResponse fail_back_;
    v1::SetDrainedResponse set_drained_;
    v1::UpgradeResponse upgrade_;
    v1::Sync sync_;
    v1::ListPoolsResponse pools_;
    v1::ListAddressesResponse addresses_;

    v1::ListServicesRequest services_request;
    std::vector<v1::ListServicesRequest> services_requests;
    v1::ListBackendsRequest backends_request;
    v1::ListConnectionsRequest connections_request;
    v1::ListAffinityRequest affinity_request;
    v1::ListAddressesRequest addresses_request;
    v1::ClearAffinityRequest clear_request;
    v1::ExplainRequest explain_request;
    v1::SetLogLevelRequest log_level_request;
    v1::UpgradeRequest upgrade_request;
    v1::CaptureRequest capture_request;
    std::vector<v1::CaptureChunk> chunks_;
    std::deque<Result<v1::Status>> statuses;
    std::vector<bool> set_drained_to;
    bool until_restart = false;  // of the last call

 private:
    template <typename T>
    Result<T> answer(const T& value) const {
        return error ? Result<T>(std::unexpected(*error)) : Result<T>(value);
    }
};

}  // namespace penstock::cli::test
