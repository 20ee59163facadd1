// SPDX-License-Identifier: Apache-2.0
// The two ends of a flow through the virtual gateway, as calls of packet_builder, so that a test of both
// families is written once:
//
//     for (const Ends& ends : {ends4(), ends6()}) {
//         ends.from_client().tcp(40000, 80, "S")        client -> VIP, as the gateway receives it
//         ends.to_client().tcp(80, 40000, "SA")         VIP -> client, as the gateway sends it
//         ends.from_backend(11).tcp(9376, port, "SA")   endpoint 11 -> the gateway's SNAT address
//         ends.to_backend(11).tcp(port, 9376, "S")      the gateway's SNAT address -> endpoint 11
//
// TTL is 64 towards the gateway and 63 from it, unless a test states otherwise.
#pragma once

#include <string>
#include <utility>

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {

struct Ends {
    IpFamily family = IpFamily::V4;
    IpAddr vip;
    IpAddr client = family == IpFamily::V4 ? kClient : kClient6;
    IpAddr snat = family == IpFamily::V4
                      ? kClusterAddress
                      : kClusterAddress6;  // what an endpoint sees where the source is translated

    // An IP packet between any two addresses. The Ethernet addresses determine the link, and the direction to
    // the gateway or from it.
    [[nodiscard]] PacketBuilder ip(PacketBuilder link, const IpAddr& source, const IpAddr& destination,
                                   uint8_t ttl) const {
        return family == IpFamily::V4 ? link.ipv4(source.to_string(), destination.to_string()).ttl(ttl)
                                      : link.ipv6(source.to_string(), destination.to_string()).hop_limit(ttl);
    }
    [[nodiscard]] static PacketBuilder from_uplink() {
        return eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
    }
    [[nodiscard]] static PacketBuilder to_uplink() {
        return eth().from_mac(kUpMac.to_string()).to_mac(kClientMac.to_string());
    }
    [[nodiscard]] static PacketBuilder from_cluster(uint8_t host) {
        return eth().from_mac(backend_mac(host).to_string()).to_mac(kClusterMac.to_string());
    }
    [[nodiscard]] static PacketBuilder to_cluster(uint8_t host) {
        return eth().from_mac(kClusterMac.to_string()).to_mac(backend_mac(host).to_string());
    }

    [[nodiscard]] PacketBuilder from_client() const { return ip(from_uplink(), client, vip, 64); }
    [[nodiscard]] PacketBuilder to_client() const { return ip(to_uplink(), vip, client, 63); }
    [[nodiscard]] PacketBuilder from_backend(uint8_t host) const {
        return ip(from_cluster(host), backend_address(host, family), snat, 64);
    }
    [[nodiscard]] PacketBuilder to_backend(uint8_t host) const {
        return ip(to_cluster(host), snat, backend_address(host, family), 63);
    }
    // The same if the client's source is kept.
    [[nodiscard]] PacketBuilder from_backend_to_client(uint8_t host) const {
        return ip(from_cluster(host), backend_address(host, family), client, 64);
    }
    [[nodiscard]] PacketBuilder to_backend_from_client(uint8_t host) const {
        return ip(to_cluster(host), client, backend_address(host, family), 63);
    }
};

[[nodiscard]] inline Ends ends4() {
    return {.family = IpFamily::V4, .vip = IpAddr::v4(80, 11, 12, 10)};
}
[[nodiscard]] inline Ends ends6() {
    return {.family = IpFamily::V6, .vip = *IpAddr::parse("2001:db8:80::10")};
}

// One Service on both families' VIPs with one endpoint, so that the answering endpoint is determined.
[[nodiscard]] inline TestService service_on_both(Protocol protocol, L4Port port, L4Port backend_port,
                                                 lb::SourceMode source = lb::SourceMode::Translate) {
    return {.name = "protocols-" + std::string(to_string(protocol)) + "-" + std::to_string(port),
            .protocol = protocol,
            .frontends = {{ends4().vip, port}, {ends6().vip, port}},
            .backends = {11},
            .backend_port = backend_port,
            .source = source};
}

}  // namespace penstock::test
