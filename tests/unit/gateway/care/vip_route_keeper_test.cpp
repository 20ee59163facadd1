// SPDX-License-Identifier: Apache-2.0
// The twin of each VIP's route, and how a simulated Linux is brought to the wanted routes.
#include "control/gateway/care/vip_route_keeper.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "desired_builder.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/prng.hpp"

namespace penstock::gateway {
namespace vip_route_keeper_test {

using namespace std::chrono_literals;
using drivers::VipRoute;
using drivers::VipRouteChange;
using drivers::VipRouteOutcome;
using Kind = VipRouteChange::Kind;

constexpr NicPortId kUp{0}, kCluster{1};

VipRouteRules at_most(size_t count, bool may_stay = true) {
    return {{count, count}, [](const VipRouteChange&) { return true; }, [=](NicPortId) { return may_stay; }};
}

drivers::InterfaceAddress on_twin(const std::string& text) {
    return drivers::InterfaceAddress::parse(text).value();
}

std::vector<PortState> ports(bool first_up = true, bool second_up = true) {
    return {{kUp, "up", first_up, false}, {kCluster, "cluster", second_up, false}};
}

route::Route route(const std::string& prefix, NicPortId egress, uint32_t metric = 0,
                   route::PortSet other = 0) {
    return {Prefix::parse(prefix).value(), egress, {}, metric, other};
}

// ---- plan_vips()

const TwinSubnets kTwins{{on_twin("192.0.2.1/24"), on_twin("2001:db8:1::1/64")}, {on_twin("10.2.0.1/24")}};

struct PlanCase {
    const char* name;
    std::string vip;
    std::vector<PortState> ports;
    std::vector<route::Route> routes;
    std::optional<NicPortId> port;
    std::string reason;
};

TEST(VipRoutePlan, AVipBelongsToItsSubnetOrToTheDefaultRoute_PRESENCE002) {
    const PlanCase cases[] = {
        {"in a subnet", "10.2.0.80", ports(), {route("0.0.0.0/0", kUp)}, kCluster, ""},
        {"in a subnet whose link is down",
         "10.2.0.80",
         ports(true, false),
         {},
         std::nullopt,
         "the port of its subnet is down or removed"},
        {"outside, the default route", "203.0.113.80", ports(), {route("0.0.0.0/0", kCluster)}, kCluster, ""},
        {"outside, the lower metric",
         "203.0.113.80",
         ports(),
         {route("0.0.0.0/0", kCluster, 10), route("0.0.0.0/0", kUp, 20)},
         kCluster,
         ""},
        {"outside, its link is down",
         "203.0.113.80",
         ports(true, false),
         {route("0.0.0.0/0", kCluster, 10), route("0.0.0.0/0", kUp, 20)},
         kUp,
         ""},
        {"outside, another hop of a multipath route",
         "203.0.113.80",
         ports(false, true),
         {route("0.0.0.0/0", kUp, 0, route::set_of(kCluster))},
         kCluster,
         ""},
        {"outside, no default route", "203.0.113.80", ports(), {}, kUp, ""},
        {"outside, no default route, the first link is down",
         "203.0.113.80",
         ports(false, true),
         {},
         std::nullopt,
         "the port of the default route is down or removed"},
        {"outside, the links of all default routes are down",
         "203.0.113.80",
         ports(true, false),
         {route("0.0.0.0/0", kCluster)},
         std::nullopt,
         "the port of the default route is down or removed"},
        {"the other family's default route",
         "2001:db8:9::80",
         ports(),
         {route("0.0.0.0/0", kCluster)},
         kUp,
         ""},
        {"its own family's default route",
         "2001:db8:9::80",
         ports(),
         {route("::/0", kCluster)},
         kCluster,
         ""},
        {"a default route elsewhere", "203.0.113.80", ports(), {route("0.0.0.0/0", NicPortId{})}, kUp, ""},
        {"the host's own address", "192.0.2.1", ports(), {}, std::nullopt, kVipOfHost}};
    for (const PlanCase& one : cases) {
        drivers::MirroredState mirror;
        mirror.routes = one.routes;
        mirror.addresses = {{kUp, ip("192.0.2.1"), 24}};
        const std::vector<ServedVip> vips{{ip(one.vip), ServedVip::Shown::Yes}};
        const auto planned = plan_vips({vips, kTwins, one.ports, mirror});
        ASSERT_EQ(planned.size(), 1U) << one.name;
        EXPECT_EQ(planned[0].port, one.port.value_or(NicPortId{})) << one.name;
        EXPECT_EQ(planned[0].reason, one.reason) << one.name;
    }
    std::vector<PortState> removed = ports();
    removed[1].is_removed = true;
    const std::vector<ServedVip> vips{{ip("10.2.0.80"), ServedVip::Shown::Yes},
                                      {ip("10.2.0.81"), ServedVip::Shown::Elsewhere}};
    const auto planned = plan_vips({vips, kTwins, removed, {}});
    EXPECT_FALSE(planned[0].port.is_set()) << "a removed port";
    EXPECT_EQ(planned[1].reason, "all endpoints are on other nodes");
}

// ---- vip_route_changes()

const VipRoute kA100{ip("203.0.113.1"), kUp, 100}, kA900{ip("203.0.113.1"), kUp, 900};
const VipRoute kAElsewhere{ip("203.0.113.1"), kCluster, 100};
const VipRoute kB100{ip("203.0.113.2"), kUp, 100}, kC100{ip("203.0.113.3"), kUp, 100};

TEST(VipRouteChanges, TheOldRouteOfAVipStaysUntilTheNewOneIsThere_PRESENCE002) {
    const struct {
        const char* name;
        std::set<VipRoute> present;
        std::vector<VipRoute> wanted;
        std::vector<VipRouteChange> changes;
        bool may_stay = true;
    } cases[] = {{"nothing to do", {kA100}, {kA100}, {}},
                 {"new", {}, {kA100, kB100}, {{Kind::Add, kA100}, {Kind::Add, kB100}}},
                 {"gone", {kA100, kB100}, {kB100}, {{Kind::Remove, kA100}}},
                 {"another metric", {kA100}, {kA900}, {{Kind::Add, kA900}}},
                 {"another twin", {kA100}, {kAElsewhere}, {{Kind::AddBeside, kAElsewhere}}},
                 {"the successor is present", {kA100, kA900}, {kA900}, {{Kind::Remove, kA100}}},
                 {"another twin, the old one is down",
                  {kA100},
                  {kAElsewhere},
                  {{Kind::AddBeside, kAElsewhere}, {Kind::Remove, kA100}},
                  false},
                 {"left over beside the wanted one", {kA100, kA900}, {kA100}, {{Kind::Remove, kA900}}},
                 {"removals first, new ones last",
                  {kA100, kC100},
                  {kA900, kB100},
                  {{Kind::Remove, kC100}, {Kind::Add, kA900}, {Kind::Add, kB100}}}};
    for (const auto& one : cases) {
        EXPECT_EQ(vip_route_changes(one.present, one.wanted, at_most(100, one.may_stay)), one.changes)
            << one.name;
    }
}

TEST(VipRouteChanges, RemovalsAndOthersHaveTheirOwnLimits_PRESENCE002) {
    VipRouteRules rules = at_most(0);
    rules.at_most = {.removals = 2, .others = 1};
    EXPECT_EQ(vip_route_changes({kA100, kB100, kC100}, {}, rules),
              (std::vector<VipRouteChange>{{Kind::Remove, kA100}, {Kind::Remove, kB100}}));
    const std::vector<VipRoute> wanted{kB100, kC100};
    EXPECT_EQ(vip_route_changes({kA100}, wanted, rules),
              (std::vector<VipRouteChange>{{Kind::Remove, kA100}, {Kind::Add, kB100}}));
}

// Whatever is present and wanted: the changes lead there, no VIP that is in both is without a route in
// between, and a limit only needs more rounds.
TEST(VipRouteChanges, LeadToTheWantedRoutesWithoutAGap_PRESENCE002) {
    test::Prng prng;
    for (int run = 0; run < 300; ++run) {
        const auto any_route = [&](uint8_t last) {
            return VipRoute{IpAddr::v4(203, 0, 113, last), NicPortId{static_cast<uint8_t>(prng.below(2))},
                            prng.one_in(2) ? 100U : 900U};
        };
        std::set<VipRoute> present;
        std::vector<VipRoute> wanted;
        for (uint8_t last = 0; last < 12; ++last) {
            for (uint64_t i = prng.below(3); i > 0; --i) {
                present.insert(any_route(last));
            }
            if (prng.one_in(2)) {
                wanted.push_back(any_route(last));
            }
        }
        const auto has = [](const auto& list, const IpAddr& vip) {
            return std::ranges::count(list, vip, &VipRoute::address) > 0;
        };
        std::vector<IpAddr> lasting;
        for (const VipRoute& route : wanted) {
            if (has(present, route.address)) {
                lasting.push_back(route.address);
            }
        }
        const VipRouteRules rules = at_most(prng.between(1, 8), prng.one_in(2));
        int rounds = 0;
        for (auto changes = vip_route_changes(present, wanted, rules); !changes.empty();
             changes = vip_route_changes(present, wanted, rules)) {
            ASSERT_LT(++rounds, 100);
            for (const VipRouteChange& change : changes) {
                if (change.kind == Kind::Remove) {
                    EXPECT_EQ(present.erase(change.route), 1U);
                } else {
                    const bool is_taken = std::ranges::any_of(present, [&](const VipRoute& other) {
                        return other.address == change.route.address && other.metric == change.route.metric;
                    });
                    EXPECT_EQ(change.kind == Kind::AddBeside, is_taken) << "the kernel refuses Add";
                    present.insert(change.route);
                }
                for (const IpAddr& vip : lasting) {
                    EXPECT_TRUE(has(present, vip)) << vip.to_string();
                }
            }
        }
        EXPECT_TRUE(std::ranges::equal(present, wanted));
    }
}

// ---- VipRouteKeeper

// A simulated Linux with routes of this program and of others.
struct FakeRoutes {
    std::set<VipRoute> own;
    std::set<drivers::VipNeighbour> neighbours;
    std::set<std::pair<IpAddr, uint32_t>> foreign;  // address and metric
    std::vector<VipRouteChange> seen;
    int reads = 0;
    bool fails = false;
    bool refuses = false;
    std::set<VipRoute> refused;
    std::set<VipRoute> unanswered;  // takes effect

