// SPDX-License-Identifier: Apache-2.0
// Rules compiled to rte_flow, byte for byte.
#include "drivers/flow/flow_compile.hpp"

#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include <vector>

#include "dataplane/nat/reply_owner.hpp"
#include "drivers/flow/flow_install.hpp"
#include "drivers/flow/flow_rule.hpp"

namespace penstock::drivers {
namespace flow_compile_test {

const IpAddr kVip = IpAddr::v4(198, 51, 100, 7);
const IpAddr kVip6 = *IpAddr::parse("2001:db8::7");
const FlowPortFacts kPort{
    .rx_queues = 4, .rss_types = RTE_ETH_RSS_NONFRAG_IPV4_TCP, .rss_key = std::vector<uint8_t>(40, 0x6d)};

Prefix prefix(const char* text) {
    return *Prefix::parse(text);
}

// The bytes of an item's spec or mask that are not zero, as "offset:hex ...".
std::string bytes_text(const void* item, size_t size) {
    if (item == nullptr) {
        return "-";
    }
    const auto* bytes = static_cast<const uint8_t*>(item);
    std::string text;
    for (size_t i = 0; i < size; ++i) {
        if (bytes[i] != 0) {
            char one[32];
            std::snprintf(one, sizeof one, "%zu:%02x ", i, bytes[i]);
            text += one;
        }
    }
    return text;
}

size_t size_of(rte_flow_item_type type) {
    switch (type) {
        case RTE_FLOW_ITEM_TYPE_ETH:
            return sizeof(rte_flow_item_eth);
        case RTE_FLOW_ITEM_TYPE_IPV4:
            return sizeof(rte_flow_item_ipv4);
        case RTE_FLOW_ITEM_TYPE_IPV6:
            return sizeof(rte_flow_item_ipv6);
        case RTE_FLOW_ITEM_TYPE_TCP:
            return sizeof(rte_flow_item_tcp);
        case RTE_FLOW_ITEM_TYPE_UDP:
            return sizeof(rte_flow_item_udp);
        default:
            return 0;
    }
}

std::string pattern_text(const CompiledFlow& flow) {
    std::string text;
    for (const rte_flow_item* item = flow.pattern(); item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
        const size_t size = size_of(item->type);
        EXPECT_EQ(item->last, nullptr);
        text += std::to_string(item->type) + "[" + bytes_text(item->spec, size) + "/ " +
                bytes_text(item->mask, size) + "]";
    }
    return text;
}

std::string item(rte_flow_item_type type, const char* spec = "-", const char* mask = "-") {
    return std::to_string(type) + "[" + spec + "/ " + mask + "]";
}

// A header struct has the bytes of the wire format from offset 0, so offsets are those of RFC 791, 8200, 9293
// and 768.
TEST(FlowCompile, PatternHoldsTheBytesOfTheMatch) {
    const auto eth = item(RTE_FLOW_ITEM_TYPE_ETH);
    const struct {
        FlowMatch match;
        std::string pattern;
    } rows[] = {
        {{.ether_type = kEtherTypeArp}, item(RTE_FLOW_ITEM_TYPE_ETH, "12:08 13:06 ", "12:ff 13:ff ")},
        {{.family = IpFamily::V4}, eth + item(RTE_FLOW_ITEM_TYPE_IPV4)},
        {{.family = IpFamily::V4, .source = prefix("0.0.0.0/0")}, eth + item(RTE_FLOW_ITEM_TYPE_IPV4)},
        {{.family = IpFamily::V4, .source = prefix("10.64.0.0/10")},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV4, "12:0a 13:40 ", "12:ff 13:c0 ")},
        {{.family = IpFamily::V4, .source = prefix("203.0.113.9/32")},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV4, "12:cb 14:71 15:09 ", "12:ff 13:ff 14:ff 15:ff ")},
        {{.family = IpFamily::V4, .destination = kVip},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV4, "16:c6 17:33 18:64 19:07 ", "16:ff 17:ff 18:ff 19:ff ")},
        {{.family = IpFamily::V4, .destination = kVip, .ip_protocol = 47},
         eth +
             item(RTE_FLOW_ITEM_TYPE_IPV4, "9:2f 16:c6 17:33 18:64 19:07 ", "9:ff 16:ff 17:ff 18:ff 19:ff ")},
        {{.family = IpFamily::V4, .ip_protocol = kIpTcp},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV4) + item(RTE_FLOW_ITEM_TYPE_TCP)},
        {{.family = IpFamily::V4,
          .ip_protocol = kIpUdp,
          .destination_port = 0x0040,
          .destination_port_mask = 0x00c0},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV4) + item(RTE_FLOW_ITEM_TYPE_UDP, "3:40 ", "3:c0 ")},
        {{.family = IpFamily::V4,
          .ip_protocol = kIpTcp,
          .destination_port = 0,
          .destination_port_mask = 0x0040},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV4) + item(RTE_FLOW_ITEM_TYPE_TCP, "", "3:40 ")},
        {{.family = IpFamily::V4,
          .ip_protocol = kIpTcp,
          .destination_port = 443,
          .destination_port_mask = 0xffff,
          .opens_tcp = true},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV4) +
             item(RTE_FLOW_ITEM_TYPE_TCP, "2:01 3:bb 13:02 ", "2:ff 3:ff 13:12 ")},
        {{.family = IpFamily::V6, .source = prefix("2001:db8::/33")},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV6, "8:20 9:01 10:0d 11:b8 ", "8:ff 9:ff 10:ff 11:ff 12:80 ")},
        {{.family = IpFamily::V6, .ip_protocol = kIpIcmpv6},
         eth + item(RTE_FLOW_ITEM_TYPE_IPV6, "6:3a ", "6:ff ")},
        {{.family = IpFamily::V6,
          .destination = kVip6,
          .ip_protocol = kIpUdp,
          .destination_port = 53,
          .destination_port_mask = 0xffff},
         eth +
             item(RTE_FLOW_ITEM_TYPE_IPV6, "24:20 25:01 26:0d 27:b8 39:07 ",
                  "24:ff 25:ff 26:ff 27:ff 28:ff 29:ff 30:ff 31:ff 32:ff 33:ff 34:ff 35:ff 36:ff 37:ff 38:ff "
                  "39:ff ") +
             item(RTE_FLOW_ITEM_TYPE_UDP, "3:35 ", "2:ff 3:ff ")},
    };
    for (const auto& row : rows) {
        const auto flow =
            CompiledFlow::compile({FlowKind::SourceDrop, row.match, {FlowVerb::Drop, 0}, false}, kPort);
        ASSERT_TRUE(flow) << flow.error().what;
        EXPECT_EQ(pattern_text(**flow), row.pattern) << row.match.to_string();
        EXPECT_EQ((*flow)->attributes()->ingress, 1U);
        EXPECT_EQ((*flow)->attributes()->group, 0U);
        EXPECT_EQ((*flow)->attributes()->priority, 0U);
    }
}

