// What one rtnetlink message says about the twins. Pure: a message and the twins' interface indices in, a fact or nothing out. "Nothing" is
// the answer for every message that concerns other interfaces, other tables or kinds of entries that no packet of ours would meet.
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

// A route of the main table: through a twin (of a multipath route, its first living hop that is one), or with egress unset where it leads
// elsewhere (another device, a blackhole, IPv6 link-local addresses), which hides shorter prefixes through twins just as it does in Linux.
[[nodiscard]] std::optional<route::Route> route_in(const nlmsghdr* message, const TwinsByIndex& twins);

// What the kernel tells routes of one destination apart by first.
struct RouteKey {
    Prefix destination;
    uint32_t metric = 0;
    uint8_t type_of_service = 0;
    auto operator<=>(const RouteKey&) const = default;
};

// A route of a main table in a dump, or a change to one. Also of kinds that no packet of ours meets: such a one may replace one that they
// do.
struct RouteFact {
    enum class Change : uint8_t { Added, Replaced, Removed };
    Change change = Change::Added;
    RouteKey key;
    // A hash of all that makes it this route: everything but the marks of hops that are down at the moment, and counters.
    uint64_t identity = 0;
    std::optional<route::Route> route;  // as route_in() has it
    // An IPv6 route with a gateway: another one with the same key may become one with it.
    bool joins_others = false;
    std::vector<int> interfaces;   // of its hops
    std::optional<IpAddr> source;  // IPv4's preferred source address
    uint32_t next_hop_object = 0;  // 0: none
};
[[nodiscard]] std::optional<RouteFact> route_fact_in(const nlmsghdr* message, const TwinsByIndex& twins);

// An interface that is set down or gone, whichever it is.
[[nodiscard]] std::optional<int> downed_interface_in(const nlmsghdr* message);

// An IPv4 address that an interface has lost, whichever it is.
[[nodiscard]] std::optional<IpAddr> removed_address_in(const nlmsghdr* message);

// A next hop object (`ip nexthop`) that was made, changed or removed.
struct NextHopObjectFact {
    uint32_t id = 0;
    bool is_replaced = false;
};
[[nodiscard]] std::optional<NextHopObjectFact> next_hop_object_in(const nlmsghdr* message);

// Of addresses that VIP presence puts on twins (IFA_PROTO). Otherwise unused: lower numbers are the kernel's, or those of routing daemons.
inline constexpr uint8_t kVipAddressProtocol = 80;

struct AddressFact {
    route::LocalAddress address;
    bool is_vip = false;  // bears kVipAddressProtocol
};
// An address of a twin, once duplicate address detection has let it through.
[[nodiscard]] std::optional<AddressFact> address_in(const nlmsghdr* message, const TwinsByIndex& twins);

struct NeighbourFact {
    NicPortId port;
    IpAddr address;
    std::optional<route::NeighbourState> state;  // none: Linux knows it no more, or has never asked
    std::optional<MacAddr> mac;
};
// A unicast neighbour on a twin.
[[nodiscard]] std::optional<NeighbourFact> neighbour_in(const nlmsghdr* message, const TwinsByIndex& twins);

struct LinkFact {
    NicPortId port;
    bool up = false;  // set up, and with carrier
    std::optional<uint16_t> mtu;
    std::optional<MacAddr> mac;
};
[[nodiscard]] std::optional<LinkFact> link_in(const nlmsghdr* message, const TwinsByIndex& twins);

// Whether the message is about a twin's address.
[[nodiscard]] bool touches_addresses(const nlmsghdr* message, const TwinsByIndex& twins);

}  // namespace penstock::drivers
