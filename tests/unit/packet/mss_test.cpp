// SPDX-License-Identifier: Apache-2.0
// Lowering the MSS of a SYN, compared with packets built anew, checksums included.
#include <gtest/gtest.h>

#include <vector>

#include "dataplane/packet/mss.hpp"
#include "dataplane/packet/parse.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet {
namespace mss_test {

using test::eth;
using test::same_frame;

std::vector<uint8_t> mss(uint16_t bytes) {
    return {2, 4, static_cast<uint8_t>(bytes >> 8), static_cast<uint8_t>(bytes)};
}
std::vector<uint8_t> with(const std::vector<uint8_t>& before, const std::vector<uint8_t>& option,
                          const std::vector<uint8_t>& behind = {}) {
    std::vector<uint8_t> all = before;
    all.insert(all.end(), option.begin(), option.end());
    all.insert(all.end(), behind.begin(), behind.end());
    return all;
}
std::vector<uint8_t> syn(bool v4, const std::vector<uint8_t>& options) {
    test::PacketBuilder builder =
        v4 ? eth().ipv4("192.0.2.1", "198.51.100.2") : eth().ipv6("2001:db8::1", "2001:db8::2");
    return builder.tcp(40000, 80, "S").tcp_options(options).build();
}
std::vector<uint8_t> lowered(std::vector<uint8_t> frame, uint16_t mss_max, bool is_changed = true) {
    Parsed parsed;
    EXPECT_TRUE(parse(frame, parsed).has_value());
    EXPECT_EQ(lower_mss(frame, parsed, mss_max), is_changed);
    return frame;
}

TEST(LowerMss, WritesTheLimitAndMovesTheChecksum) {
    for (const bool v4 : {true, false}) {
        for (const uint16_t offered : {uint16_t{1301}, uint16_t{1460}, uint16_t{8960}, uint16_t{65535}}) {
            EXPECT_TRUE(same_frame(lowered(syn(v4, mss(offered)), 1300), syn(v4, mss(1300)))) << offered;
        }
    }
}

TEST(LowerMss, OnlyLowers) {
    for (const uint16_t offered : {uint16_t{0}, uint16_t{536}, uint16_t{1300}}) {
        EXPECT_TRUE(same_frame(lowered(syn(true, mss(offered)), 1300, false), syn(true, mss(offered))))
            << offered;
    }
    const std::vector<uint8_t> none{4, 2, 1, 3, 3, 7};  // SACK permitted, window scale
    EXPECT_TRUE(same_frame(lowered(syn(true, none), 1300, false), syn(true, none))) << "no size named";
}

// Behind other options, and at odd offsets, where its bytes belong to two words of the sum.
TEST(LowerMss, FindsTheOptionWhereverItIs) {
    for (const std::vector<uint8_t>& before :
         {std::vector<uint8_t>{1}, {1, 1}, {1, 1, 1}, {4, 2}, {3, 3, 7}, {3, 3, 7, 1, 4, 2}}) {
        EXPECT_TRUE(same_frame(lowered(syn(true, with(before, mss(1460), {4, 2})), 1220),
                               syn(true, with(before, mss(1220), {4, 2}))))
            << before.size();
    }
}

TEST(LowerMss, ReadsNothingBehindTheHeaderOrTheEndOfTheList) {
    for (const std::vector<uint8_t>& options : {std::vector<uint8_t>{0, 2, 4, 5, 180},
                                                {3, 0, 2, 4, 5, 180, 0, 0},
                                                {3, 1, 2, 4},
                                                {8, 40, 2, 4},
                                                {1, 1, 1, 2},
                                                {2, 3, 5, 180}}) {
        EXPECT_TRUE(same_frame(lowered(syn(true, options), 536, false), syn(true, options)));
    }
}

TEST(LowerMss, LeavesAWrongChecksumWrong) {
    const auto build = [](uint16_t bytes, uint16_t sum) {
        return eth()
            .ipv4("192.0.2.1", "198.51.100.2")
            .tcp(40000, 80, "S")
            .tcp_options(mss(bytes))
            .l4_checksum(sum)
            .build();
    };
    const std::vector<uint8_t> before = build(1460, 0x4242);
    const std::vector<uint8_t> after = lowered(before, 1300);
    EXPECT_TRUE(same_frame(after, build(1300, static_cast<uint16_t>(0x4242 + 160))));
}

}  // namespace mss_test
}  // namespace penstock::packet
