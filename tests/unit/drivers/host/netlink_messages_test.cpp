// SPDX-License-Identifier: Apache-2.0
// Decoding of single netlink messages, without a kernel: hand-made messages, whole and truncated.
#include "drivers/host/netlink_messages.hpp"

#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "dataplane/base/check.hpp"

namespace penstock::drivers {
namespace netlink_messages_test {

constexpr int kTwinIndex = 7;
constexpr int kOtherIndex = 8;
const TwinsByIndex kTwins{{kTwinIndex, NicPortId{1}}};

using Bytes = std::vector<unsigned char>;

template <typename Header>
Bytes message(int type, const Header& header, const std::function<void(nl_msg*)>& attributes) {
    nl_msg* const made = nlmsg_alloc_simple(type, 0);
    Header copy = header;
    nlmsg_append(made, &copy, sizeof(copy), NLMSG_ALIGNTO);
    attributes(made);
    const nlmsghdr* const whole = nlmsg_hdr(made);
    const auto* bytes = reinterpret_cast<const unsigned char*>(whole);
    Bytes result(bytes, bytes + whole->nlmsg_len);
    nlmsg_free(made);
    return result;
}

const nlmsghdr* as_message(const Bytes& bytes) {
    return reinterpret_cast<const nlmsghdr*>(bytes.data());
}

// One hop through another interface, then two through the twin.
Bytes multipath_route(unsigned char flags_of_first_twin = 0) {
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_dst_len = 16;
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_type = RTN_UNICAST;
    return message(RTM_NEWROUTE, header, [flags_of_first_twin](nl_msg* made) {
        const unsigned char destination[4] = {10, 9, 0, 0};
        nla_put(made, RTA_DST, 4, destination);
        struct {
            rtnexthop hop;
            rtattr attribute;
            unsigned char gateway[4];
        } hops[3] = {};
        for (auto& entry : hops) {
            entry.hop.rtnh_len = sizeof(entry);
            entry.attribute = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_GATEWAY};
        }
        hops[0].hop.rtnh_ifindex = kOtherIndex;
        hops[1].hop.rtnh_ifindex = kTwinIndex;
        hops[1].hop.rtnh_flags = flags_of_first_twin;
        hops[2].hop.rtnh_ifindex = kTwinIndex;
        const unsigned char gateways[2][4] = {{10, 2, 0, 9}, {10, 2, 0, 10}};
        std::memcpy(hops[1].gateway, gateways[0], sizeof(gateways[0]));
        std::memcpy(hops[2].gateway, gateways[1], sizeof(gateways[1]));
        nla_put(made, RTA_MULTIPATH, sizeof(hops), hops);
    });
}

Bytes neighbour(uint16_t type, uint16_t state, uint8_t flags, int index = kTwinIndex) {
    ndmsg header{};
    header.ndm_family = AF_INET;
    header.ndm_ifindex = index;
    header.ndm_state = state;
    header.ndm_flags = flags;
    return message(type, header, [](nl_msg* made) {
        const unsigned char address[4] = {10, 2, 0, 9};
        const unsigned char mac[6] = {2, 0, 0, 0, 0, 9};
        nla_put(made, NDA_DST, sizeof(address), address);
        nla_put(made, NDA_LLADDR, sizeof(mac), mac);
    });
}

TEST(NetlinkMessages, AMultipathRouteLeavesByItsFirstTwin) {
    const Bytes bytes = multipath_route();
    const auto route = route_in(as_message(bytes), kTwins);
    ASSERT_TRUE(route);
    // The third next hop is on the same twin.
    EXPECT_EQ(*route, (route::Route{*Prefix::parse("10.9.0.0/16"), NicPortId{1}, IpAddr::v4(10, 2, 0, 9), 0,
                                    route::set_of({1})}));
    const auto elsewhere = route_in(as_message(bytes), {{99, NicPortId{0}}});
    ASSERT_TRUE(elsewhere.has_value());
    EXPECT_FALSE(elsewhere->egress.is_set());
}

// `ip route add 10.9.0.0/16 via 10.2.0.9 dev TWIN`, or its result after `change`.
Bytes plain_route(
    const std::function<void(rtmsg&)>& change = [](rtmsg&) {}, int type = RTM_NEWROUTE,
    uint16_t message_flags = 0, unsigned char last_byte_of_gateway = 9) {
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_dst_len = 16;
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_type = RTN_UNICAST;
    change(header);
    Bytes bytes = message(type, header, [&](nl_msg* made) {
        const unsigned char destination[4] = {10, 9, 0, 0};
        const unsigned char gateway[4] = {10, 2, 0, last_byte_of_gateway};
        nla_put(made, RTA_DST, 4, destination);
        nla_put_u32(made, RTA_PRIORITY, 20);
        nla_put(made, RTA_GATEWAY, 4, gateway);
        nla_put_u32(made, RTA_OIF, kTwinIndex);
    });
    std::memcpy(bytes.data() + offsetof(nlmsghdr, nlmsg_flags), &message_flags, sizeof(message_flags));
    return bytes;
}

// A dead hop leads nowhere, and a route with dead hops only hides no other route: shorter prefixes are used
// meanwhile.
TEST(NetlinkMessages, ADeadRouteHidesNothing) {
    ASSERT_TRUE(route_in(as_message(plain_route()), kTwins));
    const Bytes dead = plain_route([](rtmsg& header) { header.rtm_flags = RTNH_F_DEAD | RTNH_F_LINKDOWN; });
    EXPECT_FALSE(route_in(as_message(dead), kTwins));
    const Bytes first_is_dead = multipath_route(RTNH_F_DEAD);
    const auto second = route_in(as_message(first_is_dead), kTwins);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->egress, NicPortId{1});
    EXPECT_EQ(second->gateway, IpAddr::v4(10, 2, 0, 10));
}

