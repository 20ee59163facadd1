// SPDX-License-Identifier: Apache-2.0
// Shares of several gateways.
#include <map>
#include <memory>
#include <string>

#include "control/gateway/shares/gateway_shares.hpp"
#include "control/gateway/views/status_view.hpp"

namespace penstock::gateway {

v1::ListSharesResponse StatusView::shares() const {
    v1::ListSharesResponse out;
    if (running_.shares == nullptr) {
        return out;
    }
    const std::shared_ptr<const GatewayShares> own = running_.shares->shares();
    const shares::Plan& plan = own->plan();
    out.set_plan_version(plan.version);
    out.set_gateway_name(own->gateway_name());
    out.set_fault(running_.shares->fault());
    std::map<std::string, v1::PlannedGateway*> gateways;
    for (const shares::Gateway& gateway : plan.gateways) {
        v1::PlannedGateway& message = *out.add_gateways();
        message.set_name(gateway.name);
        message.set_weight(gateway.weight);
    }
    for (v1::PlannedGateway& message : *out.mutable_gateways()) {
        gateways.emplace(message.name(), &message);
    }
    for (size_t number = 0; number < plan.shares.size(); ++number) {
        const shares::Share& share = plan.shares[number];
        v1::Share& message = *out.add_shares();
        message.set_number(static_cast<uint32_t>(number));
        message.set_primary(share.primary);
        message.set_heir(share.heir);
        message.set_role(to_string(own->part_in(static_cast<uint8_t>(number)).role));
        for (const Prefix& vips : share.vips) {
            message.add_vips(vips.to_string());
        }
        for (const IpAddr& snat : share.snat) {
            message.add_snat(snat.to_string());
        }
        v1::PlannedGateway& primary = *gateways.at(share.primary);
        primary.set_primary_of(primary.primary_of() + 1);
        if (!share.heir.empty()) {
            v1::PlannedGateway& heir = *gateways.at(share.heir);
            heir.set_heir_of(heir.heir_of() + 1);
        }
    }
    for (const VipView& vip : running_.caretaker.vips()->vips) {
        if (!vip.is_vip) {
            continue;
        }
        v1::Share& share = *out.mutable_shares(own->share_of(vip.address));
        share.set_served(share.served() + 1);
        share.set_announced(share.announced() + (vip.is_present ? 1 : 0));
    }
    return out;
}

v1::SharesSummary StatusView::shares_summary() const {
    const std::shared_ptr<const GatewayShares> own = running_.shares->shares();
    v1::SharesSummary out;
    out.set_plan_version(own->plan().version);
    out.set_primary_of(own->count(shares::Role::Primary));
    out.set_heir_of(own->count(shares::Role::Heir));
    out.set_fault(running_.shares->fault());
    return out;
}

}  // namespace penstock::gateway
