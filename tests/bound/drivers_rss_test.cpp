// SPDX-License-Identifier: Apache-2.0
// How a NicPort determines the RSS of its device, on software NICs with different behaviour: the requested
// settings, the values read back, whether RSS is relied on, and whether packets then reach the queue
// predicted by the plan. The NIC hashes by rte_softrss, the plan by our Toeplitz.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <memory>

#include "drivers/eal/mempool.hpp"
#include "drivers/port/nic_port.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/soft_nic/soft_nic.hpp"

namespace penstock::drivers {
namespace drivers_rss_test {

// A port from arguments to a started device, as the daemon initialises it.
class StartedPort {
 public:
    StartedPort(const std::string& arguments, unsigned workers, const std::string& driver = "net_soft") {
        static int number = 0;
        name_ = driver + std::to_string(700 + number++);
        NicPortOptions options{
            .device = name_ + (arguments.empty() ? "" : "," + arguments), .twin_name = "up", .addresses = {}};
        options.rx_queues = options.tx_queues = workers;
        options.rss_key = random_rss_key();
        options.flow_rules = false;  // effect of RSS alone
        auto probed = NicPort::probe(NicPortId{0}, options, {});
        if (!probed) {
            error = probed.error().what;
            return;
        }
        port = std::move(*probed);
        MempoolDemand demand{.workers = workers};
        port->add_demand(demand);
        auto done = pools_.add(port->facts().socket, demand);
        if (done) {
            done = port->configure(pools_.on(port->facts().socket), workers);
        }
        if (done) {
            done = port->start();
        }
        if (!done) {
            error = done.error().what;
        }
    }
    ~StartedPort() { port.reset(); }  // before its buffers
    StartedPort(const StartedPort&) = delete;
    StartedPort& operator=(const StartedPort&) = delete;

