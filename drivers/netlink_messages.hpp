// What one rtnetlink message says about the twins. Pure: a message and the twins' interface indices in, a fact or nothing out. "Nothing" is
// the answer for every message that concerns other interfaces, other tables or kinds of entries that no packet of ours would meet.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/route/route_table.hpp"

struct nlmsghdr;

namespace penstock::drivers {

using TwinsByIndex = std::unordered_map<int, NicPortId>;

// A route of the main table: through a twin (of a multipath route, its first living hop that is one), or with egress unset where it leads
// elsewhere (another device, a blackhole, IPv6 link-local addresses), which hides shorter prefixes through twins just as it does in Linux.
[[nodiscard]] std::optional<route::Route> route_in(const nlmsghdr* message, const TwinsByIndex& twins);

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

// Whether a change may have altered what a dump of routes and addresses would give: it is about the main table, or about a twin's address.
[[nodiscard]] bool touches_routes(const nlmsghdr* message, const TwinsByIndex& twins);

}  // namespace penstock::drivers
