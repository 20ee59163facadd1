// SPDX-License-Identifier: Apache-2.0
// The Linux side of the ports, against a real kernel in a separate namespace: twin, mirror, guard, interface.
// No EAL.
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "drivers/eal/hugepages.hpp"
#include "drivers/host/ingress_guard.hpp"
#include "drivers/host/kernel_interface.hpp"
#include "drivers/host/link_probes.hpp"
#include "drivers/host/netlink_mirror.hpp"
#include "drivers/host/tap_twin.hpp"
#include "drivers/host/vip_addresses.hpp"
#include "drivers/host/vip_announcement.hpp"
#include "tests/bound/drivers_namespaces.hpp"
#include "tests/support/prng.hpp"

namespace penstock::drivers {
namespace drivers_linux_test {

using test::eventually;
using test::output_of;
using test::run;
using Clock = NetlinkMirror::Clock;
using Frame = std::vector<uint8_t>;

constexpr NicPortId kUp{0};
constexpr NicPortId kCluster{1};
const MacAddr kUpMac{{2, 0, 0, 0, 0, 0x0a}};
const MacAddr kClusterMac{{2, 0, 0, 0, 0, 0x0b}};
const MacAddr kHostMac{{2, 0, 0, 0, 9, 9}};

class DriversLinux : public ::testing::Test {
 protected:
    void SetUp() override {
        std::string why_not;
        if (!test::in_own_namespace(why_not)) {
            GTEST_SKIP() << why_not;
        }
    }

    // A twin that leftovers of other tests cannot affect: its interface is removed with it.
    static std::unique_ptr<TapTwin> twin(const std::string& name, const MacAddr& mac,
                                         const std::vector<const char*>& addresses, uint16_t mtu = 1500) {
        TapTwinOptions options{.name = name, .mac = mac, .mtu = mtu, .addresses = {}};
        for (const char* address : addresses) {
            options.addresses.push_back(*InterfaceAddress::parse(address));
        }
        auto opened = TapTwin::open(options);
        EXPECT_TRUE(opened) << (opened ? "" : opened.error().what);
        return opened ? std::move(*opened) : nullptr;
    }

