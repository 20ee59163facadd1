// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/share_strays.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "control/gateway/shares/share_snat.hpp"

namespace penstock::gateway {
namespace {

using shares::Strays;

static_assert(shares::kGatewaysMax < Strays::kNone);

Strays::GatewayNumber number_of(const shares::Plan& plan, const std::string& gateway) {
    const auto found = std::ranges::find(plan.gateways, gateway, &shares::Gateway::name);
    return found == plan.gateways.end() ? Strays::kNone
                                        : static_cast<Strays::GatewayNumber>(found - plan.gateways.begin());
}

}  // namespace

std::shared_ptr<const Strays> strays_of(const GatewayShares* shares,
                                        const std::function<bool(const std::string& gateway)>& takes) {
    if (shares == nullptr || !shares->plan().forwards_strays) {
        return nullptr;
    }
    const shares::Plan& plan = shares->plan();
    Strays::Parts parts{.map = plan.map(), .self = number_of(plan, shares->gateway_name())};
    if (parts.self == Strays::kNone) {
        return nullptr;
    }
    for (const shares::Gateway& gateway : plan.gateways) {
        parts.gateways.push_back(
            {.name = gateway.name,
             .link = gateway.link.value_or(IpAddr()),
             .takes_strays = gateway.name != shares->gateway_name() && takes(gateway.name)});
    }
    for (size_t number = 0; number < plan.shares.size(); ++number) {
        const shares::Share& share = plan.shares[number];
        parts.shares.push_back({number_of(plan, share.primary), number_of(plan, share.heir)});
        parts.snat_groups.push_back(snat_group_in(*shares, static_cast<uint8_t>(number)));
        for (const IpAddr& snat : share.snat) {
            parts.snat.emplace(snat, static_cast<uint8_t>(number));
        }
    }
    return std::make_shared<const Strays>(std::move(parts));
}

}  // namespace penstock::gateway
