// SPDX-License-Identifier: Apache-2.0
// The SNAT addresses of shares at this gateway (docs/adr/0041): which flows use them, and which of their
// ports the gateway opens new flows with. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/gateway/shares/gateway_shares.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::gateway {

// All SNAT addresses of the plan, by share. Those of a share in which the gateway has no role have
// PortPart::None: no flow is opened with them, while replies of flows from before a new plan still reach
// their owner worker. Null: no shares.
[[nodiscard]] std::vector<nat::SnatAddress> snat_of_shares(const GatewayShares* shares);

// The group of flows of a share: its own if this gateway is the share's primary or heir, and the share has
// SNAT addresses; otherwise 0.
[[nodiscard]] uint8_t snat_group_in(const GatewayShares& shares, uint8_t share);

// lb::Frontend::snat_group of a VIP: that of its share, or nat::kGroupOfClient if the VIP is spread. Null: no
// shares.
[[nodiscard]] uint8_t snat_group_of(const GatewayShares* shares, const IpAddr& vip);

// SNAT addresses that are announced by this gateway: those of shares in which it has a role. Sorted.
[[nodiscard]] std::vector<IpAddr> announced_snat(const GatewayShares& shares);

// Why a gateway cannot apply the SNAT addresses of a plan: one of them is an address of `given`
// (--snat-address), or there is no room for all of them beside the addresses of the gateway. A gateway has
// those of `given`, and for a family without any, one for each of `ports` NicPorts. "": it can.
[[nodiscard]] std::string snat_obstacle(const shares::Plan& plan, const std::vector<IpAddr>& given,
                                        size_t ports);

}  // namespace penstock::gateway
