// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/sctp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "dataplane/packet/answers/reject.hpp"
#include "dataplane/packet/answers/reset.hpp"
#include "dataplane/packet/parse.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace sctp_test {

using test::eth;
using test::PacketBuilder;
using test::same_frame;

constexpr uint8_t kInit = 1, kInitAck = 2, kSack = 3, kHeartbeat = 4, kAbort = 6, kShutdown = 7,
                  kShutdownAck = 8, kError = 9, kCookieEcho = 10, kCookieAck = 11, kShutdownComplete = 14,
                  kData = 0, kUnknown = 0x3f;

PacketBuilder to_vip() {
    return eth().ipv4("192.0.2.1", "80.11.12.10");
}
PacketBuilder to_vip6() {
    return eth().ipv6("2001:db8::1", "2001:db8:80::10");
}

// Reads a copy that is exactly as long as the frame, so that a sanitizer detects a read beyond its end.
struct Read {
    ParseResult result;
    Parsed parsed;
};
Read read(const std::vector<uint8_t>& frame) {
    const auto copy = std::make_unique<uint8_t[]>(frame.size());
    std::copy(frame.begin(), frame.end(), copy.get());
    Read out;
    out.result = parse(ByteView(copy.get(), frame.size()), out.parsed);
    return out;
}

struct EventCase {
    const char* name;
    PacketBuilder packet;
    SctpEvent event;
    bool reflects_tag = false;
};

TEST(Sctp, ChunksMeanWhatTheyDoToTheAssociation_SCTP002) {
    const auto with = [] { return to_vip().sctp(2905, 3868, 7); };
    const std::vector<uint8_t> cookie(100, 0xcc);
    const EventCase cases[] = {
        {"INIT", to_vip().sctp(2905, 3868, 0).sctp_init(9), SctpEvent::Init},
        {"INIT over IPv6", to_vip6().sctp(2905, 3868, 0).sctp_init(9), SctpEvent::Init},
        {"INIT ACK", with().sctp_init_ack(9), SctpEvent::InitAck},
        {"COOKIE ECHO with data", with().chunk(kCookieEcho, cookie).chunk(kData, cookie),
         SctpEvent::CookieEcho},
        {"COOKIE ACK with data", with().chunk(kCookieAck).chunk(kData, cookie), SctpEvent::CookieAck},
        {"data", with().chunk(kData, cookie).chunk(kData, cookie), SctpEvent::None},
        {"interleaved data", with().chunk(64, cookie), SctpEvent::None},
        {"SACK and data", with().chunk(kSack, {1, 2, 3, 4}).chunk(kData, cookie), SctpEvent::None},
        {"HEARTBEAT", with().chunk(kHeartbeat, {1, 2, 3, 4}), SctpEvent::None},
        {"a chunk that nobody knows", with().chunk(kUnknown, {1}).chunk(kShutdown, {0, 0, 0, 1}),
         SctpEvent::Shutdown},
        {"SACK and SHUTDOWN", with().chunk(kSack, {1, 2, 3, 4}).chunk(kShutdown, {0, 0, 0, 1}),
         SctpEvent::Shutdown},
        {"SHUTDOWN ACK", with().chunk(kShutdownAck), SctpEvent::ShutdownAck},
        {"SHUTDOWN COMPLETE", with().chunk(kShutdownComplete), SctpEvent::ShutdownComplete},
        {"SHUTDOWN COMPLETE of one that has no association", with().chunk(kShutdownComplete, {}, 1),
         SctpEvent::ShutdownComplete, true},
        {"ABORT", with().chunk(kAbort), SctpEvent::Abort},
        {"ABORT behind an ERROR, reflecting", with().chunk(kError, {1}).chunk(kAbort, {0, 12}, 1),
         SctpEvent::Abort, true},
        {"behind data nobody looks", with().chunk(kData, cookie).chunk(kAbort), SctpEvent::None},
        {"padding behind the last chunk", with().chunk(kCookieAck).payload({0, 0, 0}), SctpEvent::CookieAck},
        {"a last chunk that lacks its padding", with().chunk(kCookieAck).payload({kData, 0, 0, 5, 1}),
         SctpEvent::CookieAck},
    };
    for (const EventCase& c : cases) {
        const Read out = read(c.packet.build());
        ASSERT_TRUE(out.result.has_value()) << c.name << ": " << c.packet.to_scapy();
        EXPECT_EQ(out.parsed.kind, PacketKind::Flow) << c.name;
        EXPECT_EQ(out.parsed.key.protocol, Protocol::Sctp) << c.name;
        EXPECT_EQ(out.parsed.key.source_port, 2905) << c.name;
        EXPECT_EQ(out.parsed.key.destination_port, 3868) << c.name;
        EXPECT_EQ(out.parsed.payload_offset, out.parsed.l4_offset + 12) << c.name;
        EXPECT_EQ(out.parsed.tcp_flags, TcpFlags{}) << c.name;
        EXPECT_EQ(out.parsed.sctp_event, c.event) << c.name;
        EXPECT_EQ(out.parsed.sctp_reflects_tag, c.reflects_tag) << c.name;
        EXPECT_TRUE(has_valid_sctp_checksum(ByteView(c.packet.build()).subspan(out.parsed.l4_offset)))
            << c.name;
    }
}

