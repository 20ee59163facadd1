// SPDX-License-Identifier: Apache-2.0
// A bond of two software NICs as a NicPort: which member is active, and where traffic goes when one loses its
// link.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <memory>

#include "drivers/eal/mempool.hpp"
#include "drivers/port/nic_port.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/soft_nic/soft_nic.hpp"

namespace penstock::drivers {
namespace bond_test {

const std::string kFirst = "net_soft900", kSecond = "net_soft901";

class BondPort : public testing::Test {
 protected:
    void SetUp() override {
        ASSERT_TRUE(test::start_eal());
        for (const std::string& member : {kFirst, kSecond}) {
            ASSERT_EQ(rte_vdev_init(member.c_str(), ""), 0);
        }
        const std::string device = "net_bonding900,mode=active-backup,member=" + kFirst +
                                   ",member=" + kSecond + ",primary=" + kSecond;
        auto probed = NicPort::probe(NicPortId{0},
                                     {.device = device,
                                      .twin_name = "up",
                                      .addresses = {},
                                      .rx_queues = 2,
                                      .tx_queues = 2,
                                      .rss_key = random_rss_key()},
                                     {});
        ASSERT_TRUE(probed) << probed.error().what;
        port_ = std::move(*probed);
        MempoolDemand demand{.workers = 2};
        port_->add_demand(demand);
        ASSERT_TRUE(pools_.add(port_->facts().socket, demand));
        const auto configured = port_->configure(pool(), 2);
        ASSERT_TRUE(configured) << configured.error().what;
        const auto started = port_->start();
        ASSERT_TRUE(started) << started.error().what;
    }
    void TearDown() override {
        port_.reset();
        for (const std::string& member : {kFirst, kSecond}) {
            rte_vdev_uninit(member.c_str());
        }
    }

    rte_mempool* pool() { return pools_.on(port_->facts().socket); }
    [[nodiscard]] std::vector<uint8_t> frame() const {
        return test::eth()
            .to_mac(port_->facts().mac.to_string())
            .ipv4("10.0.0.1", "10.0.0.2")
            .udp(1000, 2000)
            .build();
    }
    // Whether a frame sent through the port leaves by `member` and by no other.
    [[nodiscard]] bool leaves_by(const std::string& member) {
        rte_mbuf* mbuf = rte_pktmbuf_alloc(pool());
        const std::vector<uint8_t> sent = frame();
        std::copy(sent.begin(), sent.end(),
                  reinterpret_cast<uint8_t*>(rte_pktmbuf_append(mbuf, static_cast<uint16_t>(sent.size()))));
        if (rte_eth_tx_burst(port_->facts().dpdk_port, 0, &mbuf, 1) != 1) {
            rte_pktmbuf_free(mbuf);
            return false;
        }
        bool left = false, strayed = false;
        for (const std::string& name : {kFirst, kSecond}) {
            if (rte_mbuf* const seen = test::SoftWire(*test::SoftNic::find(name)).try_take()) {
                (name == member ? left : strayed) = true;
                rte_pktmbuf_free(seen);
            }
        }
        return left && !strayed;
    }
    // Whether a frame from the wire of `member` reaches a queue of the port.
    [[nodiscard]] bool comes_by(const std::string& member) {
        if (test::SoftWire(*test::SoftNic::find(member)).put(frame()).fate != test::Received::Fate::Queued) {
            return false;
        }
        bool came = false;
        for (uint16_t queue = 0; queue < port_->facts().rx_queues; ++queue) {
            rte_mbuf* mbuf = nullptr;
            // A bond polls its members in turn, so one call may poll the wrong one.
            for (int tries = 0; tries < 2; ++tries) {
                if (rte_eth_rx_burst(port_->facts().dpdk_port, queue, &mbuf, 1) == 1) {
                    rte_pktmbuf_free(mbuf);
                    came = true;
                }
            }
        }
        return came;
    }
    static void set_link(const std::string& member, bool up) { test::SoftNic::find(member)->set_link(up); }

    Mempools pools_;
    std::unique_ptr<NicPort> port_;
};

TEST_F(BondPort, FailsOverAndBackWithTheLink) {
    EXPECT_EQ(port_->facts().driver, "net_bonding");
    EXPECT_EQ(port_->facts().rx_queues, 2);
    EXPECT_EQ(port_->members(), (std::vector{kSecond, kFirst})) << "the primary is at work";
    EXPECT_TRUE(port_->link_up());
    EXPECT_TRUE(leaves_by(kSecond));
    EXPECT_TRUE(comes_by(kSecond));

    set_link(kSecond, false);
    EXPECT_EQ(port_->members(), (std::vector{kFirst, kSecond}));
    EXPECT_TRUE(port_->link_up()) << "one member is enough";
    EXPECT_TRUE(leaves_by(kFirst));
    EXPECT_TRUE(comes_by(kFirst));

    set_link(kSecond, true);
    EXPECT_EQ(port_->members(), (std::vector{kSecond, kFirst})) << "the primary takes over again";
    EXPECT_TRUE(leaves_by(kSecond));
}

TEST_F(BondPort, HasALinkWhileAnyMemberHasOne) {
    set_link(kSecond, false);
    EXPECT_TRUE(port_->link_up());
    (void)port_->take_link_change();
    set_link(kFirst, false);
    EXPECT_FALSE(port_->link_up());
    EXPECT_TRUE(port_->take_link_change()) << "the twin's carrier follows at once";
    EXPECT_FALSE(leaves_by(kFirst));
    EXPECT_FALSE(leaves_by(kSecond));
    set_link(kFirst, true);
    EXPECT_TRUE(port_->link_up());
    EXPECT_TRUE(leaves_by(kFirst));
}

}  // namespace bond_test
}  // namespace penstock::drivers
