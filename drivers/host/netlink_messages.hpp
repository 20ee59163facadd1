// SPDX-License-Identifier: Apache-2.0
// Decodes one rtnetlink message about the twins. Pure: the inputs are a message and the twins' interface
// indices, the output is a fact or nothing. The output is nothing for messages about other interfaces, other
// tables, or kinds of entries that no packet of the gateway uses.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/route/route_table.hpp"

struct nlmsghdr;

namespace penstock::drivers {

using TwinsByIndex = std::unordered_map<int, NicPortId>;

// A route of the main table. Its egress is a twin (of a multipath route: its first living hop that is a
// twin), or unset if it leads elsewhere: another device, a blackhole, IPv6 link-local addresses. Such a route
// hides shorter prefixes through twins as it does in Linux.
// Routes that announce a VIP are no such routes: they exist for routing daemons and for the host's own
// programs, and workers serve the packets to a VIP.
[[nodiscard]] std::optional<route::Route> route_in(const nlmsghdr* message, const TwinsByIndex& twins);

// A route that announces a VIP: kVipRouteProtocol, full length, main table, by a twin alone (PRESENCE-002).
struct VipRoute {
    IpAddr address;
    NicPortId port;  // of the twin
    uint32_t metric = 0;
    auto operator<=>(const VipRoute&) const = default;
};
[[nodiscard]] std::optional<VipRoute> vip_route_in(const nlmsghdr* message, const TwinsByIndex& twins);

// The first attributes by which the kernel distinguishes routes to one destination.
struct RouteKey {
    Prefix destination;
    uint32_t metric = 0;
    uint8_t type_of_service = 0;
    auto operator<=>(const RouteKey&) const = default;
};

// A route of a main table in a dump, or a change to one. Includes kinds that no packet of the gateway uses,
// because such a route may replace one that packets use.
struct RouteFact {
    enum class Change : uint8_t { Added, Replaced, Removed };
    Change change = Change::Added;
    RouteKey key;
    // A hash of everything that identifies the route: all attributes but the flags of hops that are currently
    // down, and counters.
    uint64_t identity = 0;
    std::optional<route::Route> route;  // as returned by route_in()
    // An IPv6 route with a gateway: Linux may merge it with another one of the same key into a multipath
    // route.
    bool joins_others = false;
    std::vector<int> interfaces;   // of its hops
    std::optional<IpAddr> source;  // IPv4's preferred source address
    uint32_t next_hop_object = 0;  // 0: none
};
[[nodiscard]] std::optional<RouteFact> route_fact_in(const nlmsghdr* message, const TwinsByIndex& twins);

// An interface that was set down or removed, on any interface.
[[nodiscard]] std::optional<int> downed_interface_in(const nlmsghdr* message);

// An IPv4 address that was removed, on any interface.
[[nodiscard]] std::optional<IpAddr> removed_address_in(const nlmsghdr* message);

// A next hop object (`ip nexthop`) that was created, changed or removed.
struct NextHopObjectFact {
    uint32_t id = 0;
    bool is_replaced = false;
};
[[nodiscard]] std::optional<NextHopObjectFact> next_hop_object_in(const nlmsghdr* message);

// Protocol (IFA_PROTO) of the addresses that VIP presence puts on twins. Otherwise unused: lower numbers are
// the kernel's, or those of routing daemons.
inline constexpr uint8_t kVipAddressProtocol = 80;

// Protocol (rtm_protocol) of the routes by which VIPs are announced (vip_routes.hpp), and of their neighbour
// entries (NDA_PROTOCOL). The number is not assigned in rtnetlink.h.
inline constexpr uint8_t kVipRouteProtocol = 80;

struct AddressFact {
    route::LocalAddress address;
    bool is_vip = false;  // has kVipAddressProtocol
};
// An address of a twin, after duplicate address detection has completed.
[[nodiscard]] std::optional<AddressFact> address_in(const nlmsghdr* message, const TwinsByIndex& twins);

struct NeighbourFact {
    NicPortId port;
    IpAddr address;
    std::optional<route::NeighbourState> state;  // none: Linux has removed it, or has not resolved it yet
    std::optional<MacAddr> mac;
};
// A unicast neighbour on a twin.
[[nodiscard]] std::optional<NeighbourFact> neighbour_in(const nlmsghdr* message, const TwinsByIndex& twins);

struct LinkFact {
    NicPortId port;
    bool up = false;  // administratively up, and with carrier
    std::optional<uint16_t> mtu;
    std::optional<MacAddr> mac;
};
[[nodiscard]] std::optional<LinkFact> link_in(const nlmsghdr* message, const TwinsByIndex& twins);

// Whether the message is about a twin's address.
[[nodiscard]] bool touches_addresses(const nlmsghdr* message, const TwinsByIndex& twins);

}  // namespace penstock::drivers
