// The route table against a scan of all routes and all neighbours.
#include <gtest/gtest.h>

#include <optional>
#include <tuple>

#include "dataplane/route/route_table.hpp"
#include "tests/support/prng.hpp"

namespace penstock::route {
namespace {

// Addresses that share long beginnings, so that prefixes of all lengths nest; the corners of each family among them.
IpAddr some_address(test::Prng& random) {
    const auto corner = [&]() -> uint8_t { return random.one_in(3) ? 0 : random.one_in(2) ? 0xff : static_cast<uint8_t>(random.below(4)); };
    if (random.one_in(2)) {
        return IpAddr::v4(corner(), corner(), corner(), corner());
    }
    std::array<uint8_t, 16> bytes{};
    for (uint8_t& byte : bytes) {
        byte = corner();
    }
    bytes[0] |= 0x20;  // neither :: nor IPv4-mapped
    return IpAddr::v6(bytes);
}

// Longest prefix, then lowest metric, then lowest port: read off the contract, one route after the other.
const Route* best_route(const std::vector<Route>& routes, const IpAddr& destination) {
    const Route* best = nullptr;
    for (const Route& route : routes) {
        if (!route.destination.contains(destination)) {
            continue;
        }
        const auto rank = [](const Route& r) { return std::tuple(-int{r.destination.length()}, r.metric, r.egress); };
        if (best == nullptr || rank(route) < rank(*best)) {
            best = &route;
        }
    }
    return best;
}

TEST(RouteTableProperty, AgreesWithALinearScan) {
    test::Prng random;
    for (int round = 0; round < 400; ++round) {
        std::vector<Route> routes;
        for (uint64_t i = random.below(60); i > 0; --i) {
            const IpAddr address = some_address(random);
            Route route{.destination = Prefix::make(address, static_cast<unsigned>(random.below(address.bits() + 1u))).value(),
                        .egress = {static_cast<uint8_t>(random.below(3))},
                        .metric = static_cast<uint32_t>(random.below(2))};
            if (random.one_in(2)) {
                route.gateway = some_address(random);
            }
            // Nothing tells two routes apart that differ in the gateway only; Linux keeps one of them (or a multipath).
            const bool ambiguous = std::ranges::any_of(routes, [&](const Route& r) {
                return std::tie(r.destination, r.egress, r.metric) == std::tie(route.destination, route.egress, route.metric);
            });
            if (!ambiguous) {
                routes.push_back(route);
            }
        }
        std::vector<Neighbour> neighbours;
        const auto known = [&](NicPortId port, const IpAddr& address) -> std::optional<NeighbourId> {
            for (const Neighbour& n : neighbours) {
                if (n.port == port && n.address == address) {
                    return n.id;
                }
            }
            return std::nullopt;
        };
        for (uint32_t i = 0; i < 40; ++i) {
            const Neighbour neighbour{.id = {i}, .port = {static_cast<uint8_t>(random.below(3))}, .address = some_address(random)};
            if (!known(neighbour.port, neighbour.address)) {
                neighbours.push_back(neighbour);
            }
        }

        const auto table = RouteTable::build(routes, neighbours, {}, {});
        for (int probe = 0; probe < 200; ++probe) {
            const IpAddr destination = random.one_in(4) ? neighbours[random.below(neighbours.size())].address : some_address(random);
            const Route* route = best_route(routes, destination);
            const std::optional<NextHop> hop = table->next_hop(destination);
            ASSERT_EQ(hop.has_value(), route != nullptr) << destination.to_string();
            if (route == nullptr) {
                continue;
            }
            ASSERT_EQ(hop->egress, route->egress) << destination.to_string();
            ASSERT_EQ(hop->address, route->gateway.value_or(destination)) << destination.to_string();
            const std::optional<NeighbourId> neighbour = known(route->egress, hop->address);
            ASSERT_EQ(hop->neighbour != nullptr, neighbour.has_value()) << destination.to_string();
            if (neighbour) {
                ASSERT_EQ(hop->neighbour->id, *neighbour);
            }
        }
    }
}

TEST(RouteTableProperty, HoldsTenThousandRoutes) {
    test::Prng random;
    std::vector<Route> routes;
    for (int i = 0; i < 10'000; ++i) {
        const IpAddr address = IpAddr::v4(Be32::from_host(static_cast<uint32_t>(random.next())));
        routes.push_back({.destination = Prefix::make(address, static_cast<unsigned>(random.between(8, 32))).value(),
                          .egress = {static_cast<uint8_t>(random.below(2))},
                          .gateway = IpAddr::v4(192, 0, 2, random.byte())});
    }
    const auto table = RouteTable::build(routes, {}, {}, {});
    for (int probe = 0; probe < 2'000; ++probe) {
        const IpAddr destination = random.one_in(2) ? routes[random.below(routes.size())].destination.address()
                                                    : IpAddr::v4(Be32::from_host(static_cast<uint32_t>(random.next())));
        const Route* route = best_route(routes, destination);
        const std::optional<NextHop> hop = table->next_hop(destination);
        ASSERT_EQ(hop.has_value(), route != nullptr);
        if (route != nullptr) {
            ASSERT_EQ(hop->egress, route->egress);
        }
    }
}

}  // namespace
}  // namespace penstock::route
