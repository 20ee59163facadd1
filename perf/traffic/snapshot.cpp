// SPDX-License-Identifier: Apache-2.0
#include "perf/traffic/snapshot.hpp"

#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/check.hpp"
#include "perf/traffic/network.hpp"

namespace penstock::perf {
namespace {

IpAddr ip(uint32_t address) {
    return IpAddr::v4(static_cast<uint8_t>(address >> 24), static_cast<uint8_t>(address >> 16),
                      static_cast<uint8_t>(address >> 8), static_cast<uint8_t>(address));
}

std::shared_ptr<const lb::ServiceTable> services(lb::SourceMode source, uint32_t endpoints_per_service) {
    std::vector<std::shared_ptr<const lb::Service>> rows;
    std::vector<lb::Frontend> frontends;
    for (uint32_t k = 0; k < kServices; ++k) {
        lb::BackendSet set;
        set.source = source;
        for (uint32_t i = 0; i < endpoints_per_service; ++i) {
            const uint32_t number = k * kEndpointsPerService + i;
            set.usable.push_back({BackendId{number}, ip(kEndpoints + number), kEndpointPort, 1});
        }
        auto row = std::make_shared<lb::Service>();
        row->id = ServiceId{k};
        row->namespace_name = "default";
        row->name = "bench-" + std::to_string(k);
        row->protocol = Protocol::Udp;
        row->sets.push_back(std::move(set));
        frontends.push_back(
            {ip(kVips + k), kServicePort, Protocol::Udp, lb::FrontendClass::ExternalIp, 0, row, nullptr});
        rows.push_back(std::move(row));
    }
    auto table = lb::ServiceTable::build(std::move(frontends), std::move(rows));
    PENSTOCK_CHECK(table.has_value());
    return *table;
}

std::shared_ptr<const route::RouteTable> routes() {
    const IpAddr router = IpAddr::v4(10, 80, 1, 2);
    std::vector<route::Neighbour> neighbours{
        {NeighbourId{0}, kUp, router, kRouterMac, route::NeighbourState::Reachable}};
    for (uint32_t i = 0; i < kServices * kEndpointsPerService; ++i) {
        neighbours.push_back({NeighbourId{1 + i}, kCluster, ip(kEndpoints + i), kEndpointMac,
                              route::NeighbourState::Reachable});
    }
    return route::RouteTable::build(
        {{*Prefix::parse("10.80.1.0/24"), kUp, {}, 0},
         {*Prefix::parse("10.80.2.0/24"), kCluster, {}, 0},
         {*Prefix::parse("0.0.0.0/0"), kUp, router, 100}},
        std::move(neighbours),
        {{kUp, IpAddr::v4(10, 80, 1, 1), 24}, {kCluster, IpAddr::v4(10, 80, 2, 1), 24}},
        {{kUp, kUpMac, 1500, true}, {kCluster, kClusterMac, 1500, true}});
}

}  // namespace

std::unique_ptr<config::Snapshot> make_snapshot(lb::SourceMode source, uint32_t endpoints_per_service) {
    PENSTOCK_CHECK(endpoints_per_service <= kEndpointsPerService);
    auto snat = std::make_shared<nat::SnatConfig>();
    for (const uint8_t last : {uint8_t{1}, uint8_t{2}}) {
        snat->addresses.push_back(
            {.address = IpAddr::v4(192, 0, 2, last), .egress = {}, .shared_with_host = false});
    }
    auto snapshot = std::make_unique<config::Snapshot>();
    snapshot->services = services(source, endpoints_per_service);
    snapshot->routes = routes();
    snapshot->snat = std::move(snat);
    return snapshot;
}

}  // namespace penstock::perf