    VipRouteOptions options() {
        return {.twins = kTwins,
                .twin_names = {"up", "cluster"},
                .withdraw_empty = false,
                .read = [this]() -> Result<std::vector<VipRoute>> {
                    ++reads;
                    if (fails) {
                        return fail(Errc::Unavailable, "netlink");
                    }
                    return std::vector<VipRoute>(own.begin(), own.end());
                },
                .apply =
                    [this](std::span<const VipRouteChange> changes) {
                        std::vector<VipRouteOutcome> outcomes;
                        for (const VipRouteChange& change : changes) {
                            seen.push_back(change);
                            const VipRouteOutcome outcome = take(change);
                            outcomes.push_back(unanswered.contains(change.route) ? VipRouteOutcome::Unknown
                                                                                 : outcome);
                        }
                        return outcomes;
                    },
                .remove_neighbours =
                    [this](std::span<const drivers::VipNeighbour> unused) {
                        for (const auto& neighbour : unused) {
                            EXPECT_EQ(neighbours.erase(neighbour), 1U) << neighbour.address.to_string();
                        }
                    }};
    }
    VipRouteOutcome take(const VipRouteChange& change) {
        if (refuses || refused.contains(change.route)) {
            return VipRouteOutcome::Refused;
        }
        if (change.kind == Kind::Remove) {
            own.erase(change.route);
            return VipRouteOutcome::Done;
        }
        const bool is_own = std::ranges::any_of(own, [&](const VipRoute& other) {
            return other.address == change.route.address && other.metric == change.route.metric;
        });
        if (change.kind == Kind::Add &&
            (is_own || foreign.contains({change.route.address, change.route.metric}))) {
            return VipRouteOutcome::Exists;
        }
        own.insert(change.route);
        neighbours.insert({change.route.address, change.route.port});
        return VipRouteOutcome::Done;
    }
    // Those that the present routes have.
    std::set<drivers::VipNeighbour> neighbours_in_use() const {
        std::set<drivers::VipNeighbour> used;
        for (const VipRoute& route : own) {
            used.insert({route.address, route.port});
        }
        return used;
    }
};

class VipRouteKeeperTest : public testing::Test {
 protected:
    void serve(const std::vector<std::string>& vips) {
        std::vector<model::Service> services;
        for (const auto& vip : vips) {
            services.push_back(service("web-" + vip, {external(vip, 80)}, {"10.0.0.1"}));
        }
        Compiler compiler;
        const auto all = desired(std::move(services));
        std::vector<model::ServiceKey> keys;
        for (const auto& [name, one] : all) {
            keys.push_back(name);
        }
        compiler.run({all, {}, {}}, keys);
        keeper_.set(*compiler.compiled()->table);
    }
    void work(uint32_t metric = kServeMetric, const std::string& withheld = "") {
        while (keeper_.work(mirror_, ports_, {metric, withheld}, now_)) {
        }
    }
    void work_shared(const shares::Plan& plan, const std::string& name, uint32_t metric = kServeMetric,
                     uint64_t returning = 0) {
        const auto shares = std::make_shared<const GatewayShares>(plan, name);
        while (keeper_.work(mirror_, ports_, {metric, "", shares, returning}, now_)) {
        }
    }
    VipView view(const std::string& vip) {
        const auto views = keeper_.views();
        const auto found = std::ranges::find(views, ip(vip), &VipView::address);
        return found == views.end() ? VipView{} : *found;
    }

