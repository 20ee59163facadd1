// SPDX-License-Identifier: Apache-2.0
// The software NIC behaves as soft_nic.hpp specifies: as a port configured by a program, and as a wire
// operated by a test. Steering is tested on it, so its model of hardware is verified here against the
// published vectors of RSS and the definition of rte_flow.
#include "tests/support/soft_nic/soft_nic.hpp"

#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include <array>
#include <functional>
#include <map>
#include <set>

#include "tests/support/eal_fixture.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::test {
namespace soft_nic_test {

constexpr uint16_t kQueues = 4;
constexpr std::string_view kMac = "02:00:00:00:00:02";  // destination of PacketBuilder's frames

rte_mempool* pool() {
    static rte_mempool* made =
        rte_pktmbuf_pool_create("soft_nic_test", 8191, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    return made;
}

using Frame = std::vector<uint8_t>;

// A port, probed, configured and started as a test requests.
class SoftPort {
 public:
    struct Asked {
        uint16_t queues = kQueues;
        uint64_t rss = ~0ULL;  // of the offered kinds
        std::vector<uint8_t> key = {};
        uint64_t rx_offloads = 0, tx_offloads = 0;
        uint32_t loopback = 0;
        uint32_t mtu = 1500;
        bool interrupts = false;
    };
    explicit SoftPort(const std::string& arguments, const Asked& asked) : SoftPort(arguments) {
        configured = configure(asked);
        if (configured == 0) {
            started = rte_eth_dev_start(port);
        }
    }
    explicit SoftPort(const std::string& arguments) {
        static int number = 0;
        name = "net_soft" + std::to_string(number++);
        const std::string all = "mac=" + std::string(kMac) + (arguments.empty() ? "" : "," + arguments);
        EXPECT_EQ(rte_vdev_init(name.c_str(), all.c_str()), 0) << all;
        EXPECT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &port), 0);
        nic = SoftNic::find(name);
        EXPECT_NE(nic, nullptr);
        wire = std::make_unique<SoftWire>(*nic);
        rte_eth_dev_info_get(port, &info);
    }
    ~SoftPort() {
        rte_eth_dev_stop(port);
        rte_vdev_uninit(name.c_str());
        EXPECT_EQ(SoftNic::find(name), nullptr);
    }
    SoftPort(const SoftPort&) = delete;
    SoftPort& operator=(const SoftPort&) = delete;

    int configure(const Asked& asked) {
        rte_eth_conf conf{};
        conf.rxmode.mtu = asked.mtu;
        conf.rxmode.offloads = asked.rx_offloads;
        conf.txmode.offloads = asked.tx_offloads;
        conf.lpbk_mode = asked.loopback;
        conf.intr_conf.lsc = conf.intr_conf.rmv = conf.intr_conf.rxq = asked.interrupts;
        std::vector<uint8_t> key = asked.key;
        if ((asked.rss & info.flow_type_rss_offloads) != 0) {
            conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
            conf.rx_adv_conf.rss_conf = {key.empty() ? nullptr : key.data(), static_cast<uint8_t>(key.size()),
                                         asked.rss & info.flow_type_rss_offloads};
        }
        if (const int result = rte_eth_dev_configure(port, asked.queues, asked.queues, &conf); result != 0) {
            return result;
        }
        for (uint16_t q = 0; q < asked.queues; ++q) {
            EXPECT_EQ(rte_eth_rx_queue_setup(port, q, 256, 0, nullptr, pool()), 0);
            EXPECT_EQ(rte_eth_tx_queue_setup(port, q, 256, 0, nullptr), 0);
        }
        return 0;
    }

    // The packet that waits in that queue; null if there is none.
    rte_mbuf* poll(uint16_t queue) {
        rte_mbuf* packet = nullptr;
        return rte_eth_rx_burst(port, queue, &packet, 1) == 1 ? packet : nullptr;
    }
    // Puts the frame on the wire and searches the queues for it: returns its queue, or nothing. `look` may
    // inspect the packet.
    std::optional<uint16_t> arrives_at(const Frame& frame,
                                       const std::function<void(const rte_mbuf&)>& look = {}) {
        const Received said = wire->put(frame);
        std::optional<uint16_t> found;
        for (uint16_t q = 0; q < kQueues; ++q) {
            if (rte_mbuf* packet = poll(q)) {
                EXPECT_FALSE(found) << "one frame, one packet";
                found = q;
                if (look) {
                    look(*packet);
                }
                rte_pktmbuf_free(packet);
            }
        }
        EXPECT_EQ(said.fate == Received::Fate::Queued, found.has_value());
        EXPECT_EQ(found.value_or(0), said.queue);
        return found;
    }
    void send(const Frame& frame, uint64_t flags = 0, uint16_t l3_bytes = 20) {
        rte_mbuf* packet = rte_pktmbuf_alloc(pool());
        std::ranges::copy(frame, reinterpret_cast<uint8_t*>(
                                     rte_pktmbuf_append(packet, static_cast<uint16_t>(frame.size()))));
        packet->ol_flags = flags;
        packet->l2_len = 14;
        packet->l3_len = l3_bytes & 0x1ff;
        ASSERT_EQ(rte_eth_tx_burst(port, 0, &packet, 1), 1);
    }

