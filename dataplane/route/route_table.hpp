// Where packets leave: routes and neighbours as Linux knows them through the TAP twins, and the gateway's own addresses. Immutable once
// published. Filled from netlink (drivers/host/netlink_mirror); Penstock resolves nothing itself.
//
// Next hops are looked up when the table is built, not for each packet: a route's gateway has its neighbour beside it, and each known
// neighbour on a link is an answer of its own, one address wide, so one search (prefix_map.hpp) yields a Hop, one cache line that holds
// all that a departing packet needs: where to, whether at once, and the Ethernet header.
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

// Some NicPorts: bit p stands for NicPort p.
using PortSet = uint16_t;
static_assert(limits::kNicPortsMax <= 16);
[[nodiscard]] constexpr PortSet set_of(NicPortId port) noexcept {
    return port.value < 16 ? static_cast<PortSet>(1U << port.value) : PortSet{0};
}

// A route of Linux's main table.
struct Route {
    Prefix destination;
    NicPortId
        egress;  // unset: it leads elsewhere than through a twin, so no packet of ours may follow a shorter prefix
    std::optional<IpAddr> gateway;  // absent: the destination is on the link
    uint32_t metric = 0;            // lower wins between equal prefixes
    PortSet other_egress =
        0;  // of the route's other next hops (multipath), which packets do not take but may come from
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
    [[nodiscard]] bool is_usable() const noexcept {
        return state == NeighbourState::Reachable || state == NeighbourState::Stale;
    }
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

// How packets leave, with everything looked up beforehand. Destinations that leave alike share one.
struct alignas(kCacheLine) Hop {
    // Destination and source, as they open the frame. Valid where `is_usable`.
    std::array<uint8_t, 12> ethernet_addresses{};
    uint16_t mtu = 0xffff;  // IP bytes; no bound where the port is unknown
    NicPortId egress;
    // The packet may leave at once: the neighbour's address is known, and so is the port's own. Otherwise the next hop is to be resolved.
    bool is_usable = false;
    NeighbourId neighbour;                    // unset: Linux has not been asked yet
    uint32_t neighbour_index = kNoNeighbour;  // in RouteTable::neighbours()
    bool is_destination = false;  // on the link and not asked for yet: the next hop is the destination itself
    IpAddr address;               // of the next hop; unused where is_destination
    PortSet best_ports = 0;       // of the preferred route and of those equal to it in prefix and metric
    PortSet all_ports = 0;        // of all routes with that prefix, whatever their metric

    static constexpr uint32_t kNoNeighbour = ~uint32_t{0};
    // Whom to resolve.
    [[nodiscard]] const IpAddr& next_hop_of(const IpAddr& destination) const noexcept {
        return is_destination ? destination : address;
    }
    bool operator==(const Hop&) const = default;
};
static_assert(sizeof(Hop) == kCacheLine);

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
    // `vips`: on twins for the sake of Services alone, see is_present_vip().
    // Control thread, O(n log n).
    static std::shared_ptr<const RouteTable> build(std::vector<Route> routes,
                                                   std::vector<Neighbour> neighbours,
                                                   std::vector<LocalAddress> addresses,
                                                   std::vector<EgressPort> ports,
                                                   const std::vector<LocalAddress>& vips = {});

    // Longest prefix match, for each packet. Null: no route. Any worker; valid as long as the table.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Hop* hop(Be32 destination) const noexcept {
        return hop_at(v4_.find(destination.host()));
    }
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Hop* hop(const IpAddr& destination) const noexcept {
        return hop_at(find(v4_, v6_, destination));
    }
    // Reverse path (RFC 3704): the ports of the route to `source` and of its equal-cost next hops; 0: no route. Asked for each new flow, so
    // it has a map of its own, where prefixes with one answer are one: a handful of intervals, however many routes there are.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE PortSet ports_towards(const IpAddr& source) const noexcept {
        return static_cast<PortSet>(find(sources_v4_, sources_v6_, source));
    }
    // The ports whose twins are directly connected to the subnet of `source`, the longest one that is directly connected to any: the prefix
    // of a twin's address, or of a route without a gateway, default routes apart. 0: it is in none.
    [[nodiscard]] PortSet connected_ports(const IpAddr& source) const noexcept {
        return static_cast<PortSet>(find(connected_v4_, connected_v6_, source));
    }
    // Fetches what hop() reads first, where the table is too large to lie in the first-level cache; else it does nothing.
    PENSTOCK_ALWAYS_INLINE void prefetch(Be32 destination) const noexcept {
        v4_.prefetch(destination.host());
    }
    // The same with the neighbour's own row, for the less frequent questions. Empty: no route.
    [[nodiscard]] std::optional<NextHop> next_hop(const IpAddr& destination) const noexcept;
    // An address of the gateway host itself, on any twin (broadcast addresses of the twins' prefixes included).
    // 255.255.255.255 and multicast are everybody's, the gateway host's too.
    [[nodiscard]] bool is_local(const IpAddr& address) const noexcept;
    // The same of a packet's source, which the parser has found to be no group's: asked for each new flow.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool is_local_source(const IpAddr& source) const noexcept {
        return may_be_local_.may_hold(source) && is_local(source);
    }
    // The same without the addresses of groups: what the host may send from, and what may be sent to it alone.
    [[nodiscard]] bool is_host_address(const IpAddr& address) const noexcept;
    // A VIP that is on a twin so that Linux answers for it on the link: ARP, ND and echo. Otherwise it is not the host's own.
    [[nodiscard]] bool is_present_vip(const IpAddr& address) const noexcept;
    // What Linux knows about a next hop; null where it has not been asked.
    [[nodiscard]] const Neighbour* neighbour(NicPortId port, const IpAddr& address) const noexcept;
    [[nodiscard]] const EgressPort* port(NicPortId id) const noexcept;

    [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }
    // Sorted by (port, address), unlike the other lists, which keep their order.
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

    std::vector<Hop> hops_;  // what v4_ and v6_ answer indexes it
    PrefixMap4 v4_;
    PrefixMap6 v6_;
    PrefixMap4 sources_v4_, connected_v4_;  // whose answers are PortSets
    PrefixMap6 sources_v6_, connected_v6_;
    std::vector<IpAddr> local_;         // sorted
    AddressFilter may_be_local_;        // of the same
    std::vector<IpAddr> host_;          // those of them that are no broadcast addresses; sorted
    std::vector<IpAddr> present_vips_;  // sorted
};

}  // namespace penstock::route
