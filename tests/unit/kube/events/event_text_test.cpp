// SPDX-License-Identifier: Apache-2.0
// Bodies are parsed by an independent JSON parser; names are compared with the rule of the API server.
#include "control/kube/events/event_text.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <regex>

namespace penstock::kube {
namespace event_text_test {

// The value at a JSON pointer: strings as they are, everything else as JSON; "(absent)" if there is none.
std::string at(const std::string& json, const char* pointer) {
    simdjson::dom::parser parser;
    simdjson::dom::element document;
    EXPECT_EQ(parser.parse(json).get(document), simdjson::SUCCESS) << json;
    simdjson::dom::element found;
    if (document.at_pointer(pointer).get(found) != simdjson::SUCCESS) {
        return "(absent)";
    }
    std::string_view text;
    return found.get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::minify(found);
}

Event event() {
    return {.kind = "Service",
            .object = {"shop", "web"},
            .type = Event::Type::Warning,
            .reason = "ExternalIPNotAllowed",
            .message = "81.0.0.1 is outside the \"allowed\" ranges\n",
            .reporter = "edge-1"};
}

EventTimes times() {
    // 2026-01-02T03:04:05Z and a minute later.
    const auto first = std::chrono::system_clock::from_time_t(1'767'323'045) + std::chrono::milliseconds(999);
    return {.count = 3, .first = first, .last = first + std::chrono::minutes(1)};
}

TEST(EventText, ABodyIsACoreV1EventAboutTheObject_EVT001) {
    const auto body = event_body(event(), {.uid = "u-1", .resource_version = "77"}, "web.1", times());
    EXPECT_EQ(at(body, "/apiVersion"), "v1");
    EXPECT_EQ(at(body, "/kind"), "Event");
    EXPECT_EQ(at(body, "/metadata/namespace"), "shop");
    EXPECT_EQ(at(body, "/metadata/name"), "web.1");
    EXPECT_EQ(at(body, "/involvedObject/apiVersion"), "v1");
    EXPECT_EQ(at(body, "/involvedObject/kind"), "Service");
    EXPECT_EQ(at(body, "/involvedObject/namespace"), "shop");
    EXPECT_EQ(at(body, "/involvedObject/name"), "web");
    EXPECT_EQ(at(body, "/involvedObject/uid"), "u-1");
    EXPECT_EQ(at(body, "/involvedObject/resourceVersion"), "77");
    EXPECT_EQ(at(body, "/type"), "Warning");
    EXPECT_EQ(at(body, "/reason"), "ExternalIPNotAllowed");
    EXPECT_EQ(at(body, "/message"), event().message);
    EXPECT_EQ(at(body, "/source/component"), "penstock");
    EXPECT_EQ(at(body, "/reportingComponent"), "penstock");
    EXPECT_EQ(at(body, "/reportingInstance"), "edge-1");
    EXPECT_EQ(at(body, "/firstTimestamp"), "2026-01-02T03:04:05Z");
    EXPECT_EQ(at(body, "/lastTimestamp"), "2026-01-02T03:05:05Z");
    EXPECT_EQ(at(body, "/count"), "3");
    EXPECT_EQ(event_target(event()), "/api/v1/namespaces/shop/events");
    EXPECT_EQ(event_target(event(), "web.1"), "/api/v1/namespaces/shop/events/web.1");
}

TEST(EventText, AClusterScopedObjectsEventIsInDefault_EVT001) {
    Event about_node = event();
    about_node.kind = "Node";
    about_node.object = {"", "node-1"};
    const auto body = event_body(about_node, {}, "node-1.1", times());
    EXPECT_EQ(at(body, "/metadata/namespace"), "default");
    EXPECT_EQ(at(body, "/involvedObject/namespace"), "(absent)");
    EXPECT_EQ(at(body, "/involvedObject/uid"), "(absent)");
    EXPECT_EQ(event_target(about_node), "/api/v1/namespaces/default/events");
}

TEST(EventText, AMessageHas1024BytesAtMostAndWholeCharacters_EVT001) {
    for (size_t ahead = 0; ahead < 5; ++ahead) {
        Event longwinded = event();
        longwinded.message = std::string(1'020 + ahead, 'x') + "\xf0\x9f\x98\x80" + std::string(100, 'y');
        const std::string sent = at(event_body(longwinded, {}, "n", times()), "/message");
        EXPECT_EQ(sent, longwinded.message.substr(0, ahead == 0 ? 1'024 : 1'020 + ahead)) << ahead;
    }
    EXPECT_EQ(cut_utf8("abc", 3), "abc");
    EXPECT_EQ(cut_utf8("\x80\x80\x80", 2), "") << "what was never UTF-8 has no border to stop at";
}

TEST(EventText, WhatIsNoUtf8IsStillJson_EVT001) {
    Event broken = event();
    broken.message = "bad \xff byte, \x01 and \\";
    EXPECT_EQ(at(event_body(broken, {}, "n", times()), "/message"), "bad \xef\xbf\xbd byte, \x01 and \\");
}

TEST(EventText, NamesAreDnsSubdomains_EVT002) {
    const std::regex subdomain("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
    const std::string near_the_border = std::string(235, 'a') + "-" + std::string(20, 'b');
    for (const std::string& object :
         {std::string("web"), std::string("node-1.example.org"), std::string(253, 'a'), near_the_border,
          std::string("Web_1"), std::string("..."), std::string()}) {
        const std::string name = event_name(object, 0x0123456789abcdef);
        EXPECT_TRUE(std::regex_match(name, subdomain)) << name;
        EXPECT_LE(name.size(), 253u);
        EXPECT_TRUE(name.ends_with(".0123456789abcdef")) << name;
    }
    EXPECT_EQ(event_name("web", 255), "web.00000000000000ff");
}

TEST(EventText, TheSameSaidAboutAnotherLifeHasAnotherNumber_EVT003) {
    EXPECT_EQ(number_of(event(), {.uid = "a", .resource_version = "1"}),
              number_of(event(), {.uid = "a", .resource_version = "2"}));
    EXPECT_NE(number_of(event(), {.uid = "a"}), number_of(event(), {.uid = "b"}));
    Event other = event();
    other.reporter = "edge-2";
    EXPECT_NE(number_of(event(), {.uid = "a"}), number_of(other, {.uid = "a"}));
}

TEST(EventText, APathCannotBeLeft_EVT001) {
    Event odd = event();
    odd.object.namespace_name = "a/../b?x=1";
    EXPECT_EQ(event_target(odd), "/api/v1/namespaces/a%2F..%2Fb%3Fx%3D1/events");
}

TEST(EventText, ARepeatSaysHowOftenAndWhenLast_EVT002) {
    const auto body = repeat_body(times());
    EXPECT_EQ(at(body, "/count"), "3");
    EXPECT_EQ(at(body, "/lastTimestamp"), "2026-01-02T03:05:05Z");
    EXPECT_EQ(std::ranges::count(body, ':'), 2 + 2) << "two fields, and two in the time";
}

}  // namespace event_text_test
}  // namespace penstock::kube