// `ip route add 10.9.0.80/32 dev TWIN proto 80 metric 100`, or its result after `change`.
Bytes announcement(const std::function<void(rtmsg&)>& change = [](rtmsg&) {}, int index = kTwinIndex) {
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_dst_len = 32;
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_type = RTN_UNICAST;
    header.rtm_protocol = kVipRouteProtocol;
    change(header);
    return message(RTM_NEWROUTE, header, [index](nl_msg* made) {
        const unsigned char destination[4] = {10, 9, 0, 80};
        nla_put(made, RTA_DST, 4, destination);
        nla_put_u32(made, RTA_PRIORITY, 100);
        nla_put_u32(made, RTA_OIF, static_cast<uint32_t>(index));
    });
}

TEST(NetlinkMessages, ARouteThatAnnouncesAVipIsNoRouteOfWorkers_PRESENCE002) {
    const auto vip = [](const Bytes& bytes) { return vip_route_in(as_message(bytes), kTwins); };
    const auto used = [](const Bytes& bytes) { return route_fact_in(as_message(bytes), kTwins).has_value(); };
    const auto found = vip(announcement());
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, (VipRoute{IpAddr::v4(10, 9, 0, 80), NicPortId{1}, 100}));
    EXPECT_FALSE(used(announcement()));
    EXPECT_FALSE(route_in(as_message(announcement()), kTwins));
    struct {
        const char* name;
        Bytes bytes;
    } const others[] = {
        {"another protocol", announcement([](rtmsg& header) { header.rtm_protocol = RTPROT_BGP; })},
        {"another interface", announcement([](rtmsg&) {}, 99)},
        {"a shorter prefix", announcement([](rtmsg& header) { header.rtm_dst_len = 24; })},
        {"a blackhole", announcement([](rtmsg& header) { header.rtm_type = RTN_BLACKHOLE; })},
        {"by a gateway", plain_route([](rtmsg& header) { header.rtm_protocol = kVipRouteProtocol; })}};
    for (const auto& other : others) {
        EXPECT_FALSE(vip(other.bytes)) << other.name;
        EXPECT_TRUE(used(other.bytes)) << other.name;
    }
    EXPECT_FALSE(vip(announcement([](rtmsg& header) { header.rtm_table = 77; })));
}

