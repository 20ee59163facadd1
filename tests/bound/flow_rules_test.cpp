// Rules that drop, on a software NIC: what ends in the NIC is what software would drop, and no more. The other kinds: tests/steering.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "drivers/flow_install.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/soft_nic/soft_nic.hpp"

namespace penstock::drivers {
namespace {

using test::eth;
using test::Received;
using Fate = Received::Fate;
using Frame = std::vector<uint8_t>;

constexpr uint16_t kQueues = 4;
const IpAddr kVip = IpAddr::v4(198, 51, 100, 7);

rte_mempool* pool() {
    static rte_mempool* made = rte_pktmbuf_pool_create("flow_rules_test", 4095, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    return made;
}

class SoftFlows : public testing::Test {
 protected:
    void SetUp() override { ASSERT_TRUE(test::start_eal()); }
    void TearDown() override {
        flows.reset();
        if (nic != nullptr) {
            EXPECT_EQ(nic->flow_rules(), 0U) << "rules were left behind";
            rte_eth_dev_stop(port);
            rte_vdev_uninit(name.c_str());
        }
    }

    void open(const std::string& arguments = "") {
        static int number = 60;
        name = "net_soft" + std::to_string(number++);
        ASSERT_EQ(rte_vdev_init(name.c_str(), ("mac=02:00:00:00:00:02" + (arguments.empty() ? "" : "," + arguments)).c_str()), 0);
        ASSERT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &port), 0);
        nic = test::SoftNic::find(name);
        ASSERT_NE(nic, nullptr);
        wire = std::make_unique<test::SoftWire>(*nic);
        rte_eth_conf conf{};
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
        ASSERT_EQ(rte_eth_dev_configure(port, kQueues, kQueues, &conf), 0);
        for (uint16_t queue = 0; queue < kQueues; ++queue) {
            ASSERT_EQ(rte_eth_rx_queue_setup(port, queue, 256, 0, nullptr, pool()), 0);
            ASSERT_EQ(rte_eth_tx_queue_setup(port, queue, 256, 0, nullptr), 0);
        }
        ASSERT_EQ(rte_eth_dev_start(port), 0);
        auto driver = open_flow_driver(port);
        facts = flow_port_facts(port, kQueues);
        support = probe_flow_support(*driver, PmdProfile{.driver = "net_soft", .binding = Binding::Bifurcated}, facts, kQueues);
        EXPECT_EQ(nic->flow_rules(), 0U) << "the probe leaves nothing behind";
        flows = std::make_unique<PortFlows>(std::move(driver), facts);
    }
    // The packet, where one came, is freed.
    Received arrive(const Frame& frame) {
        const Received received = wire->put(frame);
        rte_mbuf* packet = nullptr;
        if (received.fate == Fate::Queued && rte_eth_rx_burst(port, received.queue, &packet, 1) == 1) {
            rte_pktmbuf_free(packet);
        }
        return received;
    }
    std::string name;
    uint16_t port = 0;
    test::SoftNic* nic = nullptr;
    std::unique_ptr<test::SoftWire> wire;
    FlowPortFacts facts;
    FlowSupport support;
    std::unique_ptr<PortFlows> flows;
};

TEST_F(SoftFlows, ABlockedSourceIsDroppedAndCounted) {
    open();
    ASSERT_TRUE(support.source_drop.validates && support.counts);
    const FlowRule rule{
        FlowKind::SourceDrop, {.family = IpFamily::V4, .source = *Prefix::parse("192.0.2.64/26")}, {FlowVerb::Drop, 0}, true};
    ASSERT_TRUE(flows->add(rule));
    const auto from = [](const char* source) { return eth().ipv4(source, "198.51.100.7"); };
    EXPECT_EQ(arrive(from("192.0.2.64").tcp(1, 80, "S").build()).fate, Fate::Dropped);
    EXPECT_EQ(arrive(from("192.0.2.127").udp(1, 53).build()).fate, Fate::Dropped);
    EXPECT_EQ(arrive(from("192.0.2.100").icmp(8, 0).build()).fate, Fate::Dropped);
    EXPECT_EQ(arrive(from("192.0.2.100").more_fragments().udp(1, 53).build()).fate, Fate::Dropped);
    EXPECT_EQ(arrive(from("192.0.2.63").tcp(1, 80, "S").build()).fate, Fate::Queued);
    EXPECT_EQ(arrive(from("192.0.2.128").tcp(1, 80, "S").build()).fate, Fate::Queued);
    const auto hits = flows->hits(rule);
    ASSERT_TRUE(hits);
    EXPECT_EQ(hits->packets, 4U);
    EXPECT_GT(hits->bytes, 0U);
    ASSERT_TRUE(flows->remove(rule));
    EXPECT_EQ(arrive(from("192.0.2.64").tcp(1, 80, "S").build()).fate, Fate::Queued);
}

TEST_F(SoftFlows, ADeniedRangeOpensNothingAndItsOpenFlowsGoOn_SRC005) {
    open();
    ASSERT_TRUE(flows->add({FlowKind::SourceDrop,
                            {.family = IpFamily::V4,
                             .source = *Prefix::parse("192.0.2.0/24"),
                             .destination = kVip,
                             .ip_protocol = kIpTcp,
                             .destination_port = 443,
                             .destination_port_mask = 0xffff,
                             .opens_tcp = true},
                            {FlowVerb::Drop, 0},
                            true}));
    const auto from = [](const char* source, uint16_t to_port, const char* flags) {
        return eth().ipv4(source, "198.51.100.7").tcp(40'000, to_port, flags).build();
    };
    EXPECT_EQ(arrive(from("192.0.2.9", 443, "S")).fate, Fate::Dropped);
    for (const char* flags : {"A", "PA", "FA", "R", "SA"}) {
        EXPECT_EQ(arrive(from("192.0.2.9", 443, flags)).fate, Fate::Queued) << flags;
    }
    EXPECT_EQ(arrive(from("192.0.2.9", 80, "S")).fate, Fate::Queued);
    EXPECT_EQ(arrive(from("192.0.3.9", 443, "S")).fate, Fate::Queued);
}

}  // namespace
}  // namespace penstock::drivers
