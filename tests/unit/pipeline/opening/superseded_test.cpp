// SPDX-License-Identifier: Apache-2.0
// Connections that another gateway serves again end at this one, and continue from their copies.
#include "dataplane/pipeline/opening/superseded.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "dataplane/copies/store.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace superseded_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kPeer = IpAddr::v4(198, 51, 100, 7);
const packet::FlowKey kKey{kPeer, kVip, 40'000, 80, Protocol::Tcp, {}};

class Superseded : public testing::Test {
 protected:
    Superseded() {
        gateway.publish({{.name = "web", .frontends = {{kVip, 80}}, .backends = {11, 12}}});
        gateway.worker(0).copies = store.get();
        EXPECT_EQ(gateway.send(segment("S"), kUp).verdict, Verdict::Transmit);
        gateway.establish_all();
    }
    static std::vector<uint8_t> segment(const char* flags) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4(kPeer.to_string(), kVip.to_string())
            .tcp(40'000, 80, flags)
            .seq(1'000)
            .ack(2'000)
            .build();
    }
    copies::OwnConnection own() {
        const conn::Table& table = gateway.worker(0).connections;
        const ConnectionIndex index = table.find(kKey, table.hash(kKey)).index;
        return {.worker = {0},
                .unit = index.value,
                .generation = table.generation(index),
                .connection = table.connection(index)};
    }
    void end() { pipeline::end_superseded(gateway.worker(0)); }

    std::unique_ptr<copies::Store> store = *copies::Store::create(100, HashKey::random());
    VirtualGateway gateway;
};

TEST_F(Superseded, EndsSilentlyAndContinuesFromItsCopy) {
    conn::Connection copy = own().connection;
    ASSERT_TRUE(store->put(copy).is_set());
    const std::vector<uint8_t> expected = gateway.send(segment("A"), kUp).frame;
    ASSERT_TRUE(store->order_end(own()));
    EXPECT_EQ(gateway.connections(), 1U);
    end();
    EXPECT_EQ(gateway.connections(), 0U);
    EXPECT_EQ(gateway.count(stats::Counter::ConnectionsTakenOver), 0U);
    const Outcome outcome = gateway.send(segment("A"), kUp);
    EXPECT_EQ(outcome.verdict, Verdict::Transmit);
    EXPECT_EQ(outcome.frame, expected);
    EXPECT_EQ(gateway.count(stats::Counter::ConnectionsTakenOver), 1U);
}

TEST_F(Superseded, AConnectionThatAPacketHasRenewedStays) {
    ASSERT_TRUE(store->order_end(own()));
    gateway.advance_seconds(5);
    EXPECT_EQ(gateway.send(segment("A"), kUp).verdict, Verdict::Transmit);
    end();
    EXPECT_EQ(gateway.connections(), 1U);
}

TEST_F(Superseded, AnotherConnectionInItsPlaceStays) {
    copies::OwnConnection former = own();
    former.generation -= 2;
    ASSERT_TRUE(store->order_end(former));
    end();
    EXPECT_EQ(gateway.connections(), 1U);
    ASSERT_TRUE(store->order_end(own()));
    ASSERT_TRUE(store->order_end(own()));
    end();
    EXPECT_EQ(gateway.connections(), 0U) << "and the second order finds none";
}

TEST_F(Superseded, OrdersWaitForTheirWorkerInABoundedQueue) {
    uint32_t orders = 0;
    while (store->order_end(own())) {
        ASSERT_LT(++orders, 10'000U);
    }
    EXPECT_GT(orders, 0U);
    EXPECT_FALSE(store->next_ending({1}));
    while (gateway.connections() > 0 || store->next_ending({0})) {
        end();
    }
    EXPECT_FALSE(store->next_ending({0}));
}

}  // namespace superseded_test
}  // namespace penstock::test
