// SPDX-License-Identifier: Apache-2.0
// The parts of the status about VIPs and drains.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/shares/gateway_shares.hpp"
#include "control/gateway/views/status_view.hpp"

namespace penstock::gateway {
namespace {

// Service ports with open flows that status lists. An operator needs the largest.
constexpr size_t kOpenFlowsMax = 20;

uint64_t ms_until(std::chrono::steady_clock::time_point time) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(time - std::chrono::steady_clock::now());
    return static_cast<uint64_t>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

// An answered VIP may have a route as well, which its metric shows.
const char* presence_of(const VipView& vip) {
    if (vip.is_answered) {
        return "arp";
    }
    return !vip.is_present ? (vip.is_of_others ? "other" : "none") : vip.metric > 0 ? "route" : "address";
}

// The share of a VIP, or the one that has a SNAT address. Empty: a spread VIP, whose share depends on the
// client, or an address of a plan that is not in force here any more.
std::optional<uint32_t> share_with(const GatewayShares& own, const VipView& vip) {
    if (vip.is_vip) {
        return own.is_spread(vip.address) ? std::nullopt : std::optional<uint32_t>(own.share_of(vip.address));
    }
    const auto& shares = own.plan().shares;
    const auto found = std::ranges::find_if(shares, [&](const shares::Share& share) {
        return std::ranges::find(share.snat, vip.address) != share.snat.end();
    });
    return found == shares.end() ? std::nullopt
                                 : std::optional(static_cast<uint32_t>(found - shares.begin()));
}

}  // namespace

void StatusView::add_drain(v1::Status& out) const {
    const auto report = running_.caretaker.vips();
    out.set_vip_presence(to_string(report->mode));
    out.set_drain_step(to_string(report->drain));
    if (report->depreferred_until) {
        out.set_depreferred_left_ms(ms_until(*report->depreferred_until));
    }
    if (const auto deadline = running_.stop_drain.deadline()) {
        out.set_stop_left_ms(ms_until(*deadline));
    }
    if (!running_.caretaker.drained()) {
        return;
    }
    std::vector<std::pair<uint64_t, std::string>> open;
    for (const auto& [key, flows] : open_flows_by_service(running_.workers, running_.reconciler)) {
        open.emplace_back(flows, key.to_string());
    }
    std::ranges::sort(open, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    open.resize(std::min(open.size(), kOpenFlowsMax));
    for (auto& [flows, service] : open) {
        v1::OpenFlows& message = *out.add_open_flows();
        message.set_service(std::move(service));
        message.set_flows(flows);
    }
}

v1::ListVipsResponse StatusView::vips() const {
    const auto report = running_.caretaker.vips();
    const auto own = running_.shares != nullptr ? running_.shares->shares() : nullptr;
    v1::ListVipsResponse out;
    for (const VipView& vip : report->vips) {
        v1::Vip& message = *out.add_vips();
        message.set_address(vip.address.to_string());
        message.set_presence(presence_of(vip));
        if (vip.is_present) {
            message.set_twin(twin_of(vip.port));
        }
        message.set_metric(vip.metric);
        message.set_reason(vip.reason);
        message.set_foreign_route(vip.has_foreign_route);
        message.set_snat(!vip.is_vip);
        if (const auto share = own != nullptr ? share_with(*own, vip) : std::nullopt) {
            message.set_share(*share);
        }
    }
    return out;
}

}  // namespace penstock::gateway
