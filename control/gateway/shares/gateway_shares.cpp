// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/gateway_shares.hpp"

#include <algorithm>
#include <utility>

namespace penstock::gateway {

GatewayShares::GatewayShares(shares::Plan plan, std::string gateway_name)
    : plan_(std::move(plan)), name_(std::move(gateway_name)), map_(plan_.map()) {
    for (size_t number = 0; number < plan_.shares.size(); ++number) {
        const shares::Share& share = plan_.shares[number];
        Part& part = parts_.emplace_back(Part{.role = plan_.role(number, name_), .reason = ""});
        if (part.role == shares::Role::None) {
            part.reason = "share " + std::to_string(number) + ": primary " + share.primary +
                          (share.heir.empty() ? ", no heir" : ", heir " + share.heir);
        }
    }
}

uint32_t GatewayShares::count(shares::Role role) const noexcept {
    return static_cast<uint32_t>(std::ranges::count(parts_, role, &Part::role));
}

std::string roles_text(const GatewayShares& shares) {
    const shares::Plan& plan = shares.plan();
    const auto list = [&](shares::Role role) {
        std::string numbers;
        for (size_t number = 0; number < plan.shares.size(); ++number) {
            if (shares.part_in(static_cast<uint8_t>(number)).role == role) {
                numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
            }
        }
        return numbers.empty() ? std::string("none") : numbers;
    };
    return "version " + std::to_string(plan.version) + ": primary of shares: " + list(shares::Role::Primary) +
           "; heir of shares: " + list(shares::Role::Heir);
}

}  // namespace penstock::gateway
