// SPDX-License-Identifier: Apache-2.0
#include "control/kube/json/json_stream.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::kube {
namespace json_stream_test {

// Result of a stream: the objects, and the error that ended it.
struct Outcome {
    std::vector<std::string> values;
    std::string error;
    bool operator==(const Outcome&) const = default;
};

Outcome run(const std::vector<std::string_view>& chunks, size_t value_bytes_max = kJsonValueBytesMax) {
    Outcome outcome;
    JsonStream stream(value_bytes_max);
    for (const std::string_view chunk : chunks) {
        const Status pushed = stream.push(chunk, [&](std::string_view json) {
            outcome.values.emplace_back(json);
            return Status();
        });
        if (!pushed) {
            outcome.error = pushed.error().what;
            return outcome;
        }
    }
    if (const Status end = stream.finish(); !end) {
        outcome.error = end.error().what;
    }
    return outcome;
}

std::vector<std::string_view> in_chunks_of(std::string_view text, size_t size) {
    std::vector<std::string_view> chunks;
    for (size_t at = 0; at < text.size(); at += size) {
        chunks.push_back(text.substr(at, size));
    }
    return chunks;
}

TEST(JsonStream, ObjectsNeedNothingBetweenThem_APISYNC008) {
    EXPECT_EQ(run({R"({"a":1}{"b":[{}]})"
                   "\r\n\t {}"})
                  .values,
              (std::vector<std::string>{R"({"a":1})", R"({"b":[{}]})", "{}"}));
}

TEST(JsonStream, NewlinesInsideAreNoBorders_APISYNC008) {
    EXPECT_EQ(run({"{\n\"a\":\n1\n}\n"}).values, (std::vector<std::string>{"{\n\"a\":\n1\n}"}));
}

TEST(JsonStream, BracketsInStringsAreText_APISYNC008) {
    const std::string tricky = R"({"a":"}]\"}","b\\":"{[","c":"\\"})";
    EXPECT_EQ(run({tricky + tricky}).values, (std::vector<std::string>{tricky, tricky}));
}

TEST(JsonStream, AnyCutGivesTheSame_APISYNC008) {
    const std::string text =
        "{\"name\":\"caf\xc3\xa9 \xf0\x9f\x9a\xb0 \\u00e9\\\\\",\"n\":[1,{\"x\":\"\\\"}\"}]} \n{\"b\":{}}";
    const Outcome whole = run({text});
    ASSERT_EQ(whole.values.size(), 2u);
    for (size_t size = 1; size <= text.size(); ++size) {
        EXPECT_EQ(run(in_chunks_of(text, size)), whole) << "chunks of " << size;
    }
    for (size_t cut = 0; cut <= text.size(); ++cut) {
        EXPECT_EQ(run({std::string_view(text).substr(0, cut), "", std::string_view(text).substr(cut)}), whole)
            << "cut at " << cut;
    }
}

TEST(JsonStream, WhatIsNoObjectEndsTheStream_APISYNC007) {
    for (const std::string_view text : {"<html>", "{} 5", "{},{}", "[]", "null", "\xef\xbb\xbf{}"}) {
        EXPECT_EQ(run({text}).error, "expected a JSON object") << text;
    }
    EXPECT_EQ(run({R"({"a":1} x)"}).values.size(), 1u) << "what came before counts";
}

TEST(JsonStream, AnEndInsideOfAnObjectIsAnError_APISYNC007) {
    EXPECT_EQ(run({R"({"a":)"}).error, "the stream ended inside an object, after 5 bytes of it");
    EXPECT_EQ(run({"  \n"}).error, "");
    EXPECT_EQ(run({}).error, "");
}

TEST(JsonStream, AnObjectMayFillItsBoundAndNotPassIt_GEN009) {
    const std::string fits = R"({"a":")" + std::string(92, 'x') + R"("})";
    ASSERT_EQ(fits.size(), 100u);
    for (const size_t size : {size_t{1}, size_t{7}, size_t{1000}}) {
        EXPECT_EQ(run(in_chunks_of(fits + fits, size), 100).values.size(), 2u);
        EXPECT_EQ(run(in_chunks_of(fits + " " + fits + "{}", size), 100).error, "");
        EXPECT_EQ(run(in_chunks_of(fits, size), 99).error, "an object is larger than 99 bytes (GEN-009)");
    }
}

TEST(JsonStream, EightMebibytesAreAnEvent_GEN009) {
    const std::string event = R"({"a":")" + std::string(kJsonValueBytesMax - 8, 'x') + R"("})";
    const Outcome outcome = run(in_chunks_of(event, 16384));
    EXPECT_EQ(outcome.error, "");
    ASSERT_EQ(outcome.values.size(), 1u);
    EXPECT_EQ(outcome.values[0].size(), kJsonValueBytesMax);
}

TEST(JsonStream, TheReceiversErrorEndsItForGood_APISYNC007) {
    JsonStream stream;
    size_t seen = 0;
    const auto refuse = [&](std::string_view) -> Status {
        ++seen;
        return fail(Errc::Corrupt, "no event");
    };
    EXPECT_EQ(stream.push("{}{}", refuse).error().what, "no event");
    EXPECT_EQ(stream.push("{}", refuse).error().what, "no event");
    EXPECT_EQ(stream.finish().error().what, "no event");
    EXPECT_EQ(seen, 1u);
}

}  // namespace json_stream_test
}  // namespace penstock::kube
