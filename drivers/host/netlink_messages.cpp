// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/netlink_messages.hpp"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace penstock::drivers {
namespace {

// The attributes behind a message's fixed header, by type.
template <typename Header, int TypeMax>
struct Message {
    const Header* facts = nullptr;
    std::array<nlattr*, TypeMax + 1> attributes{};

    // False for a message too short for its header, or with attributes that overrun it.
    bool read(const nlmsghdr* message) {
        // libnl only reads, although its parameter is a non-const pointer.
        auto* const writable = const_cast<nlmsghdr*>(message);
        if (nlmsg_parse(writable, sizeof(Header), attributes.data(), TypeMax, nullptr) != 0) {
            return false;
        }
        facts = static_cast<const Header*>(nlmsg_data(message));
        return true;
    }
    [[nodiscard]] const nlattr* operator[](int type) const { return attributes[static_cast<size_t>(type)]; }
};

std::optional<uint32_t> read_u32(const nlattr* attribute) {
    if (attribute == nullptr || nla_len(attribute) < static_cast<int>(sizeof(uint32_t))) {
        return std::nullopt;
    }
    return load<uint32_t>(nla_data(attribute));
}

std::optional<IpAddr> read_address(int family, const void* bytes, size_t length) {
    if (family == AF_INET && length == 4) {
        return IpAddr::v4(load<Be32>(bytes));
    }
    if (family == AF_INET6 && length == 16) {
        return IpAddr::v6(load<std::array<uint8_t, 16>>(bytes));
    }
    return std::nullopt;
}

std::optional<IpAddr> read_address(int family, const nlattr* attribute) {
    return attribute == nullptr
               ? std::nullopt
               : read_address(family, nla_data(attribute), static_cast<size_t>(nla_len(attribute)));
}

std::optional<MacAddr> read_mac(const nlattr* attribute) {
    if (attribute == nullptr || nla_len(attribute) != static_cast<int>(sizeof(MacAddr))) {
        return std::nullopt;
    }
    return MacAddr{load<std::array<uint8_t, 6>>(nla_data(attribute))};
}

// NUD_DELAY and NUD_PROBE are a stale entry that is being re-confirmed; its MAC stays in use meanwhile.
// NUD_NONE: created, but not resolved yet.
std::optional<route::NeighbourState> read_state(uint16_t nud) {
    if ((nud & (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP)) != 0) {
        return route::NeighbourState::Reachable;
    }
    if ((nud & (NUD_STALE | NUD_DELAY | NUD_PROBE)) != 0) {
        return route::NeighbourState::Stale;
    }
    if ((nud & NUD_INCOMPLETE) != 0) {
        return route::NeighbourState::Resolving;
    }
    if ((nud & NUD_FAILED) != 0) {
        return route::NeighbourState::Failed;
    }
    return std::nullopt;
}

// IPv6 link-local addresses identify a different host on each link, so packets to them are not forwarded (RFC
// 4291, 2.5.6). Without this route, such a packet would follow a default route.
bool is_of_one_link(const Prefix& destination) {
    return destination.family() == IpFamily::V6 && destination.length() >= 10 &&
           destination.address().is_link_local();
}

// The gateway of a hop: of the route's own family, or an IPv6 address for an IPv4 route (RFC 8950; RTA_VIA).
std::optional<IpAddr> read_gateway(int family, const nlattr* gateway, const nlattr* via) {
    if (gateway != nullptr) {
        return read_address(family, gateway);
    }
    if (via != nullptr && nla_len(via) > static_cast<int>(sizeof(rtvia))) {
        const auto* facts = static_cast<const rtvia*>(nla_data(via));
        return read_address(facts->rtvia_family, facts->rtvia_addr,
                            static_cast<size_t>(nla_len(via)) - sizeof(rtvia));
    }
    return std::nullopt;
}

struct Hop {
    NicPortId egress;
    std::optional<IpAddr> gateway;
    route::PortSet other_egress = 0;
};

// Calls `take` for each hop of a multipath route until it returns true.
template <typename Take>
void for_each_hop(const nlattr* multipath, Take&& take) {
    const auto* hop = static_cast<const rtnexthop*>(nla_data(multipath));
    int left = nla_len(multipath);
    while (left >= static_cast<int>(sizeof(rtnexthop)) && hop->rtnh_len >= sizeof(rtnexthop) &&
           hop->rtnh_len <= left) {
        if (take(*hop)) {
            return;
        }
        left -= static_cast<int>(RTNH_ALIGN(hop->rtnh_len));
        hop = RTNH_NEXT(hop);
    }
}

// The first usable hop, with the ports of the others.
std::optional<Hop> hops_on_twins(int family, const nlattr* multipath, const TwinsByIndex& twins) {
    std::optional<Hop> found;
    for_each_hop(multipath, [&](const rtnexthop& hop) {
        const auto twin = twins.find(hop.rtnh_ifindex);
        if (twin == twins.end() || (hop.rtnh_flags & RTNH_F_DEAD) != 0) {
            return false;
        }
        std::array<nlattr*, RTA_MAX + 1> attributes{};
        auto* const first = reinterpret_cast<nlattr*>(RTNH_DATA(const_cast<rtnexthop*>(&hop)));
        if (nla_parse(attributes.data(), RTA_MAX, first, hop.rtnh_len - static_cast<int>(RTNH_LENGTH(0)),
                      nullptr) == 0) {
            if (!found) {
                found = Hop{twin->second, read_gateway(family, attributes[RTA_GATEWAY], attributes[RTA_VIA])};
            } else {
                found->other_egress |= route::set_of(twin->second);
            }
        }
        return false;
    });
    return found;
}

std::optional<Prefix> destination_of(const rtmsg& facts, const nlattr* destination) {
    const IpAddr any = facts.rtm_family == AF_INET ? IpAddr::v4(0, 0, 0, 0) : IpAddr();
    auto prefix = Prefix::make(read_address(facts.rtm_family, destination).value_or(any), facts.rtm_dst_len);
    return prefix ? std::optional(*prefix) : std::nullopt;
}

std::vector<int> interfaces_of(const nlattr* device, const nlattr* multipath) {
    std::vector<int> interfaces;
    if (multipath != nullptr) {
        for_each_hop(multipath, [&](const rtnexthop& hop) {
            interfaces.push_back(hop.rtnh_ifindex);
            return false;
        });
    } else if (const auto index = read_u32(device)) {
        interfaces.push_back(static_cast<int>(*index));
    }
    return interfaces;
}

// The VIP that a route of the main table announces, if it does.
std::optional<VipRoute> announced_by(const rtmsg& facts, const Message<rtmsg, RTA_MAX>& read,
                                     const TwinsByIndex& twins) {
    const int bits = facts.rtm_family == AF_INET ? 32 : 128;
    if (facts.rtm_protocol != kVipRouteProtocol || facts.rtm_type != RTN_UNICAST ||
        facts.rtm_dst_len != bits || read[RTA_GATEWAY] != nullptr || read[RTA_VIA] != nullptr) {
        return std::nullopt;
    }
    const auto device = read_u32(read[RTA_OIF]);
    const auto twin = device ? twins.find(static_cast<int>(*device)) : twins.end();
    const auto address = read_address(facts.rtm_family, read[RTA_DST]);
    if (twin == twins.end() || !address) {
        return std::nullopt;
    }
    return VipRoute{*address, twin->second, read_u32(read[RTA_PRIORITY]).value_or(0)};
}

// The entry that leads the host's own packets for a VIP into its twin (vip_routes.hpp). No packet of the
// gateway uses it.
bool is_vip_neighbour(const nlattr* protocol) {
    return protocol != nullptr && nla_len(protocol) >= 1 &&
           load<uint8_t>(nla_data(protocol)) == kVipRouteProtocol;
}

class Hasher {
 public:
    void add(const void* bytes, size_t length) {
        const auto* at = static_cast<const uint8_t*>(bytes);
        for (size_t i = 0; i < length; ++i) {
            state_ = (state_ ^ at[i]) * 0x100'0000'01b3;  // FNV-1a
        }
    }
    template <typename Number>
    void add(Number number) {
        add(&number, sizeof(number));
    }
    [[nodiscard]] uint64_t value() const { return state_; }

