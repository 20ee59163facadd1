// Whose connections a limit per source counts together.
#pragma once

#include "dataplane/base/ip.hpp"

namespace penstock {

// One IPv6 client has a whole /64 to choose source addresses from.
inline constexpr unsigned kClientSourceBitsV6 = 64;

[[nodiscard]] inline Prefix client_source(const IpAddr& address) {
    return address.is_v4() ? Prefix::host(address) : *Prefix::make(address, kClientSourceBitsV6);
}

}  // namespace penstock
