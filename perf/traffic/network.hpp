// SPDX-License-Identifier: Apache-2.0
// The network of the benches, equal for all of them:
//
//   clients 198.18.0.0/15 (RFC 2544) - router 10.80.1.2 -- 10.80.1.1 [gateway] 10.80.2.1 -- endpoints
//                                                                               10.80.2.11 ... 10.80.2.138
//
// Sixteen Services 203.0.113.1 to .16, port 80, eight endpoints each on port 9376. A flow is a number, and
// its properties are computed from the number. A million flows therefore cost the sender no memory and no
// cache line.
#pragma once

#include <cstdint>

#include "dataplane/base/ip.hpp"
#include "perf/traffic/frame.hpp"

namespace penstock::perf {

inline constexpr MacAddr kUpMac{{2, 0, 0, 0, 0, 0x0a}};
inline constexpr MacAddr kClusterMac{{2, 0, 0, 0, 0, 0x0b}};
inline constexpr MacAddr kRouterMac{{2, 0, 0, 0, 1, 2}};
inline constexpr MacAddr kEndpointMac{{2, 0, 0, 0, 2, 2}};  // one machine emulates all of them

inline constexpr uint32_t kClients = 198u << 24 | 18u << 16;
inline constexpr uint16_t kClientPortFirst = 1024;
inline constexpr uint32_t kPortsPerClient = 32'768;
inline constexpr uint32_t kVips = 203u << 24 | 113u << 8 | 1;  // 203.0.113.1
inline constexpr uint32_t kServices = 16;
inline constexpr uint16_t kServicePort = 80;
inline constexpr uint32_t kEndpoints = 10u << 24 | 80u << 16 | 2u << 8 | 11;
inline constexpr uint32_t kEndpointsPerService = 8;
inline constexpr uint16_t kEndpointPort = 9376;
inline constexpr uint32_t kFlowsMax = kPortsPerClient * 0x1'0000;  // with the clients of 198.18.0.0/16

// The flow as the client sends it.
[[nodiscard]] constexpr Tuple forward_tuple(uint32_t flow) noexcept {
    return {kClients + flow / kPortsPerClient, kVips + flow % kServices,
            static_cast<uint16_t>(kClientPortFirst + flow % kPortsPerClient), kServicePort};
}
// The answer as the client must receive it.
[[nodiscard]] constexpr Tuple answer_tuple(uint32_t flow) noexcept {
    const Tuple forward = forward_tuple(flow);
    return {forward.destination, forward.source, forward.destination_port, forward.source_port};
}
// Whether a packet of the flow may go to this destination.
[[nodiscard]] constexpr bool is_endpoint_of(uint32_t flow, uint32_t address, uint16_t port) noexcept {
    const uint32_t number = address - kEndpoints;
    return port == kEndpointPort && number < kServices * kEndpointsPerService &&
           number / kEndpointsPerService == flow % kServices;
}

}  // namespace penstock::perf