 private:
    uint64_t state_ = 0xcbf2'9ce4'8422'2325;
};

// Dumps, additions and removals describe a route by the same attributes in the same order. Attributes that
// may change during the life of a route are left out: flags, which mark hops that are down, and the remaining
// lifetime.
uint64_t identity_of(const nlmsghdr* message, const rtmsg& facts) {
    Hasher hasher;
    hasher.add(
        std::array{facts.rtm_family, facts.rtm_src_len, facts.rtm_protocol, facts.rtm_scope, facts.rtm_type});
    auto* const writable = const_cast<nlmsghdr*>(message);
    int left = nlmsg_attrlen(writable, sizeof(rtmsg));
    for (nlattr* attribute = nlmsg_attrdata(writable, sizeof(rtmsg)); nla_ok(attribute, left) != 0;
         attribute = nla_next(attribute, &left)) {
        const int type = nla_type(attribute);
        if (type == RTA_CACHEINFO || type == RTA_EXPIRES) {
            continue;
        }
        hasher.add(type);
        if (type != RTA_MULTIPATH) {
            hasher.add(nla_data(attribute), static_cast<size_t>(nla_len(attribute)));
            continue;
        }
        for_each_hop(attribute, [&](const rtnexthop& hop) {
            hasher.add(hop.rtnh_ifindex);
            hasher.add(hop.rtnh_hops);
            hasher.add(&hop + 1, hop.rtnh_len - sizeof(hop));
            return false;
        });
    }
    return hasher.value();
}

}  // namespace

