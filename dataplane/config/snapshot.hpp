// The immutable value that workers read: everything that decides what happens to a packet and is not a flow. A change makes a new
// Snapshot that shares the parts that stayed; publish.hpp swaps the pointer and frees the old one after every worker has passed on.
#pragma once

#include <cstdint>
#include <memory>

#include "dataplane/config/packet_policy.hpp"
#include "dataplane/conn/flow_order.hpp"
#include "dataplane/lb/cluster_clients.hpp"
#include "dataplane/lb/marked_frontends.hpp"
#include "dataplane/lb/service_table.hpp"
#include "dataplane/nat/snat_config.hpp"
#include "dataplane/route/prefix_set.hpp"
#include "dataplane/route/route_table.hpp"

namespace penstock::config {

struct Snapshot {
    uint64_t generation =
        0;  // counts publications since start; workers retry what waits for next hops when it moves
    std::shared_ptr<const lb::ServiceTable> services = std::make_shared<lb::ServiceTable>();
    std::shared_ptr<const route::RouteTable> routes = std::make_shared<route::RouteTable>();
    std::shared_ptr<const nat::SnatConfig> snat = std::make_shared<nat::SnatConfig>();
    std::shared_ptr<const lb::ClusterClients> cluster_clients = std::make_shared<lb::ClusterClients>();
    std::shared_ptr<const route::PrefixSet> blocked_sources =
        {};  // whose packets are dropped on arrival; null: nobody's, and no look
    std::shared_ptr<const lb::MarkedFrontends> marked = {};  // of `services`; null: no NIC marks packets
    bool rejects_closed_vip_ports =
        false;  // what a packet to a VIP's undeclared port gets, silence otherwise (LB-021)
    PacketPolicy packets;
    // Not yet done by all workers (WorkerSet::flow_orders_done). Published together with the Services that offer the endpoint no longer, so
    // that no worker opens a flow which it has just been told to end.
    std::shared_ptr<const conn::FlowOrders> flow_orders = std::make_shared<conn::FlowOrders>();
    std::shared_ptr<const conn::IdleLimits> idle_limits = std::make_shared<conn::IdleLimits>();
};

}  // namespace penstock::config