    FakeRoutes linux_;
    VipRouteKeeper keeper_{linux_.options()};
    std::shared_ptr<drivers::MirroredState> mirror_ = std::make_shared<drivers::MirroredState>();
    std::vector<PortState> ports_ = ports();
    VipRouteKeeper::Clock::time_point now_{1h};
};

TEST_F(VipRouteKeeperTest, RoutesFollowTheServicesAndTheLevel_PRESENCE002) {
    serve({"192.0.2.80", "203.0.113.1", "2001:db8:1::80"});
    work();
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{{ip("192.0.2.80"), kUp, 100},
                                              {ip("203.0.113.1"), kUp, 100},
                                              {ip("2001:db8:1::80"), kUp, 100}}));
    const size_t changes = linux_.seen.size();
    work();
    EXPECT_EQ(linux_.seen.size(), changes) << "nothing is left to do";
    work(kStandByMetric);
    EXPECT_EQ(view("203.0.113.1").metric, 200U);
    work(kDrainMetric);
    EXPECT_EQ(view("203.0.113.1").metric, 900U);
    serve({"203.0.113.1"});
    work(kDrainMetric);
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{kA900}));
    work(kDrainMetric, "the gateway is drained");
    EXPECT_TRUE(linux_.own.empty());
    EXPECT_FALSE(keeper_.has_routes());
    EXPECT_EQ(view("203.0.113.1").reason, "the gateway is drained");
    work();
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{kA100}));
    keeper_.withdraw();
    EXPECT_TRUE(linux_.own.empty());
}