    // The next frame that Linux sends and `wanted` accepts; empty after the time limit.
    static Frame next_frame(TapTwin& from, const std::function<bool(const Frame&)>& wanted,
                            std::chrono::milliseconds patience = std::chrono::milliseconds(60'000)) {
        std::array<uint8_t, 2048> room;
        Frame found;
        eventually([&] { return !found.empty(); },
                   [&] {
                       for (ssize_t length = from.read(room); length > 0 && found.empty();
                            length = from.read(room)) {
                           Frame frame(room.begin(), room.begin() + length);
                           if (wanted(frame)) {
                               found = frame;
                           }
                       }
                   },
                   patience);
        return found;
    }

    static bool is_arp_request_for(const Frame& frame, const IpAddr& target) {
        return frame.size() >= 42 && frame[12] == 0x08 && frame[13] == 0x06 && frame[21] == 1 &&
               std::equal(frame.begin() + 38, frame.begin() + 42, target.bytes().begin() + 12);
    }

    // A neighbour solicitation (RFC 4861, 4.3): ICMPv6 type 135, its target after 8 bytes.
    static bool is_solicitation_for(const Frame& frame, const IpAddr& target) {
        return frame.size() >= 78 && frame[12] == 0x86 && frame[13] == 0xdd && frame[20] == 58 &&
               frame[54] == 135 && std::equal(frame.begin() + 62, frame.begin() + 78, target.bytes().begin());
    }

    // An Ethernet ARP packet (RFC 826).
    static Frame arp(uint8_t operation, const MacAddr& sender, const IpAddr& sender_ip, const MacAddr& target,
                     const IpAddr& target_ip) {
        Frame frame(42);
        const bool ask = operation == 1;
        std::fill_n(frame.begin(), 6, uint8_t{0xff});
        if (!ask) {
            std::ranges::copy(target.bytes, frame.begin());
        }
        std::ranges::copy(sender.bytes, frame.begin() + 6);
        const std::array<uint8_t, 10> fixed{0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, operation};
        std::ranges::copy(fixed, frame.begin() + 12);
        std::ranges::copy(sender.bytes, frame.begin() + 22);
        std::copy_n(sender_ip.bytes().begin() + 12, 4, frame.begin() + 28);
        if (!ask) {
            std::ranges::copy(target.bytes, frame.begin() + 32);
        }
        std::copy_n(target_ip.bytes().begin() + 12, 4, frame.begin() + 38);
        return frame;
    }

    static bool give(TapTwin& to, Frame frame) {
        const iovec piece{frame.data(), frame.size()};
        return to.write({&piece, 1});
    }
};

// ---- TapTwin

TEST_F(DriversLinux, TwinHasTheFaceAskedFor) {
    const auto tap = twin("tw0", kUpMac, {"10.1.0.1/24", "2001:db8:1::1/64", "10.1.9.9/32"}, 1400);
    ASSERT_TRUE(tap);
    const std::string link = output_of("ip -o link show tw0");
    EXPECT_NE(link.find("02:00:00:00:00:0a"), std::string::npos) << link;
    EXPECT_NE(link.find("mtu 1400"), std::string::npos) << link;
    EXPECT_NE(link.find("LOWER_UP"), std::string::npos) << link;
    const std::string addresses = output_of("ip -o addr show tw0");
    EXPECT_NE(addresses.find("10.1.0.1/24 brd 10.1.0.255"), std::string::npos) << addresses;
    EXPECT_NE(addresses.find("10.1.9.9/32"), std::string::npos) << addresses;
    EXPECT_NE(addresses.find("2001:db8:1::1/64"), std::string::npos) << addresses;
    EXPECT_EQ(addresses.find("tentative"), std::string::npos) << addresses;
}

// Probes leave by the twin of their port. Of what arrives, only claims are passed on; a request of another
// host is none.
TEST_F(DriversLinux, ProbesLeaveByTheTwinAndClaimsArrive_PRESENCE006) {
    const auto up = twin("twp0", kUpMac, {"10.1.0.1/24", "2001:db8:1::1/64"});
    const auto cluster = twin("twp1", kClusterMac, {"10.2.0.1/24"});
    ASSERT_TRUE(up && cluster);
    const auto opened = LinkProbes::open({{up->ifindex(), kUp}, {cluster->ifindex(), kCluster}});
    ASSERT_TRUE(opened) << opened.error().what;
    LinkProbes& probes = **opened;
    const IpAddr vip = IpAddr::v4(10, 1, 0, 80), vip6 = *IpAddr::parse("2001:db8:1::80");
    for (const IpAddr& address : {vip, vip6}) {
        EXPECT_TRUE(probes.send({address, kUp}, kUpMac));
        const Frame sent = probe_of(address, kUpMac);
        EXPECT_FALSE(next_frame(*up, [&](const Frame& frame) { return frame == sent; }).empty());
    }
    EXPECT_FALSE(probes.send({vip, NicPortId{9}}, kUpMac)) << "no such twin";

    const IpAddr host = IpAddr::v4(10, 1, 0, 7), other = IpAddr::v4(10, 2, 0, 80);
    ASSERT_TRUE(give(*up, arp(1, kHostMac, host, MacAddr{}, vip)));
    ASSERT_TRUE(give(*up, arp(2, kHostMac, vip, kUpMac, IpAddr::v4(0, 0, 0, 0))));
    ASSERT_TRUE(give(*up, announcement_of(vip6, kHostMac)));
    ASSERT_TRUE(give(*cluster, announcement_of(other, kHostMac)));
    std::vector<std::pair<NicPortId, IpAddr>> claims;
    EXPECT_TRUE(eventually([&] { return claims.size() >= 3; },
                           [&] {
                               probes.receive([&](NicPortId port, const AddressClaim& claim) {
                                   EXPECT_EQ(claim.mac, kHostMac);
                                   claims.emplace_back(port, claim.address);
                               });
                           }));
    std::ranges::sort(claims);
    EXPECT_EQ(claims,
              (std::vector<std::pair<NicPortId, IpAddr>>{{kUp, vip}, {kUp, vip6}, {kCluster, other}}));
}

// As on a host with IPv6 disabled by default: solicitations need a link-local source address, too.
TEST_F(DriversLinux, AnIpv6AddressSwitchesIpv6OnForItsTwin) {
    const char* const defaults =
        "sysctl -w net.ipv6.conf.default.disable_ipv6=%d net.ipv6.conf.default.addr_gen_mode=%d";
    const auto set_defaults = [&](int disabled, int mode) {
        std::array<char, 128> command;
        std::snprintf(command.data(), command.size(), defaults, disabled, mode);
        return run(command.data());
    };
    ASSERT_EQ(set_defaults(1, 1), 0);
    const auto dual = twin("tw6", kUpMac, {"10.1.0.1/24", "2001:db8:1::1/64"});
    const auto plain = twin("tw7", kClusterMac, {"10.2.0.1/24"});
    ASSERT_EQ(set_defaults(0, 0), 0);
    ASSERT_TRUE(dual && plain);
    const std::string addresses = output_of("ip -o -6 addr show tw6");
    EXPECT_NE(addresses.find("2001:db8:1::1/64"), std::string::npos) << addresses;
    EXPECT_NE(addresses.find("fe80::ff:fe00:a/64"), std::string::npos) << addresses;
    EXPECT_EQ(addresses.find("tentative"), std::string::npos) << addresses;
    EXPECT_EQ(output_of("ip -o -6 addr show tw7"), "");
}

TEST_F(DriversLinux, TwinRefusesAForeignInterface) {
    ASSERT_EQ(run("ip link add tw1 type dummy || ip tuntap add tw1 mode tap"), 0);
    const auto taken = TapTwin::open({.name = "tw1", .mac = kUpMac, .addresses = {}});
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Errc::AlreadyExists);
    EXPECT_NE(taken.error().what.find("tw1"), std::string::npos);
    EXPECT_EQ(run("ip link show tw1"), 0) << "the foreign interface was touched";
    run("ip link del tw1");
    EXPECT_FALSE(TapTwin::open({.name = "a_name_that_is_too_long", .mac = kUpMac, .addresses = {}}));
}

TEST_F(DriversLinux, TwinIsGoneWithItsObject) {
    twin("tw2", kUpMac, {"10.1.0.1/24"}).reset();
    EXPECT_NE(run("ip link show tw2"), 0);
}

TEST_F(DriversLinux, LinuxAnswersArpThroughTheTwin) {
    const auto tap = twin("tw3", kUpMac, {"10.1.0.1/24"});
    ASSERT_TRUE(tap);
    const IpAddr own = IpAddr::v4(10, 1, 0, 1);
    const IpAddr host = IpAddr::v4(10, 1, 0, 2);
    ASSERT_TRUE(give(*tap, arp(1, kHostMac, host, MacAddr{}, own)));
    const Frame expected = arp(2, kUpMac, own, kHostMac, host);
    EXPECT_EQ(next_frame(*tap, [](const Frame& f) { return f.size() >= 42 && f[13] == 0x06; }), expected);
}

// The sum over all data covered by a correct UDP checksum is 0xffff (RFC 768).
TEST_F(DriversLinux, LinuxCompletesItsChecksums) {
    const auto tap = twin("tw4", kUpMac, {"10.1.0.1/24"});
    ASSERT_TRUE(tap);
    ASSERT_EQ(run("ip neigh replace 10.1.0.2 lladdr 02:00:00:00:09:09 dev tw4 nud permanent"), 0);
    ASSERT_EQ(run("python3 -c \"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'odd "
                  "length!', ('10.1.0.2', 7))\""),
              0);
    const Frame frame = next_frame(
        *tap, [](const Frame& f) { return f.size() > 42 && f[12] == 0x08 && f[13] == 0 && f[23] == 17; });
    ASSERT_EQ(frame.size(), 14u + 20 + 8 + 11);
    Frame covered(frame.begin() + 26, frame.end());  // addresses, UDP header, data
    uint32_t sum = 17 + 19;                          // protocol and UDP length of the pseudo header
    covered.resize((covered.size() + 1) / 2 * 2);
    for (size_t i = 0; i < covered.size(); i += 2) {
        sum += static_cast<uint32_t>(covered[i] << 8 | covered[i + 1]);
    }
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    EXPECT_EQ(sum, 0xffffu);
}

// ---- NetlinkMirror

class Mirror : public DriversLinux {
 protected:
    void SetUp() override {
        DriversLinux::SetUp();
        if (IsSkipped()) {
            return;
        }
        up = twin("up", kUpMac, {"10.1.0.1/24", "2001:db8:1::1/64"});
        cluster = twin("cluster", kClusterMac, {"10.2.0.1/24"});
        ASSERT_TRUE(up && cluster);
        auto opened = NetlinkMirror::open({{kCluster, "cluster"}, {kUp, "up"}},
                                          [this](NoticeLevel, std::string_view text) { notices += text; });
        ASSERT_TRUE(opened) << opened.error().what;
        mirror = std::move(*opened);
        settle();
    }
    // Lets the kernel's initial messages (link-local addresses, MLD) pass.
    void settle() {
        eventually([] { return false; }, [this] { mirror->poll(Clock::now()); },
                   std::chrono::milliseconds(60));
    }
    // Polls until the state is as wanted.
    bool mirrors(const std::function<bool(const MirroredState&)>& wanted) {
        return eventually([&] { return wanted(mirror->state()); },
                          [&] { last = merge(last, mirror->poll(Clock::now())); });
    }
    static MirrorChange merge(MirrorChange a, MirrorChange b) {
        return {a.forwarding || b.forwarding, a.states || b.states};
    }