    std::string name;
    uint16_t port = 0;
    SoftNic* nic = nullptr;
    std::unique_ptr<SoftWire> wire;
    rte_eth_dev_info info{};
    int configured = 0, started = 0;
};

class SoftNicTest : public testing::Test {
 protected:
    void SetUp() override { ASSERT_TRUE(start_eal()); }
};

PacketBuilder tcp4(uint16_t source_port = 2794) {
    return eth().ipv4("66.9.149.187", "161.142.100.80").tcp(source_port, 1766, "A");
}

// "Verifying the RSS hash calculation" (Windows driver documentation): the first line of each table, and
// hashes by addresses.
TEST_F(SoftNicTest, HashesAsTheSpecificationsVectorsDo) {
    SoftPort port("reta=128", {.rx_offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH});
    const std::string a6 = "3ffe:2501:200:1fff::7", b6 = "3ffe:2501:200:3::1";
    const struct {
        const char* name;
        Frame frame;
        uint32_t hash;
    } cases[] = {
        {"tcp4", tcp4().build(), 0x51ccc178},
        {"udp4", eth().ipv4("66.9.149.187", "161.142.100.80").udp(2794, 1766).build(), 0x51ccc178},
        {"icmp4", eth().ipv4("66.9.149.187", "161.142.100.80").icmp(8, 0).build(), 0x323e8fc2},
        {"first fragment", tcp4().more_fragments().build(), 0x323e8fc2},
        {"last fragment", tcp4().fragment_offset(100).build(), 0x323e8fc2},
        {"tcp6", eth().ipv6(a6, b6).tcp(2794, 1766, "A").build(), 0x40207d3d},
        {"icmp6", eth().ipv6(a6, b6).icmp(128, 0).build(), 0x2cc18cd5},
        {"fragment6", eth().ipv6(a6, b6).fragment(0, true).tcp(2794, 1766, "A").build(), 0x2cc18cd5},
        {"behind an extension header", eth().ipv6(a6, b6).hop_by_hop().tcp(2794, 1766, "A").build(),
         0x2cc18cd5},
    };
    for (const auto& one : cases) {
        const auto queue = port.arrives_at(one.frame, [&](const rte_mbuf& packet) {
            EXPECT_NE(packet.ol_flags & RTE_MBUF_F_RX_RSS_HASH, 0u) << one.name;
            EXPECT_EQ(packet.hash.rss, one.hash) << one.name;
        });
        EXPECT_EQ(queue, one.hash % 128 % kQueues) << one.name;
    }
    EXPECT_EQ(
        port.arrives_at(eth().to_mac("ff:ff:ff:ff:ff:ff").ether_type(0x0806).payload(Frame(46)).build()), 0)
        << "no IP, no hash";
}

TEST_F(SoftNicTest, HashesOnlyWhatIsOfferedAndAsked) {
    SoftPort no_udp_ports("rss=ipv4+tcp4", {.rx_offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH});
    EXPECT_EQ(no_udp_ports.info.flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV4_UDP, 0u);
    no_udp_ports.arrives_at(eth().ipv4("66.9.149.187", "161.142.100.80").udp(2794, 1766).build(),
                            [](const rte_mbuf& packet) { EXPECT_EQ(packet.hash.rss, 0x323e8fc2); });
    EXPECT_EQ(no_udp_ports.arrives_at(
                  eth().ipv6("fd00::1", "fd00::2").tcp(1, 2, "A").build(),
                  [](const rte_mbuf& packet) { EXPECT_EQ(packet.ol_flags & RTE_MBUF_F_RX_RSS_HASH, 0u); }),
              0);
    SoftPort none("rss=none", {});
    EXPECT_EQ(none.info.hash_key_size, 0);
    EXPECT_EQ(none.info.reta_size, 0);
    for (uint16_t source = 1; source < 50; ++source) {
        EXPECT_EQ(none.arrives_at(tcp4(source).build()), 0);
    }
}

