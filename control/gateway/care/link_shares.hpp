// SPDX-License-Identifier: Apache-2.0
// Shares on links without routers (docs/adr/0052), between the caretaker, which decides about VIPs, and
// LinkDuty, which decides which shares this gateway holds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "control/gateway/shares/gateway_shares.hpp"
#include "control/gateway/shares/probe_rounds.hpp"

namespace penstock::gateway {

// Bit n: share n of the plan `shares`.
struct LinkShares {
    std::shared_ptr<const GatewayShares> shares;  // null: there is no plan yet
    uint64_t able = 0;      // this gateway has a configuration, serves, and does not drain
    uint64_t whole = 0;     // each address of the share has a link that is up
    uint64_t answered = 0;  // a worker may answer for an address of the share
    std::vector<LinkTarget> targets = {};
    bool operator==(const LinkShares&) const = default;
};

struct HeldShares {
    std::shared_ptr<const GatewayShares> shares;  // the plan by which they were chosen; null: not yet
    uint64_t held = 0;
    bool operator==(const HeldShares&) const = default;

    [[nodiscard]] bool has(const IpAddr& address) const {
        return shares != nullptr && (held >> shares->share_of(address) & 1) != 0;
    }
};

struct PlannedVip;

// Whether the address is a SNAT address of its share. Null: it is not.
[[nodiscard]] bool is_snat_of(const GatewayShares* shares, const IpAddr& address);

// Of a gateway that is able to hold shares: `whole` and `targets` by the links of the addresses
// (plan_link_vips()). There is a target for each share and link. A SNAT address precedes VIPs: its holder
// answers for it without a Service.
[[nodiscard]] LinkShares shares_on_links(std::shared_ptr<const GatewayShares> shares,
                                         std::span<const PlannedVip> planned);

}  // namespace penstock::gateway