    const route::Route* route_to(const char* prefix) const {
        const Prefix wanted = *Prefix::parse(prefix);
        const auto found = std::ranges::find(mirror->state().routes, wanted, &route::Route::destination);
        return found == mirror->state().routes.end() ? nullptr : &*found;
    }
    const route::Neighbour* neighbour(const IpAddr& address) const {
        const auto found = std::ranges::find(mirror->state().neighbours, address, &route::Neighbour::address);
        return found == mirror->state().neighbours.end() ? nullptr : &*found;
    }

    std::unique_ptr<TapTwin> up, cluster;
    std::unique_ptr<NetlinkMirror> mirror;
    MirrorChange last;
    std::string notices;
};

TEST_F(Mirror, ReadsWhatIsThereAtTheStart) {
    ASSERT_EQ(mirror->state().ports.size(), 2u);
    EXPECT_EQ(mirror->state().ports[0], (route::EgressPort{kUp, kUpMac, 1500, true}));
    EXPECT_EQ(mirror->state().ports[1], (route::EgressPort{kCluster, kClusterMac, 1500, true}));
    const auto* on_link = route_to("10.2.0.0/24");
    ASSERT_TRUE(on_link);
    EXPECT_EQ(on_link->egress, kCluster);
    EXPECT_FALSE(on_link->gateway);
    EXPECT_TRUE(route_to("2001:db8:1::/64"));
    const auto& addresses = mirror->state().addresses;
    EXPECT_TRUE(std::ranges::count(addresses, route::LocalAddress{kUp, IpAddr::v4(10, 1, 0, 1), 24}) == 1);
    EXPECT_TRUE(std::ranges::count(addresses, route::LocalAddress{kCluster, IpAddr::v4(10, 2, 0, 1), 24}) ==
                1);
    EXPECT_FALSE(NetlinkMirror::open({{kUp, "no_such_twin"}}, {}));
}

TEST_F(Mirror, FollowsRoutes) {
    ASSERT_EQ(run("ip route add default via 10.1.0.254 metric 7"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("0.0.0.0/0") != nullptr; }));
    EXPECT_EQ(*route_to("0.0.0.0/0"),
              (route::Route{*Prefix::parse("0.0.0.0/0"), kUp, IpAddr::v4(10, 1, 0, 254), 7}));
    EXPECT_TRUE(last.forwarding);

    // A replaced route is announced by its successor only.
    ASSERT_EQ(run("ip route add 10.9.0.0/16 via 10.1.0.5"), 0);
    ASSERT_EQ(run("ip route replace 10.9.0.0/16 via 10.2.0.5"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) {
        return route_to("10.9.0.0/16") != nullptr && route_to("10.9.0.0/16")->egress == kCluster;
    }));
    EXPECT_EQ(
        std::ranges::count(mirror->state().routes, *Prefix::parse("10.9.0.0/16"), &route::Route::destination),
        1);

    ASSERT_EQ(run("ip -6 route add 2001:db8:9::/48 via 2001:db8:1::9"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("2001:db8:9::/48") != nullptr; }));
    EXPECT_EQ(route_to("2001:db8:9::/48")->gateway, *IpAddr::parse("2001:db8:1::9"));

    ASSERT_EQ(run("ip route del 10.9.0.0/16"), 0);
    EXPECT_TRUE(mirrors([&](const auto&) { return route_to("10.9.0.0/16") == nullptr; }));
}

// The mirror records a route through another interface as such: it hides shorter prefixes through twins.
// Other routing tables are ignored.
TEST_F(Mirror, KnowsRoutesElsewhereAndIgnoresOtherTables) {
    ASSERT_EQ(
        run("ip tuntap add other mode tap && ip link set other up && ip addr add 10.3.0.1/24 dev other"), 0);
    ASSERT_EQ(run("ip route add 10.8.0.0/16 dev other && ip route add blackhole 10.7.0.0/16 && ip route add "
                  "10.6.0.0/16 via 10.1.0.6 table 77"),
              0);
    ASSERT_EQ(run("ip route add 10.5.0.0/16 via 10.1.0.5"), 0);  // reported last
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("10.5.0.0/16") != nullptr; }));
    for (const char* prefix : {"10.3.0.0/24", "10.8.0.0/16", "10.7.0.0/16"}) {
        ASSERT_NE(route_to(prefix), nullptr) << prefix;
        EXPECT_FALSE(route_to(prefix)->egress.is_set()) << prefix;
    }
    EXPECT_EQ(route_to("10.6.0.0/16"), nullptr);
    EXPECT_EQ(
        std::ranges::count(mirror->state().addresses, IpAddr::v4(10, 3, 0, 1), &route::LocalAddress::address),
        0);
    run("ip link del other; ip route del blackhole 10.7.0.0/16; ip route flush table 77");
}

