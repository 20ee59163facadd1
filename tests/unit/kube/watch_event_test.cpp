// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/kube/decode.hpp"

namespace penstock::kube {
namespace watch_event_test {

using Type = WatchEvent::Type;
using std::chrono::seconds;

Result<WatchEvent> decode(const std::string& json, ObjectKind kind = ObjectKind::Node) {
    Decoder decoder;
    return decode_watch_event(decoder, kind, json);
}

TEST(WatchEvent, ObjectsComeWithTheirVersion_APISYNC005) {
    for (const auto& [text, type] : std::vector<std::pair<std::string, Type>>{
             {"ADDED", Type::Added}, {"MODIFIED", Type::Modified}, {"DELETED", Type::Deleted}}) {
        const auto event = decode(
            R"({"type":")" + text +
            R"(","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","resourceVersion":"0x7"}}})");
        ASSERT_TRUE(event.has_value());
        EXPECT_EQ(event->type, type);
        EXPECT_EQ(event->resource_version, "0x7");
        ASSERT_TRUE(event->object.has_value());
        EXPECT_EQ(event->object->id.to_string(), "Node n");
        EXPECT_EQ(event->object->resource_version, "0x7");
        EXPECT_EQ(std::get<NodePtr>(event->object->object.value())->meta.name, "n");
    }
}

TEST(WatchEvent, KeysMayComeInAnyOrder_APISYNC008) {
    const auto event = decode(R"( {"object":{"metadata":{"name":"n"}},"type":"ADDED"} )");
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, Type::Added);
    EXPECT_TRUE(event->object.has_value());
}

TEST(WatchEvent, ABookmarkIsAVersionAndNoObject_APISYNC005) {
    const auto event = decode(
        R"({"type":"BOOKMARK","object":{"kind":"Node","apiVersion":"v1","metadata":{"resourceVersion":"12","creationTimestamp":null},)"
        R"("spec":{},"status":{"addresses":5}}})");
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, Type::Bookmark);
    EXPECT_EQ(event->resource_version, "12");
    EXPECT_FALSE(event->initial_events_end);
    EXPECT_FALSE(event->object.has_value());
    EXPECT_EQ(event->faults, std::vector<std::string>());
}

TEST(WatchEvent, ABookmarkMayEndAStreamedList_APISYNC011) {
    for (const auto& [value, ends] :
         std::vector<std::pair<std::string, bool>>{{"true", true}, {"false", false}, {"", false}}) {
        EXPECT_EQ(
            decode(
                R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":")" +
                value + R"("}}}})")
                ->initial_events_end,
            ends);
    }
}

TEST(WatchEvent, AnErrorIsAStatus_APISYNC006) {
    const auto event = decode(
        R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
        R"x("message":"too old resource version: 1 (2)","reason":"Expired","code":410}})x");
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, Type::Error);
    EXPECT_TRUE(event->status.is_expired());
    EXPECT_EQ(event->status.to_string(), "410 Expired: too old resource version: 1 (2)");
    EXPECT_FALSE(
        decode(R"({"type":"ERROR","object":{"code":500,"reason":"InternalError"}})")->status.is_expired());
    EXPECT_TRUE(decode(R"({"type":"ERROR","object":{"reason":"Gone"}})")->status.is_expired());
}

TEST(WatchEvent, AnUnknownTypeIsToldAndNotRead_APISYNC005) {
    const auto event = decode(R"({"type":"RENAMED","object":{"metadata":{"name":5}}})");
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, Type::Unknown);
    EXPECT_EQ(event->type_text, "RENAMED");
    EXPECT_FALSE(event->object.has_value());
}

TEST(WatchEvent, ABadObjectIsQuarantinedByName_GEN003) {
    const auto event = decode(
        R"({"type":"MODIFIED","object":{"metadata":{"name":"web","namespace":"d","resourceVersion":"9"},"spec":{"ports":[{"port":"80"}]}}})",
        ObjectKind::Service);
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->resource_version, "9") << "the stream goes on behind it";
    ASSERT_TRUE(event->object.has_value());
    EXPECT_EQ(event->object->id.to_string(), "Service d/web");
    EXPECT_FALSE(event->object->object.has_value());
    // Paths start at the object, as in a list.
    EXPECT_EQ(
        event->object->faults,
        std::vector<std::string>{R"(spec.ports[0].port is a string ("80"), must be an integer (GEN-003))"});
}

TEST(WatchEvent, AnObjectWithoutNameIsNoErrorOfTheStream_GEN001) {
    const auto event = decode(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"9"}}})");
    ASSERT_TRUE(event.has_value());
    EXPECT_FALSE(event->object.has_value());
    EXPECT_EQ(event->faults, std::vector<std::string>{"Node has no metadata.name"});
    EXPECT_EQ(event->resource_version, "9");
}

TEST(WatchEvent, TheEventsOwnLevelDoesNotCountForItsObject_APISYNC017) {
    const auto nested = [](size_t levels) {
        return R"({"type":"ADDED","object":{"metadata":{"name":"n"},"x":)" + std::string(levels, '[') +
               std::string(levels, ']') + "}}";
    };
    EXPECT_TRUE(decode(nested(63))->object->object.has_value());
    EXPECT_FALSE(decode(nested(64))->object->object.has_value());
}

TEST(WatchEvent, WhatIsNoEventIsAnError_APISYNC007) {
    for (const char* json : {"{}", R"({"type":"ADDED"})", R"({"type":"ADDED","object":null})",
                             R"({"type":5,"object":{}})", R"({"type":"ERROR","object":[]})",
                             R"({"object":{"metadata":{"name":"n"}}})", R"({"type":"ADDED","object":{})"}) {
        const auto event = decode(json);
        ASSERT_FALSE(event.has_value()) << json;
        EXPECT_EQ(event.error().code, Errc::Corrupt);
    }
}

TEST(DecodeStatus, ReadsWhatRetryingNeeds_APISYNC010_APISYNC012) {
    Decoder decoder;
    const auto status = decode_status(
        decoder,
        R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"Timeout: Too large resource version: 9, current: 5",)"
        R"("reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],)"
        R"("retryAfterSeconds":1},"code":504})");
    ASSERT_TRUE(status.has_value());
    EXPECT_TRUE(status->is_version_too_large());
    EXPECT_EQ(status->retry_after, seconds(1));
    EXPECT_EQ(status->code, 504);
    EXPECT_FALSE(
        decode_status(decoder, R"({"kind":"Status","reason":"Timeout","code":504})")->is_version_too_large());
    EXPECT_EQ(
        decode_status(decoder, R"({"kind":"Status","details":{"retryAfterSeconds":9223372036854775807}})")
            ->retry_after,
        seconds(365 * 24 * 3600));
    EXPECT_EQ(decode_status(decoder, R"({"kind":"Status","details":{"retryAfterSeconds":0}})")->retry_after,
              std::nullopt);
}

TEST(DecodeStatus, WhatAProxySaysIsNone) {
    Decoder decoder;
    for (const char* body :
         {"<html>502 Bad Gateway</html>", "", R"({"error":"no"})", R"({"kind":"NodeList"})"}) {
        EXPECT_FALSE(decode_status(decoder, body).has_value()) << body;
    }
}

}  // namespace watch_event_test
}  // namespace penstock::kube
