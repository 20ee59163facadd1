// SPDX-License-Identifier: Apache-2.0
// Routes followed by messages, compared with a model of the kernel's tables: after any changes, and for any
// delay of the messages relative to a dump, both agree in the end.
#include "drivers/host/kernel_routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"

namespace penstock::drivers {
namespace kernel_routes_test {

using Applied = KernelRoutes::Applied;
using Sent = KernelRoutes::Sent;

RouteFact route(RouteFact::Change change, uint8_t prefix, uint32_t metric, uint8_t gateway,
                int interface = 1) {
    const Prefix destination = *Prefix::make(IpAddr::v4(10, prefix, 0, 0), 16);
    return {.change = change,
            .key = {destination, metric, 0},
            .identity = uint64_t{gateway} << 8 | static_cast<uint64_t>(interface),
            .route = route::Route{destination, NicPortId{static_cast<uint8_t>(interface)},
                                  IpAddr::v4(10, 200, 0, gateway), metric},
            .interfaces = {interface}};
}
RouteFact added(uint8_t prefix, uint32_t metric, uint8_t gateway) {
    return route(RouteFact::Change::Added, prefix, metric, gateway);
}
RouteFact replaced(uint8_t prefix, uint32_t metric, uint8_t gateway) {
    return route(RouteFact::Change::Replaced, prefix, metric, gateway);
}
RouteFact removed(uint8_t prefix, uint32_t metric, uint8_t gateway) {
    return route(RouteFact::Change::Removed, prefix, metric, gateway);
}

TEST(KernelRoutes, FollowAdditionsReplacementsAndRemovals) {
    KernelRoutes routes;
    EXPECT_EQ(routes.apply(added(1, 0, 1), Sent::SinceDump), Applied::Changed);
    EXPECT_EQ(routes.apply(added(1, 0, 1), Sent::SinceDump), Applied::Nothing);
    EXPECT_EQ(routes.apply(added(1, 5, 1), Sent::SinceDump), Applied::Changed) << "of another metric";
    EXPECT_EQ(routes.apply(replaced(1, 0, 2), Sent::SinceDump), Applied::Changed);
    EXPECT_EQ(routes.list(), (std::vector{*added(1, 0, 2).route, *added(1, 5, 1).route}));
    EXPECT_EQ(routes.apply(removed(1, 0, 2), Sent::SinceDump), Applied::Changed);
    EXPECT_EQ(routes.list(), std::vector{*added(1, 5, 1).route});
}

TEST(KernelRoutes, OfAnotherKindTakeThePlaceOfOneThatCounts) {
    KernelRoutes routes;
    routes.dumped(added(1, 0, 1));
    RouteFact thrown = replaced(1, 0, 2);
    thrown.route.reset();
    EXPECT_EQ(routes.apply(thrown, Sent::SinceDump), Applied::Changed);
    EXPECT_TRUE(routes.list().empty());
}

// `ip route append` and `prepend`: several routes with one key. A removal identifies one of them, a
// replacement does not.
TEST(KernelRoutes, WithOneKeyAreToldApartByTheRest) {
    KernelRoutes routes;
    routes.dumped(added(1, 0, 1));
    EXPECT_EQ(routes.apply(added(1, 0, 2), Sent::SinceDump), Applied::Changed);
    EXPECT_EQ(routes.list().size(), 2u);
    EXPECT_EQ(routes.apply(replaced(1, 0, 3), Sent::SinceDump), Applied::Unclear);
    EXPECT_EQ(routes.apply(removed(1, 0, 1), Sent::SinceDump), Applied::Changed);
    EXPECT_EQ(routes.list(), std::vector{*added(1, 0, 2).route});
    EXPECT_EQ(routes.apply(removed(1, 0, 1), Sent::SinceDump), Applied::Unclear) << "it was not known";
    EXPECT_EQ(routes.apply(removed(1, 0, 1), Sent::PerhapsBeforeIt), Applied::Nothing)
        << "the dump was later";
}

// `ip route replace` twice; the dump contains the result of both. A route that was alone under its key is
// unambiguous.
TEST(KernelRoutes, ThatFlapWhileTheyAreDumpedAreClear) {
    KernelRoutes before;
    before.dumped(added(1, 0, 1));
    KernelRoutes routes(&before);
    routes.dumped(added(1, 0, 3));
    EXPECT_EQ(routes.apply(replaced(1, 0, 2), Sent::PerhapsBeforeIt), Applied::Changed);
    EXPECT_EQ(routes.apply(replaced(1, 0, 3), Sent::PerhapsBeforeIt), Applied::Changed);
    EXPECT_EQ(routes.list(), std::vector{*added(1, 0, 3).route});

    // If there were two routes, the replaced one may have been the other one, and may have been removed
    // since.
    before.apply(added(1, 0, 3), Sent::SinceDump);
    KernelRoutes remains(&before);
    remains.dumped(added(1, 0, 3));
    EXPECT_EQ(remains.apply(replaced(1, 0, 2), Sent::PerhapsBeforeIt), Applied::Unclear);
    KernelRoutes unknown;
    unknown.dumped(added(1, 0, 3));
    EXPECT_EQ(unknown.apply(replaced(1, 0, 2), Sent::PerhapsBeforeIt), Applied::Unclear);
}

// An IPv6 route with a gateway may become one more hop of the other route. The message then contains all
// hops.
TEST(KernelRoutes, ThatMayJoinAnotherAreReadAnew) {
    KernelRoutes routes;
    routes.dumped(added(1, 0, 1));
    RouteFact joins = added(1, 0, 2);
    joins.joins_others = true;
    EXPECT_EQ(routes.apply(joins, Sent::SinceDump), Applied::Unclear);
    joins.key.metric = 5;
    EXPECT_EQ(routes.apply(joins, Sent::SinceDump), Applied::Changed) << "nothing to join";
}

// It may have replaced a route that no dump contained.
TEST(KernelRoutes, AReplacementByAnotherKindIsReadAnew) {
    KernelRoutes routes;
    RouteFact multipath = added(1, 0, 1);
    multipath.joins_others = true;
    routes.dumped(multipath);
    RouteFact thrown = replaced(1, 0, 2);
    thrown.route.reset();
    EXPECT_EQ(routes.apply(thrown, Sent::SinceDump), Applied::Unclear);
    RouteFact alike = replaced(1, 0, 3);
    alike.joins_others = true;
    EXPECT_EQ(routes.apply(alike, Sent::SinceDump), Applied::Changed);
}

// Linux accepts two equal routes, and the removal messages of the two are equal.
TEST(KernelRoutes, TheEndOfAnIpv6RouteThatStandsAloneIsReadAnew) {
    KernelRoutes routes;
    const Prefix destination = *Prefix::parse("2001:db8:52::/48");
    RouteFact hole{.change = RouteFact::Change::Added,
                   .key = {destination, 7, 0},
                   .route = route::Route{destination, {}, {}, 7}};
    routes.dumped(hole);
    hole.change = RouteFact::Change::Removed;
    EXPECT_EQ(routes.apply(hole, Sent::SinceDump), Applied::Unclear);
    hole.joins_others = true;
    hole.change = RouteFact::Change::Added;
    EXPECT_EQ(routes.apply(hole, Sent::SinceDump), Applied::Changed);
    hole.change = RouteFact::Change::Removed;
    EXPECT_EQ(routes.apply(hole, Sent::SinceDump), Applied::Changed);
}

TEST(KernelRoutes, AHopThatDiesOrComesBackChangesWhereItLeads) {
    KernelRoutes routes;
    routes.dumped(added(1, 0, 1));
    RouteFact dead = added(1, 0, 1);
    dead.route.reset();
    EXPECT_EQ(routes.apply(dead, Sent::SinceDump), Applied::Changed);
    EXPECT_TRUE(routes.list().empty());
    EXPECT_EQ(routes.apply(added(1, 0, 1), Sent::SinceDump), Applied::Changed);
    EXPECT_EQ(routes.list().size(), 1u);
}

TEST(KernelRoutes, KnowWhatTheyDependOnWhileTheyDo) {
    KernelRoutes routes;
    RouteFact fact = added(1, 0, 1);
    fact.source = IpAddr::v4(10, 200, 0, 100);
    fact.next_hop_object = 12;
    EXPECT_FALSE(routes.uses_interface(1) || routes.uses_source(*fact.source) ||
                 routes.uses_next_hop_objects());
    routes.apply(fact, Sent::SinceDump);
    fact.key.metric = 5;
    routes.apply(fact, Sent::SinceDump);
    EXPECT_TRUE(routes.uses_interface(1) && routes.uses_source(*fact.source) &&
                routes.uses_next_hop_object(12));
    EXPECT_FALSE(routes.uses_interface(2) || routes.uses_source(IpAddr::v4(10, 200, 0, 101)) ||
                 routes.uses_next_hop_object(13));
    fact.change = RouteFact::Change::Removed;
    routes.apply(fact, Sent::SinceDump);
    EXPECT_TRUE(routes.uses_interface(1) && routes.uses_next_hop_objects()) << "the other route remains";
    fact.key.metric = 0;
    routes.apply(fact, Sent::SinceDump);
    EXPECT_FALSE(routes.uses_interface(1) || routes.uses_source(*fact.source) ||
                 routes.uses_next_hop_objects());
}

// A model of the kernel's tables as far as messages describe them, and the messages that have not been read
// yet.
class Kernel {
 public:
    explicit Kernel(test::Prng& random) : random_(random) {}

