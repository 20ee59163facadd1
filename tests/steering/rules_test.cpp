// SPDX-License-Identifier: Apache-2.0
// Flow rules have the specified effect in a NIC, packet by packet: each kind that the gateway uses, through
// real PortFlows, validated, created, counted and destroyed in a software NIC's table.
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <set>

#include "drivers/eal/mempool.hpp"
#include "drivers/flow/flow_install.hpp"
#include "drivers/port/nic_port.hpp"
#include "tests/steering/traffic.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::test {
namespace rules_test {

using drivers::FlowAction;
using drivers::FlowKind;
using drivers::FlowMatch;
using drivers::FlowRule;
using drivers::FlowVerb;
using drivers::kIpTcp;
using drivers::kIpUdp;

constexpr uint16_t kQueues = 4;

struct Seen {
    std::optional<uint16_t> queue;  // empty: no worker receives it
    std::optional<uint32_t> mark;
    bool operator==(const Seen&) const = default;
};

// A started port with its rules. The test is both wire and worker.
class RulePort {
 public:
    explicit RulePort(const std::string& arguments, unsigned workers = kQueues) {
        EXPECT_TRUE(start_eal());
        static unsigned number = 500;  // beds count from 0
        drivers::NicPortOptions options;
        options.device = "net_soft" + std::to_string(number++) + ",mac=" + kUpMac.to_string() +
                         (arguments.empty() ? "" : "," + arguments);
        options.rx_queues = options.tx_queues = kQueues;
        auto probed = drivers::NicPort::probe(kUp, options, {});
        EXPECT_TRUE(probed.has_value()) << probed.error().what;
        port_ = std::move(*probed);
        drivers::MempoolDemand demand{.workers = workers};
        port_->add_demand(demand);
        EXPECT_TRUE(pools_.add(-1, demand).has_value());
        EXPECT_TRUE(port_->configure(pools_.on(-1), workers).has_value());
        EXPECT_TRUE(port_->start().has_value());
        nic_ = SoftNic::find(port_->facts().name);
        drivers::FlowPortFacts facts{.rx_queues = kQueues, .rss_types = port_->capabilities().rss_types};
        auto driver = drivers::open_flow_driver(port_->facts().dpdk_port);
        support = drivers::probe_flow_support(*driver, profile(), facts, workers);
        rules = std::make_unique<drivers::PortFlows>(std::move(driver), facts);
        EXPECT_EQ(nic_->flow_rules(), 0u) << "what was tried is taken away again";
    }
    ~RulePort() {
        rules.reset();
        EXPECT_EQ(nic_->flow_rules(), 0u);
        EXPECT_FALSE(nic_->is_isolated());
        port_.reset();
    }
    RulePort(const RulePort&) = delete;
    RulePort& operator=(const RulePort&) = delete;

