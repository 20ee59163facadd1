// SPDX-License-Identifier: Apache-2.0
// The members of a line, and texts that need escapes.
#include "control/flow_records/json_line.hpp"

#include <gtest/gtest.h>

#include "tests/unit/flow_records/events.hpp"

namespace penstock::flow_records {
namespace json_line_test {

using Kind = pipeline::FlowRecord::Event;

std::string line(const pipeline::TimedFlowRecord& record, const ServiceFacts& service, const Origin& origin) {
    std::string out;
    append_json_line(out, {record, service}, origin);
    return out;
}

TEST(JsonLine, OfABeginAndAnEnd) {
    const std::string tuple =
        R"("gateway":"edge-1","flow":"69291a3c-2-16909061","namespace":"default","service":"web","port":"http",)"
        R"("protocol":"tcp","client_address":"198.51.100.7","client_port":40000,)"
        R"("frontend_address":"203.0.113.10","frontend_port":80,"source_address":"10.0.0.1","source_port":1025,)"
        R"("backend_address":"10.0.0.42","backend_port":8080,"start":"2025-11-28T03:20:00.123Z")";
    EXPECT_EQ(line(flow(), web(), kOrigin),
              R"({"event":"begin","time":"2025-11-28T03:20:00.123Z",)" + tuple + "}\n");
    EXPECT_EQ(line(flow(Kind::End), web(), kOrigin),
              R"({"event":"end","time":"2025-11-28T03:21:01.123Z",)" + tuple +
                  R"(,"last":"2025-11-28T03:20:01.623Z","duration_ms":1500,"reason":"closed",)"
                  R"("forward_packets":5,"forward_bytes":600,"reverse_packets":7,"reverse_bytes":8000000000})"
                  "\n");
}

TEST(JsonLine, SampledAndAdoptedAreMarked) {
    pipeline::TimedFlowRecord adopted = flow(Kind::End);
    adopted.record.is_adopted = true;
    Origin sampled = kOrigin;
    sampled.one_in = 100;
    EXPECT_NE(line(adopted, web(), sampled).find(R"(,"sampled_one_in":100,"adopted":true,"last":)"),
              std::string::npos);
    EXPECT_EQ(line(flow(), web(), kOrigin).find("sampled"), std::string::npos);
}

TEST(JsonLine, TagsOfTheServiceAreAnObject_ANN21) {
    ServiceFacts tagged = web();
    tagged.tags = "stage=,team=web=1";
    EXPECT_NE(line(flow(), tagged, kOrigin)
                  .find(R"(,"start":"2025-11-28T03:20:00.123Z","tags":{"stage":"","team":"web=1"}})"
                        "\n"),
              std::string::npos)
        << line(flow(), tagged, kOrigin);
    EXPECT_NE(line(flow(Kind::End), tagged, kOrigin).find(R"("team":"web=1"},"last":)"), std::string::npos);
    EXPECT_EQ(line(flow(), web(), kOrigin).find("tags"), std::string::npos);
}

TEST(JsonLine, EachReasonHasItsName) {
    const char* const names[] = {"closed", "reset",    "idle",    "unanswered",
                                 "ended",  "replaced", "evicted", "reclaimed"};
    for (size_t i = 0; i < pipeline::kFlowEnds; ++i) {
        pipeline::TimedFlowRecord record = flow(Kind::End);
        record.record.end = static_cast<pipeline::FlowEnd>(i);
        EXPECT_NE(line(record, web(), kOrigin).find("\"reason\":\"" + std::string(names[i]) + "\""),
                  std::string::npos);
    }
}

TEST(JsonLine, TextsAreEscaped) {
    Origin origin = kOrigin;
    origin.gateway = "a\"b\\c\n\x01\xff";
    const std::string text = line(flow(), {}, origin);
    EXPECT_NE(text.find(R"("gateway":"a\"b\\c\n\u0001)"), std::string::npos) << text;
    EXPECT_EQ(text.find('\xff'), std::string::npos);
    EXPECT_EQ(text.find('\n'), text.size() - 1);
    // A Service with a name that is not known any more.
    EXPECT_NE(text.find(R"("namespace":"","service":"","port":"")"), std::string::npos) << text;
}

TEST(JsonLine, AddressesOfBothFamilies) {
    pipeline::TimedFlowRecord record = flow();
    record.record.forward.source = *IpAddr::parse("2001:db8::7");
    record.record.forward.protocol = Protocol::Sctp;
    const std::string text = line(record, web(), kOrigin);
    EXPECT_NE(text.find(R"("protocol":"sctp","client_address":"2001:db8::7")"), std::string::npos) << text;
}

}  // namespace json_line_test
}  // namespace penstock::flow_records
