// SPDX-License-Identifier: Apache-2.0
// Use of the gateway's own addresses: which serve NodePorts, and which are the source of translated flows.
// Pure.
#pragma once

#include <set>
#include <vector>

#include "control/model/desired.hpp"
#include "dataplane/nat/snat_config.hpp"
#include "dataplane/route/route_table.hpp"

namespace penstock::gateway {

// A TAP twin, as used by the functions below, in NicPort order.
struct TwinAddresses {
    std::string name;
    std::vector<IpAddr> configured;  // --port address=, in order
};

// Addresses of the gateway's identity: those that Linux has on the twins now, sorted.
[[nodiscard]] std::vector<model::PortAddress> port_addresses(const std::vector<TwinAddresses>& twins,
                                                             const std::vector<route::LocalAddress>& present);

// NODEPORT-002: the addresses that serve NodePorts, sorted. Loopback and link-local addresses never do. Of
// the addresses in `vips`, only those that the Node object lists or that the operator configured for the port
// do. The others are on the twin only because of the VIP.
[[nodiscard]] std::vector<IpAddr> node_port_addresses(const model::NodePortAddresses& rule,
                                                      const std::vector<model::PortAddress>& addresses,
                                                      const std::set<IpAddr>& vips);

// The addresses of --snat-address. For a family without any: the first global address of each twin. This is
// the first configured address that Linux still has there, otherwise the smallest, with addresses in a subnet
// before a single /32 or /128 (a VIP). At most limits::kSnatAddressesMax. `elsewhere`: addresses of the
// host's other interfaces. A given SNAT address among them is shared with the host. `of_shares`: addresses
// that follow them; no default address is one of these.
[[nodiscard]] std::vector<nat::SnatAddress> snat_addresses(const std::vector<IpAddr>& given,
                                                           const std::vector<TwinAddresses>& twins,
                                                           const std::vector<route::LocalAddress>& present,
                                                           const std::vector<IpAddr>& elsewhere = {},
                                                           std::vector<nat::SnatAddress> of_shares = {});

}  // namespace penstock::gateway
