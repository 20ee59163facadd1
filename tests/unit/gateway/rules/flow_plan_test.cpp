// SPDX-License-Identifier: Apache-2.0
// The wanted rules, from Services compiled by the real compiler.
#include "control/gateway/rules/flow_plan.hpp"

#include <gtest/gtest.h>

#include "tests/support/prng.hpp"
#include "tests/unit/gateway/flow_bed.hpp"

namespace penstock::gateway {
namespace flow_plan_test {

using drivers::FlowKind;
using drivers::FlowRule;
using Texts = std::vector<std::string>;

FlowPort port(uint8_t id = 0) {
    return {.id = NicPortId{id}, .reply_hash = {}, .support = takes_all()};
}

Texts texts(const std::vector<FlowRule>& rules, FlowKind kind) {
    Texts out;
    for (const FlowRule& rule : rules) {
        if (rule.kind == kind) {
            out.push_back(rule.match.to_string() + ": " + rule.action.to_string() +
                          (rule.counted ? " counted" : ""));
        }
    }
    return out;
}

std::string note(const PortFlowPlan& plan, FlowKind kind) {
    std::string all;
    for (const FlowNote& note : plan.notes) {
        all += note.kind == kind ? (all.empty() ? "" : "; ") + note.reason : "";
    }
    return all;
}

PortFlowPlan plan(const FlowLimits& limits, const FlowConfig& config, std::vector<FlowPort> ports = {port()},
                  size_t of = 0, const std::set<FlowRule>& present = {}) {
    return plan_flows(limits, config, ports, ports[of], present);
}

TEST(FlowPlan, EachWorkersSnatPortsGoToItsQueue) {
    const auto config = flow_config({}, {{ip("192.0.2.1"), NicPortId{0}}});
    EXPECT_EQ(
        texts(plan({.workers = 2}, config).rules, FlowKind::SnatToQueue),
        (Texts{"to 192.0.2.1 tcp port 0-63/128: queue 0", "to 192.0.2.1 tcp port 64-127/128: queue 1",
               "to 192.0.2.1 udp port 0-63/128: queue 0", "to 192.0.2.1 udp port 64-127/128: queue 1"}));
    EXPECT_EQ(plan({.workers = 8}, config).rules.size(), 16U);
}

TEST(FlowPlan, ASnatAddressHasRulesWhereItsRepliesArrive) {
    const auto config = flow_config(
        {},
        {{ip("192.0.2.1"), NicPortId{0}}, {ip("10.0.0.1"), NicPortId{1}}, {ip("2001:db8::9"), NicPortId{}}});
    const std::vector ports{port(0), port(1)};
    EXPECT_EQ(plan({.workers = 2}, config, ports, 0).rules.size(), 8U);
    for (const FlowRule& rule : plan({.workers = 2}, config, ports, 1).rules) {
        EXPECT_NE(*rule.match.destination, ip("192.0.2.1"));
    }
}

TEST(FlowPlan, PredictableRssNeedsNoRules) {
    FlowPort hashes = port(0);
    hashes.reply_hash = nat::ReplyHash{
        .key = std::vector<uint8_t>(40), .worker_of = {WorkerId{0}, WorkerId{1}}, .tcp4 = true};
    const auto config = flow_config(
        {},
        {{ip("192.0.2.1"), NicPortId{0}}, {ip("192.0.2.9"), NicPortId{}}, {ip("10.0.0.1"), NicPortId{1}}});
    const auto first = plan({.workers = 2}, config, {hashes, port(1)}, 0);
    for (const FlowRule& rule : first.rules) {
        EXPECT_EQ(rule.match.ip_protocol, drivers::kIpUdp) << "the hash covers TCP over IPv4 alone";
    }
    EXPECT_EQ(first.rules.size(), 4U);
    EXPECT_EQ(note(first, FlowKind::SnatToQueue), "predictable RSS delivers replies to their owners");
    // The second port has no hash. Its own address is assigned by blocks, the address without an egress by
    // the first port's hash.
    EXPECT_EQ(
        texts(plan({.workers = 2}, config, {hashes, port(1)}, 1).rules, FlowKind::SnatToQueue),
        (Texts{"to 10.0.0.1 tcp port 0-63/128: queue 0", "to 10.0.0.1 tcp port 64-127/128: queue 1",
               "to 10.0.0.1 udp port 0-63/128: queue 0", "to 10.0.0.1 udp port 64-127/128: queue 1",
               "to 192.0.2.9 udp port 0-63/128: queue 0", "to 192.0.2.9 udp port 64-127/128: queue 1"}));
}

TEST(FlowPlan, WhatThePortRefusesIsNotAskedAndSaysWhy) {
    FlowPort refuses = port();
    refuses.support = {.snat_to_queue = {false, "no masks (item mask)"},
                       .vip_isolate = {false, "the kernel has no share"},
                       .source_drop = {false, "no DROP (action)"},
                       .vip_mark = {false, "no MARK (action)"}};
    const auto all = plan({.workers = 2, .isolate = true, .mark = true},
                          flow_config({denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/8"})},
                                      {{ip("192.0.2.1"), NicPortId{0}}}, {"198.51.100.0/24"}),
                          {refuses});
    EXPECT_TRUE(all.rules.empty());
    EXPECT_EQ(note(all, FlowKind::SnatToQueue), "no masks (item mask)");
    EXPECT_EQ(note(all, FlowKind::VipIsolate), "the kernel has no share");
    EXPECT_EQ(note(all, FlowKind::SourceDrop), "no DROP (action)");
    EXPECT_EQ(note(all, FlowKind::VipMark), "no MARK (action)");
}

TEST(FlowPlan, BlockedSourcesAreDroppedTheWidestFirst) {
    const auto config =
        flow_config({}, {}, {"198.51.100.0/24", "10.0.0.0/8", "203.0.113.9/32", "2001:db8::/32"});
    const auto all = plan({.workers = 1}, config);
    EXPECT_EQ(texts(all.rules, FlowKind::SourceDrop),
              (Texts{"from 10.0.0.0/8: drop counted", "from 198.51.100.0/24: drop counted",
                     "from 203.0.113.9/32: drop counted", "from 2001:db8::/32: drop counted"}));
    FlowPort counts_nothing = port();
    counts_nothing.support.counts = false;
    EXPECT_EQ(texts(plan({.workers = 1}, config, {counts_nothing}).rules, FlowKind::SourceDrop).front(),
              "from 10.0.0.0/8: drop");
}

TEST(FlowPlan, ADeniedRangeStopsWhatOpensAFlow_SRC005) {
    const auto config = flow_config({denying("web", {external("192.0.2.80", 80), external("192.0.2.80", 443)},
                                             {"10.0.0.0/8", "fd00::/8"}),
                                     service("open", {external("192.0.2.81", 80)}, {"10.0.0.1"})});
    EXPECT_EQ(texts(plan({.workers = 1}, config).rules, FlowKind::SourceDrop),
              (Texts{"from 10.0.0.0/8 to 192.0.2.80 tcp port 80 syn: drop counted",
                     "from 10.0.0.0/8 to 192.0.2.80 tcp port 443 syn: drop counted"}));
}

TEST(FlowPlan, ARangeThatIsDeniedToUdpStaysWithSoftware_SRC005) {
    auto dns = denying("dns", {external("192.0.2.80", 53)}, {"10.0.0.0/8"});
    dns.key = key("dns", Protocol::Udp);
    const auto all = plan({.workers = 1}, flow_config({dns}));
    EXPECT_TRUE(texts(all.rules, FlowKind::SourceDrop).empty());
    EXPECT_NE(note(all, FlowKind::SourceDrop).find("a datagram does not show whether it opens a flow"),
              std::string::npos);
}

TEST(FlowPlan, RangesThatAreAllowedAreNoRules) {
    auto web = denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/8"});
    web.source_ranges_deny = false;
    EXPECT_TRUE(plan({.workers = 1}, flow_config({web})).rules.empty());
}

TEST(FlowPlan, TheBudgetIsSharedOutByKindAndThenByWidth) {
    const auto config = flow_config({denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/8"})},
                                    {{ip("192.0.2.1"), NicPortId{0}}},
                                    {"198.51.100.0/24", "203.0.113.0/25", "203.0.113.128/26"});
    const auto six = plan({.workers = 2, .budget = 6}, config);
    EXPECT_EQ(texts(six.rules, FlowKind::SnatToQueue).size(), 4U);
    EXPECT_EQ(texts(six.rules, FlowKind::SourceDrop),
              (Texts{"from 198.51.100.0/24: drop counted", "from 203.0.113.0/25: drop counted"}));
    EXPECT_EQ(note(six, FlowKind::SourceDrop),
              "1 more do not fit the 6 rules of the port (--flow-rules): software drops the packets of these "
              "blocked sources; "
              "1 more do not fit the 6 rules of the port (--flow-rules): software enforces these denied "
              "ranges");
    const auto three = plan({.workers = 2, .budget = 3}, config);
    EXPECT_EQ(three.rules.size(), 3U);
    EXPECT_EQ(note(three, FlowKind::SnatToQueue),
              "1 more do not fit the 3 rules of the port (--flow-rules): their replies are handed over");
    const auto none = plan({.workers = 2, .budget = 0}, config);
    EXPECT_TRUE(none.rules.empty());
    EXPECT_EQ(none.notes.size(), 4U);
    EXPECT_EQ(note(none, FlowKind::VipMark), "rules are switched off (--flow-rules 0)");
}

TEST(FlowPlan, WhoHasARuleKeepsIt) {
    const FlowLimits two{.workers = 1, .budget = 2};
    const auto before = plan(two, flow_config({}, {}, {"203.0.113.0/25", "203.0.113.128/26"})).rules;
    const std::set<FlowRule> present(before.begin(), before.end());
    const auto grown = flow_config({}, {}, {"10.0.0.0/8", "203.0.113.0/25", "203.0.113.128/26"});
    EXPECT_EQ(plan(two, grown, {port()}, 0, present).rules, before);
    EXPECT_EQ(texts(plan(two, grown).rules, FlowKind::SourceDrop).front(), "from 10.0.0.0/8: drop counted");
}

TEST(FlowPlan, ADeniedRangeGivesWayToTheBlocklist) {
    const FlowLimits three{.workers = 1, .budget = 3};
    const auto web =
        denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"});
    const auto before = plan(three, flow_config({web})).rules;
    ASSERT_EQ(before.size(), 3U) << "all that the port has room for";
    const auto all = plan(three, flow_config({web}, {}, {"198.51.100.0/24", "203.0.113.9/32"}), {port()}, 0,
                          {before.begin(), before.end()});
    EXPECT_EQ(texts(all.rules, FlowKind::SourceDrop),
              (Texts{"from 198.51.100.0/24: drop counted", "from 203.0.113.9/32: drop counted",
                     "from 10.0.0.0/8 to 192.0.2.80 tcp port 80 syn: drop counted"}));
    EXPECT_EQ(note(all, FlowKind::SourceDrop),
              "2 more do not fit the 3 rules of the port (--flow-rules): software enforces these denied "
              "ranges");
    // Among denied ranges, a range with a rule keeps it.
    const auto kept = plan({.workers = 1, .budget = 2}, flow_config({web}, {}, {"198.51.100.0/24"}), {port()},
                           0, {before[2]});
    EXPECT_EQ(kept.rules.back(), before[2]);
}

TEST(FlowPlan, IsolationBringsAllThatIsOursAndComesLast) {
    auto kept = service("kept", {external("192.0.2.81", 80)}, {"10.0.0.7"});
    kept.sets[0].source = lb::SourceMode::Keep;
    const auto config = flow_config(
        {service("web", {external("192.0.2.80", 80), external("192.0.2.80", 443)}, {"10.0.0.1"}), kept},
        {{ip("192.0.2.1"), NicPortId{0}}, {ip("198.51.100.1"), NicPortId{}}}, {},
        {{NicPortId{0}, ip("192.0.2.1"), 24},
         {NicPortId{0}, ip("fe80::1"), 64},
         {NicPortId{1}, ip("10.0.0.254"), 24}});
    FlowPort isolated = port();
    isolated.is_isolated = true;
    isolated.support.snat_to_queue = {};
    const auto all = plan({.workers = 2, .budget = 4, .isolate = true}, config, {isolated});
    auto rules = texts(all.rules, FlowKind::VipIsolate);
    EXPECT_EQ(rules.back(), "everything else: kernel");
    std::ranges::sort(rules);
    EXPECT_EQ(rules, (Texts{"arp: queue 0", "everything else: kernel", "from 10.0.0.7/32: spread",
                            "ipv6 icmpv6: queue 0", "to 192.0.2.1: spread", "to 192.0.2.80: spread",
                            "to 192.0.2.81: spread", "to 198.51.100.1: spread", "to fe80::1: spread"}))
        << "more than the budget: what has no rule would be lost";
    EXPECT_EQ(note(plan({.workers = 2}, config, {isolated}), FlowKind::VipIsolate),
              "not enabled (--vip-isolate)");
}

// Replies of an endpoint of the other family arrive at a SNAT address of that family, including errors.
TEST(FlowPlan, IsolationBringsBothFamiliesOfAFrontendWhoseEndpointsAreOfTheOther_ANN32) {
    auto web = service("web", {external("2001:db8::80", 80)}, {"10.0.0.1"});
    web.sets[0].family = IpFamily::V6;
    web.sets[0].translates_family = true;
    const auto config = flow_config({web}, {{ip("198.51.100.1"), NicPortId{}}});
    FlowPort isolated = port();
    isolated.is_isolated = true;
    auto rules = texts(plan({.workers = 2, .isolate = true}, config, {isolated}).rules, FlowKind::VipIsolate);
    std::ranges::sort(rules);
    EXPECT_EQ(rules, (Texts{"arp: queue 0", "everything else: kernel", "ipv6 icmpv6: queue 0",
                            "to 198.51.100.1: spread", "to 2001:db8::80: spread"}));
}

TEST(FlowPlan, OfAnIsolatedPortOnlyWhatIsOursIsDropped) {
    const auto config =
        flow_config({denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/8"})}, {}, {"198.51.100.0/24"});
    FlowPort isolated = port();
    isolated.is_isolated = true;
    const auto all = plan({.workers = 1, .isolate = true}, config, {isolated});
    EXPECT_EQ(texts(all.rules, FlowKind::SourceDrop),
              (Texts{"from 10.0.0.0/8 to 192.0.2.80 tcp port 80 syn: drop counted"}));
    EXPECT_EQ(note(all, FlowKind::SourceDrop),
              "blocked sources: rules would also drop their packets to the kernel (--vip-isolate)");
    EXPECT_EQ(texts(plan({.workers = 1, .isolate = true}, config).rules, FlowKind::SourceDrop).size(), 2U)
        << "once isolation is left";
}

TEST(FlowPlan, FrontendsKeepTheirMarks) {
    const auto both = flow_config(
        {service("web", {external("192.0.2.80", 80), external("192.0.2.80", 443)}, {"10.0.0.1"})});
    const lb::FrontendTuple http{ip("192.0.2.80"), 80, Protocol::Tcp},
        https{ip("192.0.2.80"), 443, Protocol::Tcp};
    EXPECT_EQ(assign_marks(*both.services, {}, 10), (std::vector{http, https}));
    EXPECT_EQ(assign_marks(*both.services, {}, 1), std::vector{http});
    EXPECT_EQ(assign_marks(*both.services, {https}, 10), (std::vector{https, http}));
    const auto rest = flow_config({service("web", {external("192.0.2.80", 443)}, {"10.0.0.1"})});
    EXPECT_EQ(assign_marks(*rest.services, {http, https}, 10), (std::vector{http, https}))
        << "a gap, or 443 would change its number";
    EXPECT_EQ(assign_marks(*rest.services, {https, http}, 10), std::vector{https});
    EXPECT_TRUE(assign_marks(*flow_config({}).services, {http, https}, 10).empty());
}

TEST(FlowPlan, ADropMayStayAsLongAsSoftwareDropsTheSame) {
    const auto before = flow_config({denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/8"})},
                                    {{ip("192.0.2.1"), NicPortId{0}}}, {"198.51.100.0/24"});
    const auto all = plan({.workers = 2}, before).rules;
    const auto staying = [&](const FlowConfig& config) {
        return std::ranges::count_if(all, [&](const FlowRule& rule) {
            return rule.kind == FlowKind::SourceDrop && may_stay(rule, config);
        });
    };
    EXPECT_EQ(staying(before), 2);
    EXPECT_EQ(staying(flow_config({denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/7"})}, {},
                                  {"198.51.0.0/16"})),
              2);
    EXPECT_EQ(staying(flow_config({denying("web", {external("192.0.2.80", 80)}, {"10.0.0.0/9"})}, {},
                                  {"198.51.100.0/25"})),
              0);
    EXPECT_EQ(staying(flow_config({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})})), 0);
    EXPECT_EQ(staying(flow_config({})), 0);
    EXPECT_TRUE(may_stay(all.front(), flow_config({}))) << "a queue drops nothing";
}

std::string random_prefix(test::Prng& random, unsigned shortest) {
    const auto length = shortest + static_cast<unsigned>(random.below(33 - shortest));
    return "10." + std::to_string(random.below(4)) + "." + std::to_string(random.below(256)) + "." +
           std::to_string(random.below(256)) + "/" + std::to_string(length);
}

// Compared with a direct implementation of the rule: all candidates, present ones first, then by width.
TEST(FlowPlan, OfAnyNumberOfDeniedRangesTheBestAreChosen) {
    test::Prng random;
    for (int round = 0; round < 20; ++round) {
        std::vector<model::Service> services;
        for (int i = 0; i < 3; ++i) {
            std::vector<std::string> ranges;
            for (int range = 0; range < 20; ++range) {
                ranges.push_back(random_prefix(random, 20));
            }
            const auto address = "192.0.2." + std::to_string(80 + i);
            services.push_back(
                denying("web-" + std::to_string(i), {external(address, 80), external(address, 443)}, ranges));
        }
        const auto config = flow_config(std::move(services));
        std::vector<FlowRule> candidates = plan({.workers = 1, .budget = 1'000}, config).rules;
        std::set<FlowRule> present;
        for (const FlowRule& rule : candidates) {
            if (random.one_in(10)) {
                present.insert(rule);
            }
        }
        std::ranges::sort(candidates, {}, [&](const FlowRule& rule) {
            return std::tuple(!present.contains(rule), rule.match.source->length(), rule);
        });
        FlowRule stale = candidates.front();
        stale.match.destination_port = 8080;  // no frontend
        present.insert(stale);
        for (const unsigned budget : {1U, 7U, 30U, static_cast<unsigned>(candidates.size())}) {
            const auto chosen = plan({.workers = 1, .budget = budget}, config, {port()}, 0, present);
            ASSERT_EQ(chosen.rules, std::vector(candidates.begin(), candidates.begin() + budget))
                << "round " << round;
            const auto more = std::to_string(candidates.size() - budget) + " more do not fit";
            EXPECT_EQ(note(chosen, FlowKind::SourceDrop).starts_with(more), budget < candidates.size());
        }
    }
}

TEST(FlowPlan, ADropMayStayExactlyWhereOneRangeHoldsAllOfIt) {
    test::Prng random;
    unsigned staying = 0;
    for (int round = 0; round < 50; ++round) {
        std::vector<std::string> ranges;
        for (int range = 0; range < 20; ++range) {
            ranges.push_back(random_prefix(random, 16));
        }
        const auto config = flow_config({denying("web", {external("192.0.2.80", 80)}, ranges)});
        FlowRule rule = plan({.workers = 1}, config).rules.front();
        for (int i = 0; i < 200; ++i) {
            const Prefix source = net(random_prefix(random, 12));
            rule.match.source = source;
            const bool is_denied = std::ranges::any_of(ranges, [&](const std::string& text) {
                return net(text).length() <= source.length() && net(text).contains(source.address());
            });
            ASSERT_EQ(may_stay(rule, config), is_denied) << source.to_string();
            staying += is_denied ? 1 : 0;
        }
    }
    EXPECT_GT(staying, 100U);
    EXPECT_LT(staying, 9'900U);
}

}  // namespace flow_plan_test
}  // namespace penstock::gateway
