// SPDX-License-Identifier: Apache-2.0
// The part of this gateway in the plan of shares: it announces VIPs of which it is the primary with the
// metric of its own level, and VIPs of which it is the heir with kStandByMetric. Routers therefore use the
// heir as soon as the primary's route is gone. No other gateway announces them. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/shares/plan.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::gateway {

class GatewayShares {
 public:
    GatewayShares(shares::Plan plan, std::string gateway_name);

    struct Part {
        shares::Role role = shares::Role::None;
        std::string reason;  // Role::None: who serves the share, for display
    };
    [[nodiscard]] uint8_t share_of(const IpAddr& vip) const { return map_.share_of(vip); }
    // The same for the packets of a client, which has a share of its own at a spread VIP.
    [[nodiscard]] uint8_t share_of(const IpAddr& vip, const IpAddr& client) const {
        return map_.share_of(vip, client);
    }
    [[nodiscard]] bool is_spread(const IpAddr& vip) const noexcept { return map_.is_spread(vip); }
    [[nodiscard]] const Part& part_in(uint8_t share) const noexcept { return parts_[share]; }
    // The number of shares with this role.
    [[nodiscard]] uint32_t count(shares::Role role) const noexcept;

    [[nodiscard]] const shares::Plan& plan() const noexcept { return plan_; }
    [[nodiscard]] const std::string& gateway_name() const noexcept { return name_; }

 private:
    shares::Plan plan_;
    std::string name_;
    shares::ShareMap map_;
    std::vector<Part> parts_;  // by share
};

// "version 7: primary of shares: 0, 3; heir of shares: 1", for logs.
[[nodiscard]] std::string roles_text(const GatewayShares& shares);

}  // namespace penstock::gateway
