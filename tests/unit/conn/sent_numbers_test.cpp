// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/sent_numbers.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"

namespace penstock::conn {
namespace sent_numbers_test {

struct Segment {
    uint32_t begin, end;
    bool has_syn = false;
};
Segment answer(uint32_t next, uint32_t data_bytes = 0) {
    return {next, next + data_bytes, true};
}
struct Case {
    const char* name;
    std::vector<Segment> sent;
    std::vector<uint32_t> allowed;
    std::vector<uint32_t> refused;
};

TEST(SentNumbers, AllowWhatAClientCanHaveReceived_NAT006) {
    constexpr uint32_t kNext = 0x7000'0001, kOther = 0x1234'5678, kWraps = 0xffff'fff0;
    constexpr uint32_t kMax = SentNumbers::kAllowedMax;
    const Case cases[] = {
        {"nothing was sent", {}, {}, {0, 1, kNext, 0xffff'ffff}},
        {"a SYN+ACK", {answer(kNext)}, {kNext}, {0, kNext - 1, kNext + 1, kNext + 0x8000'0000}},
        {"the numbers begin anew behind a SYN+ACK", {answer(0)}, {0}, {1, 0xffff'ffff}},
        {"the same again", {answer(kNext), answer(kNext)}, {kNext}, {kNext - 1, kNext + 1}},
        {"the answer to another SYN", {answer(kNext), {kNext, kNext}}, {kNext}, {kNext - 1, kNext + 1}},
        {"SYN cookies: two numbers",
         {answer(kNext), answer(kOther)},
         {kNext, kOther},
         {kNext - 1, kNext + 1, kOther - 1, kOther + 1}},
        {"in the other order",
         {answer(kOther), answer(kNext)},
         {kNext, kOther},
         {kNext - 1, kNext + 1, kOther - 1, kOther + 1}},
        {"near each other",
         {answer(kNext), answer(kNext + 9)},
         {kNext, kNext + 9},
         {kNext + 1, kNext + 8, kNext + 10, kNext - 9}},
        {"half of all numbers apart",
         {answer(7), answer(0x8000'0007)},
         {7, 0x8000'0007},
         {6, 8, 0x8000'0006, 0x8000'0008}},
        {"one of them again",
         {answer(kNext), answer(kOther), answer(kNext)},
         {kNext, kOther},
         {kNext + 1, kOther + 1}},
        {"the other one again",
         {answer(kNext), answer(kOther), answer(kOther)},
         {kNext, kOther},
         {kNext + 1, kOther + 1}},
        {"a third one", {answer(kNext), answer(kOther), answer(kWraps)}, {kWraps}, {kWraps - 1, kWraps + 1}},
        {"data behind two SYN+ACKs",
         {answer(kNext), answer(kOther), {kOther, kOther + 100}},
         {kOther, kOther + 100},
         {kOther + 101}},
        {"data in a SYN+ACK (RFC 7413)",
         {answer(kNext, 100)},
         {kNext, kNext + 50, kNext + 100},
         {kNext - 1, kNext + 101}},
        {"and behind it",
         {answer(kNext, 100), {kNext + 100, kNext + 1'500}, {kNext + 1'500, kNext + 2'900}},
         {kNext, kNext + 1'500, kNext + 2'900},
         {kNext - 1, kNext + 2'901}},
        {"the SYN+ACK again, without data",
         {answer(kNext, 100), answer(kNext)},
         {kNext, kNext + 100},
         {kNext + 101}},
        {"beyond 2^32",
         {answer(kWraps), {kWraps, kWraps + 100}},
         {kWraps, 0xffff'ffff, 0, 84},
         {85, kWraps - 1}},
        {"a keepalive", {answer(kNext), {kNext - 1, kNext - 1}}, {kNext}, {kNext - 1, kNext + 1}},
        {"what is older",
         {{kNext, kNext + 100}, {kNext - 500, kNext - 400}},
         {kNext, kNext + 100},
         {kNext - 400, kNext - 500}},
        {"of an earlier connection",
         {answer(kNext), {kOther, kOther + 100}},
         {kNext},
         {kOther, kOther + 100, kNext + 1}},
        {"or ahead",
         {answer(kNext), {kNext + 9'000'000, kNext + 9'000'100}},
         {kNext},
         {kNext + 1, kNext + 9'000'100}},
        {"a gap",
         {{kNext, kNext + 100}, {kNext + 200, kNext + 300}},
         {kNext, kNext + 150, kNext + 300},
         {kNext + 301}},
        {"a long run: its beginning and its end",
         {{kNext, kNext + kMax}, {kNext + kMax, kNext + 2 * kMax}},
         {kNext, kNext + kMax - 1, kNext + 2 * kMax},
         {kNext + kMax, kNext + 2 * kMax - 1, kNext + 2 * kMax + 1}},
    };
    for (const Case& c : cases) {
        SentNumbers sent;
        for (const Segment& segment : c.sent) {
            segment.has_syn ? sent.add_answer(segment.begin, segment.end)
                            : sent.add(segment.begin, segment.end);
        }
        for (const uint32_t ack : c.allowed) {
            EXPECT_TRUE(sent.allow(ack)) << c.name << ": " << ack;
        }
        for (const uint32_t ack : c.refused) {
            EXPECT_FALSE(sent.allow(ack)) << c.name << ": " << ack;
        }
    }
}

// A transfer in order, with any amount of data in flight: the client, which acknowledges at least every 64
// KB, is verified.
TEST(SentNumbers, TheAcksOfATransferMeetTheRun_NAT006) {
    test::Prng prng(test::seed());
    for (int transfer = 0; transfer < 200; ++transfer) {
        SentNumbers sent;
        auto at = static_cast<uint32_t>(prng.next());
        const auto in_flight = static_cast<uint32_t>(prng.below(4'000'000));
        uint32_t acknowledged = at - in_flight;  // sent before the RST
        bool is_verified = false;
        for (int segment = 0; segment < 1'000 && !is_verified; ++segment) {
            const auto bytes = static_cast<uint32_t>(1 + prng.below(65'536));
            sent.add(at, at + bytes);
            at += bytes;
            while (!is_verified && at - acknowledged > in_flight) {
                acknowledged += static_cast<uint32_t>(1 + prng.below(65'536));
                is_verified = sent.allow(acknowledged);
            }
        }
        EXPECT_TRUE(is_verified) << in_flight << " bytes under way";
    }
}

}  // namespace sent_numbers_test
}  // namespace penstock::conn