shares::Plan three_shares() {
    const auto vip = [](const char* text) { return std::vector{Prefix::host(IpAddr::parse(text).value())}; };
    return {.version = 1,
            .gateways = {{"edge-1"}, {"edge-2"}, {"edge-3"}},
            .shares = {{vip("203.0.113.1"), "edge-1", "edge-2"},
                       {vip("203.0.113.2"), "edge-2", "edge-1"},
                       {vip("203.0.113.3"), "edge-2", "edge-3"}}};
}

TEST_F(VipRouteKeeperTest, TheRoleInAShareDeterminesTheLevel_PRESENCE002) {
    serve({"203.0.113.1", "203.0.113.2", "203.0.113.3"});
    const VipRoute primary{ip("203.0.113.1"), kUp, 100}, heir{ip("203.0.113.2"), kUp, 200};
    work_shared(three_shares(), "edge-1");
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{primary, heir}));
    EXPECT_EQ(view("203.0.113.2").metric, 200U);
    EXPECT_EQ(view("203.0.113.2").reason, "");
    EXPECT_FALSE(view("203.0.113.3").is_present);
    EXPECT_EQ(view("203.0.113.3").reason, "share 2: primary edge-2, heir edge-3");
    EXPECT_TRUE(view("203.0.113.3").is_of_others);
    EXPECT_FALSE(view("203.0.113.2").is_of_others);
    const size_t changes = linux_.seen.size();
    work_shared(three_shares(), "edge-1");
    EXPECT_EQ(linux_.seen.size(), changes) << "the same plan again";
    // A drain prefers every other gateway, and no drain brings a VIP of others here.
    work_shared(three_shares(), "edge-1", kDrainMetric);
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{{ip("203.0.113.1"), kUp, 900}, {ip("203.0.113.2"), kUp, 900}}));
    work_shared(three_shares(), "edge-4");
    EXPECT_TRUE(linux_.own.empty()) << "a gateway that is not in the plan announces nothing";
    work();
    EXPECT_EQ(linux_.own.size(), 3U) << "without a plan";
}

