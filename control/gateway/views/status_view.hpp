// SPDX-License-Identifier: Apache-2.0
// The running gateway as penstock.v1.GatewayStatus. Reads counters and tables in place. The
// reconciler waits only for short reads.
#pragma once

#include "control/gateway/program/running.hpp"
#include "control/rpc/gateway.hpp"

namespace penstock::gateway {

class StatusView final : public rpc::StatusSource {
 public:
    explicit StatusView(const Running& running) : running_(running) {}

    [[nodiscard]] v1::Status status() const override;
    [[nodiscard]] v1::ListPortsResponse ports() const override;
    [[nodiscard]] v1::ListWorkersResponse workers() const override;
    [[nodiscard]] v1::ListServicesResponse services(std::string_view namespace_name,
                                                    std::string_view name) const override;
    [[nodiscard]] v1::ListBackendsResponse backends(std::string_view namespace_name,
                                                    std::string_view service) const override;
    void connections(const rpc::ConnectionFilter& filter,
                     const std::function<bool(const v1::Connection&)>& visit) const override;
    void affinity(const rpc::AffinityFilter& filter,
                  const std::function<bool(const v1::AffinityEntry&)>& visit) const override;
    [[nodiscard]] v1::Counters counters() const override;
    [[nodiscard]] v1::ListRoutesResponse routes() const override;
    [[nodiscard]] v1::ListNeighboursResponse neighbours() const override;
    [[nodiscard]] v1::ListVipsResponse vips() const override;
    [[nodiscard]] v1::ListBfdSessionsResponse bfd_sessions() const override;
    [[nodiscard]] v1::ListSharesResponse shares() const override;
    [[nodiscard]] v1::ListFlowsResponse flows() const override;

 private:
    void add_drain(v1::Status& out) const;
    void add_tables(v1::Tables& out) const;
    void add_flow_records(v1::FlowRecords& out) const;
    [[nodiscard]] v1::Bfd bfd_summary() const;
    [[nodiscard]] v1::SharesSummary shares_summary() const;
    [[nodiscard]] std::string twin_of(NicPortId port) const;

    const Running& running_;
};

}  // namespace penstock::gateway
