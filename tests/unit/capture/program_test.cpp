// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture/program.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::test {
namespace program_test {

using capture::Instruction;
using capture::Program;

constexpr Instruction kReturnAll{0x06, 0, 0, 1};
constexpr Instruction kReturnNone{0x06, 0, 0, 0};

// `tcpdump -dd ip`: the ethertype is IPv4.
const std::vector<Instruction> kIsIpv4{{0x28, 0, 0, 12}, {0x15, 0, 1, 0x800}, kReturnAll, kReturnNone};

std::vector<uint8_t> frame_of_type(uint16_t type, size_t bytes = 60) {
    std::vector<uint8_t> frame(bytes);
    frame[12] = static_cast<uint8_t>(type >> 8);
    frame[13] = static_cast<uint8_t>(type);
    return frame;
}
bool matches(const Program& program, const std::vector<uint8_t>& frame) {
    return program.matches(frame.data(), static_cast<uint32_t>(frame.size()));
}

TEST(Program, WithoutInstructions_MatchesAll) {
    const auto program = Program::make({});
    ASSERT_TRUE(program.has_value());
    EXPECT_TRUE(program->matches(nullptr, 0));
}

TEST(Program, ComparesFields) {
    const auto program = Program::make(kIsIpv4);
    ASSERT_TRUE(program.has_value());
    EXPECT_TRUE(matches(*program, frame_of_type(0x800)));
    EXPECT_FALSE(matches(*program, frame_of_type(0x86dd)));
    // exactly long enough, and one byte short of it
    EXPECT_TRUE(program->matches(frame_of_type(0x800).data(), 14));
    EXPECT_FALSE(program->matches(frame_of_type(0x800).data(), 13));
}

// A jump may lead to the second half of a pair that is executed as one step.
TEST(Program, JumpsIntoAPair) {
    const std::vector<Instruction> instructions{{0x00, 0, 0, 7},   // A = 7
                                                {0x05, 0, 0, 1},   // skip the load
                                                {0x28, 0, 0, 12},  // A = ethertype
                                                {0x15, 0, 1, 7},   // A == 7 ?
                                                kReturnAll,       kReturnNone};
    const auto program = Program::make(instructions);
    ASSERT_TRUE(program.has_value());
    EXPECT_TRUE(matches(*program, frame_of_type(0x800)));
}

TEST(Program, ReadsBehindTheEnd_DoNotMatch) {
    // A load in a place that no frame has, behind a branch that leads past it.
    const std::vector<Instruction> instructions{
        {0x30, 0, 0, 0}, {0x15, 0, 2, 0xee}, {0x20, 0, 0, 0xffff'fffe}, kReturnAll, kReturnAll};
    const auto program = Program::make(instructions);
    ASSERT_TRUE(program.has_value());
    std::vector<uint8_t> frame(60);
    EXPECT_TRUE(matches(*program, frame));
    frame[0] = 0xee;
    EXPECT_FALSE(matches(*program, frame));
    // by X: the sum of place and X exceeds 32 bits
    const std::vector<Instruction> by_x{{0x01, 0, 0, 0xffff'fff0}, {0x50, 0, 0, 0x10}, kReturnAll};
    EXPECT_FALSE(matches(*Program::make(by_x), frame));
}

TEST(Program, DivisionByZeroAndWideShifts_AreDefined) {
    const std::vector<uint8_t> frame(60);
    const std::vector<Instruction> divided{{0x00, 0, 0, 5}, {0x01, 0, 0, 0}, {0x3c, 0, 0, 0}, kReturnAll};
    EXPECT_FALSE(matches(*Program::make(divided), frame));
    const std::vector<Instruction> shifted{
        {0x00, 0, 0, 5}, {0x01, 0, 0, 40}, {0x6c, 0, 0, 0}, {0x16, 0, 0, 0}};
    EXPECT_FALSE(matches(*Program::make(shifted), frame));
}

TEST(Program, FaultsAreNamed) {
    const struct {
        std::vector<Instruction> instructions;
        std::string what;
    } rows[] = {
        {{{0xffff, 0, 0, 0}, kReturnAll}, "instruction 0: unknown code 65535"},
        {{{0x05, 0, 0, 1}, kReturnAll}, "instruction 0: a jump of 1 leads out of the program"},
        {{{0x05, 0, 0, 0xffff'ffff}, kReturnAll},
         "instruction 0: a jump of 4294967295 leads out of the program"},
        {{{0x15, 0, 1, 0}, kReturnAll}, "instruction 0: a branch leads out of the program"},
        {{{0x15, 9, 0, 0}, kReturnAll}, "instruction 0: a branch leads out of the program"},
        {{{0x60, 0, 0, 16}, kReturnAll}, "instruction 0: memory word 16 does not exist; the last one is 15"},
        {{{0x34, 0, 0, 0}, kReturnAll}, "instruction 0: division by zero"},
        {{{0x64, 0, 0, 32}, kReturnAll}, "instruction 0: a shift by 32 bits; the maximum is 31"},
        {{kReturnAll, {0x00, 0, 0, 1}}, "instruction 1: the last instruction must return"},
        {std::vector<Instruction>(capture::kInstructionsMax + 1, kReturnAll),
         "the filter has 1025 instructions; the maximum is 1024"},
    };
    for (const auto& row : rows) {
        const auto program = Program::make(row.instructions);
        ASSERT_FALSE(program.has_value()) << row.what;
        EXPECT_EQ(program.error().code, Errc::InvalidArgument);
        EXPECT_EQ(program.error().what, row.what);
    }
    EXPECT_TRUE(Program::make(std::vector<Instruction>(capture::kInstructionsMax, kReturnAll)).has_value());
}

}  // namespace program_test
}  // namespace penstock::test