std::optional<route::Route> route_in(const nlmsghdr* message, const TwinsByIndex& twins) {
    Message<rtmsg, RTA_MAX> read;
    if (message->nlmsg_type != RTM_NEWROUTE || !read.read(message)) {
        return std::nullopt;
    }
    const rtmsg& facts = *read.facts;
    const bool is_ip = facts.rtm_family == AF_INET || facts.rtm_family == AF_INET6;
    // Cloned entries are a destination's cached path MTU, not routes.
    const bool refuses = facts.rtm_type == RTN_BLACKHOLE || facts.rtm_type == RTN_UNREACHABLE ||
                         facts.rtm_type == RTN_PROHIBIT;
    if (!is_ip || (facts.rtm_type != RTN_UNICAST && !refuses) || facts.rtm_tos != 0 ||
        (facts.rtm_flags & RTM_F_CLONED) != 0 ||
        read_u32(read[RTA_TABLE]).value_or(facts.rtm_table) != RT_TABLE_MAIN ||
        announced_by(facts, read, twins)) {
        return std::nullopt;
    }
    const auto destination = destination_of(facts, read[RTA_DST]);
    if (!destination) {
        return std::nullopt;
    }
    std::optional<Hop> hop;
    if (read[RTA_MULTIPATH] != nullptr) {
        hop = hops_on_twins(facts.rtm_family, read[RTA_MULTIPATH], twins);
    } else if (const auto device = read_u32(read[RTA_OIF]); device && (facts.rtm_flags & RTNH_F_DEAD) == 0) {
        if (const auto twin = twins.find(static_cast<int>(*device)); twin != twins.end()) {
            hop = Hop{twin->second, read_gateway(facts.rtm_family, read[RTA_GATEWAY], read[RTA_VIA])};
        }
    }
    if (is_of_one_link(*destination)) {
        return route::Route{*destination, {}, {}, 0};
    }
    const uint32_t metric = read_u32(read[RTA_PRIORITY]).value_or(0);
    if (hop) {
        return route::Route{*destination, hop->egress, hop->gateway, metric, hop->other_egress};
    }
    // A dead route leads nowhere and hides no other route.
    return (facts.rtm_flags & RTNH_F_DEAD) != 0 ? std::nullopt
                                                : std::optional(route::Route{*destination, {}, {}, metric});
}

