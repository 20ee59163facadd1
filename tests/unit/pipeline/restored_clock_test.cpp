// SPDX-License-Identifier: Apache-2.0
// After a restore on another host, the TSC of a virtual machine may restart.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/fragment_cutter.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"
#include "tests/unit/pipeline/web_service.hpp"

namespace penstock::test {
namespace restored_clock_test {

// Work that waits for a time must not wait for the old one.
TEST(Time, ThatReadsEarlierStallsNothing) {
    VirtualGateway gateway(VirtualGateway::Options{.rejects_per_second = 10, .rejects_burst = 5});
    TestService empty = web();
    empty.name = "empty";
    empty.backends = {};
    TestService dns = web();
    dns.name = "dns";
    dns.protocol = Protocol::Udp;
    dns.frontends = {{kVip, 53}};
    gateway.publish({empty, dns});
    const auto question = eth()
                              .from_mac(kClientMac.to_string())
                              .to_mac(kUpMac.to_string())
                              .ipv4("10.80.1.2", "80.11.12.10")
                              .udp(5'000, 53);
    const auto refused = [&] {
        uint32_t answers = 0;
        for (uint32_t n = 0; n < 20; ++n) {
            answers += gateway.send(syn(n).build()).verdict == Verdict::Transmit ? 1 : 0;
        }
        return answers;
    };
    EXPECT_EQ(refused(), 5u);
    EXPECT_EQ(gateway.send(PacketBuilder(question).payload("?").build()).verdict, Verdict::Transmit);
    const auto later = cut(PacketBuilder(question).payload(std::vector<uint8_t>(200)).build(), 9, 64)[1];
    EXPECT_EQ(gateway.send(later).verdict, Verdict::Await);

    gateway.turn_tsc_back(900);
    EXPECT_EQ(refused(), 0u) << "no token has come in no time";
    gateway.advance_seconds(2);
    EXPECT_EQ(refused(), 5u);
    gateway.expire_fragments();
    EXPECT_EQ(gateway.fragments_waiting(), 0u);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 1u);
    gateway.advance_seconds(conn::Timeouts().udp_one_way_s);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u) << "idle past its limit";
}

}  // namespace restored_clock_test
}  // namespace penstock::test