    void change() {
        const auto prefix = static_cast<uint8_t>(random_.below(4));
        const auto metric = static_cast<uint32_t>(random_.below(2));
        const auto gateway = static_cast<uint8_t>(random_.below(4));
        const RouteFact fact = added(prefix, metric, gateway);
        std::vector<RouteFact>& held = routes_[fact.key];
        const auto same = std::ranges::find(held, fact.identity, &RouteFact::identity);
        switch (random_.below(8)) {
            case 0:  // append
                if (same == held.end()) {
                    held.push_back(fact);
                    queue_.push_back(fact);
                }
                break;
            case 1:
            case 2:  // add
                if (held.empty()) {
                    held.push_back(fact);
                    queue_.push_back(fact);
                }
                break;
            case 3:
            case 4:  // replace: the first one, unless the same route is there
                if (same == held.end()) {
                    if (held.empty()) {
                        held.push_back(fact);
                    } else {
                        held.front() = fact;
                    }
                    queue_.push_back(replaced(prefix, metric, gateway));
                }
                break;
            default:
                if (same != held.end()) {
                    held.erase(same);
                    queue_.push_back(removed(prefix, metric, gateway));
                }
        }
    }
    [[nodiscard]] KernelRoutes dump(const KernelRoutes* former = nullptr) const {
        KernelRoutes routes(former);
        for (const auto& [key, held] : routes_) {
            for (const RouteFact& fact : held) {
                routes.dumped(fact);
            }
        }
        return routes;
    }
    std::deque<RouteFact>& queue() { return queue_; }