std::optional<VipRoute> vip_route_in(const nlmsghdr* message, const TwinsByIndex& twins) {
    Message<rtmsg, RTA_MAX> read;
    if ((message->nlmsg_type != RTM_NEWROUTE && message->nlmsg_type != RTM_DELROUTE) || !read.read(message)) {
        return std::nullopt;
    }
    const rtmsg& facts = *read.facts;
    const bool is_ip = facts.rtm_family == AF_INET || facts.rtm_family == AF_INET6;
    return is_ip && read_u32(read[RTA_TABLE]).value_or(facts.rtm_table) == RT_TABLE_MAIN
               ? announced_by(facts, read, twins)
               : std::nullopt;
}

std::optional<RouteFact> route_fact_in(const nlmsghdr* message, const TwinsByIndex& twins) {
    Message<rtmsg, RTA_MAX> read;
    if ((message->nlmsg_type != RTM_NEWROUTE && message->nlmsg_type != RTM_DELROUTE) || !read.read(message)) {
        return std::nullopt;
    }
    const rtmsg& facts = *read.facts;
    if ((facts.rtm_family != AF_INET && facts.rtm_family != AF_INET6) ||
        (facts.rtm_flags & RTM_F_CLONED) != 0 ||
        read_u32(read[RTA_TABLE]).value_or(facts.rtm_table) != RT_TABLE_MAIN ||
        announced_by(facts, read, twins)) {
        return std::nullopt;
    }
    const auto destination = destination_of(facts, read[RTA_DST]);
    if (!destination) {
        return std::nullopt;
    }
    RouteFact fact{
        .key = {*destination, read_u32(read[RTA_PRIORITY]).value_or(0), facts.rtm_tos},
        .identity = identity_of(message, facts),
        .route = route_in(message, twins),
        .interfaces = interfaces_of(read[RTA_OIF], read[RTA_MULTIPATH]),
        .source = facts.rtm_family == AF_INET ? read_address(AF_INET, read[RTA_PREFSRC]) : std::nullopt,
        .next_hop_object = read_u32(read[RTA_NH_ID]).value_or(0)};
    if (message->nlmsg_type == RTM_DELROUTE) {
        fact.change = RouteFact::Change::Removed;
    } else if ((message->nlmsg_flags & NLM_F_REPLACE) != 0) {
        fact.change = RouteFact::Change::Replaced;
    }
    fact.joins_others =
        facts.rtm_family == AF_INET6 && (read[RTA_MULTIPATH] != nullptr || read[RTA_GATEWAY] != nullptr);
    return fact;
}

