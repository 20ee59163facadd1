// SPDX-License-Identifier: Apache-2.0
// VIP routes in a real kernel, in a separate namespace: announcement, replaced metrics, foreign routes, and
// what the mirror makes of them. No EAL.
#include "drivers/host/vip_routes.hpp"

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "drivers/host/netlink_mirror.hpp"
#include "drivers/host/netlink_sockets.hpp"
#include "drivers/host/tap_twin.hpp"
#include "tests/bound/drivers_namespaces.hpp"

namespace penstock::drivers {
namespace vip_routes_linux_test {

using test::eventually;
using test::output_of;
using test::run;
using Kind = VipRouteChange::Kind;

constexpr NicPortId kUp{0};
constexpr NicPortId kCluster{1};

IpAddr ip(const std::string& text) {
    return IpAddr::parse(text).value();
}

std::unique_ptr<TapTwin> twin(const std::string& name, const std::vector<const char*>& addresses) {
    TapTwinOptions options{.name = name, .mac = MacAddr{{2, 0, 0, 0, 0, 0x1a}}, .mtu = 1500, .addresses = {}};
    for (const char* address : addresses) {
        options.addresses.push_back(*InterfaceAddress::parse(address));
    }
    auto opened = TapTwin::open(options);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().what);
    return opened ? std::move(*opened) : nullptr;
}

class VipRoutesLinux : public ::testing::Test {
 protected:
    void SetUp() override {
        std::string why_not;
        if (!test::in_own_namespace(why_not)) {
            GTEST_SKIP() << why_not;
        }
        up_ = twin("up", {"10.1.0.1/24", "2001:db8:1::1/64"});
        cluster_ = twin("cluster", {"10.2.0.1/24", "2001:db8:2::1/64"});
        ASSERT_TRUE(up_ && cluster_);
        auto opened = VipRoutes::open({{up_->ifindex(), kUp}, {cluster_->ifindex(), kCluster}});
        ASSERT_TRUE(opened) << opened.error().what;
        routes_ = std::move(*opened);
    }
    std::vector<VipRouteOutcome> apply(const std::vector<VipRouteChange>& changes) {
        return routes_->apply(changes);
    }
    std::vector<VipRoute> present() { return routes_->read().value(); }

