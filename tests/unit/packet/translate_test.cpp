// SPDX-License-Identifier: Apache-2.0
// Translation by the two deltas of a connection, compared with packets built anew: both families, both
// protocols, both directions.
#include <gtest/gtest.h>

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace translate_test {

using test::eth;
using test::Prng;

using Ipv6Address = std::array<uint8_t, 16>;

// One's-complement sum of two words; 0 only for two zeros.
uint16_t plus(uint16_t a, uint16_t b) {
    const uint32_t sum = uint32_t{a} + b;
    return static_cast<uint16_t>((sum & 0xffff) + (sum >> 16));
}
// The value of a word for which the checksum is `wanted`, if the checksum is `with_zero` when the word is 0.
uint16_t word_for(uint16_t wanted, uint16_t with_zero) {
    return plus(static_cast<uint16_t>(~wanted), with_zero);
}

TEST(FoldedDelta, NeverSpellsNoChangeZeroAndIsItsInversesInverse) {
    EXPECT_EQ(FoldedDelta().raw(), 0xffff);
    EXPECT_EQ(FoldedDelta(ChecksumDelta()).raw(), 0xffff);
    EXPECT_EQ(FoldedDelta(ChecksumDelta().replace(Be16::from_host(0xffff), Be16::from_host(0))).raw(),
              0xffff);
    for (unsigned before = 0; before <= 0xffff; ++before) {
        const FoldedDelta delta(
            ChecksumDelta().replace(Be16::from_host(static_cast<uint16_t>(before)), Be16::from_host(0x1234)));
        ASSERT_NE(delta.raw(), 0);
        ASSERT_NE(delta.inverse().raw(), 0);
        ASSERT_EQ(delta.inverse().inverse(), delta);
    }
}

// RFC 1624, 3: a full computation over bytes that are not all zero never gives 0xffff, and the incremental
// update keeps this property.
TEST(FoldedDelta, KeepsCanonicalSumsCanonicalForEverySumAndCorner) {
    for (const unsigned after : {0x0000U, 0x0001U, 0x5555U, 0x7fffU, 0x8000U, 0xfffeU, 0xffffU}) {
        const FoldedDelta delta(
            ChecksumDelta().replace(Be16::from_host(0x5555), Be16::from_host(static_cast<uint16_t>(after))));
        for (unsigned sent = 0; sent < 0xffff; ++sent) {
            const Be16 before = Be16::from_host(static_cast<uint16_t>(sent));
            const Be16 there = delta.applied_to(before);
            ASSERT_NE(there.host(), 0xffff) << sent;
            ASSERT_EQ(delta.inverse().applied_to(there), before) << sent;
            ASSERT_EQ((delta + FoldedDelta()).applied_to(before), there) << sent;
        }
    }
}

struct Family4 {
    static constexpr bool kIsV4 = true;
    using Address = Be32;
    static IpAddr ip(Be32 address) { return IpAddr::v4(address); }
    // A third of the bytes 0, a third 255: the corner cases of one's-complement sums.
    static Be32 random(Prng& prng) {
        const auto part = [&] {
            return prng.one_in(3) ? uint8_t{0} : prng.one_in(2) ? uint8_t{0xff} : prng.byte();
        };
        return Be32::from_host(static_cast<uint32_t>(prng.between(1, 126)) << 24 | uint32_t{part()} << 16 |
                               uint32_t{part()} << 8 | part());
    }
};
struct Family6 {
    static constexpr bool kIsV4 = false;
    using Address = Ipv6Address;
    static IpAddr ip(const Ipv6Address& address) { return IpAddr::v6(address); }
    static Ipv6Address random(Prng& prng) {
        Ipv6Address address;
        for (uint8_t& byte : address) {
            byte = prng.one_in(3) ? uint8_t{0} : prng.one_in(2) ? uint8_t{0xff} : prng.byte();
        }
        address[0] = static_cast<uint8_t>(prng.between(0x20, 0x3f));
        return address;
    }
};

template <typename Family>
class Translate : public testing::Test {
 protected:
    using Address = typename Family::Address;
    using Endpoints = WireEndpoints<Address>;

    Endpoints random_endpoints() {
        const auto port = [&] {
            return Be16::from_host(random.one_in(8) ? uint16_t{0xffff}
                                                    : static_cast<uint16_t>(random.between(1, 0xffff)));
        };
        Endpoints endpoints{Family::random(random), Family::random(random), port(), port()};
        while (endpoints.source == endpoints.destination) {
            endpoints.destination = Family::random(random);
        }
        return endpoints;
    }

    struct Body {
        bool udp = false, without_sum = false;
        uint16_t id = 1;
        uint8_t traffic_class = 0;
        uint32_t flow_label = 0;
        std::vector<uint8_t> payload;
    };
    static std::vector<uint8_t> frame_of(const Endpoints& endpoints, const Body& body, uint8_t ttl) {
        const std::string source = Family::ip(endpoints.source).to_string(),
                          destination = Family::ip(endpoints.destination).to_string();
        test::PacketBuilder packet = eth();
        if (Family::kIsV4) {
            packet.ipv4(source, destination).ttl(ttl).id(body.id).tos(body.traffic_class);
        } else {
            packet.ipv6(source, destination)
                .hop_limit(ttl)
                .tos(body.traffic_class)
                .flow_label(body.flow_label);
        }
        const uint16_t from = endpoints.source_port.host(), to = endpoints.destination_port.host();
        body.udp ? packet.udp(from, to) : packet.tcp(from, to, "PA").seq(body.id).ack(77);
        if (body.without_sum) {
            packet.l4_checksum(0);
        }
        return packet.payload(body.payload).build();
    }

    // Translates one packet and compares all of it with the packet built from the expected result.
    void expect_translated(const Endpoints& before, const Endpoints& after, const TranslationDeltas& deltas,
                           const Body& body) {
        const auto ttl = static_cast<uint8_t>(random.between(2, 255));
        const std::vector<uint8_t> sent = frame_of(before, body, ttl);
        std::vector<uint8_t> frame = sent;
        Parsed parsed;
        ASSERT_TRUE(parse(frame, parsed)) << test::to_scapy(sent);
        translate_packet(frame.data(), parsed, after.source, after.destination, after.source_port,
                         after.destination_port, deltas.l4, deltas.ip);
        ASSERT_TRUE(test::same_frame(frame, frame_of(after, body, static_cast<uint8_t>(ttl - 1))))
            << "from " << test::to_scapy(sent);
    }

    Body random_body() {
        Body body;
        body.udp = random.one_in(2);
        body.without_sum = Family::kIsV4 && body.udp && random.one_in(8);
        body.id = static_cast<uint16_t>(random.next());
        body.traffic_class = random.byte();
        body.flow_label = static_cast<uint32_t>(random.below(1 << 20));
        body.payload = random.bytes(2 + random.below(40));
        return body;
    }
    // Makes the transport checksum of `endpoints`' packet equal to `wanted`.
    static void force_l4_sum(Body& body, const Endpoints& endpoints, uint16_t wanted) {
        store(body.payload.data(), Be16());
        const uint16_t with_zero = test::reference_l4_checksum(frame_of(endpoints, body, 64));
        store(body.payload.data(), Be16::from_host(word_for(wanted, with_zero)));
    }
    static Endpoints reversed(const Endpoints& endpoints) {
        return {endpoints.destination, endpoints.source, endpoints.destination_port, endpoints.source_port};
    }

    Prng random;
};
using Families = testing::Types<Family4, Family6>;
TYPED_TEST_SUITE(Translate, Families);

TYPED_TEST(Translate, EveryPacketOfAFlowByTheFlowsTwoDeltas_NAT001) {
    for (int flow = 0; flow < 1000; ++flow) {
        const auto before = this->random_endpoints(), after = this->random_endpoints();
        const TranslationDeltas deltas = translation_deltas(before, after);
        // The replies arrive for the translated packets and leave as answers to the original ones.
        for (int packet = 0; packet < 5; ++packet) {
            this->expect_translated(before, after, deltas, this->random_body());
            this->expect_translated(this->reversed(after), this->reversed(before), deltas.inverse(),
                                    this->random_body());
        }
    }
}

// Sums at and next to the two representations of zero, before and after the translation.
TYPED_TEST(Translate, CornersOfTheSum_NAT001) {
    for (int flow = 0; flow < 200; ++flow) {
        const auto before = this->random_endpoints(), after = this->random_endpoints();
        const TranslationDeltas deltas = translation_deltas(before, after);
        for (const uint16_t wanted : {uint16_t{0x0000}, uint16_t{0x0001}, uint16_t{0xfffe}}) {
            for (const auto& corner : {before, after}) {
                auto body = this->random_body();
                body.without_sum = false;
                this->force_l4_sum(body, corner, wanted);
                this->expect_translated(before, after, deltas, body);
                this->expect_translated(this->reversed(after), this->reversed(before), deltas.inverse(),
                                        body);
            }
        }
    }
}

TYPED_TEST(Translate, ToTheSameChangesNothingButTheHop) {
    const auto endpoints = this->random_endpoints();
    const TranslationDeltas deltas = translation_deltas(endpoints, endpoints);
    EXPECT_EQ(deltas, TranslationDeltas());
    this->expect_translated(endpoints, endpoints, deltas, this->random_body());
}

TYPED_TEST(Translate, DeltasFromKeysAreTheSame) {
    for (int i = 0; i < 1000; ++i) {
        const auto before = this->random_endpoints(), after = this->random_endpoints();
        const FlowKey key{TypeParam::ip(before.source),
                          TypeParam::ip(before.destination),
                          before.source_port.host(),
                          before.destination_port.host(),
                          Protocol::Tcp,
                          {}};
        const Rewrite rewrite{TypeParam::ip(after.source), TypeParam::ip(after.destination),
                              after.source_port.host(), after.destination_port.host()};
        ASSERT_EQ(translation_deltas(key, rewrite), translation_deltas(before, after));
    }
}

// apply() is the same code with deltas computed from the frame. It gives the same result as the flow's deltas
// for damaged packets too.
TYPED_TEST(Translate, AgreesWithApplyOnWrongSums) {
    for (int i = 0; i < 2000; ++i) {
        const auto before = this->random_endpoints(), after = this->random_endpoints();
        auto body = this->random_body();
        std::vector<uint8_t> one = this->frame_of(before, body, 64);
        one[one.size() - 1] = static_cast<uint8_t>(one.back() + 1);
        Parsed parsed;
        ASSERT_TRUE(parse(one, parsed));
        std::vector<uint8_t> other = one;
        const TranslationDeltas deltas = translation_deltas(before, after);
        translate_packet(one.data(), parsed, after.source, after.destination, after.source_port,
                         after.destination_port, deltas.l4, deltas.ip);
        apply(other, parsed,
              {TypeParam::ip(after.source), TypeParam::ip(after.destination), after.source_port.host(),
               after.destination_port.host()});
        ASSERT_TRUE(test::same_frame(one, other));
        if (!body.without_sum) {
            const size_t field = parsed.l4_offset + (body.udp ? 6U : 16U);
            ASSERT_NE(load<Be16>(one.data() + field).host(), test::reference_l4_checksum(one))
                << "the damage is gone";
        }
    }
}

TEST(Translate6, BehindExtensionHeadersAndNothingElseChanges) {
    const auto packet = [](const char* source, const char* destination, uint8_t hops) {
        return eth()
            .ipv6(source, destination)
            .hop_limit(hops)
            .tos(0xb8)
            .flow_label(0xabcde)
            .hop_by_hop()
            .destination_options(2)
            .fragment(0, false);
    };
    auto frame =
        packet("2001:db8::1", "2001:db8:80::10", 9).tcp(40000, 80, "S").payload("odd").pad_to(200).build();
    Parsed parsed;
    ASSERT_TRUE(parse(frame, parsed));
    apply(frame, parsed, {*IpAddr::parse("fd00::5"), *IpAddr::parse("fd00:2::7"), 1024, 9376});
    EXPECT_TRUE(test::same_frame(
        frame, packet("fd00::5", "fd00:2::7", 8).tcp(1024, 9376, "S").payload("odd").pad_to(200).build()));
}

}  // namespace translate_test
}  // namespace penstock::packet
