// SPDX-License-Identifier: Apache-2.0
// Rules as data, their text, and the mask of SNAT ports.
#include "drivers/flow/flow_rule.hpp"

#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include <vector>

#include "dataplane/nat/reply_owner.hpp"
#include "drivers/flow/flow_compile.hpp"
#include "drivers/flow/flow_install.hpp"

namespace penstock::drivers {
namespace flow_rule_test {

const IpAddr kVip = IpAddr::v4(198, 51, 100, 7);
const IpAddr kVip6 = *IpAddr::parse("2001:db8::7");
const FlowPortFacts kPort{
    .rx_queues = 4, .rss_types = RTE_ETH_RSS_NONFRAG_IPV4_TCP, .rss_key = std::vector<uint8_t>(40, 0x6d)};

Prefix prefix(const char* text) {
    return *Prefix::parse(text);
}

TEST(FlowRule, IsReadAsPeopleWouldSayIt) {
    const struct {
        FlowMatch match;
        const char* text;
    } rows[] = {
        {{}, "everything else"},
        {{.ether_type = kEtherTypeArp}, "arp"},
        {{.ether_type = 0x88cc}, "ethertype 0x88cc"},
        {{.family = IpFamily::V6, .ip_protocol = kIpIcmpv6}, "ipv6 icmpv6"},
        {{.family = IpFamily::V4, .source = prefix("192.0.2.0/24")}, "from 192.0.2.0/24"},
        {{.family = IpFamily::V4,
          .destination = kVip,
          .ip_protocol = kIpTcp,
          .destination_port = 80,
          .destination_port_mask = 0xffff},
         "to 198.51.100.7 tcp port 80"},
        {{.family = IpFamily::V4,
          .source = prefix("192.0.2.0/24"),
          .destination = kVip,
          .ip_protocol = kIpTcp,
          .destination_port = 443,
          .destination_port_mask = 0xffff,
          .opens_tcp = true},
         "from 192.0.2.0/24 to 198.51.100.7 tcp port 443 syn"},
        {{.family = IpFamily::V4,
          .destination = kVip,
          .ip_protocol = kIpUdp,
          .destination_port = 64,
          .destination_port_mask = 0x0040},
         "to 198.51.100.7 udp port 64-127/128"},
        {{.family = IpFamily::V4,
          .destination = kVip,
          .ip_protocol = kIpUdp,
          .destination_port = 0x80,
          .destination_port_mask = 0x00c0},
         "to 198.51.100.7 udp port 128-191/256"},
        {{.family = IpFamily::V6,
          .destination = kVip6,
          .ip_protocol = kIpTcp,
          .destination_port = 0xf000,
          .destination_port_mask = 0xf000},
         "to 2001:db8::7 tcp port 61440-65535"},
        {{.family = IpFamily::V4,
          .ip_protocol = kIpTcp,
          .destination_port = 0x0101,
          .destination_port_mask = 0x0101},
         "ipv4 tcp port 0x0101/0x0101"},
        {{.family = IpFamily::V4, .destination = kVip, .ip_protocol = 47}, "to 198.51.100.7 protocol 47"},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(row.match.to_string(), row.text);
    }
    EXPECT_EQ((FlowAction{FlowVerb::ToQueue, 3}).to_string(), "queue 3");
    EXPECT_EQ((FlowAction{FlowVerb::Mark, 7}).to_string(), "mark 7");
    EXPECT_EQ((FlowAction{FlowVerb::Drop, 0}).to_string(), "drop");
    EXPECT_EQ((FlowAction{FlowVerb::Spread, 0}).to_string(), "spread");
    EXPECT_EQ(FlowRule::isolation().action.to_string(), "kernel");
}

const FlowMatch kMatch{.family = IpFamily::V4, .destination = kVip};

// The mask of a rule and the computation of a worker must give the same owner for every port.
TEST(SnatPortMask, TellsTheOwnerOfEveryPort) {
    for (const unsigned workers : {2U, 4U, 8U, 64U}) {
        const auto mask = snat_port_mask(workers);
        ASSERT_TRUE(mask) << workers;
        const nat::ReplyOwner owner{.workers = workers, .secret = {}};
        for (uint32_t port = 0; port <= 65'535; ++port) {
            const WorkerId by_mask{static_cast<uint8_t>((port & *mask) / nat::kPortsPerBlock)};
            ASSERT_EQ(owner.of_snat_port(static_cast<L4Port>(port)), by_mask) << port << " of " << workers;
        }
    }
    for (const unsigned workers : {0U, 3U, 6U, 63U}) {
        EXPECT_FALSE(snat_port_mask(workers)) << workers;
    }
}

}  // namespace flow_rule_test
}  // namespace penstock::drivers
