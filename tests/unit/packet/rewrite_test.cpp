// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/rewrite.hpp"

#include <gtest/gtest.h>

#include "dataplane/packet/parse.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace rewrite_test {

using test::eth;
using test::PacketBuilder;
using test::Prng;
using test::same_frame;

constexpr size_t kIp = 14, kTtl = kIp + 8, kIpChecksum = kIp + 10, kSource = kIp + 12,
                 kDestination = kIp + 16;

size_t l4_offset(const std::vector<uint8_t>& frame) {
    return kIp + size_t{frame[kIp] & 0x0fU} * 4;
}
bool is_udp(const std::vector<uint8_t>& frame) {
    return frame[kIp + 9] == 17;
}
size_t l4_checksum_offset(const std::vector<uint8_t>& frame) {
    return l4_offset(frame) + (is_udp(frame) ? 6 : 16);
}

void put16(std::vector<uint8_t>& frame, size_t at, uint16_t value) {
    store(frame.data() + at, Be16::from_host(value));
}
uint16_t get16(const std::vector<uint8_t>& frame, size_t at) {
    return load<Be16>(frame.data() + at).host();
}

// Computes both checksums from scratch, with the tests' own arithmetic.
void set_reference_checksums(std::vector<uint8_t>& frame) {
    put16(frame, kIpChecksum, 0);
    put16(frame, kIpChecksum, test::reference_checksum(ByteView(frame).subspan(kIp, l4_offset(frame) - kIp)));
    put16(frame, l4_checksum_offset(frame), test::reference_l4_checksum(frame));
}

PacketBuilder random_shape(Prng& random) {
    PacketBuilder packet = eth().ipv4("192.0.2.1", "80.11.12.10");
    if (random.one_in(4)) {
        std::vector<uint8_t> record_route = random.bytes(random.between(2, 40));
        record_route[0] = 7;  // an unassigned option type with arbitrary content
        record_route[1] = static_cast<uint8_t>(record_route.size());
        packet.options(record_route);
    }
    if (random.one_in(2)) {
        packet.tcp(1, 2, "A").tcp_options(random.bytes(random.below(41)));
    } else {
        packet.udp(1, 2);
    }
    return packet.payload(random.bytes(random.one_in(16) ? random.below(1400) : random.below(64)));
}

// A random unicast address. A third of them consist of bytes of 0 and 255, the corner cases of
// one's-complement sums.
IpAddr random_host(Prng& random) {
    const auto part = [&] {
        return random.one_in(3) ? uint8_t{0} : random.one_in(2) ? uint8_t{0xff} : random.byte();
    };
    return IpAddr::v4(static_cast<uint8_t>(random.between(1, 126)), part(), part(), part());
}
L4Port random_port(Prng& random) {
    return random.one_in(8) ? L4Port{0xffff} : static_cast<L4Port>(random.between(1, 0xffff));
}

void put_endpoints(std::vector<uint8_t>& frame, const Rewrite& to) {
    store(frame.data() + kSource, to.source.v4_wire());
    store(frame.data() + kDestination, to.destination.v4_wire());
    put16(frame, l4_offset(frame), to.source_port);
    put16(frame, l4_offset(frame) + 2, to.destination_port);
}

