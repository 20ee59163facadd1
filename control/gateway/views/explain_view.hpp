// SPDX-License-Identifier: Apache-2.0
// Interactive gRPC calls: `explain`, which is the worker room's dry run with names instead of numbers and
// with the selection of the Service's endpoints, drain, fail-back, upgrade, and capture.
#pragma once

#include "control/gateway/program/running.hpp"
#include "control/rpc/gateway.hpp"

namespace penstock::gateway {

class ExplainView final : public rpc::DebugTarget {
 public:
    explicit ExplainView(const Running& running) : running_(running) {}
    [[nodiscard]] Result<v1::Explanation> explain(const rpc::ExplainQuestion& question) const override;
    [[nodiscard]] Result<uint64_t> clear_affinity(const rpc::AffinityFilter& filter) const override;
    v1::SetDrainedResponse set_drained(const v1::SetDrainedRequest& request) override;
    Result<v1::FailBackResponse> fail_back() override;
    Result<v1::UpgradeResponse> upgrade(const v1::UpgradeRequest& request,
                                        const std::string& requested_by) override {
        return running_.upgrades.request(request, requested_by);
    }
    Status capture(const rpc::CaptureOrder& order, rpc::CaptureClient& client) override {
        return running_.captures.run(order, client);
    }

 private:
    // The selection of the endpoints of the frontend that the packet matches (selection_trace.hpp).
    [[nodiscard]] std::vector<std::string> trace_of(const packet::FlowKey& key, lb::FrontendClass cls) const;

    const Running& running_;
};

}  // namespace penstock::gateway
