// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/link_shares.hpp"

#include <algorithm>
#include <utility>

#include "control/gateway/care/vip_responder.hpp"

namespace penstock::gateway {

bool is_snat_of(const GatewayShares* shares, const IpAddr& address) {
    return shares != nullptr &&
           std::ranges::binary_search(shares->plan().shares[shares->share_of(address)].snat, address);
}

LinkShares shares_on_links(std::shared_ptr<const GatewayShares> shares, std::span<const PlannedVip> planned) {
    LinkShares out{.shares = std::move(shares)};
    if (out.shares == nullptr) {
        return out;
    }
    out.able = out.whole = ~uint64_t{0};
    for (const PlannedVip& vip : planned) {
        const uint8_t share = out.shares->share_of(vip.address);
        if (vip.reason == kLinkDown) {
            out.whole &= ~(uint64_t{1} << share);
        }
        if (!vip.port.is_set()) {
            continue;
        }
        const bool is_snat = is_snat_of(out.shares.get(), vip.address);
        const auto same = std::ranges::find_if(out.targets, [&](const LinkTarget& target) {
            return target.share == share && target.vip.port == vip.port;
        });
        if (same == out.targets.end()) {
            out.targets.push_back({share, {vip.address, vip.port, is_snat}});
        } else if (is_snat && !same->vip.is_snat) {
            same->vip = {vip.address, vip.port, is_snat};
        }
    }
    return out;
}

}  // namespace penstock::gateway