TEST_F(Mirror, TakesTheFirstHopThatIsATwin) {
    ASSERT_EQ(
        run("ip tuntap add other mode tap && ip link set other up && ip addr add 10.3.0.1/24 dev other"), 0);
    ASSERT_EQ(run("ip route add 10.9.0.0/16 nexthop via 10.3.0.9 dev other nexthop via 10.2.0.9 dev cluster "
                  "nexthop via 10.1.0.9 dev up"),
              0);
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("10.9.0.0/16") != nullptr; }));
    EXPECT_EQ(route_to("10.9.0.0/16")->egress, kCluster);
    EXPECT_EQ(route_to("10.9.0.0/16")->gateway, IpAddr::v4(10, 2, 0, 9));
    run("ip link del other");
}

TEST_F(Mirror, FollowsAnIpv6NextHopOfAnIpv4Route) {
    ASSERT_EQ(run("ip route add 10.9.0.0/16 via inet6 fe80::9 dev up"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("10.9.0.0/16") != nullptr; }));
    EXPECT_EQ(route_to("10.9.0.0/16")->gateway, *IpAddr::parse("fe80::9"));
}

TEST_F(Mirror, RoutesGoDownWithTheirLink) {
    ASSERT_EQ(run("ip route add 10.9.0.0/16 via 10.2.0.9"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("10.9.0.0/16") != nullptr; }));
    ASSERT_EQ(run("ip link set cluster down"), 0);
    EXPECT_TRUE(mirrors(
        [&](const auto& state) { return route_to("10.9.0.0/16") == nullptr && !state.ports[1].link_up; }));
    EXPECT_TRUE(mirror->state().ports[0].link_up);
}

// Messages of IPv6 would trigger a re-read of IPv4's routes as well, for which Linux sends no messages.
TEST_F(Mirror, RoutesGoDownWithALinkThatHasNoIpv6) {
    ASSERT_EQ(run("sysctl -w net.ipv6.conf.cluster.disable_ipv6=1"), 0);
    ASSERT_EQ(run("ip route add 10.9.0.0/16 via 10.2.0.9"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("10.9.0.0/16") != nullptr; }));
    settle();
    ASSERT_EQ(run("ip link set cluster down"), 0);
    EXPECT_TRUE(mirrors(
        [&](const auto& state) { return route_to("10.9.0.0/16") == nullptr && !state.ports[1].link_up; }));
    EXPECT_EQ(route_to("10.2.0.0/24"), nullptr);
}

// Linux revives the next hop of a multipath route without a message. For the other routes of the link it
// sends messages.
TEST_F(Mirror, AMultipathRouteUsesALinkThatComesBack) {
    ASSERT_EQ(run("sysctl -w net.ipv6.conf.cluster.disable_ipv6=1"), 0);
    ASSERT_EQ(run("ip route add 10.9.0.0/16 nexthop via 10.2.0.9 dev cluster nexthop via 10.1.0.9 dev up"),
              0);
    const auto leads_to = [&](NicPortId port) {
        return mirrors([&](const auto&) {
            return route_to("10.9.0.0/16") != nullptr && route_to("10.9.0.0/16")->egress == port;
        });
    };
    ASSERT_TRUE(leads_to(kCluster));
    settle();
    ASSERT_EQ(run("ip link set cluster down"), 0);
    EXPECT_TRUE(leads_to(kUp));
    settle();
    ASSERT_EQ(run("ip link set cluster up"), 0);
    EXPECT_TRUE(leads_to(kCluster));
}

// The routes read by a newly opened mirror.
std::vector<route::Route> dumped_routes() {
    const auto fresh = NetlinkMirror::open({{kCluster, "cluster"}, {kUp, "up"}}, {});
    EXPECT_TRUE(fresh);
    return fresh ? (*fresh)->state().routes : std::vector<route::Route>();
}

TEST_F(Mirror, FollowsFlappingRoutesWithoutReadingThemAnew) {
    const uint64_t readings = mirror->route_readings();
    std::string lines;
    for (int n = 0; n < 200; ++n) {
        const std::string number = std::to_string(n);
        lines += "route add 10.100." + number + ".0/24 via 10.1.0.5\n";
        lines += "route add 2001:db8:f" + number + "::/48 via 2001:db8:1::5\n";
    }
    for (int n = 0; n < 200; n += 2) {
        const std::string number = std::to_string(n);
        lines += "route del 10.100." + number + ".0/24 via 10.1.0.5\n";
        lines += "route replace 2001:db8:f" + number + "::/48 via 2001:db8:1::6\n";
        lines += "route replace 10.100." + std::to_string(n + 1) +
                 ".0/24 nexthop via 10.2.0.7 dev cluster nexthop via 10.1.0.7 dev up\n";
        lines += "route del 2001:db8:f" + std::to_string(n + 1) + "::/48\n";
    }
    ASSERT_EQ(run("printf '" + lines + "' | ip -batch -"), 0);
    ASSERT_EQ(run("ip route add 10.5.0.0/16 via 10.1.0.5"), 0);  // the last one
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("10.5.0.0/16") != nullptr; }));
    EXPECT_EQ(mirror->state().routes, dumped_routes());
    EXPECT_EQ(std::ranges::count(mirror->state().routes, IpAddr::v4(10, 2, 0, 7),
                                 [](const auto& r) { return r.gateway.value_or(IpAddr()); }),
              100);
    EXPECT_EQ(mirror->route_readings(), readings);
}