TEST_F(SoftNicTest, TakesAKeyAndARetaAsItsArgumentsSay) {
    std::vector<uint8_t> wanted(40);
    for (size_t i = 0; i < wanted.size(); ++i) {
        wanted[i] = static_cast<uint8_t>(i * 37 + 11);
    }
    const auto read_key = [](uint16_t port) {
        std::vector<uint8_t> key(52);
        rte_eth_rss_conf conf{key.data(), static_cast<uint8_t>(key.size()), 0};
        const int result = rte_eth_dev_rss_hash_conf_get(port, &conf);
        key.resize(result == 0 ? conf.rss_key_len : 0);
        return key;
    };
    {
        SoftPort set("key=set", {.key = wanted});
        EXPECT_EQ(set.configured, 0);
        EXPECT_EQ(read_key(set.port), wanted);
    }
    {
        SoftPort fixed("key=fixed");
        EXPECT_EQ(fixed.configure({.key = wanted}), -ENOTSUP);
        EXPECT_EQ(fixed.configure({}), 0);
        EXPECT_EQ(read_key(fixed.port).size(), 40u);
        EXPECT_NE(read_key(fixed.port), wanted);
    }
    {
        SoftPort ignored("key=ignored,key_bytes=52", {.key = std::vector<uint8_t>(52, 1)});
        EXPECT_EQ(ignored.configured, 0);
        EXPECT_EQ(read_key(ignored.port).size(), 52u);
        EXPECT_NE(read_key(ignored.port), std::vector<uint8_t>(52, 1));
    }
    {
        SoftPort hidden("key=hidden");
        EXPECT_EQ(hidden.configure({.key = wanted}), -ENOTSUP);
        EXPECT_EQ(hidden.configure({}), 0);
        EXPECT_TRUE(read_key(hidden.port).empty());
    }
    for (const auto& [access, update, query, moved] : {std::tuple{"set", 0, 0, true},
                                                       {"ignored", 0, 0, false},
                                                       {"fixed", -ENOTSUP, 0, false},
                                                       {"hidden", -ENOTSUP, -ENOTSUP, false}}) {
        SoftPort port("reta=512,reta_access=" + std::string(access), {});
        EXPECT_EQ(port.info.reta_size, 512);
        std::array<rte_eth_rss_reta_entry64, 8> to{};
        for (auto& group : to) {
            group.mask = ~0ULL;
            std::ranges::fill(group.reta, uint16_t{3});
        }
        EXPECT_EQ(rte_eth_dev_rss_reta_update(port.port, to.data(), 512), update) << access;
        std::array<rte_eth_rss_reta_entry64, 8> from{};
        for (auto& group : from) {
            group.mask = ~0ULL;
        }
        EXPECT_EQ(rte_eth_dev_rss_reta_query(port.port, from.data(), 512), query) << access;
        if (query == 0) {
            EXPECT_EQ(from[7].reta[62], moved ? 3 : (7 * 64 + 62) % kQueues) << access;
        }
        EXPECT_EQ(port.arrives_at(tcp4().build()), moved ? 3u : 0x51ccc178 % 512 % kQueues) << access;
    }
}

TEST_F(SoftNicTest, SpreadsAsBadlyAsItIsTold) {
    const auto queues_of = [](SoftPort& port, bool one_flow) {
        std::set<uint16_t> queues;
        for (uint16_t i = 0; i < 200; ++i) {
            queues.insert(port.arrives_at(tcp4(one_flow ? 1 : i).build()).value());
        }
        return queues.size();
    };
    SoftPort good("", {}), random("spread=random", {}), zero("spread=zero", {}), wander("spread=wander", {}),
        lies("spread=lies", {});
    EXPECT_EQ(queues_of(good, true), 1u);
    EXPECT_EQ(queues_of(good, false), kQueues);
    EXPECT_EQ(queues_of(random, true), kQueues);
    EXPECT_EQ(queues_of(zero, false), 1u);
    EXPECT_EQ(queues_of(wander, true), kQueues);
    EXPECT_EQ(queues_of(lies, true), 1u) << "a liar is steady";

    const std::vector<uint8_t> key(40, 0x5a);
    SoftPort honest("", {.key = key, .rx_offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH});
    SoftPort liar("spread=lies", {.key = key, .rx_offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH});
    uint32_t told = 0, lied = 0;
    honest.arrives_at(tcp4().build(), [&](const rte_mbuf& packet) { told = packet.hash.rss; });
    liar.arrives_at(tcp4().build(), [&](const rte_mbuf& packet) { lied = packet.hash.rss; });
    EXPECT_NE(told, lied);
}

// A short form of rte_flow rules.
struct Rule {
    std::vector<rte_flow_item> items;
    std::vector<rte_flow_action> actions;
    rte_flow_attr attr{.ingress = 1};
    rte_flow_error error{};

    int validate(const SoftPort& port) {
        return rte_flow_validate(port.port, &attr, ended(items), ended(actions), &error);
    }
    rte_flow* create(const SoftPort& port) {
        return rte_flow_create(port.port, &attr, ended(items), ended(actions), &error);
    }