TEST_F(VipRouteKeeperTest, AGatewayThatReturnsIsBehindTheOtherOneOfTheShare_PRESENCE002) {
    serve({"203.0.113.1", "203.0.113.2", "203.0.113.3"});
    const IpAddr of_primary = ip("203.0.113.1"), of_heir = ip("203.0.113.2");
    work_shared(three_shares(), "edge-1", kServeMetric, 0b111);
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{{of_primary, kUp, 900}}));
    EXPECT_EQ(view("203.0.113.2").reason, "the gateway returns to share 1");
    work_shared(three_shares(), "edge-1", kServeMetric, 0b010);
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{{of_primary, kUp, 100}}));
    work_shared(three_shares(), "edge-1", kServeMetric, 0b101);
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{{of_primary, kUp, 900}, {of_heir, kUp, 200}}));
}

TEST_F(VipRouteKeeperTest, EachGatewayOfThePlanAnnouncesSpreadVips_PRESENCE002) {
    serve({"203.0.113.3", "203.0.113.4"});
    shares::Plan plan = three_shares();
    plan.spread = {Prefix::host(ip("203.0.113.4"))};
    plan.spread_key = 7;
    const IpAddr spread = ip("203.0.113.4");
    for (const char* const gateway : {"edge-1", "edge-2", "edge-3"}) {
        work_shared(plan, gateway);
        EXPECT_TRUE(linux_.own.contains({spread, kUp, 100})) << gateway;
    }
    work_shared(plan, "edge-1", kDrainMetric);
    EXPECT_EQ(view("203.0.113.4").metric, 900U);
    work_shared(plan, "edge-1", kServeMetric, 0b001);
    EXPECT_EQ(view("203.0.113.4").metric, 900U) << "it has not returned to each of its shares";
    work_shared(plan, "edge-4");
    EXPECT_TRUE(linux_.own.empty()) << "not in the plan";
}

TEST_F(VipRouteKeeperTest, ANewPlanChangesALevelWithoutAGap_PRESENCE002) {
    serve({"203.0.113.1"});
    work_shared(three_shares(), "edge-2");
    shares::Plan next = three_shares();
    std::swap(next.shares[0].primary, next.shares[0].heir);
    linux_.seen.clear();
    work_shared(next, "edge-2");
    ASSERT_EQ(linux_.seen.size(), 2U);
    EXPECT_EQ(linux_.seen[0].kind, Kind::Add);
    EXPECT_EQ(linux_.seen[0].route.metric, 100U);
    EXPECT_EQ(linux_.seen[1].kind, Kind::Remove);
    EXPECT_EQ(linux_.seen[1].route.metric, 200U);
}

