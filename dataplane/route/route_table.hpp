// SPDX-License-Identifier: Apache-2.0
// The forwarding table: routes and neighbours that Linux reports through the TAP twins, and the gateway's own
// addresses. Immutable once published. Filled from netlink (drivers/host/netlink_mirror); Penstock itself
// resolves nothing.
//
// Next hops are resolved when the table is built, not per packet. The gateway of a route has its neighbour
// beside it, and each known neighbour on a link is a separate answer, one address wide. One search
// (prefix_map.hpp) therefore yields a Hop, one cache line with all data for a departing packet: its
// destination, whether it can leave at once, and the Ethernet header.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/base/address_filter.hpp"
#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/route/prefix_map.hpp"

namespace penstock::route {

// A set of NicPorts: bit p is NicPort p.
using PortSet = uint16_t;
static_assert(limits::kNicPortsMax <= 16);
[[nodiscard]] constexpr PortSet set_of(NicPortId port) noexcept {
    return port.value < 16 ? static_cast<PortSet>(1U << port.value) : PortSet{0};
}

// A route of Linux's main routing table.
struct Route {
    Prefix destination;
    // Unset: the route does not use a twin. No packet of the gateway may then follow a shorter prefix.
    NicPortId egress;
    std::optional<IpAddr> gateway;  // absent: the destination is on the link
    uint32_t metric = 0;            // the lower metric wins between equal prefixes
    // Ports of the route's other next hops (multipath). Packets do not leave through them but may arrive on
    // them.
    PortSet other_egress = 0;
    bool operator==(const Route&) const = default;
};

// The neighbour states of Linux that matter here.
enum class NeighbourState : uint8_t {
    Resolving,  // resolution requested, no answer yet
    Reachable,  // usable (also permanent and noarp)
    Stale,      // usable; confirmed again when used (delay and probe included)
    Failed,     // has not answered, until it answers; resolution is repeated after a pause
};
[[nodiscard]] const char* to_string(NeighbourState state) noexcept;

struct Neighbour {
    NeighbourId id;  // stable as long as the (port, address) is known
    NicPortId port;
    IpAddr address;
    MacAddr mac;
    NeighbourState state = NeighbourState::Resolving;
    [[nodiscard]] bool is_usable() const noexcept {
        return state == NeighbourState::Reachable || state == NeighbourState::Stale;
    }
    bool operator==(const Neighbour&) const = default;
};

// An address on a TAP twin. Packets to it that belong to no flow go to the host.
struct LocalAddress {
    NicPortId port;
    IpAddr address;
    uint8_t prefix_length = 0;
    bool operator==(const LocalAddress&) const = default;
};

// The NicPort's own Ethernet address and MTU, for the outgoing header.
struct EgressPort {
    NicPortId id;
    MacAddr mac;
    uint16_t mtu = 1500;  // IP bytes
    bool link_up = true;
    bool operator==(const EgressPort&) const = default;
};

// The egress of packets, with everything resolved in advance. Destinations with the same egress share one
// Hop.
struct alignas(kCacheLine) Hop {
    // Destination and source, in the order of the frame. Valid if `is_usable`.
    std::array<uint8_t, 12> ethernet_addresses{};
    uint16_t mtu = 0xffff;  // IP bytes; no limit if the port is unknown
    NicPortId egress;
    // The packet can leave at once: the addresses of the neighbour and of the port are known. Otherwise the
    // next hop must be resolved.
    bool is_usable = false;
    NeighbourId neighbour;                    // unset: its resolution has not been requested from Linux
    uint32_t neighbour_index = kNoNeighbour;  // in RouteTable::neighbours()
    // On the link and not requested from Linux yet: the next hop is the destination itself.
    bool is_destination = false;
    IpAddr address;          // of the next hop; unused if is_destination
    PortSet best_ports = 0;  // of the preferred route and of routes with the same prefix and metric
    PortSet all_ports = 0;   // of all routes with this prefix, whatever their metric

    static constexpr uint32_t kNoNeighbour = ~uint32_t{0};
    // The address to resolve.
    [[nodiscard]] const IpAddr& next_hop_of(const IpAddr& destination) const noexcept {
        return is_destination ? destination : address;
    }
    bool operator==(const Hop&) const = default;
};
static_assert(sizeof(Hop) == kCacheLine);

// The next hop of one destination.
struct NextHop {
    NicPortId egress;
    IpAddr address;                        // the gateway, or the destination itself
    const Neighbour* neighbour = nullptr;  // null: its resolution has not been requested from Linux
};

class RouteTable {
 public:
    RouteTable() = default;  // no routes: every look-up ends in NoRoute

    // Of duplicate prefixes, the lowest metric wins, then the lowest egress id. Of two neighbours with the
    // same (port, address), the later wins. `vips`: addresses that are on twins for Services only, see
    // is_present_vip(). Control thread, O(n log n).
    static std::shared_ptr<const RouteTable> build(std::vector<Route> routes,
                                                   std::vector<Neighbour> neighbours,
                                                   std::vector<LocalAddress> addresses,
                                                   std::vector<EgressPort> ports,
                                                   const std::vector<LocalAddress>& vips = {});

