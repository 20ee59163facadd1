// SPDX-License-Identifier: Apache-2.0
// Shares of several gateways (docs/adr/0041).
#include <memory>
#include <utility>

#include "control/gateway/program/daemon.hpp"
#include "control/gateway/shares/share_snat.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {

// Before a successor takes over: a file without a valid plan ends it while the former process forwards.
// Called again if the state has changed since, with another reconciler.
Status Daemon::read_shares() {
    if (options_.shares.empty()) {
        return {};
    }
    if (plan_watch_ == nullptr) {
        PENSTOCK_TRY_IN(
            "--shares", plan_watch_,
            PlanWatch::open(
                {.file = options_.shares,
                 .saved = options_.state_file.empty() ? "" : options_.state_file + ".shares",
                 .gateway_name = options_.identity.gateway_name,
                 .obstacle = [given = options_.snat_addresses, ports = options_.ports.size()](
                                 const shares::Plan& plan) { return snat_obstacle(plan, given, ports); }}));
    }
    reconciler_->set_shares(plan_watch_->shares());
    return {};
}

// Before the caretaker's first round: no VIP is announced at the level of another gateway.
void Daemon::follow_shares() {
    if (plan_watch_ == nullptr) {
        return;
    }
    caretaker_->set_shares(plan_watch_->shares());
    const auto started = plan_watch_->start([this](std::shared_ptr<const GatewayShares> shares) {
        reconciler_->set_shares(shares);
        caretaker_->set_shares(std::move(shares));
    });
    if (!started) {
        log::get("control").error("--shares: changes of the file are not applied: {}", started.error().what);
    }
}

}  // namespace penstock::gateway
