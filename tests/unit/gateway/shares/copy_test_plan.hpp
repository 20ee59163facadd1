// SPDX-License-Identifier: Apache-2.0
// A plan of three gateways for tests of copies, seen by edge-1, and connections to its VIPs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "control/gateway/shares/gateway_shares.hpp"
#include "control/shares/plan_text.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/copies/store.hpp"

namespace penstock::gateway::copy_test {

// edge-1 and edge-2 have shares 0 and 1 in common, edge-1 and edge-3 none. edge-4 has no address.
inline std::shared_ptr<const GatewayShares> planned(const std::string& heir_of_1 = "edge-1",
                                                    int version = 1) {
    const std::string text = "version " + std::to_string(version) +
                             "\ngateway edge-1 address=10.0.0.1:7443\ngateway edge-2 address=10.0.0.2:7443\n"
                             "gateway edge-3 address=10.0.0.3:7443\ngateway edge-4\nshares 4\n"
                             "share 0 vips=203.0.113.0/28 primary=edge-1 heir=edge-2\n"
                             "share 1 vips=198.51.100.0/24 primary=edge-2 heir=" +
                             heir_of_1 +
                             "\nshare 2 vips=192.0.2.0/24 primary=edge-2 heir=edge-3\n"
                             "share 3 primary=edge-4 heir=edge-1\nend\n";
    return std::make_shared<const GatewayShares>(shares::parse_plan(text).value(), "edge-1");
}

// Copies of this gateway's connections that no worker has taken over.
inline uint64_t own_copies(const copies::Store& store) {
    uint64_t count = 0;
    store.for_each([&](copies::Store::Slot slot) {
        const bool is_own = copies::Store::origin_of(store.at(slot)) == copies::Store::Origin::Own;
        count += is_own && !store.is_taken(slot) ? 1 : 0;
    });
    return count;
}

inline const IpAddr kVipOfShare0 = IpAddr::v4(203, 0, 113, 1);
inline const IpAddr kVipOfShare1 = IpAddr::v4(198, 51, 100, 1);
inline const IpAddr kVipOfShare2 = IpAddr::v4(192, 0, 2, 1);

// An established TCP connection; its keys follow from the number.
inline conn::Connection numbered(uint32_t n, const IpAddr& vip = kVipOfShare0) {
    conn::Connection connection;
    connection.forward = {.source = IpAddr::v4(Be32::from_host(0x0a000000 + n)),
                          .destination = vip,
                          .source_port = 40'000,
                          .destination_port = 80,
                          .protocol = Protocol::Tcp};
    connection.reverse = {.source = IpAddr::v4(10, 1, 0, 1),
                          .destination = IpAddr::v4(Be32::from_host(0xc0a80000 + (n >> 15))),
                          .source_port = 9'376,
                          .destination_port = static_cast<L4Port>(1'024 + (n & 0x7fff)),
                          .protocol = Protocol::Tcp};
    connection.opened_at = {1'000};
    connection.last_seen = {2'000};
    connection.state = static_cast<uint8_t>(conn::TcpState::Established);
    return connection;
}

}  // namespace penstock::gateway::copy_test