TEST_F(VipRouteKeeperTest, SnatAddressesOfASharesAreAnnouncedWithItsLevel_PRESENCE002) {
    shares::Plan plan = three_shares();
    plan.shares[0].snat = {ip("198.51.100.1"), ip("2001:db8:5::1")};
    plan.shares[1].snat = {ip("198.51.100.2")};
    plan.shares[2].snat = {ip("198.51.100.3")};
    work_shared(plan, "edge-1");
    EXPECT_TRUE(linux_.own.empty()) << "before a configuration is in force (PRESENCE-001)";
    serve({});
    work_shared(plan, "edge-1");
    const std::set<VipRoute> snat{
        {ip("198.51.100.1"), kUp, 100}, {ip("2001:db8:5::1"), kUp, 100}, {ip("198.51.100.2"), kUp, 200}};
    EXPECT_EQ(linux_.own, snat) << "without any Service, and none of other gateways";
    EXPECT_EQ(keeper_.views().size(), 3U);
    EXPECT_FALSE(view("198.51.100.2").is_vip);
    EXPECT_EQ(view("198.51.100.2").metric, 200U);
    const auto shares = std::make_shared<const GatewayShares>(plan, "edge-1");
    EXPECT_EQ(keeper_.addresses({.withheld = {}, .shares = shares}).size(), 3U);
    EXPECT_TRUE(keeper_.addresses({.withheld = {}}).empty()) << "no VIP";
    serve({"203.0.113.1", "198.51.100.2"});  // a Service may have such an address as its VIP
    work_shared(plan, "edge-1");
    EXPECT_EQ(linux_.own.size(), 4U);
    EXPECT_TRUE(linux_.own.contains(kA100));
    EXPECT_EQ(view("198.51.100.2").metric, 200U) << "in the share with the SNAT address";
    EXPECT_TRUE(view("198.51.100.2").is_vip);
    work_shared(plan, "edge-1", kDrainMetric);
    EXPECT_EQ(view("198.51.100.1").metric, 900U);
    EXPECT_EQ(view("2001:db8:5::1").metric, 900U);
    plan.shares[0].snat = {};
    std::swap(plan.shares[1].primary, plan.shares[1].heir);
    serve({});
    work_shared(plan, "edge-1");
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{{ip("198.51.100.2"), kUp, 100}}));
    keeper_.withdraw();
    EXPECT_TRUE(linux_.own.empty());
}

TEST_F(VipRouteKeeperTest, LogsNameSnatAddressesOfSharesAsSuch_PRESENCE002) {
    const test::LogCapture log("control");
    shares::Plan plan = three_shares();
    plan.shares[0].snat = {ip("198.51.100.1")};
    serve({"203.0.113.1"});
    work_shared(plan, "edge-1");
    EXPECT_EQ(log.count("VIP 203.0.113.1 is announced with metric 100"), 1U);
    EXPECT_EQ(log.count("SNAT address 198.51.100.1 is announced with metric 100"), 1U);
    plan.shares[0].snat = {};
    work_shared(plan, "edge-1");
    EXPECT_EQ(log.count("SNAT address 198.51.100.1 is not announced any more"), 1U);
    for (int host = 1; host <= 40; ++host) {
        plan.shares[0].snat.push_back(ip("198.51.101." + std::to_string(host)));
    }
    work_shared(plan, "edge-1");
    EXPECT_EQ(log.count("0 VIPs and 40 SNAT addresses are announced with metric 100"), 1U);
}

TEST_F(VipRouteKeeperTest, ALostLinkMovesOrWithdrawsARouteInTheNextRound_PRESENCE002) {
    mirror_->routes = {route("0.0.0.0/0", kUp, 10), route("0.0.0.0/0", kCluster, 20)};
    serve({"192.0.2.80", "203.0.113.1"});
    work();
    ports_ = ports(false, true);
    keeper_.work(mirror_, ports_, {}, now_);  // one round is sufficient
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{{ip("203.0.113.1"), kCluster, 100}}));
    EXPECT_EQ(view("192.0.2.80").reason, "the port of its subnet is down or removed");
    ports_[1].is_removed = true;
    keeper_.work(mirror_, ports_, {}, now_);
    EXPECT_TRUE(linux_.own.empty());
    ports_ = ports();
    work();
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{{ip("192.0.2.80"), kUp, 100}, {ip("203.0.113.1"), kUp, 100}}));
}

TEST_F(VipRouteKeeperTest, LeftOversAreAdoptedOrRemoved_PRESENCE002) {
    linux_.own = {kA100, kB100, {ip("203.0.113.3"), kUp, 900}};
    linux_.neighbours = linux_.neighbours_in_use();
    serve({"203.0.113.1", "203.0.113.3"});
    work();
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{kA100, kC100}));
    EXPECT_EQ(linux_.seen,
              (std::vector<VipRouteChange>{
                  {Kind::Remove, kB100}, {Kind::Add, kC100}, {Kind::Remove, {ip("203.0.113.3"), kUp, 900}}}))
        << "the route that is as wanted is left alone";
}