TEST(NetlinkMessages, AChangeOfARouteNamesItAndWhatItDependsOn) {
    const Bytes added = plain_route();
    const auto fact = route_fact_in(as_message(added), kTwins);
    ASSERT_TRUE(fact);
    EXPECT_EQ(fact->change, RouteFact::Change::Added);
    EXPECT_EQ(fact->key, (RouteKey{*Prefix::parse("10.9.0.0/16"), 20, 0}));
    EXPECT_EQ(fact->route, route_in(as_message(added), kTwins));
    EXPECT_EQ(fact->interfaces, std::vector{kTwinIndex});
    EXPECT_FALSE(fact->joins_others);
    const auto of = [](const Bytes& bytes) { return route_fact_in(as_message(bytes), kTwins); };
    EXPECT_EQ(of(plain_route([](rtmsg&) {}, RTM_NEWROUTE, NLM_F_REPLACE))->change,
              RouteFact::Change::Replaced);
    const auto removed = of(plain_route([](rtmsg&) {}, RTM_DELROUTE));
    EXPECT_EQ(removed->change, RouteFact::Change::Removed);
    EXPECT_EQ(removed->identity, fact->identity) << "a removal is recognised";
    // Hops that are down do not change the identity of a route. All other attributes do.
    EXPECT_EQ(of(plain_route([](rtmsg& header) { header.rtm_flags = RTNH_F_DEAD; }))->identity,
              fact->identity);
    EXPECT_EQ(of(multipath_route(RTNH_F_DEAD))->identity, of(multipath_route())->identity);
    EXPECT_NE(of(plain_route([](rtmsg&) {}, RTM_NEWROUTE, 0, 10))->identity, fact->identity);
    EXPECT_NE(of(plain_route([](rtmsg& header) { header.rtm_protocol = RTPROT_BGP; }))->identity,
              fact->identity);
    EXPECT_NE(of(plain_route([](rtmsg& header) { header.rtm_tos = 8; }))->key, fact->key);
    EXPECT_EQ(of(multipath_route())->interfaces, (std::vector{kOtherIndex, kTwinIndex, kTwinIndex}));
    // Kinds of routes that no packet uses: such a route may replace one that packets use. Other tables are
    // not Linux's main table.
    const auto thrown = of(plain_route([](rtmsg& header) { header.rtm_type = RTN_THROW; }));
    ASSERT_TRUE(thrown);
    EXPECT_FALSE(thrown->route);
    EXPECT_FALSE(of(plain_route([](rtmsg& header) { header.rtm_table = 77; })));
    EXPECT_FALSE(of(plain_route([](rtmsg& header) { header.rtm_flags = RTM_F_CLONED; })));
    EXPECT_FALSE(of(neighbour(RTM_NEWNEIGH, NUD_REACHABLE, 0)));
}

Bytes link(int type, unsigned flags, unsigned char family = AF_UNSPEC) {
    ifinfomsg header{};
    header.ifi_family = family;
    header.ifi_index = kOtherIndex;
    header.ifi_flags = flags;
    return message(type, header, [](nl_msg*) {});
}

Bytes next_hop_object(int type, uint16_t flags) {
    nhmsg header{};
    header.nh_family = AF_INET;
    Bytes bytes = message(type, header, [](nl_msg* made) { nla_put_u32(made, NHA_ID, 12); });
    std::memcpy(bytes.data() + offsetof(nlmsghdr, nlmsg_flags), &flags, sizeof(flags));
    return bytes;
}

TEST(NetlinkMessages, WhatTakesRoutesAlongInSilence) {
    EXPECT_EQ(downed_interface_in(as_message(link(RTM_NEWLINK, IFF_BROADCAST))), kOtherIndex);
    EXPECT_EQ(downed_interface_in(as_message(link(RTM_DELLINK, IFF_UP))), kOtherIndex);
    EXPECT_FALSE(downed_interface_in(as_message(link(RTM_NEWLINK, IFF_UP))));
    EXPECT_FALSE(downed_interface_in(as_message(link(RTM_DELLINK, 0, AF_BRIDGE)))) << "it has left a bridge";
    const auto replaced = next_hop_object_in(as_message(next_hop_object(RTM_NEWNEXTHOP, NLM_F_REPLACE)));
    ASSERT_TRUE(replaced);
    EXPECT_EQ(replaced->id, 12u);
    EXPECT_TRUE(replaced->is_replaced);
    EXPECT_FALSE(next_hop_object_in(as_message(next_hop_object(RTM_DELNEXTHOP, 0)))->is_replaced);
    EXPECT_FALSE(next_hop_object_in(as_message(plain_route())));
}

// Packets leave by the first next hop; their answers may arrive by any.
TEST(NetlinkMessages, AMultipathRouteNamesThePortsOfItsOtherNextHops) {
    const Bytes bytes = multipath_route();
    const auto route = route_in(as_message(bytes), {{kOtherIndex, NicPortId{3}}, {kTwinIndex, NicPortId{1}}});
    ASSERT_TRUE(route);
    EXPECT_EQ(route->egress, NicPortId{3});
    EXPECT_EQ(route->other_egress, route::set_of({1}));
}