const FlowMatch kMatch{.family = IpFamily::V4, .destination = kVip};

std::vector<rte_flow_action_type> action_types(const CompiledFlow& flow) {
    std::vector<rte_flow_action_type> types;
    for (const rte_flow_action* action = flow.actions(); action->type != RTE_FLOW_ACTION_TYPE_END; ++action) {
        types.push_back(action->type);
    }
    return types;
}

TEST(FlowCompile, ActionsSayWhatToDo) {
    using Types = std::vector<rte_flow_action_type>;
    const auto drop = CompiledFlow::compile({FlowKind::SourceDrop, kMatch, {FlowVerb::Drop, 0}, true}, kPort);
    ASSERT_TRUE(drop);
    EXPECT_EQ(action_types(**drop), (Types{RTE_FLOW_ACTION_TYPE_COUNT, RTE_FLOW_ACTION_TYPE_DROP}));

    const auto queue =
        CompiledFlow::compile({FlowKind::SnatToQueue, kMatch, {FlowVerb::ToQueue, 3}, false}, kPort);
    ASSERT_TRUE(queue);
    EXPECT_EQ(action_types(**queue), Types{RTE_FLOW_ACTION_TYPE_QUEUE});
    EXPECT_EQ(static_cast<const rte_flow_action_queue*>((*queue)->actions()[0].conf)->index, 3);

    const auto spread =
        CompiledFlow::compile({FlowKind::VipIsolate, kMatch, {FlowVerb::Spread, 0}, false}, kPort);
    ASSERT_TRUE(spread);
    ASSERT_EQ(action_types(**spread), Types{RTE_FLOW_ACTION_TYPE_RSS});
    const auto& rss = *static_cast<const rte_flow_action_rss*>((*spread)->actions()[0].conf);
    EXPECT_EQ(std::vector<uint16_t>(rss.queue, rss.queue + rss.queue_num),
              (std::vector<uint16_t>{0, 1, 2, 3}));
    EXPECT_EQ(std::vector<uint8_t>(rss.key, rss.key + rss.key_len), kPort.rss_key);
    EXPECT_EQ(rss.types, kPort.rss_types);

    const auto passes = CompiledFlow::compile({FlowKind::VipMark, kMatch, {FlowVerb::Mark, 9}, false}, kPort);
    ASSERT_TRUE(passes);
    EXPECT_EQ(action_types(**passes), (Types{RTE_FLOW_ACTION_TYPE_MARK, RTE_FLOW_ACTION_TYPE_PASSTHRU}));
    EXPECT_EQ(static_cast<const rte_flow_action_mark*>((*passes)->actions()[0].conf)->id, 9U);
    FlowPortFacts spreads = kPort;
    spreads.mark_spreads = true;
    const auto marks = CompiledFlow::compile({FlowKind::VipMark, kMatch, {FlowVerb::Mark, 9}, true}, spreads);
    ASSERT_TRUE(marks);
    EXPECT_EQ(action_types(**marks),
              (Types{RTE_FLOW_ACTION_TYPE_COUNT, RTE_FLOW_ACTION_TYPE_MARK, RTE_FLOW_ACTION_TYPE_RSS}));
}

