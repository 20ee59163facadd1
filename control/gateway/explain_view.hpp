// `explain` over gRPC: the worker room's dry run, with names instead of numbers.
#pragma once

#include "control/gateway/running.hpp"
#include "control/rpc/gateway.hpp"

namespace penstock::gateway {

class ExplainView final : public rpc::DebugTarget {
 public:
    explicit ExplainView(const Running& running) : running_(running) {}
    [[nodiscard]] Result<v1::Explanation> explain(const rpc::ExplainQuestion& question) const override;

 private:
    const Running& running_;
};

}  // namespace penstock::gateway