// One line for `ip -force -batch`; about a third of the lines have no effect in their context.
std::string random_change(test::Prng& random) {
    const auto one_of = [&](std::initializer_list<const char*> words) {
        return std::string(words.begin()[random.below(words.size())]);
    };
    const std::string number = std::to_string(random.below(4));
    const bool is_v4 = random.one_in(2);
    const auto hop = [&] {
        return is_v4 ? one_of({"via 10.1.0.5 dev up", "via 10.1.0.6 dev up", "via 10.2.0.7 dev cluster",
                               "via 10.3.0.8 dev other", "via inet6 fe80::9 dev up"})
                     : one_of({"via 2001:db8:1::5 dev up", "via 2001:db8:1::6 dev up",
                               "via fe80::7 dev other", "via fe80::8 dev other"});
    };
    switch (random.below(12)) {
        case 0:
            return "link set " + one_of({"other", "other", "cluster"}) + " " + one_of({"down", "up", "up"});
        case 1:
            return one_of({"addr add 10.3.0.77/32 dev other", "addr del 10.3.0.77/32 dev other",
                           "addr add 10.2.0.1/24 dev cluster"});
        case 2:
            return "nexthop " + one_of({"add", "replace", "replace", "del"}) + " id 1" + number + " " +
                   one_of({"via 10.1.0.5 dev up", "via 10.2.0.7 dev cluster", "via 10.3.0.8 dev other",
                           "blackhole"});
        case 3:
            return "nexthop " + one_of({"add", "replace", "del"}) + " id 20 group 10/11";
        default:
            break;
    }
    std::string line = "route ";
    line += one_of({"add", "add", "append", "prepend", "replace", "replace", "change", "del", "del", "del"}) +
            " ";
    const std::string kind = one_of({"", "", "", "", "", "blackhole ", "throw "});
    line += kind + (is_v4 ? "10.5" + number + ".0.0/16" : "2001:db8:5" + number + "::/48");
    // IPv6 routes that are not merged into multipath routes have a metric of their own: dumps do not show all
    // routes beside them (kernel_routes.hpp).
    const bool is_by_device = !is_v4 && kind.empty() && random.one_in(4);
    line += is_v4 || (kind.empty() && !is_by_device) ? one_of({"", "", " metric 5"})
                                                     : one_of({" metric 6", " metric 7"});
    if (!kind.empty()) {
        return line;
    }
    if (is_by_device) {
        return line + " dev " + one_of({"up", "cluster", "other"});
    }
    if (is_v4) {
        line += one_of({"", "", "", " tos 0x10", " src 10.3.0.77", " proto bgp"});
    }
    switch (random.below(6)) {
        case 0:
            return line + " nexthop " + hop() + " nexthop " + hop();
        case 1:
            return is_v4 ? line + " nhid " + one_of({"10", "11", "20"}) : line + " " + hop();
        case 2:
            return line + " " + (is_v4 ? "dev " + one_of({"up", "cluster", "other"}) : hop());
        default:
            return line + " " + hop();
    }
}

// The routes of the first list that are missing from the second one, one a line.
std::string without(const std::vector<route::Route>& routes, const std::vector<route::Route>& others) {
    std::string text;
    for (const route::Route& route : routes) {
        if (std::ranges::find(others, route) == others.end()) {
            text += route.destination.to_string() + " metric " + std::to_string(route.metric) + " by port " +
                    std::to_string(route.egress.value) +
                    (route.gateway ? " via " + route.gateway->to_string() : "") + "\n";
        }
    }
    return text;
}

