// SPDX-License-Identifier: Apache-2.0
#include "perf/pipeline/gateway.hpp"

#include <string>
#include <utility>

#include "dataplane/base/check.hpp"

namespace penstock::perf {
namespace {

// The nets of address().
constexpr uint8_t kClientNet = 11, kFrontendNet = 12, kPodNet = 13, kNodeNet = 14, kSnatNet = 15,
                  kUplinkNet = 16;
constexpr uint32_t kSnatAddresses = 4;
// Connections of one client.
constexpr uint32_t kPortsEach = 64;
constexpr L4Port kFirstClientPort = 20'000;

}  // namespace

// Host `host` of a net: NET.x.y.z, or 2001:db8:NET::/64 with the host in its low bytes. Pods: ten in each /24
// or /112, one for each node.
IpAddr Gateway::address(uint8_t net, uint32_t host) const noexcept {
    const auto a = static_cast<uint8_t>(host >> 16), b = static_cast<uint8_t>(host >> 8),
               c = static_cast<uint8_t>(host);
    if (family_ == IpFamily::V4) {
        return IpAddr::v4(net, a, b, c);
    }
    return IpAddr::v6(
        {0x20, 0x01, 0x0d, 0xb8, 0, net, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(host >> 24), a, b, c});
}

namespace {
constexpr nat::PortRange kSnatPorts;
}

size_t Gateway::memory_needed(uint32_t connections) noexcept {
    return conn::Table::memory_needed(connections) + connections * sizeof(conn::BackendLink) +
           nat::PortProposer::memory_needed(connections, kSnatPorts, 1);
}

Gateway::Gateway(IpFamily family, uint32_t connections, uint64_t hz, const Role& role)
    : family_(family),
      table_memory_(conn::Table::memory_needed(connections)),
      links_memory_(connections * sizeof(conn::BackendLink)),
      port_memory_(nat::PortProposer::memory_needed(connections, kSnatPorts, role.workers)) {
    const TscRate rate{hz};
    auto table = conn::Table::create(table_memory_.span(), connections, HashKey::random());
    auto ports = nat::PortProposer::create(port_memory_.span(), connections, kSnatPorts, role.self,
                                           role.workers, HashKey::random());
    PENSTOCK_CHECK(table && ports);
    context_.reset(new pipeline::WorkerContext{
        .self = role.self,
        .workers = role.workers,
        .rate = rate,
        .owner = {role.workers, role.secret},
        .connections = std::move(*table),
        .by_backend = conn::BackendIndex(links_memory_.as<conn::BackendLink>(), backend_heads_),
        .aging = conn::Aging(conn::Limits(conn::Timeouts{}, rate)),
        .snat_ports = std::move(*ports),
        .schedulers = lb::SchedulerState(cursors_, HashKey::random().k0, backend_rows_),
        .pending = route::PendingPackets<rte_mbuf*>(rate),
        .neighbour_use = route::NeighbourUse(neighbour_use_),
        .rejects = pipeline::RejectLimiter(limits::kRejectsPerSecond, limits::kRejectsBurst, rate),
        .counters = {&worker_counters_, service_counters_, backend_counters_},
        .resolve = &resolve_,
    });
    context_->ports[kUp.value] = {kUpMac, true};
    context_->ports[kCluster.value] = {kClusterMac, true};

    auto snat = std::make_shared<nat::SnatConfig>();
    for (uint32_t i = 1; i <= kSnatAddresses; ++i) {
        snat->addresses.push_back({.address = address(kSnatNet, i)});
    }
    snapshot_.snat = snat;
    snapshot_.generation = 1;
    publish_services();
    publish_routes();
}

void Gateway::publish_services() {
    std::vector<std::shared_ptr<const lb::Service>> services;
    std::vector<lb::Frontend> frontends;
    uint32_t service_id = 0, backend_id = 0;
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
        for (uint32_t s = 0; s < kServices; ++s) {
            auto service = std::make_shared<lb::Service>();
            service->id = {service_id++};
            service->namespace_name = "default";
            service->name.append("service-").append(std::to_string(s));
            service->protocol = protocol;
            lb::BackendSet set;
            for (uint32_t e = 0; e < kEndpointsEach; ++e) {
                // A Service's endpoints are on different nodes.
                const uint32_t node = (s + e * (kNodes / kEndpointsEach)) % kNodes;
                set.usable.push_back(
                    {{backend_id++}, address(kPodNet, node << 8 | (10 + s)), kEndpointPort, 1});
            }
            service->sets.push_back(std::move(set));
            frontends.push_back({.address = address(kFrontendNet, 1 + s),
                                 .port = kServicePort,
                                 .protocol = protocol,
                                 .service = service});
            services.push_back(std::move(service));
        }
    }
    auto table = lb::ServiceTable::build(std::move(frontends), std::move(services));
    PENSTOCK_CHECK(table);
    snapshot_.services = *table;
}

