// SPDX-License-Identifier: Apache-2.0
// The last step: a packet is sent, held, split or dropped by name.
#include "dataplane/pipeline/forward.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/packet_builder.hpp"
#include "tests/support/reverse_path.hpp"
#include "tests/support/virtual_gateway.hpp"
#include "tests/unit/pipeline/web_service.hpp"

namespace penstock::test {
namespace forward_test {

TEST(Forwarding, NamesWhatStopsItOnTheWayOut) {
    VirtualGateway gateway;
    gateway.publish({web()});
    gateway.set_unresolved({11});
    const Outcome held = gateway.send(syn(1).build());
    EXPECT_EQ(held.verdict, Verdict::Hold);
    EXPECT_EQ(held.egress, kCluster);
    gateway.set_unresolved({});
    gateway.set_mtu(100);
    EXPECT_EQ(gateway.send(syn(2).payload(std::string(61, 'x')).build()).verdict, Verdict::Split);
    EXPECT_EQ(gateway.send(syn(3).payload(std::string(60, 'x')).build()).verdict, Verdict::Transmit);
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    EXPECT_EQ(gateway.send(syn(4).build()).reason, DropReason::NoRoute);
    EXPECT_EQ(gateway.service_counters(0, "web").dropped.read(), 1u);
}

// An answer that cannot be sent does not count as one.
TEST(Forwarding, AnAnswerThatFindsNoWayBackIsADropAndNoAnswer_REJ001) {
    VirtualGateway gateway;
    TestService empty = web();
    empty.backends = {};
    gateway.publish({empty});
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    EXPECT_EQ(gateway.send(syn(1).build()).reason, DropReason::NoRoute);
    EXPECT_EQ(gateway.count(stats::Counter::Rejected), 0u);
    EXPECT_EQ(gateway.service_counters(0, "web").rejected.read(), 0u);
    EXPECT_EQ(gateway.service_counters(0, "web").dropped.read(), 1u);
}

}  // namespace forward_test
}  // namespace penstock::test