TEST_F(Mirror, ComesToWhatADumpGivesWhateverHappened) {
    ASSERT_EQ(
        run("ip tuntap add other mode tap && ip link set other up && ip addr add 10.3.0.1/24 dev other"), 0);
    test::Prng random;
    constexpr uint64_t kRounds = 40;
    for (uint64_t round = 0; round < kRounds; ++round) {
        std::string lines;
        for (int n = 0; n < 25; ++n) {
            lines += random_change(random) + "\n";
        }
        run("printf '" + lines + "' | ip -force -batch - >/dev/null 2>&1");
        // Links that come up get some of their IPv6 routes a little later.
        ASSERT_TRUE(eventually([&] { return mirror->state().routes == dumped_routes(); },
                               [&] { mirror->poll(Clock::now()); }, std::chrono::milliseconds(20'000)))
            << "round " << round << " after\n"
            << lines << output_of("ip route; ip -6 route") << "mirrored, and not dumped:\n"
            << without(mirror->state().routes, dumped_routes()) << "dumped, and not mirrored:\n"
            << without(dumped_routes(), mirror->state().routes);
    }
    EXPECT_GT(mirror->route_readings(), 1u) << "links go down";
    run("ip link del other; ip nexthop flush");
}

TEST_F(Mirror, CarrierAndMtuReachTheWorkers) {
    cluster->set_carrier(false);
    EXPECT_TRUE(mirrors([](const auto& state) { return !state.ports[1].link_up; }));
    cluster->set_carrier(true);
    ASSERT_EQ(run("ip link set cluster mtu 1300"), 0);
    EXPECT_TRUE(mirrors([](const auto& state) {
        return state.ports[1] == route::EgressPort{kCluster, kClusterMac, 1300, true};
    }));
}

TEST_F(Mirror, FollowsAddresses) {
    ASSERT_EQ(run("ip addr add 203.0.113.5/32 dev up"), 0);
    const route::LocalAddress vip{kUp, IpAddr::v4(203, 0, 113, 5), 32};
    EXPECT_TRUE(mirrors([&](const auto& state) { return std::ranges::count(state.addresses, vip) == 1; }));
    ASSERT_EQ(run("ip addr del 203.0.113.5/32 dev up"), 0);
    EXPECT_TRUE(mirrors([&](const auto& state) { return std::ranges::count(state.addresses, vip) == 0; }));
}

// VIPs on a twin: Linux answers for them, the mirror distinguishes them from the host's own addresses, and
// addresses added by others stay.
TEST_F(Mirror, VipsOnATwinAreNotTheHostsOwn_LB018) {
    auto vips = VipAddresses::open({{up->ifindex(), kUp}, {cluster->ifindex(), kCluster}});
    ASSERT_TRUE(vips) << vips.error().what;
    auto announcements = VipAnnouncements::open({{up->ifindex(), kUp}, {cluster->ifindex(), kCluster}});
    ASSERT_TRUE(announcements) << announcements.error().what;
    const route::LocalAddress vip4{kUp, IpAddr::v4(10, 1, 0, 80), 32};
    const route::LocalAddress vip6{kUp, *IpAddr::parse("2001:db8:1::80"), 128};
    for (const auto& vip : {vip4, vip6}) {
        const auto added = (*vips)->add(vip);
        if (!added && added.error().code == Errc::Unsupported) {
            GTEST_SKIP() << added.error().what;
        }
        ASSERT_TRUE(added) << added.error().what;
        EXPECT_TRUE(*added);
        EXPECT_EQ((*vips)->add(vip).value(), false) << "there already";
    }
    const auto has = [](const auto& list, const route::LocalAddress& vip) {
        return std::ranges::count(list, vip) == 1;
    };
    EXPECT_TRUE(mirrors([&](const auto& state) { return has(state.vips, vip4) && has(state.vips, vip6); }));
    EXPECT_FALSE(has(mirror->state().addresses, vip4) || has(mirror->state().addresses, vip6));
    EXPECT_TRUE(last.forwarding) << "workers hear of it";
    EXPECT_NE(output_of("ip -6 address show dev up deprecated").find("2001:db8:1::80/128"), std::string::npos)
        << "no source of the host's own packets";

    // A neighbour sends an ARP request for it.
    const MacAddr peer{{2, 0, 0, 0, 0, 0x77}};
    ASSERT_TRUE(give(*up, arp(1, peer, IpAddr::v4(10, 1, 0, 7), {}, vip4.address)));
    EXPECT_FALSE(next_frame(*up, [&](const Frame& frame) {
                     return frame.size() >= 42 && frame[12] == 0x08 && frame[13] == 0x06 && frame[21] == 2 &&
                            std::equal(frame.begin() + 28, frame.begin() + 32,
                                       vip4.address.bytes().begin() + 12);
                 }).empty());
    // Announcements are sent to the link.
    for (const auto& vip : {vip4, vip6}) {
        (*announcements)->send(vip, kUpMac);
        const Frame said = announcement_of(vip.address, kUpMac);
        EXPECT_FALSE(next_frame(*up, [&](const Frame& frame) { return frame == said; }).empty())
            << vip.address.to_string();
    }

    // Added by hand: the mirror must neither mark it nor treat it as a VIP.
    ASSERT_EQ(run("ip addr add 10.1.0.81/32 dev up"), 0);
    const route::LocalAddress by_hand{kUp, IpAddr::v4(10, 1, 0, 81), 32};
    EXPECT_EQ((*vips)->add(by_hand).value(), false);
    EXPECT_TRUE(mirrors([&](const auto& state) { return has(state.addresses, by_hand); }));
    EXPECT_FALSE(has(mirror->state().vips, by_hand));

    for (const auto& vip : {vip4, vip6, vip4}) {
        EXPECT_TRUE((*vips)->remove(vip)) << "also where it is gone";
    }
    EXPECT_TRUE(mirrors([&](const auto& state) { return state.vips.empty(); }));
    EXPECT_FALSE((*vips)->add({NicPortId{9}, vip4.address, 32})) << "no such twin";
}

TEST_F(Mirror, NeighboursKeepTheirIdWhileTheyAreKnown) {
    const IpAddr host = IpAddr::v4(10, 2, 0, 50);
    ASSERT_EQ(run("ip neigh add 10.2.0.50 lladdr 02:00:00:00:05:00 dev cluster nud permanent"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(host) != nullptr; }));
    const route::Neighbour before = *neighbour(host);
    EXPECT_EQ(before.state, route::NeighbourState::Reachable);
    EXPECT_EQ(before.port, kCluster);
    EXPECT_EQ(before.mac, (MacAddr{{2, 0, 0, 0, 5, 0}}));

    last = {};
    ASSERT_EQ(run("ip neigh replace 10.2.0.50 lladdr 02:00:00:00:05:00 dev cluster nud stale"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(host)->state == route::NeighbourState::Stale; }));
    EXPECT_TRUE(last.states);
    EXPECT_FALSE(last.forwarding) << "stale is as good as reachable to a worker";

    ASSERT_EQ(run("ip neigh replace 10.2.0.50 lladdr 02:00:00:00:05:01 dev cluster nud permanent"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(host)->mac.bytes[5] == 1; }));
    EXPECT_TRUE(last.forwarding);
    EXPECT_EQ(neighbour(host)->id, before.id);

    ASSERT_EQ(run("ip neigh del 10.2.0.50 dev cluster"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(host) == nullptr; }));
    ASSERT_EQ(run("ip neigh add 10.2.0.51 lladdr 02:00:00:00:05:02 dev cluster nud permanent"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(IpAddr::v4(10, 2, 0, 51)) != nullptr; }));
    EXPECT_NE(neighbour(IpAddr::v4(10, 2, 0, 51))->id, before.id) << "an id rests before it is given again";
}

TEST_F(Mirror, TheKernelResolvesWhatAWorkerWaitsFor) {
    const IpAddr host = IpAddr::v4(10, 2, 0, 60);
    const IpAddr own = IpAddr::v4(10, 2, 0, 1);
    mirror->resolve(kCluster, host, Clock::now());
    ASSERT_FALSE(next_frame(*cluster, [&](const Frame& f) { return is_arp_request_for(f, host); }).empty());
    // Linux reports an entry only after an answer, or after it has given up.
    ASSERT_TRUE(give(*cluster, arp(2, kHostMac, host, kClusterMac, own)));
    ASSERT_TRUE(
        mirrors([&](const auto&) { return neighbour(host) != nullptr && neighbour(host)->is_usable(); }));
    EXPECT_EQ(neighbour(host)->mac, kHostMac);
    EXPECT_EQ(neighbour(host)->state, route::NeighbourState::Reachable);
}