// Before the first configuration is in every worker, nothing is announced (PRESENCE-001).
TEST_F(VipRouteKeeperTest, WithoutAConfigurationLeftOversAreRemoved_PRESENCE001) {
    linux_.own = {kA100};
    linux_.neighbours = linux_.neighbours_in_use();
    work();
    EXPECT_TRUE(linux_.own.empty());
    EXPECT_TRUE(linux_.neighbours.empty());
    EXPECT_TRUE(keeper_.views().empty());
}

TEST_F(VipRouteKeeperTest, AForeignRouteIsReportedAndLeftAlone_PRESENCE002) {
    linux_.foreign = {{ip("203.0.113.1"), 100}};
    mirror_->routes = {route("203.0.113.1/32", kCluster, 100), route("203.0.113.2/32", kCluster, 20)};
    serve({"203.0.113.1", "203.0.113.2", "203.0.113.3"});
    work();
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{kB100, kC100})) << "beside a route of another metric";
    EXPECT_EQ(keeper_.conflicts(), (std::vector{ip("203.0.113.1"), ip("203.0.113.2")}));
    EXPECT_EQ(view("203.0.113.1").reason, "another route has this prefix and metric");
    EXPECT_TRUE(view("203.0.113.2").has_foreign_route);
    EXPECT_TRUE(view("203.0.113.2").is_present);
    EXPECT_FALSE(view("203.0.113.3").has_foreign_route);
    const size_t before = linux_.seen.size();
    work();
    EXPECT_EQ(linux_.seen.size(), before) << "not tried in each round";
    linux_.foreign.clear();
    mirror_ = std::make_shared<drivers::MirroredState>();
    now_ += VipRouteKeeper::kRetry;
    work();
    EXPECT_EQ(linux_.own.size(), 3U);
    EXPECT_TRUE(keeper_.conflicts().empty());
    EXPECT_EQ(view("203.0.113.1").reason, "");
}

TEST_F(VipRouteKeeperTest, RoutesThatOthersRemovedComeBack_PRESENCE002) {
    serve({"203.0.113.1"});
    work();
    linux_.own.clear();
    work();
    EXPECT_TRUE(linux_.own.empty()) << "not noticed yet";
    now_ += VipRouteKeeper::kReadEvery;
    work();
    EXPECT_EQ(linux_.own.size(), 1U);
}

TEST_F(VipRouteKeeperTest, FailuresAreRetried_PRESENCE002) {
    linux_.fails = true;
    serve({"203.0.113.1"});
    work();
    work();
    EXPECT_EQ(linux_.reads, 1) << "without the present routes nothing is changed";
    linux_.fails = false;
    now_ += VipRouteKeeper::kRetry;
    linux_.refuses = true;
    work();
    EXPECT_TRUE(linux_.own.empty());
    EXPECT_EQ(view("203.0.113.1").reason, "the kernel refused the change of its route");
    linux_.refuses = false;
    now_ += VipRouteKeeper::kRetry;
    work();
    EXPECT_EQ(linux_.own.size(), 1U);
}

TEST_F(VipRouteKeeperTest, TheOldRouteStaysWhileTheKernelRefusesTheNewOne_PRESENCE002) {
    serve({"203.0.113.1", "203.0.113.2"});
    work();
    linux_.refused = {kA900};
    work(kDrainMetric);
    const VipRoute b900{ip("203.0.113.2"), kUp, 900};
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{kA100, b900}));
    EXPECT_TRUE(view("203.0.113.1").is_present);
    EXPECT_EQ(view("203.0.113.1").metric, 100U);
    EXPECT_EQ(view("203.0.113.1").reason, "the kernel refused the change of its route");
    EXPECT_EQ(view("203.0.113.2").reason, "");
    linux_.refused.clear();
    now_ += VipRouteKeeper::kRetry;
    work(kDrainMetric);
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{kA900, b900}));
}

TEST_F(VipRouteKeeperTest, ARouteByALostLinkIsRemovedAlsoIfItsSuccessorIsRefused_PRESENCE002) {
    mirror_->routes = {route("0.0.0.0/0", kUp, 10), route("0.0.0.0/0", kCluster, 20)};
    serve({"203.0.113.1"});
    work();
    linux_.refused = {kAElsewhere};
    ports_ = ports(false, true);
    keeper_.work(mirror_, ports_, {}, now_);  // one round is sufficient
    EXPECT_TRUE(linux_.own.empty());
    EXPECT_FALSE(view("203.0.113.1").is_present);
    EXPECT_EQ(view("203.0.113.1").reason, "the kernel refused the change of its route");
}

