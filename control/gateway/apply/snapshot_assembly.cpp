// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/apply/snapshot_assembly.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "dataplane/base/limits.hpp"

namespace penstock::gateway {

void SnapshotAssembly::follow_linux(const drivers::MirroredState& mirror, const std::vector<IpAddr>& host) {
    routes_ = route::RouteTable::build(mirror.routes, mirror.neighbours, mirror.addresses, mirror.ports,
                                       mirror.vips);
    nat::SnatConfig snat{.addresses = snat_addresses(options_.snat_addresses, options_.twins,
                                                     mirror.addresses, host, of_shares_),
                         .ports = options_.snat_ports,
                         .host_ephemeral = options_.host_ephemeral};
    if (snat != *snat_) {
        snat_ = std::make_shared<const nat::SnatConfig>(std::move(snat));
    }
}

void SnapshotAssembly::set_shares(const GatewayShares* shares) {
    std::vector<nat::SnatAddress> next = snat_of_shares(shares);
    for (nat::SnatAddress& former : of_shares_) {
        if (std::ranges::find(next, former.address, &nat::SnatAddress::address) == next.end()) {
            former.part = nat::PortPart::None;
            next.push_back(former);
        }
    }
    next.resize(std::min<size_t>(next.size(), limits::kSnatAddressesMax));
    of_shares_ = std::move(next);
}

void SnapshotAssembly::follow_pod_cidrs(const std::vector<Prefix>& pod_cidrs, bool is_first) {
    if (pod_cidrs == pod_cidrs_) {
        return;
    }
    pod_cidrs_ = pod_cidrs;
    // Before the first Service no flow depends on other Pod CIDRs.
    cluster_clients_ = std::make_shared<const lb::ClusterClients>(
        is_first ? lb::ClusterClients(pod_cidrs_) : cluster_clients_->changed_to(pod_cidrs_));
}

void SnapshotAssembly::follow_idle_limits(const Compiler& compiler) {
    std::shared_ptr<conn::IdleLimits> next;
    for (const auto& key : compiler.changes().services) {
        const auto* programmed = compiler.compiled()->services.get(key);
        if (programmed == nullptr) {
            continue;
        }
        const ServiceId id = programmed->service->id;
        const uint32_t seconds = programmed->desired->idle_timeout_s;
        if ((next == nullptr ? *idle_limits_ : *next).of(id) == seconds) {
            continue;
        }
        if (next == nullptr) {
            next = std::make_shared<conn::IdleLimits>(*idle_limits_);
        }
        if (id.value >= next->seconds.size()) {
            next->seconds.resize(id.value + 1);
        }
        next->seconds[id.value] = seconds;
    }
    if (next != nullptr) {
        idle_limits_ = std::move(next);
    }
}

void SnapshotAssembly::issue(const std::vector<conn::FlowOrder>& orders, uint64_t done) {
    const conn::FlowOrders& former = *orders_;
    const uint64_t first = std::clamp(done + 1, former.first, former.last() + 1);
    if (orders.empty() && first == former.first) {
        return;
    }
    auto next = std::make_shared<conn::FlowOrders>();
    next->first = first;
    next->orders.assign(former.orders.begin() + static_cast<std::ptrdiff_t>(first - former.first),
                        former.orders.end());
    next->orders.insert(next->orders.end(), orders.begin(), orders.end());
    orders_ = std::move(next);
}

void SnapshotAssembly::block(route::PrefixSet sources) {
    blocked_ = sources.empty() ? nullptr : std::make_shared<const route::PrefixSet>(std::move(sources));
}

std::unique_ptr<config::Snapshot> SnapshotAssembly::assemble(std::shared_ptr<const lb::ServiceTable> services,
                                                             bool rejects_closed_vip_ports) const {
    auto next = std::make_unique<config::Snapshot>();
    next->services = std::move(services);
    next->routes = routes_;
    next->snat = snat_;
    next->cluster_clients = cluster_clients_;
    next->packets = options_.packets;
    next->rejects_closed_vip_ports = rejects_closed_vip_ports;
    next->flow_orders = orders_;
    next->idle_limits = idle_limits_;
    next->blocked_sources = blocked_;
    next->link_vips = link_vips_;
    next->strays = strays_;
    return next;
}

}  // namespace penstock::gateway