TEST(NetlinkMessages, NeighbourStatesAsTheyMatterToWorkers) {
    using enum route::NeighbourState;
    const struct {
        uint16_t nud;
        std::optional<route::NeighbourState> state;
    } rows[] = {
        {NUD_REACHABLE, Reachable}, {NUD_PERMANENT, Reachable}, {NUD_NOARP, Reachable}, {NUD_STALE, Stale},
        {NUD_DELAY, Stale},         {NUD_PROBE, Stale},         {NUD_FAILED, Failed},   {NUD_NONE, {}},
        {NUD_INCOMPLETE, Resolving}};
    for (const auto& row : rows) {
        const Bytes bytes = neighbour(RTM_NEWNEIGH, row.nud, 0);
        const auto fact = neighbour_in(as_message(bytes), kTwins);
        ASSERT_TRUE(fact) << row.nud;
        EXPECT_EQ(fact->state, row.state) << row.nud;
        EXPECT_EQ(fact->mac, (MacAddr{{2, 0, 0, 0, 0, 9}}));
    }
    const Bytes gone = neighbour(RTM_DELNEIGH, NUD_REACHABLE, 0);
    ASSERT_TRUE(neighbour_in(as_message(gone), kTwins));
    EXPECT_FALSE(neighbour_in(as_message(gone), kTwins)->state);
    const Bytes proxy = neighbour(RTM_NEWNEIGH, NUD_PERMANENT, NTF_PROXY);
    EXPECT_FALSE(neighbour_in(as_message(proxy), kTwins));
    const Bytes elsewhere = neighbour(RTM_NEWNEIGH, NUD_REACHABLE, 0, kOtherIndex);
    EXPECT_FALSE(neighbour_in(as_message(elsewhere), kTwins));
}

Bytes ipv6_route(const char* destination, const char* gateway) {
    const Prefix prefix = *Prefix::parse(destination);
    rtmsg header{};
    header.rtm_family = AF_INET6;
    header.rtm_dst_len = prefix.length();
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_type = RTN_UNICAST;
    return message(RTM_NEWROUTE, header, [&](nl_msg* made) {
        if (prefix.length() > 0) {  // Linux writes no destination for a default route
            nla_put(made, RTA_DST, 16, prefix.address().bytes().data());
        }
        if (gateway != nullptr) {
            nla_put(made, RTA_GATEWAY, 16, IpAddr::parse(gateway)->bytes().data());
        }
        nla_put_u32(made, RTA_OIF, kTwinIndex);
        nla_put_u32(made, RTA_PRIORITY, 1024);
    });
}

TEST(NetlinkMessages, Ipv6RoutesKeepTheirLinkLocalRouter_DUAL002) {
    const struct {
        const char* destination;
        const char* gateway;
        route::Route route;
    } rows[] = {
        {"2001:db8:9::/48",
         "fe80::1",
         {*Prefix::parse("2001:db8:9::/48"), NicPortId{1}, *IpAddr::parse("fe80::1"), 1024}},
        {"fd00:2::/64", nullptr, {*Prefix::parse("fd00:2::/64"), NicPortId{1}, {}, 1024}},
        {"::/0", "fe80::1", {*Prefix::parse("::/0"), NicPortId{1}, *IpAddr::parse("fe80::1"), 1024}},
        // A link-local destination is a different host on each link, so it cannot be forwarded to, not even
        // by a default route.
        {"fe80::/64", nullptr, {*Prefix::parse("fe80::/64"), {}, {}, 0}},
    };
    for (const auto& row : rows) {
        const Bytes bytes = ipv6_route(row.destination, row.gateway);
        EXPECT_EQ(route_in(as_message(bytes), kTwins), row.route) << row.destination;
    }
}

Bytes ipv6_address(uint32_t flags, std::optional<uint8_t> protocol = std::nullopt) {
    ifaddrmsg header{};
    header.ifa_family = AF_INET6;
    header.ifa_prefixlen = 64;
    header.ifa_flags = static_cast<unsigned char>(flags);
    header.ifa_index = kTwinIndex;
    return message(RTM_NEWADDR, header, [&](nl_msg* made) {
        nla_put(made, IFA_ADDRESS, 16, IpAddr::parse("2001:db8::1")->bytes().data());
        nla_put_u32(made, IFA_FLAGS, flags);
        if (protocol) {
            nla_put_u8(made, IFA_PROTO, *protocol);
        }
    });
}

