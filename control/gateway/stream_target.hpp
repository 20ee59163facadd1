// The gateway as the state stream sees it: its identity, and the way to the reconciler.
#pragma once

#include <atomic>

#include "control/gateway/caretaker.hpp"
#include "control/gateway/reconciler.hpp"
#include "control/rpc/gateway.hpp"

namespace penstock::gateway {

class StreamTarget final : public rpc::StateTarget {
 public:
    // Both outlive it.
    StreamTarget(Reconciler& reconciler, const Caretaker& caretaker) : reconciler_(reconciler), caretaker_(caretaker) {}

    [[nodiscard]] v1::Identity identity() const override;
    [[nodiscard]] v1::Observed observed() const override;
    void submit(rpc::StateUpdate update) override { reconciler_.submit(std::move(update)); }
    void set_control_connected(bool connected) override { connected_ = connected; }

    [[nodiscard]] bool control_connected() const noexcept { return connected_; }

 private:
    Reconciler& reconciler_;
    const Caretaker& caretaker_;
    std::atomic<bool> connected_{false};
};

}  // namespace penstock::gateway
