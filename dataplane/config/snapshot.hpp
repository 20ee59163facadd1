// SPDX-License-Identifier: Apache-2.0
// The immutable configuration that workers read: everything that determines the treatment of a packet, except
// flow state. A change creates a new Snapshot that shares the unchanged parts. publish.hpp exchanges the
// pointer and frees the old snapshot after every worker has passed a quiescent point.
#pragma once

#include <cstdint>
#include <memory>

#include "dataplane/config/packet_policy.hpp"
#include "dataplane/conn/flow_order.hpp"
#include "dataplane/lb/cluster_clients.hpp"
#include "dataplane/lb/marked_frontends.hpp"
#include "dataplane/lb/service_table.hpp"
#include "dataplane/nat/snat_config.hpp"
#include "dataplane/route/link_vips.hpp"
#include "dataplane/route/prefix_set.hpp"
#include "dataplane/route/route_table.hpp"
#include "dataplane/shares/strays.hpp"

namespace penstock::config {

struct Snapshot {
    // Counts publications since start. When it changes, workers retry the packets that wait for next hops.
    uint64_t generation = 0;
    std::shared_ptr<const lb::ServiceTable> services = std::make_shared<lb::ServiceTable>();
    std::shared_ptr<const route::RouteTable> routes = std::make_shared<route::RouteTable>();
    std::shared_ptr<const nat::SnatConfig> snat = std::make_shared<nat::SnatConfig>();
    std::shared_ptr<const lb::ClusterClients> cluster_clients = std::make_shared<lb::ClusterClients>();
    // Packets from these sources are dropped on arrival. Null: no blocklist, and no look-up.
    std::shared_ptr<const route::PrefixSet> blocked_sources = {};
    std::shared_ptr<const lb::MarkedFrontends> marked = {};  // of `services`; null: no NIC marks packets
    // VIPs for which workers answer ARP and neighbour discovery. Null: none, and such messages are not read.
    std::shared_ptr<const route::LinkVips> link_vips = {};
    // Null: strays are not forwarded; the gateway serves each packet that it gets.
    std::shared_ptr<const shares::Strays> strays = {};
    // Whether a packet to an undeclared port of a VIP is rejected (LB-021). If false, it is dropped silently.
    bool rejects_closed_vip_ports = false;
    PacketPolicy packets;
    // Orders that not all workers have completed (WorkerSet::flow_orders_done). An order is published
    // together with the Services that no longer offer the endpoint. Otherwise a worker could open a flow that
    // it has just been ordered to end.
    std::shared_ptr<const conn::FlowOrders> flow_orders = std::make_shared<conn::FlowOrders>();
    std::shared_ptr<const conn::IdleLimits> idle_limits = std::make_shared<conn::IdleLimits>();
};

}  // namespace penstock::config