// The incremental result against a full recomputation, on 10^6 packets: 10^3 shapes with 10^3 contents each.
TEST(Rewrite, AgreesWithARecomputedPacket_NAT001) {
    Prng random;
    for (int shape = 0; shape < 1000; ++shape) {
        std::vector<uint8_t> frame = random_shape(random).build();
        for (int content = 0; content < 1000; ++content) {
            const Rewrite from{random_host(random), random_host(random), random_port(random),
                               random_port(random)};
            const Rewrite to{random_host(random), random_host(random), random_port(random),
                             random_port(random)};
            if (from.source == from.destination) {
                continue;  // a martian; the parser has its own test
            }
            frame[kTtl] = static_cast<uint8_t>(random.between(2, 255));
            put_endpoints(frame, from);
            // Payload, or the urgent pointer of a header without payload.
            put16(frame, frame.size() - 2, static_cast<uint16_t>(random.next()));
            if (is_udp(frame)) {
                // Restored, in case there is no payload and the random word is in the header.
                put16(frame, l4_offset(frame) + 4, static_cast<uint16_t>(frame.size() - l4_offset(frame)));
            }
            set_reference_checksums(frame);
            const bool without_sum = is_udp(frame) && random.one_in(8);
            if (without_sum) {
                put16(frame, l4_checksum_offset(frame), 0);
            }
            std::vector<uint8_t> expected = frame;
            --expected[kTtl];
            put_endpoints(expected, to);
            set_reference_checksums(expected);
            if (without_sum) {
                put16(expected, l4_checksum_offset(expected), 0);
            }
            Parsed parsed;
            ASSERT_TRUE(parse(frame, parsed)) << test::to_scapy(frame);
            std::vector<uint8_t> actual = frame;
            apply(actual, parsed, to);
            ASSERT_TRUE(same_frame(actual, expected)) << "from " << test::to_scapy(frame);
        }
    }
}

// The receiver must still detect that the packet was damaged before it arrived.
TEST(Rewrite, KeepsAWrongChecksumWrong) {
    Prng random;
    for (int i = 0; i < 10'000; ++i) {
        std::vector<uint8_t> frame = random_shape(random).build();
        const uint16_t right = get16(frame, l4_checksum_offset(frame));
        uint16_t wrong = static_cast<uint16_t>(random.between(1, 0xfffe));
        wrong = wrong == right ? static_cast<uint16_t>(wrong ^ 1) : wrong;
        if (is_udp(frame) && wrong == 0) {
            continue;
        }
        put16(frame, l4_checksum_offset(frame), wrong);
        Parsed parsed;
        ASSERT_TRUE(parse(frame, parsed));
        apply(frame, parsed,
              {random_host(random), random_host(random), random_port(random), random_port(random)});
        const uint16_t now = get16(frame, l4_checksum_offset(frame));
        ASSERT_NE(now, test::reference_l4_checksum(frame)) << test::to_scapy(frame);
        ASSERT_FALSE(is_udp(frame) && now == 0) << "a datagram with a sum lost it: " << test::to_scapy(frame);
    }
}

TEST(Rewrite, ThereAndBackIsTheSamePacketTwoHopsLater) {
    const auto before =
        eth().ipv4("192.0.2.1", "80.11.12.10").ttl(64).tcp(40000, 80, "S").payload("odd").build();
    auto frame = before;
    Parsed parsed;
    ASSERT_TRUE(parse(frame, parsed));
    const Rewrite back{parsed.key.source, parsed.key.destination, parsed.key.source_port,
                       parsed.key.destination_port};
    apply(frame, parsed, {IpAddr::v4(10, 1, 0, 1), IpAddr::v4(10, 2, 0, 7), 1024, 9376});
    ASSERT_TRUE(parse(frame, parsed));
    apply(frame, parsed, back);
    EXPECT_TRUE(same_frame(
        frame, eth().ipv4("192.0.2.1", "80.11.12.10").ttl(62).tcp(40000, 80, "S").payload("odd").build()));
}

TEST(SetEthernet, SetsBothAddressesAndNothingElse) {
    auto frame = eth().ipv4("192.0.2.1", "80.11.12.10").udp(1, 2).build();
    set_ethernet(frame, MacAddr::parse("02:aa:00:00:00:01").value(),
                 MacAddr::parse("02:bb:00:00:00:02").value());
    EXPECT_TRUE(same_frame(frame, eth()
                                      .from_mac("02:aa:00:00:00:01")
                                      .to_mac("02:bb:00:00:00:02")
                                      .ipv4("192.0.2.1", "80.11.12.10")
                                      .udp(1, 2)
                                      .build()));
}

}  // namespace rewrite_test
}  // namespace penstock::packet