    // The profile of a bifurcated driver: isolation is available.
    static drivers::PmdProfile profile() {
        drivers::PmdProfile made = drivers::pmd_profile("net_soft");
        made.binding = drivers::Binding::Bifurcated;
        return made;
    }
    Seen receive(const std::vector<uint8_t>& frame) {
        const Received received = SoftWire(*nic_).put(frame);
        if (received.fate != Received::Fate::Queued) {
            return {};
        }
        rte_mbuf* packet = nullptr;
        EXPECT_EQ(rte_eth_rx_burst(port_->facts().dpdk_port, received.queue, &packet, 1), 1);
        Seen seen{.queue = received.queue};
        if ((packet->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0) {
            seen.mark = packet->hash.fdir.hi;
        }
        rte_pktmbuf_free(packet);
        return seen;
    }
    [[nodiscard]] SoftNic& nic() { return *nic_; }

    drivers::FlowSupport support;
    std::unique_ptr<drivers::PortFlows> rules;

 private:
    drivers::Mempools pools_;
    std::unique_ptr<drivers::NicPort> port_;
    SoftNic* nic_ = nullptr;
};

PacketBuilder to_up(std::string_view source, const IpAddr& destination) {
    PacketBuilder built = eth().to_mac(kUpMac.to_string());
    return destination.is_v4() ? built.ipv4(source, destination.to_string())
                               : built.ipv6(source, destination.to_string());
}
std::vector<uint8_t> tcp_to(const IpAddr& destination, L4Port port, std::string_view source = "10.80.2.11",
                            L4Port from = 9376) {
    return to_up(source, destination).tcp(from, port, "SA").build();
}
std::vector<uint8_t> udp_to(const IpAddr& destination, L4Port port, std::string_view source = "10.80.2.11") {
    return to_up(source, destination).udp(9376, port).build();
}

FlowRule snat_rule(const IpAddr& snat, uint8_t protocol, uint32_t worker, L4Port mask) {
    return {FlowKind::SnatToQueue,
            {.family = snat.family(),
             .destination = snat,
             .ip_protocol = protocol,
             .destination_port = static_cast<L4Port>(worker * nat::kPortsPerBlock),
             .destination_port_mask = mask},
            {FlowVerb::ToQueue, worker},
            true};
}

TEST(Rules, SnatPortsComeToTheirWorkersQueue) {
    for (const unsigned workers : {2u, 4u}) {
        RulePort port("spread=random,rss=none", workers);
        ASSERT_TRUE(port.support.snat_to_queue.validates) << port.support.snat_to_queue.reason;
        const nat::ReplyOwner owner{.workers = workers};
        for (const IpAddr& snat : {kUpAddress, IpAddr(kUpAddress6)}) {
            for (const uint8_t protocol : {kIpTcp, kIpUdp}) {
                for (uint32_t w = 0; w < workers; ++w) {
                    const auto added =
                        port.rules->add(snat_rule(snat, protocol, w, *drivers::snat_port_mask(workers)));
                    ASSERT_TRUE(added.has_value()) << added.error().what;
                }
            }
        }
        uint64_t sent = 0;
        for (uint32_t snat_port = 1024; snat_port < 65'536; snat_port += 7) {
            const auto to = static_cast<L4Port>(snat_port);
            const uint16_t owned_by = owner.of_snat_port(to).value;
            EXPECT_EQ(port.receive(tcp_to(kUpAddress, to)).queue, owned_by) << to;
            EXPECT_EQ(port.receive(udp_to(kUpAddress, to)).queue, owned_by) << to;
            EXPECT_EQ(port.receive(tcp_to(kUpAddress6, to, "fd00::1")).queue, owned_by) << to;
            ++sent;
        }
        uint64_t counted = 0;
        for (uint32_t w = 0; w < workers; ++w) {
            counted += port.rules->hits(snat_rule(kUpAddress, kIpUdp, w, *drivers::snat_port_mask(workers)))
                           .value()
                           .packets;
        }
        EXPECT_EQ(counted, sent);
        std::set<uint16_t> elsewhere;
        for (L4Port to = 1024; to < 1124; ++to) {
            elsewhere.insert(port.receive(tcp_to(kClusterAddress, 1024)).queue.value());
        }
        EXPECT_EQ(elsewhere.size(), kQueues) << "another address is not ours to steer";
    }
}

TEST(Rules, DeniedSourcesAreDroppedByDifference) {
    RulePort port("");
    ASSERT_TRUE(port.support.source_drop.validates && port.support.counts) << port.support.source_drop.reason;
    const auto drop = [](const char* prefix) {
        const Prefix source = *Prefix::parse(prefix);
        return FlowRule{FlowKind::SourceDrop,
                        {.family = source.address().family(), .source = source},
                        {FlowVerb::Drop, 0},
                        true};
    };
    const auto arrives_from = [&](std::string_view source) {
        const bool is_v4 = source.find(':') == std::string_view::npos;
        return port.receive(tcp_to(is_v4 ? kVip : IpAddr(kVip6), 80, source)).queue.has_value();
    };
    const FlowRule one = drop("203.0.113.0/24"), two = drop("2001:db8:7::/48"),
                   three = drop("198.51.100.7/32");
    ASSERT_TRUE(port.rules->add(one).has_value());
    ASSERT_TRUE(port.rules->add(two).has_value());
    EXPECT_FALSE(arrives_from("203.0.113.200"));
    EXPECT_TRUE(arrives_from("203.0.112.200"));
    EXPECT_FALSE(arrives_from("2001:db8:7:1::9"));
    EXPECT_TRUE(arrives_from("2001:db8:8:1::9"));
    EXPECT_TRUE(arrives_from("198.51.100.7"));

    // Rule two is removed, rule three is added; rule one stays with its count.
    ASSERT_TRUE(port.rules->add(three).has_value());
    ASSERT_TRUE(port.rules->remove(two).has_value());
    ASSERT_TRUE(port.rules->add(one).has_value());
    EXPECT_FALSE(arrives_from("203.0.113.201"));
    EXPECT_TRUE(arrives_from("2001:db8:7:1::9"));
    EXPECT_FALSE(arrives_from("198.51.100.7"));
    EXPECT_TRUE(arrives_from("198.51.100.8"));
    EXPECT_EQ(port.rules->hits(one)->packets, 2u);
    EXPECT_EQ(port.nic().flow_rules(), 2u);

    ASSERT_TRUE(port.rules->clear().has_value());
    EXPECT_TRUE(arrives_from("203.0.113.202"));
    EXPECT_EQ(port.nic().flow_rules(), 0u);
}

TEST(Rules, ABlockedPrefixHoldsAllItsPacketsAndNoOthers) {
    RulePort port("");
    ASSERT_TRUE(port.support.source_drop.validates && port.support.counts) << port.support.source_drop.reason;
    const FlowRule rule{FlowKind::SourceDrop,
                        {.family = IpFamily::V4, .source = *Prefix::parse("192.0.2.64/26")},
                        {FlowVerb::Drop, 0},
                        true};
    ASSERT_TRUE(port.rules->add(rule).has_value());
    const auto arrives = [&](const PacketBuilder& built) {
        return port.receive(built.build()).queue.has_value();
    };
    EXPECT_FALSE(arrives(to_up("192.0.2.64", kVip).tcp(1, 80, "S")));
    EXPECT_FALSE(arrives(to_up("192.0.2.127", kVip).udp(1, 53)));
    EXPECT_FALSE(arrives(to_up("192.0.2.100", kVip).icmp(8, 0)));
    EXPECT_FALSE(arrives(to_up("192.0.2.100", kVip).more_fragments().udp(1, 53)));
    EXPECT_TRUE(arrives(to_up("192.0.2.63", kVip).tcp(1, 80, "S")));
    EXPECT_TRUE(arrives(to_up("192.0.2.128", kVip).tcp(1, 80, "S")));
    const auto hits = port.rules->hits(rule);
    ASSERT_TRUE(hits.has_value());
    EXPECT_EQ(hits->packets, 4u);
    EXPECT_GT(hits->bytes, 0u);
    ASSERT_TRUE(port.rules->remove(rule).has_value());
    EXPECT_TRUE(arrives(to_up("192.0.2.64", kVip).tcp(1, 80, "S")));
}

TEST(Rules, ADeniedRangeOpensNothingAndItsOpenFlowsGoOn_SRC005) {
    RulePort port("");
    ASSERT_TRUE(port.rules
                    ->add({FlowKind::SourceDrop,
                           {.family = IpFamily::V4,
                            .source = *Prefix::parse("192.0.2.0/24"),
                            .destination = kVip,
                            .ip_protocol = kIpTcp,
                            .destination_port = 443,
                            .destination_port_mask = 0xffff,
                            .opens_tcp = true},
                           {FlowVerb::Drop, 0},
                           true})
                    .has_value());
    const auto arrives = [&](const char* source, L4Port to, const char* flags) {
        return port.receive(to_up(source, kVip).tcp(40'000, to, flags).build()).queue.has_value();
    };
    EXPECT_FALSE(arrives("192.0.2.9", 443, "S"));
    for (const char* flags : {"A", "PA", "FA", "R", "SA"}) {
        EXPECT_TRUE(arrives("192.0.2.9", 443, flags)) << flags;
    }
    EXPECT_TRUE(arrives("192.0.2.9", 80, "S"));
    EXPECT_TRUE(arrives("192.0.3.9", 443, "S"));
}

TEST(Rules, AMarkComesAlongAndTheQueueStays) {
    // A driver with PASSTHRU, and one that requires RSS beside the mark.
    for (const char* arguments :
         {"flow_actions=queue+drop+mark+rss+count+passthru", "flow_actions=queue+drop+mark+rss+count"}) {
        RulePort port(arguments);
        ASSERT_TRUE(port.support.vip_mark.validates) << port.support.vip_mark.reason;
        EXPECT_EQ(port.rules->facts().mark_spreads,
                  std::string_view(arguments).find("passthru") == std::string_view::npos);
        const FlowRule mark{FlowKind::VipMark,
                            {.family = IpFamily::V4,
                             .destination = kVip,
                             .ip_protocol = kIpTcp,
                             .destination_port = 80,
                             .destination_port_mask = 0xffff},
                            {FlowVerb::Mark, 1234},
                            false};
        std::vector<Seen> before;
        for (L4Port client = 0; client < 100; ++client) {
            before.push_back(port.receive(tcp_to(kVip, 80, "198.51.100.1", client)));
        }
        ASSERT_TRUE(port.rules->add(mark).has_value());
        std::set<uint16_t> queues;
        for (L4Port client = 0; client < 100; ++client) {
            const Seen seen = port.receive(tcp_to(kVip, 80, "198.51.100.1", client));
            EXPECT_EQ(seen.mark, 1234u);
            queues.insert(seen.queue.value());
            if (!port.rules->facts().mark_spreads) {
                EXPECT_EQ(seen.queue, before[client].queue);
            }
        }
        EXPECT_EQ(queues.size(), kQueues);
        EXPECT_EQ(port.receive(tcp_to(kVip, 81)).mark, std::nullopt);
        EXPECT_EQ(port.receive(udp_to(kVip, 80)).mark, std::nullopt);
        EXPECT_EQ(port.receive(to_up("198.51.100.1", kVip).more_fragments().tcp(1, 80, "S").build()).mark,
                  std::nullopt)
            << "a fragment has no ports to match";
    }
}

TEST(Rules, IsolationLeavesTheRestToTheKernel) {
    RulePort port("");
    ASSERT_TRUE(port.support.vip_isolate.validates) << port.support.vip_isolate.reason;
    const FlowRule ours{
        FlowKind::VipIsolate, {.family = IpFamily::V4, .destination = kVip}, {FlowVerb::Spread, 0}, false};
    ASSERT_TRUE(port.rules->add(ours).has_value());
    ASSERT_TRUE(port.rules->add(FlowRule::isolation()).has_value());
    EXPECT_TRUE(port.nic().is_isolated());
    std::set<uint16_t> queues;
    for (L4Port client = 0; client < 100; ++client) {
        queues.insert(port.receive(tcp_to(kVip, 80, "198.51.100.1", client)).queue.value());
    }
    EXPECT_EQ(queues.size(), kQueues);
    const std::vector<uint8_t> ssh = tcp_to(kUpAddress, 22);
    EXPECT_EQ(port.receive(ssh), Seen{});
    EXPECT_EQ(SoftWire(port.nic()).kernel(), ssh);
    ASSERT_TRUE(port.rules->remove(FlowRule::isolation()).has_value());
    EXPECT_TRUE(port.receive(ssh).queue.has_value());
}

TEST(Rules, WhatAPortCannotDoIsRefusedByName) {
    const struct {
        const char* arguments;
        bool snat, drop, mark, isolate, counts;
        const char* says;  // the reason of the first refused kind, in this order
    } cases[] = {
        {"", true, true, true, true, true, ""},
        {"flow_masks=whole", false, false, true, true, false, "partial masks"},
        {"flow_actions=queue+drop+rss", true, true, false, true, false, "action not supported (action)"},
        {"flow_items=eth+ipv4", false, true, false, true, true, "item not supported (item)"},
        {"flow_actions=drop+count", false, true, false, false, true, "action not supported (action)"},
        {"flow_rules=0", false, false, false, false, false, ""},
    };
    for (const auto& one : cases) {
        RulePort port(one.arguments);
        const drivers::FlowSupport& support = port.support;
        EXPECT_EQ(support.snat_to_queue.validates, one.snat)
            << one.arguments << ": " << support.snat_to_queue.reason;
        EXPECT_EQ(support.source_drop.validates, one.drop)
            << one.arguments << ": " << support.source_drop.reason;
        EXPECT_EQ(support.vip_mark.validates, one.mark) << one.arguments << ": " << support.vip_mark.reason;
        EXPECT_EQ(support.vip_isolate.validates, one.isolate)
            << one.arguments << ": " << support.vip_isolate.reason;
        EXPECT_EQ(support.counts, one.counts) << one.arguments;
        for (const drivers::FlowKindSupport* kind :
             {&support.snat_to_queue, &support.source_drop, &support.vip_mark, &support.vip_isolate}) {
            EXPECT_EQ(kind->reason.empty(), kind->validates) << one.arguments;
            if (!kind->validates) {
                EXPECT_NE(kind->reason.find(one.says), std::string::npos)
                    << one.arguments << ": " << kind->reason;
                break;
            }
        }
    }
}

TEST(Rules, AFullTableRefusesOneAndKeepsTheOthers) {
    RulePort port("flow_rules=3");
    std::vector<FlowRule> rules;
    for (uint8_t i = 0; i < 4; ++i) {
        rules.push_back({FlowKind::SourceDrop,
                         {.family = IpFamily::V4, .source = *Prefix::make(IpAddr::v4(203, 0, 113, i), 32)},
                         {FlowVerb::Drop, 0},
                         true});
    }
    for (uint8_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(port.rules->add(rules[i]).has_value());
    }
    const auto refused = port.rules->add(rules[3]);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::Exhausted);
    EXPECT_EQ(refused.error().what, "the flow table is full");
    EXPECT_TRUE(port.receive(tcp_to(kVip, 80, "203.0.113.3")).queue.has_value());
    EXPECT_FALSE(port.receive(tcp_to(kVip, 80, "203.0.113.2")).queue.has_value());
    ASSERT_TRUE(port.rules->remove(rules[0]).has_value());
    ASSERT_TRUE(port.rules->add(rules[3]).has_value());
    EXPECT_FALSE(port.receive(tcp_to(kVip, 80, "203.0.113.3")).queue.has_value());
}

}  // namespace rules_test
}  // namespace penstock::test
