// SPDX-License-Identifier: Apache-2.0
// Filters for packets of one shape. tests/property/capture_program_property_test.cpp compares their results
// with libpcap's interpreter.
#include "dataplane/capture/specialise.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "dataplane/capture/program.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::test {
namespace specialise_test {

using capture::Comparisons;
using capture::Instruction;
using capture::Program;
using capture::Shape;

// `tcpdump -dd tcp port 9`
const std::vector<Instruction> kTcpPort{
    {0x28, 0, 0, 12}, {0x15, 0, 6, 0x86dd}, {0x30, 0, 0, 20},     {0x15, 0, 15, 6},     {0x28, 0, 0, 54},
    {0x15, 12, 0, 9}, {0x28, 0, 0, 56},     {0x15, 10, 11, 9},    {0x15, 0, 10, 0x800}, {0x30, 0, 0, 23},
    {0x15, 0, 8, 6},  {0x28, 0, 0, 20},     {0x45, 6, 0, 0x1fff}, {0xb1, 0, 0, 14},     {0x48, 0, 0, 14},
    {0x15, 2, 0, 9},  {0x48, 0, 0, 16},     {0x15, 0, 1, 9},      {0x06, 0, 0, 1},      {0x06, 0, 0, 0}};
constexpr Instruction kReturnAll{0x06, 0, 0, 1};
constexpr Instruction kReturnNone{0x06, 0, 0, 0};

// The comparisons that are left for a shape; -1: the filter is not supported.
int comparisons_of(const std::vector<Instruction>& instructions, Shape shape) {
    Comparisons out;
    const size_t before = out.size();
    const bool is_supported = specialise(instructions, shape, out).has_value();
    EXPECT_TRUE(is_supported || out.size() == before);
    return is_supported ? static_cast<int>(out.size() - before) : -1;
}
PacketBuilder v4() {
    return eth().ipv4("10.80.1.2", "80.11.12.10");
}
PacketBuilder v6() {
    return eth().ipv6("fd00:80:1::2", "2001:db8:80::10");
}

TEST(Shape, IsThatOfAWholePacketWithoutOptions) {
    const auto shape = [](const std::vector<uint8_t>& frame) { return capture::shape_of(frame.data()); };
    EXPECT_EQ(shape(v4().tcp(1, 2, "A").build()), Shape::TcpV4);
    EXPECT_EQ(shape(v4().udp(1, 2).build()), Shape::UdpV4);
    EXPECT_EQ(shape(v6().tcp(1, 2, "A").build()), Shape::TcpV6);
    EXPECT_EQ(shape(v6().udp(1, 2).build()), Shape::UdpV6);
    const auto changed = [&](size_t at, uint8_t value) {
        auto frame = v4().tcp(1, 2, "A").build();
        frame[at] = value;
        return shape(frame);
    };
    EXPECT_EQ(changed(12, 0x81), Shape::None);  // VLAN
    EXPECT_EQ(changed(14, 0x46), Shape::None);  // options
    EXPECT_EQ(changed(20, 0x20), Shape::None);  // a first fragment
    EXPECT_EQ(changed(20, 0x01), Shape::None);  // a later one
    EXPECT_EQ(changed(21, 0x01), Shape::None);
    EXPECT_EQ(changed(20, 0x40), Shape::TcpV4);  // DF
    EXPECT_EQ(changed(15, 0xff), Shape::TcpV4);  // DSCP
    EXPECT_EQ(changed(23, 132), Shape::None);
}

TEST(Specialise, OnlyFieldsThatTheShapeLeavesOpenAreCompared) {
    EXPECT_EQ(comparisons_of(kTcpPort, Shape::TcpV4), 2);
    EXPECT_EQ(comparisons_of(kTcpPort, Shape::TcpV6), 2);
    EXPECT_EQ(comparisons_of(kTcpPort, Shape::UdpV4), 0);
    EXPECT_EQ(comparisons_of(kTcpPort, Shape::UdpV6), 0);
}

// The flags behind the ports, as a mask.
TEST(Specialise, BitsAreCompared) {
    const std::vector<Instruction> syn{
        {0xb1, 0, 0, 14}, {0x50, 0, 0, 27}, {0x45, 0, 1, 2}, kReturnAll, kReturnNone};
    EXPECT_EQ(comparisons_of(syn, Shape::TcpV4), 1);
    EXPECT_EQ(comparisons_of(syn, Shape::TcpV6), -1);  // byte 14 has no header length there
    const auto program = Program::make(syn);
    ASSERT_TRUE(program.has_value());
    const auto matches = [&](const char* flags) {
        const auto frame = v4().tcp(1, 2, flags).build();
        return program->matches(frame.data(), static_cast<uint32_t>(frame.size()));
    };
    EXPECT_TRUE(matches("S"));
    EXPECT_TRUE(matches("SA"));
    EXPECT_FALSE(matches("A"));
}

TEST(Specialise, BitsOfTwoMasksAreThoseOfBoth) {
    const std::vector<Instruction> masks{{0x28, 0, 0, 34},   {0x54, 0, 0, 0xf0}, {0x54, 0, 0, 0x3c},
                                         {0x15, 0, 1, 0x30}, kReturnAll,         kReturnNone};
    EXPECT_EQ(comparisons_of(masks, Shape::TcpV4), 1);
    const auto program = Program::make(masks);
    ASSERT_TRUE(program.has_value());
    for (const auto& [port, is_match] : std::vector<std::pair<uint16_t, bool>>{
             {0x30, true}, {0x34, true}, {0x70, true}, {0xff, true}, {0x10, false}, {0x3c00, false}}) {
        const auto frame = v4().tcp(port, 2, "A").build();
        EXPECT_EQ(program->matches(frame.data(), static_cast<uint32_t>(frame.size())), is_match) << port;
    }
}

TEST(Specialise, AShortFrameIsLeftToTheGeneralProgram) {
    const auto program = Program::make(kTcpPort);
    ASSERT_TRUE(program.has_value());
    auto frame = v4().tcp(1, 9, "A").build();
    ASSERT_EQ(frame.size(), 54U);
    EXPECT_TRUE(program->matches(frame.data(), 54));
    EXPECT_TRUE(program->matches(frame.data(), 38));  // the port is there
    EXPECT_FALSE(program->matches(frame.data(), 37));
    EXPECT_FALSE(program->matches(frame.data(), 20));
}

TEST(Specialise, ComputationsAreNotSupported) {
    for (const std::vector<Instruction>& instructions : {
             std::vector<Instruction>{{0x80, 0, 0, 0}, {0x25, 0, 1, 100}, kReturnAll, kReturnNone},  // len
             {{0x28, 0, 0, 34}, {0x25, 0, 1, 100}, kReturnAll, kReturnNone},  // greater
             {{0x28, 0, 0, 34}, {0x04, 0, 0, 1}, kReturnAll},                 // an addition
             {{0x28, 0, 0, 34}, {0x07, 0, 0, 0}, kReturnAll},                 // X from a field
             {{0x28, 0, 0, 34}, {0x16, 0, 0, 0}},                             // return a field
             {{0x02, 0, 0, 0}, kReturnAll},                                   // memory
             {{0x20, 0, 0, 0xffff'fff0}, kReturnAll},                         // behind any frame
         }) {
        EXPECT_EQ(comparisons_of(instructions, Shape::TcpV4), -1) << instructions[0].code;
    }
}

// Two ways lead to each test of this filter, so that the number of ways doubles with each.
TEST(Specialise, EachStateIsFollowedOnce) {
    std::vector<Instruction> instructions;
    for (uint32_t n = 0; n < 60; ++n) {
        instructions.push_back({0x30, 0, 0, 40 + n});
        instructions.push_back({0x15, 0, 0, n});
    }
    instructions.push_back(kReturnAll);
    EXPECT_EQ(comparisons_of(instructions, Shape::TcpV4), 60);
}

}  // namespace specialise_test
}  // namespace penstock::test