TEST(FlowCompile, SpreadsOverOneQueueByNamingIt) {
    for (const FlowPortFacts& port :
         {FlowPortFacts{.rx_queues = 1, .rss_types = RTE_ETH_RSS_IP, .rss_key = {}},
          FlowPortFacts{.rx_queues = 2, .rss_types = 0, .rss_key = {}}}) {
        const auto flow =
            CompiledFlow::compile({FlowKind::VipIsolate, kMatch, {FlowVerb::Spread, 0}, false}, port);
        ASSERT_TRUE(flow);
        EXPECT_EQ(action_types(**flow), std::vector{RTE_FLOW_ACTION_TYPE_QUEUE});
    }
}

TEST(FlowCompile, RefusesWhatContradictsItself) {
    const FlowAction drop{FlowVerb::Drop, 0};
    const struct {
        FlowRule rule;
        const char* why;
    } rows[] = {
        {{FlowKind::SourceDrop, {}, drop, false}, "neither an EtherType nor an IP version"},
        {{FlowKind::SourceDrop, {.ether_type = kEtherTypeArp, .family = IpFamily::V4}, drop, false},
         "an EtherType together with an IP field"},
        {{FlowKind::SourceDrop, {.family = IpFamily::V6, .destination = kVip}, drop, false},
         "another IP version"},
        {{FlowKind::SourceDrop, {.family = IpFamily::V6, .source = prefix("10.0.0.0/8")}, drop, false},
         "another IP version"},
        {{FlowKind::SourceDrop,
          {.family = IpFamily::V4, .destination_port = 80, .destination_port_mask = 0xffff},
          drop,
          false},
         "an L4 port without TCP or UDP"},
        {{FlowKind::SourceDrop,
          {.family = IpFamily::V4, .ip_protocol = kIpTcp, .destination_port = 3, .destination_port_mask = 1},
          drop,
          false},
         "a bit of the L4 port outside its mask"},
        {{FlowKind::SourceDrop,
          {.family = IpFamily::V4, .ip_protocol = kIpUdp, .opens_tcp = true},
          drop,
          false},
         "a SYN without TCP"},
        {{FlowKind::SnatToQueue, kMatch, {FlowVerb::ToQueue, 4}, false}, "the port has 4 receive queues"},
        {{FlowKind::VipMark, kMatch, {FlowVerb::Mark, 0x1'0000}, false}, "a mark has 16 bits"},
        {FlowRule::isolation(), "left to the kernel by isolation"},
    };
    for (const auto& row : rows) {
        const auto flow = CompiledFlow::compile(row.rule, kPort);
        ASSERT_FALSE(flow) << row.why;
        EXPECT_NE(flow.error().what.find(row.why), std::string::npos) << flow.error().what;
    }
}

}  // namespace flow_compile_test
}  // namespace penstock::drivers