    static const rte_flow_item* ended(std::vector<rte_flow_item>& of) {
        of.push_back({.type = RTE_FLOW_ITEM_TYPE_END});
        return of.data();
    }
    static const rte_flow_action* ended(std::vector<rte_flow_action>& of) {
        of.push_back({.type = RTE_FLOW_ACTION_TYPE_END});
        return of.data();
    }
};
rte_flow_item item(rte_flow_item_type type, const void* spec = nullptr, const void* mask = nullptr) {
    return {.type = type, .spec = spec, .mask = mask};
}
rte_flow_action action(rte_flow_action_type type, const void* conf = nullptr) {
    return {.type = type, .conf = conf};
}

const rte_flow_action_queue kToQueue3{.index = 3};
const rte_flow_action_mark kMark77{.id = 77};
const rte_flow_item_tcp kPort2794{.hdr = {.src_port = RTE_BE16(2794)}};
const rte_flow_item_tcp kWholeSourcePort{.hdr = {.src_port = RTE_BE16(0xffff)}};
// Ports 64 to 127 of a SNAT range: bits 6 and above.
const rte_flow_item_tcp kBlockOne{.hdr = {.src_port = RTE_BE16(64)}};
const rte_flow_item_tcp kBlockMask{.hdr = {.src_port = RTE_BE16(0xffc0)}};

TEST_F(SoftNicTest, SendsToAQueueWhatARuleNames) {
    SoftPort port("", {});
    Rule block{{item(RTE_FLOW_ITEM_TYPE_ETH), item(RTE_FLOW_ITEM_TYPE_IPV4),
                item(RTE_FLOW_ITEM_TYPE_TCP, &kBlockOne, &kBlockMask)},
               {action(RTE_FLOW_ACTION_TYPE_QUEUE, &kToQueue3), action(RTE_FLOW_ACTION_TYPE_COUNT)}};
    rte_flow* rule = block.create(port);
    ASSERT_NE(rule, nullptr) << block.error.message;
    std::set<uint16_t> elsewhere;
    for (uint16_t source = 0; source < 192; ++source) {
        const auto queue = port.arrives_at(tcp4(source).build());
        if (source / 64 == 1) {
            EXPECT_EQ(queue, 3) << source;
        } else {
            elsewhere.insert(queue.value());
        }
    }
    EXPECT_EQ(elsewhere.size(), kQueues);
    std::set<uint16_t> udp;
    for (uint16_t source = 64; source < 128; ++source) {
        udp.insert(
            port.arrives_at(eth().ipv4("66.9.149.187", "161.142.100.80").udp(source, 1).build()).value());
    }
    EXPECT_GT(udp.size(), 1u) << "another protocol";
    const rte_flow_action count[] = {action(RTE_FLOW_ACTION_TYPE_COUNT), action(RTE_FLOW_ACTION_TYPE_END)};
    rte_flow_query_count hits{.reset = 1};
    rte_flow_error error;
    EXPECT_EQ(rte_flow_query(port.port, rule, count, &hits, &error), 0);
    EXPECT_EQ(hits.hits, 64u);
    EXPECT_EQ(hits.bytes, 64u * tcp4().build().size());
    EXPECT_EQ(rte_flow_query(port.port, rule, count, &hits, &error), 0);
    EXPECT_EQ(hits.hits, 0u);
    EXPECT_EQ(rte_flow_destroy(port.port, rule, &error), 0);
    EXPECT_EQ(port.nic->flow_rules(), 0u);
    std::set<uint16_t> after;
    for (uint16_t source = 64; source < 128; ++source) {
        after.insert(port.arrives_at(tcp4(source).build()).value());
    }
    EXPECT_EQ(after.size(), kQueues);
}