    // Longest prefix match, per packet. Null: no route. Any worker; valid as long as the table.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Hop* hop(Be32 destination) const noexcept {
        return hop_at(v4_.find(destination.host()));
    }
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Hop* hop(const IpAddr& destination) const noexcept {
        return hop_at(find(v4_, v6_, destination));
    }
    // The same for the bytes of an IPv6 address.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Hop* hop_v6(
        const std::array<uint8_t, 16>& destination) const noexcept {
        return hop_at(find_v6(v6_, load<uint64_t>(destination.data()), load<uint64_t>(&destination[8])));
    }
    // Reverse path (RFC 3704): the ports of the route to `source` and of its equal-cost next hops; 0: no
    // route. Called for each new flow, so it has a separate map, in which prefixes with the same answer are
    // merged: a handful of intervals for any number of routes.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE PortSet ports_towards(const IpAddr& source) const noexcept {
        return static_cast<PortSet>(find(sources_v4_, sources_v6_, source));
    }
    // The ports with twins that are directly connected to the subnet of `source`. The subnet is the longest
    // directly connected one: the prefix of a twin's address, or of a route without a gateway, default routes
    // excluded. 0: no such subnet.
    [[nodiscard]] PortSet connected_ports(const IpAddr& source) const noexcept {
        return static_cast<PortSet>(find(connected_v4_, connected_v6_, source));
    }
    // Prefetches the first read of hop() if the table is too large for the first-level cache; otherwise has
    // no effect.
    PENSTOCK_ALWAYS_INLINE void prefetch(Be32 destination) const noexcept {
        v4_.prefetch(destination.host());
    }
    // The same with the neighbour's own row, for less frequent use. Empty: no route.
    [[nodiscard]] std::optional<NextHop> next_hop(const IpAddr& destination) const noexcept;
    // Whether the address is one of the gateway host itself, on any twin (broadcast addresses of the twins'
    // prefixes included). 255.255.255.255 and multicast addresses belong to all hosts, the gateway host
    // included.
    [[nodiscard]] bool is_local(const IpAddr& address) const noexcept;
    // The same for the source of a packet, which the parser has found not to be multicast. Called for each
    // new flow.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool is_local_source(const IpAddr& source) const noexcept {
        return may_be_local_.may_hold(source) && is_local(source);
    }
    // The same without broadcast and multicast addresses: addresses that the host may send from and that
    // belong to it alone.
    [[nodiscard]] bool is_host_address(const IpAddr& address) const noexcept;
    // Whether the address is a VIP on a twin, for which Linux answers on the link: ARP, ND and echo. A VIP
    // not on a twin is not an address of the host.
    [[nodiscard]] bool is_present_vip(const IpAddr& address) const noexcept;
    // The state of a next hop in Linux; null if its resolution has not been requested.
    [[nodiscard]] const Neighbour* neighbour(NicPortId port, const IpAddr& address) const noexcept;
    [[nodiscard]] const EgressPort* port(NicPortId id) const noexcept;

    [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }
    // Sorted by (port, address); the other lists keep their order.
    [[nodiscard]] const std::vector<Neighbour>& neighbours() const noexcept { return neighbours_; }
    [[nodiscard]] const std::vector<LocalAddress>& addresses() const noexcept { return addresses_; }
    [[nodiscard]] const std::vector<EgressPort>& ports() const noexcept { return ports_; }

 private:
    // The answer for an address of either family.
    [[nodiscard]] static PENSTOCK_ALWAYS_INLINE uint32_t find(const PrefixMap4& v4, const PrefixMap6& v6,
                                                              const IpAddr& address) noexcept {
        const auto high = load<uint64_t>(address.bytes().data());
        const auto low = load<uint64_t>(address.bytes().data() + 8);
        // IpAddr::is_v4() in two comparisons: bytes 8 to 11 of ::ffff:0:0, as a little-endian number.
        if (high == 0 && static_cast<uint32_t>(low) == 0xffff0000) {
            return v4.find(Be32::from_raw(static_cast<uint32_t>(low >> 32)).host());
        }
        return find_v6(v6, high, low);
    }
    // `high` and `low`: the two halves of the address as loaded.
    [[nodiscard]] static PENSTOCK_ALWAYS_INLINE uint32_t find_v6(const PrefixMap6& v6, uint64_t high,
                                                                 uint64_t low) noexcept {
        return v6.find(__builtin_bswap64(high), __builtin_bswap64(low));
    }
    void add_routes();
    void add_connected_subnets();
    void add_local_addresses();
    [[nodiscard]] uint32_t neighbour_index(NicPortId port, const IpAddr& address) const noexcept;
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Hop* hop_at(uint32_t answer) const noexcept {
        return answer == Intervals<uint32_t>::kNone ? nullptr : &hops_[answer];
    }
    struct Way;
    [[nodiscard]] Hop make_hop(const Way& way) const noexcept;

    std::vector<Route> routes_;
    std::vector<Neighbour> neighbours_;
    std::vector<LocalAddress> addresses_;
    std::vector<EgressPort> ports_;

    std::vector<Hop> hops_;  // indexed by the answers of v4_ and v6_
    PrefixMap4 v4_;
    PrefixMap6 v6_;
    PrefixMap4 sources_v4_, connected_v4_;  // the answers are PortSets
    PrefixMap6 sources_v6_, connected_v6_;
    std::vector<IpAddr> local_;         // sorted
    AddressFilter may_be_local_;        // filter for local_
    std::vector<IpAddr> host_;          // the addresses of local_ that are not broadcast addresses; sorted
    std::vector<IpAddr> present_vips_;  // sorted
};

}  // namespace penstock::route