TEST(NetlinkMessages, AnAddressCountsOnceDuplicateDetectionIsThrough) {
    const struct {
        uint32_t flags;
        bool counts;
    } rows[] = {{0, true},
                {IFA_F_PERMANENT | IFA_F_NODAD, true},
                {IFA_F_TENTATIVE, false},
                {IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_PERMANENT, false},
                {IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, true},  // RFC 4429: in use while it is probed
                {IFA_F_MANAGETEMPADDR, true}};               // a flag beyond the header's eight bits
    for (const auto& row : rows) {
        const Bytes bytes = ipv6_address(row.flags);
        const auto address = address_in(as_message(bytes), kTwins);
        ASSERT_EQ(address.has_value(), row.counts) << row.flags;
        if (address) {
            EXPECT_EQ(address->address,
                      (route::LocalAddress{NicPortId{1}, *IpAddr::parse("2001:db8::1"), 64}));
            EXPECT_FALSE(address->is_vip);
        }
        EXPECT_TRUE(touches_addresses(as_message(bytes), kTwins)) << row.flags;
    }
}

TEST(NetlinkMessages, AVipIsKnownByItsMark_LB018) {
    for (const auto& [protocol, is_vip] : {std::pair<std::optional<uint8_t>, bool>{kVipAddressProtocol, true},
                                           {IFAPROT_KERNEL_RA, false},
                                           {{}, false}}) {
        const Bytes bytes = ipv6_address(IFA_F_PERMANENT, protocol);
        const auto fact = address_in(as_message(bytes), kTwins);
        ASSERT_TRUE(fact);
        EXPECT_EQ(fact->is_vip, is_vip);
    }
}

// Memory that ends where a message ends (except for alignment): reading beyond it crashes.
class EdgeOfMemory {
 public:
    EdgeOfMemory() { PENSTOCK_CHECK(pages_ != MAP_FAILED && mprotect(end(), page_, PROT_NONE) == 0); }
    ~EdgeOfMemory() { munmap(pages_, 2 * page_); }
    EdgeOfMemory(const EdgeOfMemory&) = delete;
    EdgeOfMemory& operator=(const EdgeOfMemory&) = delete;
    const nlmsghdr* put(const Bytes& bytes) {
        PENSTOCK_CHECK(NLMSG_ALIGN(bytes.size()) <= page_);
        unsigned char* const at = end() - NLMSG_ALIGN(bytes.size());
        std::memcpy(at, bytes.data(), bytes.size());
        return reinterpret_cast<const nlmsghdr*>(at);
    }

 private:
    [[nodiscard]] unsigned char* end() const { return static_cast<unsigned char*>(pages_) + page_; }
    const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* const pages_ = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

// A message may end anywhere, and each length in it may be wrong: no read may exceed its end.
TEST(NetlinkMessages, CutAndSpoiltMessagesAreHarmless) {
    EdgeOfMemory memory;
    // The number of functions that accept the message.
    const auto ask_all = [&](const Bytes& bytes) {
        const nlmsghdr* const at = memory.put(bytes);
        return int{route_in(at, kTwins).has_value()} + int{address_in(at, kTwins).has_value()} +
               int{neighbour_in(at, kTwins).has_value()} + int{link_in(at, kTwins).has_value()} +
               int{touches_addresses(at, kTwins)} + int{route_fact_in(at, kTwins).has_value()} +
               int{downed_interface_in(at).has_value()} + int{removed_address_in(at).has_value()} +
               int{next_hop_object_in(at).has_value()};
    };
    for (const Bytes& whole :
         {multipath_route(), plain_route(), link(RTM_NEWLINK, 0),
          next_hop_object(RTM_NEWNEXTHOP, NLM_F_REPLACE), neighbour(RTM_NEWNEIGH, NUD_REACHABLE, 0),
          ipv6_route("2001:db8::/32", "fe80::1"), ipv6_address(IFA_F_PERMANENT)}) {
        EXPECT_GE(ask_all(whole), 1) << "there is something to spoil";
        for (size_t length = sizeof(nlmsghdr); length < whole.size(); ++length) {
            Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
            const auto said = static_cast<uint32_t>(length);
            std::memcpy(cut.data(), &said, sizeof(said));
            ask_all(cut);
        }
        for (size_t at = sizeof(nlmsghdr); at < whole.size(); ++at) {
            for (const unsigned char value : Bytes{0x00, 0x01, 0x7f, 0xff}) {
                Bytes spoilt = whole;
                spoilt[at] = value;
                ask_all(spoilt);
            }
        }
        for (const uint16_t type : {RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWADDR, RTM_DELADDR, RTM_DELNEIGH,
                                    RTM_NEWLINK, RTM_NEWNEXTHOP}) {
            Bytes retold = whole;
            std::memcpy(retold.data() + offsetof(nlmsghdr, nlmsg_type), &type, sizeof(type));
            ask_all(retold);
        }
    }
}

}  // namespace netlink_messages_test
}  // namespace penstock::drivers