TEST_F(SoftNicTest, DropsMarksSpreadsAndLetsPass) {
    SoftPort port("flow_priorities=4", {});
    const rte_flow_item_ipv4 denied{.hdr = {.src_addr = RTE_BE32(RTE_IPV4(203, 0, 113, 0))}};
    const rte_flow_item_ipv4 slash24{.hdr = {.src_addr = RTE_BE32(0xffffff00)}};
    Rule drop{{item(RTE_FLOW_ITEM_TYPE_IPV4, &denied, &slash24)}, {action(RTE_FLOW_ACTION_TYPE_DROP)}};
    ASSERT_NE(drop.create(port), nullptr) << drop.error.message;
    EXPECT_EQ(port.wire->put(eth().ipv4("203.0.113.9", "10.0.0.1").tcp(1, 2, "S").build()).fate,
              Received::Fate::Dropped);
    EXPECT_TRUE(port.arrives_at(eth().ipv4("203.0.114.9", "10.0.0.1").tcp(1, 2, "S").build()));
    EXPECT_EQ(
        port.wire->put(eth().ipv4("203.0.113.9", "10.0.0.1").more_fragments().tcp(1, 2, "S").build()).fate,
        Received::Fate::Dropped)
        << "addresses are there in fragments";

    const uint16_t two[] = {1, 2};
    const rte_flow_action_rss over_two{.queue_num = 2, .queue = two};
    Rule spread{{item(RTE_FLOW_ITEM_TYPE_IPV4), item(RTE_FLOW_ITEM_TYPE_UDP)},
                {action(RTE_FLOW_ACTION_TYPE_RSS, &over_two)}};
    ASSERT_NE(spread.create(port), nullptr) << spread.error.message;
    std::map<uint16_t, int> at;
    for (uint16_t source = 0; source < 100; ++source) {
        ++at[port.arrives_at(eth().ipv4("10.0.0.1", "10.0.0.2").udp(source, 1).build()).value()];
    }
    EXPECT_EQ(at.size(), 2u);
    EXPECT_GT(at[1], 20);
    EXPECT_GT(at[2], 20);

    // A mark, followed by the action of the older rule.
    Rule mark{{item(RTE_FLOW_ITEM_TYPE_IPV4), item(RTE_FLOW_ITEM_TYPE_TCP, &kPort2794, &kWholeSourcePort)},
              {action(RTE_FLOW_ACTION_TYPE_MARK, &kMark77), action(RTE_FLOW_ACTION_TYPE_PASSTHRU)}};
    ASSERT_NE(mark.create(port), nullptr) << mark.error.message;
    Rule later{{item(RTE_FLOW_ITEM_TYPE_IPV4), item(RTE_FLOW_ITEM_TYPE_TCP)},
               {action(RTE_FLOW_ACTION_TYPE_QUEUE, &kToQueue3)}};
    later.attr.priority = 3;
    ASSERT_NE(later.create(port), nullptr) << later.error.message;
    EXPECT_EQ(port.arrives_at(tcp4().build(),
                              [](const rte_mbuf& packet) {
                                  EXPECT_NE(packet.ol_flags & RTE_MBUF_F_RX_FDIR_ID, 0u);
                                  EXPECT_EQ(packet.hash.fdir.hi, 77u);
                              }),
              3);
    EXPECT_EQ(port.arrives_at(
                  tcp4(1).build(),
                  [](const rte_mbuf& packet) { EXPECT_EQ(packet.ol_flags & RTE_MBUF_F_RX_FDIR_ID, 0u); }),
              3);
    rte_flow_error error;
    EXPECT_EQ(rte_flow_flush(port.port, &error), 0);
    EXPECT_EQ(port.nic->flow_rules(), 0u);
    EXPECT_TRUE(port.arrives_at(eth().ipv4("203.0.113.9", "10.0.0.1").tcp(1, 2, "S").build()));
}

TEST_F(SoftNicTest, MatchesIpv6AndVlans) {
    SoftPort port("", {});
    rte_flow_item_ipv6 spec{}, mask{};
    spec.hdr.src_addr[0] = mask.hdr.src_addr[0] = 0xfd;
    mask.hdr.src_addr[1] = 0xff;
    Rule six{{item(RTE_FLOW_ITEM_TYPE_ETH), item(RTE_FLOW_ITEM_TYPE_IPV6, &spec, &mask)},
             {action(RTE_FLOW_ACTION_TYPE_DROP)}};
    ASSERT_NE(six.create(port), nullptr) << six.error.message;
    EXPECT_FALSE(port.arrives_at(eth().ipv6("fd00::1", "fd00::2").udp(1, 2).build()));
    EXPECT_TRUE(port.arrives_at(eth().ipv6("fd01::1", "fd00::2").udp(1, 2).build()));

    const rte_flow_item_vlan seven{.hdr = {.vlan_tci = RTE_BE16(7)}};
    Rule vlan{
        {item(RTE_FLOW_ITEM_TYPE_ETH), item(RTE_FLOW_ITEM_TYPE_VLAN, &seven), item(RTE_FLOW_ITEM_TYPE_IPV4)},
        {action(RTE_FLOW_ACTION_TYPE_QUEUE, &kToQueue3)}};
    ASSERT_NE(vlan.create(port), nullptr) << vlan.error.message;
    const auto tagged = [](uint8_t number) {
        Frame frame = tcp4(1).build();
        const uint8_t tag[] = {0x81, 0x00, 0x00, number};
        frame.insert(frame.begin() + 12, std::begin(tag), std::end(tag));
        return frame;
    };
    EXPECT_EQ(port.arrives_at(tagged(7)), 3);
    EXPECT_EQ(port.arrives_at(tagged(8)), port.arrives_at(tcp4(1).build())) << "hashed behind the tag";
}

