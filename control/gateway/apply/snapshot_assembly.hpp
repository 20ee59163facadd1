// SPDX-License-Identifier: Apache-2.0
// The parts of a snapshot besides the compiled services, and the assembly of snapshots from them. A part
// whose input has not changed is the same object in the next snapshot. Routes are built again for each
// state of Linux that the workers need.
//
//   Linux (mirror) ------> routes, SNAT addresses --+
//   plan of shares ------>          SNAT addresses -+
//   Pod CIDRs -----------> cluster clients ---------+
//   compiled services ---> idle limits -------------+--> assemble() --> Snapshot
//   FlowKeeper ----------> flow orders -------------+
//   blocklist -----------> blocked sources ---------+
//   caretaker -----------> VIPs to answer for ------+
//   channels of copies --> strays ------------------+
//
// Not thread-safe. The reconciler calls it with its state lock held. Publishes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/gateway/compile/port_addresses.hpp"
#include "control/gateway/shares/share_snat.hpp"
#include "dataplane/config/snapshot.hpp"
#include "drivers/host/netlink_mirror.hpp"

namespace penstock::gateway {

class SnapshotAssembly {
 public:
    // Parts of the configuration that never change.
    struct Options {
        std::vector<TwinAddresses> twins;  // in NicPort order
        std::vector<IpAddr> snat_addresses;
        nat::PortRange snat_ports;
        nat::PortRange host_ephemeral;
        config::PacketPolicy packets;
    };
    explicit SnapshotAssembly(Options options) : options_(std::move(options)) {}

    // Updates routes and source addresses from the state of Linux. `host`: the addresses of the host's
    // interfaces. They are used only if SNAT addresses are configured.
    void follow_linux(const drivers::MirroredState& mirror, const std::vector<IpAddr>& host);
    // The shares of several gateways from the next follow_linux() on; null: none. SNAT addresses that the
    // shares had before stay, without ports, for the replies of their flows.
    void set_shares(const GatewayShares* shares);
    // Whether SNAT addresses are configured, by options or by shares.
    [[nodiscard]] bool has_snat_addresses() const {
        return !options_.snat_addresses.empty() || !of_shares_.empty();
    }
    // `is_first`: no Service had an id before.
    void follow_pod_cidrs(const std::vector<Prefix>& pod_cidrs, bool is_first);
    // Follows the last run of the compiler. A removed Service leaves its limit to its remaining flows. A
    // Service that gets its id sets its own limit.
    void follow_idle_limits(const Compiler& compiler);
    // Appends the orders to those that some worker has not finished. `done`: the number of the last order
    // that all workers have finished.
    void issue(const std::vector<conn::FlowOrder>& orders, uint64_t done);
    // Replaces the other gateways to which strays are forwarded; null: they are not.
    void forward_strays(std::shared_ptr<const shares::Strays> strays) { strays_ = std::move(strays); }
    // Replaces the blocked sources; empty: none.
    void block(route::PrefixSet sources);
    // Replaces the VIPs that workers answer ARP and ND for; null: none.
    void answer_for(std::shared_ptr<const route::LinkVips> vips) { link_vips_ = std::move(vips); }

    [[nodiscard]] std::unique_ptr<config::Snapshot> assemble(std::shared_ptr<const lb::ServiceTable> services,
                                                             bool rejects_closed_vip_ports) const;

 private:
    const Options options_;
    std::vector<nat::SnatAddress> of_shares_;  // of the plan in force, then those of earlier plans
    std::shared_ptr<const route::RouteTable> routes_ = std::make_shared<route::RouteTable>();
    std::shared_ptr<const nat::SnatConfig> snat_ = std::make_shared<nat::SnatConfig>();
    std::shared_ptr<const lb::ClusterClients> cluster_clients_ = std::make_shared<lb::ClusterClients>();
    std::vector<Prefix> pod_cidrs_;                     // as in cluster_clients_
    std::shared_ptr<const route::PrefixSet> blocked_;   // null: none
    std::shared_ptr<const route::LinkVips> link_vips_;  // null: none
    std::shared_ptr<const shares::Strays> strays_;      // null: they are not forwarded
    std::shared_ptr<const conn::IdleLimits> idle_limits_ = std::make_shared<conn::IdleLimits>();
    // Orders that were not all done at the last check.
    std::shared_ptr<const conn::FlowOrders> orders_ = std::make_shared<conn::FlowOrders>();
};

}  // namespace penstock::gateway
