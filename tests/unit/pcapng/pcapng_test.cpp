// SPDX-License-Identifier: Apache-2.0
// The blocks, read by a reader of the format's own rules. tests/e2e/capture_cases.py reads files by tshark.
#include "control/pcapng/pcapng.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace penstock::test {
namespace pcapng_test {

using capture::Pcapng;

struct Block {
    uint32_t type = 0;
    std::string body;
};
uint32_t word(const std::string& bytes, size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}
std::vector<Block> blocks_of(const std::string& file) {
    std::vector<Block> blocks;
    for (size_t at = 0; at < file.size();) {
        const uint32_t length = word(file, at + 4);
        EXPECT_EQ(length % 4, 0u);
        EXPECT_GE(length, 12u);
        if (length < 12 || at + length > file.size()) {
            ADD_FAILURE() << "block of " << length << " bytes at " << at;
            break;
        }
        EXPECT_EQ(word(file, at + length - 4), length);
        blocks.push_back({word(file, at), file.substr(at + 8, length - 12)});
        at += length;
    }
    return blocks;
}
// Options by code; they must end with opt_endofopt.
std::map<uint16_t, std::string> options_of(const std::string& body, size_t at) {
    std::map<uint16_t, std::string> options;
    while (at < body.size()) {
        const auto code = static_cast<uint16_t>(word(body, at));
        const auto length = static_cast<uint16_t>(word(body, at) >> 16);
        at += 4;
        if (code == 0) {
            EXPECT_EQ(at, body.size());
            return options;
        }
        options[code] = body.substr(at, length);
        at += (length + 3U) / 4 * 4;
    }
    if (!options.empty()) {
        ADD_FAILURE() << "no end of options";
    }
    return options;
}

TEST(Pcapng, HasSectionInterfacesPacketsAndStatistics) {
    Pcapng file("penstockd 1.2.3");
    EXPECT_EQ(file.add_interface("p0:rx", "as received", 128), 0u);
    EXPECT_EQ(file.add_interface("p0:tx", "", 128), 1u);
    const std::vector<uint8_t> frame{1, 2, 3, 4, 5};
    file.add_packet({.interface = 1,
                     .time_ns = 0x1'0000'0002,
                     .bytes = frame,
                     .wire_bytes = 60,
                     .direction = capture::Direction::Outbound,
                     .lost_before = 3,
                     .comment = "verdict=transmit"});
    file.add_packet({.interface = 0, .time_ns = 5, .bytes = frame, .wire_bytes = 5});
    file.add_statistics(
        {.interface = 1, .start_ns = 1, .end_ns = 9, .received = 2, .lost = 3, .comment = "over"});
    const auto blocks = blocks_of(file.take());
    ASSERT_EQ(blocks.size(), 6u);
    EXPECT_EQ(blocks[0].type, 0x0a0d0d0au);
    EXPECT_EQ(word(blocks[0].body, 0), 0x1a2b3c4du);
    EXPECT_EQ(word(blocks[0].body, 4), 1u);
    EXPECT_EQ(options_of(blocks[0].body, 16)[4], "penstockd 1.2.3");

    EXPECT_EQ(blocks[1].type, 1u);
    EXPECT_EQ(word(blocks[1].body, 0), 1u) << "Ethernet";
    EXPECT_EQ(word(blocks[1].body, 4), 128u);
    auto interface = options_of(blocks[1].body, 8);
    EXPECT_EQ(interface[2], "p0:rx");
    EXPECT_EQ(interface[3], "as received");
    EXPECT_EQ(interface[9], std::string(1, '\x09')) << "nanoseconds";
    EXPECT_FALSE(options_of(blocks[2].body, 8).contains(3));

    EXPECT_EQ(blocks[3].type, 6u);
    EXPECT_EQ(word(blocks[3].body, 0), 1u);
    EXPECT_EQ(word(blocks[3].body, 4), 1u) << "high word of the time";
    EXPECT_EQ(word(blocks[3].body, 8), 2u);
    EXPECT_EQ(word(blocks[3].body, 12), 5u);
    EXPECT_EQ(word(blocks[3].body, 16), 60u);
    EXPECT_EQ(blocks[3].body.substr(20, 8), std::string("\1\2\3\4\5\0\0\0", 8));
    auto packet = options_of(blocks[3].body, 28);
    EXPECT_EQ(packet[1], "verdict=transmit");
    EXPECT_EQ(word(packet[2], 0), 2u) << "outbound";
    EXPECT_EQ(word(packet[4], 0), 3u) << "lost before";

    EXPECT_EQ(blocks[4].type, 6u);
    EXPECT_EQ(blocks[4].body.size(), 28u) << "no options";

    EXPECT_EQ(blocks[5].type, 5u);
    auto statistics = options_of(blocks[5].body, 12);
    EXPECT_EQ(statistics[1], "over");
    EXPECT_EQ(word(statistics[3], 4), 9u);
    EXPECT_EQ(word(statistics[4], 0), 2u);
    EXPECT_EQ(word(statistics[5], 0), 3u);
}

TEST(Pcapng, IsTakenInParts) {
    Pcapng file("p");
    const std::string first = file.take();
    EXPECT_EQ(blocks_of(first).size(), 1u);
    EXPECT_EQ(file.size(), 0u);
    file.add_interface("i", "", 64);
    EXPECT_EQ(blocks_of(file.take()).size(), 1u);
    EXPECT_EQ(file.take(), "");
}

TEST(Pcapng, ACommentThatIsTooLong_IsCut) {
    Pcapng file("p");
    static_cast<void>(file.take());
    file.add_packet({.comment = std::string(70'000, 'x')});
    const auto blocks = blocks_of(file.take());
    ASSERT_EQ(blocks.size(), 1u);
    EXPECT_EQ(options_of(blocks[0].body, 20)[1].size(), 65'535u);
}

}  // namespace pcapng_test
}  // namespace penstock::test
