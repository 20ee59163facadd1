// SPDX-License-Identifier: Apache-2.0
// The values of --vip-presence.
#pragma once

#include <cstdint>

namespace penstock::gateway {

// How VIPs are announced: not at all, as kernel routes that routing daemons export (vip_route_keeper.hpp),
// as addresses of a twin for which Linux answers ARP and ND (vip_presence.hpp), or by workers that answer ARP
// and ND, in addition to kernel routes (vip_responder.hpp).
enum class VipPresenceMode : uint8_t { Off, Routes, Addresses, Arp };

[[nodiscard]] constexpr const char* to_string(VipPresenceMode mode) noexcept {
    switch (mode) {
        case VipPresenceMode::Off:
            return "off";
        case VipPresenceMode::Routes:
            return "routes";
        case VipPresenceMode::Addresses:
            return "addresses";
        case VipPresenceMode::Arp:
            return "arp";
    }
    return "off";
}

}  // namespace penstock::gateway
