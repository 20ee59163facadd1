// SPDX-License-Identifier: Apache-2.0
// Connections by number: every key is computed from a number. A bench therefore creates packets without a
// second table, whose cache lines would compete with the measured one. Full NAT over 1,000 endpoints of 100
// Services.
#pragma once

#include <cstdint>

#include "dataplane/conn/connection.hpp"
#include "perf/harness/rte_yardstick.hpp"

namespace penstock::perf {

inline constexpr uint32_t kServices = 100;
inline constexpr uint32_t kEndpoints = 1'000;
inline constexpr L4Port kFirstPort = 1'024;
// Number of ports in use per client, and per SNAT address and endpoint.
inline constexpr uint32_t kPortsUsed = 60'000;
// Numbers from here on are never inserted, so their packets miss.
inline constexpr uint32_t kStrangers = 3'000'000'000;

// The fields of a connection's two tuples, IPv4 in host order.
struct Tuple {
    uint32_t client;
    uint32_t frontend;
    uint32_t endpoint;
    uint32_t snat;
    L4Port client_port;
    L4Port snat_port;
    static constexpr L4Port kFrontendPort = 80, kEndpointPort = 8'080;
};

[[nodiscard]] inline Tuple tuple_of(uint32_t number) noexcept {
    const uint32_t endpoint = number % kEndpoints;
    const uint32_t towards_it = number / kEndpoints;
    return {.client = 0x0b00'0000 + number / kPortsUsed,     // 11.0.0.0 and on
            .frontend = 0xcb00'7100 + endpoint % kServices,  // 203.0.113.0 and on
            .endpoint = 0x0a20'0000 + (endpoint / 10 << 8) + 10 +
                        endpoint % 10,                      // ten on each of 10.32.0.0/24 .. 10.32.99.0/24
            .snat = 0xc000'0200 + towards_it / kPortsUsed,  // 192.0.2.0 and on
            .client_port = static_cast<L4Port>(kFirstPort + number % kPortsUsed),
            .snat_port = static_cast<L4Port>(kFirstPort + towards_it % kPortsUsed)};
}

[[nodiscard]] inline IpAddr v4(uint32_t host_order) noexcept {
    return IpAddr::v4(Be32::from_host(host_order));
}

[[nodiscard]] inline packet::FlowKey flow_key(uint32_t number, conn::Direction direction) noexcept {
    const Tuple t = tuple_of(number);
    packet::FlowKey key;
    key.protocol = Protocol::Tcp;
    if (direction == conn::Direction::Forward) {
        key.source = v4(t.client), key.destination = v4(t.frontend);
        key.source_port = t.client_port, key.destination_port = Tuple::kFrontendPort;
    } else {
        key.source = v4(t.endpoint), key.destination = v4(t.snat);
        key.source_port = Tuple::kEndpointPort, key.destination_port = t.snat_port;
    }
    return key;
}

[[nodiscard]] inline RteKey rte_key(uint32_t number, conn::Direction direction) noexcept {
    const Tuple t = tuple_of(number);
    return direction == conn::Direction::Forward
               ? RteKey{t.client, t.frontend, t.client_port, Tuple::kFrontendPort, 6}
               : RteKey{t.endpoint, t.snat, Tuple::kEndpointPort, t.snat_port, 6};
}

}  // namespace penstock::perf
