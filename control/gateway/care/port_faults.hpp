// Which ports that are down the configuration needs: a health check must fail where clients cannot reach a frontend, or the gateway cannot
// reach endpoints, and must not where a spare link or one of several paths is down. Pure.
//
//   an endpoint   needs a port that is up on its way. The way is the route; where that has gone with its link, the route of before, or the
//                 twin's subnet
//   a VIP         in a twin's subnet: needs that port. Any other is routed to the gateway: needs a port with a default route, where there
//                 was one
//   NodePorts     need one port that is up among the twins that have their addresses
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
};

struct PortNeeds {
    std::span<const PortState> ports;
    const TwinSubnets& twins;  // by NicPort
    const Compiled& compiled;
    const route::RouteTable& routes;
    const route::RouteTable* routes_before = nullptr;  // when all ports were up; null: never seen
};

// One sentence for each port that is down and needed, in the order of ports. Costs nothing while all are up.
[[nodiscard]] std::vector<std::string> port_faults(const PortNeeds& needs);

}  // namespace penstock::gateway
