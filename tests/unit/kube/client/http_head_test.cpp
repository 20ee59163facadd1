// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/http_head.hpp"

#include <gtest/gtest.h>

#include "control/kube/liveness.hpp"

namespace penstock::kube {
namespace http_head_test {

using namespace std::chrono_literals;

HttpHead read(std::initializer_list<const char*> lines) {
    HttpHeadReader reader;
    for (const char* line : lines) {
        reader.read(line);
    }
    return reader.is_complete() ? reader.head() : HttpHead{.status = -1};
}

TEST(HttpHead, FieldsAreFoundWhateverTheirCase) {
    const HttpHead head = read({"HTTP/1.1 200 OK\r\n", "CONTENT-TYPE:application/json \r\n",
                                "location:\t/x\r\n", "Other: y\r\n", "\r\n"});
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.content_type, "application/json");
    EXPECT_EQ(head.location, "/x");
    EXPECT_EQ(read({"HTTP/2 404 \r\n", "\r\n"}).status, 404);
}

TEST(HttpHead, InformationalAnswersAreNotTheAnswer) {
    const HttpHead head =
        read({"HTTP/1.1 103 Early\r\n", "Location: /early\r\n", "\r\n", "HTTP/1.1 201 Created\r\n", "\r\n"});
    EXPECT_EQ(head.status, 201);
    EXPECT_EQ(head.location, "");
    EXPECT_EQ(read({"HTTP/1.1 100 Continue\r\n", "\r\n"}).status, -1);
}

TEST(HttpHead, TrailersChangeNothing) {
    EXPECT_EQ(read({"HTTP/1.1 200 OK\r\n", "\r\n", "Location: /late\r\n", "\r\n"}).location, "");
}

TEST(HttpHead, WarningsAreTextsForPeople_APISYNC019) {
    const HttpHead head =
        read({"HTTP/1.1 200 OK\r\n", "Warning: 299 - \"one \\\"two\\\"\"\r\n", "warning: plain\r\n", "\r\n"});
    EXPECT_EQ(head.warnings, (std::vector<std::string>{"one \"two\"", "plain"}));
    EXPECT_EQ(warning_text("299 - \"a\x1b[31mb"), "a [31mb");
    EXPECT_EQ(warning_text(std::string(10'000, 'x')).size(), 512U);
    EXPECT_EQ(warning_text("299 - \"\\"), "\\");
    HttpHeadReader reader;
    reader.read("HTTP/1.1 200 OK");
    for (int i = 0; i < 1000; ++i) {
        reader.read("Warning: " + std::to_string(i));
    }
    EXPECT_LE(reader.head().warnings.size(), 16U);
}

TEST(ProbedConnection, ThirtySecondsOfSilenceAskAndFifteenMoreGiveUp_APISYNC015) {
    using Step = ProbedConnection::Step;
    const LivenessLimits limits;
    const ProbedConnection::Time heard{1h};
    ProbedConnection connection;
    EXPECT_EQ(connection.step(heard + 29999ms, heard, limits), Step::Wait);
    EXPECT_EQ(connection.step(heard + 30s, heard, limits), Step::Probe);
    EXPECT_EQ(connection.step(heard + 44999ms, heard, limits), Step::Wait);
    EXPECT_EQ(connection.step(heard + 45s, heard, limits), Step::GiveUp);
}

TEST(ProbedConnection, AnyByteStartsItAnew_APISYNC015) {
    using Step = ProbedConnection::Step;
    const LivenessLimits limits;
    const ProbedConnection::Time start{1h};
    ProbedConnection connection;
    EXPECT_EQ(connection.step(start + 30s, start, limits), Step::Probe);
    const auto answered = start + 44s;
    EXPECT_EQ(connection.step(start + 45s, answered, limits), Step::Wait);
    EXPECT_EQ(connection.step(answered + 30s, answered, limits), Step::Probe);
    EXPECT_EQ(connection.step(answered + 45s, answered, limits), Step::GiveUp);
}

}  // namespace http_head_test
}  // namespace penstock::kube
