// SPDX-License-Identifier: Apache-2.0
// Answers to refused and expired packets are limited, and the limits cost nothing else.
#include "dataplane/pipeline/state/reject_limiter.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/packet_builder.hpp"
#include "tests/support/reverse_path.hpp"
#include "tests/support/virtual_gateway.hpp"
#include "tests/unit/pipeline/web_service.hpp"

namespace penstock::test {
namespace reject_limiter_test {

// REJ-003: answers are limited per worker, and the limit costs forwarding nothing.
TEST(Rejects, AreLimitedPerWorker_REJ003) {
    VirtualGateway gateway(VirtualGateway::Options{.rejects_per_second = 10, .rejects_burst = 5});
    TestService empty = web();
    empty.backends = {};
    TestService alive = web();
    alive.name = "alive";
    alive.frontends = {{kVip, 443}};
    gateway.publish({empty, alive});
    const auto answered = [&](uint32_t from, uint32_t count) {
        uint32_t answers = 0;
        for (uint32_t n = from; n < from + count; ++n) {
            const Outcome outcome = gateway.send(syn(n).build());
            answers += outcome.verdict == Verdict::Transmit ? 1 : 0;
            if (outcome.verdict == Verdict::Drop) {
                EXPECT_EQ(outcome.reason, DropReason::RejectLimited);
            }
        }
        return answers;
    };
    EXPECT_EQ(answered(0, 100), 5u);
    EXPECT_EQ(gateway.send(syn(0, 443).build()).verdict, Verdict::Transmit);
    gateway.advance_milliseconds(200);
    EXPECT_EQ(answered(100, 100), 2u);
    gateway.advance_seconds(10);
    EXPECT_EQ(answered(200, 100), 5u) << "the bucket holds no more than its burst";
}

// Segments of no flow, each of which is answered by a RST, at three times the limit of RSTs.
class BesideAFloodOfSegments : public testing::Test {
 protected:
    static constexpr uint16_t kNarrow = 1'400;
    void SetUp() override {
        TestService dns = web();
        dns.name = "dns";
        dns.protocol = Protocol::Udp;
        gateway.publish({web(), dns});
        gateway.set_mtu(kCluster, kNarrow);
    }
    static std::vector<uint8_t> datagram(const std::string& client, size_t payload, uint8_t ttl = 64) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4(client, "80.11.12.10")
            .dont_fragment()
            .ttl(ttl)
            .udp(5'000, 80)
            .payload(std::vector<uint8_t>(payload))
            .build();
    }
    // Counts the answers to 20 datagrams, sent every 50 ms during the flood: 3,000 of `flood` a second.
    template <typename Flood>
    uint32_t answered(const std::vector<uint8_t>& asked, Flood&& flood) {
        uint32_t n = 0;
        const auto pass = [&](uint32_t ms) {
            for (uint32_t i = 0; i < ms; ++i) {
                gateway.advance_milliseconds(1);
                for (int segment = 0; segment < 3; ++segment) {
                    gateway.send(flood(n++));
                }
            }
        };
        pass(1'000);  // uses up the burst of the limit
        uint32_t answers = 0;
        for (int question = 0; question < 20; ++question) {
            pass(50);
            const Outcome outcome = gateway.send(asked);
            answers += outcome.verdict == Verdict::Transmit && outcome.egress == kUp ? 1 : 0;
        }
        return answers;
    }
    static std::vector<uint8_t> ack(uint32_t n) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4("198.51.100.1", "80.11.12.10")
            .tcp(static_cast<uint16_t>(1'024 + n % 60'000), 80, "A")
            .build();
    }
    // With a fixed secret the networks of these tests share no bucket.
    VirtualGateway gateway{VirtualGateway::Options{.secrets_from = 1}};
};

TEST_F(BesideAFloodOfSegments, SendersLearnTheirPathMtu_ICMP004_REJ003) {
    EXPECT_EQ(answered(datagram("10.80.1.2", 1'450), ack), 20u);
    EXPECT_GT(gateway.count(stats::Counter::Rejected), 0u);
}

TEST_F(BesideAFloodOfSegments, TracesAreAnswered_ICMP006_REJ003) {
    EXPECT_EQ(answered(datagram("10.80.1.2", 10, 1), ack), 20u);
}

// Neither does a flood of too large packets from another network, nor a flood of expiring packets from the
// same sender. One network has its limit.
TEST_F(BesideAFloodOfSegments, EachNetworkLearnsItsPathMtu_ICMP004_REJ003) {
    const auto large = [](uint32_t) { return datagram("198.51.100.1", 1'450); };
    EXPECT_EQ(answered(datagram("10.80.1.2", 1'450), large), 20u);
    const uint64_t answers = gateway.count(stats::Counter::IcmpErrorsSent) - 20;
    EXPECT_LE(answers, 2 * limits::kErrorsPerSecondToPrefix + limits::kErrorsBurstToPrefix);
    const auto expiring = [](uint32_t) { return datagram("10.80.1.9", 10, 1); };
    EXPECT_EQ(answered(datagram("10.80.1.2", 1'450), expiring), 20u);
    const auto neighbours = [](uint32_t) { return datagram("10.80.1.9", 1'450); };
    EXPECT_LT(answered(datagram("10.80.1.2", 1'450), neighbours), 20u) << "of one network";
}

// Packets that cannot be answered take no token.
TEST(Rejects, WhatIsNotAnsweredTakesNoToken_REJ003) {
    VirtualGateway gateway(VirtualGateway::Options{
        .rejects_per_second = 2, .rejects_burst = 2, .errors_per_second = 2, .errors_burst = 2});
    TestService empty = web();
    empty.backends = {};
    TestService alive = web();
    alive.name = "alive";
    alive.frontends = {{kVip, 443}};
    gateway.publish({empty, alive});
    const auto damaged = [](const std::vector<uint8_t>& frame) {
        std::vector<uint8_t> other = frame;
        other.back() ^= 1;
        return other;
    };
    const auto expect = [&](const std::vector<uint8_t>& frame, DropReason reason, const char* what) {
        for (int n = 0; n < 5; ++n) {
            const Outcome outcome = gateway.send(frame);
            EXPECT_EQ(outcome.verdict, Verdict::Drop) << what;
            EXPECT_EQ(text_of(outcome.reason).counter, text_of(reason).counter) << what;
        }
    };
    expect(damaged(syn(1).payload("x").build()), DropReason::BadL4Checksum, "a SYN");
    const auto dying = eth()
                           .from_mac(kClientMac.to_string())
                           .to_mac(kUpMac.to_string())
                           .ipv4("10.80.1.2", "80.11.12.10")
                           .ttl(1)
                           .tcp(5'000, 443, "S")
                           .payload("x")
                           .build();
    expect(damaged(dying), DropReason::BadL4Checksum, "a SYN that expires");
    for (int n = 0; n < 2; ++n) {
        EXPECT_EQ(gateway.send(syn(1).build()).verdict, Verdict::Transmit);
        EXPECT_EQ(gateway.send(dying).verdict, Verdict::Transmit);
    }
    expect(syn(1).build(), DropReason::RejectLimited, "a SYN");
    expect(dying, DropReason::RejectLimited, "a SYN that expires");
    gateway.advance_seconds(10);
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    expect(syn(1).build(), DropReason::NoRoute, "a SYN without a way back");
    expect(dying, DropReason::NoRoute, "a SYN without a way back that expires");
}

}  // namespace reject_limiter_test
}  // namespace penstock::test