TEST_F(SoftNicTest, RefusesRulesInTheWordsOfDrivers) {
    SoftPort port("flow_rules=2,flow_items=ipv4+tcp,flow_actions=queue+drop,flow_masks=whole", {});
    const rte_flow_action_queue no_queue{.index = kQueues};
    const rte_flow_item ip = item(RTE_FLOW_ITEM_TYPE_IPV4), tcp = item(RTE_FLOW_ITEM_TYPE_TCP);
    const rte_flow_action drop = action(RTE_FLOW_ACTION_TYPE_DROP);
    rte_flow_item range = item(RTE_FLOW_ITEM_TYPE_TCP, &kPort2794, &kWholeSourcePort);
    range.last = &kPort2794;
    const rte_flow_item_ipv4 ttl{.hdr = {.time_to_live = 64}};
    const struct {
        const char* name;
        Rule rule;
        int result;
        rte_flow_error_type type;
    } cases[] = {
        {"good", {{ip, tcp}, {drop}}, 0, RTE_FLOW_ERROR_TYPE_NONE},
        {"item", {{item(RTE_FLOW_ITEM_TYPE_ETH), ip}, {drop}}, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM},
        {"action",
         {{ip}, {action(RTE_FLOW_ACTION_TYPE_MARK, &kMark77), drop}},
         -ENOTSUP,
         RTE_FLOW_ERROR_TYPE_ACTION},
        {"order", {{tcp, ip}, {drop}}, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM},
        {"range", {{ip, range}, {drop}}, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST},
        {"part of a field",
         {{ip, item(RTE_FLOW_ITEM_TYPE_TCP, &kBlockOne, &kBlockMask)}, {drop}},
         -ENOTSUP,
         RTE_FLOW_ERROR_TYPE_ITEM_MASK},
        {"field",
         {{item(RTE_FLOW_ITEM_TYPE_IPV4, &ttl, &ttl)}, {drop}},
         -ENOTSUP,
         RTE_FLOW_ERROR_TYPE_ITEM_MASK},
        {"mask alone",
         {{item(RTE_FLOW_ITEM_TYPE_IPV4, nullptr, &ttl)}, {drop}},
         -EINVAL,
         RTE_FLOW_ERROR_TYPE_ITEM_MASK},
        {"queue",
         {{ip}, {action(RTE_FLOW_ACTION_TYPE_QUEUE, &no_queue)}},
         -EINVAL,
         RTE_FLOW_ERROR_TYPE_ACTION_CONF},
        {"no fate", {{ip}, {}}, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION},
        {"two fates",
         {{ip}, {drop, action(RTE_FLOW_ACTION_TYPE_QUEUE, &kToQueue3)}},
         -EINVAL,
         RTE_FLOW_ERROR_TYPE_ACTION},
        {"egress", {{ip}, {drop}, {.egress = 1}}, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS},
        {"group", {{ip}, {drop}, {.group = 1, .ingress = 1}}, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP},
        {"priority",
         {{ip}, {drop}, {.priority = 1, .ingress = 1}},
         -ENOTSUP,
         RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY},
    };
    for (const auto& one : cases) {
        Rule rule = one.rule;
        EXPECT_EQ(rule.validate(port), one.result) << one.name;
        EXPECT_EQ(rule.error.type, one.type) << one.name;
        EXPECT_EQ(rule.error.message == nullptr, one.result == 0) << one.name;
    }
    Rule first{{ip, tcp}, {drop}}, again{{ip, tcp}, {drop}}, second{{ip}, {drop}}, third{{tcp}, {drop}};
    rte_flow* made = first.create(port);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(again.create(port), nullptr);
    EXPECT_EQ(rte_errno, EEXIST);
    EXPECT_NE(second.create(port), nullptr);
    EXPECT_EQ(third.create(port), nullptr);
    EXPECT_EQ(rte_errno, ENOSPC);
    EXPECT_EQ(third.error.type, RTE_FLOW_ERROR_TYPE_UNSPECIFIED);
    rte_flow_error error;
    EXPECT_EQ(rte_flow_destroy(port.port, made, &error), 0);
    EXPECT_EQ(rte_flow_destroy(port.port, made, &error), -EINVAL) << "it is gone";
    rte_eth_dev_stop(port.port);
    EXPECT_EQ(port.nic->flow_rules(), 0u) << "rules do not outlive a stop";
    Rule stopped{{ip}, {drop}};
    EXPECT_EQ(stopped.create(port), nullptr);

    SoftPort without("flow_rules=0", {});
    Rule any{{ip}, {drop}};
    EXPECT_EQ(any.validate(without), -ENOSYS) << "as ethdev says it of a driver without";
}

