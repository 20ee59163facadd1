// Where packets leave: routes and neighbours as Linux knows them through the TAP twins, and the gateway's own addresses. Immutable once
// published. Filled from netlink (drivers/netlink_mirror); Penstock resolves nothing itself.
//
// Next hops are looked up when the table is built, not for each packet: a route's gateway has its neighbour beside it, and each known
// neighbour on a link is an answer of its own, one address wide, so one search (interval_map.hpp) yields port, address and neighbour.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/route/interval_map.hpp"

namespace penstock::route {

// An IPv6 address as a number (__extension__: ISO C++ has none so wide, GCC and clang do).
__extension__ using Uint128 = unsigned __int128;

// A route of Linux's main table.
struct Route {
    Prefix destination;
    NicPortId egress;               // unset: it leads elsewhere than through a twin, so no packet of ours may follow a shorter prefix
    std::optional<IpAddr> gateway;  // absent: the destination is on the link
    uint32_t metric = 0;            // lower wins between equal prefixes
    bool operator==(const Route&) const = default;
};

// Linux's neighbour states as far as they matter here.
enum class NeighbourState : uint8_t {
    Resolving,  // asked, no answer yet
    Reachable,  // usable (also: permanent, noarp)
    Stale,      // usable; re-confirmed when used (delay and probe included)
    Failed,     // the kernel gave up; asked again after a pause
};
[[nodiscard]] const char* to_string(NeighbourState state) noexcept;

struct Neighbour {
    NeighbourId id;  // stable while the (port, address) is known
    NicPortId port;
    IpAddr address;
    MacAddr mac;
    NeighbourState state = NeighbourState::Resolving;
    [[nodiscard]] bool is_usable() const noexcept { return state == NeighbourState::Reachable || state == NeighbourState::Stale; }
    bool operator==(const Neighbour&) const = default;
};

// An address on a TAP twin: packets to it that are nobody's flow go to the host.
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

// How one destination leaves.
struct NextHop {
    NicPortId egress;
    IpAddr address;                        // the gateway, or the destination itself
    const Neighbour* neighbour = nullptr;  // null: Linux has not been asked yet
};

class RouteTable {
 public:
    RouteTable() = default;  // no routes: everything ends in NoRoute

    // Duplicate prefixes are settled by metric, then by lower egress id; of two neighbours with one (port, address) the later holds.
    // Control thread, O(n log n).
    static std::shared_ptr<const RouteTable> build(std::vector<Route> routes, std::vector<Neighbour> neighbours,
                                                   std::vector<LocalAddress> addresses, std::vector<EgressPort> ports);

    // Longest prefix match with its neighbour. Empty: no route. Any worker; log2(routes and neighbours) steps through an array of 4 bytes
    // an IPv4 interval, so the few that a gateway mostly has lie in one or two cache lines.
    [[nodiscard]] std::optional<NextHop> next_hop(const IpAddr& destination) const noexcept;
    // An address of the gateway host itself, on any twin (broadcast addresses of the twins' prefixes included).
    // 255.255.255.255 and multicast are everybody's, the gateway host's too.
    [[nodiscard]] bool is_local(const IpAddr& address) const noexcept;
    // What Linux knows about a next hop; null where it has not been asked.
    [[nodiscard]] const Neighbour* neighbour(NicPortId port, const IpAddr& address) const noexcept;
    [[nodiscard]] const EgressPort* port(NicPortId id) const noexcept;

    [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }
    // Sorted by (port, address), unlike the other lists, which keep their order.
    [[nodiscard]] const std::vector<Neighbour>& neighbours() const noexcept { return neighbours_; }
    [[nodiscard]] const std::vector<LocalAddress>& addresses() const noexcept { return addresses_; }
    [[nodiscard]] const std::vector<EgressPort>& ports() const noexcept { return ports_; }

 private:
    // The answer of one interval. Neighbours are given by index, so that a copied or moved table stays whole.
    struct Leaf {
        IpAddr address;  // of the next hop; unused where the destination itself is the next hop
        uint32_t neighbour = kNoNeighbour;
        NicPortId egress;
        bool to_destination = false;  // on the link, and the neighbour is not known yet
    };
    static constexpr uint32_t kNoNeighbour = ~uint32_t{0};

    void add_routes();
    void add_local_addresses();
    [[nodiscard]] uint32_t neighbour_index(NicPortId port, const IpAddr& address) const noexcept;
    [[nodiscard]] const Leaf* leaf_of(const IpAddr& destination) const noexcept;

    std::vector<Route> routes_;
    std::vector<Neighbour> neighbours_;
    std::vector<LocalAddress> addresses_;
    std::vector<EgressPort> ports_;

    std::vector<Leaf> leaves_;
    IntervalMap<uint32_t> v4_;
    IntervalMap<Uint128> v6_;
    std::vector<IpAddr> local_;  // sorted
};

}  // namespace penstock::route