    [[nodiscard]] const NicPortFacts& facts() const { return port->facts(); }
    [[nodiscard]] test::SoftNic& nic() const { return *test::SoftNic::find(name_); }
    [[nodiscard]] PortSetting setting(const std::string& name) const {
        const auto found = std::ranges::find(facts().settings, name, &PortSetting::name);
        return found == facts().settings.end() ? PortSetting{} : *found;
    }
    // Packets of the covered kinds that would not have reached the worker predicted by the plan, of `count`
    // of each kind.
    [[nodiscard]] unsigned misplaced(unsigned count, const std::string& by = {}) const {
        const nat::ReplyHash& hash = *facts().steering.reply_hash;
        test::SoftWire wire(by.empty() ? nic() : *test::SoftNic::find(by));
        test::Prng prng(7);
        unsigned wrong = 0;
        for (unsigned i = 0; i < 4 * count; ++i) {
            const IpFamily family = i % 2 == 0 ? IpFamily::V4 : IpFamily::V6;
            const Protocol protocol = i / 2 % 2 == 0 ? Protocol::Tcp : Protocol::Udp;
            if (!hash.covers(family, protocol)) {
                continue;
            }
            packet::FlowKey key;
            key.source = address(family, prng);
            key.destination = address(family, prng);
            key.source_port = static_cast<L4Port>(prng.between(1, 65'535));
            key.destination_port = static_cast<L4Port>(prng.between(1, 65'535));
            key.protocol = protocol;
            const test::Received received = wire.put(frame_of(key));
            drain();
            EXPECT_EQ(received.fate, test::Received::Fate::Queued);
            wrong += received.queue % workers_of(hash) != nat::worker_of(hash, key).value ? 1 : 0;
        }
        return wrong;
    }

    std::unique_ptr<NicPort> port;
    std::string error;

 private:
    static unsigned workers_of(const nat::ReplyHash& hash) {
        return std::ranges::max(hash.worker_of, {}, &WorkerId::value).value + 1u;
    }
    static IpAddr address(IpFamily family, test::Prng& prng) {
        if (family == IpFamily::V4) {
            return IpAddr::v4(10, prng.byte(), prng.byte(), static_cast<uint8_t>(prng.between(1, 254)));
        }
        std::array<uint8_t, 16> bytes{0x20, 0x01, 0x0d, 0xb8};
        for (size_t i = 4; i < bytes.size(); ++i) {
            bytes[i] = prng.byte();
        }
        return IpAddr::v6(bytes);
    }
    [[nodiscard]] std::vector<uint8_t> frame_of(const packet::FlowKey& key) const {
        test::PacketBuilder packet = test::eth().to_mac(facts().mac.to_string());
        const std::string source = key.source.to_string(), destination = key.destination.to_string();
        key.source.is_v4() ? packet.ipv4(source, destination) : packet.ipv6(source, destination);
        key.protocol == Protocol::Tcp ? packet.tcp(key.source_port, key.destination_port, "A")
                                      : packet.udp(key.source_port, key.destination_port);
        return packet.build();
    }
    // No worker polls the queues here.
    void drain() const {
        for (uint16_t queue = 0; queue < facts().rx_queues; ++queue) {
            rte_mbuf* mbuf = nullptr;
            while (rte_eth_rx_burst(facts().dpdk_port, queue, &mbuf, 1) == 1) {
                rte_pktmbuf_free(mbuf);
            }
        }
    }

    std::string name_;
    Mempools pools_;
};

class PortRss : public testing::Test {
 protected:
    void SetUp() override { ASSERT_TRUE(test::start_eal()); }
};

TEST_F(PortRss, AGoodDeviceTakesEverythingAndKeepsItsWord) {
    for (const unsigned workers : {2u, 3u, 4u}) {
        const StartedPort port("", workers);
        ASSERT_EQ(port.error, "");
        EXPECT_STREQ(to_string(port.facts().steering.steering), "predictable-rss")
            << port.facts().steering.reason;
        EXPECT_TRUE(port.facts().steering.flow_stays_on_queue);
        EXPECT_EQ(port.setting("rss-key"),
                  (PortSetting{"rss-key", "random, 40 bytes", "random, 40 bytes", ""}));
        const std::string table = "128 entries over " + std::to_string(workers) + " queues in turn";
        EXPECT_EQ(port.setting("rss-table"), (PortSetting{"rss-table", table, table, ""}));
        EXPECT_EQ(port.setting("rss-types"),
                  (PortSetting{"rss-types", "tcp4,udp4,tcp6,udp6", "tcp4,udp4,tcp6,udp6", ""}));
        EXPECT_EQ(
            port.setting("self-check"),
            (PortSetting{"self-check", "by loopback", "64 of 64 known packets reached their queue", ""}));
        EXPECT_FALSE(port.nic().is_looped_back()) << "the check must leave an ordinary port behind";
        EXPECT_EQ(port.misplaced(500), 0u);
    }
}

TEST_F(PortRss, WhatIsReadIsWhatCounts) {
    const struct {
        const char* device;
        const char* steering;
        const char* reason;   // a substring of the reason for `steering`
        const char* setting;  // name of the setting checked below
        const char* granted;
        const char* why;
    } rows[] = {
        {"key=fixed", "predictable-rss", "", "rss-key", "the device's own, 40 bytes",
         "the driver does not accept a key"},
        {"key=ignored", "predictable-rss", "", "rss-key", "the device's own, 40 bytes",
         "the driver accepted it, but reports another one"},
        {"key=hidden", "handoff", "the driver does not report its RSS key", "rss-key", "",
         "the driver does not accept a key"},
        {"key_bytes=52", "predictable-rss", "", "rss-key", "random, 52 bytes", ""},
        {"reta_access=fixed", "predictable-rss", "", "rss-table", "", ""},
        {"reta_access=ignored", "predictable-rss", "", "rss-table", "", ""},
        {"reta_access=partly", "predictable-rss", "", "rss-table", "128 entries, the device's own",
         "the driver accepted it, but reports another one"},
        {"reta_access=beyond", "handoff", "names queue 4 of 4", "rss-table", "",
         "the RSS indirection table names queue 4 of 4"},
        {"reta_access=hidden", "handoff", "the driver does not report its RSS indirection table", "rss-table",
         "", "does not report"},
        {"reta=0", "handoff", "no RSS indirection table", "rss-table", "", "no RSS indirection table"},
        {"reta=512", "predictable-rss", "", "rss-table", "512 entries over 4 queues in turn", ""},
        {"rss=tcp4+tcp6", "predictable-rss", "replies of udp4,udp6 are handed over", "rss-types", "tcp4,tcp6",
         "ports of udp4,udp6"},
        {"rss=none", "handoff", "the device has no RSS", "rx-queues", "4", ""},
        {"queues=2", "handoff", "2 receive queues for 4 workers", "rx-queues", "2",
         "the device has no more queues"},
        {"loopback=0", "predictable-rss", "", "self-check", "by computing: 64 known packets predicted alike",
         "configure"},
        {"spread=lies", "handoff", "the port's RSS differs from its report: of 64 known packets",
         "self-check", "of 64 known packets", "reached queue"},
        {"spread=zero", "handoff", "the port's RSS differs from its report", "self-check",
         "of 64 known packets", "reached queue 0 instead of"},
        {"spread=random", "handoff", "the port's RSS differs from its report", "self-check",
         "of 64 known packets", "reached queue"},
    };
    for (const auto& row : rows) {
        const StartedPort port(row.device, 4);
        ASSERT_EQ(port.error, "") << row.device;
        const SteeringPlan& plan = port.facts().steering;
        EXPECT_STREQ(to_string(plan.steering), row.steering) << row.device << ": " << plan.reason;
        EXPECT_NE(plan.reason.find(row.reason), std::string::npos) << row.device << ": " << plan.reason;
        const PortSetting setting = port.setting(row.setting);
        EXPECT_NE(setting.granted.find(row.granted), std::string::npos)
            << row.device << ": " << setting.granted;
        EXPECT_NE(setting.reason.find(row.why), std::string::npos) << row.device << ": " << setting.reason;
        EXPECT_EQ(port.facts().check_failed.empty(),
                  std::string_view(row.device).find("spread") == std::string_view::npos)
            << row.device;
        EXPECT_FALSE(port.nic().is_looped_back()) << row.device;
        if (plan.reply_hash) {
            EXPECT_EQ(port.misplaced(100), 0u) << row.device;
        }
    }
}

// A NIC with wrong behaviour and without loopback is detected only by the workers, which count misplaced
// packets.
TEST_F(PortRss, ALiarThatCannotLoopBackIsBelieved) {
    const StartedPort port("spread=lies,loopback=0", 4);
    ASSERT_EQ(port.error, "");
    EXPECT_STREQ(to_string(port.facts().steering.steering), "predictable-rss");
    EXPECT_GT(port.misplaced(100), 100u);
}

// A bond of two: whichever member a packet arrives by, its queue is the one predicted by the bond's own table
// and key.
TEST_F(PortRss, MembersOfABondSpreadAlike) {
    for (const char* member : {"net_soft800", "net_soft801"}) {
        ASSERT_EQ(rte_vdev_init(member, ""), 0);
    }
    {
        const StartedPort bond("mode=2,member=net_soft800,member=net_soft801", 4, "net_bonding");
        ASSERT_EQ(bond.error, "");
        EXPECT_EQ(bond.facts().driver, "net_bonding");
        EXPECT_EQ(bond.facts().rx_queues, 4);
        EXPECT_STREQ(to_string(bond.facts().steering.steering), "predictable-rss")
            << bond.facts().steering.reason;
        EXPECT_EQ(bond.setting("rss-key").granted, "random, 40 bytes");
        EXPECT_EQ(bond.setting("self-check").asked, "by computing") << "the bond itself has no loopback";
        EXPECT_EQ(bond.port->members().size(), 2u);
        for (const char* member : {"net_soft800", "net_soft801"}) {
            EXPECT_EQ(bond.misplaced(200, member), 0u) << member;
        }
    }
    for (const char* member : {"net_soft800", "net_soft801"}) {
        rte_vdev_uninit(member);
    }
}

TEST_F(PortRss, ABondNamesWhatDidNotJoin) {
    const StartedPort bond("mode=1,member=net_nobody0,member=net_nobody1", 2, "net_bonding");
    EXPECT_NE(bond.error.find("the bond does not accept its members"), std::string::npos) << bond.error;
}

TEST_F(PortRss, OneWorkerAsksForNothing) {
    const StartedPort port("spread=lies", 1);
    ASSERT_EQ(port.error, "");
    EXPECT_EQ(port.facts().steering.reason, "one worker owns everything");
    EXPECT_EQ(port.setting("rss-key"), PortSetting{});
    EXPECT_EQ(port.setting("self-check"), PortSetting{});
}

TEST_F(PortRss, OnlyWhatSomebodyUsesIsAskedFor) {
    {
        const StartedPort port("", 2);
        ASSERT_EQ(port.error, "");
        EXPECT_EQ(port.facts().offloads, (std::vector<std::string>{"rx-ipv4-cksum", "rss"}));
        EXPECT_EQ(port.setting("rx-ipv4-cksum"), (PortSetting{"rx-ipv4-cksum", "on", "on", ""}));
    }
    {
        // The device's configuration, not the port's report of it.
        const StartedPort port("", 2);
        ASSERT_EQ(port.error, "");
        rte_eth_conf told{};
        ASSERT_EQ(rte_eth_dev_conf_get(port.facts().dpdk_port, &told), 0);
        EXPECT_EQ(told.txmode.offloads, 0u);
        EXPECT_EQ(told.rxmode.offloads, RTE_ETH_RX_OFFLOAD_IPV4_CKSUM);
    }
    const StartedPort plain("checksum=0", 2);
    ASSERT_EQ(plain.error, "");
    EXPECT_EQ(plain.facts().offloads, (std::vector<std::string>{"rss"}));
    EXPECT_EQ(plain.setting("rx-ipv4-cksum").reason,
              "not offered by the device; workers verify the checksum");
}

}  // namespace drivers_rss_test
}  // namespace penstock::drivers
