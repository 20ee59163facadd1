// SPDX-License-Identifier: Apache-2.0
// Compares the room's output with frames whose bytes scapy computed (tests/golden/frames/make.py).
#include <gtest/gtest.h>

#include "dataplane/packet/answers/link_answer.hpp"
#include "dataplane/packet/answers/reject.hpp"
#include "dataplane/packet/link_message.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/golden_frame.hpp"

namespace penstock::packet {
namespace golden_test {

class Golden : public testing::TestWithParam<test::GoldenFrame> {};

TEST_P(Golden, FrameComesOut) {
    const test::GoldenFrame& golden = GetParam();
    SCOPED_TRACE(golden.meaning);
    std::vector<uint8_t> frame = golden.in;
    Parsed parsed;
    ASSERT_TRUE(parse(frame, parsed));
    using Operation = test::GoldenFrame::Operation;
    if (golden.operation == Operation::Answer) {
        const LinkMessage message = read_link_message(frame, parsed);
        frame.resize(2048);
        const AnswerResult answer = make_link_answer(frame, message, golden.source_mac);
        ASSERT_TRUE(answer.has_value()) << text_of(answer.error()).counter;
        frame.resize(*answer);
        EXPECT_TRUE(test::same_frame(frame, golden.out));
        return;
    }
    ASSERT_EQ(parsed.kind, PacketKind::Flow);
    if (golden.operation == Operation::Reject) {
        frame.resize(2048);  // an mbuf's room
        const AnswerResult answer = make_reject(frame, golden.in.size(), parsed);
        ASSERT_TRUE(answer.has_value()) << text_of(answer.error()).counter;
        frame.resize(*answer);
    } else {
        apply(frame, parsed, golden.rewrite);
        set_ethernet(frame, golden.source_mac, golden.destination_mac);
    }
    EXPECT_TRUE(test::same_frame(frame, golden.out));
}

INSTANTIATE_TEST_SUITE_P(Frames, Golden, testing::ValuesIn(test::load_golden_frames(PENSTOCK_GOLDEN_FRAMES)),
                         [](const auto& info) { return info.param.name; });

}  // namespace golden_test
}  // namespace penstock::packet