void Gateway::publish_routes() {
    const bool v4 = family_ == IpFamily::V4;
    const auto prefix = [](const IpAddr& base, unsigned length) { return *Prefix::make(base, length); };
    const IpAddr router = address(kUplinkNet, 2);
    std::vector<route::Route> routes = {
        {prefix(address(kUplinkNet, 0), v4 ? 24 : 64), kUp, {}, 0},
        {prefix(address(kNodeNet, 0), v4 ? 16 : 64), kCluster, {}, 0},
        {prefix(IpAddr(v4 ? IpAddr::v4(0, 0, 0, 0) : IpAddr()), 0), kUp, router, 100},
    };
    std::vector<route::Neighbour> neighbours = {
        {{0}, kUp, router, {{2, 0, 0, 0, 1, 2}}, route::NeighbourState::Reachable}};
    for (uint32_t node = 0; node < kNodes; ++node) {
        const IpAddr host = address(kNodeNet, 10 + node);
        routes.push_back({prefix(address(kPodNet, node << 8), v4 ? 24 : 120), kCluster, host, 0});
        neighbours.push_back({{1 + node},
                              kCluster,
                              host,
                              {{2, 0, 0, 0, 2, static_cast<uint8_t>(node)}},
                              route::NeighbourState::Reachable});
    }
    snapshot_.routes =
        route::RouteTable::build(std::move(routes), std::move(neighbours),
                                 {{kUp, address(kUplinkNet, 1), static_cast<uint8_t>(v4 ? 24 : 64)},
                                  {kCluster, address(kNodeNet, 1), static_cast<uint8_t>(v4 ? 16 : 64)}},
                                 {{kUp, kUpMac, 1500, true}, {kCluster, kClusterMac, 1500, true}});
}

packet::FlowKey Gateway::client_tuple(uint32_t number, Protocol protocol) const noexcept {
    packet::FlowKey key;
    key.source = address(kClientNet, number / kPortsEach);
    key.source_port = static_cast<L4Port>(kFirstClientPort + number % kPortsEach);
    key.destination = address(kFrontendNet, 1 + number % kServices);
    key.destination_port = kServicePort;
    key.protocol = protocol;
    return key;
}

Gateway::Binding Gateway::binding_of(const packet::FlowKey& leaves_as) const noexcept {
    const auto& endpoint = leaves_as.destination.bytes();
    return {.endpoint = static_cast<uint16_t>(endpoint[14] << 8 | endpoint[15]),
            .snat_port = leaves_as.source_port,
            .snat_address = leaves_as.source.bytes()[15]};
}

packet::FlowKey Gateway::reply_tuple(const Binding& binding, Protocol protocol) const noexcept {
    packet::FlowKey key;
    key.source = address(kPodNet, binding.endpoint);
    key.source_port = kEndpointPort;
    key.destination = address(kSnatNet, binding.snat_address);
    key.destination_port = binding.snat_port;
    key.protocol = protocol;
    return key;
}

}  // namespace penstock::perf
