// SPDX-License-Identifier: Apache-2.0
// The route table, compared with a scan of all routes and neighbours, and large tables with a search by each
// prefix length.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "dataplane/route/route_table.hpp"
#include "tests/support/prng.hpp"

namespace penstock::route {
namespace route_table_property_test {

// Addresses that share long prefixes, so that prefixes of all lengths nest, including the limits of each
// family.
IpAddr some_address(test::Prng& random) {
    const auto corner = [&]() -> uint8_t {
        return random.one_in(3) ? 0 : random.one_in(2) ? 0xff : static_cast<uint8_t>(random.below(4));
    };
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

// Longest prefix, then lowest metric, then lowest port, by a scan of all routes.
const Route* best_route(const std::vector<Route>& routes, const IpAddr& destination) {
    const Route* best = nullptr;
    for (const Route& route : routes) {
        if (!route.destination.contains(destination)) {
            continue;
        }
        const auto rank = [](const Route& r) {
            return std::tuple(-int{r.destination.length()}, r.metric, r.egress);
        };
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
            Route route{
                .destination =
                    Prefix::make(address, static_cast<unsigned>(random.below(address.bits() + 1u))).value(),
                .egress = {static_cast<uint8_t>(random.below(3))},
                .metric = static_cast<uint32_t>(random.below(2))};
            if (random.one_in(2)) {
                route.gateway = some_address(random);
            }
            // Routes that differ in the gateway only are ambiguous; Linux keeps one of them (or a multipath).
            const bool ambiguous = std::ranges::any_of(routes, [&](const Route& r) {
                return std::tie(r.destination, r.egress, r.metric) ==
                       std::tie(route.destination, route.egress, route.metric);
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
            const Neighbour neighbour{
                .id = {i}, .port = {static_cast<uint8_t>(random.below(3))}, .address = some_address(random)};
            if (!known(neighbour.port, neighbour.address)) {
                neighbours.push_back(neighbour);
            }
        }

        const auto table = RouteTable::build(routes, neighbours, {}, {});
        for (int probe = 0; probe < 200; ++probe) {
            const IpAddr destination =
                random.one_in(4) ? neighbours[random.below(neighbours.size())].address : some_address(random);
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

// Tables of every shape in prefix_map.hpp, while neighbours come and go: hop() against the routes of each
// length, longest first.
class LargeTables : public testing::TestWithParam<std::tuple<IpFamily, int>> {};

TEST_P(LargeTables, FindTheLongestPrefix) {
    const auto [family, route_count] = GetParam();
    test::Prng random;
    // Dense in some ranges, as real tables are: an eighth of all prefixes is in one /16 (IPv4) or /32 (IPv6),
    // some of them in one /64.
    const auto address_of = [&, family = family]() -> IpAddr {
        if (family == IpFamily::V4) {
            const auto number = static_cast<uint32_t>(random.next());
            return IpAddr::v4(Be32::from_host(random.one_in(8) ? 0x0a090000 | (number & 0xffff) : number));
        }
        std::array<uint8_t, 16> bytes{0x20, 0x01, 0x0d, 0xb8};
        const size_t shared = random.one_in(8) ? 8 : random.one_in(8) ? 4 : 1;
        for (size_t i = shared; i < bytes.size(); ++i) {
            bytes[i] = random.one_in(4) ? uint8_t{0xff} : random.byte();
        }
        return IpAddr::v6(bytes);
    };
    const unsigned bits = family == IpFamily::V4 ? 32 : 128;

    std::map<Prefix, Route> best;  // the expected result: one route per prefix
    std::set<unsigned, std::greater<>> lengths;
    std::vector<Route> routes;
    for (int i = 0; i < route_count; ++i) {
        Route route{
            .destination = Prefix::make(address_of(), static_cast<unsigned>(random.between(1, bits))).value(),
            .egress = {static_cast<uint8_t>(random.below(3))},
            .metric = static_cast<uint32_t>(i)};  // all different: the lowest wins
        if (random.one_in(8)) {
            route.egress = {};
        } else if (!random.one_in(4)) {
            route.gateway = address_of();
        }
        best.try_emplace(route.destination, route);
        lengths.insert(route.destination.length());
        routes.push_back(route);
    }
    const auto route_to = [&](const IpAddr& destination) -> const Route* {
        for (const unsigned length : lengths) {
            const auto found = best.find(Prefix::make(destination, length).value());
            if (found != best.end()) {
                return &found->second;
            }
        }
        return nullptr;
    };

    std::map<std::pair<NicPortId, IpAddr>, Neighbour> known;
    const std::vector<EgressPort> ports{
        {.id = {0}, .mtu = 1500}, {.id = {1}, .mtu = 9000}, {.id = {2}, .mtu = 1280}};
    uint32_t next_id = 0;
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < 300; ++i) {
            const IpAddr address =
                random.one_in(2) ? address_of() : routes[random.below(routes.size())].destination.address();
            const NicPortId port{static_cast<uint8_t>(random.below(3))};
            known[{port, address}] = {.id = {next_id},
                                      .port = port,
                                      .address = address,
                                      .mac = {{2, 0, 0, 0, random.byte(), random.byte()}},
                                      .state = static_cast<NeighbourState>(random.below(4))};
            ++next_id;
        }
        std::erase_if(known, [&](const auto&) { return random.one_in(3); });
        std::vector<Neighbour> neighbours;
        for (const auto& [key, neighbour] : known) {
            neighbours.push_back(neighbour);
        }
        const auto table = RouteTable::build(routes, neighbours, {}, ports);

        for (int probe = 0; probe < 3'000; ++probe) {
            IpAddr destination = address_of();
            if (random.one_in(3)) {
                destination = neighbours[random.below(neighbours.size())].address;
            } else if (random.one_in(2)) {
                destination = routes[random.below(routes.size())].destination.address();
            }
            const Route* route = route_to(destination);
            const Hop* hop = table->hop(destination);
            ASSERT_EQ(hop != nullptr, route != nullptr && route->egress.is_set()) << destination.to_string();
            if (family == IpFamily::V4) {
                ASSERT_EQ(table->hop(destination.v4_wire()), hop);
            }
            if (hop == nullptr) {
                continue;
            }
            const IpAddr next = route->gateway.value_or(destination);
            ASSERT_EQ(hop->egress, route->egress) << destination.to_string();
            ASSERT_EQ(hop->mtu, ports[route->egress.value].mtu);
            ASSERT_EQ(hop->next_hop_of(destination), next) << destination.to_string();
            const auto neighbour = known.find({route->egress, next});
            ASSERT_EQ(hop->neighbour.is_set(), neighbour != known.end()) << destination.to_string();
            ASSERT_EQ(hop->is_usable, neighbour != known.end() && neighbour->second.is_usable());
            if (neighbour != known.end()) {
                ASSERT_EQ(hop->neighbour, neighbour->second.id);
                ASSERT_TRUE(std::ranges::equal(neighbour->second.mac.bytes,
                                               std::span(hop->ethernet_addresses).first<6>()));
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(RouteTableProperty, LargeTables,
                         testing::Combine(testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(8, 300, 3'000, 40'000)));

}  // namespace route_table_property_test
}  // namespace penstock::route
