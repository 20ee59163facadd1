// SPDX-License-Identifier: Apache-2.0
// Shares of several gateways.
#include <bit>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/gateway/shares/gateway_shares.hpp"
#include "control/gateway/shares/share_copies.hpp"
#include "control/gateway/views/status_view.hpp"
#include "control/gateway/views/stray_states.hpp"
#include "dataplane/pipeline/opening/strays.hpp"

namespace penstock::gateway {
namespace {

void add_channel(const ShareCopies::Channel& channel, v1::PlannedGateway& message) {
    if (channel.has_common_shares) {
        message.set_channel(to_string(channel.view.state));
        message.set_channel_fault(channel.view.fault);
    }
    message.set_copies(channel.counts.held);
    if (channel.view.complete_at) {
        const auto age = std::chrono::steady_clock::now() - *channel.view.complete_at;
        message.set_complete_age_ms(
            static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(age).count()));
    }
    message.set_records_received(channel.counts.received);
    message.set_records_refused_share(channel.counts.foreign);
    message.set_records_refused_full(channel.counts.full);
    message.set_records_refused_taken(channel.counts.taken);
    message.set_records_sent(channel.sent.records);
    message.set_copies_there(channel.sent.held);
    message.set_streams(channel.view.streams);
}

// The share's copies come from its other gateway.
void add_copies(const ShareCopies& copies, const GatewayShares& own,
                const std::map<std::string, v1::PlannedGateway*>& gateways, v1::ListSharesResponse& out) {
    for (v1::Share& share : *out.mutable_shares()) {
        const bool is_primary = share.primary() == own.gateway_name();
        if (!is_primary && share.heir() != own.gateway_name()) {
            continue;
        }
        const auto number = static_cast<uint8_t>(share.number());
        share.set_copies(copies.held_in(number));
        out.set_copies(out.copies() + share.copies());
        const auto other = gateways.find(is_primary ? share.heir() : share.primary());
        if (other != gateways.end()) {
            share.set_channel(other->second->channel());
            if (other->second->has_complete_age_ms()) {
                share.set_complete_age_ms(other->second->complete_age_ms());
            }
        }
    }
    out.set_copies_taken(copies.taken());
    out.set_copies_max(copies.capacity());
}

// By the snapshot that workers use, which follows the plan.
void add_strays(const config::Snapshot& snapshot, const std::map<std::string, v1::PlannedGateway*>& gateways,
                v1::ListSharesResponse& out) {
    if (snapshot.strays == nullptr) {
        return;
    }
    const shares::Strays& strays = *snapshot.strays;
    for (const auto& [gateway, state] : stray_states(snapshot)) {
        if (const auto planned = gateways.find(gateway); planned != gateways.end()) {
            planned->second->set_strays(to_string(state));
        }
    }
    for (v1::Share& share : *out.mutable_shares()) {
        const auto next =
            pipeline::stray_hop(snapshot, strays.of_share(static_cast<uint8_t>(share.number())));
        share.set_strays(next ? strays.gateway(next->gateway)->name : "here");
    }
}

}  // namespace

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
        message.set_address(gateway.address);
        message.set_link(gateway.link ? gateway.link->to_string() : "");
    }
    for (v1::PlannedGateway& message : *out.mutable_gateways()) {
        gateways.emplace(message.name(), &message);
    }
    const uint64_t returning = running_.copies->returning();
    const uint64_t held = running_.copies->held();
    const uint64_t holds = running_.link_duty == nullptr ? 0 : running_.link_duty->held();
    for (size_t number = 0; number < plan.shares.size(); ++number) {
        const shares::Share& share = plan.shares[number];
        v1::Share& message = *out.add_shares();
        message.set_number(static_cast<uint32_t>(number));
        message.set_primary(share.primary);
        message.set_heir(share.heir);
        message.set_role(to_string(own->part_in(static_cast<uint8_t>(number)).role));
        message.set_returns((returning >> number & 1) != 0);
        message.set_held((held >> number & 1) != 0);
        message.set_holds((holds >> number & 1) != 0);
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
        if (!vip.is_vip || own->is_spread(vip.address)) {
            continue;
        }
        v1::Share& share = *out.mutable_shares(own->share_of(vip.address));
        share.set_served(share.served() + 1);
        share.set_announced(share.announced() + (vip.is_present ? 1 : 0));
    }
    for (const ShareCopies::Channel& channel : running_.copies->channels(*own)) {
        add_channel(channel, *gateways.at(channel.gateway));
    }
    add_copies(*running_.copies, *own, gateways, out);
    add_strays(running_.workers.current(), gateways, out);
    return out;
}

v1::SharesSummary StatusView::shares_summary() const {
    const std::shared_ptr<const GatewayShares> own = running_.shares->shares();
    v1::SharesSummary out;
    out.set_plan_version(own->plan().version);
    out.set_primary_of(own->count(shares::Role::Primary));
    out.set_heir_of(own->count(shares::Role::Heir));
    out.set_fault(running_.shares->fault());
    out.set_awaiting_fail_back(static_cast<uint32_t>(std::popcount(running_.copies->held())));
    const std::vector<ShareCopies::Channel> channels = running_.copies->channels(*own);
    const ChannelState state = ShareCopies::summary_of(channels);
    out.set_channel(to_string(state));
    for (const ShareCopies::Channel& channel : channels) {
        out.set_copies(out.copies() + channel.counts.held);
        if (channel.has_common_shares && channel.view.state == state && !channel.view.fault.empty() &&
            out.channel_fault().empty()) {
            out.set_channel_fault("gateway " + channel.gateway + ": " + channel.view.fault);
        }
    }
    return out;
}

}  // namespace penstock::gateway
