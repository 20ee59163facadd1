// SPDX-License-Identifier: Apache-2.0
// The gateway as seen by the state stream: its identity, and access to the reconciler.
#pragma once

#include <mutex>
#include <utility>

#include "control/gateway/apply/reconciler.hpp"
#include "control/gateway/care/caretaker.hpp"
#include "control/rpc/gateway.hpp"

namespace penstock::gateway {

class StreamTarget final : public rpc::StateTarget {
 public:
    // Both must outlive it.
    StreamTarget(Reconciler& reconciler, const Caretaker& caretaker)
        : reconciler_(reconciler), caretaker_(caretaker) {}

    [[nodiscard]] v1::Identity identity() const override;
    [[nodiscard]] v1::Observed observed() const override;
    void submit(rpc::StateUpdate update) override { reconciler_.submit(std::move(update)); }
    void set_control(rpc::ControlPlane control) override {
        const std::lock_guard lock(mutex_);
        control_ = std::move(control);
    }

    [[nodiscard]] rpc::ControlPlane control() const {
        const std::lock_guard lock(mutex_);
        return control_;
    }

 private:
    Reconciler& reconciler_;
    const Caretaker& caretaker_;
    mutable std::mutex mutex_;
    rpc::ControlPlane control_;  // guarded by mutex_
};

}  // namespace penstock::gateway
