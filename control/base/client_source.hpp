// SPDX-License-Identifier: Apache-2.0
// Address prefix by which limits per source group connections.
#pragma once

#include "dataplane/base/ip.hpp"

namespace penstock {

// One IPv6 client can choose its source addresses from a whole /64.
inline constexpr unsigned kClientSourceBitsV6 = 64;

[[nodiscard]] inline Prefix client_source(const IpAddr& address) {
    return address.is_v4() ? Prefix::host(address) : *Prefix::make(address, kClientSourceBitsV6);
}

}  // namespace penstock
