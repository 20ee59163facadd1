// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/checksum.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace checksum_test {

using test::Prng;
using test::reference_checksum;

// Every sum is its remainder modulo 0xffff, represented as 0xffff unless all terms are 0. Corner cases: a
// carry that causes another carry.
TEST(Fold, IsTheRemainderInEveryCorner) {
    const auto expect_remainder = [](uint64_t sum) {
        const auto remainder = static_cast<uint16_t>(sum % 0xffff);
        ASSERT_EQ(detail::fold(sum), remainder == 0 && sum != 0 ? 0xffff : remainder) << std::hex << sum;
    };
    const std::array<uint64_t, 6> corners{0, 1, 2, 0x8000, 0xfffe, 0xffff};
    for (const uint64_t a : corners) {
        for (const uint64_t b : corners) {
            for (const uint64_t c : corners) {
                for (const uint64_t d : corners) {
                    expect_remainder(a << 48 | b << 32 | c << 16 | d);
                }
            }
        }
    }
    Prng random;
    for (int i = 0; i < 100'000; ++i) {
        expect_remainder(random.next() >> random.below(64));
    }
}

TEST(ChecksumSum, GivesTheExampleOfRfc1071) {
    const std::array<uint8_t, 8> bytes{0x00, 0x01, 0xf2, 0x03,
                                       0xf4, 0xf5, 0xf6, 0xf7};  // section 3: the sum is ddf2
    EXPECT_EQ(ChecksumSum().add(bytes).checksum().host(), static_cast<uint16_t>(~0xddf2));
}

TEST(ChecksumSum, AgreesWithTheReferenceAtEveryLengthAndAlignment) {
    Prng random;
    const std::vector<uint8_t> bytes = random.bytes(300);
    for (size_t from = 0; from < 8; ++from) {
        for (size_t length = 0; from + length <= bytes.size(); ++length) {
            const ByteView view = ByteView(bytes).subspan(from, length);
            ASSERT_EQ(ChecksumSum().add(view).checksum().host(), reference_checksum(view))
                << from << "+" << length;
        }
    }
}

TEST(ChecksumSum, HoldsALongestPacketOfOnes) {
    const std::vector<uint8_t> bytes(65535, 0xff);
    EXPECT_EQ(ChecksumSum().add(bytes).checksum().host(), reference_checksum(bytes));
}

TEST(ChecksumSum, AcceptsBothSpellingsOfZero) {
    for (const uint16_t field : {uint16_t{0x0000}, uint16_t{0xffff}}) {
        EXPECT_TRUE(ChecksumSum().add(Be16::from_host(0xffff)).add(Be16::from_host(field)).is_valid());
    }
    EXPECT_FALSE(ChecksumSum().add(Be16::from_host(0xffff)).add(Be16::from_host(1)).is_valid());
}

TEST(ChecksumSum, PseudoHeaderOfBothFamilies) {
    const IpAddr a4 = IpAddr::v4(192, 0, 2, 1), b4 = IpAddr::v4(10, 0, 0, 255);
    const std::array<uint8_t, 12> expected4{192, 0, 2, 1, 10, 0, 0, 255, 0, 17, 0x12, 0x34};
    EXPECT_EQ(ChecksumSum().add_pseudo_header(a4, b4, 17, 0x1234).checksum().host(),
              reference_checksum(expected4));

    const IpAddr a6 = IpAddr::parse("2001:db8::1:2").value(), b6 = IpAddr::parse("fe80::3").value();
    std::vector<uint8_t> expected6(a6.bytes().begin(), a6.bytes().end());
    expected6.insert(expected6.end(), b6.bytes().begin(), b6.bytes().end());
    // RFC 8200, 8.1: a 32-bit length, three zeros, the number.
    const std::array<uint8_t, 8> rest{0x00, 0x00, 0x12, 0x34, 0x00, 0x00, 0x00, 0x06};
    expected6.insert(expected6.end(), rest.begin(), rest.end());
    EXPECT_EQ(ChecksumSum().add_pseudo_header(a6, b6, 6, 0x1234).checksum().host(),
              reference_checksum(expected6));
}

// RFC 1624, section 4: the case in which the older equation of RFC 1141 gives the other representation of
// zero.
TEST(ChecksumDelta, GivesTheExampleOfRfc1624) {
    ChecksumDelta delta;
    delta.replace(Be16::from_host(0x5555), Be16::from_host(0x3285));
    EXPECT_EQ(delta.applied_to(Be16::from_host(0xdd2f)).host(), 0x0000);
}

// One change of each pair is tried on a message of eight words for every value of one field: all corner cases
// of the arithmetic.
TEST(ChecksumDelta, AgreesWithARecomputedSumForEveryWord) {
    Prng random;
    std::vector<uint8_t> message = random.bytes(16);
    for (unsigned value = 0; value <= 0xffff; ++value) {
        store(message.data(), Be16::from_host(static_cast<uint16_t>(value)));
        const Be16 before = Be16::from_host(reference_checksum(message));
        std::vector<uint8_t> changed = message;
        const auto word = static_cast<uint16_t>(random.next());
        const auto words = static_cast<uint32_t>(random.next());
        store(changed.data(), Be16::from_host(word));
        store(changed.data() + 4, Be32::from_host(words));
        ChecksumDelta delta;
        delta.replace(load<Be16>(message.data()), load<Be16>(changed.data()));
        delta.replace(load<Be32>(message.data() + 4), load<Be32>(changed.data() + 4));
        ASSERT_EQ(delta.applied_to(before).host(), reference_checksum(changed))
            << value << " -> " << word << ", " << words;
    }
}

TEST(ChecksumDelta, NothingReplacedKeepsTheSum) {
    EXPECT_EQ(ChecksumDelta().applied_to(Be16::from_host(0x1234)).host(), 0x1234);
    ChecksumDelta delta;
    delta.replace(Be32::from_host(0xc0000201), Be32::from_host(0xc0000201));
    EXPECT_EQ(delta.applied_to(Be16::from_host(0x1234)).host(), 0x1234);
}

TEST(UdpChecksum, ZeroStaysZeroAndComputedZeroIsSpelledOut_NAT001) {
    ChecksumDelta to_zero;
    to_zero.replace(Be16::from_host(0x5555), Be16::from_host(0x3285));
    EXPECT_EQ(udp_checksum_after(Be16::from_host(0), to_zero).host(), 0x0000);
    EXPECT_EQ(udp_checksum_after(Be16::from_host(0xdd2f), to_zero).host(), 0xffff);
    EXPECT_EQ(udp_checksum_after(Be16::from_host(0xffff), ChecksumDelta()).host(), 0xffff);
    EXPECT_EQ(udp_checksum_field(Be16::from_host(0)).host(), 0xffff);
    EXPECT_EQ(udp_checksum_field(Be16::from_host(7)).host(), 7);
}

}  // namespace checksum_test
}  // namespace penstock::packet
