// What the gateway's own addresses are good for: which serve NodePorts, and which are the source of translated flows. Pure.
#pragma once

#include <set>
#include <vector>

#include "control/model/desired.hpp"
#include "dataplane/nat/snat_config.hpp"
#include "dataplane/route/route_table.hpp"

namespace penstock::gateway {

// A TAP twin as the rules below need it, in NicPort order.
struct TwinAddresses {
    std::string name;
    std::vector<IpAddr> configured;  // --port address=, in order
};

// The identity's addresses: what Linux has on the twins now, sorted.
[[nodiscard]] std::vector<model::PortAddress> port_addresses(const std::vector<TwinAddresses>& twins,
                                                             const std::vector<route::LocalAddress>& present);

// NODEPORT-002: the addresses that serve NodePorts, sorted. Never loopback or link-local ones; of those that are also in `vips` only what
// the Node object lists or the operator gave with the port, since the others are on the twin for the VIP's sake.
[[nodiscard]] std::vector<IpAddr> node_port_addresses(const model::NodePortAddresses& rule,
                                                      const std::vector<model::PortAddress>& addresses,
                                                      const std::set<IpAddr>& vips);

// --snat-address as given; for a family without any, the first global address of each twin: the first configured one that Linux still has
// there, else the smallest, one with a link before a lone /32 or /128 (a VIP). At most limits::kSnatAddressesMax. `elsewhere`: addresses of
// the host's other interfaces, where a given SNAT address may lie as well and is then shared with the host.
[[nodiscard]] std::vector<nat::SnatAddress> snat_addresses(const std::vector<IpAddr>& given,
                                                           const std::vector<TwinAddresses>& twins,
                                                           const std::vector<route::LocalAddress>& present,
                                                           const std::vector<IpAddr>& elsewhere = {});

}  // namespace penstock::gateway
