// SPDX-License-Identifier: Apache-2.0
#include "tests/bound/explain_draws.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>

#include "tests/support/packet_builder.hpp"

namespace penstock::test {
namespace {

using packet::FlowKey;

constexpr nat::PortRange kNarrowPorts{2'048, 2'175};

const MacAddr kSenderMac{{2, 0, 0, 0, 9, 9}};
constexpr uint8_t kHostsOwn = 1;  // 10.80.2.1 and fd00:80:2::1: endpoints on the gateway host
constexpr uint8_t kWithoutRoute = 99;
constexpr uint8_t kUnresolved = 200;
constexpr uint8_t kPodRouter = 11;

template <typename T>
T one_of(Prng& random, const std::vector<T>& list) {
    return list[random.below(list.size())];
}

const std::vector<IpAddr>& vips() {
    static const std::vector<IpAddr> list{IpAddr::v4(80, 11, 12, 10), IpAddr::v4(80, 11, 12, 11),
                                          *IpAddr::parse("2001:db8:80::10"),
                                          *IpAddr::parse("2001:db8:80::11")};
    return list;
}
constexpr std::array<L4Port, 4> kPorts{53, 80, 443, 8080};
constexpr std::array<L4Port, 2> kNodePorts{30'080, 30'443};

// Frontends are unique over the Services of a world.
using Taken = std::vector<std::pair<Protocol, std::pair<IpAddr, L4Port>>>;

TestService some_service(Prng& random, size_t index, Taken& taken) {
    TestService service;
    service.name = "s" + std::to_string(index);
    service.protocol =
        one_of<Protocol>(random, {Protocol::Tcp, Protocol::Tcp, Protocol::Udp, Protocol::Sctp});
    const auto add = [&](auto& list) {
        const std::pair<IpAddr, L4Port> frontend{one_of(random, vips()), kPorts[random.below(kPorts.size())]};
        if (std::ranges::find(taken, std::pair(service.protocol, frontend)) == taken.end()) {
            taken.emplace_back(service.protocol, frontend);
            list.push_back(frontend);
        }
    };
    for (uint64_t count = random.between(1, 4); count > 0; --count) {
        add(service.frontends);
    }
    const auto some_backends = [&] {
        std::vector<uint8_t> hosts;
        if (random.one_in(6)) {
            return hosts;
        }
        for (const uint8_t host :
             {kHostsOwn, uint8_t{11}, uint8_t{12}, uint8_t{13}, kWithoutRoute, kUnresolved}) {
            if (random.one_in(host >= 11 && host <= 13 ? 2 : 8)) {
                hosts.push_back(host);
            }
        }
        return hosts;
    };
    service.backends = some_backends();
    if (random.one_in(3)) {
        add(service.local_frontends);
        service.local_backends = some_backends();
    }
    if (const L4Port port = kNodePorts[random.below(2)]; random.one_in(2)) {
        const std::pair<IpAddr, L4Port> mark{kUpAddress, port};
        if (std::ranges::find(taken, std::pair(service.protocol, mark)) == taken.end()) {
            taken.emplace_back(service.protocol, mark);
            service.node_ports = {port};
        }
    }
    service.backend_port = random.one_in(2) ? L4Port{9'376} : L4Port{80};
    service.source = random.one_in(2) ? lb::SourceMode::Keep : lb::SourceMode::Translate;
    service.when_empty = one_of<lb::EmptyAction>(
        random, {lb::EmptyAction::Reject, lb::EmptyAction::Drop, lb::EmptyAction::DropNoLocal});
    service.scheduler = random.one_in(4) ? lb::SchedulerKind::SourceHash
                                         : lb::kSchedulerKinds[random.below(lb::kSchedulerKinds.size())];
    if (random.one_in(5)) {
        service.source_ranges = {*Prefix::parse("10.80.1.0/30"), *Prefix::parse("fd00:80:1::/127")};
    }
    if (random.one_in(3)) {
        service.affinity_timeout_s = 600;
    }
    if (random.one_in(4)) {
        service.inside = TestService::Inside{
            random.one_in(2) ? lb::SourceMode::Keep : lb::SourceMode::Translate, some_backends()};
    }
    if (random.one_in(4)) {
        service.endpoints_of = random.one_in(2) ? IpFamily::V4 : IpFamily::V6;
    }
    service.snat_group = static_cast<uint8_t>(random.below(3));
    return service;
}

std::shared_ptr<const route::RouteTable> some_routes(Prng& random) {
    std::vector<route::Route> routes;
    const auto add = [&](const char* prefix, NicPortId egress, std::optional<IpAddr> gateway = {}) {
        if (!random.one_in(12)) {
            routes.push_back({*Prefix::parse(prefix), egress, gateway, 100});
        }
    };
    add("10.80.1.0/24", kUp);
    add("10.80.2.0/24", kCluster);
    add("0.0.0.0/0", kUp, kClient);
    add("10.244.0.0/16", kCluster, backend_address(kPodRouter));
    add("fd00:80:1::/64", kUp);
    add("fd00:80:2::/64", kCluster);
    add("::/0", kUp, kClient6);
    routes.push_back({*Prefix::parse("10.80.2.99/32"), {}, {}, 0});
    routes.push_back({*Prefix::parse("fd00:80:2::63/128"), {}, {}, 0});
    std::vector<route::Neighbour> neighbours;
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        const auto know = [&](NicPortId port, const IpAddr& address, const MacAddr& mac) {
            const auto state = random.one_in(12)  ? route::NeighbourState::Failed
                               : random.one_in(8) ? route::NeighbourState::Resolving
                               : random.one_in(2) ? route::NeighbourState::Stale
                                                  : route::NeighbourState::Reachable;
            neighbours.push_back(
                {NeighbourId{static_cast<uint32_t>(neighbours.size())}, port, address, mac, state});
        };
        know(kUp, family == IpFamily::V4 ? kClient : kClient6, kClientMac);
        for (const uint8_t host : {uint8_t{11}, uint8_t{12}, uint8_t{13}}) {
            know(kCluster, backend_address(host, family), backend_mac(host));
        }
    }
    std::vector<route::LocalAddress> locals{{kUp, kUpAddress, 24},
                                            {kUp, kUpAddress6, 64},
                                            {kCluster, kClusterAddress, 24},
                                            {kCluster, kClusterAddress6, 64}};
    if (random.one_in(6)) {
        locals.push_back({kUp, vips()[0], 32});  // an external IP that the host has
    }
    return route::RouteTable::build(std::move(routes), std::move(neighbours), std::move(locals),
                                    {{kUp, kUpMac, 1500, true}, {kCluster, kClusterMac, 1500, true}});
}

std::shared_ptr<const nat::SnatConfig> some_snat(Prng& random, bool is_narrow) {
    auto snat = std::make_shared<nat::SnatConfig>();
    const bool is_shared = random.one_in(2);
    const bool fits_any = random.one_in(3);
    for (const auto& [address, port] :
         std::vector<std::pair<IpAddr, NicPortId>>{{kUpAddress, kUp},
                                                   {kClusterAddress, kCluster},
                                                   {kUpAddress6, kUp},
                                                   {kClusterAddress6, kCluster}}) {
        if (!random.one_in(10)) {
            snat->addresses.push_back({address, fits_any ? NicPortId() : port, is_shared});
        }
    }
    if (random.one_in(3)) {
        snat->addresses.push_back({IpAddr::v4(10, 80, 2, 9), NicPortId(), false});
        snat->addresses.push_back({v6_on_link(2, 9), NicPortId(), false});
    }
    // One with addresses of both families, one of IPv4 only or without.
    for (const uint8_t share : {uint8_t{0}, uint8_t{1}}) {
        const nat::PortPart part = random.one_in(2) ? nat::PortPart::Primary : nat::PortPart::Heir;
        const auto group = static_cast<uint8_t>(share + 1);
        if (share == 0 || random.one_in(2)) {
            snat->addresses.push_back({.address = IpAddr::v4(198, 51, 200, group),
                                       .egress = {},
                                       .shared_with_host = random.one_in(4),
                                       .group = group,
                                       .part = part});
        }
        if (share == 0) {
            snat->addresses.push_back(
                {.address = v6_on_link(9, group), .egress = {}, .group = group, .part = part});
        }
    }
    if (is_narrow) {
        snat->ports = kNarrowPorts;
    }
    return snat;
}

IpAddr some_source(Prng& random) {
    const uint8_t host = static_cast<uint8_t>(random.between(2, 4));
    switch (random.below(24)) {
        case 0:
            return IpAddr::v4(198, 51, 100, host);  // behind the router on the uplink
        case 1:
            return *IpAddr::parse("2001:db8:99::5");
        case 2:
            return IpAddr::v4(10, 244, 3, host);  // a Pod
        case 3:
            return backend_address(static_cast<uint8_t>(random.between(11, 13)));
        case 4:
            return backend_address(static_cast<uint8_t>(random.between(11, 13)), IpFamily::V6);
        case 5:
            return one_of<IpAddr>(random, {kUpAddress, kClusterAddress6, IpAddr::v4(10, 80, 2, 9),
                                           IpAddr::v4(10, 80, 1, 255), backend_address(kWithoutRoute)});
        case 6:
            return one_of(random, vips());
        case 7:
            return one_of<IpAddr>(random,
                                  {IpAddr::v4(127, 0, 0, 1), IpAddr::v4(0, 0, 0, 0), IpAddr::v4(224, 0, 0, 9),
                                   *IpAddr::parse("fe80::7"), *IpAddr::parse("::1")});
        default:
            return random.one_in(2) ? IpAddr::v4(10, 80, 1, host) : v6_on_link(1, host);
    }
}

IpAddr some_destination(Prng& random, bool is_v4) {
    switch (random.below(16)) {
        case 0:
            return is_v4 ? kUpAddress : kUpAddress6;
        case 1:
            return is_v4 ? kClusterAddress : kClusterAddress6;
        case 2:
            return is_v4 ? IpAddr::v4(203, 0, 113, 8) : *IpAddr::parse("2001:db8:77::8");
        case 3:
            return random.one_in(2) ? (is_v4 ? IpAddr::v4(224, 0, 0, 18) : *IpAddr::parse("ff02::5"))
                                    : (is_v4 ? IpAddr::v4(10, 80, 1, 255) : *IpAddr::parse("fe80::9"));
        default:
            return vips()[(is_v4 ? 0 : 2) + random.below(2)];
    }
}

// Two gateways with four shares; the other one where an endpoint would be, or behind a router.
std::shared_ptr<const shares::Strays> some_strays(Prng& random) {
    using shares::Strays;
    if (!random.one_in(3)) {
        return nullptr;
    }
    const IpAddr link = random.one_in(6) ? IpAddr::v4(192, 0, 2, 1) : backend_address(12);
    Strays::Parts parts{
        .map = shares::ShareMap(4, {}, {.vips = {*Prefix::parse("::/0")}, .key = random.next()}),
        .shares = {{0, 1}, {1, 0}, {1, Strays::kNone}, {0, 1}},
        .gateways = {{"edge-1", kUpAddress, true}, {"edge-2", link, !random.one_in(4)}},
        .self = 0,
        .snat = {}};
    return std::make_shared<const Strays>(std::move(parts));
}

}  // namespace

World some_world(Prng& random, VirtualGateway& gateway) {
    World world;
    Taken taken;
    for (size_t count = random.between(2, 6), index = 0; index < count; ++index) {
        world.services.push_back(some_service(random, index, taken));
    }
    world.is_narrow = random.one_in(4);
    if (world.is_narrow) {
        world.services[0].backends = {12};
        world.services[0].source = lb::SourceMode::Translate;
        world.services[0].source_ranges = {};
        world.services[0].affinity_timeout_s = 0;
    }
    gateway.publish(world.services);
    gateway.set_pod_cidrs(random.one_in(2) ? std::vector{*Prefix::parse("10.244.0.0/16")}
                                           : std::vector<Prefix>());
    gateway.set_rejects_closed_vip_ports(random.one_in(2));
    config::PacketPolicy packets{.passes_ip_options = random.one_in(2),
                                 .aborts_sctp = random.one_in(2),
                                 .picks_up_midstream = !random.one_in(4)};
    for (config::ReversePath& mode : packets.reverse_path) {
        mode = one_of<config::ReversePath>(
            random, {config::ReversePath::Feasible, config::ReversePath::Feasible,
                     config::ReversePath::Strict, config::ReversePath::Loose, config::ReversePath::Off});
    }
    gateway.set_packets(packets);
    route::PrefixSet blocked;
    if (random.one_in(3)) {
        blocked = route::PrefixSet({*Prefix::parse("10.80.1.4/32"), *Prefix::parse("fd00:80:1::4/128")});
    }
    gateway.set_blocked_sources(blocked);
    world.snapshot = gateway.snapshot();
    world.snapshot.routes = some_routes(random);
    world.snapshot.snat = some_snat(random, world.is_narrow);
    world.snapshot.strays = some_strays(random);
    return world;
}

worker::ExplainQuery some_query(Prng& random, const World& world, StoppedWorkers& workers) {
    worker::ExplainQuery query;
    query.receiver = {static_cast<uint8_t>(random.below(workers.count()))};
    query.tcp_not_syn = random.one_in(4);
    if (random.one_in(3)) {
        if (const auto [own, index] = workers.some_connection(random); own != nullptr) {
            const conn::Direction direction =
                random.one_in(2) ? conn::Direction::Forward : conn::Direction::Reverse;
            query.key = own->connections.at(index).key(direction);
            query.port = direction == conn::Direction::Forward ? kUp : kCluster;
            if (random.one_in(2)) {
                StoppedWorkers::change_state(random, *own, index);
            }
            if (random.one_in(6)) {
                workers.make_copy(*own, index);
            }
            return query;
        }
    }
    FlowKey& key = query.key;
    if (random.one_in(30)) {  // an endpoint that sends first, or late
        const TestService& service = one_of(random, world.services);
        const IpFamily family = random.one_in(2) ? IpFamily::V4 : IpFamily::V6;
        key = {backend_address(static_cast<uint8_t>(random.between(11, 13)), family),
               some_destination(random, family == IpFamily::V4),
               service.backend_port,
               40'000,
               service.protocol,
               {}};
        query.port = kCluster;
        return query;
    }
    key.source = some_source(random);
    key.source_port = random.one_in(10) ? L4Port{9'376} : static_cast<L4Port>(random.between(40'000, 40'002));
    const TestService& service = one_of(random, world.services);
    key.protocol = random.one_in(8) ? one_of<Protocol>(random, {Protocol::Tcp, Protocol::Udp, Protocol::Sctp})
                                    : service.protocol;
    std::vector<std::pair<IpAddr, L4Port>> frontends = service.frontends;
    frontends.insert(frontends.end(), service.local_frontends.begin(), service.local_frontends.end());
    for (const L4Port port : service.node_ports) {
        frontends.emplace_back(kUpAddress, port);
        frontends.emplace_back(kClusterAddress6, port);
    }
    std::erase_if(frontends,
                  [&](const auto& frontend) { return frontend.first.is_v4() != key.source.is_v4(); });
    if (!frontends.empty() && !random.one_in(5)) {
        std::tie(key.destination, key.destination_port) = one_of(random, frontends);
    } else {
        key.destination = some_destination(random, key.source.is_v4());
        key.destination_port = random.one_in(3) ? kNodePorts[random.below(2)] : kPorts[random.below(4)];
    }
    const bool is_inside = workers.inspect().arrival_port(key.source) == kCluster;
    query.port = is_inside != random.one_in(8) ? kCluster : kUp;
    return query;
}

std::vector<uint8_t> frame_of(Prng& random, const worker::ExplainQuery& query, Extra extra) {
    const FlowKey& key = query.key;
    PacketBuilder builder =
        eth().from_mac(kSenderMac.to_string()).to_mac((query.port == kUp ? kUpMac : kClusterMac).to_string());
    const uint8_t ttl = extra == Extra::TtlOne ? 1 : 64;
    if (key.source.is_v4()) {
        builder.ipv4(key.source.to_string(), key.destination.to_string()).ttl(ttl);
        if (extra == Extra::Options) {
            builder.options({1, 1, 1, 0});
        }
    } else {
        builder.ipv6(key.source.to_string(), key.destination.to_string()).hop_limit(ttl);
    }
    switch (key.protocol) {
        case Protocol::Tcp:
            builder.tcp(key.source_port, key.destination_port, query.tcp_not_syn ? "A" : "S")
                .seq(static_cast<uint32_t>(random.next()))
                .ack(query.tcp_not_syn ? static_cast<uint32_t>(random.next()) : 0);
            break;
        case Protocol::Udp:
            builder.udp(key.source_port, key.destination_port).payload("question");
            break;
        case Protocol::Sctp:
            builder.sctp(key.source_port, key.destination_port, 0)
                .sctp_init(static_cast<uint32_t>(random.next()) | 1);
            break;
    }
    return builder.build();
}

}  // namespace penstock::test