TEST_F(Mirror, TheKernelResolvesIpv6Too) {
    const IpAddr host = *IpAddr::parse("2001:db8:1::60");
    mirror->resolve(kUp, host, Clock::now());
    EXPECT_FALSE(next_frame(*up, [&](const Frame& f) { return is_solicitation_for(f, host); }).empty());
}

TEST_F(Mirror, ALinkLocalRouterLeadsToItsMac) {
    const IpAddr router = *IpAddr::parse("fe80::9");
    ASSERT_EQ(run("ip -6 route add 2001:db8:9::/48 via fe80::9 dev up"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return route_to("2001:db8:9::/48") != nullptr; }));
    EXPECT_EQ(*route_to("2001:db8:9::/48"),
              (route::Route{*Prefix::parse("2001:db8:9::/48"), kUp, router, 1024}));
    mirror->resolve(kUp, router, Clock::now());
    EXPECT_FALSE(next_frame(*up, [&](const Frame& f) { return is_solicitation_for(f, router); }).empty());
    ASSERT_EQ(run("ip neigh replace fe80::9 lladdr 02:00:00:00:09:09 dev up nud permanent"), 0);
    ASSERT_TRUE(
        mirrors([&](const auto&) { return neighbour(router) != nullptr && neighbour(router)->is_usable(); }));

    const auto& state = mirror->state();
    const auto table = route::RouteTable::build(state.routes, state.neighbours, state.addresses, state.ports);
    const auto hop = table->next_hop(*IpAddr::parse("2001:db8:9::1"));
    ASSERT_TRUE(hop && hop->neighbour != nullptr);
    EXPECT_EQ(hop->neighbour->mac, kHostMac);
    EXPECT_FALSE(table->next_hop(*IpAddr::parse("fe80::77")))
        << "nothing is forwarded to a link-local address";
    EXPECT_TRUE(table->is_local(*IpAddr::parse("fe80::ff:fe00:a"))) << "the twin's own";
}

TEST_F(Mirror, AStaleIpv6NextHopInUseIsProbed) {
    ASSERT_EQ(run("sysctl -w net.ipv6.neigh.up.delay_first_probe_time=0"), 0);
    const IpAddr host = *IpAddr::parse("2001:db8:1::62");
    ASSERT_EQ(run("ip neigh add 2001:db8:1::62 lladdr 02:00:00:00:09:09 dev up nud stale"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(host) != nullptr; }));
    mirror->confirm(*neighbour(host), Clock::now());
    // A unicast probe to the known MAC.
    const Frame probe = next_frame(*up, [&](const Frame& f) { return is_solicitation_for(f, host); });
    ASSERT_FALSE(probe.empty());
    EXPECT_TRUE(std::equal(probe.begin(), probe.begin() + 6, kHostMac.bytes.begin()));
}

