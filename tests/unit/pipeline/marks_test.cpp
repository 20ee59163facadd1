// SPDX-License-Identifier: Apache-2.0
// A mark saves a lookup and decides nothing: with correct, stale and false marks each packet ends as it does
// without.
#include <gtest/gtest.h>

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace marks_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

std::vector<TestService> services() {
    TestService web{.frontends = {{kVip, 80}}, .backends = {11}};
    TestService kept{
        .name = "kept", .frontends = {{kVip, 443}}, .backends = {12}, .source = lb::SourceMode::Keep};
    TestService dns{.name = "dns",
                    .protocol = Protocol::Udp,
                    .frontends = {{kVip, 80}},
                    .backends = {13},
                    .backend_port = 5353};
    return {web, kept, dns};
}

std::vector<uint8_t> packet(uint16_t client_port, uint16_t to, bool tcp = true) {
    auto built =
        eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string()).ipv4("10.80.1.2", kVip.to_string());
    return tcp ? built.tcp(client_port, to, "S").build() : built.udp(client_port, to).build();
}

class Marks : public testing::TestWithParam<uint16_t> {};

TEST_P(Marks, DecideNothing) {
    for (const uint32_t workers : {1U, 4U}) {
        VirtualGateway plain({.workers = workers}), marked({.workers = workers});
        for (uint32_t i = 0; i < workers; ++i) {
            marked.worker(i).owner =
                plain.worker(i).owner;  // the same secret, so that the same worker owns a flow in both
        }
        plain.publish(services());
        marked.publish(services());
        // 1 and 2 are frontends; 3 was one and has been removed.
        marked.set_marks(
            {{kVip, 80, Protocol::Tcp}, {kVip, 443, Protocol::Tcp}, {kVip, 8080, Protocol::Tcp}});
        for (uint16_t client = 1'000; client < 1'040; ++client) {
            for (const auto& frame :
                 {packet(client, 80), packet(client, 443), packet(client, 80, false), packet(client, 81)}) {
                const Outcome expected = plain.send(frame);
                const Outcome found = marked.send(frame, kUp, {0}, GetParam());
                EXPECT_EQ(found.verdict, expected.verdict);
                EXPECT_EQ(found.reason, expected.reason);
                EXPECT_EQ(found.worker, expected.worker);
                EXPECT_EQ(found.handoffs, expected.handoffs);
            }
        }
        EXPECT_EQ(marked.connections(), plain.connections());
        EXPECT_EQ(marked.connections(), 120U);
    }
}

INSTANTIATE_TEST_SUITE_P(RightOnesLiesAndNonsense, Marks, testing::Values(0, 1, 2, 3, 4, 65'535));

}  // namespace marks_test
}  // namespace penstock::test