TEST(Sctp, LooksAtSoManyChunksAndNoMore_SCTP002) {
    PacketBuilder packet = to_vip().sctp(1, 2, 7);
    for (unsigned i = 0; i + 1 < kSctpChunksMax; ++i) {
        packet.chunk(kHeartbeat);
    }
    EXPECT_EQ(read(PacketBuilder(packet).chunk(kAbort).build()).parsed.sctp_event, SctpEvent::Abort);
    EXPECT_EQ(read(packet.chunk(kHeartbeat).chunk(kAbort).build()).parsed.sctp_event, SctpEvent::None);
}

TEST(Sctp, RefusesWhatNoStackSends_SCTP002_SCTP003) {
    const auto with = [] { return to_vip().sctp(2905, 3868, 7); };
    struct Case {
        const char* name;
        PacketBuilder packet;
    };
    const Case cases[] = {
        {"nothing behind the common header", with()},
        {"half a chunk header", with().payload({1, 0})},
        {"a common header that is cut", to_vip().ip_protocol(132).payload("0123456789a")},
        {"source port 0", to_vip().sctp(0, 3868, 7).chunk(kHeartbeat)},
        {"destination port 0", to_vip().sctp(2905, 0, 7).chunk(kHeartbeat)},
        {"a chunk shorter than its header", with().chunk(kData, {1, 2}, 0, 3)},
        {"a chunk longer than the packet", with().chunk(kData, {1, 2, 3, 4}, 0, 9)},
        {"a later chunk longer than the packet", with().chunk(kSack, {1}).chunk(kShutdown, {}, 0, 200)},
        {"INIT with a tag", with().sctp_init(9)},
        {"INIT that wants tag 0", to_vip().sctp(2905, 3868, 0).sctp_init(0)},
        {"INIT without its fields", to_vip().sctp(2905, 3868, 0).chunk(kInit, {0, 0, 0, 9})},
        {"INIT with data", to_vip().sctp(2905, 3868, 0).sctp_init(9).chunk(kData, {1})},
        {"INIT behind another chunk", to_vip().sctp(2905, 3868, 0).chunk(kHeartbeat).sctp_init(9)},
        {"INIT ACK that wants tag 0", with().sctp_init_ack(0)},
        {"INIT ACK without its fields", with().chunk(kInitAck)},
        {"INIT ACK with company", with().sctp_init_ack(9).chunk(kHeartbeat)},
        {"SHUTDOWN COMPLETE with company", with().chunk(kShutdownComplete).chunk(kHeartbeat)},
        {"data without a tag", to_vip().sctp(2905, 3868, 0).chunk(kData, {1})},
        {"ABORT without a tag", to_vip().sctp(2905, 3868, 0).chunk(kAbort)},
    };
    for (const Case& c : cases) {
        const Read out = read(c.packet.build());
        ASSERT_FALSE(out.result.has_value()) << c.name << ": " << c.packet.to_scapy();
        EXPECT_EQ(out.result.error(), DropReason::BadL4Header) << c.name;
    }
}

TEST(Sctp, NewPortsMoveTheChecksumAndNothingElse_SCTP001) {
    const auto packet = [](uint16_t source, uint16_t destination) {
        return to_vip().sctp(source, destination, 7).chunk(kData, std::vector<uint8_t>(1001, 0xda));
    };
    const auto ported = [](std::vector<uint8_t> frame) {
        set_sctp_ports(std::span(frame).subspan(34), Be16::from_host(1234), Be16::from_host(9999));
        return frame;
    };
    EXPECT_TRUE(same_frame(ported(packet(2905, 3868).build()), packet(1234, 9999).build()));
    EXPECT_TRUE(same_frame(ported(packet(1234, 9999).build()), packet(1234, 9999).build()));

    // Wrong by the same bits, so that the receiver detects it.
    const uint32_t right = load<uint32_t>(packet(2905, 3868).build().data() + 42),
                   after = load<uint32_t>(packet(1234, 9999).build().data() + 42);
    EXPECT_TRUE(same_frame(ported(packet(2905, 3868).sctp_checksum(right ^ 0x100).build()),
                           packet(1234, 9999).sctp_checksum(after ^ 0x100).build()));
    // No checksum was computed (RFC 9653).
    EXPECT_TRUE(same_frame(ported(packet(2905, 3868).sctp_checksum(0).build()),
                           packet(1234, 9999).sctp_checksum(0).build()));
}

