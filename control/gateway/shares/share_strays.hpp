// SPDX-License-Identifier: Apache-2.0
// Strays at this gateway (docs/adr/0051): what its workers need to forward packets of other gateways' shares.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "control/gateway/shares/gateway_shares.hpp"
#include "dataplane/shares/strays.hpp"

namespace penstock::gateway {

// Null: the plan forwards no strays, or there is none (`shares` null), or this gateway is not in it.
// `takes`: whether the gateway of this name takes strays now.
[[nodiscard]] std::shared_ptr<const shares::Strays> strays_of(
    const GatewayShares* shares, const std::function<bool(const std::string& gateway)>& takes);

}  // namespace penstock::gateway
