// SPDX-License-Identifier: Apache-2.0
// CRC32c of SCTP packets.
#include "dataplane/packet/crc32c.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "dataplane/packet/sctp.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"

namespace penstock::packet {
namespace crc32c_test {

using test::eth;
using test::PacketBuilder;
using test::same_frame;

TEST(Crc32c, OfKnownBytes_SCTP001) {
    const std::string_view digits = "123456789";
    EXPECT_EQ(crc32c(ByteView(reinterpret_cast<const uint8_t*>(digits.data()), digits.size())), 0xe306'9283U)
        << "the usual check value";
    EXPECT_EQ(crc32c({}), 0u);
    const std::vector<uint8_t> zeros(32, 0), ones(32, 0xff);  // RFC 3720, B.4
    EXPECT_EQ(crc32c(zeros), 0x8a91'36aaU);
    EXPECT_EQ(crc32c(ones), 0x62a8'ab43U);
}

// The full sum against the definition, and the incremental update against the full sum, for every length near
// the tables' limits.
TEST(Crc32c, ChangesByWhatItsFirstFourBytesDo_SCTP001) {
    test::Prng prng(test::seed());
    for (const size_t bytes : {4u, 5u, 12u, 16u, 255u, 256u, 257u, 1480u, 9000u, 65'280u, 65'535u}) {
        std::vector<uint8_t> message(bytes);
        for (uint8_t& byte : message) {
            byte = static_cast<uint8_t>(prng.next());
        }
        const uint32_t before = crc32c(message);
        EXPECT_EQ(before, test::reference_crc32c(message)) << bytes;
        const auto old = load<uint32_t>(message.data());
        const auto changed = static_cast<uint32_t>(prng.next());
        store(message.data(), changed);
        EXPECT_EQ(before ^ crc32c_change(old ^ changed, bytes), crc32c(message)) << bytes;
        EXPECT_EQ(crc32c_change(0, bytes), 0u);
    }
}

}  // namespace crc32c_test
}  // namespace penstock::packet