    std::unique_ptr<TapTwin> up_, cluster_;
    std::unique_ptr<VipRoutes> routes_;
};

const std::vector<VipRouteOutcome> kAllDone{VipRouteOutcome::Done};

TEST_F(VipRoutesLinux, ARouteHasTheTwinTheProtocolAndTheMetric_PRESENCE002) {
    const VipRoute v4{ip("203.0.113.80"), kUp, 100};
    const VipRoute v6{ip("2001:db8:80::80"), kCluster, 200};
    EXPECT_EQ(apply({{Kind::Add, v4}, {Kind::Add, v6}}),
              (std::vector{VipRouteOutcome::Done, VipRouteOutcome::Done}));
    EXPECT_EQ(output_of("ip route show 203.0.113.80"),
              "203.0.113.80 dev up proto 80 scope link metric 100 \n");
    EXPECT_TRUE(output_of("ip -6 route show 2001:db8:80::80")
                    .starts_with("2001:db8:80::80 dev cluster proto 80 metric 200"));
    EXPECT_EQ(present(), (std::vector{v4, v6}));
    EXPECT_EQ(apply({{Kind::Remove, v4}, {Kind::Remove, v4}, {Kind::Remove, v6}}),
              (std::vector(3, VipRouteOutcome::Done)))
        << "also where it is gone";
    EXPECT_TRUE(present().empty());
    EXPECT_NE(output_of("ip neigh show nud permanent dev up"), "") << "routes leave first";
    const VipNeighbour unused4{v4.address, v4.port}, unused6{v6.address, v6.port};
    routes_->remove_neighbours(std::vector{unused4, unused4, unused6});
    EXPECT_EQ(output_of("ip neigh show nud permanent; ip -6 neigh show nud permanent"), "");
    EXPECT_EQ(apply({{Kind::Add, {ip("203.0.113.80"), NicPortId{9}, 100}}}),
              std::vector{VipRouteOutcome::Refused})
        << "no such twin";
}

// The number of VIPs of a large gateway (next-capabilities 1.4 measured 10,000).
TEST_F(VipRoutesLinux, TenThousandRoutesAreAddedAndRemoved_PRESENCE002) {
    std::vector<VipRouteChange> add;
    for (uint32_t i = 0; i < 5'000; ++i) {
        const auto high = static_cast<uint8_t>(i >> 8), low = static_cast<uint8_t>(i);
        add.push_back({Kind::Add, {IpAddr::v4(198, 18, high, low), kUp, 100}});
        add.push_back({Kind::Add, {ip("2001:db8:80::" + std::to_string(i)), kUp, 100}});
    }
    std::vector<VipRouteChange> remove = add;
    for (auto& change : remove) {
        change.kind = Kind::Remove;
    }
    const std::vector<VipRouteOutcome> all_done(add.size(), VipRouteOutcome::Done);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(apply(add), all_done);
    const auto added = std::chrono::steady_clock::now();
    EXPECT_EQ(present().size(), add.size());
    EXPECT_EQ(output_of("ip route show proto 80 | wc -l; ip -6 route show proto 80 | wc -l"), "5000\n5000\n");
    const auto read = std::chrono::steady_clock::now();
    EXPECT_EQ(apply(remove), all_done);
    const auto removed = std::chrono::steady_clock::now();
    EXPECT_TRUE(present().empty());
    std::vector<VipNeighbour> unused;
    for (const auto& change : remove) {
        unused.push_back({change.route.address, change.route.port});
    }
    const auto emptied = std::chrono::steady_clock::now();
    routes_->remove_neighbours(unused);
    const auto cleared = std::chrono::steady_clock::now();
    EXPECT_EQ(output_of("ip neigh show nud permanent; ip -6 neigh show nud permanent"), "");
    const auto ms = [](auto span) {
        return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
    };
    std::cout << "10,000 routes: added in " << ms(added - start) << " ms, removed in " << ms(removed - read)
              << " ms, neighbour entries removed in " << ms(cleared - emptied) << " ms\n";
}

// A receive buffer for few answers stands for any loss of them.
TEST_F(VipRoutesLinux, ALostAnswerMakesOnlyItsBatchUnknown_PRESENCE002) {
    auto small = VipRoutes::open({{up_->ifindex(), kUp}, {cluster_->ifindex(), kCluster}}, 1);
    ASSERT_TRUE(small);
    // A first batch of 64 in which all are refused, and two others.
    std::vector<VipRouteChange> changes;
    for (uint8_t i = 0; i < 130; ++i) {
        const NicPortId port = i < 64 ? NicPortId{9} : kUp;
        changes.push_back({Kind::Add, {IpAddr::v4(198, 18, 0, i), port, 100}});
    }
    const auto outcomes = (*small)->apply(changes);
    ASSERT_EQ(outcomes.size(), 130U);
    const auto known = std::ranges::count(outcomes.begin(), outcomes.begin() + 64, VipRouteOutcome::Refused);
    EXPECT_LT(known, 64);
    EXPECT_EQ(std::ranges::count(outcomes.begin(), outcomes.begin() + 64, VipRouteOutcome::Unknown),
              64 - known);
    EXPECT_EQ(std::ranges::count(outcomes.begin() + 64, outcomes.end(), VipRouteOutcome::Done), 66);
    EXPECT_EQ(present().size(), 66U);
}

TEST_F(VipRoutesLinux, AForeignRouteIsLeftAlone_PRESENCE002) {
    ASSERT_EQ(run("ip route add 203.0.113.1/32 dev cluster proto 99 metric 100; "
                  "ip route add 203.0.113.2/32 dev cluster proto 99 metric 20; "
                  "ip -6 route add 2001:db8:80::1/128 dev cluster proto 99 metric 100; "
                  "ip -6 route add 2001:db8:80::2/128 dev cluster proto 99 metric 20"),
              0);
    const std::string before = output_of("ip route show proto 99; ip -6 route show proto 99");
    const VipRoute same4{ip("203.0.113.1"), kCluster, 100}, other4{ip("203.0.113.2"), kUp, 100};
    const VipRoute same6{ip("2001:db8:80::1"), kCluster, 100}, other6{ip("2001:db8:80::2"), kUp, 100};
    EXPECT_EQ(apply({{Kind::Add, same4}, {Kind::Add, other4}, {Kind::Add, same6}, {Kind::Add, other6}}),
              (std::vector{VipRouteOutcome::Exists, VipRouteOutcome::Done, VipRouteOutcome::Exists,
                           VipRouteOutcome::Done}));
    EXPECT_EQ(present(), (std::vector{other4, other6})) << "beside a route of another metric";
    apply({{Kind::Remove, same4}, {Kind::Remove, other4}, {Kind::Remove, same6}, {Kind::Remove, other6}});
    EXPECT_EQ(output_of("ip route show proto 99; ip -6 route show proto 99"), before);
    EXPECT_TRUE(present().empty());
}

// Follows the kernel's messages as a routing daemon does: after the first route of a VIP, there is never a
// moment without one.
TEST_F(VipRoutesLinux, AMetricAndATwinAreReplacedWithoutAGap_PRESENCE002) {
    NetlinkSockets monitor;
    ASSERT_TRUE(monitor.open());
    const TwinsByIndex twins{{up_->ifindex(), kUp}, {cluster_->ifindex(), kCluster}};
    std::set<VipRoute> now;
    size_t messages = 0, gaps = 0;
    const auto follow = [&] {
        monitor.receive([&](const nlmsghdr* message) {
            if (const auto route = vip_route_in(message, twins)) {
                ++messages;
                message->nlmsg_type == RTM_NEWROUTE ? void(now.insert(*route)) : void(now.erase(*route));
                gaps += std::ranges::none_of(
                            now, [&](const VipRoute& other) { return other.address == route->address; })
                            ? 1
                            : 0;
            }
        });
    };
    for (const IpAddr vip : {ip("203.0.113.80"), ip("2001:db8:80::80")}) {
        const VipRoute serves{vip, kUp, 100}, drains{vip, kUp, 900}, elsewhere{vip, kCluster, 900};
        apply({{Kind::Add, serves}});
        apply({{Kind::Add, drains}, {Kind::Remove, serves}});
        EXPECT_EQ(present().back(), drains);
        apply({{Kind::Add, serves}, {Kind::Remove, drains}});
        apply({{Kind::Add, drains}, {Kind::Remove, serves}});
        EXPECT_EQ(apply({{Kind::AddBeside, elsewhere}, {Kind::Remove, drains}}),
                  (std::vector{VipRouteOutcome::Done, VipRouteOutcome::Done}))
            << vip.to_string() << ": another twin, the same metric";
        EXPECT_TRUE(eventually([&] { return now == std::set{elsewhere}; }, follow)) << vip.to_string();
        EXPECT_EQ(gaps, 0U) << vip.to_string();
        apply({{Kind::Remove, elsewhere}});
        EXPECT_TRUE(eventually([&] { return now.empty(); }, follow)) << vip.to_string();
        EXPECT_EQ(gaps, 1U) << "the monitor finds a gap";
        gaps = 0;
    }
    EXPECT_EQ(messages, 20U);
}

TEST_F(VipRoutesLinux, LeftOversOfTheTwinsAreFound_PRESENCE002) {
    ASSERT_EQ(run("ip route add 203.0.113.9/32 dev up proto 80 metric 900; "
                  "ip route add 203.0.113.10/32 dev lo proto 80 metric 100; "
                  "ip route add 203.0.113.0/25 dev up proto 80 metric 100; "
                  "ip route add 203.0.113.11/32 dev up proto 80 metric 100 table 80"),
              0);
    const VipRoute left_over{ip("203.0.113.9"), kUp, 900};
    EXPECT_EQ(present(), std::vector{left_over}) << "of our twins, whole addresses, main table";
    EXPECT_EQ(apply({{Kind::Remove, left_over}}), kAllDone);
    EXPECT_TRUE(present().empty());
    EXPECT_NE(output_of("ip route show proto 80"), "") << "others are left alone";
    run("ip route flush proto 80; ip route flush table 80");
}

TEST_F(VipRoutesLinux, RoutesEndWithTheirTwin_PRESENCE002) {
    apply({{Kind::Add, {ip("203.0.113.80"), kUp, 100}}, {Kind::Add, {ip("2001:db8:80::80"), kUp, 100}}});
    ASSERT_EQ(present().size(), 2U);
    up_.reset();  // as with a process that is killed
    EXPECT_TRUE(present().empty());
    EXPECT_EQ(output_of("ip route show proto 80; ip -6 route show proto 80"), "");
}

// The host's own programs: their packets enter the twin without ARP and ND.
TEST_F(VipRoutesLinux, PacketsOfTheHostEnterTheTwinWithoutResolution_LB018) {
    apply({{Kind::Add, {ip("203.0.113.80"), kUp, 100}}, {Kind::Add, {ip("2001:db8:80::80"), kUp, 100}}});
    for (const std::string vip : {"203.0.113.80", "2001:db8:80::80"}) {
        run("ping -c 1 -W 1 " + vip);  // unanswered
        std::array<uint8_t, 2048> room;
        bool found = false;
        EXPECT_TRUE(eventually([&] { return found; },
                               [&] {
                                   for (ssize_t length = up_->read(room); length > 0 && !found;
                                        length = up_->read(room)) {
                                       found = std::equal(kVipNeighbourMac.bytes.begin(),
                                                          kVipNeighbourMac.bytes.end(), room.begin());
                                   }
                               },
                               std::chrono::milliseconds(5'000)))
            << vip;
    }
}

// Workers serve a packet to a VIP. A route that announces it must not reach their route table, nor its
// neighbour entry.
TEST_F(VipRoutesLinux, TheMirrorLeavesAnnouncementsOut_PRESENCE002) {
    auto mirror =
        NetlinkMirror::open({{kUp, "up"}, {kCluster, "cluster"}}, [](NoticeLevel, std::string_view) {});
    ASSERT_TRUE(mirror) << mirror.error().what;
    const auto poll = [&] { (*mirror)->poll(NetlinkMirror::Clock::now()); };
    const auto has = [&](const std::string& prefix) {
        return std::ranges::count((*mirror)->state().routes, Prefix::parse(prefix).value(),
                                  &route::Route::destination) > 0;
    };
    const uint64_t readings = (*mirror)->route_readings();
    apply({{Kind::Add, {ip("203.0.113.80"), kUp, 100}}, {Kind::Add, {ip("2001:db8:80::80"), kUp, 100}}});
    apply({{Kind::Remove, {ip("2001:db8:80::80"), kUp, 100}}});
    ASSERT_EQ(run("ip route add 203.0.113.81/32 dev up proto 99"), 0);  // sent after the others
    EXPECT_TRUE(eventually([&] { return has("203.0.113.81/32"); }, poll));
    EXPECT_FALSE(has("203.0.113.80/32") || has("2001:db8:80::80/128"));
    EXPECT_EQ((*mirror)->route_readings(), readings) << "nothing was read again";
    const auto& neighbours = (*mirror)->state().neighbours;
    EXPECT_EQ(std::ranges::count(neighbours, ip("203.0.113.80"), &route::Neighbour::address), 0);
    // A mirror that starts later reads the same from its dumps.
    auto second =
        NetlinkMirror::open({{kUp, "up"}, {kCluster, "cluster"}}, [](NoticeLevel, std::string_view) {});
    ASSERT_TRUE(second);
    EXPECT_EQ((*second)->state().routes, (*mirror)->state().routes);
    EXPECT_EQ(
        std::ranges::count((*second)->state().neighbours, ip("203.0.113.80"), &route::Neighbour::address), 0);
}

}  // namespace vip_routes_linux_test
}  // namespace penstock::drivers