TEST_F(VipRouteKeeperTest, ALostAnswerDelaysOneRoute_PRESENCE002) {
    serve({"203.0.113.1", "203.0.113.2", "203.0.113.3"});
    linux_.unanswered = {kA100, kB100};
    linux_.refused = {kB100};
    work();
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{kA100, kC100})) << "the others were added in the same round";
    EXPECT_TRUE(view("203.0.113.1").is_present) << "the routes were read at once";
    EXPECT_EQ(view("203.0.113.2").reason, "the kernel's answer to the change of its route was lost");
    linux_.unanswered.clear();
    linux_.refused.clear();
    work();
    EXPECT_FALSE(linux_.own.contains(kB100)) << "not tried in each round";
    ports_ = ports(false, false);
    keeper_.work(mirror_, ports_, {}, now_);
    EXPECT_TRUE(linux_.own.empty()) << "a removal does not wait, also of a route whose addition failed";
    ports_ = ports();
    now_ += VipRouteKeeper::kTryAgain;
    work();
    EXPECT_EQ(linux_.own, (std::set<VipRoute>{kA100, kB100, kC100}));
}

TEST_F(VipRouteKeeperTest, ANeighbourEntryStaysWhileARouteHasIt_LB018) {
    std::vector<std::string> vips;
    for (size_t i = 0; i < 100; ++i) {  // more than a batch of VipRoutes
        vips.push_back("198.18.0." + std::to_string(i));
    }
    serve(vips);
    work();
    for (const uint32_t metric : {kDrainMetric, kServeMetric, kStandByMetric}) {
        work(metric);
        EXPECT_EQ(linux_.neighbours.size(), vips.size()) << metric;
    }
    mirror_ = std::make_shared<drivers::MirroredState>();
    mirror_->routes = {route("0.0.0.0/0", kCluster)};
    work();
    EXPECT_EQ(linux_.own.size(), vips.size());
    EXPECT_EQ(linux_.neighbours, linux_.neighbours_in_use()) << "moved to another twin";
    linux_.own.erase(linux_.own.begin());  // by another program, which leaves the entry
    serve({vips.back()});
    now_ += VipRouteKeeper::kReadEvery;
    work();
    EXPECT_EQ(linux_.own.size(), 1U);
    EXPECT_EQ(linux_.neighbours, linux_.neighbours_in_use());
}

TEST_F(VipRouteKeeperTest, RoutesLeaveBeforeTheirNeighbourEntries_PRESENCE002) {
    serve({"203.0.113.1", "203.0.113.2"});
    work();
    ports_ = ports(false, false);
    EXPECT_TRUE(keeper_.work(mirror_, ports_, {}, now_));
    EXPECT_TRUE(linux_.own.empty());
    EXPECT_EQ(linux_.neighbours.size(), 2U);
    ports_ = ports();
    keeper_.work(mirror_, ports_, {}, now_);  // before the entries are removed
    work();
    EXPECT_EQ(linux_.neighbours, linux_.neighbours_in_use());
}

TEST_F(VipRouteKeeperTest, ManyVipsTakeSeveralRoundsOfBoundedLength_PRESENCE002) {
    std::vector<std::string> vips;
    for (size_t i = 0; i < VipRouteKeeper::kPerRound.others + 10; ++i) {
        vips.push_back("198.18." + std::to_string(i / 250) + "." + std::to_string(i % 250));
    }
    serve(vips);
    EXPECT_TRUE(keeper_.work(mirror_, ports_, {}, now_));
    EXPECT_EQ(linux_.own.size(), VipRouteKeeper::kPerRound.others);
    EXPECT_TRUE(keeper_.work(mirror_, ports_, {}, now_));
    EXPECT_EQ(linux_.own.size(), vips.size());
    EXPECT_FALSE(keeper_.work(mirror_, ports_, {}, now_));
    ports_ = ports(false, false);
    keeper_.work(mirror_, ports_, {}, now_);
    EXPECT_TRUE(linux_.own.empty()) << "a withdrawal takes one";
}

}  // namespace vip_route_keeper_test
}  // namespace penstock::gateway
