// SPDX-License-Identifier: Apache-2.0
#include "control/pcapng/comment.hpp"

#include <gtest/gtest.h>

namespace penstock::test {
namespace comment_test {

const capture::Names kNames{
    .service = [](ServiceId id) { return id.value == 7 ? std::string("default/web:http") : std::string(); },
    .backend = [](BackendId id) { return id.value == 9 ? std::string("10.2.0.7:9376") : std::string(); },
    .port = [](NicPortId id) { return "p" + std::to_string(id.value); }};

TEST(Comment, NamesWhatWasDecided) {
    capture::Record record{.port = {1},
                           .finding = {.verdict = Verdict::Transmit, .worker = {2}, .receiver = {2}}};
    EXPECT_EQ(capture::comment_of(record, kNames), "verdict=transmit worker=2 port=p1");

    record.finding.service = {7};
    record.finding.backend = {9};
    record.finding.connection = {{4711}, 5};
    record.finding.receiver = {0};
    EXPECT_EQ(capture::comment_of(record, kNames),
              "verdict=transmit worker=2 receiver=0 port=p1 connection=2-4711-5 service=default/web:http "
              "backend=10.2.0.7:9376");

    // ids that have no name any more
    record.finding = {.verdict = Verdict::Drop,
                      .reason = DropReason::NoRoute,
                      .worker = {0},
                      .from_host = true,
                      .service = {8},
                      .backend = {8}};
    record.port = {};
    EXPECT_EQ(capture::comment_of(record, kNames), "verdict=drop reason=no_route worker=0 from=linux");

    // dropped before any worker
    record.finding = {.verdict = Verdict::Drop, .reason = DropReason::FromHostRingFull, .from_host = true};
    EXPECT_EQ(capture::comment_of(record, kNames), "verdict=drop reason=from_host_ring_full from=linux");
}

}  // namespace comment_test
}  // namespace penstock::test