std::optional<AddressFact> address_in(const nlmsghdr* message, const TwinsByIndex& twins) {
    Message<ifaddrmsg, IFA_MAX> read;
    if (message->nlmsg_type != RTM_NEWADDR || !read.read(message)) {
        return std::nullopt;
    }
    const auto twin = twins.find(static_cast<int>(read.facts->ifa_index));
    // For a point-to-point address, IFA_ADDRESS is the peer's address; IFA_LOCAL, if present, is always the
    // local one.
    const auto address = read_address(read.facts->ifa_family,
                                      read[IFA_LOCAL] != nullptr ? read[IFA_LOCAL] : read[IFA_ADDRESS]);
    if (twin == twins.end() || !address) {
        return std::nullopt;
    }
    // An address is not assigned before duplicate address detection has completed, nor after it has failed
    // (RFC 4862, 5.4). Its completion is announced as a new address.
    const uint32_t flags = read_u32(read[IFA_FLAGS]).value_or(read.facts->ifa_flags);
    if ((flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0 && (flags & IFA_F_OPTIMISTIC) == 0) {
        return std::nullopt;
    }
    // Kernels before 5.18 do not have this attribute.
    const nlattr* const protocol = read[IFA_PROTO];
    const bool is_vip = protocol != nullptr && nla_len(protocol) >= 1 &&
                        load<uint8_t>(nla_data(protocol)) == kVipAddressProtocol;
    return AddressFact{{twin->second, *address, read.facts->ifa_prefixlen}, is_vip};
}

std::optional<NeighbourFact> neighbour_in(const nlmsghdr* message, const TwinsByIndex& twins) {
    Message<ndmsg, NDA_MAX> read;
    if ((message->nlmsg_type != RTM_NEWNEIGH && message->nlmsg_type != RTM_DELNEIGH) || !read.read(message)) {
        return std::nullopt;
    }
    const auto twin = twins.find(read.facts->ndm_ifindex);
    const auto address = read_address(read.facts->ndm_family, read[NDA_DST]);
    // The kernel keeps entries for the multicast groups that it sends to; no unicast packet uses them.
    if (twin == twins.end() || !address || address->is_multicast() ||
        (read.facts->ndm_flags & NTF_PROXY) != 0 || is_vip_neighbour(read[NDA_PROTOCOL])) {
        return std::nullopt;
    }
    NeighbourFact fact{twin->second, *address, std::nullopt, read_mac(read[NDA_LLADDR])};
    if (message->nlmsg_type == RTM_NEWNEIGH) {
        fact.state = read_state(read.facts->ndm_state);
    }
    return fact;
}

std::optional<LinkFact> link_in(const nlmsghdr* message, const TwinsByIndex& twins) {
    Message<ifinfomsg, IFLA_MAX> read;
    if ((message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK) || !read.read(message)) {
        return std::nullopt;
    }
    const auto twin = twins.find(read.facts->ifi_index);
    // A bridge sends RTM_DELLINK with family AF_BRIDGE when a port leaves it; the interface itself continues
    // to exist.
    if (twin == twins.end() || read.facts->ifi_family != AF_UNSPEC) {
        return std::nullopt;
    }
    LinkFact fact{twin->second, false, std::nullopt, read_mac(read[IFLA_ADDRESS])};
    fact.up = message->nlmsg_type == RTM_NEWLINK && (read.facts->ifi_flags & IFF_UP) != 0 &&
              (read.facts->ifi_flags & IFF_RUNNING) != 0;
    if (const auto mtu = read_u32(read[IFLA_MTU])) {
        fact.mtu = static_cast<uint16_t>(std::min<uint32_t>(*mtu, UINT16_MAX));
    }
    return fact;
}

bool touches_addresses(const nlmsghdr* message, const TwinsByIndex& twins) {
    Message<ifaddrmsg, IFA_MAX> read;
    return (message->nlmsg_type == RTM_NEWADDR || message->nlmsg_type == RTM_DELADDR) && read.read(message) &&
           twins.contains(static_cast<int>(read.facts->ifa_index));
}

std::optional<int> downed_interface_in(const nlmsghdr* message) {
    Message<ifinfomsg, IFLA_MAX> read;
    if ((message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK) || !read.read(message) ||
        read.facts->ifi_family != AF_UNSPEC) {
        return std::nullopt;
    }
    const bool is_up = message->nlmsg_type == RTM_NEWLINK && (read.facts->ifi_flags & IFF_UP) != 0;
    return is_up ? std::nullopt : std::optional(read.facts->ifi_index);
}

std::optional<IpAddr> removed_address_in(const nlmsghdr* message) {
    Message<ifaddrmsg, IFA_MAX> read;
    if (message->nlmsg_type != RTM_DELADDR || !read.read(message) || read.facts->ifa_family != AF_INET) {
        return std::nullopt;
    }
    return read_address(AF_INET, read[IFA_LOCAL] != nullptr ? read[IFA_LOCAL] : read[IFA_ADDRESS]);
}

std::optional<NextHopObjectFact> next_hop_object_in(const nlmsghdr* message) {
    Message<nhmsg, NHA_MAX> read;
    if ((message->nlmsg_type != RTM_NEWNEXTHOP && message->nlmsg_type != RTM_DELNEXTHOP) ||
        !read.read(message)) {
        return std::nullopt;
    }
    return NextHopObjectFact{
        .id = read_u32(read[NHA_ID]).value_or(0),
        .is_replaced = message->nlmsg_type == RTM_NEWNEXTHOP && (message->nlmsg_flags & NLM_F_REPLACE) != 0};
}

}  // namespace penstock::drivers