// One packet in 2^32 has a correct checksum of zero; here four bytes of its data are chosen to give one.
TEST(Sctp, AZeroThatIsTheRightChecksumMoves_SCTP001) {
    std::vector<uint8_t> frame = to_vip().sctp(2905, 3868, 7).chunk(kData, {0, 0, 0, 0, 1, 2, 3, 4}).build();
    const auto sctp = std::span(frame).subspan(34);
    store(sctp.data() + 8, uint32_t{0});
    // Finds the values of 32 free bits that make the CRC zero: a linear system; its columns are the effect of
    // each bit.
    const uint32_t base = crc32c(sctp);
    std::array<uint32_t, 32> effect;
    const size_t free_at = sctp.size() - 8;
    for (unsigned bit = 0; bit < 32; ++bit) {
        sctp[free_at + bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
        effect[bit] = crc32c(sctp) ^ base;
        sctp[free_at + bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    }
    uint32_t wanted = base, chosen = 0;
    std::array<uint32_t, 32> combination;
    for (unsigned bit = 0; bit < 32; ++bit) {
        combination[bit] = 1U << bit;
    }
    for (unsigned column = 0; column < 32; ++column) {  // Gauss-Jordan over GF(2)
        unsigned pivot = column;
        while (pivot < 32 && (effect[pivot] >> column & 1) == 0) {
            ++pivot;
        }
        ASSERT_LT(pivot, 32u) << "four bytes reach every CRC";
        std::swap(effect[pivot], effect[column]);
        std::swap(combination[pivot], combination[column]);
        for (unsigned row = 0; row < 32; ++row) {
            if (row != column && (effect[row] >> column & 1) != 0) {
                effect[row] ^= effect[column];
                combination[row] ^= combination[column];
            }
        }
    }
    for (unsigned column = 0; column < 32; ++column) {
        if ((wanted >> column & 1) != 0) {
            wanted ^= effect[column];
            chosen ^= combination[column];
        }
    }
    for (unsigned byte = 0; byte < 4; ++byte) {
        sctp[free_at + byte] ^= static_cast<uint8_t>(chosen >> 8 * byte);
    }
    ASSERT_TRUE(has_valid_sctp_checksum(sctp));
    set_sctp_ports(sctp, Be16::from_host(1234), Be16::from_host(9999));
    EXPECT_NE(load<uint32_t>(sctp.data() + 8), 0u);
    EXPECT_TRUE(has_valid_sctp_checksum(sctp));
}

struct Answer {
    AnswerResult result;
    std::vector<uint8_t> frame;
};
template <typename Make>
Answer answer_to(const PacketBuilder& packet, Make&& make) {
    std::vector<uint8_t> buffer = packet.build();
    const size_t frame_bytes = buffer.size();
    Parsed parsed;
    EXPECT_TRUE(parse(buffer, parsed)) << packet.to_scapy();
    buffer.resize(frame_bytes + 64, 0xee);
    const AnswerResult result = make(buffer, frame_bytes, parsed);
    buffer.resize(result ? *result : buffer.size());
    return {result, buffer};
}
Answer refusal(const PacketBuilder& packet, SctpRefusal how) {
    return answer_to(packet, [&](std::span<uint8_t> buffer, size_t bytes, const Parsed& parsed) {
        return make_reject(buffer, bytes, parsed, how);
    });
}
Answer reflection(const PacketBuilder& packet) {
    return answer_to(packet, [](std::span<uint8_t> buffer, size_t bytes, const Parsed& parsed) {
        return make_reflecting_abort(buffer, bytes, parsed);
    });
}
PacketBuilder from_vip() {
    return eth()
        .from_mac("02:00:00:00:00:02")
        .to_mac("02:00:00:00:00:01")
        .ipv4("80.11.12.10", "192.0.2.1")
        .id(0)
        .dont_fragment()
        .ttl(64);
}
PacketBuilder from_vip6() {
    return eth()
        .from_mac("02:00:00:00:00:02")
        .to_mac("02:00:00:00:00:01")
        .ipv6("2001:db8:80::10", "2001:db8::1")
        .hop_limit(64);
}

TEST(Sctp, AnInitIsRefusedByAbortOrIcmp_REJ002_REJ004) {
    const auto init = [](PacketBuilder ip) { return ip.sctp(2905, 3868, 0).sctp_init(0x01020304); };
    const Answer abort = refusal(init(to_vip()), SctpRefusal::Abort);
    ASSERT_TRUE(abort.result.has_value());
    EXPECT_TRUE(same_frame(abort.frame, from_vip().sctp(3868, 2905, 0x01020304).chunk(kAbort).build()));
    const Answer abort6 = refusal(init(to_vip6().destination_options()), SctpRefusal::Abort);
    ASSERT_TRUE(abort6.result.has_value());
    EXPECT_TRUE(same_frame(abort6.frame, from_vip6().sctp(3868, 2905, 0x01020304).chunk(kAbort).build()));

    const auto quoted = [&](PacketBuilder ip) {
        const std::vector<uint8_t> frame = init(ip).build();
        return std::vector<uint8_t>(frame.begin() + 14, frame.end());
    };
    const Answer icmp = refusal(init(to_vip()), SctpRefusal::Icmp);
    ASSERT_TRUE(icmp.result.has_value());
    EXPECT_TRUE(same_frame(icmp.frame, from_vip().tos(0xc0).icmp(3, 3).payload(quoted(to_vip())).build()));
    const Answer icmp6 = refusal(init(to_vip6()), SctpRefusal::Icmp);
    ASSERT_TRUE(icmp6.result.has_value());
    EXPECT_TRUE(same_frame(icmp6.frame, from_vip6().tos(0xc0).icmp(1, 4).payload(quoted(to_vip6())).build()));
}

TEST(Sctp, NothingElseIsRefusedAloud_REJ002_REJ004) {
    for (const SctpRefusal how : {SctpRefusal::Abort, SctpRefusal::Icmp}) {
        const auto reason = [&](const PacketBuilder& packet) { return refusal(packet, how).result.error(); };
        EXPECT_EQ(reason(to_vip().sctp(2905, 3868, 7).chunk(kAbort)), DropReason::RejectNotAllowed);
        EXPECT_EQ(reason(to_vip().sctp(2905, 3868, 7).chunk(kData, {1})), DropReason::RejectNotAllowed);
        EXPECT_EQ(reason(to_vip().sctp(2905, 3868, 0).sctp_init(9).sctp_checksum(1)),
                  DropReason::BadL4Checksum);
        EXPECT_EQ(reason(to_vip().from_mac("03:00:00:00:00:01").sctp(2905, 3868, 0).sctp_init(9)),
                  DropReason::RejectNotAllowed);
    }
}

TEST(Sctp, WhatGoesOnAfterItsEndIsToldByItsOwnTag_DRAIN004) {
    const Answer abort = reflection(to_vip().sctp(2905, 3868, 0xaabbccdd).chunk(kData, {1, 2, 3}));
    ASSERT_TRUE(abort.result.has_value());
    EXPECT_TRUE(
        same_frame(abort.frame, from_vip().sctp(3868, 2905, 0xaabbccdd).chunk(kAbort, {}, 1).build()));
    EXPECT_EQ(reflection(to_vip().sctp(2905, 3868, 7).chunk(kAbort)).result.error(),
              DropReason::RejectNotAllowed);
    EXPECT_EQ(reflection(to_vip().sctp(2905, 3868, 7).chunk(kShutdownComplete)).result.error(),
              DropReason::RejectNotAllowed);
    EXPECT_EQ(reflection(to_vip().sctp(2905, 3868, 0).sctp_init(7)).result.error(),
              DropReason::RejectNotAllowed);
    EXPECT_EQ(reflection(to_vip().sctp(2905, 3868, 7).chunk(kData).sctp_checksum(3)).result.error(),
              DropReason::BadL4Checksum);
}

TEST(Sctp, AnAbortOfOurOwnIsAWholeFrame_DRAIN004) {
    std::vector<uint8_t> frame(kBareSegmentBytesMax, 0xee);
    const FlowKey key{.source = *IpAddr::parse("80.11.12.10"),
                      .destination = *IpAddr::parse("192.0.2.1"),
                      .source_port = 3868,
                      .destination_port = 2905,
                      .protocol = Protocol::Sctp};
    frame.resize(build_abort(frame, key, 0x01020304));
    const auto unaddressed = [](PacketBuilder packet) {
        return packet.from_mac("00:00:00:00:00:00").to_mac("00:00:00:00:00:00");
    };
    EXPECT_TRUE(
        same_frame(frame, unaddressed(from_vip()).sctp(3868, 2905, 0x01020304).chunk(kAbort).build()));
    frame.assign(kBareSegmentBytesMax, 0xee);
    FlowKey key6 = key;
    key6.source = *IpAddr::parse("2001:db8:80::10");
    key6.destination = *IpAddr::parse("2001:db8::1");
    frame.resize(build_abort(frame, key6, 0x01020304));
    EXPECT_TRUE(
        same_frame(frame, unaddressed(from_vip6()).sctp(3868, 2905, 0x01020304).chunk(kAbort).build()));
}

}  // namespace sctp_test
}  // namespace penstock::packet