TEST_F(SoftNicTest, LeavesTheRestToTheKernelWhereIsolated) {
    SoftPort port("isolate=stopped");
    rte_flow_error error;
    EXPECT_EQ(rte_flow_isolate(port.port, 1, &error), 0);
    ASSERT_EQ(port.configure({}), 0);
    ASSERT_EQ(rte_eth_dev_start(port.port), 0);
    EXPECT_TRUE(port.nic->is_isolated());
    EXPECT_EQ(rte_flow_isolate(port.port, 0, &error), -EBUSY);
    const Frame ours = tcp4().build(), not_ours = tcp4(1).build();
    EXPECT_EQ(port.wire->put(ours).fate, Received::Fate::ToKernel);
    EXPECT_EQ(port.wire->kernel(), ours);
    Rule rule{{item(RTE_FLOW_ITEM_TYPE_IPV4), item(RTE_FLOW_ITEM_TYPE_TCP, &kPort2794, &kWholeSourcePort)},
              {action(RTE_FLOW_ACTION_TYPE_QUEUE, &kToQueue3)}};
    ASSERT_NE(rule.create(port), nullptr) << rule.error.message;
    EXPECT_EQ(port.arrives_at(ours), 3);
    EXPECT_EQ(port.wire->put(not_ours).fate, Received::Fate::ToKernel);
    SoftPort cannot("isolate=0");
    EXPECT_EQ(rte_flow_isolate(cannot.port, 1, &error), -ENOTSUP);
    SoftPort any_time("", {});
    EXPECT_EQ(rte_flow_isolate(any_time.port, 1, &error), 0);
    EXPECT_EQ(any_time.wire->put(ours).fate, Received::Fate::ToKernel);
    EXPECT_EQ(rte_flow_isolate(any_time.port, 0, &error), 0);
    EXPECT_TRUE(any_time.arrives_at(ours));
}

