// SPDX-License-Identifier: Apache-2.0
#include "dataplane/route/route_table.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "dataplane/route/prefix_range.hpp"

namespace penstock::route {
namespace {

constexpr auto by_hop = [](const Neighbour& n) { return std::tie(n.port, n.address); };

// The address with all host bits set reaches all hosts of the link (RFC 919). A /31 has no such address (RFC
// 3021), and a /32 has no link.
std::optional<IpAddr> directed_broadcast(const LocalAddress& local) {
    if (!local.address.is_v4() || local.prefix_length > 30) {
        return std::nullopt;
    }
    return IpAddr::v4(Be32::from_host(range_of(number_v4(local.address), local.prefix_length, 0).last));
}

}  // namespace

// The key of a Hop: two Hops with equal keys are the same.
struct RouteTable::Way {
    NicPortId egress;
    std::optional<IpAddr> address;  // of the next hop; absent: the destination
    PortSet best_ports = 0, all_ports = 0;
    bool operator==(const Way&) const = default;

    struct Hash {
        size_t operator()(const Way& way) const noexcept {
            const size_t ports = size_t{way.best_ports} << 24 | size_t{way.all_ports} << 8 | way.egress.value;
            return (way.address ? std::hash<IpAddr>{}(*way.address) : 0) * 31 + ports;
        }
    };
};

const char* to_string(NeighbourState state) noexcept {
    switch (state) {
        case NeighbourState::Resolving:
            return "resolving";
        case NeighbourState::Reachable:
            return "reachable";
        case NeighbourState::Stale:
            return "stale";
        case NeighbourState::Failed:
            return "failed";
    }
    return "unknown";
}

std::shared_ptr<const RouteTable> RouteTable::build(std::vector<Route> routes,
                                                    std::vector<Neighbour> neighbours,
                                                    std::vector<LocalAddress> addresses,
                                                    std::vector<EgressPort> ports,
                                                    const std::vector<LocalAddress>& vips) {
    auto table = std::make_shared<RouteTable>();
    table->routes_ = std::move(routes);
    table->neighbours_ = std::move(neighbours);
    table->addresses_ = std::move(addresses);
    table->ports_ = std::move(ports);
    std::ranges::stable_sort(table->neighbours_, {}, by_hop);
    table->add_routes();
    table->add_connected_subnets();
    table->add_local_addresses();
    std::ranges::transform(vips, std::back_inserter(table->present_vips_), &LocalAddress::address);
    std::ranges::sort(table->present_vips_);
    return table;
}

void RouteTable::add_routes() {
    // The preferred route of equal prefixes comes last, because the later of equal ranges wins.
    std::vector<const Route*> order;
    order.reserve(routes_.size());
    for (const Route& route : routes_) {
        order.push_back(&route);
    }
    std::ranges::stable_sort(order, [](const Route* a, const Route* b) {
        return std::tie(b->metric, b->egress) < std::tie(a->metric, a->egress);
    });

    hops_ = {Hop{}};  // Intervals::kNone
    // Gives each distinct way one row, however many routes use it: a full Internet table has a million routes
    // and a handful of ways.
    std::unordered_map<Way, uint32_t, Way::Hash> numbers;
    const auto number_of = [&](const Way& way) {
        const auto [at, is_new] = numbers.try_emplace(way, static_cast<uint32_t>(hops_.size()));
        if (is_new) {
            hops_.push_back(make_hop(way));
        }
        return at->second;
    };
    std::vector<Range<uint32_t>> ranges_v4;
    std::vector<Range<Uint128>> ranges_v6;
    for (uint32_t i = 0; i < order.size(); ++i) {
        const Prefix& destination = order[i]->destination;
        if (destination.address().is_v4()) {
            ranges_v4.push_back(range_of(number_v4(destination.address()), destination.length(), i));
        } else {
            ranges_v6.push_back(range_of(number_v6(destination.address()), destination.length(), i));
        }
    }
    // For routes with the same prefix; the last one is preferred.
    const auto hop_of = [&](const auto& equal) {
        const Route& best = *order[equal.back().answer];
        if (!best.egress.is_set()) {
            return uint32_t{0};  // Intervals::kNone
        }
        Way way{best.egress, best.gateway};
        for (const auto& range : equal) {
            const Route& route = *order[range.answer];
            const auto ports = static_cast<PortSet>(set_of(route.egress) | route.other_egress);
            way.all_ports |= ports;
            way.best_ports |= route.metric == best.metric ? ports : PortSet{0};
        }
        return number_of(way);
    };
    Intervals<uint32_t> v4(std::move(ranges_v4), hop_of);
    Intervals<Uint128> v6(std::move(ranges_v6), hop_of);
    const auto best_ports = [&](uint32_t hop) { return uint32_t{hops_[hop].best_ports}; };
    sources_v4_ = PrefixMap4(v4.with_answers(best_ports));
    sources_v6_ = PrefixMap6(v6.with_answers(best_ports));

    // A neighbour is used as one only if its address is routed directly to its link. 10.0.0.5 seen on p0 is
    // irrelevant for a packet that a longer prefix sends through p1, or through a router on p0.
    std::vector<Interval<uint32_t>> hosts_v4;
    std::vector<Interval<Uint128>> hosts_v6;
    for (const Neighbour& neighbour : neighbours_) {
        const bool is_v4 = neighbour.address.is_v4();
        const Hop& under =
            hops_[is_v4 ? v4.find(number_v4(neighbour.address)) : v6.find(number_v6(neighbour.address))];
        if (!under.is_destination || under.egress != neighbour.port) {
            continue;
        }
        const uint32_t answer =
            number_of({neighbour.port, neighbour.address, under.best_ports, under.all_ports});
        if (is_v4) {
            hosts_v4.push_back({number_v4(neighbour.address), answer});
        } else {
            hosts_v6.push_back({number_v6(neighbour.address), answer});
        }
    }
    // Nothing is sent to the broadcast address of a link (RFC 2644), nor on a wire to the gateway itself. The
    // source that such an answer would go to is spoofed. These entries come last, because Linux may list the
    // broadcast address as a neighbour.
    for (const LocalAddress& local : addresses_) {
        if (local.address.is_v4()) {
            hosts_v4.push_back({number_v4(local.address), Intervals<uint32_t>::kNone});
        } else {
            hosts_v6.push_back({number_v6(local.address), Intervals<Uint128>::kNone});
        }
        if (const std::optional<IpAddr> broadcast = directed_broadcast(local)) {
            hosts_v4.push_back({number_v4(*broadcast), Intervals<uint32_t>::kNone});
        }
    }
    v4.overlay(std::move(hosts_v4));
    v6.overlay(std::move(hosts_v6));
    v4_ = PrefixMap4(v4);
    v6_ = PrefixMap6(v6);
}

// A default route without a gateway (a point-to-point link) does not make the Internet directly connected.
void RouteTable::add_connected_subnets() {
    std::vector<Range<uint32_t>> v4;
    std::vector<Range<Uint128>> v6;
    const auto add = [&](const Prefix& subnet, NicPortId port) {
        if (subnet.address().is_v4()) {
            v4.push_back(range_of(number_v4(subnet.address()), subnet.length(), uint32_t{set_of(port)}));
        } else {
            v6.push_back(range_of(number_v6(subnet.address()), subnet.length(), uint32_t{set_of(port)}));
        }
    };
    for (const LocalAddress& local : addresses_) {
        if (const auto subnet = Prefix::make(local.address, local.prefix_length)) {
            add(*subnet, local.port);
        }
    }
    for (const Route& route : routes_) {
        if (!route.gateway && route.egress.is_set() && route.destination.length() > 0) {
            add(route.destination, route.egress);
        }
    }
    const auto all_of = [](const auto& equal) {
        uint32_t ports = 0;
        std::ranges::for_each(equal, [&](const auto& range) { ports |= range.answer; });
        return ports;
    };
    connected_v4_ = PrefixMap4(Intervals<uint32_t>(std::move(v4), all_of));
    connected_v6_ = PrefixMap6(Intervals<Uint128>(std::move(v6), all_of));
}

Hop RouteTable::make_hop(const Way& way) const noexcept {
    const auto& [egress, address, best_ports, all_ports] = way;
    Hop hop{.egress = egress,
            .is_destination = !address.has_value(),
            .best_ports = best_ports,
            .all_ports = all_ports};
    const EgressPort* own = port(egress);
    if (own != nullptr) {
        hop.mtu = own->mtu;
        std::ranges::copy(own->mac.bytes, hop.ethernet_addresses.begin() + 6);
    }
    if (!address) {
        return hop;
    }
    hop.address = *address;
    hop.neighbour_index = neighbour_index(egress, *address);
    if (hop.neighbour_index != Hop::kNoNeighbour) {
        const Neighbour& neighbour = neighbours_[hop.neighbour_index];
        hop.neighbour = neighbour.id;
        hop.is_usable = neighbour.is_usable() && own != nullptr;
        std::ranges::copy(neighbour.mac.bytes, hop.ethernet_addresses.begin());
    }
    return hop;
}

void RouteTable::add_local_addresses() {
    for (const LocalAddress& local : addresses_) {
        host_.push_back(local.address);
        if (const std::optional<IpAddr> broadcast = directed_broadcast(local)) {
            local_.push_back(*broadcast);
        }
    }
    local_.insert(local_.end(), host_.begin(), host_.end());
    for (std::vector<IpAddr>* list : {&local_, &host_}) {
        std::ranges::sort(*list);
        const auto repeated = std::ranges::unique(*list);
        list->erase(repeated.begin(), repeated.end());
    }
    std::ranges::for_each(local_, [&](const IpAddr& address) { may_be_local_.add(address); });
}

uint32_t RouteTable::neighbour_index(NicPortId port, const IpAddr& address) const noexcept {
    // Past the last of equal hops, so that the later of two wins.
    const auto behind = std::ranges::upper_bound(neighbours_, std::tie(port, address), {}, by_hop);
    if (behind == neighbours_.begin() || by_hop(*std::prev(behind)) != std::tie(port, address)) {
        return Hop::kNoNeighbour;
    }
    return static_cast<uint32_t>(behind - neighbours_.begin() - 1);
}

const Neighbour* RouteTable::neighbour(NicPortId port, const IpAddr& address) const noexcept {
    const uint32_t index = neighbour_index(port, address);
    return index == Hop::kNoNeighbour ? nullptr : &neighbours_[index];
}

std::optional<NextHop> RouteTable::next_hop(const IpAddr& destination) const noexcept {
    const Hop* found = hop(destination);
    if (found == nullptr) {
        return std::nullopt;
    }
    return NextHop{.egress = found->egress,
                   .address = found->next_hop_of(destination),
                   .neighbour = found->neighbour_index == Hop::kNoNeighbour
                                    ? nullptr
                                    : &neighbours_[found->neighbour_index]};
}

bool RouteTable::is_local(const IpAddr& address) const noexcept {
    static constexpr IpAddr kLimitedBroadcast = IpAddr::v4(255, 255, 255, 255);
    // IPv4 multicast starts at 224.0.0.0, IPv6 multicast is ff00::/8.
    const bool may_be_group =
        address.is_v4() ? address.v4_wire().host() >= 0xe000'0000U : address.bytes()[0] == 0xff;
    if (may_be_group) [[unlikely]] {
        return address.is_multicast() || address == kLimitedBroadcast;
    }
    return std::ranges::binary_search(local_, address);
}

bool RouteTable::is_host_address(const IpAddr& address) const noexcept {
    return std::ranges::binary_search(host_, address);
}

bool RouteTable::is_present_vip(const IpAddr& address) const noexcept {
    return std::ranges::binary_search(present_vips_, address);
}

const EgressPort* RouteTable::port(NicPortId id) const noexcept {
    // At most limits::kNicPortsMax, and in practice two.
    const auto found = std::ranges::find(ports_, id, &EgressPort::id);
    return found == ports_.end() ? nullptr : &*found;
}

}  // namespace penstock::route
