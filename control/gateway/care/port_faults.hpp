// SPDX-License-Identifier: Apache-2.0
// Determines which ports that are down are needed by the configuration. A health check must fail if clients
// cannot reach a frontend or the gateway cannot reach endpoints. It must not fail if a spare link or one of
// several paths is down. Pure.
//
//   endpoint    needs a port that is up on its path. The path is the route; if the route was removed with its
//               link, the previous route, or the twin's subnet
//   VIP         in a twin's subnet: needs that port. Otherwise it is routed to the gateway: needs a port with
//               a default route, if there was one
//   NodePorts   need one port that is up, among the twins that have their addresses
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "control/gateway/care/vip_presence.hpp"
#include "control/gateway/compile/compile.hpp"
#include "dataplane/route/route_table.hpp"

namespace penstock::gateway {

struct PortState {
    NicPortId id;
    std::string twin;
    bool is_up = true;
    bool is_removed = false;
    bool operator==(const PortState&) const = default;
};

struct PortNeeds {
    std::span<const PortState> ports;
    const TwinSubnets& twins;  // by NicPort
    const Compiled& compiled;
    const route::RouteTable& routes;
    // The routes while all ports were up; null: not recorded yet.
    const route::RouteTable* routes_before = nullptr;
};

// One text for each port that is down and needed, in the order of ports. No cost while all ports are up.
[[nodiscard]] std::vector<std::string> port_faults(const PortNeeds& needs);

}  // namespace penstock::gateway
