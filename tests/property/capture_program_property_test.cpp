// SPDX-License-Identifier: Apache-2.0
// The filter interpreter against libpcap's own (bpf_filter), on random programs and on compiled filters.
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "dataplane/capture/program.hpp"
#include "dataplane/capture/specialise.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::test {
namespace capture_program_property_test {

using capture::Instruction;
using capture::Program;

static_assert(sizeof(Instruction) == sizeof(bpf_insn) && offsetof(Instruction, k) == offsetof(bpf_insn, k));

bool judged_by_libpcap(const std::vector<Instruction>& instructions, const std::vector<uint8_t>& frame) {
    const auto length = static_cast<u_int>(frame.size());
    return bpf_filter(reinterpret_cast<const bpf_insn*>(instructions.data()), frame.data(), length, length) !=
           0;
}

constexpr std::array<uint16_t, 20> kPlainCodes{0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x00, 0x80, 0x01, 0x81,
                                               0xb1, 0x02, 0x03, 0x07, 0x87, 0x84, 0x0c, 0x1c, 0x3c, 0x9c};
constexpr std::array<uint16_t, 18> kOperations{0x04, 0x14, 0x24, 0x34, 0x94, 0x54, 0x44, 0xa4, 0x64,
                                               0x74, 0x2c, 0x5c, 0x4c, 0xac, 0x60, 0x61, 0x02, 0x03};
constexpr std::array<uint16_t, 8> kBranches{0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d};

// Small places, so that most reads are inside; sometimes any number.
uint32_t place(Prng& random) {
    return random.one_in(20) ? static_cast<uint32_t>(random.next()) : static_cast<uint32_t>(random.below(70));
}

// A valid program. Memory is written before anything else, because libpcap leaves it undefined.
std::vector<Instruction> draw_program(Prng& random) {
    std::vector<Instruction> program{{0x00, 0, 0, static_cast<uint32_t>(random.below(100))}};
    for (uint32_t word = 0; word < 16; ++word) {
        program.push_back({0x02, 0, 0, word});
    }
    const size_t body = 1 + random.below(30);
    for (size_t at = 0; at < body; ++at) {
        const uint64_t behind = body - at;  // instructions behind this one, the return included
        const auto jump = [&] { return static_cast<uint8_t>(random.below(std::min<uint64_t>(behind, 4))); };
        switch (random.below(3)) {
            case 0:
                program.push_back({kPlainCodes[random.below(kPlainCodes.size())], 0, 0, place(random)});
                break;
            case 1:
                program.push_back({kOperations[random.below(kOperations.size())], 0, 0,
                                   static_cast<uint32_t>(random.between(1, 15))});
                break;
            default:
                program.push_back({random.one_in(10) ? uint16_t{0x05} : kBranches[random.below(8)], jump(),
                                   jump(), static_cast<uint32_t>(random.below(256))});
                if (program.back().code == 0x05) {
                    program.back().k = jump();
                }
                break;
        }
        if (program.back().code == 0x02 || program.back().code == 0x03) {
            program.back().k %= 16;
        }
    }
    program.push_back(random.one_in(2) ? Instruction{0x16, 0, 0, 0}
                                       : Instruction{0x06, 0, 0, static_cast<uint32_t>(random.below(2))});
    return program;
}

// Both interpreters on eight frames of `draw`. Adds the matches.
template <typename Draw>
void compare(const Program& program, const std::vector<Instruction>& instructions, Draw draw,
             uint32_t& matches) {
    for (uint32_t f = 0; f < 8; ++f) {
        const std::vector<uint8_t> frame = draw();
        const bool expected = judged_by_libpcap(instructions, frame);
        ASSERT_EQ(program.matches(frame.data(), static_cast<uint32_t>(frame.size())), expected);
        matches += expected ? 1 : 0;
    }
}

TEST(CaptureProgram, RandomProgramsAgreeWithLibpcap) {
    Prng random;
    uint32_t matches = 0;
    constexpr uint32_t kPrograms = 20'000;
    for (uint32_t n = 0; n < kPrograms; ++n) {
        const std::vector<Instruction> instructions = draw_program(random);
        const auto program = Program::make(instructions);
        ASSERT_TRUE(program.has_value()) << program.error().what;
        ASSERT_TRUE(bpf_validate(reinterpret_cast<const bpf_insn*>(instructions.data()),
                                 static_cast<int>(instructions.size())));
        ASSERT_NO_FATAL_FAILURE(compare(
            *program, instructions, [&] { return random.bytes(random.below(80) + 1); }, matches))
            << "program " << n;
    }
    EXPECT_GT(matches, kPrograms);  // of eight times as many
    EXPECT_LT(matches, 7 * kPrograms);
}

// Loads and branches as compiled filters have them, on the fields of packets. Constants are those that the
// fields often have.
std::vector<Instruction> draw_filter(Prng& random) {
    constexpr std::array<uint32_t, 10> kPlaces{12, 14, 20, 23, 26, 30, 34, 36, 54, 56};
    constexpr std::array<uint32_t, 10> kNumbers{0, 1, 2, 5, 6, 17, 0x45, 0x800, 0x86dd, 0x1fff};
    constexpr std::array<uint16_t, 6> kLoads{0x20, 0x28, 0x30, 0x40, 0x48, 0x50};
    std::vector<Instruction> program;
    const size_t body = 2 + random.below(30);
    for (size_t at = 0; at < body; ++at) {
        const uint64_t behind = body - at;  // instructions behind this one, the return included
        const auto jump = [&] { return static_cast<uint8_t>(random.below(std::min<uint64_t>(behind, 6))); };
        const uint32_t number = kNumbers[random.below(kNumbers.size())];
        if (random.one_in(16)) {
            constexpr std::array<uint16_t, 7> kOthers{0x00, 0x01, 0x07, 0x87, 0x54, 0xb1, 0x05};
            Instruction other{kOthers[random.below(kOthers.size())], 0, 0, number};
            other.k = other.code == 0xb1 ? 14 : other.code == 0x05 ? jump() : number;
            program.push_back(other);
        } else if (random.one_in(2)) {
            const uint32_t at_x = random.one_in(4) ? 14 : 0;
            program.push_back({kLoads[random.below(kLoads.size())], 0, 0,
                               at_x + kPlaces[random.below(kPlaces.size())] - (at_x > 0 ? 12 : 0)});
        } else {
            constexpr std::array<uint16_t, 3> kTests{0x15, 0x45, 0x25};
            program.push_back({kTests[random.one_in(20) ? 2 : random.below(2)], jump(), jump(), number});
        }
    }
    program.push_back({0x06, 0, 0, static_cast<uint32_t>(random.below(2))});
    return program;
}
std::vector<uint8_t> draw_shaped_frame(Prng& random) {
    std::vector<uint8_t> frame = random.bytes(24 + random.below(50));
    for (size_t at = 24; at < frame.size(); ++at) {
        frame[at] %= 3;
    }
    const bool is_v4 = random.one_in(2);
    frame[12] = is_v4 ? 0x08 : 0x86;
    frame[13] = is_v4 ? 0x00 : 0xdd;
    frame[14] = is_v4 ? 0x45 : 0x60;
    frame[20] = is_v4 ? 0x40 : frame[20];
    frame[21] = is_v4 ? 0 : frame[21];
    frame[is_v4 ? 23 : 20] = random.one_in(2) ? 6 : 17;
    if (random.one_in(4)) {
        frame[12 + random.below(12)] ^= static_cast<uint8_t>(1U << random.below(8));
    }
    if (random.one_in(8)) {
        frame.resize(random.below(frame.size()) + 1);
    }
    return frame;
}

TEST(CaptureProgram, FiltersOfCommonShapesAgreeWithLibpcap) {
    Prng random;
    uint32_t matches = 0, specialised = 0, comparisons = 0;
    constexpr uint32_t kPrograms = 20'000;
    for (uint32_t n = 0; n < kPrograms; ++n) {
        const std::vector<Instruction> instructions = draw_filter(random);
        const auto program = Program::make(instructions);
        ASSERT_TRUE(program.has_value()) << program.error().what;
        capture::Comparisons by_shape;
        specialised += capture::specialise(instructions, capture::Shape::TcpV4, by_shape).has_value() ? 1 : 0;
        comparisons += static_cast<uint32_t>(by_shape.size() - 1);
        ASSERT_NO_FATAL_FAILURE(compare(
            *program, instructions, [&] { return draw_shaped_frame(random); }, matches))
            << "program " << n;
    }
    EXPECT_GT(matches, kPrograms);  // of eight times as many
    EXPECT_LT(matches, 7 * kPrograms);
    EXPECT_GT(specialised, kPrograms / 4);
    EXPECT_GT(comparisons, kPrograms / 4);
}

TEST(CaptureProgram, CompiledFiltersAgreeWithLibpcap) {
    const char* const filters[] = {
        "tcp",
        "udp port 53",
        "host 10.80.1.2",
        "not host 10.80.1.2",
        "src net 10.80.0.0/16 and tcp dst port 80",
        "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
        "ip6 host fd00:80:1::2 or icmp",
        "ip proto 132 or ip6",
        "len > 100",
        "ip[2:2] - ((ip[0] & 0xf) << 2) > 20",
        "ether host 02:00:00:00:00:0a",
        "vlan and tcp",
        "greater 80 and (port 80 or port 9376)",
        "tcp port 80",
        "not tcp port 80",
        "host 10.80.1.2 and udp port 53",
        "tcp portrange 79-81",
        "net 80.11.0.0/16 or ip6 net 2001:db8::/32",
        "ip[6:2] & 0x1fff = 0 and tcp[13] & 2 != 0",
    };
    Prng random;
    std::vector<std::vector<uint8_t>> frames;
    for (uint32_t n = 0; n < 200; ++n) {
        const auto port = [&] {
            return static_cast<uint16_t>(random.one_in(2) ? 80 : random.below(65'535) + 1);
        };
        auto builder = random.one_in(2) ? eth().ipv4("10.80.1.2", "80.11.12.10")
                                        : eth().ipv6("fd00:80:1::2", "2001:db8:80::10");
        auto frame = (random.one_in(2) ? builder.tcp(port(), port(), random.one_in(2) ? "S" : "A")
                                       : builder.udp(port(), 53))
                         .payload(random.bytes(random.below(100)))
                         .build();
        if (random.one_in(4)) {
            frame.resize(random.below(frame.size()) + 1);
        }
        if (random.one_in(4)) {
            frame[random.below(frame.size())] ^= random.byte();
        }
        frames.push_back(std::move(frame));
    }
    pcap_t* const dead = pcap_open_dead(DLT_EN10MB, 65'535);
    for (const char* filter : filters) {
        bpf_program compiled{};
        ASSERT_EQ(pcap_compile(dead, &compiled, filter, 1, PCAP_NETMASK_UNKNOWN), 0) << pcap_geterr(dead);
        std::vector<Instruction> instructions;
        for (const bpf_insn& each : std::span(compiled.bf_insns, compiled.bf_len)) {
            instructions.push_back({each.code, each.jt, each.jf, each.k});
        }
        pcap_freecode(&compiled);
        const auto program = Program::make(instructions);
        ASSERT_TRUE(program.has_value()) << filter << ": " << program.error().what;
        for (const auto& frame : frames) {
            ASSERT_EQ(program->matches(frame.data(), static_cast<uint32_t>(frame.size())),
                      judged_by_libpcap(instructions, frame))
                << filter;
        }
    }
    pcap_close(dead);
}

}  // namespace capture_program_property_test
}  // namespace penstock::test
