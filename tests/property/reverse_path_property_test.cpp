// SPDX-License-Identifier: Apache-2.0
// The reverse-path check, compared with a scan of all routes, addresses, Pod CIDRs and endpoints, as
// described in docs/operations.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "dataplane/pipeline/opening/reverse_path.hpp"
#include "tests/support/prng.hpp"

namespace penstock::pipeline {
namespace reverse_path_property_test {

using config::ReversePath;
using route::PortSet;
using route::Route;

constexpr uint8_t kPorts = 4;

// Few addresses, so that prefixes of all lengths nest and coincide.
IpAddr some_address(test::Prng& random) {
    const auto part = [&] { return static_cast<uint8_t>(random.below(3) * 64 + random.below(3)); };
    return random.one_in(2)
               ? IpAddr::v4(10, part(), part(), part())
               : IpAddr::v6({0xfd, 0, 0, 0, 0, 0, part(), part(), part(), 0, 0, 0, 0, 0, 0, part()});
}

Prefix some_prefix(test::Prng& random) {
    const IpAddr address = some_address(random);
    const unsigned shortest = random.one_in(6) ? 0 : 8;
    return Prefix::make(address, static_cast<unsigned>(random.between(shortest, address.bits()))).value();
}

struct World {
    std::vector<Route> routes;
    std::vector<route::Neighbour> neighbours;
    std::vector<route::LocalAddress> addresses;
    std::vector<Prefix> pod_cidrs;
    std::set<IpAddr> endpoints;
};

World some_world(test::Prng& random) {
    World world;
    for (uint64_t i = random.below(12); i > 0; --i) {
        Route route{.destination = some_prefix(random),
                    .egress = {static_cast<uint8_t>(random.below(kPorts))},
                    .metric = static_cast<uint32_t>(random.below(2)),
                    .other_egress = static_cast<PortSet>(random.one_in(3) ? random.below(1U << kPorts) : 0)};
        if (random.one_in(8)) {
            route.egress = {};
            route.other_egress = 0;
        } else if (random.one_in(2)) {
            route.gateway = some_address(random);
        }
        world.routes.push_back(route);
        if (random.one_in(3)) {  // the same prefix on another port
            route.egress = {static_cast<uint8_t>(random.below(kPorts))};
            route.metric = static_cast<uint32_t>(random.below(2));
            world.routes.push_back(route);
        }
    }
    for (uint32_t i = 0; i < 6; ++i) {
        world.neighbours.push_back({.id = {i},
                                    .port = {static_cast<uint8_t>(random.below(kPorts))},
                                    .address = some_address(random)});
    }
    for (uint64_t i = random.below(3); i > 0; --i) {
        const IpAddr address = some_address(random);
        world.addresses.push_back({{static_cast<uint8_t>(random.below(kPorts))},
                                   address,
                                   static_cast<uint8_t>(random.between(8, address.bits()))});
    }
    for (uint64_t i = random.below(3); i > 0; --i) {
        world.pod_cidrs.push_back(some_prefix(random));
    }
    for (uint64_t i = random.below(6); i > 0; --i) {
        world.endpoints.insert(some_address(random));
    }
    return world;
}

config::Snapshot snapshot_of(const World& world) {
    config::Snapshot snapshot;
    snapshot.routes = route::RouteTable::build(world.routes, world.neighbours, world.addresses, {});
    snapshot.cluster_clients = std::make_shared<lb::ClusterClients>(world.pod_cidrs);
    std::vector<std::shared_ptr<const lb::Service>> services;
    for (const IpAddr& endpoint : world.endpoints) {
        auto service = std::make_shared<lb::Service>();
        service->sets.emplace_back().usable.push_back({BackendId{0}, endpoint, 80, 1});
        services.push_back(service);
    }
    snapshot.services = lb::ServiceTable::build({}, services).value();
    return snapshot;
}

PortSet bit(NicPortId port) {
    return route::set_of(port);
}

// The mode's sentence in docs/operations.md, clause by clause.
bool may_arrive(const World& world, ReversePath mode, const IpAddr& source, NicPortId arrival) {
    if (mode == ReversePath::Off) {
        return true;
    }
    std::vector<Route> longest;
    for (const Route& route : world.routes) {
        if (!route.destination.contains(source)) {
            continue;
        }
        if (!longest.empty() && longest[0].destination.length() < route.destination.length()) {
            longest.clear();
        }
        if (longest.empty() || longest[0].destination == route.destination) {
            longest.push_back(route);
        }
    }
    if (longest.empty()) {
        return false;
    }
    const Route& best = *std::ranges::min_element(
        longest, {}, [](const Route& route) { return std::tuple(route.metric, route.egress.value); });
    if (!best.egress.is_set()) {
        return false;
    }
    PortSet equal = 0, all = 0;
    for (const Route& route : longest) {
        const auto ports =
            static_cast<PortSet>(route.egress.is_set() ? bit(route.egress) | route.other_egress : 0);
        all |= ports;
        equal |= route.metric == best.metric ? ports : PortSet{0};
    }
    if (mode == ReversePath::Loose || (equal & bit(arrival)) != 0) {
        return true;
    }
    if (mode == ReversePath::Strict) {
        return false;
    }
    if ((all & bit(arrival)) != 0) {
        return true;
    }
    int length = -1;
    PortSet connected = 0;
    const auto consider = [&](const Prefix& subnet, NicPortId port) {
        if (!subnet.contains(source) || int{subnet.length()} < length) {
            return;
        }
        connected = static_cast<PortSet>((subnet.length() == length ? connected : 0) | bit(port));
        length = subnet.length();
    };
    for (const auto& local : world.addresses) {
        consider(Prefix::make(local.address, local.prefix_length).value(), local.port);
    }
    for (const Route& route : world.routes) {
        if (!route.gateway && route.egress.is_set() && route.destination.length() > 0) {
            consider(route.destination, route.egress);
        }
    }
    const bool is_elsewhere = connected != 0 && (connected & bit(arrival)) == 0;
    const bool is_in_pod_cidr =
        std::ranges::any_of(world.pod_cidrs, [&](const Prefix& cidr) { return cidr.contains(source); });
    return !is_elsewhere && !is_in_pod_cidr && !world.endpoints.contains(source);
}

TEST(ReversePathProperty, AgreesWithAScanOfEverything) {
    test::Prng random;
    size_t refused = 0, passed = 0;
    for (int round = 0; round < 600; ++round) {
        const World world = some_world(random);
        config::Snapshot snapshot = snapshot_of(world);
        for (auto& mode : snapshot.packets.reverse_path) {
            mode = static_cast<ReversePath>(random.below(4));
        }
        for (int probe = 0; probe < 200; ++probe) {
            IpAddr source = some_address(random);
            if (!world.endpoints.empty() && random.one_in(4)) {
                source = *std::next(world.endpoints.begin(),
                                    static_cast<ptrdiff_t>(random.below(world.endpoints.size())));
            }
            if (snapshot.routes->is_local(source)) {
                continue;  // a martian is rejected before any other check
            }
            const NicPortId arrival{static_cast<uint8_t>(random.below(kPorts))};
            const ReversePath mode = snapshot.packets.reverse_path[arrival.value];
            const bool expected = may_arrive(world, mode, source, arrival);
            ASSERT_EQ(source_path(snapshot, source, arrival) == SourcePath::Ok, expected)
                << config::to_string(mode) << " " << source.to_string() << " by port " << int{arrival.value};
            ++(expected ? passed : refused);
        }
    }
    EXPECT_GT(passed, 10'000u);
    EXPECT_GT(refused, 10'000u);
}

}  // namespace reverse_path_property_test
}  // namespace penstock::pipeline