TEST_F(SoftNicTest, VerifiesAndFillsInChecksums) {
    constexpr uint64_t kBoth =
        RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
    SoftPort port("", {.rx_offloads = kBoth,
                       .tx_offloads = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM});
    const auto flags_of = [&](const Frame& frame) {
        uint64_t flags = 0;
        port.arrives_at(frame, [&](const rte_mbuf& packet) { flags = packet.ol_flags; });
        return flags;
    };
    EXPECT_EQ(flags_of(tcp4().build()), RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
    EXPECT_EQ(flags_of(tcp4().ip_checksum(1).build()),
              RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
    EXPECT_EQ(flags_of(tcp4().l4_checksum(1).build()),
              RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD);
    EXPECT_EQ(flags_of(eth().ipv6("fd00::1", "fd00::2").udp(1, 2).build()), RTE_MBUF_F_RX_L4_CKSUM_GOOD);
    EXPECT_EQ(flags_of(eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).l4_checksum(0).build()),
              RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);

    // Sent with checksums left to the hardware; the field holds that of the pseudo header, as drivers
    // require.
    constexpr uint64_t kAsk = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_CKSUM;
    const Frame right = tcp4().payload("twelve bytes").build();
    Frame left = tcp4().payload("twelve bytes").ip_checksum(0).build();
    const uint16_t pseudo = rte_ipv4_phdr_cksum(reinterpret_cast<const rte_ipv4_hdr*>(left.data() + 14), 0);
    std::memcpy(left.data() + 14 + 20 + 16, &pseudo, sizeof pseudo);
    port.send(left, kAsk);
    EXPECT_EQ(port.wire->take(), right);
    Frame forgotten = left;
    forgotten[14 + 20 + 16] = forgotten[14 + 20 + 17] = 0;
    port.send(forgotten, kAsk);
    EXPECT_NE(port.wire->take(), right) << "who leaves the pseudo header out is not helped";
    port.send(right);
    EXPECT_EQ(port.wire->take(), right);
}

TEST_F(SoftNicTest, LoopsBackWhereThatIsConfigured) {
    SoftPort port("", {.rx_offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH, .loopback = 1});
    EXPECT_TRUE(port.nic->is_looped_back());
    port.send(tcp4().build());
    rte_mbuf* packet = port.poll(0x51ccc178 % 128 % kQueues);
    ASSERT_NE(packet, nullptr);
    EXPECT_EQ(packet->hash.rss, 0x51ccc178);
    rte_pktmbuf_free(packet);
    EXPECT_EQ(port.wire->try_take(), nullptr) << "nothing is on the wire";
    EXPECT_EQ(port.wire->put(tcp4().build()).fate, Received::Fate::NotTaken);
    SoftPort cannot("loopback=0");
    EXPECT_EQ(cannot.configure({.loopback = 1}), -ENOTSUP);
}

TEST_F(SoftNicTest, TakesWhatIsForItAndFits) {
    SoftPort port("", {});
    EXPECT_FALSE(port.arrives_at(tcp4().to_mac("02:00:00:00:00:99").build()));
    rte_eth_promiscuous_enable(port.port);
    EXPECT_TRUE(port.arrives_at(tcp4().to_mac("02:00:00:00:00:99").build()));
    EXPECT_TRUE(port.arrives_at(tcp4().pad_to(1514).build()));
    EXPECT_FALSE(port.arrives_at(tcp4().pad_to(1515).build()));
    rte_eth_stats stats{};
    EXPECT_EQ(rte_eth_stats_get(port.port, &stats), 0);
    EXPECT_EQ(stats.ipackets, 2u);
    EXPECT_EQ(stats.ierrors, 1u);
    port.nic->set_patience(false);
    uint32_t queued = 0;
    for (int i = 0; i < 300; ++i) {
        queued += port.wire->put(tcp4().build()).fate == Received::Fate::Queued ? 1 : 0;
    }
    EXPECT_EQ(queued, 256u) << "as many as there are descriptors";
    EXPECT_EQ(rte_eth_stats_get(port.port, &stats), 0);
    EXPECT_EQ(stats.imissed, 300 - queued);

    EXPECT_EQ(SoftPort("", {.mtu = 9000}).started, -EINVAL) << "a frame does not fit an mbuf";
    SoftPort jumbo("", {.rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER, .mtu = 9000});
    ASSERT_EQ(jumbo.started, 0);
    const Frame big = tcp4().payload(Frame(8000, 0x77)).build();
    EXPECT_TRUE(jumbo.arrives_at(big, [&](const rte_mbuf& packet) {
        EXPECT_EQ(packet.pkt_len, big.size());
        EXPECT_EQ(packet.nb_segs, 4);
    }));
}

TEST_F(SoftNicTest, TellsOfLinkAndRemoval) {
    SoftPort port("", {.interrupts = true});
    static std::set<int> events;
    events.clear();
    const auto hear = [](uint16_t, rte_eth_event_type event, void*, void*) {
        events.insert(event);
        return 0;
    };
    rte_eth_dev_callback_register(port.port, RTE_ETH_EVENT_INTR_LSC, hear, nullptr);
    rte_eth_dev_callback_register(port.port, RTE_ETH_EVENT_INTR_RMV, hear, nullptr);
    const auto is_up = [&] {
        rte_eth_link link{};
        rte_eth_link_get_nowait(port.port, &link);
        return link.link_status == RTE_ETH_LINK_UP;
    };
    EXPECT_TRUE(is_up());
    port.nic->set_link(false);
    EXPECT_EQ(events, (std::set<int>{RTE_ETH_EVENT_INTR_LSC}));
    EXPECT_FALSE(is_up());
    EXPECT_FALSE(port.arrives_at(tcp4().build()));
    port.nic->set_link(true);
    EXPECT_TRUE(is_up());
    EXPECT_TRUE(port.arrives_at(tcp4().build()));
    port.nic->remove();
    EXPECT_EQ(events, (std::set<int>{RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RMV}));
    EXPECT_FALSE(is_up());
    EXPECT_FALSE(port.arrives_at(tcp4().build()));
    rte_eth_dev_callback_unregister(port.port, RTE_ETH_EVENT_INTR_LSC, hear, nullptr);
    rte_eth_dev_callback_unregister(port.port, RTE_ETH_EVENT_INTR_RMV, hear, nullptr);
}

TEST_F(SoftNicTest, WakesWhoSleepsOnAQueue) {
    SoftPort port("", {.interrupts = true});
    const auto queue = static_cast<uint16_t>(0x51ccc178 % 128 % kQueues);
    ASSERT_EQ(rte_eth_dev_rx_intr_ctl_q(port.port, queue, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, nullptr),
              0);
    const auto wakes = [] {
        rte_epoll_event event{};
        return rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, 20) == 1;
    };
    port.wire->put(tcp4().build());
    EXPECT_FALSE(wakes()) << "not armed";
    EXPECT_EQ(rte_eth_dev_rx_intr_enable(port.port, queue), 0);
    EXPECT_TRUE(wakes()) << "something had come before";
    rte_pktmbuf_free(port.poll(queue));
    EXPECT_EQ(rte_eth_dev_rx_intr_enable(port.port, queue), 0);
    EXPECT_FALSE(wakes()) << "nothing is there";
    port.wire->put(tcp4().build());
    EXPECT_TRUE(wakes());
    port.wire->put(tcp4().build());
    EXPECT_FALSE(wakes()) << "once, until it is armed again";
    EXPECT_EQ(port.nic->interrupts(), 2u);
    EXPECT_EQ(rte_eth_dev_rx_intr_disable(port.port, queue), 0);
    rte_eth_dev_rx_intr_ctl_q(port.port, queue, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, nullptr);
}

TEST_F(SoftNicTest, RefusesArgumentsThatItHasNot) {
    for (const char* wrong :
         {"queues=65", "queues=0", "reta=100", "reta=1024", "key_bytes=41", "key=maybe", "rss=ipv4+tcp9",
          "spread=evenly", "flow_items=", "mac=02:00:00", "colour=red", "loopback=2", "queues"}) {
        EXPECT_NE(rte_vdev_init("net_soft999", wrong), 0) << wrong;
        EXPECT_EQ(SoftNic::find("net_soft999"), nullptr) << wrong;
    }
}

}  // namespace soft_nic_test
}  // namespace penstock::test