 private:
    test::Prng& random_;
    std::map<RouteKey, std::vector<RouteFact>> routes_;
    std::deque<RouteFact> queue_;
};

TEST(KernelRoutes, ComeToWhatADumpWouldGive) {
    test::Prng random(test::seed());
    uint64_t unclear = 0, followed = 0;
    for (int round = 0; round < 2'000; ++round) {
        Kernel kernel(random);
        KernelRoutes routes;
        bool overlaps = true, is_unclear = false;
        const auto change_some = [&] {
            for (uint64_t n = random.below(6); n > 0; --n) {
                kernel.change();
            }
        };
        for (int step = 0; step < 20; ++step) {
            change_some();
            if (is_unclear || random.below(8) == 0) {
                routes =
                    kernel.dump(random.one_in(8) ? nullptr : &routes);  // earlier messages are still pending
                overlaps = true;
                is_unclear = false;
                change_some();
            }
            while (!kernel.queue().empty()) {
                const Applied applied =
                    routes.apply(kernel.queue().front(), overlaps ? Sent::PerhapsBeforeIt : Sent::SinceDump);
                is_unclear = is_unclear || applied == Applied::Unclear;
                kernel.queue().pop_front();
            }
            overlaps = false;
            if (is_unclear) {
                ++unclear;
            } else {
                ++followed;
                ASSERT_EQ(routes.list(), kernel.dump().list()) << "round " << round << ", step " << step;
            }
        }
    }
    EXPECT_GT(followed, 10 * unclear) << "reading anew is the exception";
    EXPECT_GT(unclear, 0u);
}

}  // namespace kernel_routes_test
}  // namespace penstock::drivers