TEST_F(Mirror, AFailedNextHopIsAskedForAgainAfterAPause) {
    ASSERT_EQ(
        run("sysctl -w net.ipv4.neigh.cluster.retrans_time_ms=20 net.ipv4.neigh.cluster.mcast_solicit=1"), 0);
    const IpAddr host = IpAddr::v4(10, 2, 0, 61);
    const auto start = Clock::now();
    mirror->resolve(kCluster, host, start);
    ASSERT_TRUE(mirrors([&](const auto&) {
        return neighbour(host) != nullptr && neighbour(host)->state == route::NeighbourState::Failed;
    }));
    const auto asks = [&](Clock::time_point when, std::chrono::milliseconds patience) {
        while (
            !next_frame(*cluster, [](const Frame&) { return true; }, std::chrono::milliseconds(10)).empty()) {
        }
        mirror->resolve(kCluster, host, when);
        return !next_frame(
                    *cluster, [&](const Frame& f) { return is_arp_request_for(f, host); }, patience)
                    .empty();
    };
    EXPECT_FALSE(asks(start + std::chrono::milliseconds(2'900), std::chrono::milliseconds(100)));
    EXPECT_TRUE(asks(start + std::chrono::milliseconds(3'100), std::chrono::seconds(60)));
}

TEST_F(Mirror, AStaleNextHopInUseIsProbed) {
    ASSERT_EQ(run("sysctl -w net.ipv4.neigh.cluster.delay_first_probe_time=0"), 0);
    const IpAddr host = IpAddr::v4(10, 2, 0, 62);
    ASSERT_EQ(run("ip neigh add 10.2.0.62 lladdr 02:00:00:00:09:09 dev cluster nud stale"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(host) != nullptr; }));
    mirror->confirm(*neighbour(host), Clock::now());
    // A unicast probe to the known MAC.
    const Frame probe = next_frame(*cluster, [&](const Frame& f) { return is_arp_request_for(f, host); });
    ASSERT_FALSE(probe.empty());
    EXPECT_TRUE(std::equal(probe.begin(), probe.begin() + 6, kHostMac.bytes.begin()));
    ASSERT_TRUE(give(*cluster, arp(2, kHostMac, host, kClusterMac, IpAddr::v4(10, 2, 0, 1))));
    EXPECT_TRUE(
        mirrors([&](const auto&) { return neighbour(host)->state == route::NeighbourState::Reachable; }));
}

TEST_F(Mirror, ReadsEverythingAnewAfterLostMessages) {
    ASSERT_EQ(run("ip neigh add 10.2.0.70 lladdr 02:00:00:00:07:00 dev cluster nud permanent"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(IpAddr::v4(10, 2, 0, 70)) != nullptr; }));
    const NeighbourId kept = neighbour(IpAddr::v4(10, 2, 0, 70))->id;
    ASSERT_EQ(run("ip neigh add 10.2.0.71 lladdr 02:00:00:00:07:01 dev cluster nud permanent"), 0);
    ASSERT_TRUE(mirrors([&](const auto&) { return neighbour(IpAddr::v4(10, 2, 0, 71)) != nullptr; }));

    const int tiny = 1;  // raised by the kernel to its minimum
    ASSERT_EQ(setsockopt(mirror->fd(), SOL_SOCKET, SO_RCVBUF, &tiny, sizeof(tiny)), 0);
    ASSERT_EQ(
        run("ip neigh del 10.2.0.71 dev cluster; ip route add 10.9.0.0/16 via 10.2.0.9; for i in $(seq 1 "
            "40); do "
            "ip neigh replace 10.2.0.$((100 + i)) lladdr 02:00:00:00:07:07 dev cluster nud permanent; done"),
        0);
    notices.clear();
    ASSERT_TRUE(mirrors([&](const auto& state) {
        return std::ranges::count(state.neighbours, kHostMac, &route::Neighbour::mac) == 0 &&
               neighbour(IpAddr::v4(10, 2, 0, 140)) != nullptr;
    }));
    EXPECT_NE(notices.find("were lost"), std::string::npos)
        << "the socket never overflowed: the test proves nothing";
    EXPECT_EQ(neighbour(IpAddr::v4(10, 2, 0, 71)), nullptr);
    EXPECT_EQ(neighbour(IpAddr::v4(10, 2, 0, 70))->id, kept);
    EXPECT_TRUE(route_to("10.9.0.0/16"));
}

// ---- IngressGuard and KernelInterface

class Guard : public DriversLinux {
 protected:
    void SetUp() override {
        DriversLinux::SetUp();
        if (IsSkipped()) {
            return;
        }
        ASSERT_TRUE(peer.is_up());
        ASSERT_TRUE(test::wire(peer, "wire0", "far0", "10.4.0.2/24"));
        run("ip link set wire0 up");
    }
    void TearDown() override {
        if (!IsSkipped()) {  // else this still is the host's own namespace
            run("ip link del wire0");
        }
    }
    bool kernel_answers() const { return run(peer.inside("ping -c 1 -W 1 10.4.0.1")) == 0; }
    // On a loaded machine this may take longer than ping's second.
    bool kernel_comes_to_answer() const {
        return eventually([this] { return kernel_answers(); }, [] {}, std::chrono::milliseconds(60'000));
    }
    static bool table_exists() { return output_of("nft list tables").find("penstock_") != std::string::npos; }
    test::Peer peer;
};

TEST_F(Guard, KeepsTheKernelAwayAndLeavesNothing) {
    run("ip addr add 10.4.0.1/24 dev wire0");
    ASSERT_TRUE(kernel_comes_to_answer());
    {
        const auto guard = IngressGuard::install("wire0");
        ASSERT_TRUE(guard) << guard.error().what;
        EXPECT_TRUE(table_exists());
        EXPECT_FALSE(kernel_answers());
    }
    EXPECT_FALSE(table_exists());
    EXPECT_TRUE(kernel_comes_to_answer());
}

TEST_F(Guard, ACrashGivesTheInterfaceBack) {
    run("ip addr add 10.4.0.1/24 dev wire0");
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        const auto guard = IngressGuard::install("wire0");
        const char byte = guard ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1) {
            _exit(1);
        }
        pause();
    }
    char byte = 'n';
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'y');
    EXPECT_TRUE(table_exists());
    EXPECT_FALSE(kernel_answers());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(eventually([] { return !table_exists(); }, [] {}));
    EXPECT_TRUE(kernel_comes_to_answer());
}

TEST_F(Guard, TheInterfaceIsMadeAWireAndPutBack) {
    run("ip link set wire0 down; ethtool -K wire0 gro on; sysctl -w net.ipv6.conf.wire0.disable_ipv6=0");
    const std::string before = output_of(
        "ip -o link show wire0; ethtool -k wire0 | grep generic-receive; sysctl "
        "net.ipv6.conf.wire0.disable_ipv6");
    {
        const auto interface = KernelInterface::prepare("wire0", 4000, {});
        ASSERT_TRUE(interface) << interface.error().what;
        const std::string during =
            output_of("ip -d -o link show wire0; ethtool -k wire0; sysctl net.ipv6.conf.wire0.disable_ipv6");
        EXPECT_NE(during.find("mtu 4000"), std::string::npos) << during;
        EXPECT_NE(during.find("ALLMULTI"), std::string::npos) << during;
        EXPECT_NE(during.find(",UP"), std::string::npos) << during;
        EXPECT_NE(during.find("generic-receive-offload: off"), std::string::npos) << during;
        EXPECT_NE(during.find("disable_ipv6 = 1"), std::string::npos) << during;
    }
    EXPECT_EQ(output_of("ip -o link show wire0; ethtool -k wire0 | grep generic-receive; sysctl "
                        "net.ipv6.conf.wire0.disable_ipv6"),
              before);
}

TEST_F(Guard, AddressesBelongOnTheTwin) {
    run("ip addr add 10.4.0.1/24 dev wire0");
    const auto refused = KernelInterface::prepare("wire0", 1500, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::InvalidArgument);
    EXPECT_NE(refused.error().what.find("10.4.0.1"), std::string::npos) << refused.error().what;
    EXPECT_EQ(KernelInterface::prepare("no_such_if", 1500, {}).error().code, Errc::NotFound);
}

// `ip netns exec` mounts a /sys of its own, so a lock on a file there would exclude no process
// of another namespace.
TEST_F(DriversLinux, OneProcessAtATimeHasItsTurnAcrossNetworkNamespaces) {
    const auto lock_elsewhere = [](const std::string& option) {
        return run("unshare --net --mount sh -c 'mount -t sysfs sysfs /sys && flock " + option + " " +
                   kHugepageTurnFile + " true'");
    };
    {
        const HugepageTurn turn;
        EXPECT_NE(lock_elsewhere("--nonblock"), 0);
    }
    EXPECT_EQ(lock_elsewhere("--exclusive"), 0) << "waits for its turn";
}

}  // namespace drivers_linux_test
}  // namespace penstock::drivers
