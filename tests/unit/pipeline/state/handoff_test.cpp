// SPDX-License-Identifier: Apache-2.0
// What the next worker learns of a packet that is handed over, and what it does not validate again.
#include "dataplane/pipeline/state/handoff.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace handoff_test {

using pipeline::HandoffNote;

TEST(HandoffNote, CrossesARingWhole) {
    const HandoffNote notes[] = {
        {},
        {.tried = 3, .handoffs = 7, .receiver = {9}},
        {.tried = pipeline::kTriesMoved, .handoffs = 0xfe, .receiver = {0xfe}},
        {.from_host = true},
        {.is_common = true},
    };
    for (const HandoffNote& note : notes) {
        const HandoffNote next = note.crossing();
        EXPECT_EQ(next.tried, note.tried);
        EXPECT_EQ(next.handoffs, note.handoffs + 1);
        EXPECT_EQ(next.receiver, note.receiver);
        EXPECT_EQ(next.from_host, note.from_host);
        EXPECT_EQ(next.is_common, note.is_common);
        EXPECT_TRUE(next.ip_checksum_checked);
        EXPECT_EQ(HandoffNote::unpacked(next.packed()).packed(), next.packed());
    }
}

class HandedPacket : public testing::Test {
 protected:
    static constexpr uint16_t kHeadroom = 64, kRoom = 512;
    struct Run {
        std::vector<uint8_t> buffer;
        pipeline::Burst burst;
        [[nodiscard]] std::vector<uint8_t> frame() const {
            return {burst.data[0], burst.data[0] + burst.length[0]};
        }
    };

    HandedPacket() {
        gateway_.publish({{.frontends = {{IpAddr::v4(80, 11, 12, 10), 80}, {kVip6, 80}}, .backends = {11}},
                          {.name = "dns",
                           .protocol = Protocol::Udp,
                           .frontends = {{IpAddr::v4(80, 11, 12, 10), 53}, {kVip6, 53}},
                           .backends = {12}},
                          {.name = "sctp",
                           .protocol = Protocol::Sctp,
                           .frontends = {{IpAddr::v4(80, 11, 12, 10), 36}},
                           .backends = {13}}});
    }
    std::unique_ptr<Run> run(WorkerId worker, const std::vector<uint8_t>& frame,
                             const pipeline::Arrival& arrival, bool was_handed) {
        auto one = std::make_unique<Run>();
        one->buffer.resize(kHeadroom + kRoom);
        std::ranges::copy(frame, one->buffer.begin() + kHeadroom);
        one->burst.add(nullptr, one->buffer.data() + kHeadroom, static_cast<uint16_t>(frame.size()), kRoom,
                       arrival, kHeadroom);
        one->burst.looks_first = was_handed;
        one->burst.was_handed = was_handed;
        pipeline::WorkerContext& context = gateway_.worker(worker.value);
        context.begin_round(&gateway_.snapshot(), context.now);
        pipeline::run_stages(context, one->burst);
        return one;
    }

    static PacketBuilder ip4() {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4("10.80.1.2", "80.11.12.10");
    }
    static PacketBuilder ip6() {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv6("fd00:80:1::2", kVip6.to_string());
    }

    static inline const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");
    VirtualGateway gateway_{{.workers = 2}};
};

// The owner serves a handed packet exactly as if it validated the packet again.
TEST_F(HandedPacket, IsServedAsAReceivedOne) {
    const struct {
        const char* name;
        PacketBuilder first, packet;
        bool is_common;
    } cases[] = {
        {"TCP", ip4().tcp(1001, 80, "S"), ip4().tcp(1001, 80, "S").payload("x").pad_to(60), true},
        {"TCP with options", ip4().tcp(1002, 80, "S"),
         ip4().tcp(1002, 80, "S").tcp_options({1, 1, 1, 1}).payload("x"), true},
        {"UDP", ip4().udp(1003, 53).payload("q"), ip4().udp(1003, 53).payload("question"), true},
        {"TCP over IPv6", ip6().tcp(1004, 80, "S"), ip6().tcp(1004, 80, "S").payload("x"), true},
        {"UDP over IPv6", ip6().udp(1005, 53).payload("q"), ip6().udp(1005, 53).payload("question"), true},
        {"time to live 1", ip4().udp(1006, 53).payload("q"), ip4().ttl(1).udp(1006, 53).payload("q"), true},
        {"IPv4 options", ip4().udp(1007, 53).payload("q"),
         ip4().options({0x94, 4, 0, 0}).udp(1007, 53).payload("q"), false},
        {"hop-by-hop options", ip6().udp(1008, 53).payload("q"),
         ip6().hop_by_hop().udp(1008, 53).payload("q"), false},
        {"SCTP", ip4().sctp(1009, 36, 0).sctp_init(7), ip4().sctp(1009, 36, 0).sctp_init(7), false},
    };
    for (const auto& c : cases) {
        const Outcome opened = gateway_.send(c.first.build());
        ASSERT_EQ(opened.verdict, Verdict::Transmit) << c.name;
        const WorkerId owner = opened.worker, receiver{static_cast<uint8_t>(1 - owner.value)};
        const std::vector<uint8_t> frame = c.packet.build();
        const auto sent = run(receiver, frame, {kUp, {.receiver = receiver}, 0}, false);
        ASSERT_EQ(sent->burst.verdict[0], Verdict::Handoff) << c.name;
        ASSERT_EQ(sent->burst.handoff_to[0], owner) << c.name;
        EXPECT_EQ(sent->frame(), frame) << c.name;
        pipeline::Arrival arrival = sent->burst.arrival[0];
        EXPECT_EQ(arrival.note.is_common, c.is_common) << c.name;
        arrival.note = arrival.note.crossing();
        const auto validated = run(owner, frame, arrival, false), trusted = run(owner, frame, arrival, true);
        EXPECT_EQ(trusted->burst.parsed[0].key, validated->burst.parsed[0].key) << c.name;
        EXPECT_EQ(trusted->burst.verdict[0], Verdict::Transmit) << c.name;
        EXPECT_EQ(trusted->burst.verdict[0], validated->burst.verdict[0]) << c.name;
        EXPECT_EQ(trusted->burst.egress[0], validated->burst.egress[0]) << c.name;
        EXPECT_EQ(trusted->frame(), validated->frame()) << c.name;
        EXPECT_NE(trusted->frame(), frame) << c.name;
    }
}

// Linux's packets are read by other rules: what belongs to no flow leaves unchanged.
TEST_F(HandedPacket, OfTheHostIsParsedAgain) {
    const std::vector<uint8_t> frame = eth()
                                           .from_mac(kUpMac.to_string())
                                           .to_mac(kClientMac.to_string())
                                           .ipv4("10.80.1.1", "80.11.12.10")
                                           .udp(1010, 53)
                                           .payload("q")
                                           .build();
    for (uint8_t server = 0; server < 2; ++server) {
        pipeline::Arrival arrival{kUp, {.receiver = {server}, .from_host = true}, 0};
        const auto sent = run({server}, frame, arrival, false);
        if (sent->burst.verdict[0] == Verdict::Handoff) {
            EXPECT_FALSE(sent->burst.arrival[0].note.is_common);
            return;
        }
    }
    FAIL() << "the flow has an owner, which one of two servers is not";
}

}  // namespace handoff_test
}  // namespace penstock::test
