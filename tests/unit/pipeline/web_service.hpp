// SPDX-License-Identifier: Apache-2.0
// One Service at port 80 of a VIP, and SYNs of many clients to it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {

inline const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

inline TestService web() {
    return {.frontends = {{kVip, 80}}, .backends = {11}};
}

// The SYN of the n-th of 15 million clients.
inline PacketBuilder syn(uint32_t n, uint16_t port = 80) {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("198.51." + std::to_string(n / 60'000) + ".1", "80.11.12.10")
        .tcp(static_cast<uint16_t>(1 + n % 60'000), port, "S");
}

}  // namespace penstock::test
